// Reductions. Simple reducers run in one pass over the input with float64 accumulators; others are applied to
// whole vectors of outputs, one reduced element after the other.
#include <algorithm>

#include "core/base/error.h"
#include "core/evaluate/accumulator.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/evaluate/scalar_ops.h"
#include "core/graph/dtype_dispatch.h"
#include "core/index/strided.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

bool is_reduced(const Node& node, std::size_t dim) {
  return std::ranges::count(node.attrs.dimensions, static_cast<std::int64_t>(dim)) != 0;
}

/// Array 0 is the output (stride 0 along reduced dims), array 1 the input.
StridedBox<2> reduction_box(const Node& node, const Dims& input, const Dims& output) {
  StridedBox<2> box{input, {Dims(input.size(), 0), strides_of(input)}, {}};
  const Dims output_strides = strides_of(output);
  for (std::size_t d = 0, next = 0; d < input.size(); ++d)
    if (!is_reduced(node, d)) box.strides[0][d] = output_strides[next++];
  return box;
}

/// Folds the input's elements into the totals of their outputs, in row-major order.
template <typename S, typename Total>
void accumulate(Op op, const StridedBox<2>& box, std::vector<Total>& totals,
                const typename S::Stored* input) {
  for_each_row(box, [&](const std::array<std::int64_t, 2>& offset, std::int64_t count,
                        const std::array<std::int64_t, 2>& stride) {
    const auto* from = input + offset[1];
    if (stride[0] == 0) {
      Total total = totals[static_cast<std::size_t>(offset[0])];
      for (std::int64_t i = 0; i < count; ++i) total.fold(op, S::widen(from[i * stride[1]]));
      totals[static_cast<std::size_t>(offset[0])] = total;
    } else {
      Total* to = totals.data() + offset[0];
      for (std::int64_t i = 0; i < count; ++i) to[i * stride[0]].fold(op, S::widen(from[i * stride[1]]));
    }
  });
}

Literal reduce_simply(Op op, const Node& node, const Literal& input, const Literal& init) {
  Literal result = Literal::zeros(node.shape);
  const StridedBox<2> box = reduction_box(node, input.shape.dims, result.shape.dims);
  with_storage(input.shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    using T = typename S::Value;
    const auto* data = input.data<typename S::Stored>();
    const Accumulator<T> start(S::widen(init.data<typename S::Stored>()[0]));
    std::vector<Accumulator<T>> totals(static_cast<std::size_t>(result.shape.elements_count()), start);
    // 0 and 1 are closed under or and and, which add and multiply mean for pred.
    const Op cell_op = !std::is_same_v<T, bool> ? op
                       : op == Op::kAdd         ? Op::kOr
                       : op == Op::kMultiply    ? Op::kAnd
                                                : op;
    accumulate<S>(cell_op, box, totals, data);
    auto* out = result.data<typename S::Stored>();
    for (std::size_t i = 0; i < totals.size(); ++i) out[i] = S::narrow(totals[i].value());
  });
  return result;
}

/// A sum accumulated as a thread would: in chains of kChain terms, in f32, or f64 for f64; the chains are
/// added exactly.
template <typename T>
class ChainedSum {
 public:
  static constexpr int kChain = 4096;
  explicit ChainedSum(T start) : total_(static_cast<double>(start)) {}
  void fold(Op op, T x) {
    chain_ = chain_ + static_cast<Chain>(x);
    if (++terms_ < kChain) return;
    total_.fold(op, static_cast<double>(chain_));
    chain_ = 0;
    terms_ = 0;
  }
  double value() const {
    Accumulator<double> total = total_;
    total.fold(Op::kAdd, static_cast<double>(chain_));
    return total.value();
  }

 private:
  using Chain = std::conditional_t<std::is_same_v<T, double>, double, float>;
  Accumulator<double> total_;
  Chain chain_ = 0;
  int terms_ = 0;
};

/// The same without rounding, or nearly.
template <typename T>
class ExactSum {
 public:
  explicit ExactSum(T start) : total_(static_cast<double>(start)) {}
  void fold(Op op, T x) { total_.fold(op, static_cast<double>(x)); }
  double value() const { return total_.value(); }

 private:
  Accumulator<double> total_;
};

/// The input with its reduced dims first: then step k of the reduction is a contiguous vector of outputs.
Literal reduced_dims_first(const Node& node, const Literal& input) {
  Dims order;
  for (const bool reduced : {true, false})
    for (std::size_t d = 0; d < input.shape.dims.size(); ++d)
      if (is_reduced(node, d) == reduced) order.push_back(static_cast<std::int64_t>(d));
  Node transpose;
  transpose.op = Op::kTranspose;
  transpose.shape = Shape::array(input.shape.dtype, {});
  for (std::int64_t d : order) transpose.shape.dims.push_back(input.shape.dims[static_cast<std::size_t>(d)]);
  transpose.attrs.dimensions = std::move(order);
  const Literal* operand = &input;
  return evaluate_layout(transpose, {&operand, 1});
}

Literal vector_of(const Literal& source, std::int64_t first, std::int64_t count) {
  Literal result = Literal::zeros(Shape::array(source.shape.dtype, {count}));
  const auto width = static_cast<std::ptrdiff_t>(byte_size(source.shape.dtype));
  std::copy_n(source.bytes.begin() + first * width, count * width, result.bytes.begin());
  return result;
}

Literal reduce_generally(const Graph& graph, const Node& node, Values operands) {
  const std::size_t inputs = operands.size() / 2;
  const Shape& out = node.shape.is_tuple ? node.shape.elements[0] : node.shape;
  const std::int64_t outputs = out.elements_count();
  std::vector<Literal> packed, totals;
  for (std::size_t i = 0; i < inputs; ++i) {
    packed.push_back(reduced_dims_first(node, *operands[i]));
    Node spread;
    spread.op = Op::kBroadcast;
    spread.shape = Shape::array(operands[inputs + i]->shape.dtype, {outputs});
    totals.push_back(evaluate_layout(spread, operands.subspan(inputs + i, 1)));
  }
  const std::int64_t elements = operands[0]->shape.elements_count();
  for (std::int64_t first = 0; first < elements && outputs > 0; first += outputs) {
    std::vector<Literal> step;
    for (const Literal& input : packed) step.push_back(vector_of(input, first, outputs));
    std::vector<const Literal*> arguments;
    for (const Literal& total : totals) arguments.push_back(&total);
    for (const Literal& value : step) arguments.push_back(&value);
    totals = apply_to_vectors(graph, applied(node), arguments, outputs);
  }
  for (Literal& total : totals) total.shape.dims = out.dims;
  if (!node.shape.is_tuple) return std::move(totals[0]);
  Literal result;
  result.shape = node.shape;
  result.elements = std::move(totals);
  return result;
}

}  // namespace

std::vector<const Literal*> reducer_operands(const Graph& graph, const Node& node, Values operands,
                                             std::vector<Literal>& converted) {
  const Computation& reducer = graph.computation(applied(node));
  const std::size_t inputs = operands.size() / 2;
  std::vector<const Literal*> result(operands.begin(), operands.end());
  converted.reserve(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    // Accumulators, which the initial values become, are the reducer's first parameters.
    const NodeId parameter = reducer.parameters[i < inputs ? inputs + i : i - inputs];
    const DType type = reducer.node(parameter).shape.dtype;
    if (operands[i]->shape.dtype == type) continue;
    Node convert;
    convert.op = Op::kConvert;
    convert.shape = Shape::array(type, operands[i]->shape.dims);
    converted.push_back(evaluate_elementwise(convert, convert.shape, operands.subspan(i, 1)));
    result[i] = &converted.back();
  }
  return result;
}

std::vector<double> chained_sum_errors(const Graph& graph, const Node& node, Values given) {
  std::vector<Literal> converted;
  const std::vector<const Literal*> operands = reducer_operands(graph, node, given, converted);
  std::vector<double> errors(static_cast<std::size_t>(node.shape.elements_count()));
  const StridedBox<2> box = reduction_box(node, operands[0]->shape.dims, node.shape.dims);
  with_storage(operands[0]->shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    using T = typename S::Value;
    if constexpr (std::is_floating_point_v<T>) {
      const auto* data = operands[0]->data<typename S::Stored>();
      const T start = S::widen(operands[1]->data<typename S::Stored>()[0]);
      std::vector<ChainedSum<T>> chained(errors.size(), ChainedSum<T>(start));
      std::vector<ExactSum<T>> exact(errors.size(), ExactSum<T>(start));
      accumulate<S>(Op::kAdd, box, chained, data);
      accumulate<S>(Op::kAdd, box, exact, data);
      for (std::size_t i = 0; i < errors.size(); ++i)
        errors[i] = std::abs(chained[i].value() - exact[i].value());
    }
  });
  return errors;
}

Literal evaluate_reduce(const Graph& graph, const Node& node, Values given) {
  std::vector<Literal> converted;
  const std::vector<const Literal*> operands = reducer_operands(graph, node, given, converted);
  const std::optional<Op> op = simple_reducer(graph, applied(node));
  if (op && operands.size() == 2 && operands[0]->shape.dtype == operands[1]->shape.dtype)
    return reduce_simply(*op, node, *operands[0], *operands[1]);
  return reduce_generally(graph, node, operands);
}

}  // namespace stitchwork
