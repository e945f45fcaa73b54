// Normalizations.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/onnx/common.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

struct Moments {
  Value mean, variance, centred;
};

Moments moments(Builder& b, const Value& x, const Dims& dims) {
  const Value average = mean(b, x, dims), centred = b.sub(x, average);
  return {average, mean(b, b.mul(centred, centred), dims), centred};
}

Value inverse_deviation(Builder& b, const Value& variance, double epsilon) {
  return b.unary(Op::kRsqrt, b.add(variance, epsilon));
}

/// [C] as a tensor that broadcasts along dimension 1 of rank `rank`.
Value per_channel(NodeContext& c, const Value& v, const Value& x) {
  c.check(x.rank() >= 2 && v.dims() == Dims{x.dim(1)},
          fmt::format("{} for the channels of {}", to_text(v.shape), to_text(x.shape)));
  Dims dims(x.dims().size(), 1);
  dims[1] = x.dim(1);
  return c.b.reshape(v, dims);
}

/// Types may differ from x's (operator set 15): all is computed in the widest, results get their own types.
Values lower_batch_normalization(NodeContext& c) {
  Builder& b = c.b;
  const Value& given = c.in(0);
  const double epsilon = c.number("epsilon", 1e-5F), momentum = c.number("momentum", 0.9F);
  if (c.version < 9) c.check(c.flag("spatial", true), "spatial=0 is not supported");
  const bool training = c.version >= 14 && c.flag("training_mode", false);
  c.check(training || c.outputs() == 1, "outputs of training need training_mode=1 (operator set 14)");
  DType type = given.dtype();
  for (int i = 1; i < 5; ++i)
    if (byte_size(c.in(i).dtype()) > byte_size(type)) type = c.in(i).dtype();
  const auto in = [&](int i) { return b.convert(c.in(i), type); };
  const Value x = in(0);
  const Value scale = per_channel(c, in(1), x), bias = per_channel(c, in(2), x);
  const Value old_mean = per_channel(c, in(3), x), old_variance = per_channel(c, in(4), x);
  const auto normalized = [&](const Value& average, const Value& variance) {
    const Value y = b.mul(b.mul(b.sub(x, average), inverse_deviation(b, variance, epsilon)), scale);
    return b.convert(b.add(y, bias), given.dtype());
  };
  if (!training) return {normalized(old_mean, old_variance)};
  Dims dims{0};
  for (int d = 2; d < x.rank(); ++d) dims.push_back(d);
  const Moments m = moments(b, x, dims);
  const auto running = [&](const Value& old, const Value& now, int i) {
    const Value v = b.add(b.mul(old, momentum), b.mul(now, 1 - momentum));
    return b.convert(b.reshape(v, {x.dim(1)}), c.in(i).dtype());
  };
  return {normalized(m.mean, m.variance), running(old_mean, m.mean, 3), running(old_variance, m.variance, 4)};
}

Values lower_instance_normalization(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const double epsilon = c.number("epsilon", 1e-5F);
  const Value scale = per_channel(c, c.in(1), x), bias = per_channel(c, c.in(2), x);
  const Moments m = moments(b, x, counted(2, x.rank() - 2));
  return {b.add(b.mul(b.mul(m.centred, inverse_deviation(b, m.variance, epsilon)), scale), bias)};
}

/// The type statistics are computed in: stash_type, by default float.
DType stash_type(NodeContext& c) { return c.dtype("stash_type", DType::kF32); }

/// scale and bias are per group in operator set 18, per channel from 21 on.
Values lower_group_normalization(NodeContext& c) {
  Builder& b = c.b;
  const Value& given = c.in(0);
  const std::int64_t groups = c.integer("num_groups");
  const double epsilon = c.number("epsilon", 1e-5F);
  c.check(given.rank() >= 2, "the input must have rank 2 or more");
  const std::int64_t channels = given.dim(1);
  c.check(groups >= 1 && groups <= std::max<std::int64_t>(channels, 1) && channels % groups == 0,
          fmt::format("{} channels in {} groups", channels, groups));
  const DType stash = c.version >= 21 ? stash_type(c) : given.dtype();
  const Value x = b.convert(given, stash);
  const Value grouped =
      b.reshape(x, {x.dim(0), groups,
                    channels == 0 ? 0 : product(x.dims()) / std::max<std::int64_t>(x.dim(0) * groups, 1)});
  const Moments m = moments(b, grouped, {2});
  const Value normal = b.mul(m.centred, inverse_deviation(b, m.variance, epsilon));
  if (c.version < 21) {
    for (const int i : {1, 2})
      c.check(c.in(i).dims() == Dims{groups}, fmt::format("input {} must have an element a group", i));
    const Value y = b.add(b.mul(normal, b.reshape(c.in(1), {groups, 1})), b.reshape(c.in(2), {groups, 1}));
    return {b.reshape(y, x.dims())};
  }
  const Value y = b.convert(b.reshape(normal, x.dims()), given.dtype());
  return {b.add(b.mul(y, per_channel(c, c.in(1), given)), per_channel(c, c.in(2), given))};
}

/// From `axis` on; statistics in stash_type, scale and bias in the input's type. Also gives mean and inverse
/// deviation.
Values lower_layer_normalization(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const std::int64_t axis = c.axis(c.integer("axis", -1), x.rank());
  const double epsilon = c.number("epsilon", 1e-5F);
  const Moments m = moments(b, b.convert(x, stash_type(c)), counted(axis, x.rank() - axis));
  const Value deviation = inverse_deviation(b, m.variance, epsilon);
  Value y = b.mul(b.convert(b.mul(m.centred, deviation), x.dtype()), c.in(1));
  if (c.has(2)) y = b.add(y, c.in(2));
  c.check(y.dims() == x.dims(), "scale or bias do not broadcast to the input");
  return {y, m.mean, deviation};
}

Values lower_rms_normalization(NodeContext& c) {
  Builder& b = c.b;
  const Value& given = c.in(0);
  const std::int64_t axis = c.axis(c.integer("axis", -1), given.rank());
  const double epsilon = c.number("epsilon", 1e-5F);
  const Value x = b.convert(given, stash_type(c));
  const Value squares = mean(b, b.mul(x, x), counted(axis, x.rank() - axis));
  const Value normal = b.convert(b.mul(x, inverse_deviation(b, squares, epsilon)), given.dtype());
  const Value y = b.mul(normal, c.in(1));
  c.check(y.dims() == given.dims(), "scale does not broadcast to the input");
  return {y};
}

/// ONNX Runtime's: of the sum of an input, one that skips layers, and a bias, which is given too. Statistics
/// are in f32.
Values lower_skip_normalization(NodeContext& c) {
  Builder& b = c.b;
  const bool centred = c.op() == "SkipLayerNormalization";
  const int beta = centred ? 3 : -1, bias = centred ? 4 : 3;
  const double epsilon = c.number("epsilon", centred ? 1e-12F : 1e-6F);
  Value sum = b.add(c.in(0), c.in(1));
  if (c.has(bias)) sum = b.add(sum, c.in(bias));
  const Value x = b.convert(sum, DType::kF32);
  const Dims last{x.rank() - 1};
  const Moments m = moments(b, x, last);
  const Value deviation = inverse_deviation(b, centred ? m.variance : mean(b, b.mul(x, x), last), epsilon);
  Value y = b.mul(b.convert(b.mul(centred ? m.centred : x, deviation), sum.dtype()), c.in(2));
  if (beta > 0 && c.has(beta)) y = b.add(y, c.in(beta));
  return {y, m.mean, deviation, sum};
}

Values lower_lp_normalization(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const std::int64_t axis = c.axis(c.integer("axis", -1), x.rank()), p = c.integer("p", 2);
  c.check(p == 1 || p == 2, fmt::format("p={}, 1 or 2 is needed", p));
  const Value terms = p == 1 ? b.unary(Op::kAbs, x) : b.mul(x, x);
  const Value sum = b.reduce(Op::kAdd, terms, {axis}, true);
  const Value norm = p == 1 ? sum : b.unary(Op::kSqrt, sum);
  const Value zero = Builder::scalar_int(x.dtype(), 0);
  return {b.select(b.compare(Comparison::kEq, norm, 0), zero, b.div(x, norm))};
}

/// (x - mean) / (deviation + 1e-9), as the operator's function body has it.
Values lower_mean_variance_normalization(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const Moments m = moments(b, x, c.axes(c.integers("axes", {0, 2, 3}), x.rank()));
  return {b.div(m.centred, b.add(b.unary(Op::kSqrt, m.variance), 1e-9))};
}

/// Squares are summed over `size` neighbouring channels.
Values lower_lrn(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const std::int64_t size = c.integer("size");
  const double alpha = c.number("alpha", 1e-4F), beta = c.number("beta", 0.75), bias = c.number("bias", 1);
  c.check_range("size", {size}, 1);
  c.check(x.rank() >= 2, "the input must have rank 2 or more");
  std::vector<WindowDim> window(x.dims().size());
  window[1].size = size;
  window[1].pad_low = (size - 1) / 2;
  window[1].pad_high = size - 1 - window[1].pad_low;
  const Value squares = b.reduce_window(Op::kAdd, b.mul(x, x), Builder::scalar_int(x.dtype(), 0), window);
  const Value base = b.add(b.mul(squares, alpha / static_cast<double>(size)), bias);
  return {b.div(x, b.binary(Op::kPower, base, Builder::scalar(x.dtype(), beta)))};
}

constexpr std::array kNormalizationRows = {
    OperatorRow{"BatchNormalization", 7, lower_batch_normalization},
    OperatorRow{"GroupNormalization", 18, lower_group_normalization},
    OperatorRow{"InstanceNormalization", 7, lower_instance_normalization},
    OperatorRow{"LRN", 7, lower_lrn},
    OperatorRow{"LayerNormalization", 17, lower_layer_normalization},
    OperatorRow{"LpNormalization", 7, lower_lp_normalization},
    OperatorRow{"MeanVarianceNormalization", 9, lower_mean_variance_normalization},
    OperatorRow{"RMSNormalization", 23, lower_rms_normalization},
    OperatorRow{"SkipLayerNormalization", 1, lower_skip_normalization, kContrib},
    OperatorRow{"SkipSimplifiedLayerNormalization", 1, lower_skip_normalization, kContrib},
};

}  // namespace

std::span<const OperatorRow> normalization_operators() { return kNormalizationRows; }

}  // namespace stitchwork::onnx_reader
