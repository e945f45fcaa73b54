#include "simulator/machine/device_memory.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "simulator/machine/block_run.h"

namespace stitchwork::sim {
namespace {

Allocation& checked(DeviceMemory::Impl& impl, DeviceAddress address, std::size_t bytes, const char* what) {
  Allocation* a = impl.find(address);
  if (a == nullptr)
    throw Error(fmt::format("{} of device memory at {:#x}: nothing is allocated there", what, address));
  if (offset_of(address) + bytes > a->bytes.size()) {
    throw Error(fmt::format("{} of {} bytes at {}+{}, which has {} bytes", what, bytes, a->name,
                            offset_of(address), a->bytes.size()));
  }
  return *a;
}

}  // namespace

DeviceMemory::DeviceMemory() : DeviceMemory(false) {}
DeviceMemory::DeviceMemory(bool track_initialised) : impl_(std::make_unique<Impl>()) {
  impl_->track_initialised = track_initialised;
}
DeviceMemory::~DeviceMemory() = default;
DeviceMemory::DeviceMemory(DeviceMemory&&) noexcept = default;
DeviceMemory& DeviceMemory::operator=(DeviceMemory&&) noexcept = default;

void Allocation::mark_written(std::size_t offset, std::size_t count) {
  if (!written.empty()) written.set(offset, count, true);
}

Allocation* DeviceMemory::Impl::find(DeviceAddress address) {
  const std::uint64_t index = address >> kAllocationShift;
  if (index < kFirstAllocation || index - kFirstAllocation >= allocations.size()) return nullptr;
  Allocation& a = allocations[index - kFirstAllocation];
  return a.live ? &a : nullptr;
}

DeviceAddress DeviceMemory::allocate(std::size_t bytes, std::string name) {
  const DeviceAddress address = adopt(std::vector<std::byte>(bytes, std::byte{0xA5}), std::move(name));
  if (impl_->track_initialised) impl_->find(address)->written = ByteFlags(bytes, false);
  return address;
}

DeviceAddress DeviceMemory::adopt(std::vector<std::byte> contents, std::string name) {
  std::size_t index = impl_->allocations.size();
  if (!impl_->free.empty()) {
    index = impl_->free.back();
    impl_->free.pop_back();
  } else {
    impl_->allocations.emplace_back();
  }
  Allocation& a = impl_->allocations[index];
  if (impl_->track_initialised) a.written = ByteFlags(contents.size(), true);
  a.bytes = std::move(contents);
  a.name = std::move(name);
  a.live = true;
  a.constant = false;
  return (index + kFirstAllocation) << kAllocationShift;
}

std::vector<std::byte> DeviceMemory::take(DeviceAddress base) {
  std::vector<std::byte> contents = std::move(checked(*impl_, base, 0, "release").bytes);
  release(base);
  return contents;
}

void DeviceMemory::release(DeviceAddress base) {
  checked(*impl_, base, 0, "release") = Allocation{};
  impl_->free.push_back((base >> kAllocationShift) - kFirstAllocation);
}

void DeviceMemory::write(DeviceAddress address, std::span<const std::byte> data) {
  Allocation& a = checked(*impl_, address, data.size(), "write");
  if (!data.empty()) std::memcpy(a.bytes.data() + offset_of(address), data.data(), data.size());
  a.mark_written(offset_of(address), data.size());
}
void DeviceMemory::read(DeviceAddress address, std::span<std::byte> data) const {
  const Allocation& a = checked(*impl_, address, data.size(), "read");
  if (!data.empty()) std::memcpy(data.data(), a.bytes.data() + offset_of(address), data.size());
}
void DeviceMemory::fill(DeviceAddress address, std::size_t bytes, std::byte value) {
  Allocation& a = checked(*impl_, address, bytes, "fill");
  std::memset(a.bytes.data() + offset_of(address), std::to_integer<int>(value), bytes);
  a.mark_written(offset_of(address), bytes);
}
std::span<std::byte> DeviceMemory::bytes(DeviceAddress base) {
  return checked(*impl_, base, 0, "access").bytes;
}
std::span<const std::byte> DeviceMemory::bytes(DeviceAddress base) const {
  return checked(*impl_, base, 0, "access").bytes;
}

std::optional<std::string> unwritten(DeviceMemory& memory, DeviceAddress address, std::size_t bytes) {
  const Allocation& a = checked(memory.impl(), address, bytes, "read");
  if (a.written.empty()) return std::nullopt;
  const std::size_t first = offset_of(address), leading = a.written.leading(first, bytes);
  if (leading == bytes) return std::nullopt;
  return fmt::format("reads {} bytes of {}, of which byte {} was never written", bytes, a.name,
                     first + leading);
}

DeviceAddress variable_address(DeviceMemory& memory, const ptx::ModuleImpl& module, std::uint32_t index) {
  auto& known = memory.impl().variables;
  if (const auto it = known.find({module.id, index}); it != known.end()) return it->second;
  const ptx::Variable& v = module.globals[index];
  const DeviceAddress address = memory.allocate(static_cast<std::size_t>(v.bytes), v.name);
  known[{module.id, index}] = address;
  memory.impl().find(address)->constant = v.constant;
  memory.fill(address, static_cast<std::size_t>(v.bytes), std::byte{0});
  memory.write(address, v.initial);
  for (const ptx::Variable::Pointer& p : v.pointers) {
    for (std::uint32_t t = 0; t < module.globals.size(); ++t) {
      if (module.globals[t].name != p.target) continue;
      const DeviceAddress target = variable_address(memory, module, t);
      memory.write(address + static_cast<std::uint64_t>(p.offset), std::as_bytes(std::span(&target, 1)));
    }
  }
  return address;
}

Argument Argument::pointer(DeviceAddress a) { return i64(static_cast<std::int64_t>(a)); }
namespace {
template <class T>
Argument argument_of(T v) {
  const auto bytes = std::as_bytes(std::span(&v, 1));
  return {{bytes.begin(), bytes.end()}};
}
}  // namespace
Argument Argument::i32(std::int32_t v) { return argument_of(v); }
Argument Argument::i64(std::int64_t v) { return argument_of(v); }
Argument Argument::f32(float v) { return argument_of(v); }

}  // namespace stitchwork::sim
