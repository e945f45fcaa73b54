// Activations and the soft maxima.
#include <array>
#include <cmath>
#include <numbers>

#include "core/onnx/activations.h"
#include "core/onnx/common.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

Value negative(NodeContext& c, const Value& x) { return c.b.compare(Comparison::kLt, x, 0); }

Values lower_relu(NodeContext& c) { return {relu(c.b, c.in(0))}; }
Values lower_sigmoid(NodeContext& c) { return {c.b.unary(Op::kLogistic, c.in(0))}; }
Values lower_softplus(NodeContext& c) { return {softplus(c.b, c.in(0))}; }
Values lower_mish(NodeContext& c) { return {c.b.mul(c.in(0), c.b.unary(Op::kTanh, softplus(c.b, c.in(0))))}; }
Values lower_softsign(NodeContext& c) { return {softsign(c.b, c.in(0))}; }

Values lower_leaky_relu(NodeContext& c) { return {leaky_relu(c.b, c.in(0), c.number("alpha", 0.01F))}; }

Values lower_prelu(NodeContext& c) {
  const Value &x = c.in(0), &slope = c.in(1);
  return {c.b.select(negative(c, x), c.b.mul(x, c.b.broadcast(slope, x.dims())), x)};
}

Values lower_elu(NodeContext& c) { return {elu(c.b, c.in(0), c.number("alpha", 1))}; }

Values lower_selu(NodeContext& c) {
  const Value& x = c.in(0);
  const double alpha = c.number("alpha", 1.67326319217681884765625),
               gamma = c.number("gamma", 1.05070102214813232421875);
  const Value below = c.b.mul(c.b.unary(Op::kExpm1, x), alpha);
  return {c.b.mul(c.b.select(c.b.compare(Comparison::kLe, x, 0), below, x), gamma)};
}

Values lower_celu(NodeContext& c) {
  const Value& x = c.in(0);
  const double alpha = c.number("alpha", 1);
  const Value below = c.b.mul(c.b.unary(Op::kExpm1, c.b.div(x, alpha)), alpha);
  return {c.b.add(c.b.max(x, 0), c.b.min(below, 0))};
}

Values lower_hard_sigmoid(NodeContext& c) {
  return {hard_sigmoid(c.b, c.in(0), c.number("alpha", 0.2F), c.number("beta", 0.5))};
}

Values lower_hard_swish(NodeContext& c) {
  return {c.b.mul(c.in(0), hard_sigmoid(c.b, c.in(0), 1.0 / 6, 0.5))};
}

Values lower_thresholded_relu(NodeContext& c) {
  const Value& x = c.in(0);
  return {c.b.select(c.b.compare(Comparison::kGt, x, c.number("alpha", 1)), x, zero(x))};
}

Values lower_shrink(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const double lambda = c.number("lambd", 0.5), bias = c.number("bias", 0);
  const Value above = b.select(b.compare(Comparison::kGt, x, lambda), b.sub(x, bias), zero(x));
  return {b.select(b.compare(Comparison::kLt, x, -lambda), b.add(x, bias), above)};
}

Value gelu(Builder& b, const Value& x, bool approximate) {
  Value cdf = x;
  if (!approximate) {
    cdf = b.unary(Op::kErf, b.mul(x, std::numbers::sqrt2 / 2));
  } else {
    const Value cubic = b.add(x, b.mul(b.mul(b.mul(x, x), x), 0.044715));
    cdf = b.unary(Op::kTanh, b.mul(cubic, std::sqrt(2 / std::numbers::pi)));
  }
  return b.mul(b.mul(x, b.add(cdf, 1)), 0.5);
}

Values lower_gelu(NodeContext& c) {
  const std::string approximate = c.text("approximate", "none");
  c.check(approximate == "none" || approximate == "tanh",
          fmt::format("approximate is '{}', none or tanh is needed", approximate));
  return {gelu(c.b, c.in(0), approximate == "tanh")};
}

// ONNX Runtime's own (its docs/ContribOperators.md), which its optimiser writes.
Values lower_contrib_gelu(NodeContext& c) { return {gelu(c.b, c.in(0), false)}; }
Values lower_bias_gelu(NodeContext& c) { return {gelu(c.b, c.b.add(c.in(0), c.in(1)), false)}; }
Values lower_fast_gelu(NodeContext& c) {
  return {gelu(c.b, c.has(1) ? c.b.add(c.in(0), c.in(1)) : c.in(0), true)};
}
Values lower_quick_gelu(NodeContext& c) { return {swish(c.b, c.in(0), c.number("alpha", 1.702F))}; }

Values lower_swish(NodeContext& c) { return {swish(c.b, c.in(0), c.number("alpha", 1))}; }

Values lower_swiglu(NodeContext& c) {
  c.check(c.in(0).shape == c.in(1).shape, "the inputs differ in shape");
  return {c.b.mul(swish(c.b, c.in(0), c.number("alpha", 1)), c.in(1))};
}

/// The dimensions a soft maximum runs over: one, and before operator set 13 all from `axis` on.
Dims soft_dims(NodeContext& c, const Value& x) {
  const std::int64_t axis = c.integer("axis", c.version < 13 ? 1 : -1);
  if (c.version >= 13) return {c.axis(axis, x.rank())};
  const std::int64_t first = axis == x.rank() ? axis : c.axis(axis, x.rank());
  Dims dims;
  for (std::int64_t d = first; d < x.rank(); ++d) dims.push_back(d);
  return dims;
}

Values lower_softmax(NodeContext& c) { return {softmax(c.b, c.in(0), soft_dims(c, c.in(0)))}; }

Values lower_log_softmax(NodeContext& c) {
  const Value& x = c.in(0);
  return {log_softmax(c.b, x, soft_dims(c, x))};
}

/// 1 at the first of the largest elements, 0 elsewhere.
Values lower_hardmax(NodeContext& c) {
  Builder& b = c.b;
  const Value& whole = c.in(0);
  const Dims dims = soft_dims(c, whole);
  if (dims.empty()) return {b.broadcast(Builder::scalar_int(whole.dtype(), 1), whole.dims())};
  // Several dimensions are one: they are the last ones.
  Dims flat(whole.dims().begin(), whole.dims().begin() + dims.front());
  std::int64_t extent = 1;
  for (const std::int64_t d : dims) extent *= whole.dim(d);
  flat.push_back(extent);
  flat.insert(flat.end(), whole.dims().begin() + dims.back() + 1, whole.dims().end());
  const Value x = b.reshape(whole, flat);
  const Dims along{dims.front()};
  const Value place = b.iota(DType::kS32, flat, dims.front());
  const Value largest = b.compare(Comparison::kEq, x, b.reduce(Op::kMaximum, x, along, true));
  const Value candidates = b.select(largest, place, b.broadcast(Builder::highest(DType::kS32), flat));
  const Value first = b.reduce(Op::kMinimum, candidates, along, true);
  return {b.reshape(b.convert(b.compare(Comparison::kEq, place, first), x.dtype()), whole.dims())};
}

constexpr std::array kActivationRows = {
    OperatorRow{"Celu", 12, lower_celu},
    OperatorRow{"Elu", 7, lower_elu},
    OperatorRow{"Gelu", 20, lower_gelu},
    OperatorRow{"HardSigmoid", 7, lower_hard_sigmoid},
    OperatorRow{"HardSwish", 14, lower_hard_swish},
    OperatorRow{"Hardmax", 7, lower_hardmax},
    OperatorRow{"LeakyRelu", 7, lower_leaky_relu},
    OperatorRow{"LogSoftmax", 7, lower_log_softmax},
    OperatorRow{"Mish", 18, lower_mish},
    OperatorRow{"PRelu", 7, lower_prelu},
    OperatorRow{"Relu", 7, lower_relu},
    OperatorRow{"Selu", 7, lower_selu},
    OperatorRow{"Shrink", 9, lower_shrink},
    OperatorRow{"Sigmoid", 7, lower_sigmoid},
    OperatorRow{"Softmax", 7, lower_softmax},
    OperatorRow{"Softplus", 7, lower_softplus},
    OperatorRow{"Softsign", 7, lower_softsign},
    OperatorRow{"SwiGLU", 28, lower_swiglu},
    OperatorRow{"Swish", 24, lower_swish},
    OperatorRow{"ThresholdedRelu", 10, lower_thresholded_relu},
    OperatorRow{"BiasGelu", 1, lower_bias_gelu, kContrib},
    OperatorRow{"FastGelu", 1, lower_fast_gelu, kContrib},
    OperatorRow{"Gelu", 1, lower_contrib_gelu, kContrib},
    OperatorRow{"QuickGelu", 1, lower_quick_gelu, kContrib},
};

}  // namespace

std::span<const OperatorRow> activation_operators() { return kActivationRows; }

}  // namespace stitchwork::onnx_reader
