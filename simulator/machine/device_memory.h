// Simulated global memory and the variables modules keep in it.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/machine/byte_flags.h"
#include "simulator/machine/program.h"
#include "simulator/simulator.h"

namespace stitchwork::sim {

struct Allocation {
  std::vector<std::byte> bytes;
  ByteFlags written;  ///< empty: not tracked
  std::string name;
  bool live = false;
  bool constant = false;  ///< of a .const variable

  void mark_written(std::size_t offset, std::size_t count);
};

struct DeviceMemory::Impl {
  bool track_initialised = false;
  std::deque<Allocation> allocations;  ///< index + kFirstAllocation is the address's upper part
  std::vector<std::size_t> free;
  std::map<std::pair<std::uint64_t, std::uint32_t>, DeviceAddress> variables;  ///< (module, index)

  DeviceAddress grid_workspace = 0;  ///< 0: no kernel asked for one yet

  /// The allocation `address` points into or just past, or null.
  Allocation* find(DeviceAddress address);
};

/// What a read of `bytes` bytes by the host would find wrong: "reads 36 bytes of t, of which byte 4 was never
/// written"; nothing where the memory does not track, or all are written.
std::optional<std::string> unwritten(DeviceMemory& memory, DeviceAddress address, std::size_t bytes);

/// Address of a module's .global or .const variable; creates and initialises it at first use.
DeviceAddress variable_address(DeviceMemory& memory, const ptx::ModuleImpl& module, std::uint32_t index);

}  // namespace stitchwork::sim
