#include "runtime/cuda/dnn.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "core/base/error.h"

namespace stitchwork::cuda {
namespace {

// Values of cudnn_graph.h, cudnn_ops.h and cudnn_cnn.h.
constexpr int kFloat = 0, kDouble = 1, kHalf = 2, kBfloat16 = 9;
constexpr int kFeaturesFirst = 0, kFeaturesLast = 1;
constexpr int kConvolution = 0, kCrossCorrelation = 1;
constexpr int kDefaultMath = 0, kTensorMath = 1, kConvertingMath = 2, kFmaMath = 3;
constexpr int kRelu = 1, kIdentity = 5, kNotPropagateNan = 0;
constexpr int kImplicitPrecompGemm = 1;  // the only algorithm that adds without an activation
constexpr std::array kAlgorithms = {
    "implicit gemm", "implicit precomp gemm", "gemm", "direct", "fft", "fft tiling",
    "winograd",      "winograd nonfused"};

int cudnn_type_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return kDouble;
    case DType::kF16:
      return kHalf;
    case DType::kBF16:
      return kBfloat16;
    default:
      return kFloat;
  }
}

/// f32 products round their operands by default: only fused multiply-adds leave them as they are.
int math_of(DType dtype, bool tf32) {
  if (dtype == DType::kF16 || dtype == DType::kBF16) return kTensorMath;
  return dtype == DType::kF32 && tf32 ? kDefaultMath : kFmaMath;
}

}  // namespace

DnnPlan::~DnnPlan() {
  if (input_ != nullptr) functions_.tensor_destroy(input_);
  if (kernel_ != nullptr) functions_.filter_destroy(kernel_);
  if (output_ != nullptr) functions_.tensor_destroy(output_);
  if (convolution_ != nullptr) functions_.convolution_destroy(convolution_);
  if (bias_ != nullptr) functions_.tensor_destroy(bias_);
  if (activation_ != nullptr) functions_.activation_destroy(activation_);
}

std::string DnnPlan::algorithm() const {
  const auto index = static_cast<std::size_t>(algorithm_);
  return index < kAlgorithms.size() ? kAlgorithms[index] : fmt::format("algorithm {}", algorithm_);
}

Dnn::Dnn(const DnnFunctions& functions, std::string path) : functions_(functions), path_(std::move(path)) {
  usable_ = refusal(functions_.create(&handle_), "cudnnCreate");
}

Dnn::~Dnn() {
  if (handle_ != nullptr) functions_.destroy(handle_);
}

std::unique_ptr<Dnn> Dnn::load() {
  std::vector<std::string> names{"libcudnn.so.9", "libcudnn.so.8"};
  if (const char* named = std::getenv("STITCHWORK_CUDNN")) names = {named};
  for (const std::string& name : names) {
    void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    DnnFunctions functions;
    bool complete = true;
    const auto bind = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
      complete = complete && function != nullptr;
    };
#define STITCHWORK_CUDNN_BIND(member, symbol, parameters) bind(functions.member, #symbol);
    STITCHWORK_CUDNN(STITCHWORK_CUDNN_BIND)
#undef STITCHWORK_CUDNN_BIND
    bind(functions.status_text, "cudnnGetErrorString");
    if (complete) return std::make_unique<Dnn>(functions, name);
    ::dlclose(library);
  }
  return nullptr;
}

Verdict Dnn::refusal(int status, const char* call) const {
  if (status == 0) return Verdict::yes();
  return Verdict::no("cudnn.refuses", fmt::format("{} says {}", call, functions_.status_text(status)));
}

Dnn::Prepared Dnn::prepare(const DnnConvolution& c, bool tf32, DnnEpilogue epilogue) const {
  std::unique_ptr<DnnPlan> plan(new DnnPlan(functions_));
  Verdict verdict = usable_ ? describe(*plan, c, tf32) : usable_;
  if (verdict && epilogue != DnnEpilogue::kNone) verdict = describe_epilogue(*plan, c, epilogue);
  if (verdict) verdict = choose(*plan, c.dtype, tf32, epilogue);
  if (!verdict) return {std::move(verdict), nullptr};
  return {std::move(verdict), std::move(plan)};
}

Verdict Dnn::describe(DnnPlan& plan, const DnnConvolution& c, bool tf32) const {
  const DnnFunctions& f = functions_;
  Verdict verdict;
  const auto tried = [&](int status, const char* call) {
    verdict = refusal(status, call);
    return verdict.ok;
  };
  const auto rank = static_cast<int>(c.kernel.size());
  const int type = cudnn_type_of(c.dtype);
  plan.wide_ = c.dtype == DType::kF64;
  static_cast<void>(
      tried(f.tensor_create(&plan.input_), "cudnnCreateTensorDescriptor") &&
      tried(f.tensor_set(plan.input_, type, rank, c.input.dims.data(), c.input.strides.data()),
            "cudnnSetTensorNdDescriptor") &&
      tried(f.tensor_create(&plan.output_), "cudnnCreateTensorDescriptor") &&
      tried(f.tensor_set(plan.output_, type, rank, c.output.dims.data(), c.output.strides.data()),
            "cudnnSetTensorNdDescriptor") &&
      tried(f.filter_create(&plan.kernel_), "cudnnCreateFilterDescriptor") &&
      tried(f.filter_set(plan.kernel_, type, c.features_last ? kFeaturesLast : kFeaturesFirst, rank,
                         c.kernel.data()),
            "cudnnSetFilterNdDescriptor") &&
      tried(f.convolution_create(&plan.convolution_), "cudnnCreateConvolutionDescriptor") &&
      tried(
          f.convolution_set(plan.convolution_, rank - 2, c.pads.data(), c.strides.data(), c.dilations.data(),
                            c.flipped ? kConvolution : kCrossCorrelation, plan.wide_ ? kDouble : kFloat),
          "cudnnSetConvolutionNdDescriptor") &&
      tried(f.convolution_groups(plan.convolution_, c.groups), "cudnnSetConvolutionGroupCount") &&
      tried(f.convolution_math(plan.convolution_, math_of(c.dtype, tf32)), "cudnnSetConvolutionMathType"));
  return verdict;
}

Verdict Dnn::describe_epilogue(DnnPlan& plan, const DnnConvolution& c, DnnEpilogue epilogue) const {
  const DnnFunctions& f = functions_;
  Verdict verdict;
  const auto tried = [&](int status, const char* call) {
    verdict = refusal(status, call);
    return verdict.ok;
  };
  std::vector<int> dims(c.kernel.size(), 1), strides = dims;
  dims[1] = strides[0] = c.kernel[0];
  static_cast<void>(
      tried(f.tensor_create(&plan.bias_), "cudnnCreateTensorDescriptor") &&
      tried(f.tensor_set(plan.bias_, cudnn_type_of(c.dtype), static_cast<int>(dims.size()), dims.data(),
                         strides.data()),
            "cudnnSetTensorNdDescriptor") &&
      tried(f.activation_create(&plan.activation_), "cudnnCreateActivationDescriptor") &&
      tried(f.activation_set(plan.activation_, epilogue == DnnEpilogue::kAddsRelu ? kRelu : kIdentity,
                             kNotPropagateNan, 0),
            "cudnnSetActivationDescriptor"));
  return verdict;
}

Verdict Dnn::choose(DnnPlan& plan, DType dtype, bool tf32, DnnEpilogue epilogue) const {
  std::array<DnnAlgorithm, 2 * kAlgorithms.size()> found{};  // each by FMA and by tensor cores
  int count = 0;
  Verdict verdict =
      refusal(functions_.algorithms(handle_, plan.input_, plan.kernel_, plan.convolution_, plan.output_,
                                    static_cast<int>(found.size()), &count, found.data()),
              "cudnnGetConvolutionForwardAlgorithm_v7");
  if (!verdict) return verdict;
  const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
  const bool may_round = narrow || (dtype == DType::kF32 && tf32);
  std::string why = "cuDNN names no algorithm";
  for (int i = 0; i < count; ++i) {  // fastest first
    const DnnAlgorithm& one = found[static_cast<std::size_t>(i)];
    plan.algorithm_ = one.algorithm;
    if (one.status != 0) {
      why = fmt::format("cuDNN's {} says {}", plan.algorithm(), functions_.status_text(one.status));
      continue;
    }
    if (epilogue == DnnEpilogue::kAdds && one.algorithm != kImplicitPrecompGemm) {
      why = fmt::format("cuDNN's {} adds nothing without an activation", plan.algorithm());
      continue;
    }
    const bool rounds = one.math == kConvertingMath || (one.math == kTensorMath && !may_round);
    if (one.deterministic == 0 || rounds) {
      why = fmt::format("cuDNN's {} {}", plan.algorithm(),
                        rounds ? "rounds its operands" : "adds in an order that depends on timing");
      continue;
    }
    // Else the descriptor's own stays: what an algorithm calls default may round.
    if (may_round)
      verdict =
          refusal(functions_.convolution_math(plan.convolution_, one.math), "cudnnSetConvolutionMathType");
    if (verdict)
      verdict = refusal(functions_.workspace(handle_, plan.input_, plan.kernel_, plan.convolution_,
                                             plan.output_, one.algorithm, &plan.workspace_bytes_),
                        "cudnnGetConvolutionForwardWorkspaceSize");
    if (verdict && plan.workspace_bytes_ <= kMostDnnWorkspace) return verdict;
    why = verdict ? fmt::format("cuDNN's {} takes {} bytes to work in, of at most {}", plan.algorithm(),
                                plan.workspace_bytes_, kMostDnnWorkspace)
                  : verdict.why;
    verdict = Verdict::yes();
  }
  return Verdict::no("cudnn.no-algorithm", why);
}

void Dnn::convolve(Stream stream, const DnnPlan& plan, const DnnBuffers& buffers,
                   const std::string& what) const {
  const auto check = [&](int status, const char* call) {
    if (status != 0)
      throw Error(fmt::format("{}: {} failed: {}", what, call, functions_.status_text(status)),
                  "--convolutions patches does without cuDNN");
  };
  check(functions_.set_stream(handle_, stream), "cudnnSetStream");
  const double one_wide = 1, zero_wide = 0;
  const float one = 1, zero = 0;
  const void* const alpha = plan.wide_ ? static_cast<const void*>(&one_wide) : &one;
  const void* const beta = plan.wide_ ? static_cast<const void*>(&zero_wide) : &zero;
  const auto pointer = [](Pointer address) { return reinterpret_cast<void*>(address); };
  void* const output = pointer(buffers.output);
  if (plan.activation_ == nullptr) {
    check(functions_.forward(handle_, alpha, plan.input_, pointer(buffers.input), plan.kernel_,
                             pointer(buffers.kernel), plan.convolution_, plan.algorithm_,
                             pointer(buffers.workspace), plan.workspace_bytes_, beta, plan.output_, output),
          "cudnnConvolutionForward");
    return;
  }
  // z, which is as the output lies, may be the output; times 0 it is nothing.
  const bool adds = buffers.added.addend != 0;
  check(functions_.forward_adding(handle_, alpha, plan.input_, pointer(buffers.input), plan.kernel_,
                                  pointer(buffers.kernel), plan.convolution_, plan.algorithm_,
                                  pointer(buffers.workspace), plan.workspace_bytes_, adds ? alpha : beta,
                                  plan.output_, adds ? pointer(buffers.added.addend) : output, plan.bias_,
                                  pointer(buffers.added.bias), plan.activation_, plan.output_, output),
        "cudnnConvolutionBiasActivationForward");
}

}  // namespace stitchwork::cuda
