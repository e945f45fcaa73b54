// The primitives of the builder: each fills in a node and emits it.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/graph/dtype_dispatch.h"
#include "core/onnx/builder.h"

namespace stitchwork::onnx_reader {
namespace {

std::string list(const Dims& values) { return fmt::format("{{{}}}", fmt::join(values, ",")); }

template <bool kLowest>
Value extreme(DType dtype) {
  Literal literal = Literal::zeros(Shape::array(dtype, {}));
  with_storage(dtype, [&](auto tag) {
    using S = decltype(tag);
    using T = typename S::Value;
    using Limits = std::numeric_limits<T>;
    T value = kLowest ? Limits::lowest() : Limits::max();
    if constexpr (Limits::has_infinity) value = kLowest ? -Limits::infinity() : Limits::infinity();
    *literal.data<typename S::Stored>() = S::narrow(value);
  });
  return Builder::known(std::move(literal));
}

Value identity(Op op, DType dtype) {
  switch (op) {
    case Op::kMaximum:
      return Builder::lowest(dtype);
    case Op::kMinimum:
      return Builder::highest(dtype);
    case Op::kMultiply:
      return Builder::scalar_int(dtype, 1);
    case Op::kAnd:
      return Builder::scalar_int(dtype, dtype == DType::kPred ? 1 : -1);
    default:
      return Builder::scalar_int(dtype, 0);
  }
}

std::vector<SliceSpec> whole(const Dims& dims) {
  std::vector<SliceSpec> ranges;
  for (const std::int64_t extent : dims) ranges.push_back({0, extent, 1});
  return ranges;
}

}  // namespace

std::string window_text(const std::vector<WindowDim>& window) {
  std::string text;
  const auto field = [&](const char* key, auto&& value, auto&& is_default) {
    if (std::ranges::all_of(window, is_default)) return;
    std::string part;
    for (const WindowDim& dim : window) part += (part.empty() ? "" : "x") + value(dim);
    text += (text.empty() ? "" : " ") + fmt::format("{}={}", key, part);
  };
  field(
      "size", [](const WindowDim& d) { return fmt::to_string(d.size); },
      [](const WindowDim&) { return false; });
  field(
      "stride", [](const WindowDim& d) { return fmt::to_string(d.stride); },
      [](const WindowDim& d) { return d.stride == 1; });
  field(
      "pad", [](const WindowDim& d) { return fmt::format("{}_{}", d.pad_low, d.pad_high); },
      [](const WindowDim& d) { return d.pad_low == 0 && d.pad_high == 0; });
  field(
      "lhs_dilate", [](const WindowDim& d) { return fmt::to_string(d.base_dilation); },
      [](const WindowDim& d) { return d.base_dilation == 1; });
  field(
      "rhs_dilate", [](const WindowDim& d) { return fmt::to_string(d.window_dilation); },
      [](const WindowDim& d) { return d.window_dilation == 1; });
  field(
      "rhs_reversal", [](const WindowDim& d) { return d.reversed ? std::string("1") : std::string("0"); },
      [](const WindowDim& d) { return !d.reversed; });
  return "{" + text + "}";
}

Value Builder::integers(const Dims& values) {
  Literal literal = Literal::zeros(Shape::array(DType::kS64, {static_cast<std::int64_t>(values.size())}));
  std::ranges::copy(values, literal.data<std::int64_t>());
  return known(std::move(literal));
}

Value Builder::integer(std::int64_t value) { return scalar_int(DType::kS64, value); }

Value Builder::scalar(DType dtype, double value) {
  Literal literal = Literal::zeros(Shape::array(dtype, {}));
  literal.set_double(0, value);
  return known(std::move(literal));
}

Value Builder::scalar_int(DType dtype, std::int64_t value) {
  Literal literal = Literal::zeros(Shape::array(dtype, {}));
  literal.set_int(0, value);
  return known(std::move(literal));
}

Value Builder::lowest(DType dtype) { return extreme<true>(dtype); }
Value Builder::highest(DType dtype) { return extreme<false>(dtype); }

Value Builder::full(const Value& value, const Dims& dims) { return broadcast(value, dims); }

Value Builder::unary(Op op, const Value& x) { return emit(op_node(op), {x}); }

Value Builder::binary(Op op, const Value& x, const Value& y) {
  const Dims dims = broadcast_dims(x.dims(), y.dims());
  return emit(op_node(op), {broadcast(x, dims), broadcast(y, dims)});
}

Value Builder::compare(Comparison comparison, const Value& x, const Value& y) {
  const Dims dims = broadcast_dims(x.dims(), y.dims());
  Node node = op_node(Op::kCompare);
  node.attrs.comparison = comparison;
  return emit(std::move(node), {broadcast(x, dims), broadcast(y, dims)});
}

Value Builder::select(const Value& condition, const Value& if_true, const Value& if_false) {
  const Dims dims = broadcast_dims(broadcast_dims(if_true.dims(), if_false.dims()), condition.dims());
  return emit(op_node(Op::kSelect),
              {broadcast(condition, dims), broadcast(if_true, dims), broadcast(if_false, dims)});
}

Value Builder::convert(const Value& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Node node = op_node(Op::kConvert);
  node.shape = Shape::array(dtype, x.dims());
  return emit(std::move(node), {x});
}

Value Builder::bitcast(const Value& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Node node = op_node(Op::kBitcastConvert);
  node.shape = Shape::array(dtype, x.dims());
  return emit(std::move(node), {x});
}

Value Builder::reshape(const Value& x, const Dims& dims) {
  if (x.dims() == dims) return x;
  if (!x.known() && x.scope == scope().id) {  // of a reshape: of what that reshapes
    const Computation& nodes = scope().nodes.peek();
    if (const Node& from = nodes.node(x.node); from.op == Op::kReshape) {
      Value before = x;
      before.node = from.operands[0];
      before.shape = nodes.node(before.node).shape;
      return reshape(before, dims);
    }
  }
  Node node = op_node(Op::kReshape);
  node.shape = Shape::array(x.dtype(), dims);
  return emit(std::move(node), {x});
}

Value Builder::broadcast(const Value& x, const Dims& dims) {
  if (x.dims() == dims) return x;
  if (x.dims().size() > dims.size() || broadcast_dims(x.dims(), dims) != dims)
    throw Error(
        fmt::format("shape [{}] does not broadcast to [{}]", fmt::join(x.dims(), ","), fmt::join(dims, ",")));
  // HLO's broadcast repeats no dimension: those of extent 1 that grow are dropped first.
  Dims kept, where;
  const std::size_t offset = dims.size() - x.dims().size();
  bool grows = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i >= offset && x.dims()[i - offset] == dims[i]) {
      kept.push_back(dims[i]);
      where.push_back(static_cast<std::int64_t>(i));
    } else if (dims[i] != 1) {
      grows = true;
    }
  }
  if (!grows) return reshape(x, dims);
  return broadcast_in(reshape(x, kept), dims, where);
}

Value Builder::broadcast_in(const Value& x, const Dims& dims, const Dims& where) {
  Node node = op_node(Op::kBroadcast);
  node.shape = Shape::array(x.dtype(), dims);
  node.attrs.dimensions = where;
  return emit(std::move(node), {x});
}

Value Builder::transpose(const Value& x, const Dims& permutation) {
  if (std::ranges::is_sorted(permutation) && std::ssize(permutation) == x.rank()) return x;
  Node node = op_node(Op::kTranspose);
  node.attrs.dimensions = permutation;
  return emit(std::move(node), {x});
}

Value Builder::slice(const Value& x, const std::vector<SliceSpec>& ranges) {
  if (ranges == whole(x.dims())) return x;
  Node node = op_node(Op::kSlice);
  node.attrs.slice = ranges;
  return emit(std::move(node), {x});
}

Value Builder::slice(const Value& x, std::int64_t dim, std::int64_t start, std::int64_t limit,
                     std::int64_t stride) {
  std::vector<SliceSpec> ranges = whole(x.dims());
  ranges.at(static_cast<std::size_t>(dim)) = {start, limit, stride};
  return slice(x, ranges);
}

Value Builder::reverse(const Value& x, const Dims& dims) {
  if (dims.empty()) return x;
  Node node = op_node(Op::kReverse);
  node.attrs.dimensions = dims;
  return emit(std::move(node), {x});
}

Value Builder::pad(const Value& x, const Value& padding_value, const std::vector<PadSpec>& padding) {
  if (std::ranges::all_of(padding, [](const PadSpec& p) { return p == PadSpec{}; })) return x;
  Node node = op_node(Op::kPad);
  node.attrs.padding = padding;
  return emit(std::move(node), {x, padding_value});
}

Value Builder::concatenate(const std::vector<Value>& parts, std::int64_t dim) {
  if (parts.size() == 1) return parts[0];
  Node node = op_node(Op::kConcatenate);
  node.attrs.dimensions = {dim};
  return emit(std::move(node), parts);
}

Value Builder::iota(DType dtype, const Dims& dims, std::int64_t dim) {
  Node node = op_node(Op::kIota);
  node.shape = Shape::array(dtype, dims);
  node.attrs.dimensions = {dim};
  return emit(std::move(node), {});
}

Value Builder::gather(const Value& x, const Value& indices, const GatherDims& dims) {
  Node node = op_node(Op::kGather);
  node.attrs.gather = dims;
  return emit(std::move(node), {x, indices});
}

Value Builder::scatter(const Value& x, const Value& indices, const Value& updates, const ScatterSpec& spec,
                       std::optional<Op> combine) {
  Node node = op_node(Op::kScatter);
  node.attrs.other = {{"update_window_dims", list(spec.update_window_dims)},
                      {"inserted_window_dims", list(spec.inserted_window_dims)},
                      {"scatter_dims_to_operand_dims", list(spec.scatter_dims_to_operand_dims)},
                      {"index_vector_dim", fmt::to_string(spec.index_vector_dim)}};
  const Shape one = Shape::array(x.dtype(), {});
  node.attrs.computations = {combine ? reducer(*combine, x.dtype())
                                     : computation("replace", {one, one}, [](const std::vector<Value>& p) {
                                         return std::vector{p[1]};
                                       })};
  return emit(std::move(node), {x, indices, updates});
}

Value Builder::dynamic_slice(const Value& x, const std::vector<Value>& starts, const Dims& sizes) {
  Node node = op_node(Op::kDynamicSlice);
  node.attrs.slice_sizes = sizes;
  std::vector<Value> operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return emit(std::move(node), operands);
}

Value Builder::dynamic_update_slice(const Value& x, const Value& update, const std::vector<Value>& starts) {
  std::vector<Value> operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return emit(op_node(Op::kDynamicUpdateSlice), operands);
}

Value Builder::reduce(Op op, const Value& x, const Dims& dims, bool keep_dims) {
  Value result = x;
  if (!dims.empty()) {
    Node node = op_node(Op::kReduce);
    node.attrs.dimensions = dims;
    std::ranges::sort(node.attrs.dimensions);
    node.attrs.computations = {reducer(op, x.dtype())};
    result = emit(std::move(node), {x, identity(op, x.dtype())});
  }
  if (!keep_dims) return result;
  Dims kept = x.dims();
  for (const std::int64_t dim : dims) kept.at(static_cast<std::size_t>(dim)) = 1;
  return reshape(result, kept);
}

Value Builder::reduce_window(Op op, const Value& x, const Value& init, const std::vector<WindowDim>& window) {
  Node node = op_node(Op::kReduceWindow);
  node.attrs.other = {{"window", window_text(window)}};
  node.attrs.computations = {reducer(op, x.dtype())};
  return emit(std::move(node), {x, init});
}

Value Builder::dot(const Value& x, const Value& y, const DotDims& dims, std::optional<DType> result) {
  Node node = op_node(Op::kDot);
  node.attrs.dot = dims;
  // Inference takes the declared element type where the dimensions are right, so those come first.
  const Shape* const shapes[] = {&x.shape, &y.shape};
  node.shape = Shape::array(result.value_or(x.dtype()), infer_shape(graph_, node, shapes).dims);
  return emit(std::move(node), {x, y});
}

Value Builder::convolution(const Value& x, const Value& kernel, const ConvolutionSpec& spec,
                           std::optional<DType> result) {
  Node node = op_node(Op::kConvolution);
  node.attrs.other = {{"window", window_text(spec.window)}, {"dim_labels", spec.labels}};
  if (spec.groups != 1) node.attrs.other.emplace_back("feature_group_count", fmt::to_string(spec.groups));
  const Shape* const shapes[] = {&x.shape, &kernel.shape};
  node.shape = Shape::array(result.value_or(x.dtype()), infer_shape(graph_, node, shapes).dims);
  return emit(std::move(node), {x, kernel});
}

std::vector<Value> Builder::sort(const Value& keys, const std::vector<Value>& others, std::int64_t dim,
                                 bool descending) {
  std::vector<Value> operands{keys};
  operands.insert(operands.end(), others.begin(), others.end());
  std::vector<Shape> pairs;
  for (const Value& operand : operands) pairs.insert(pairs.end(), 2, Shape::array(operand.dtype(), {}));
  Node node = op_node(Op::kSort);
  node.attrs.dimensions = {dim};
  node.attrs.other = {{"is_stable", "true"}};
  node.attrs.computations = {computation("comes_before", pairs, [&](const std::vector<Value>& p) {
    return std::vector{compare(descending ? Comparison::kGt : Comparison::kLt, p[0], p[1])};
  })};
  return emit_tuple(std::move(node), operands);
}

}  // namespace stitchwork::onnx_reader
