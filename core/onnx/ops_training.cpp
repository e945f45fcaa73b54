// Optimizers of ai.onnx.preview.training: one step of every tensor given.
#include <array>

#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

/// Inputs R, T, then `kinds` lists of as many tensors each; gives tensor i of a list.
class Tensors {
 public:
  Tensors(NodeContext& context, int kinds) : c(context) {
    c.check(c.inputs() > 2 && (c.inputs() - 2) % kinds == 0,
            fmt::format("{} inputs, 2 and a multiple of {} are needed", c.inputs(), kinds));
    count_ = (c.inputs() - 2) / kinds;
    for (const int i : {0, 1})
      c.check(product(c.in(i).dims()) == 1, fmt::format("input {} must have one element", i));
  }
  int count() const { return count_; }
  const Value& of(int kind, int i) const {
    const Value& value = c.in(2 + kind * count_ + i);
    c.check(value.shape == c.in(2 + i).shape,
            fmt::format("input {} differs in shape from tensor {}", 2 + kind * count_ + i, i));
    return value;
  }
  /// R (0) or T (1) as a scalar of tensor i's type.
  Value scalar(int input, int i) const { return c.b.convert(c.b.reshape(c.in(input), {}), of(0, i).dtype()); }

 private:
  NodeContext& c;
  int count_ = 0;
};

/// The gradient (list 1) with that of norm_coefficient / 2 * |x|^2.
Value regularized(NodeContext& c, const Tensors& tensors, int i, double norm_coefficient) {
  if (norm_coefficient == 0) return tensors.of(1, i);
  return c.b.add(c.b.mul(tensors.of(0, i), norm_coefficient), tensors.of(1, i));
}

/// new x of every tensor, then the new states, list after list.
Values flattened(const std::vector<Values>& lists) {
  Values all;
  for (const Values& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Values lower_adagrad(NodeContext& c) {
  Builder& b = c.b;
  const Tensors tensors(c, 3);  // x, gradient, squares
  const double decay = c.number("decay_factor", 0), epsilon = c.number("epsilon", 0),
               norm = c.number("norm_coefficient", 0);
  std::vector<Values> results(2);
  for (int i = 0; i < tensors.count(); ++i) {
    const Value rate = b.div(tensors.scalar(0, i), b.add(b.mul(tensors.scalar(1, i), decay), 1));
    const Value gradient = regularized(c, tensors, i, norm);
    const Value squares = b.add(tensors.of(2, i), b.mul(gradient, gradient));
    const Value step = b.div(b.mul(rate, gradient), b.add(b.unary(Op::kSqrt, squares), epsilon));
    results[0].push_back(b.sub(tensors.of(0, i), step));
    results[1].push_back(squares);
  }
  return flattened(results);
}

/// The rate is corrected for the bias of the moments from the first update on (T > 0).
Values lower_adam(NodeContext& c) {
  Builder& b = c.b;
  const Tensors tensors(c, 4);  // x, gradient, moment, squares
  const double alpha = c.number("alpha", 0.9F), beta = c.number("beta", 0.999F),
               epsilon = c.number("epsilon", 0), norm = c.number("norm_coefficient", 0),
               norm_post = c.number("norm_coefficient_post", 0);
  const auto blend = [&](const Value& before, const Value& now, double weight) {
    return b.add(b.mul(before, weight), b.mul(now, 1 - weight));
  };
  std::vector<Values> results(3);
  for (int i = 0; i < tensors.count(); ++i) {
    const Value rate = tensors.scalar(0, i), t = tensors.scalar(1, i);
    const auto left_after = [&](double factor) {  // 1 - factor^t
      const Value one = Builder::scalar(t.dtype(), 1);
      return b.sub(one, b.binary(Op::kPower, Builder::scalar(t.dtype(), factor), t));
    };
    const Value corrected = b.div(b.mul(rate, b.unary(Op::kSqrt, left_after(beta))), left_after(alpha));
    const Value used = b.select(b.compare(Comparison::kGt, t, 0), corrected, rate);
    const Value gradient = regularized(c, tensors, i, norm);
    const Value moment = blend(tensors.of(2, i), gradient, alpha);
    const Value squares = blend(tensors.of(3, i), b.mul(gradient, gradient), beta);
    const Value step = b.mul(used, b.div(moment, b.add(b.unary(Op::kSqrt, squares), epsilon)));
    const Value x = b.sub(tensors.of(0, i), step);
    results[0].push_back(norm_post == 0 ? x : b.mul(x, 1 - norm_post));
    results[1].push_back(moment);
    results[2].push_back(squares);
  }
  return flattened(results);
}

/// The gradient counts whole in the first update (T = 0).
Values lower_momentum(NodeContext& c) {
  Builder& b = c.b;
  const Tensors tensors(c, 3);  // x, gradient, momentum
  for (const char* name : {"alpha", "beta", "norm_coefficient"})
    c.check(c.given(name), fmt::format("attribute {} is missing", name));
  const double alpha = c.number("alpha", 0), beta = c.number("beta", 0),
               norm = c.number("norm_coefficient", 0);
  const std::string mode = c.text("mode", "");
  c.check(mode == "standard" || mode == "nesterov",
          fmt::format("mode is '{}', standard or nesterov is needed", mode));
  std::vector<Values> results(2);
  for (int i = 0; i < tensors.count(); ++i) {
    const Value rate = tensors.scalar(0, i), t = tensors.scalar(1, i);
    const Value weight = b.select(b.compare(Comparison::kGt, t, 0), Builder::scalar(t.dtype(), beta),
                                  Builder::scalar(t.dtype(), 1));
    const Value gradient = regularized(c, tensors, i, norm);
    const Value momentum = b.add(b.mul(tensors.of(2, i), alpha), b.mul(weight, gradient));
    const Value direction = mode == "standard" ? momentum : b.add(gradient, b.mul(momentum, alpha));
    results[0].push_back(b.sub(tensors.of(0, i), b.mul(rate, direction)));
    results[1].push_back(momentum);
  }
  return flattened(results);
}

constexpr const char* kTrainingDomain = "ai.onnx.preview.training";
constexpr std::array kTrainingRows = {
    OperatorRow{"Adagrad", 1, lower_adagrad, kTrainingDomain},
    OperatorRow{"Adam", 1, lower_adam, kTrainingDomain},
    OperatorRow{"Momentum", 1, lower_momentum, kTrainingDomain},
};

}  // namespace

std::span<const OperatorRow> training_operators() { return kTrainingRows; }

}  // namespace stitchwork::onnx_reader
