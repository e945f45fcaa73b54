// Whole small modules, as text, against values worked out by hand.
#include "core/evaluate/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/evaluate/inputs.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

const std::string kReducers = R"(
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
largest { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b) }
second { a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }
argmax { av = f32[] parameter(0)
  ai = s32[] parameter(1)
  bv = f32[] parameter(2)
  bi = s32[] parameter(3)
  keep = pred[] compare(av, bv), direction=GE
  v = f32[] select(keep, av, bv)
  i = s32[] select(keep, ai, bi)
  ROOT t = (f32[], s32[]) tuple(v, i) }
greater { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GT }
at_least { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE }
by_key { ak = s32[] parameter(0)
  bk = s32[] parameter(1)
  av = f32[] parameter(2)
  bv = f32[] parameter(3)
  ROOT c = pred[] compare(ak, bk), direction=LT }
)";

std::vector<Literal> run(const std::string& entry, const std::vector<Literal>& inputs = {}) {
  return evaluate(parse_hlo("HloModule m\n" + kReducers + "ENTRY e {\n" + entry + "\n}\n", "test"), inputs);
}

std::vector<double> values(const Literal& literal) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < literal.shape.elements_count(); ++i) result.push_back(literal.get_double(i));
  return result;
}

using V = std::vector<double>;

Literal counting(DType type, std::vector<std::int64_t> dims, std::int64_t first = 0) {
  Literal literal = Literal::zeros(Shape::array(type, std::move(dims)));
  for (std::int64_t i = 0; i < literal.shape.elements_count(); ++i) literal.set_int(i, first + i);
  return literal;
}

/// Text of one op on iota-like constants.
V op(const std::string& text) { return values(run(text).at(0)); }

TEST(Evaluator, LayoutOps) {
  const std::string c = "c = s32[2,3] constant({{0,1,2},{3,4,5}})\n";
  EXPECT_EQ(op(c + "ROOT r = s32[3,2] transpose(c), dimensions={1,0}"), (V{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(op(c + "ROOT r = s32[3,2] reshape(c)"), (V{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(op(c + "ROOT r = s32[1,2] slice(c), slice={[1:2],[0:3:2]}"), (V{3, 5}));
  EXPECT_EQ(op(c + "ROOT r = s32[2,3] reverse(c), dimensions={1}"), (V{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(op(c + "ROOT r = s32[2,6] concatenate(c, c), dimensions={1}"),
            (V{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(op("c = s32[2] constant({7,8})\nROOT r = s32[2,2] broadcast(c), dimensions={0}"),
            (V{7, 7, 8, 8}));
  EXPECT_EQ(op("c = s32[2] constant({7,8})\nROOT r = s32[2,2] broadcast(c), dimensions={1}"),
            (V{7, 8, 7, 8}));
  EXPECT_EQ(op("ROOT r = f32[2,3] iota(), iota_dimension=1"), (V{0, 1, 2, 0, 1, 2}));
}

TEST(Evaluator, PadPadsCutsAndSpreads) {
  const std::string c = "c = s32[3] constant({1,2,3})\nz = s32[] constant(9)\n";
  EXPECT_EQ(op(c + "ROOT r = s32[6] pad(c, z), padding=1_2"), (V{9, 1, 2, 3, 9, 9}));
  EXPECT_EQ(op(c + "ROOT r = s32[2] pad(c, z), padding=-1_0"), (V{2, 3}));
  EXPECT_EQ(op(c + "ROOT r = s32[2] pad(c, z), padding=1_-2"), (V{9, 1}));
  EXPECT_EQ(op(c + "ROOT r = s32[5] pad(c, z), padding=0_0_1"), (V{1, 9, 2, 9, 3}));
  EXPECT_EQ(op(c + "ROOT r = s32[3] pad(c, z), padding=-1_-1_1"), (V{9, 2, 9}));
  EXPECT_EQ(op(c + "ROOT r = s32[1] pad(c, z), padding=3_-5"), (V{9}));
}

TEST(Evaluator, ReduceOverAnyDimensions) {
  const std::string c = "c = f32[2,3] constant({{1,2,3},{4,5,6}})\nz = f32[] constant(10)\n";
  EXPECT_EQ(op(c + "ROOT r = f32[2] reduce(c, z), dimensions={1}, to_apply=sum"), (V{16, 25}));
  EXPECT_EQ(op(c + "ROOT r = f32[3] reduce(c, z), dimensions={0}, to_apply=sum"), (V{15, 17, 19}));
  EXPECT_EQ(op(c + "ROOT r = f32[] reduce(c, z), dimensions={0,1}, to_apply=sum"), (V{31}));
  EXPECT_EQ(op(c + "ROOT r = f32[2] reduce(c, z), dimensions={1}, to_apply=largest"), (V{10, 10}));
  EXPECT_EQ(op(c + "ROOT r = f32[2] reduce(c, z), dimensions={1}, to_apply=second"), (V{3, 6}));
}

TEST(Evaluator, ReduceOfAMiddleDimensionMatchesTheSumByHand) {
  const Literal x = counting(DType::kF32, {3, 4, 5});
  const V result =
      values(run("x = f32[3,4,5] parameter(0)\nz = f32[] constant(0)\n"
                 "ROOT r = f32[3,5] reduce(x, z), dimensions={1}, to_apply=sum",
                 {x})[0]);
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 5; ++k) {
      double sum = 0;
      for (int j = 0; j < 4; ++j) sum += x.get_double((i * 4 + j) * 5 + k);
      EXPECT_EQ(result[static_cast<std::size_t>(i * 5 + k)], sum);
    }
}

TEST(Evaluator, SumsAccumulateInFloat64) {
  // In float32, adding 1 to 2^24 changes nothing.
  Literal x = Literal::zeros(Shape::array(DType::kF32, {1025}));
  x.set_double(0, 16777216);
  for (int i = 1; i < 1025; ++i) x.set_double(i, 1);
  EXPECT_EQ(values(run("x = f32[1025] parameter(0)\nz = f32[] constant(0)\n"
                       "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum",
                       {x})[0]),
            V{16777216 + 1024});
}

TEST(Evaluator, VariadicReduceFindsTheFirstLargest) {
  const auto results = run(R"(v = f32[2,4] constant({{1,7,3,7},{-1,-2,-3,-4}})
    i = s32[2,4] iota(), iota_dimension=1
    low = f32[] constant(-inf)
    none = s32[] constant(-1)
    ROOT r = (f32[2], s32[2]) reduce(v, i, low, none), dimensions={1}, to_apply=argmax)");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(values(results[0]), (V{7, -1}));
  EXPECT_EQ(values(results[1]), (V{1, 0}));
}

TEST(Evaluator, GatherTakesRowsAndClampsIndices) {
  const std::string table = "t = f32[3,2] constant({{0,1},{2,3},{4,5}})\n";
  EXPECT_EQ(
      op(table + "i = s32[4] constant({2,0,-5,9})\nROOT r = f32[4,2] gather(t, i), offset_dims={1}, "
                 "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}"),
      (V{4, 5, 0, 1, 0, 1, 4, 5}));
  EXPECT_EQ(
      op(table + "i = s32[2,2] constant({{2,1},{0,1}})\nROOT r = f32[2] gather(t, i), offset_dims={}, "
                 "collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}"),
      (V{5, 1}));
}

TEST(Evaluator, DynamicSliceAndUpdateClampTheirStart) {
  const std::string c = "c = s32[4] constant({0,1,2,3})\ni = s32[] constant(3)\n";
  EXPECT_EQ(op(c + "ROOT r = s32[2] dynamic-slice(c, i), dynamic_slice_sizes={2}"), (V{2, 3}));
  EXPECT_EQ(op(c + "u = s32[2] constant({8,9})\nROOT r = s32[4] dynamic-update-slice(c, u, i)"),
            (V{0, 1, 8, 9}));
}

TEST(Evaluator, ScatterCombinesAndSkipsWhatIsOutside) {
  const std::string head =
      "c = f32[4] constant({10,20,30,40})\ni = s32[3,1] constant({{1},{1},{7}})\n"
      "u = f32[3] constant({1,2,3})\nROOT r = f32[4] scatter(c, i, u), update_window_dims={}, "
      "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=";
  EXPECT_EQ(op(head + "sum"), (V{10, 23, 30, 40}));
  EXPECT_EQ(op(head + "second"), (V{10, 2, 30, 40}));
}

TEST(Evaluator, ReduceWindowPoolsWithStridesPaddingAndDilation) {
  const std::string c = "c = f32[5] constant({1,2,3,4,5})\nz = f32[] constant(0)\n";
  EXPECT_EQ(op(c + "ROOT r = f32[2] reduce-window(c, z), window={size=3 stride=2}, to_apply=sum"),
            (V{6, 12}));
  EXPECT_EQ(op(c + "ROOT r = f32[5] reduce-window(c, z), window={size=5 pad=4_0}, to_apply=sum"),
            (V{1, 3, 6, 10, 15}));
  EXPECT_EQ(op(c + "ROOT r = f32[3] reduce-window(c, z), window={size=2 rhs_dilate=2}, to_apply=largest"),
            (V{3, 4, 5}));
  EXPECT_EQ(op(c + "ROOT r = f32[4] reduce-window(c, z), window={size=2}, to_apply=second"), (V{2, 3, 4, 5}));
}

TEST(Evaluator, SelectAndScatterSendsTheGradientToTheLargest) {
  EXPECT_EQ(op("x = f32[4] constant({1,3,2,9})\ng = f32[2] constant({10,20})\nz = f32[] constant(0)\n"
               "ROOT r = f32[4] select-and-scatter(x, g, z), window={size=2 stride=2}, select=at_least, "
               "scatter=sum"),
            (V{0, 10, 0, 20}));
}

TEST(Evaluator, SortIsStableAndCarriesValues) {
  EXPECT_EQ(op("c = f32[2,3] constant({{1,3,2},{5,4,6}})\nROOT r = f32[2,3] sort(c), dimensions={1}, "
               "to_apply=greater"),
            (V{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(op("c = f32[2,3] constant({{1,3,2},{5,2,6}})\nROOT r = f32[2,3] sort(c), dimensions={0}, "
               "to_apply=greater"),
            (V{5, 3, 6, 1, 2, 2}));
  const auto pairs =
      run("k = s32[4] constant({2,1,2,1})\nv = f32[4] constant({0,1,2,3})\n"
          "ROOT r = (s32[4], f32[4]) sort(k, v), dimensions={0}, is_stable=true, to_apply=by_key");
  EXPECT_EQ(values(pairs[0]), (V{1, 1, 2, 2}));
  EXPECT_EQ(values(pairs[1]), (V{1, 3, 0, 2}));
}

TEST(Evaluator, DotWithBatchAndTransposedContractionMatchesLoops) {
  // lhs [b=2, k=3, m=4], rhs [n=5, b=2, k=3]
  const Literal a = counting(DType::kF32, {2, 3, 4}, -7), b = counting(DType::kF32, {5, 2, 3}, -11);
  const V c =
      values(run("a = f32[2,3,4] parameter(0)\nb = f32[5,2,3] parameter(1)\n"
                 "ROOT d = f32[2,4,5] dot(a, b), lhs_batch_dims={0}, lhs_contracting_dims={1}, "
                 "rhs_batch_dims={1}, rhs_contracting_dims={2}",
                 {a, b})[0]);
  for (int g = 0; g < 2; ++g)
    for (int m = 0; m < 4; ++m)
      for (int n = 0; n < 5; ++n) {
        double sum = 0;
        for (int k = 0; k < 3; ++k)
          sum += a.get_double((g * 3 + k) * 4 + m) * b.get_double((n * 2 + g) * 3 + k);
        EXPECT_EQ(c[static_cast<std::size_t>((g * 4 + m) * 5 + n)], sum);
      }
}

TEST(Evaluator, IntegerDotWraps) {
  EXPECT_EQ(op("a = s8[2] constant({100,100})\nROOT d = s8[] dot(a, a), lhs_contracting_dims={0}, "
               "rhs_contracting_dims={0}"),
            V{32});  // 20000 mod 256
  EXPECT_EQ(op("a = s8[2] constant({100,100})\nROOT d = s32[] dot(a, a), lhs_contracting_dims={0}, "
               "rhs_contracting_dims={0}"),
            V{20000});
}

/// Direct sum over the window, for one image and one group.
TEST(Evaluator, ConvolutionMatchesTheDirectSum) {
  const Literal x = counting(DType::kF32, {2, 5, 6, 3}, -20), w = counting(DType::kF32, {3, 2, 3, 4}, -9);
  const Literal y =
      run("x = f32[2,5,6,3] parameter(0)\nw = f32[3,2,3,4] parameter(1)\n"
          "ROOT c = f32[2,4,3,5] convolution(x, w), window={size=3x2 stride=2x1 pad=1_1x0_0}, "
          "dim_labels=b01f_01io->bf01",
          {x, w})[0];
  for (int b = 0; b < 2; ++b)
    for (int f = 0; f < 4; ++f)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 5; ++j) {
          double sum = 0;
          for (int u = 0; u < 3; ++u)
            for (int v = 0; v < 2; ++v)
              for (int k = 0; k < 3; ++k) {
                const int row = 2 * i + u - 1, column = j + v;
                if (row < 0 || row >= 5) continue;
                sum += x.get_double(((b * 5 + row) * 6 + column) * 3 + k) *
                       w.get_double(((u * 2 + v) * 3 + k) * 4 + f);
              }
          EXPECT_EQ(y.get_double(((b * 4 + f) * 3 + i) * 5 + j), sum);
        }
}

TEST(Evaluator, DepthwiseConvolutionKeepsChannelsApart) {
  EXPECT_EQ(op("x = f32[1,2,2] constant({{{1,10},{2,20}}})\nw = f32[2,1,2] constant({{{1,3}},{{2,4}}})\n"
               "ROOT c = f32[1,1,2] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f, "
               "feature_group_count=2"),
            (V{1 * 1 + 2 * 2, 10 * 3 + 20 * 4}));
}

TEST(Evaluator, ControlFlow) {
  const Graph graph = parse_hlo(R"(HloModule m
body { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  p = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  two = s32[] constant(2)
  next = s32[] add(i, one)
  double = s32[] multiply(p, two)
  ROOT t = (s32[], s32[]) tuple(next, double) }
condition { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  five = s32[] constant(5)
  ROOT c = pred[] compare(i, five), direction=LT }
negated { x = s32[] parameter(0)
  ROOT n = s32[] negate(x) }
same { ROOT x = s32[] parameter(0) }
ENTRY e { flag = pred[] parameter(0)
  zero = s32[] constant(0)
  one = s32[] constant(1)
  start = (s32[], s32[]) tuple(zero, one)
  loop = (s32[], s32[]) while(start), condition=condition, body=body
  power = s32[] get-tuple-element(loop), index=1
  called = s32[] call(power), to_apply=negated
  ROOT chosen = s32[] conditional(flag, power, called), true_computation=same, false_computation=same
})",
                                "test");
  Literal flag = Literal::zeros(Shape::array(DType::kPred, {}));
  EXPECT_EQ(evaluate(graph, std::vector{flag})[0].get_int(0), -32);
  flag.set_int(0, 1);
  EXPECT_EQ(evaluate(graph, std::vector{flag})[0].get_int(0), 32);
}

TEST(Evaluator, MapAppliesAComputationElementByElement) {
  EXPECT_EQ(op("a = f32[2] constant({1,5})\nb = f32[2] constant({3,4})\n"
               "ROOT r = f32[2] map(a, b), dimensions={0}, to_apply=largest"),
            (V{3, 5}));
}

TEST(Evaluator, ObserverSeesEveryNodeAndValuesAreFreedInBetween) {
  const Graph graph = parse_hlo(
      "HloModule m\nENTRY e { x = f32[2] parameter(0)\n  y = f32[2] negate(x)\n"
      "  z = f32[2] exponential(y)\n  ROOT w = f32[2] add(z, z) }",
      "test");
  std::vector<std::string> seen;
  evaluate(graph, std::vector{counting(DType::kF32, {2})},
           [&](const Node& node, const Literal&) { seen.push_back(node.name); });
  EXPECT_EQ(seen, (std::vector<std::string>{"x", "y", "z", "w"}));
}

TEST(Evaluator, WhatCannotRunIsNamedWithItsLine) {
  const std::string text =
      "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n"
      "  ROOT y = f32[2] custom-call(x), custom_call_target=\"f\"\n}\n";
  try {
    evaluate(parse_hlo(text, "model.hlo"), std::vector{counting(DType::kF32, {2})});
    FAIL() << "custom-call was executed";
  } catch (const Error& error) {
    EXPECT_EQ(error.line(), 4);
    EXPECT_NE(error.message().find("custom-call"), std::string::npos) << error.what();
    EXPECT_NE(error.message().find("'y'"), std::string::npos) << error.what();
  }
}

TEST(Evaluator, InputsThatDoNotFitAreRefused) {
  const Graph graph = parse_hlo("HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }", "test");
  EXPECT_THROW(evaluate(graph, {}), Error);
  EXPECT_THROW(evaluate(graph, std::vector{counting(DType::kF32, {3})}), Error);
  EXPECT_THROW(evaluate(graph, std::vector{counting(DType::kS32, {2})}), Error);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
