#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "core/base/error.h"

namespace stitchwork::cuda {
namespace {

constexpr const char* kHint =
    "run where an NVIDIA driver is, or simulate (--backend sim; explore: --times simulated)";
/// cuStreamBeginCapture_v2, cuGraphInstantiateWithFlags: CUDA 11.4 and later.
constexpr int kOldestDriver = 11040;

}  // namespace

std::string Driver::text(Result result) const {
  const char *name = nullptr, *meaning = nullptr;
  if (error_name(result, &name) != kSuccess || name == nullptr) return fmt::format("error {}", result);
  if (error_text(result, &meaning) != kSuccess || meaning == nullptr) return name;
  return fmt::format("{} ({})", name, meaning);
}

void Driver::check(Result result, const char* call, const std::string& what) const {
  if (result == kSuccess) return;
  throw Error(fmt::format("{}: {} failed: {}", what, call, text(result)));
}

std::shared_ptr<const Driver> load_driver(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw Error(fmt::format("no CUDA driver: {} cannot be loaded", library), kHint);
  auto driver = std::make_shared<Driver>();
  const auto bind = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, symbol));
    if (function == nullptr)
      throw Error(fmt::format("{} has no {}: the driver is too old", library, symbol),
                  "CUDA 11.4 or later is needed");
  };
#define STITCHWORK_CUDA_BIND(member, symbol, parameters) bind(driver->member, #symbol);
  STITCHWORK_CUDA_DRIVER(STITCHWORK_CUDA_BIND)
#undef STITCHWORK_CUDA_BIND
  driver->launch_with = reinterpret_cast<decltype(driver->launch_with)>(::dlsym(handle, "cuLaunchKernelEx"));
  driver->resident_clusters =
      reinterpret_cast<decltype(driver->resident_clusters)>(::dlsym(handle, "cuOccupancyMaxActiveClusters"));
  driver->device_uuid =
      reinterpret_cast<decltype(driver->device_uuid)>(::dlsym(handle, "cuDeviceGetUuid_v2"));
  int version = 0, devices = 0;
  const Result initialised = driver->init(0);
  if (initialised != kSuccess)
    throw Error(fmt::format("no GPU: cuInit failed: {}", driver->text(initialised)), kHint);
  driver->check(driver->driver_version(&version), "cuDriverGetVersion", "CUDA driver");
  if (version < kOldestDriver)
    throw Error(fmt::format("the driver is for CUDA {}.{}", version / 1000, version % 1000 / 10),
                "CUDA 11.4 or later is needed");
  driver->check(driver->device_count(&devices), "cuDeviceGetCount", "CUDA driver");
  if (devices == 0) throw Error("no GPU: the driver finds none", kHint);
  return driver;
}

std::shared_ptr<const Driver> load_driver() {
  const char* const named = std::getenv("STITCHWORK_CUDA_DRIVER");
  return load_driver(named != nullptr ? named : "libcuda.so.1");
}

}  // namespace stitchwork::cuda
