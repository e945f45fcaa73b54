// Pools.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/onnx/common.h"
#include "core/onnx/convolution.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

struct Pool {
  Value x;
  std::vector<WindowDim> window;  ///< of all dimensions
  Dims pads;                      ///< that the attributes give, without what ceil_mode adds at the end
};

Pool pool(NodeContext& c) {
  Pool p{c.in(0), std::vector<WindowDim>(2), {}};
  c.check(p.x.rank() >= 3, fmt::format("{} has no spatial dimensions", to_text(p.x.shape)));
  c.check(c.given("kernel_shape"), "attribute kernel_shape is missing");
  const Dims spatial(p.x.dims().begin() + 2, p.x.dims().end());
  for (const WindowDim& w : spatial_window(c, spatial, {})) {
    p.pads.push_back(w.pad_low);
    p.pads.push_back(w.pad_high);
  }
  const auto window = spatial_window(c, spatial, {}, c.flag("ceil_mode", false));
  p.window.insert(p.window.end(), window.begin(), window.end());
  return p;
}

/// The largest element of every window and its place in the whole input; the first of equal ones.
Values max_with_places(NodeContext& c, const Pool& p, bool column_major) {
  Builder& b = c.b;
  const Value& x = p.x;
  // Row-major strides; column-major: the spatial ones from the first dimension on.
  Dims strides(x.dims().size(), 1);
  for (std::int64_t d = x.rank() - 1; d-- > 0;)
    strides[static_cast<std::size_t>(d)] = strides[static_cast<std::size_t>(d) + 1] * x.dim(d + 1);
  if (column_major) {
    std::int64_t stride = 1;
    for (std::size_t d = 2; d < strides.size(); ++d) stride *= (strides[d] = stride, x.dims()[d]);
  }
  Value places = b.full(Builder::integer(0), x.dims());
  for (std::int64_t d = 0; d < x.rank(); ++d)
    places = b.add(places, b.mul(b.iota(DType::kS64, x.dims(), d),
                                 Builder::integer(strides[static_cast<std::size_t>(d)])));
  const Shape element = Shape::array(x.dtype(), {}), place = Shape::array(DType::kS64, {});
  Node node;
  node.op = Op::kReduceWindow;
  node.attrs.other = {{"window", window_text(p.window)}};
  node.attrs.computations = {b.computation("largest", {element, place, element, place}, [&](const Values& v) {
    const Value equal =
        b.binary(Op::kAnd, b.compare(Comparison::kEq, v[0], v[2]), b.compare(Comparison::kLt, v[1], v[3]));
    const Value first = b.binary(Op::kOr, b.compare(Comparison::kGt, v[0], v[2]), equal);
    return Values{b.select(first, v[0], v[2]), b.select(first, v[1], v[3])};
  })};
  return b.emit_tuple(std::move(node),
                      {x, places, Builder::lowest(x.dtype()), Builder::highest(DType::kS64)});
}

Values lower_max_pool(NodeContext& c) {
  const Pool p = pool(c);
  const bool column_major = c.flag("storage_order", false);
  if (c.wants(1)) return max_with_places(c, p, column_major);
  return {c.b.reduce_window(Op::kMaximum, p.x, Builder::lowest(p.x.dtype()), p.window)};
}

/// How many elements every window covers: those of the array, or of the array and its padding.
Value covered(NodeContext& c, const Pool& p, const Dims& result, bool with_padding) {
  Value counts = Builder::scalar(p.x.dtype(), 1);
  for (std::size_t d = 2; d < result.size(); ++d) {
    const WindowDim& w = p.window[d];
    const std::int64_t low = with_padding ? -p.pads[2 * (d - 2)] : 0;
    const std::int64_t high = p.x.dims()[d] + (with_padding ? p.pads[2 * (d - 2) + 1] : 0);
    c.check_range("an extent of the result", {result[d]}, 0, std::int64_t{1} << 24);
    // Taps with low <= start + tap * dilation < high.
    Literal along = Literal::zeros(Shape::array(p.x.dtype(), {result[d]}));
    for (std::int64_t o = 0; o < result[d]; ++o) {
      const std::int64_t start = o * w.stride - w.pad_low;
      const auto taps_before = [&](std::int64_t limit) {  // taps at places < limit
        return std::clamp<std::int64_t>((limit - start + w.window_dilation - 1) / w.window_dilation, 0,
                                        w.size);
      };
      along.set_int(o, (high > start ? taps_before(high) : 0) - (low > start ? taps_before(low) : 0));
    }
    Dims dims(result.size(), 1);
    dims[d] = result[d];
    counts = c.b.mul(counts, c.b.reshape(Builder::known(std::move(along)), dims));
  }
  return counts;
}

Values lower_average_pool(NodeContext& c) {
  const Pool p = pool(c);
  const bool with_padding = c.flag("count_include_pad", false);
  const Value sum = c.b.reduce_window(Op::kAdd, p.x, zero(p.x), p.window);
  c.check(*std::ranges::max_element(sum.dims()) <= (std::int64_t{1} << 20), "the result is too large");
  return {c.b.div(sum, covered(c, p, sum.dims(), with_padding))};
}

/// (sum |x|^p)^(1/p)
template <typename Sum>
Value lp(Builder& b, const Value& x, std::int64_t p, Sum&& sum) {
  const Value magnitude = b.unary(Op::kAbs, x);
  if (p == 1) return sum(magnitude);
  if (p == 2) return b.unary(Op::kSqrt, sum(b.mul(x, x)));
  const auto power = [&](const Value& v, double e) {
    return b.binary(Op::kPower, v, Builder::scalar(x.dtype(), e));
  };
  return power(sum(power(magnitude, static_cast<double>(p))), 1 / static_cast<double>(p));
}

Values lower_lp_pool(NodeContext& c) {
  const Pool pooled = pool(c);
  const std::int64_t p = c.integer("p", 2);
  c.check(p >= 1, "p must be positive");
  return {lp(c.b, pooled.x, p,
             [&](const Value& v) { return c.b.reduce_window(Op::kAdd, v, zero(v), pooled.window); })};
}

Dims all_spatial(NodeContext& c) {
  c.check(c.in(0).rank() >= 2, "the input must have rank 2 or more");
  return counted(2, c.in(0).rank() - 2);
}

Values lower_global_average_pool(NodeContext& c) { return {mean(c.b, c.in(0), all_spatial(c))}; }
Values lower_global_max_pool(NodeContext& c) {
  return {c.b.reduce(Op::kMaximum, c.in(0), all_spatial(c), true)};
}
Values lower_global_lp_pool(NodeContext& c) {
  const std::int64_t p = c.integer("p", 2);
  c.check(p >= 1, "p must be positive");
  return {lp(c.b, c.in(0), p, [&](const Value& v) { return c.b.reduce(Op::kAdd, v, all_spatial(c), true); })};
}

constexpr std::array kPoolingRows = {
    OperatorRow{"AveragePool", 7, lower_average_pool},
    OperatorRow{"GlobalAveragePool", 7, lower_global_average_pool},
    OperatorRow{"GlobalLpPool", 7, lower_global_lp_pool},
    OperatorRow{"GlobalMaxPool", 7, lower_global_max_pool},
    OperatorRow{"LpPool", 7, lower_lp_pool},
    OperatorRow{"MaxPool", 7, lower_max_pool},
};

}  // namespace

std::span<const OperatorRow> pooling_operators() { return kPoolingRows; }

}  // namespace stitchwork::onnx_reader
