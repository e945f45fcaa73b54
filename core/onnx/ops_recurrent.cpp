// LSTM, GRU and RNN: the products of the inputs with their weights are one product for all steps, a step is
// the product of the state and element-wise ops.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/onnx/activations.h"
#include "core/onnx/common.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

/// One of the functions f, g, h, with the clip of its argument.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
  std::optional<double> clip;

  Value operator()(Builder& b, const Value& argument) const {
    const Value x = clip ? b.min(b.max(argument, -*clip), *clip) : argument;
    if (name == "Relu") return relu(b, x);
    if (name == "Tanh") return b.unary(Op::kTanh, x);
    if (name == "Sigmoid") return b.unary(Op::kLogistic, x);
    if (name == "Affine") return b.add(b.mul(x, alpha), beta);
    if (name == "LeakyRelu") return leaky_relu(b, x, alpha);
    if (name == "ThresholdedRelu")
      return b.select(b.compare(Comparison::kGe, x, alpha), x, Builder::scalar(x.dtype(), 0));
    if (name == "ScaledTanh") return b.mul(b.unary(Op::kTanh, b.mul(x, beta)), alpha);
    if (name == "HardSigmoid") return hard_sigmoid(b, x, alpha, beta);
    if (name == "Elu") return elu(b, x, alpha);
    return name == "Softsign" ? softsign(b, x) : softplus(b, x);
  }
};

/// What a function takes of activation_alpha and activation_beta, and the values of the ONNX operator of its
/// name where none are left (NaN: there is no such operator, they must be given).
struct ActivationRow {
  std::string_view name;
  bool takes_alpha = false, takes_beta = false;
  double alpha = 0, beta = 0;
};
constexpr std::array kActivations = {ActivationRow{"Relu"},
                                     ActivationRow{"Tanh"},
                                     ActivationRow{"Sigmoid"},
                                     ActivationRow{"Affine", true, true, NAN, NAN},
                                     ActivationRow{"LeakyRelu", true, false, 0.01F},
                                     ActivationRow{"ThresholdedRelu", true, false, 1},
                                     ActivationRow{"ScaledTanh", true, true, NAN, NAN},
                                     ActivationRow{"HardSigmoid", true, true, 0.2F, 0.5},
                                     ActivationRow{"Elu", true, false, 1},
                                     ActivationRow{"Softsign"},
                                     ActivationRow{"Softplus"}};

/// The functions of every direction in turn.
std::vector<Activation> activations(NodeContext& c, const std::vector<std::string>& defaults,
                                    std::int64_t directions) {
  std::vector<std::string> names;
  for (std::int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  const std::vector<std::string> given = c.texts("activations", names);
  c.check(given.size() == names.size(),
          fmt::format("{} activations are given, {} are needed", given.size(), names.size()));
  std::vector<double> alphas = c.numbers("activation_alpha"), betas = c.numbers("activation_beta");
  std::optional<double> clip;
  if (c.given("clip")) clip = c.number("clip", 0);
  c.check(!clip || *clip >= 0, "clip is negative");
  std::size_t next_alpha = 0, next_beta = 0;
  const auto take = [](bool takes, double otherwise, const std::vector<double>& values, std::size_t& next) {
    return takes && next < values.size() ? values[next++] : otherwise;
  };
  std::vector<Activation> functions;
  for (const std::string& name : given) {
    const auto* const row = std::ranges::find(kActivations, name, &ActivationRow::name);
    c.check(row != kActivations.end(), fmt::format("activation '{}' is not supported", name));
    functions.push_back({name, take(row->takes_alpha, row->alpha, alphas, next_alpha),
                         take(row->takes_beta, row->beta, betas, next_beta), clip});
    c.check(!std::isnan(functions.back().alpha) && !std::isnan(functions.back().beta),
            fmt::format("activation {} needs activation_alpha and activation_beta", name));
  }
  c.check(next_alpha == alphas.size() && next_beta == betas.size(),
          "activation_alpha and activation_beta have more values than the activations take");
  return functions;
}

/// The weights of one direction, and the inputs times theirs for all steps.
struct Direction {
  Value inputs;          ///< [steps, batch, gates * hidden], biases of the inputs added
  Value recurrent;       ///< R: [gates * hidden, hidden]
  Value recurrent_bias;  ///< Rb: [gates * hidden], absent if there is none
  Value hidden;          ///< the initial state: [batch, hidden]
  std::vector<Activation> functions;
  bool reverse = false;
};

/// What the three operators have in common.
class Recurrent {
 public:
  Recurrent(NodeContext& context, std::int64_t gates, const std::vector<std::string>& names)
      : c(context), b(context.b), gates_(gates) {
    const std::string direction = c.text("direction", "forward");
    c.check(direction == "forward" || direction == "reverse" || direction == "bidirectional",
            fmt::format("direction is '{}', forward, reverse or bidirectional is needed", direction));
    directions_ = direction == "bidirectional" ? 2 : 1;
    if (c.version >= 14) {
      const std::int64_t layout = c.integer("layout", 0);
      c.check(layout == 0 || layout == 1, fmt::format("layout is {}, 0 or 1 is needed", layout));
      batch_first_ = layout == 1;
    }
    c.check(c.in(0).rank() == 3, fmt::format("X is {}, rank 3 is needed", to_text(c.in(0).shape)));
    x_ = batch_first_ ? b.transpose(c.in(0), {1, 0, 2}) : c.in(0);
    steps_ = x_.dim(0);
    batch_ = x_.dim(1);
    c.check(c.in(2).rank() == 3, fmt::format("R is {}, rank 3 is needed", to_text(c.in(2).shape)));
    hidden_ = c.in(2).dim(2);
    c.check(c.integer("hidden_size", hidden_) == hidden_,
            fmt::format("hidden_size is {}, R has {}", c.integer("hidden_size", hidden_), hidden_));
    input(1, "W", {directions_, gates * hidden_, x_.dim(2)});
    input(2, "R", {directions_, gates * hidden_, hidden_});
    if (c.has(3)) input(3, "B", {directions_, 2 * gates * hidden_});
    check_lengths();
    const std::vector<Activation> functions = activations(c, names, directions_);
    for (std::int64_t d = 0; d < directions_; ++d) {
      const auto begin = functions.begin() + d * std::ssize(names);
      all_.push_back(read(d, {begin, begin + std::ssize(names)}));
      all_.back().reverse = direction == "reverse" || d == 1;
    }
  }

  /// Input i of every direction, with the shape it must have.
  const Value& input(int i, const char* name, const Dims& dims) const {
    const Value& value = c.in(i);
    c.check(value.dims() == dims && value.dtype() == x_.dtype(),
            fmt::format("{} is {}, {} is needed", name, to_text(value.shape),
                        to_text(Shape::array(x_.dtype(), dims))));
    return value;
  }

  /// initial_h, initial_c: [batch, hidden] of a direction, zeros if input i is absent.
  Value initial(int i, const char* name, std::int64_t direction) const {
    if (!c.has(i)) return b.full(Builder::scalar(x_.dtype(), 0), {batch_, hidden_});
    const Value& state = batch_first_ ? input(i, name, {batch_, directions_, hidden_})
                                      : input(i, name, {directions_, batch_, hidden_});
    return b.reshape(b.slice(state, batch_first_ ? 1 : 0, direction, direction + 1), {batch_, hidden_});
  }

  /// Part `gate` of the last dimension.
  Value gate(const Value& all, std::int64_t gate) const {
    return b.slice(all, all.rank() - 1, gate * hidden_, (gate + 1) * hidden_);
  }
  /// Rows of R times the state.
  Value times_recurrent(const Value& state, const Value& rows) const {
    return b.dot(state, rows, {{}, {}, {1}, {1}});
  }

  /// Runs `step(direction, inputs[t], states)`, which gives the new states, the first the hidden one. Gives Y
  /// and the last states in the layout asked for.
  template <typename StepOf>
  Values run(const std::vector<Values>& initial_states, StepOf&& step) {
    Values sequences;
    std::vector<Values> last(initial_states[0].size());
    for (std::size_t d = 0; d < all_.size(); ++d) {
      const Step next = [&](const Values& states, const Values& inputs) -> Recurrence {
        Values after = step(d, inputs[0], states);
        const Value hidden = after[0];
        return {std::move(after), c.wants(0) ? Values{hidden} : Values{}};
      };
      Recurrence whole{initial_states[d], {}};
      if (steps_ > 0) whole = recur(b, steps_, initial_states[d], {all_[d].inputs}, next, all_[d].reverse);
      if (c.wants(0)) {
        const Dims dims{steps_, 1, batch_, hidden_};
        sequences.push_back(steps_ > 0 ? b.reshape(whole.outputs[0], dims)
                                       : b.full(Builder::scalar(x_.dtype(), 0), dims));
      }
      for (std::size_t s = 0; s < whole.state.size(); ++s)
        last[s].push_back(b.reshape(whole.state[s], {1, batch_, hidden_}));
    }
    Values results(1);
    if (c.wants(0)) results[0] = b.concatenate(sequences, 1);
    for (const Values& state : last) results.push_back(b.concatenate(state, 0));
    if (batch_first_) {
      if (c.wants(0)) results[0] = b.transpose(results[0], {2, 0, 1, 3});
      for (std::size_t s = 1; s < results.size(); ++s) results[s] = b.transpose(results[s], {1, 0, 2});
    }
    return results;
  }

  const std::vector<Direction>& directions() const { return all_; }
  std::int64_t hidden() const { return hidden_; }

 private:
  /// Sequences shorter than X are padded by rules that ONNX's text does not give.
  void check_lengths() {
    if (!c.has(4)) return;
    for (const std::int64_t length : c.known_integers(4))
      c.check(length == steps_,
              fmt::format("sequence_lens has {}, only the length of X, {}, is supported", length, steps_));
  }

  Direction read(std::int64_t d, std::vector<Activation> functions) {
    const std::int64_t rows = gates_ * hidden_;
    const auto of = [&](const Value& value, const Dims& dims) {
      return b.reshape(b.slice(value, 0, d, d + 1), dims);
    };
    Direction direction;
    direction.functions = std::move(functions);
    direction.inputs = b.dot(x_, of(c.in(1), {rows, x_.dim(2)}), {{}, {}, {2}, {1}});
    direction.recurrent = of(c.in(2), {rows, hidden_});
    if (c.has(3)) {
      const Value bias = of(c.in(3), {2 * rows});
      direction.inputs = b.add(direction.inputs, b.slice(bias, 0, 0, rows));
      direction.recurrent_bias = b.slice(bias, 0, rows, 2 * rows);
    }
    direction.hidden = initial(5, "initial_h", d);
    return direction;
  }

  NodeContext& c;
  Builder& b;
  std::int64_t gates_, directions_ = 1, steps_ = 0, batch_ = 0, hidden_ = 0;
  bool batch_first_ = false;
  Value x_;  ///< [steps, batch, inputs]
  std::vector<Direction> all_;
};

Value with_bias(Builder& b, const Value& x, const Value& bias) { return bias.present() ? b.add(x, bias) : x; }

Values lower_rnn(NodeContext& c) {
  Recurrent r(c, 1, {"Tanh"});
  std::vector<Values> states;
  for (const Direction& d : r.directions()) states.push_back({d.hidden});
  return r.run(states, [&](std::size_t at, const Value& x, const Values& state) -> Values {
    const Direction& d = r.directions()[at];
    const Value recurrent = with_bias(c.b, r.times_recurrent(state[0], d.recurrent), d.recurrent_bias);
    return {d.functions[0](c.b, c.b.add(x, recurrent))};
  });
}

/// Gates z, r, h.
Values lower_gru(NodeContext& c) {
  Builder& b = c.b;
  const bool linear = c.flag("linear_before_reset", false);
  Recurrent r(c, 3, {"Sigmoid", "Tanh"});
  std::vector<Values> states;
  const std::int64_t h = r.hidden();
  // With linear_before_reset one product serves all gates, else one z and r and one h.
  std::vector<std::array<Value, 2>> rows;
  for (const Direction& d : r.directions()) {
    states.push_back({d.hidden});
    if (linear)
      rows.push_back({d.recurrent, {}});
    else
      rows.push_back({b.slice(d.recurrent, 0, 0, 2 * h), b.slice(d.recurrent, 0, 2 * h, 3 * h)});
  }
  return r.run(states, [&](std::size_t at, const Value& x, const Values& state) -> Values {
    const Direction& d = r.directions()[at];
    const Value& before = state[0];
    const bool bias = d.recurrent_bias.present();
    const Value rows_bias = bias && !linear ? b.slice(d.recurrent_bias, 0, 0, 2 * h) : d.recurrent_bias;
    const Value recurrent = with_bias(b, r.times_recurrent(before, rows[at][0]), rows_bias);
    const Value update = d.functions[0](b, b.add(r.gate(x, 0), r.gate(recurrent, 0)));
    const Value reset = d.functions[0](b, b.add(r.gate(x, 1), r.gate(recurrent, 1)));
    Value candidate;
    if (linear) {
      candidate = b.mul(reset, r.gate(recurrent, 2));
    } else {
      candidate = with_bias(b, r.times_recurrent(b.mul(reset, before), rows[at][1]),
                            bias ? r.gate(d.recurrent_bias, 2) : Value{});
    }
    candidate = d.functions[1](b, b.add(r.gate(x, 2), candidate));
    const Value kept = b.mul(update, before);
    return {b.add(b.mul(b.sub(Builder::scalar(x.dtype(), 1), update), candidate), kept)};
  });
}

/// Gates i, o, f, c; peepholes i, o, f.
Values lower_lstm(NodeContext& c) {
  Builder& b = c.b;
  const bool coupled = c.flag("input_forget", false);
  Recurrent r(c, 4, {"Sigmoid", "Tanh", "Tanh"});
  const std::int64_t h = r.hidden(), directions = std::ssize(r.directions());
  std::vector<Values> states;
  Values peepholes;  // [3 * hidden] a direction
  for (std::int64_t d = 0; d < directions; ++d) {
    states.push_back({r.directions()[static_cast<std::size_t>(d)].hidden, r.initial(6, "initial_c", d)});
    if (c.has(7))
      peepholes.push_back(b.reshape(b.slice(r.input(7, "P", {directions, 3 * h}), 0, d, d + 1), {3 * h}));
  }
  return r.run(states, [&](std::size_t at, const Value& x, const Values& state) -> Values {
    const Direction& d = r.directions()[at];
    const Activation &f = d.functions[0], &g = d.functions[1], &out = d.functions[2];
    const Value gates = b.add(x, with_bias(b, r.times_recurrent(state[0], d.recurrent), d.recurrent_bias));
    const auto gate = [&](std::int64_t i, const Value& cell) {
      const Value sum = r.gate(gates, i);
      return peepholes.empty() ? sum : b.add(sum, b.mul(r.gate(peepholes[at], i), cell));
    };
    const Value input = f(b, gate(0, state[1]));
    const Value forget = coupled ? b.sub(Builder::scalar(x.dtype(), 1), input) : f(b, gate(2, state[1]));
    const Value cell = b.add(b.mul(forget, state[1]), b.mul(input, g(b, r.gate(gates, 3))));
    const Value output = f(b, gate(1, cell));
    return {b.mul(output, out(b, cell)), cell};
  });
}

constexpr std::array kRecurrentRows = {
    OperatorRow{"GRU", 7, lower_gru},
    OperatorRow{"LSTM", 7, lower_lstm},
    OperatorRow{"RNN", 7, lower_rnn},
};

}  // namespace

std::span<const OperatorRow> recurrent_operators() { return kRecurrentRows; }

}  // namespace stitchwork::onnx_reader
