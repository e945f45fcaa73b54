// What runtime/cuda/ declares for itself, against the toolkit's headers.
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "runtime/cuda/dnn.h"
#include "runtime/cuda/driver.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#define STITCHWORK_HAS_CUDA_H 1
#if __has_include(<cudnn.h>)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // of the functions that versions 8 and 9 share
#include <cudnn.h>
#define STITCHWORK_HAS_CUDNN_H 1
#endif
#endif

namespace stitchwork::cuda {
namespace TEST_FILE {

#ifdef STITCHWORK_HAS_CUDA_H

/// Passed alike: both pointers, or of one size.
template <typename A, typename B>
constexpr bool kAlike = std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B);

template <typename A, typename B>
struct Alike : std::false_type {};
template <typename A, typename... As, typename B, typename... Bs>
requires(sizeof...(As) == sizeof...(Bs)) struct Alike<A (*)(As...), B (*)(Bs...)>
    : std::bool_constant<kAlike<A, B> && (kAlike<As, Bs> && ...)> {
};

TEST(CudaHeader, FunctionsHaveTheParametersTheyHaveThere) {
#define STITCHWORK_COMPARE(member, symbol, parameters) \
  EXPECT_TRUE((Alike<decltype(Driver::member), decltype(&::symbol)>::value)) << #symbol;
  STITCHWORK_CUDA_DRIVER(STITCHWORK_COMPARE)
#undef STITCHWORK_COMPARE
}

TEST(CudaHeader, ValuesAreThoseOfTheHeader) {
  EXPECT_EQ(int{kSuccess}, int{CUDA_SUCCESS});
  EXPECT_EQ(int{kOutOfMemory}, int{CUDA_ERROR_OUT_OF_MEMORY});
  EXPECT_EQ(int{kInvalidImage}, int{CUDA_ERROR_INVALID_IMAGE});
  EXPECT_EQ(int{kNoBinaryForGpu}, int{CUDA_ERROR_NO_BINARY_FOR_GPU});
  EXPECT_EQ(int{kMultiprocessorCount}, int{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT});
  EXPECT_EQ(int{kClockKilohertz}, int{CU_DEVICE_ATTRIBUTE_CLOCK_RATE});
  EXPECT_EQ(int{kMemoryClockKilohertz}, int{CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE});
  EXPECT_EQ(int{kL2Bytes}, int{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE});
  EXPECT_EQ(int{kComputeMajor}, int{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR});
  EXPECT_EQ(int{kComputeMinor}, int{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR});
  EXPECT_EQ(int{kRegisters}, int{CU_FUNC_ATTRIBUTE_NUM_REGS});
  EXPECT_EQ(int{kMaxDynamicSharedBytes}, int{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES});
  EXPECT_EQ(int{kErrorLog}, int{CU_JIT_ERROR_LOG_BUFFER});
  EXPECT_EQ(int{kErrorLogBytes}, int{CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES});
  EXPECT_EQ(kNonBlockingStream, unsigned{CU_STREAM_NON_BLOCKING});
  EXPECT_EQ(kCaptureThreadLocal, unsigned{CU_STREAM_CAPTURE_MODE_THREAD_LOCAL});
}

TEST(CudaHeader, LaunchAttributesLieAsInTheHeader) {
  EXPECT_TRUE((Alike<decltype(Driver::launch_with), decltype(&::cuLaunchKernelEx)>::value));
  EXPECT_TRUE((Alike<decltype(Driver::resident_clusters), decltype(&::cuOccupancyMaxActiveClusters)>::value));
  EXPECT_EQ(int{kClusterDimension}, int{CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION});
  EXPECT_EQ(offsetof(LaunchAttribute, extents), offsetof(CUlaunchAttribute, value.clusterDim.x));
  EXPECT_EQ(int{kProgrammaticStreamSerialization},
            int{CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION});
  EXPECT_EQ(sizeof(LaunchAttribute), sizeof(CUlaunchAttribute));
  EXPECT_EQ(offsetof(LaunchAttribute, value), offsetof(CUlaunchAttribute, value));
  EXPECT_EQ(sizeof(LaunchConfig), sizeof(CUlaunchConfig));
  EXPECT_EQ(offsetof(LaunchConfig, shared_bytes), offsetof(CUlaunchConfig, sharedMemBytes));
  EXPECT_EQ(offsetof(LaunchConfig, stream), offsetof(CUlaunchConfig, hStream));
  EXPECT_EQ(offsetof(LaunchConfig, attributes), offsetof(CUlaunchConfig, attrs));
  EXPECT_EQ(offsetof(LaunchConfig, attributes_count), offsetof(CUlaunchConfig, numAttrs));
}

#ifdef STITCHWORK_HAS_CUDNN_H
TEST(CudaHeader, CudnnsFunctionsAndItsRecordOfAnAlgorithmAreThoseOfTheHeader) {
#define STITCHWORK_COMPARE(member, symbol, parameters) \
  EXPECT_TRUE((Alike<decltype(DnnFunctions::member), decltype(&::symbol)>::value)) << #symbol;
  STITCHWORK_CUDNN(STITCHWORK_COMPARE)
#undef STITCHWORK_COMPARE
  using Theirs = cudnnConvolutionFwdAlgoPerf_t;
  EXPECT_EQ(sizeof(DnnAlgorithm), sizeof(Theirs));
  EXPECT_EQ(offsetof(DnnAlgorithm, status), offsetof(Theirs, status));
  EXPECT_EQ(offsetof(DnnAlgorithm, workspace_bytes), offsetof(Theirs, memory));
  EXPECT_EQ(offsetof(DnnAlgorithm, deterministic), offsetof(Theirs, determinism));
  EXPECT_EQ(offsetof(DnnAlgorithm, math), offsetof(Theirs, mathType));
}
#endif

#else

TEST(CudaHeader, IsComparedWhereThereIsOne) { GTEST_SKIP() << "no cuda.h is installed"; }

#endif

}  // namespace TEST_FILE
}  // namespace stitchwork::cuda
