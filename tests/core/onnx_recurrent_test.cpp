// LSTM, GRU and RNN beyond the ONNX project's node tests: directions, layouts, activations, clip.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/onnx_node.h"

namespace stitchwork {
namespace TEST_FILE {

// One input, one hidden element: an RNN with W = R = 1 and Affine(1, 0) is a running sum.
OnnxNode running_sum(const char* direction, const std::vector<std::int64_t>& x_dims,
                     const std::vector<double>& x) {
  const bool both = std::string(direction) == "bidirectional";
  const std::int64_t d = both ? 2 : 1;
  const std::vector<double> ones(static_cast<std::size_t>(d), 1);
  OnnxNode node("RNN", 14, 2);
  node.input(f32_array(x_dims, x)).known(f32_array({d, 1, 1}, ones)).known(f32_array({d, 1, 1}, ones));
  node.set("direction", direction).set("hidden_size", 1);
  node.set("activations", std::vector<std::string>(static_cast<std::size_t>(d), "Affine"));
  node.set("activation_alpha", ones);
  node.set("activation_beta", std::vector<double>(static_cast<std::size_t>(d), 0));
  return node;
}

bool has_loop(const OnnxNode& node) {
  const Graph graph = node.read();
  return std::ranges::any_of(graph.entry_computation().nodes,
                             [](const Node& n) { return n.op == Op::kWhile; });
}

TEST(OnnxRecurrent, ReverseBeginsAtTheEndAndKeepsTheOrderOfY) {
  const auto y = running_sum("reverse", {3, 1, 1}, {1, 2, 4}).run();
  expect_numbers(y[0], {3, 1, 1, 1}, {7, 6, 4});
  expect_numbers(y[1], {1, 1, 1}, {7});
}

TEST(OnnxRecurrent, BothDirectionsLieSideBySide) {
  const auto y = running_sum("bidirectional", {3, 1, 1}, {1, 2, 4}).run();
  expect_numbers(y[0], {3, 2, 1, 1}, {1, 7, 3, 6, 7, 4});
  expect_numbers(y[1], {2, 1, 1}, {7, 7});
}

TEST(OnnxRecurrent, BothDirectionsHaveTheDefaultActivations) {
  for (const auto& [op, gates] : {std::pair{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}}) {
    const auto run = [&, op = op, gates = gates](const char* direction, std::int64_t directions) {
      const std::vector<double> w(static_cast<std::size_t>(directions * gates), 0.25);
      OnnxNode node(op, 14, 2);
      node.input(f32_array({2, 1, 1}, {1, -2})).known(f32_array({directions, gates, 1}, w));
      return node.known(f32_array({directions, gates, 1}, w)).set("direction", direction).run();
    };
    const auto both = run("bidirectional", 2), forward = run("forward", 1), reverse = run("reverse", 1);
    const std::vector<double> y = numbers_of(forward[0]), back = numbers_of(reverse[0]);
    expect_numbers(both[0], {2, 2, 1, 1}, {y[0], back[0], y[1], back[1]});
  }
}

TEST(OnnxRecurrent, Layout1PutsTheBatchFirst) {
  // Two sequences: 1, 2, 4 and 10, 20, 40.
  const auto y = running_sum("reverse", {2, 3, 1}, {1, 2, 4, 10, 20, 40}).set("layout", 1).run();
  expect_numbers(y[0], {2, 3, 1, 1}, {7, 6, 4, 70, 60, 40});
  expect_numbers(y[1], {2, 1, 1}, {7, 70});
}

TEST(OnnxRecurrent, ASequenceOfNoStepsKeepsTheState) {
  const auto y =
      running_sum("forward", {0, 2, 1}, {}).absent().absent().input(f32_array({1, 2, 1}, {3, 5})).run();
  expect_numbers(y[0], {0, 1, 2, 1}, {});
  expect_numbers(y[1], {1, 2, 1}, {3, 5});
}

TEST(OnnxRecurrent, LongSequencesAreALoopAndGiveTheSame) {
  constexpr std::int64_t kSteps = 65;  // one more than is unrolled
  std::vector<double> x, forward, backward;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    x.push_back(static_cast<double>(t + 1));
    forward.push_back(static_cast<double>((t + 1) * (t + 2) / 2));
    backward.push_back(static_cast<double>(kSteps * (kSteps + 1) / 2 - t * (t + 1) / 2));
  }
  const double all = static_cast<double>(kSteps * (kSteps + 1) / 2);
  std::vector<double> both;
  for (std::size_t t = 0; t < x.size(); ++t) both.insert(both.end(), {forward[t], backward[t]});
  const OnnxNode node = running_sum("bidirectional", {kSteps, 1, 1}, x);
  EXPECT_TRUE(has_loop(node));
  const auto y = node.run();
  expect_numbers(y[0], {kSteps, 2, 1, 1}, both);
  expect_numbers(y[1], {2, 1, 1}, {all, all});
}

/// `count` numbers in [-0.5, 0.5] without a pattern that gates could cancel.
std::vector<double> scattered(std::int64_t count, int seed) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(0.5 * std::sin(1.7 * static_cast<double>(i) + seed));
  return values;
}

/// The outputs of LSTM or GRU of batch 2, 3 inputs and 2 hidden elements over rows [first, first + steps) of
/// one sequence, from the states that a run before gave (its outputs; none: zeros).
std::vector<Literal> part(const std::string& op, std::int64_t first, std::int64_t steps,
                          const std::vector<Literal>& before) {
  const bool lstm = op == "LSTM";
  const std::int64_t rows = (lstm ? 4 : 3) * 2;
  const std::vector<double> all = scattered((first + steps) * 6, 1);
  OnnxNode node(op, 14, lstm ? 3 : 2);
  node.input(f32_array({steps, 2, 3}, {all.begin() + first * 6, all.end()}));
  node.known(f32_array({1, rows, 3}, scattered(rows * 3, 2)))
      .known(f32_array({1, rows, 2}, scattered(rows * 2, 3)));
  node.known(f32_array({1, 2 * rows}, scattered(2 * rows, 4))).absent();
  for (std::size_t i = 1; i < before.size(); ++i) node.input(before[i]);
  EXPECT_EQ(has_loop(node), steps > 64);
  return node.run();
}

TEST(OnnxRecurrent, ALoopGivesWhatTheUnrolledStepsGive) {
  for (const char* op : {"LSTM", "GRU"}) {
    const auto whole = part(op, 0, 80, {});
    const auto half = part(op, 0, 40, {}), rest = part(op, 40, 40, half);
    std::vector<double> outputs = numbers_of(half[0]);
    const std::vector<double> second = numbers_of(rest[0]);
    outputs.insert(outputs.end(), second.begin(), second.end());
    expect_numbers(whole[0], {80, 1, 2, 2}, outputs);
    for (std::size_t i = 1; i < whole.size(); ++i) expect_numbers(whole[i], {1, 2, 2}, numbers_of(rest[i]));
  }
}

TEST(OnnxRecurrent, ClipBoundsWhatActivationsGet) {
  const auto y = running_sum("forward", {3, 1, 1}, {1, 2, -9}).set("clip", 2.5).run();
  expect_numbers(y[0], {3, 1, 1, 1}, {1, 2.5, -2.5});
}

TEST(OnnxRecurrent, SequencesShorterThanXAreRefused) {
  const auto lengths = [](std::vector<double> values) {
    OnnxNode node = running_sum("forward", {3, 2, 1}, {1, 1, 2, 2, 3, 3});
    node.absent().known(onnx_array(DType::kS32, {2}, values));
    return node;
  };
  EXPECT_EQ(lengths({3, 3}).refusal(), "");
  EXPECT_NE(lengths({3, 2}).refusal().find("sequence_lens has 2"), std::string::npos);
}

TEST(OnnxRecurrent, AnActivationWithoutItsParametersIsRefused) {
  OnnxNode node("RNN", 14, 1);
  node.input(f32_array({1, 1, 1}, {1})).known(f32_array({1, 1, 1}, {1})).known(f32_array({1, 1, 1}, {1}));
  node.set("activations", std::vector<std::string>{"ScaledTanh"});
  EXPECT_NE(node.refusal().find("ScaledTanh needs activation_alpha"), std::string::npos);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One step with x = 1, h = 0.5, c = 0.25; every gate's weights are its place in i, o, f, c plus 1 over 10.
struct LstmStep {
  double i = 0.1 + 0.1 * 0.5, o = 0.2 + 0.2 * 0.5, f = 0.3 + 0.3 * 0.5, c = 0.4 + 0.4 * 0.5;
  OnnxNode node = [] {
    OnnxNode n("LSTM", 14, 3);
    const std::vector<double> w{0.1, 0.2, 0.3, 0.4};
    n.input(f32_array({1, 1, 1}, {1})).known(f32_array({1, 4, 1}, w)).known(f32_array({1, 4, 1}, w));
    n.absent().absent().input(f32_array({1, 1, 1}, {0.5})).input(f32_array({1, 1, 1}, {0.25}));
    return n;
  }();
};

TEST(OnnxRecurrent, LstmStepIsTheTextsEquations) {
  const LstmStep s;
  const auto y = s.node.run();
  const double cell = sigmoid(s.f) * 0.25 + sigmoid(s.i) * std::tanh(s.c);
  expect_numbers(y[2], {1, 1, 1}, {cell});
  expect_numbers(y[1], {1, 1, 1}, {sigmoid(s.o) * std::tanh(cell)});
}

TEST(OnnxRecurrent, PeepholesSeeTheCellBeforeAndForTheOutputGateAfter) {
  LstmStep s;
  const auto y = s.node.known(f32_array({1, 3}, {2, 3, 4})).run();  // i, o, f
  const double cell = sigmoid(s.f + 4 * 0.25) * 0.25 + sigmoid(s.i + 2 * 0.25) * std::tanh(s.c);
  expect_numbers(y[2], {1, 1, 1}, {cell});
  expect_numbers(y[1], {1, 1, 1}, {sigmoid(s.o + 3 * cell) * std::tanh(cell)});
}

TEST(OnnxRecurrent, InputForgetMakesTheForgetGateTheRestOfTheInputGate) {
  LstmStep s;
  const auto y = s.node.set("input_forget", 1).run();
  const double cell = (1 - sigmoid(s.i)) * 0.25 + sigmoid(s.i) * std::tanh(s.c);
  expect_numbers(y[2], {1, 1, 1}, {cell});
}

TEST(OnnxRecurrent, GruResetsBeforeOrAfterItsProduct) {
  for (const int linear : {0, 1}) {
    OnnxNode node("GRU", 14, 2);
    const std::vector<double> w{0.1, 0.2, 0.3};  // z, r, h
    node.input(f32_array({1, 1, 1}, {1})).known(f32_array({1, 3, 1}, w)).known(f32_array({1, 3, 1}, w));
    node.known(f32_array({1, 6}, {0, 0, 0.5, 0, 0, 0.25}));  // Wbh = 0.5, Rbh = 0.25
    node.absent().input(f32_array({1, 1, 1}, {0.5})).set("linear_before_reset", linear);
    const double z = sigmoid(0.15), r = sigmoid(0.3);
    const double h = linear == 1 ? std::tanh(0.3 + r * (0.5 * 0.3 + 0.25) + 0.5)
                                 : std::tanh(0.3 + r * 0.5 * 0.3 + 0.25 + 0.5);
    expect_numbers(node.run()[1], {1, 1, 1}, {(1 - z) * h + z * 0.5});
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
