#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/evaluate/judge.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace TEST_FILE {

Graph parse(const std::string& text) { return parse_hlo("HloModule m\n" + text, "test.hlo"); }

bool has(const Graph& graph, Op op) {
  return std::ranges::any_of(graph.entry_computation().nodes,
                             [&](const Node& node) { return node.op == op; });
}

/// Before and after `expand`, which must leave none of `gone`, the values are the same.
void expect_same(const Graph& graph, Op gone, const std::vector<Literal>& inputs) {
  const Graph expanded = expand(graph);
  validate(expanded);
  EXPECT_FALSE(has(expanded, gone));
  const CheckResult check = Judge(graph, inputs).check(evaluate(expanded, inputs));
  EXPECT_TRUE(check.ok) << check.message;
}

void expect_same(const std::string& text, Op gone) {
  const Graph graph = parse(text);
  expect_same(graph, gone, generate_inputs(graph, 1));
}

Literal numbers(DType type, std::vector<std::int64_t> dims, const std::vector<double>& values) {
  Literal literal = Literal::zeros(Shape::array(type, std::move(dims)));
  for (std::size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<std::int64_t>(i), values[i]);
  return literal;
}

TEST(Bitcast, BetweenLayoutsMovesTheLogicalElements) {
  const Graph graph = parse("ENTRY e { x = f32[2,3]{0,1} parameter(0)  ROOT b = f32[3,2]{1,0} bitcast(x) }");
  const std::vector<Literal> inputs{numbers(DType::kF32, {2, 3}, {0, 1, 2, 3, 4, 5})};
  // Column-major [2,3] is row-major [3,2] transposed: not a reshape.
  EXPECT_EQ(evaluate(graph, inputs)[0], numbers(DType::kF32, {3, 2}, {0, 3, 1, 4, 2, 5}));
  expect_same(graph, Op::kBitcast, inputs);
}

/// A module that was compiled has chains of them: the second lies as the first says, whatever was written for
/// it.
TEST(Bitcast, OfABitcastKnowsHowItsOperandLies) {
  expect_same(
      "ENTRY e { x = f32[3,2]{1,0} parameter(0)  b = f32[2,3]{0,1} bitcast(x)  "
      "ROOT c = f32[6]{0} bitcast(b) }",
      Op::kBitcast);
  expect_same(
      "ENTRY e { x = f32[2,3]{0,1} parameter(0)  b = f32[2,3]{0,1} bitcast(x)  n = f32[2,3]{0,1} negate(b)  "
      "ROOT c = f32[3,2]{1,0} bitcast(n) }",
      Op::kBitcast);
}

TEST(Bitcast, SplitAndMergedDimensionsFollowTheOrderInMemory) {
  expect_same("ENTRY e { x = f32[4,6,5]{0,2,1} parameter(0)  ROOT b = f32[2,15,4]{1,2,0} bitcast(x) }",
              Op::kBitcast);
  expect_same("ENTRY e { x = f32[4,1,5]{1,0,2} parameter(0)  ROOT b = f32[20]{0} bitcast(x) }", Op::kBitcast);
}

TEST(Bitcast, OfDefaultLayoutsStaysAnAlias) {
  const Graph graph = parse("ENTRY e { x = f32[4,6] parameter(0)  ROOT b = f32[24] bitcast(x) }");
  EXPECT_TRUE(equal(expand(graph), graph));
}

TEST(Bitcast, ToAnotherTypeIsABitcastConvert) {
  expect_same("ENTRY e { x = f32[4]{0} parameter(0)  ROOT b = s32[2,2]{1,0} bitcast(x) }", Op::kBitcast);
  expect_same("ENTRY e { x = f32[4]{0} parameter(0)  ROOT b = u8[2,8]{0,1} bitcast(x) }", Op::kBitcast);
}

TEST(BitcastConvert, WiderAndNarrowerTypesTakeAndGiveTheLastDimension) {
  for (const char* text : {"ENTRY e { x = f32[3] parameter(0)  ROOT b = u8[3,4] bitcast-convert(x) }",
                           "ENTRY e { x = f64[3] parameter(0)  ROOT b = f32[3,2] bitcast-convert(x) }",
                           "ENTRY e { x = s8[3,4] parameter(0)  ROOT b = f32[3] bitcast-convert(x) }",
                           "ENTRY e { x = bf16[2,4] parameter(0)  ROOT b = s64[2] bitcast-convert(x) }"}) {
    const Graph graph = parse(text), expanded = expand(graph);
    validate(expanded);
    const std::vector<Literal> inputs = generate_inputs(graph, 3);
    EXPECT_EQ(evaluate(expanded, inputs)[0], evaluate(graph, inputs)[0]) << text;
    const Computation& entry = expanded.entry_computation();
    for (const Node& node : entry.nodes)
      if (node.op == Op::kBitcastConvert) {
        EXPECT_EQ(node.shape.dims, entry.node(node.operands[0]).shape.dims) << text;
      }
  }
}

TEST(Expand, FunctionsByOtherFunctionsKeepTheirValues) {
  struct Case {
    Op op;
    std::vector<double> values;
  };
  const Case cases[] = {
      {Op::kSinh, {0, 1e-6, -0.3, 1, 5, -88.9, 100}},   {Op::kCosh, {0, 1e-6, -0.3, 5, 88.9, -100, 1}},
      {Op::kAsin, {0, 1e-6, -0.3, 1, -1, 2, 0.999}},    {Op::kAcos, {0, 1e-6, -0.3, 1, -1, 2, 0.999}},
      {Op::kAsinh, {0, 1e-6, -0.3, 5, -1e19, 1e38, 1}}, {Op::kAcosh, {1, 1.0001, 2, 50, 1e19, 1e38, 0.5}},
      {Op::kAtanh, {0, 1e-6, -0.3, 0.999, 1, -1, 2}},
  };
  for (const Case& c : cases)
    for (const DType type : {DType::kF32, DType::kF64, DType::kF16}) {
      SCOPED_TRACE(fmt::format("{} of {}", def(c.op).name, name(type)));
      const Graph graph = parse(fmt::format("ENTRY e {{ x = {0}[7] parameter(0)  ROOT y = {0}[7] {1}(x) }}",
                                            name(type), def(c.op).name));
      // Each value alone: the check's tolerance grows with the largest.
      for (const double value : c.values)
        expect_same(graph, c.op, {numbers(type, {7}, std::vector<double>(7, value))});
    }
}

TEST(Expand, TheUpperHalfOfAProductComesFromTheWiderProduct) {
  for (const DType type : {DType::kS8, DType::kU16, DType::kS32, DType::kU32}) {
    const Graph graph = parse(fmt::format(
        "ENTRY e {{ x = {0}[3] parameter(0)  y = {0}[3] parameter(1)  ROOT h = {0}[3] mulhi(x, y) }}",
        name(type)));
    expect_same(graph, Op::kMultiplyHigh,
                {numbers(type, {3}, {1e9, -5e8, 77}), numbers(type, {3}, {2e9, 1e9, 3})});
  }
}

TEST(Expand, AMappedComputationIsAppliedToWholeArrays) {
  expect_same(R"(f { a = f32[] parameter(0)  b = f32[] parameter(1)  two = f32[] constant(2)
    m = f32[] multiply(a, two)  ROOT s = f32[] subtract(m, b) }
    ENTRY e { x = f32[3,4] parameter(0)  y = f32[3,4] parameter(1)
    ROOT r = f32[3,4] map(x, y), dimensions={0,1}, to_apply=f })",
              Op::kMap);
}

TEST(Expand, MarkersGiveTheirOperand) {
  const Graph graph = expand(parse(R"(ENTRY e { x = f32[4] parameter(0)
    s = f32[4] custom-call(x), custom_call_target="Sharding", sharding={replicated}
    d = f32[4] domain(s), domain={kind="sharding", entry={replicated}, exit={maximal device=0}}
    c = f32[4] custom-call(d), custom_call_target="mine"
    ROOT n = f32[4] negate(c) })"));
  const Computation& entry = graph.entry_computation();
  EXPECT_EQ(entry.node(entry.find("c")).operands, (std::vector<NodeId>{entry.find("x")}));
  EXPECT_FALSE(has(graph, Op::kDomain));
}

TEST(Expand, TheCustomCallTopKIsTopK) {
  const Graph graph = expand(parse(R"(gt { a = f32[] parameter(0)  b = f32[] parameter(1)
    ROOT g = pred[] compare(a, b), direction=GT }
    ENTRY e { x = f32[2,4] parameter(0)
    ROOT t = (f32[2,2], s32[2,2]) custom-call(x), custom_call_target="TopK", called_computations={gt} })"));
  validate(graph);
  const Literal x = numbers(DType::kF32, {2, 4}, {3, 1, 4, 1, -5, 9, -2, 6});
  const std::vector<Literal> top = evaluate(graph, {&x, 1});
  EXPECT_EQ(top[0], numbers(DType::kF32, {2, 2}, {4, 3, 9, 6}));
  EXPECT_EQ(top[1], numbers(DType::kS32, {2, 2}, {2, 0, 1, 3}));
}

double mean_of(const Literal& x, std::int64_t feature, bool squared) {
  double sum = 0;
  for (std::int64_t i = feature; i < 24; i += 3)
    sum += squared ? x.get_double(i) * x.get_double(i) : x.get_double(i);
  return sum / 8;
}

TEST(Expand, BatchNormTrainingNormalisesEveryFeature) {
  const Graph graph = expand(parse(R"(ENTRY e { x = f32[2,4,3] parameter(0)  s = f32[3] parameter(1)
    o = f32[3] parameter(2)
    ROOT b = (f32[2,4,3], f32[3], f32[3]) batch-norm-training(x, s, o), epsilon=0.001, feature_index=2 })"));
  validate(graph);
  const std::vector<Literal> inputs = generate_inputs(graph, 5), outputs = evaluate(graph, inputs);
  ASSERT_EQ(outputs.size(), 3u);
  for (std::int64_t f = 0; f < 3; ++f) {
    const double mean = mean_of(inputs[0], f, false);
    const double variance = mean_of(inputs[0], f, true) - mean * mean;
    EXPECT_NEAR(outputs[1].get_double(f), mean, 1e-5);
    EXPECT_NEAR(outputs[2].get_double(f), variance, 1e-5);
    const double wanted =
        (inputs[0].get_double(f) - mean) / std::sqrt(variance + 0.001) * inputs[1].get_double(f) +
        inputs[2].get_double(f);
    EXPECT_NEAR(outputs[0].get_double(f), wanted, 1e-5);
  }
}

TEST(Expand, BatchNormGradIsTheSlopeOfBatchNormTraining) {
  const Graph forward = expand(parse(R"(ENTRY e { x = f64[8,3] parameter(0)  s = f64[3] parameter(1)
    o = f64[3] parameter(2)
    ROOT b = (f64[8,3], f64[3], f64[3]) batch-norm-training(x, s, o), epsilon=0.001, feature_index=1 })"));
  const Graph backward = expand(parse(R"(ENTRY e { x = f64[8,3] parameter(0)  s = f64[3] parameter(1)
    m = f64[3] parameter(2)  v = f64[3] parameter(3)  g = f64[8,3] parameter(4)
    ROOT b = (f64[8,3], f64[3], f64[3]) batch-norm-grad(x, s, m, v, g), epsilon=0.001, feature_index=1 })"));
  std::vector<Literal> inputs = generate_inputs(forward, 7);
  const Literal grad = generate_inputs(backward, 9)[4];
  const auto loss = [&] {
    const Literal y = evaluate(forward, inputs)[0];
    double sum = 0;
    for (std::int64_t i = 0; i < 24; ++i) sum += y.get_double(i) * grad.get_double(i);
    return sum;
  };
  const std::vector<Literal> at = evaluate(forward, inputs);
  const std::vector<Literal> slopes =
      evaluate(backward, std::vector{inputs[0], inputs[1], at[1], at[2], grad});
  constexpr double kStep = 1e-5;
  for (std::size_t which = 0; which < 3; ++which)
    for (std::int64_t i = 0; i < inputs[which].shape.elements_count(); ++i) {
      const double value = inputs[which].get_double(i);
      inputs[which].set_double(i, value + kStep);
      const double up = loss();
      inputs[which].set_double(i, value - kStep);
      const double down = loss();
      inputs[which].set_double(i, value);
      EXPECT_NEAR(slopes[which].get_double(i), (up - down) / (2 * kStep), 1e-5) << which << " " << i;
    }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
