// cuDNN, loaded at run time: convolutions, and what is added to them in the same call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/added.h"
#include "runtime/cuda/dnn_convolution.h"
#include "runtime/cuda/driver.h"

namespace stitchwork::cuda {

/// cudnnConvolutionFwdAlgoPerf_t, versions 8 and 9.
struct DnnAlgorithm {
  int algorithm, status;
  float ms;  ///< as cuDNN expects it
  std::size_t workspace_bytes;
  int deterministic, math;
  int reserved[3];
};

/// The functions of cudnn.h that are used, by what they do; X(member, symbol, parameters). Handles and
/// descriptors are pointers, enumerations ints. A test compares them with the header where there is one.
#define STITCHWORK_CUDNN(X)                                                                      \
  X(create, cudnnCreate, (void**))                                                               \
  X(destroy, cudnnDestroy, (void*))                                                              \
  X(set_stream, cudnnSetStream, (void*, Stream))                                                 \
  X(tensor_create, cudnnCreateTensorDescriptor, (void**))                                        \
  X(tensor_set, cudnnSetTensorNdDescriptor, (void*, int, int, const int*, const int*))           \
  X(tensor_destroy, cudnnDestroyTensorDescriptor, (void*))                                       \
  X(filter_create, cudnnCreateFilterDescriptor, (void**))                                        \
  X(filter_set, cudnnSetFilterNdDescriptor, (void*, int, int, int, const int*))                  \
  X(filter_destroy, cudnnDestroyFilterDescriptor, (void*))                                       \
  X(convolution_create, cudnnCreateConvolutionDescriptor, (void**))                              \
  X(convolution_set, cudnnSetConvolutionNdDescriptor,                                            \
    (void*, int, const int*, const int*, const int*, int, int))                                  \
  X(convolution_groups, cudnnSetConvolutionGroupCount, (void*, int))                             \
  X(convolution_math, cudnnSetConvolutionMathType, (void*, int))                                 \
  X(convolution_destroy, cudnnDestroyConvolutionDescriptor, (void*))                             \
  X(algorithms, cudnnGetConvolutionForwardAlgorithm_v7,                                          \
    (void*, void*, void*, void*, void*, int, int*, DnnAlgorithm*))                               \
  X(workspace, cudnnGetConvolutionForwardWorkspaceSize,                                          \
    (void*, void*, void*, void*, void*, int, std::size_t*))                                      \
  X(forward, cudnnConvolutionForward,                                                            \
    (void*, const void*, void*, const void*, void*, const void*, void*, int, void*, std::size_t, \
     const void*, void*, void*))                                                                 \
  X(activation_create, cudnnCreateActivationDescriptor, (void**))                                \
  X(activation_set, cudnnSetActivationDescriptor, (void*, int, int, double))                     \
  X(activation_destroy, cudnnDestroyActivationDescriptor, (void*))                               \
  X(forward_adding, cudnnConvolutionBiasActivationForward,                                       \
    (void*, const void*, void*, const void*, void*, const void*, void*, int, void*, std::size_t, \
     const void*, void*, const void*, void*, const void*, void*, void*, void*))

struct DnnFunctions {
#define STITCHWORK_CUDNN_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
  STITCHWORK_CUDNN(STITCHWORK_CUDNN_MEMBER)
#undef STITCHWORK_CUDNN_MEMBER
  const char* (*status_text)(int) = nullptr;  ///< cudnnGetErrorString
};

/// Workspaces are at most so large: 4 GiB, XLA's limit (TF_CUDNN_WORKSPACE_LIMIT_IN_MB) unless it is set.
inline constexpr std::size_t kMostDnnWorkspace = std::size_t{4} << 30;

/// What a call does to its convolution. Without anything it is cudnnConvolutionForward, else
/// cudnnConvolutionBiasActivationForward, whose bias is always there.
enum class DnnEpilogue : std::uint8_t { kNone, kAdds, kAddsRelu };

/// Where a call reads and writes; `added` is empty without an epilogue.
struct DnnBuffers {
  Pointer input = 0, kernel = 0, output = 0, workspace = 0;
  Added added;
};

/// A convolution that cuDNN has agreed to: its descriptors and the algorithm. It lives no longer than its
/// Dnn.
class DnnPlan {
 public:
  ~DnnPlan();
  DnnPlan(const DnnPlan&) = delete;
  DnnPlan& operator=(const DnnPlan&) = delete;

  std::string algorithm() const;  ///< "implicit precomp gemm"
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  friend class Dnn;
  explicit DnnPlan(const DnnFunctions& functions) : functions_(functions) {}

  const DnnFunctions& functions_;
  void *input_ = nullptr, *kernel_ = nullptr, *output_ = nullptr, *convolution_ = nullptr;
  void *bias_ = nullptr, *activation_ = nullptr;  ///< null without an epilogue
  bool wide_ = false;                             ///< factors are doubles
  int algorithm_ = -1;
  std::size_t workspace_bytes_ = 0;
};

class Dnn {
 public:
  /// libcudnn.so.9 or .8, or what $STITCHWORK_CUDNN names; null where there is none.
  static std::unique_ptr<Dnn> load();
  Dnn(const DnnFunctions& functions, std::string path);
  ~Dnn();
  Dnn(const Dnn&) = delete;
  Dnn& operator=(const Dnn&) = delete;

  struct Prepared {
    Verdict verdict;  ///< no: the call that refused, or that no algorithm is left
    std::unique_ptr<DnnPlan> plan;
  };
  /// Asks cuDNN for the algorithm it expects to be the fastest (by its heuristics, which measure nothing) of
  /// those whose results do not depend on timing, whose workspace is within kMostDnnWorkspace and which
  /// compute as asked: `tf32` permits f32 operands to be rounded to 10 bits of mantissa.
  Prepared prepare(const DnnConvolution& convolution, bool tf32,
                   DnnEpilogue epilogue = DnnEpilogue::kNone) const;
  /// Throws Error naming `what`.
  void convolve(Stream stream, const DnnPlan& plan, const DnnBuffers& buffers, const std::string& what) const;

  const std::string& path() const { return path_; }

 private:
  Verdict describe(DnnPlan& plan, const DnnConvolution& convolution, bool tf32) const;
  Verdict describe_epilogue(DnnPlan& plan, const DnnConvolution& convolution, DnnEpilogue epilogue) const;
  Verdict choose(DnnPlan& plan, DType dtype, bool tf32, DnnEpilogue epilogue) const;
  Verdict refusal(int status, const char* call) const;

  DnnFunctions functions_;
  std::string path_;
  void* handle_ = nullptr;
  Verdict usable_;
};

}  // namespace stitchwork::cuda
