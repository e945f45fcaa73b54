// Memory of register files, kept from launch to launch: a kernel with a grid barrier needs tens of megabytes
// of them, and fresh pages cost more than running it.
#pragma once

#include <cstddef>
#include <memory>

namespace stitchwork::sim {

struct RegisterFileDeleter {
  std::size_t bytes = 0;
  void operator()(std::byte* p) const;  ///< back to the pool
};
using RegisterFile = std::unique_ptr<std::byte[], RegisterFileDeleter>;

/// Page-aligned; contents are whatever the last user left.
RegisterFile acquire_registers(std::size_t bytes);

}  // namespace stitchwork::sim
