// Reductions along axes, arg-extrema, running sums and products.
#include <array>

#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

struct Reduction {
  Value x;
  Dims dims;
  bool keep = true;
};

/// Axes are an attribute, later (ReduceSum in operator set 13, the others in 18) an input; none means all, or
/// none at all with noop_with_empty_axes.
Reduction reduction(NodeContext& c, int axes_as_input = 18) {
  Reduction r{c.in(0), {}, c.flag("keepdims", true)};
  Dims axes;
  if (c.version < axes_as_input) {
    axes = c.integers("axes");
  } else if (c.has(1)) {
    axes = c.known_integers(1);
  }
  const bool nothing = c.version >= axes_as_input && c.flag("noop_with_empty_axes", false);
  if (axes.empty() && !nothing)
    for (int d = 0; d < r.x.rank(); ++d) axes.push_back(d);
  r.dims = c.axes(axes, r.x.rank());
  return r;
}

Value sum(Builder& b, const Reduction& r, const Value& x) { return b.reduce(Op::kAdd, x, r.dims, r.keep); }

/// f(x) for a function of real numbers; integers are taken to double precision and back.
template <typename F>
Value in_reals(Builder& b, const Value& x, F&& f) {
  if (is_floating(x.dtype())) return f(x);
  return b.convert(f(b.convert(x, DType::kF64)), x.dtype());
}

Values lower_sum(NodeContext& c) {
  const Reduction r = reduction(c, 13);
  return {sum(c.b, r, r.x)};
}

Values lower_reduce_mean(NodeContext& c) {
  const Reduction r = reduction(c);
  double count = 1;
  for (const std::int64_t d : r.dims) count *= static_cast<double>(r.x.dim(d));
  return {c.b.div(sum(c.b, r, r.x), count)};
}

template <Op kOp, Op kOfBools>
Values lower_extremum(NodeContext& c) {
  const Reduction r = reduction(c);
  return {c.b.reduce(r.x.dtype() == DType::kPred ? kOfBools : kOp, r.x, r.dims, r.keep)};
}

Values lower_prod(NodeContext& c) {
  const Reduction r = reduction(c);
  return {c.b.reduce(Op::kMultiply, r.x, r.dims, r.keep)};
}

Values lower_l1(NodeContext& c) {
  const Reduction r = reduction(c);
  return {sum(c.b, r, c.b.unary(Op::kAbs, r.x))};
}

Values lower_l2(NodeContext& c) {
  const Reduction r = reduction(c);
  return {
      in_reals(c.b, r.x, [&](const Value& x) { return c.b.unary(Op::kSqrt, sum(c.b, r, c.b.mul(x, x))); })};
}

Values lower_sum_square(NodeContext& c) {
  const Reduction r = reduction(c);
  return {sum(c.b, r, c.b.mul(r.x, r.x))};
}

Values lower_log_sum(NodeContext& c) {
  const Reduction r = reduction(c);
  return {in_reals(c.b, r.x, [&](const Value& x) { return c.b.unary(Op::kLog, sum(c.b, r, x)); })};
}

/// Shifted by the largest element, where that is finite.
Values lower_log_sum_exp(NodeContext& c) {
  Builder& b = c.b;
  const Reduction r = reduction(c);
  return {in_reals(b, r.x, [&](const Value& x) {
    const Value largest = b.reduce(Op::kMaximum, x, r.dims, true);
    const Value shift = b.select(b.unary(Op::kIsFinite, largest), largest, Builder::scalar(x.dtype(), 0));
    const Value total = sum(b, r, b.unary(Op::kExp, b.sub(x, shift)));
    return b.add(b.unary(Op::kLog, total), b.reshape(shift, total.dims()));
  })};
}

/// A NaN counts as the largest and as the smallest, as in NumPy.
template <Op kOp>
Values lower_arg(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const std::int64_t axis = c.axis(c.integer("axis", 0), x.rank());
  const bool keep = c.flag("keepdims", true), last = c.flag("select_last_index", false);
  c.check(x.dim(axis) > 0, fmt::format("dimension {} is empty", axis));
  Value found = b.compare(Comparison::kEq, x, b.reduce(kOp, x, {axis}, true));
  if (is_floating(x.dtype())) found = b.binary(Op::kOr, found, b.compare(Comparison::kNe, x, x));
  const Value nowhere = Builder::integer(last ? -1 : x.dim(axis));
  const Value places = b.select(found, b.iota(DType::kS64, x.dims(), axis), nowhere);
  return {b.reduce(last ? Op::kMaximum : Op::kMinimum, places, {axis}, keep)};
}

/// A window over everything up to an element (from it on with reverse, itself left out with exclusive).
template <Op kOp>
Values lower_running(NodeContext& c) {
  const Value& x = c.in(0);
  const std::int64_t axis = c.axis(c.known_integer(1), x.rank()), extent = x.dim(axis);
  const bool exclusive = c.flag("exclusive", false), reverse = c.flag("reverse", false);
  if (product(x.dims()) == 0) return {x};
  std::vector<WindowDim> window(x.dims().size());
  WindowDim& along = window[static_cast<std::size_t>(axis)];
  along.size = extent;
  const std::int64_t near = exclusive ? -1 : 0, far = extent - 1 - near;
  along.pad_low = reverse ? near : far;
  along.pad_high = reverse ? far : near;
  const Value start = Builder::scalar_int(x.dtype(), kOp == Op::kAdd ? 0 : 1);
  return {c.b.reduce_window(kOp, x, start, window)};
}

constexpr std::array kReductionRows = {
    OperatorRow{"ArgMax", 7, lower_arg<Op::kMaximum>},
    OperatorRow{"ArgMin", 7, lower_arg<Op::kMinimum>},
    OperatorRow{"CumProd", 26, lower_running<Op::kMultiply>},
    OperatorRow{"CumSum", 11, lower_running<Op::kAdd>},
    OperatorRow{"ReduceL1", 7, lower_l1},
    OperatorRow{"ReduceL2", 7, lower_l2},
    OperatorRow{"ReduceLogSum", 7, lower_log_sum},
    OperatorRow{"ReduceLogSumExp", 7, lower_log_sum_exp},
    OperatorRow{"ReduceMax", 7, lower_extremum<Op::kMaximum, Op::kOr>},
    OperatorRow{"ReduceMean", 7, lower_reduce_mean},
    OperatorRow{"ReduceMin", 7, lower_extremum<Op::kMinimum, Op::kAnd>},
    OperatorRow{"ReduceProd", 7, lower_prod},
    OperatorRow{"ReduceSum", 7, lower_sum},
    OperatorRow{"ReduceSumSquare", 7, lower_sum_square},
};

}  // namespace

std::span<const OperatorRow> reduction_operators() { return kReductionRows; }

}  // namespace stitchwork::onnx_reader
