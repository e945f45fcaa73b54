#include "runtime/cuda/gpu.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace stitchwork::cuda {
namespace {

/// "GPU-01234567-89ab-cdef-0123-456789abcdef"
std::string uuid_text(const std::array<unsigned char, 16>& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < uuid.size(); ++i)
    text += fmt::format("{}{:02x}", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
  return text;
}

}  // namespace

Gpu gpu(const Driver& driver, int index) {
  int count = 0;
  driver.check(driver.device_count(&count), "cuDeviceGetCount", "CUDA driver");
  if (index < 0 || index >= count)
    throw Error(fmt::format("no GPU {}: there are {}", index, count), "they count from 0");
  DeviceId id = 0;
  driver.check(driver.device_get(&id, index), "cuDeviceGet", "GPU");
  Gpu gpu;
  std::array<char, 256> text{};
  driver.check(driver.device_name(text.data(), static_cast<int>(text.size()), id), "cuDeviceGetName", "GPU");
  gpu.name = text.data();
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    driver.check(driver.device_attribute(&value, which, id), "cuDeviceGetAttribute", gpu.name);
    return value;
  };
  gpu.cc_major = attribute(kComputeMajor);
  gpu.cc_minor = attribute(kComputeMinor);
  gpu.sms = attribute(kMultiprocessorCount);
  gpu.l2_bytes = attribute(kL2Bytes);
  std::size_t memory = 0;
  driver.check(driver.device_memory(&memory, id), "cuDeviceTotalMem", gpu.name);
  gpu.memory_bytes = static_cast<std::int64_t>(memory);
  driver.check(driver.driver_version(&gpu.driver_version), "cuDriverGetVersion", gpu.name);
  gpu.clock_kilohertz = attribute(kClockKilohertz);
  gpu.memory_clock_kilohertz = attribute(kMemoryClockKilohertz);
  if (std::array<unsigned char, 16> uuid{};
      driver.device_uuid != nullptr && driver.device_uuid(uuid.data(), id) == kSuccess)
    gpu.uuid = uuid_text(uuid);
  return gpu;
}

const Device& described(const Gpu& gpu) {
  const auto alike = [&](const Device& device) {
    const auto both = std::mismatch(device.name.begin(), device.name.end(), gpu.name.begin(), gpu.name.end());
    return both.first - device.name.begin();
  };
  const Device* best = nullptr;
  for (const Device& device : devices()) {
    if (device.cc_major != gpu.cc_major || device.cc_minor != gpu.cc_minor || device.sms != gpu.sms) continue;
    if (best == nullptr || alike(device) > alike(*best)) best = &device;
  }
  if (best == nullptr)
    throw Error(fmt::format("no device describes {} (sm_{}{}, {} SMs)", gpu.name, gpu.cc_major, gpu.cc_minor,
                            gpu.sms),
                "write one and name its folder in STITCHWORK_DEVICES (docs/gpu.md)");
  return *best;
}

}  // namespace stitchwork::cuda
