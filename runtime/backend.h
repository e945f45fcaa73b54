// Where an executable runs: device memory, launches and library calls, of the simulator or of a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/executable.h"
#include "simulator/simulator.h"

namespace stitchwork {

using DeviceAddress = std::uint64_t;

/// How a number was obtained; it never loses that label.
enum class Method : std::uint8_t { kModelled, kSimulated, kMeasured, kImported };
std::string_view name(Method method);

/// What one launch did.
struct Launched {
  sim::Counters counters;  ///< all zero where the method is not simulated
  int registers = 0;
  std::optional<std::int64_t> spill_bytes;
  double time_us = 0;
  sim::SanitizerCounts sanitized;
  std::vector<sim::Finding> findings;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Of the times of its launches.
  virtual Method method() const = 0;

  /// 256-byte aligned, contents undefined; `name` appears in errors and findings. Throws Error when the
  /// device has no memory left.
  virtual DeviceAddress allocate(std::size_t bytes, const std::string& name) = 0;
  virtual void release(DeviceAddress address) = 0;
  virtual void write(DeviceAddress address, std::span<const std::byte> data) = 0;
  virtual void read(DeviceAddress address, std::span<std::byte> data) = 0;
  virtual void clear(DeviceAddress address, std::size_t bytes) = 0;
  virtual void copy(DeviceAddress to, DeviceAddress from, std::size_t bytes) = 0;

  /// Runs `kernel` with these pointers. Throws Error naming it where it cannot be launched.
  virtual Launched launch(const CompiledKernel& kernel, std::span<const DeviceAddress> arguments) = 0;

  /// Makes the library call of `node`; its time in us, or nothing where the backend does not know it and the
  /// CPU reference has to make it.
  virtual std::optional<double> call(const Computation& computation, const Node& node,
                                     std::span<const DeviceAddress> operands, DeviceAddress result) {
    static_cast<void>(computation), static_cast<void>(node), static_cast<void>(operands);
    static_cast<void>(result);
    return std::nullopt;
  }

  /// Whether what is written once (parameters, constants, tables, barriers) keeps its place until the run
  /// ends, so that its launches can be repeated.
  virtual bool keeps_sources() const { return false; }
};

}  // namespace stitchwork
