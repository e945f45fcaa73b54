// Device memory of a backend, and what a launch needs of it beside the buffers of ops.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backend.h"

namespace stitchwork {

/// Device memory, given back with it.
class DeviceBuffer {
 public:
  DeviceBuffer(Backend& backend, std::size_t bytes, const std::string& name,
               MemoryUse use = MemoryUse::kValue)
      : backend_(&backend), address_(backend.allocate(bytes, name, use)) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : backend_(std::exchange(other.backend_, nullptr)), address_(other.address_) {}
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;
  ~DeviceBuffer() {
    if (backend_ != nullptr) backend_->release(address_);
  }

  DeviceAddress address() const { return address_; }

 private:
  Backend* backend_;
  DeviceAddress address_;
};

/// The address of an op's buffer, allocated where it is not yet.
using BufferAddress = std::function<DeviceAddress(NodeId)>;

/// The arguments of one launch, with the scratch, table and barrier that are its own.
struct LaunchMemory {
  std::vector<DeviceAddress> arguments;
  std::optional<DeviceBuffer> scratch;
  std::vector<DeviceBuffer> written;  ///< table and barrier, which the launch finds as they are
};
LaunchMemory lay_out(Backend& backend, const CompiledKernel& kernel, const BufferAddress& buffer);

}  // namespace stitchwork
