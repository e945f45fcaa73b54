// The command line on a GPU that is the simulator, for tests of what calls it: the program exports the
// driver's functions itself (STITCHWORK_CUDA_DRIVER empty: the loader takes the program) and has no cuBLAS.
// STITCHWORK_FAKE_GPU is the device, default h200.
#include <cstdlib>
#include <iostream>

#include "cli/cli.h"
#include "tests/runtime/fake_cuda.h"

namespace {

const stitchwork::cuda::Driver& driver() {
  static stitchwork::testing::FakeGpu gpu{.device = stitchwork::device([] {
                                            const char* id = std::getenv("STITCHWORK_FAKE_GPU");
                                            return std::string(id != nullptr ? id : "h200");
                                          }()),
                                          .memory_bytes = std::size_t{2} << 30};
  static const auto functions = stitchwork::testing::fake_driver(gpu);
  return *functions;
}

}  // namespace

// Each symbol is resolved to the fake driver's function when dlsym looks it up.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wattribute-alias"  // resolvers return addresses, not functions
#endif
namespace stitchwork::cuda {
extern "C" {
#define EXPORT(member, symbol, parameters)                                      \
  void* resolve_##symbol() { return reinterpret_cast<void*>(driver().member); } \
  __attribute__((visibility("default"), ifunc("resolve_" #symbol))) Result symbol parameters;
STITCHWORK_CUDA_DRIVER(EXPORT)
EXPORT(launch_with, cuLaunchKernelEx, (const LaunchConfig*, Function, void**, void**))
EXPORT(resident_clusters, cuOccupancyMaxActiveClusters, (int*, Function, const LaunchConfig*))
EXPORT(device_uuid, cuDeviceGetUuid_v2, (unsigned char*, DeviceId))
#undef EXPORT
}
}  // namespace stitchwork::cuda

int main(int argc, char** argv) {
  ::setenv("STITCHWORK_CUDA_DRIVER", "", 1);
  ::setenv("STITCHWORK_CUBLAS", "none", 1);
  return stitchwork::run_cli(argc, argv, std::cout, std::cerr);
}
