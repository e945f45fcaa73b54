// The CUDA driver API, as far as it is used: declared here and loaded at run time, so that nothing links to
// it and every machine builds it. Types and values are those of cuda.h (CUDA 12 and later); a test compares
// them with the header where a toolkit is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace stitchwork::cuda {

using Result = int;
using DeviceId = int;
using Pointer = unsigned long long;
using Context = struct CUctx_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;
using Stream = struct CUstream_st*;
using Event = struct CUevent_st*;
using Graph = struct CUgraph_st*;
using GraphExec = struct CUgraphExec_st*;

inline constexpr Result kSuccess = 0, kOutOfMemory = 2, kInvalidImage = 200, kNoBinaryForGpu = 209;

enum DeviceAttribute : int {
  kClockKilohertz = 13,
  kMultiprocessorCount = 16,
  kMemoryClockKilohertz = 36,
  kL2Bytes = 38,
  kComputeMajor = 75,
  kComputeMinor = 76,
};
enum FunctionAttribute : int { kRegisters = 4, kMaxDynamicSharedBytes = 8 };
/// CUlaunchAttribute, CUlaunchConfig (CUDA 11.8).
struct LaunchAttribute {
  int id, unused;
  union {
    char bytes[64];
    int value;
    unsigned extents[3];
  };
};
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attributes_count;
};
inline constexpr int kClusterDimension = 4, kProgrammaticStreamSerialization = 6;
enum JitOption : int { kErrorLog = 5, kErrorLogBytes = 6 };
inline constexpr unsigned kNonBlockingStream = 1, kCaptureThreadLocal = 1, kEventWithTiming = 0,
                          kEventWithoutTiming = 2;

/// The functions, by what they do; X(member, symbol, parameters).
#define STITCHWORK_CUDA_DRIVER(X)                                                                     \
  X(init, cuInit, (unsigned))                                                                         \
  X(driver_version, cuDriverGetVersion, (int*))                                                       \
  X(error_name, cuGetErrorName, (Result, const char**))                                               \
  X(error_text, cuGetErrorString, (Result, const char**))                                             \
  X(device_count, cuDeviceGetCount, (int*))                                                           \
  X(device_get, cuDeviceGet, (DeviceId*, int))                                                        \
  X(device_name, cuDeviceGetName, (char*, int, DeviceId))                                             \
  X(device_attribute, cuDeviceGetAttribute, (int*, int, DeviceId))                                    \
  X(device_memory, cuDeviceTotalMem_v2, (std::size_t*, DeviceId))                                     \
  X(context_retain, cuDevicePrimaryCtxRetain, (Context*, DeviceId))                                   \
  X(context_release, cuDevicePrimaryCtxRelease_v2, (DeviceId))                                        \
  X(context_set, cuCtxSetCurrent, (Context))                                                          \
  X(memory_info, cuMemGetInfo_v2, (std::size_t*, std::size_t*))                                       \
  X(allocate, cuMemAlloc_v2, (Pointer*, std::size_t))                                                 \
  X(release, cuMemFree_v2, (Pointer))                                                                 \
  X(write, cuMemcpyHtoD_v2, (Pointer, const void*, std::size_t))                                      \
  X(read, cuMemcpyDtoH_v2, (void*, Pointer, std::size_t))                                             \
  X(copy, cuMemcpyDtoDAsync_v2, (Pointer, Pointer, std::size_t, Stream))                              \
  X(fill, cuMemsetD8Async, (Pointer, unsigned char, std::size_t, Stream))                             \
  X(module_load, cuModuleLoadDataEx, (Module*, const void*, unsigned, int*, void**))                  \
  X(module_unload, cuModuleUnload, (Module))                                                          \
  X(module_function, cuModuleGetFunction, (Function*, Module, const char*))                           \
  X(function_attribute, cuFuncGetAttribute, (int*, int, Function))                                    \
  X(function_set, cuFuncSetAttribute, (Function, int, int))                                           \
  X(resident_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int*, Function, int, std::size_t)) \
  X(launch, cuLaunchKernel,                                                                           \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**,  \
     void**))                                                                                         \
  X(launch_cooperative, cuLaunchCooperativeKernel,                                                    \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**)) \
  X(stream_create, cuStreamCreate, (Stream*, unsigned))                                               \
  X(stream_wait, cuStreamSynchronize, (Stream))                                                       \
  X(stream_destroy, cuStreamDestroy_v2, (Stream))                                                     \
  X(stream_wait_event, cuStreamWaitEvent, (Stream, Event, unsigned))                                  \
  X(event_create, cuEventCreate, (Event*, unsigned))                                                  \
  X(event_record, cuEventRecord, (Event, Stream))                                                     \
  X(event_elapsed, cuEventElapsedTime, (float*, Event, Event))                                        \
  X(event_destroy, cuEventDestroy_v2, (Event))                                                        \
  X(capture_begin, cuStreamBeginCapture_v2, (Stream, int))                                            \
  X(capture_end, cuStreamEndCapture, (Stream, Graph*))                                                \
  X(graph_instantiate, cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long))          \
  X(graph_launch, cuGraphLaunch, (GraphExec, Stream))                                                 \
  X(graph_exec_destroy, cuGraphExecDestroy, (GraphExec))                                              \
  X(graph_destroy, cuGraphDestroy, (Graph))

/// The functions of one driver library.
struct Driver {
#define STITCHWORK_CUDA_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  STITCHWORK_CUDA_DRIVER(STITCHWORK_CUDA_MEMBER)
#undef STITCHWORK_CUDA_MEMBER

  /// cuLaunchKernelEx, CUDA 11.8; null in older drivers.
  Result (*launch_with)(const LaunchConfig*, Function, void**, void**) = nullptr;
  /// cuDeviceGetUuid_v2, 16 bytes, CUDA 11.4; null in older drivers.
  Result (*device_uuid)(unsigned char*, DeviceId) = nullptr;
  /// cuOccupancyMaxActiveClusters, CUDA 11.8; null in older drivers.
  Result (*resident_clusters)(int*, Function, const LaunchConfig*) = nullptr;

  /// Throws Error naming the call, the driver's error and what was at hand unless `result` is success.
  void check(Result result, const char* call, const std::string& what) const;
  std::string text(Result result) const;  ///< "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
};

/// Loads libcuda.so.1, or the library that $STITCHWORK_CUDA_DRIVER names, and initialises it. Throws Error in
/// one line where there is no driver, it is too old, or it finds no GPU.
std::shared_ptr<const Driver> load_driver();
std::shared_ptr<const Driver> load_driver(const std::string& library);

}  // namespace stitchwork::cuda
