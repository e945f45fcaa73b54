// Losses over class probabilities.
#include <array>

#include "core/onnx/activations.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

/// The negative log likelihood loss of `log_probability` [N, C, d...] and the targets [N, d...] of input 1,
/// weighted by input 2. A target's class is found by comparing with all of them, not by a gather: that fuses
/// with the soft maximum before it and defines what an ignored target out of range gives.
Value loss(NodeContext& c, const Value& log_probability) {
  Builder& b = c.b;
  const Value& x = log_probability;
  const Value& target = c.in(1);
  c.check(x.rank() >= 2, fmt::format("the input is {}, rank 2 or more is needed", to_text(x.shape)));
  Dims samples = x.dims();
  samples.erase(samples.begin() + 1);
  c.check(target.dims() == samples, fmt::format("the target is {}, its dimensions must be [{}]",
                                                to_text(target.shape), fmt::join(samples, ",")));
  c.check(!is_floating(target.dtype()), "the target's elements must be integers");
  const std::string reduction = c.text("reduction", "mean");
  c.check(reduction == "mean" || reduction == "sum" || reduction == "none",
          fmt::format("reduction is '{}', mean, sum or none is needed", reduction));

  Dims one_class = x.dims();
  one_class[1] = 1;
  const Value aligned = b.reshape(target, one_class);
  Value hit = b.compare(Comparison::kEq, b.iota(target.dtype(), x.dims(), 1), aligned);
  const bool ignores = c.given("ignore_index");
  if (ignores) {
    const std::int64_t index = c.any_integer("ignore_index", 0), room = std::int64_t{1} << 31;
    if (target.dtype() == DType::kS32) c.check_range("ignore_index", {index}, -room, room - 1);
    const Value ignored = Builder::scalar_int(target.dtype(), index);
    hit = b.binary(Op::kAnd, hit, b.compare(Comparison::kNe, aligned, ignored));
  }
  const auto at_target = [&](const Value& value) {
    return b.reduce(Op::kAdd, b.select(hit, value, Builder::scalar(x.dtype(), 0)), {1});
  };
  Value result = at_target(b.neg(x)), weight;
  if (c.has(2)) {
    c.check(c.in(2).dims() == Dims{x.dim(1)},
            fmt::format("the weights are {}, one a class is needed", to_text(c.in(2).shape)));
    weight = at_target(b.broadcast_in(c.in(2), x.dims(), {1}));
  } else if (ignores) {
    weight = at_target(Builder::scalar(x.dtype(), 1));
  }
  if (c.has(2)) result = b.mul(result, weight);
  if (reduction == "none") return result;
  Dims all;
  for (std::int64_t d = 0; d < result.rank(); ++d) all.push_back(d);
  const Value total = b.reduce(Op::kAdd, result, all);
  if (reduction == "sum") return total;
  if (weight.present()) return b.div(total, b.reduce(Op::kAdd, weight, all));
  return b.div(total, static_cast<double>(product(samples)));
}

Values lower_negative_log_likelihood(NodeContext& c) { return {loss(c, c.in(0))}; }

Values lower_softmax_cross_entropy(NodeContext& c) {
  c.check(c.in(0).rank() >= 2,
          fmt::format("the scores are {}, rank 2 or more is needed", to_text(c.in(0).shape)));
  const Value log_probability = log_softmax(c.b, c.in(0), {1});
  return {loss(c, log_probability), log_probability};
}

constexpr std::array kLossRows = {
    OperatorRow{"NegativeLogLikelihoodLoss", 12, lower_negative_log_likelihood},
    OperatorRow{"SoftmaxCrossEntropyLoss", 12, lower_softmax_cross_entropy},
};

}  // namespace

std::span<const OperatorRow> loss_operators() { return kLossRows; }

}  // namespace stitchwork::onnx_reader
