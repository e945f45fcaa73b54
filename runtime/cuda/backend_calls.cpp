// Library calls: products of matrices and convolutions.
#include <algorithm>
#include <utility>

#include "core/base/arithmetic.h"
#include "core/base/error.h"
#include "runtime/cuda/backend.h"

namespace stitchwork::cuda {

Convolutions parse_convolutions(const std::string& word) {
  if (word == "auto") return Convolutions::kAuto;
  if (word == "cudnn") return Convolutions::kDnn;
  if (word == "patches") return Convolutions::kPatches;
  throw Error(fmt::format("convolutions cannot be made by '{}'", word), "known: auto, cudnn, patches");
}

namespace {

Added added_by(const LibraryCall& call) {
  return {call.bias.value_or(0), call.addend.value_or(0), call.relu};
}

}  // namespace

std::optional<Timed> CudaBackend::call(const Computation& computation, const Node& node,
                                       const LibraryCall& call) {
  if (node.op != Op::kDot && node.op != Op::kConvolution) return std::nullopt;
  const Node &lhs = computation.node(node.operands[0]), &rhs = computation.node(node.operands[1]);
  for (const Shape* shape : {&lhs.shape, &rhs.shape, &node.shape})
    if (shape->elements_count() == 0) return std::nullopt;
  if (node.op == Op::kConvolution) return convolve(node, lhs.shape, rhs.shape, call);
  if (auto timed = multiply_by_tiles(node, computation, call)) return timed;
  if (call.by) return std::nullopt;
  return multiply(node, lhs, rhs, call);
}

std::optional<Timed> CudaBackend::multiply(const Node& dot, const Node& lhs, const Node& rhs,
                                           const LibraryCall& call) {
  if (!multiplies(lhs.shape, rhs.shape, dot.shape)) return std::nullopt;
  const Added added = added_by(call);
  if (added && !lanes_[0]->blas->adds()) return std::nullopt;
  const auto gemm = gemm_of(dot, lhs, rhs, call.transposed);
  if (!gemm || (added && gemm->batch.size() > 1)) return std::nullopt;
  Step step;
  step.kind = Step::Kind::kProduct;
  const std::size_t left = gemm->exchanged ? 1 : 0;
  step.pointers = {call.operands[left], call.operands[1 - left], call.result};
  step.gemm = *gemm;
  step.added = added;
  step.operands = lhs.shape.dtype;
  step.result = dot.shape.dtype;
  step.what = dot.name;
  Timed timed = record(std::move(step));
  timed.by = added ? "cuBLASLt" : "cuBLAS";
  return timed;
}

DeviceAddress CudaBackend::table_of(const std::vector<Pointer>& pointers, const std::string& what) {
  if (pointers.empty()) return 0;
  const auto [known, fresh] = tables_.try_emplace(pointers, 0);
  if (fresh) {
    const auto bytes = std::as_bytes(std::span(pointers));
    known->second = allocate(bytes.size(), what, MemoryUse::kSource);
    write(known->second, bytes);
  }
  return known->second;
}

bool CudaBackend::multiplies(const Shape& lhs, const Shape& rhs, const Shape& result) const {
  return lanes_[0]->blas != nullptr && lhs.dtype == rhs.dtype && Blas::knows(lhs.dtype, result.dtype);
}

std::optional<Timed> CudaBackend::convolve(const Node& node, const Shape& input, const Shape& weights,
                                           const LibraryCall& call) {
  std::string why;
  if (options_.convolutions != Convolutions::kPatches) {
    const Added added = added_by(call);
    const DnnEpilogue epilogue = added.relu ? DnnEpilogue::kAddsRelu
                                 : added    ? DnnEpilogue::kAdds
                                            : DnnEpilogue::kNone;
    DnnTerms terms;
    Dnn::Prepared prepared = prepare(node, input, weights, epilogue, terms);
    if (prepared.verdict)
      return convolve_by_dnn(node, terms.convolution, std::move(prepared.plan), weights, call);
    why = std::move(prepared.verdict.why);
    if (options_.convolutions == Convolutions::kDnn)
      throw Error(fmt::format("{}: cuDNN does not make it: {}", node.name, why),
                  "use --convolutions auto or patches");
  }
  std::optional<Timed> timed = convolve_by_patches(node, input, weights, call);
  if (timed) timed->by = "cuBLAS over patches" + (why.empty() ? "" : ": " + why);
  return timed;
}

Dnn::Prepared CudaBackend::prepare(const Node& node, const Shape& input, const Shape& weights,
                                   DnnEpilogue epilogue, DnnTerms& terms) {
  if (!std::exchange(dnn_asked_, true) && libraries_.dnn) lanes_[0]->dnn = libraries_.dnn();
  if (lanes_[0]->dnn == nullptr) return {Verdict::no("cudnn.absent", "there is no cuDNN"), nullptr};
  Dnn::Prepared prepared;
  for (const bool features_last : {true, false}) {  // what lies so is fastest as it lies
    terms = dnn_terms(node, input, weights, features_last);
    prepared.verdict = terms.verdict;
    if (terms.verdict) prepared = lanes_[0]->dnn->prepare(terms.convolution, options_.tf32, epilogue);
    if (prepared.verdict) break;
  }
  return prepared;
}

Timed CudaBackend::convolve_by_dnn(const Node& node, const DnnConvolution& terms,
                                   std::unique_ptr<DnnPlan> plan, const Shape& weights,
                                   const LibraryCall& call) {
  Step step;
  step.kind = Step::Kind::kConvolution;
  step.what = node.name;
  step.dnn = dnn_plans_.emplace_back(std::move(plan)).get();
  const auto dense = gather(terms.weights, weights, call.operands[1], step);
  std::optional<DeviceAddress> workspace, zeros;
  if (const std::size_t bytes = step.dnn->workspace_bytes(); bytes > 0)
    workspace = allocate(bytes, node.name, MemoryUse::kStep);
  step.added = added_by(call);
  if (step.added && step.added.bias == 0) {
    Step clear;
    clear.kind = Step::Kind::kClear;
    clear.bytes = static_cast<std::size_t>(terms.kernel[0]) *
                  static_cast<std::size_t>(byte_size(terms.dtype));  // of every feature
    clear.what = node.name;
    zeros = allocate(clear.bytes, node.name, MemoryUse::kStep);
    clear.pointers = {*zeros};
    step.added.bias = *zeros;
    step.before.push_back(std::move(clear));
  }
  step.pointers = {call.operands[0], dense.value_or(call.operands[1]), call.result, workspace.value_or(0)};
  const std::string by = fmt::format("cuDNN, {}", step.dnn->algorithm());
  Timed timed = record(std::move(step));
  timed.by = by;
  for (const auto& taken : {dense, workspace, zeros})
    if (taken) release(*taken);
  return timed;
}

std::optional<Timed> CudaBackend::convolve_by_patches(const Node& node, const Shape& input,
                                                      const Shape& weights, const LibraryCall& call) {
  if (!multiplies(input, weights, node.shape)) return std::nullopt;
  const auto product = product_of(node, input, weights);
  if (!product) return std::nullopt;
  Step step;
  step.kind = Step::Kind::kProduct;
  step.gemm = product->gemm;
  step.operands = input.dtype;
  step.result = node.shape.dtype;
  step.what = node.name;
  const auto patches = gather(product->patches, input, call.operands[0], step);
  const auto dense = gather(product->weights, weights, call.operands[1], step);
  DeviceAddress a = patches.value_or(call.operands[0]), b = dense.value_or(call.operands[1]);
  if (!product->patches_first) std::swap(a, b);
  step.pointers = {a, b, call.result};
  if (const Added added = added_by(call)) add_epilogue(node, added, call.result, step);
  const Timed timed = record(std::move(step));
  for (const auto& gathered : {patches, dense})
    if (gathered) release(*gathered);
  return timed;
}

std::optional<DeviceAddress> CudaBackend::gather(const Gather& gather, const Shape& source,
                                                 DeviceAddress from, Step& step) {
  if (gather.copies_nothing()) return std::nullopt;
  const std::string cuda = gather_cuda(gather, source.elements_count(), byte_size(source.dtype));
  const DeviceAddress to = allocate(static_cast<std::size_t>(gather.elements() * byte_size(source.dtype)),
                                    step.what, MemoryUse::kStep);
  step.before.push_back(helper(cuda, "gather", gather.elements(), {from, to}, step.what));
  return to;
}

void CudaBackend::add_epilogue(const Node& node, const Added& added, DeviceAddress result, Step& step) {
  const std::string cuda =
      epilogue_cuda(node, {.bias = added.bias != 0, .addend = added.addend != 0, .relu = added.relu});
  step.after.push_back(
      helper(cuda, "epilogue", node.shape.elements_count(), {result, added.bias, added.addend}, step.what));
}

CudaBackend::Step CudaBackend::helper(const std::string& cuda, const char* name, std::int64_t elements,
                                      std::vector<DeviceAddress> pointers, const std::string& what) {
  const auto [known, fresh] = helpers_.try_emplace(cuda);
  if (fresh) {
    KernelLaunch launch;
    launch.block = kGatherBlock;
    launch.grid = std::min(ceil_div(elements, std::int64_t{kGatherBlock}),
                           std::int64_t{device_.max_blocks_per_sm} * device_.sms);
    known->second = compile_kernel(cuda, name, launch, device_, options_.compile);
  }
  Step step;
  step.kernel = &known->second;
  step.function = load(known->second).function;
  step.pointers = std::move(pointers);
  step.what = what;
  return step;
}

}  // namespace stitchwork::cuda
