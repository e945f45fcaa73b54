#include "core/evaluate/judge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Literal of(DType type, const std::vector<double>& values) {
  Literal literal = Literal::zeros(Shape::array(type, {static_cast<std::int64_t>(values.size())}));
  for (std::size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<std::int64_t>(i), values[i]);
  return literal;
}

Graph graph_of(const std::string& entry) {
  return parse_hlo(
      "HloModule m\nsum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
      "ENTRY e {\n" +
          entry + "\n}\n",
      "test.hlo");
}

/// The identity on one array: no rounding at all.
CheckResult check(DType type, const std::vector<double>& actual, const std::vector<double>& reference) {
  const Graph graph = graph_of(fmt::format("ROOT x = {}[{}] parameter(0)", name(type), reference.size()));
  return Judge(graph, {of(type, reference)}).check({{of(type, actual)}});
}

bool ok(DType type, const std::vector<double>& actual, const std::vector<double>& reference) {
  return check(type, actual, reference).ok;
}

TEST(Judge, ToleranceIsRelativeToTheElementItself) {
  EXPECT_TRUE(ok(DType::kF32, {100.009}, {100}));
  EXPECT_FALSE(ok(DType::kF32, {100.011}, {100}));
  EXPECT_FALSE(ok(DType::kF32, {1e6, 1e-3}, {1e6, 2e-3})) << "a large element excuses a small one";
  EXPECT_FALSE(ok(DType::kF32, {1e-9}, {0}));
  EXPECT_TRUE(ok(DType::kF16, {100.9}, {100}));
  EXPECT_FALSE(ok(DType::kF16, {102}, {100}));
  EXPECT_TRUE(ok(DType::kBF16, {102}, {100}));
  EXPECT_FALSE(ok(DType::kBF16, {104}, {100}));
  EXPECT_FALSE(ok(DType::kF64, {1 + 1e-9}, {1}));
}

TEST(Judge, NansAndInfinitiesMustMatchAndNansAreCounted) {
  const CheckResult same = check(DType::kF32, {kNan, kInf, -kInf, 1}, {kNan, kInf, -kInf, 1});
  EXPECT_TRUE(same.ok);
  EXPECT_EQ(same.nan, 1);
  EXPECT_EQ(same.elements, 4);
  EXPECT_FALSE(ok(DType::kF32, {kNan}, {1}));
  EXPECT_FALSE(ok(DType::kF32, {1}, {kNan}));
  EXPECT_FALSE(ok(DType::kF32, {kInf}, {-kInf}));
  EXPECT_FALSE(ok(DType::kF32, {3e38}, {kInf}));
}

TEST(Judge, WhatIsOneNumberThroughoutIsTold) {
  const CheckResult saturated = check(DType::kF32, {1, 1, 1.00001, 1}, {1, 1, 1, 1});
  EXPECT_TRUE(saturated.ok);
  EXPECT_EQ(saturated.uniform, std::vector<std::size_t>{0});
  EXPECT_EQ(remarks(saturated), "; output 0 is one number throughout");
  EXPECT_TRUE(check(DType::kF32, {1, 1, 2}, {1, 1, 2}).uniform.empty());
  EXPECT_TRUE(check(DType::kS32, {7}, {7}).uniform.empty()) << "a single element is no sign of anything";
  EXPECT_EQ(remarks(check(DType::kF32, {kNan, 1}, {kNan, 1})), "; 1 of 2 are NaN in both");
}

TEST(Judge, IntegersAreExactAndTheFirstOffenderIsNamed) {
  EXPECT_TRUE(ok(DType::kS32, {1, 2}, {1, 2}));
  const CheckResult result = check(DType::kS32, {1, 5, 7}, {1, 2, 3});
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.max_abs_error, 4);
  EXPECT_EQ(result.message, "element [1] is 5, 2 is right");
}

TEST(Judge, RelativeErrorIsDampedByTheRootMeanSquare) {
  EXPECT_DOUBLE_EQ(check(DType::kF64, {3, 4.5}, {3, 4}).max_rel_error, 0.5 / (4 + std::sqrt(12.5)));
}

TEST(Judge, ShapesAndNumbersOfOutputsMustAgree) {
  const Graph graph = graph_of("ROOT x = f32[2] parameter(0)");
  Judge judge(graph, {of(DType::kF32, {1, 2})});
  EXPECT_THAT(judge.check({{of(DType::kF32, {1})}}).message, HasSubstr("differs from the reference's"));
  EXPECT_THAT(judge.check({{of(DType::kF64, {1, 2})}}).message, HasSubstr("differs from the reference's"));
  EXPECT_THAT(judge.check({}).message, HasSubstr("0 outputs, 1 are right"));
}

TEST(Judge, AnElementIsAllowedWhatItsOwnComputationLoses) {
  // x + y - y: element 0 loses six digits, element 1 none.
  const Graph graph = graph_of(R"(
    x = f32[2] parameter(0)
    y = f32[2] parameter(1)
    s = f32[2] add(x, y)
    ROOT d = f32[2] subtract(s, y))");
  Judge judge(graph, {of(DType::kF32, {1.2345678, 1.2345678}), of(DType::kF32, {1e6 / 3, 1})});
  const double first = judge.reference()[0].get_double(0), second = judge.reference()[0].get_double(1);
  const CheckResult rounded = judge.check({{of(DType::kF32, {first + 0.03, second})}});
  EXPECT_TRUE(rounded.ok) << rounded.message;
  EXPECT_EQ(rounded.allowed, 1);
  EXPECT_FALSE(judge.check({{of(DType::kF32, {first, second + 0.03})}}).ok)
      << "another element's loss excuses it";
  EXPECT_FALSE(judge.check({{of(DType::kF32, {first + 3, second})}}).ok);
}

TEST(Judge, ZeroButForRoundingIsRightWithinItsNoiseOnly) {
  // The gradient of a bias that softmax does not see: sum of (p - p * sum(p)).
  const Graph graph = graph_of(R"(
    x = f32[8,64] parameter(0)
    z = f32[] constant(0)
    e = f32[8,64] exponential(x)
    s = f32[8] reduce(e, z), dimensions={1}, to_apply=sum
    sb = f32[8,64] broadcast(s), dimensions={0}
    p = f32[8,64] divide(e, sb)
    g = f32[8] reduce(p, z), dimensions={1}, to_apply=sum
    gb = f32[8,64] broadcast(g), dimensions={0}
    pg = f32[8,64] multiply(p, gb)
    d = f32[8,64] subtract(p, pg)
    ROOT r = f32[8] reduce(d, z), dimensions={1}, to_apply=sum)");
  Judge judge(graph, generate_inputs(graph, 1));
  std::vector<double> noise(8), fault(8);
  for (std::size_t i = 0; i < 8; ++i) {
    noise[i] = i % 2 == 0 ? 6e-8 : -4e-8;
    fault[i] = noise[i];
  }
  EXPECT_TRUE(judge.check({{of(DType::kF32, noise)}}).ok) << judge.check({{of(DType::kF32, noise)}}).message;
  fault[5] = 1e-4;
  EXPECT_FALSE(judge.check({{of(DType::kF32, fault)}}).ok);
}

/// The variance of rows, summed pairwise as implementations do.
double pairwise(const std::vector<double>& values, std::size_t first, std::size_t n, bool f32) {
  if (n == 1) return values[first];
  const double sum = pairwise(values, first, n / 2, f32) + pairwise(values, first + n / 2, n - n / 2, f32);
  return f32 ? static_cast<double>(static_cast<float>(sum)) : sum;
}

TEST(Judge, RowsOfEqualElementsHaveAVarianceThatIsZeroButForRounding) {
  constexpr std::size_t kCols = 5000;
  for (const bool f32 : {true, false}) {
    const auto rounded = [&](double v) { return f32 ? static_cast<double>(static_cast<float>(v)) : v; };
    const std::string type = f32 ? "f32" : "f64";
    const Graph graph = parse_hlo(
        fmt::format(
            "HloModule m\nsum {{ a = {0}[] parameter(0)  b = {0}[] parameter(1)  ROOT s = {0}[] add(a, b) }}"
            R"(
ENTRY e {{
  x = {0}[4] parameter(0)
  rows = {0}[4,5000] broadcast(x), dimensions={{0}}
  z = {0}[] constant(0)
  s = {0}[4] reduce(rows, z), dimensions={{1}}, to_apply=sum
  part = {0}[] constant(0.0002)
  parts = {0}[4] broadcast(part), dimensions={{}}
  mean = {0}[4] multiply(s, parts)
  means = {0}[4,5000] broadcast(mean), dimensions={{0}}
  d = {0}[4,5000] subtract(rows, means)
  q = {0}[4,5000] multiply(d, d)
  ROOT v = {0}[4] reduce(q, z), dimensions={{1}}, to_apply=sum
}})",
            type),
        "rows.hlo");
    const DType dtype = f32 ? DType::kF32 : DType::kF64;
    const std::vector<double> x = {rounded(1.0 / 3), rounded(0.7), rounded(-1e3 / 7), rounded(123.4)};
    Judge judge(graph, {of(dtype, x)});
    std::vector<double> variances, dropped;
    for (const double v : x) {
      const double sum = pairwise(std::vector<double>(kCols, v), 0, kCols, f32);
      const auto variance = [&](double of_sum) {
        const double off = rounded(v - rounded(of_sum * rounded(0.0002)));
        return pairwise(std::vector<double>(kCols, rounded(off * off)), 0, kCols, f32);
      };
      variances.push_back(variance(sum));
      dropped.push_back(variance(rounded(sum - v)));  // a mean that misses an element
    }
    const CheckResult result = judge.check({{of(dtype, variances)}});
    EXPECT_TRUE(result.ok) << type << ": " << result.message;
    EXPECT_FALSE(judge.check({{of(dtype, dropped)}}).ok) << type;
  }
}

TEST(Judge, AZeroThatDrawsLeaveOftenIsRightWithinAFusedMultiplyAdd) {
  // d = x + 15 - fl(31 (x + 15) / 31) moves in steps of 2 * 10^-6; fused, 31 (x + 15) / 31 is not rounded,
  // and d is the error of the constant alone.
  const Graph graph = graph_of(R"(
    x = f32[20000] parameter(0)
    c = f32[] constant(0.032258064)
    cs = f32[20000] broadcast(c), dimensions={}
    n = f32[] constant(31)
    ns = f32[20000] broadcast(n), dimensions={}
    s = f32[20000] multiply(x, ns)
    m = f32[20000] multiply(s, cs)
    d = f32[20000] subtract(x, m)
    ROOT q = f32[20000] multiply(d, d))");
  std::vector<double> x(20000);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(16 + static_cast<double>(i % 4000) / 4000);
  Judge judge(graph, {of(DType::kF32, x)});
  std::vector<double> fused(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto v = static_cast<float>(x[i]);
    const float d = std::fma(-(v * 31.0F), 0.032258064F, v);
    fused[i] = d * d;
  }
  const CheckResult result = judge.check({{of(DType::kF32, fused)}});
  EXPECT_TRUE(result.ok) << result.message;
  fused[7] = 1e-6;
  EXPECT_FALSE(judge.check({{of(DType::kF32, fused)}}).ok);
}

TEST(Judge, AValueComputedAgainMayBeContractedOtherwise) {
  // d is computed for the mean of its products and again where that is taken away, once fused with what
  // makes it and once not: their difference is no rounding of a product of d.
  const Graph graph = graph_of(R"(
    x = f32[64] parameter(0)
    w = f32[64] parameter(1)
    c = f32[] constant(0.032258064)
    cs = f32[64] broadcast(c), dimensions={}
    n = f32[] constant(31)
    ns = f32[64] broadcast(n), dimensions={}
    s = f32[64] multiply(x, ns)
    m = f32[64] multiply(s, cs)
    d = f32[64] subtract(x, m)
    p = f32[64] multiply(d, w)
    rows = f32[64,16] broadcast(p), dimensions={0}
    z = f32[] constant(0)
    t = f32[64] reduce(rows, z), dimensions={1}, to_apply=sum
    f = f32[] constant(0.0625)
    fs = f32[64] broadcast(f), dimensions={}
    mean = f32[64] multiply(t, fs)
    e = f32[64] subtract(p, mean)
    ROOT q = f32[64] multiply(e, e))");
  std::vector<double> x(64), w(64, 4), given(64);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(16 + static_cast<double>(i) / 64);
    const auto v = static_cast<float>(x[i]);
    const float s = v * 31.0F, fused = std::fma(-s, 0.032258064F, v);
    const volatile float rounded = s * 0.032258064F;
    const float e = (v - rounded) * 4.0F - fused * 4.0F;
    given[i] = e * e;
  }
  Judge judge(graph, {of(DType::kF32, x), of(DType::kF32, w)});
  const CheckResult result = judge.check({{of(DType::kF32, given)}});
  EXPECT_TRUE(result.ok) << result.message;
  given[7] = 1e-6;
  EXPECT_FALSE(judge.check({{of(DType::kF32, given)}}).ok);
}

TEST(Judge, SquaresOfErrorsMayBeSixteenTimesAsLarge) {
  // The square of the error of a product moves by the square of what the product does.
  const Graph graph = graph_of(R"(
    x = f32[500] parameter(0)
    c = f32[] constant(0.032258064)
    cs = f32[500] broadcast(c), dimensions={}
    n = f32[] constant(31)
    ns = f32[500] broadcast(n), dimensions={}
    s = f32[500] multiply(x, ns)
    m = f32[500] multiply(s, cs)
    d = f32[500] subtract(x, m)
    ROOT q = f32[500] multiply(d, d))");
  std::vector<double> x(500);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 16 + static_cast<double>(i) / 64;
  const double ulp = 0x1p-19;  // of numbers from 16 to 32
  Judge judge(graph, {of(DType::kF32, x)});
  Literal actual = judge.reference()[0];
  actual.set_double(7, 9 * ulp * ulp);
  const CheckResult result = judge.check({{actual}});
  EXPECT_TRUE(result.ok) << result.message;
  actual.set_double(7, 25 * ulp * ulp);
  EXPECT_FALSE(judge.check({{actual}}).ok);
}

TEST(Judge, EqualTermsMayBeAddedOneByOne) {
  const Graph graph = graph_of(R"(
    x = f32[1] parameter(0)
    rows = f32[1,2703] broadcast(x), dimensions={0}
    z = f32[] constant(0)
    s = f32[1] reduce(rows, z), dimensions={1}, to_apply=sum
    n = f32[1] constant({2703})
    m = f32[1] divide(s, n)
    ROOT d = f32[1] subtract(m, x))");
  float sum = 0;
  const float x = 0.7F;
  for (int i = 0; i < 2703; ++i) sum += x;
  Judge judge(graph, {of(DType::kF32, {x})});
  const double off = sum / 2703.0F - x;
  EXPECT_GT(std::abs(off), 1e-6);
  EXPECT_TRUE(judge.check({{of(DType::kF32, {off})}}).ok) << judge.check({{of(DType::kF32, {off})}}).message;
  EXPECT_FALSE(judge.check({{of(DType::kF32, {-x / 2703.0})}}).ok) << "a term left out";
}

TEST(Judge, AWiderOutputIsAsExactAsWhatItIsMadeOf) {
  const Graph graph =
      graph_of("x = f32[64] parameter(0)\n e = f32[64] exponential(x)\n ROOT r = f64[64] convert(e)");
  Judge judge(graph, generate_inputs(graph, 0));
  Literal other = judge.reference()[0];
  for (std::int64_t i = 0; i < 64; ++i)
    other.set_double(i, other.get_double(i) * (1 + (i % 2 ? 1.2e-7 : -1.2e-7)));
  EXPECT_TRUE(judge.check({{other}}).ok);
  other.set_double(7, other.get_double(7) * (1 + 1e-5));
  EXPECT_FALSE(judge.check({{other}}).ok);
}

TEST(Judge, AValueThatAnotherRoundingFlipsIsRight) {
  const Graph graph = graph_of(
      "x = f32[256] parameter(0)\n e = f32[256] exponential(x)\n h = bf16[256] convert(e)\n"
      " ROOT r = f32[256] convert(h)");
  Judge judge(graph, generate_inputs(graph, 0));
  Literal other = judge.reference()[0];
  for (std::int64_t i = 0; i < 256; i += 5)  // to the neighbour in bf16
    other.set_double(
        i, std::ldexp(std::round(std::ldexp(other.get_double(i), 7 - std::ilogb(other.get_double(i)))) + 1,
                      std::ilogb(other.get_double(i)) - 7));
  const CheckResult flipped = judge.check({{other}});
  EXPECT_TRUE(flipped.ok) << flipped.message;
  EXPECT_GT(flipped.allowed, 40);
  other.set_double(3, other.get_double(3) * 1.1);
  EXPECT_FALSE(judge.check({{other}}).ok);
}

TEST(Judge, AnIntegerThatHangsOnRoundingIsRightOnlyIfRoundingGivesIt) {
  // floor of sums that are 3 but for rounding, and of one that is 3.5.
  const Graph graph = graph_of(R"(
    x = f32[2] parameter(0)
    c = f32[] constant(0.1)
    b = f32[2] broadcast(c), dimensions={}
    y = f32[2] multiply(x, b)
    f = f32[2] floor(y)
    ROOT r = s32[2] convert(f))");
  Judge judge(graph, {of(DType::kF32, {30, 35})});
  ASSERT_EQ(judge.reference()[0].get_int(0), 3);
  EXPECT_TRUE(judge.check({{of(DType::kS32, {2, 3})}}).ok);
  EXPECT_FALSE(judge.check({{of(DType::kS32, {1, 3})}}).ok);
  EXPECT_FALSE(judge.check({{of(DType::kS32, {3, 4})}}).ok);
}

TEST(Judge, ExactArithmeticIsAllowedNothing) {
  // Whole numbers below 2^24: every order of summation gives the same.
  const Graph graph = graph_of(R"(
    x = f32[4,100] parameter(0)
    z = f32[] constant(0)
    s = f32[4] reduce(x, z), dimensions={1}, to_apply=sum
    n = f32[4] negate(s)
    ROOT r = f32[4] add(n, n))");
  Literal ones = Literal::zeros(Shape::array(DType::kF32, {4, 100}));
  for (std::int64_t i = 0; i < 400; ++i) ones.set_double(i, static_cast<double>(i % 7) - 3);
  Judge judge(graph, {ones});
  Literal off = judge.reference()[0];
  off.set_double(2, off.get_double(2) * (1 + 2e-4));
  EXPECT_FALSE(judge.check({{off}}).ok);
}

TEST(Judge, RandomErrorsAreOfTheSizeThatTheOpMakes) {
  const Graph graph =
      graph_of("x = f32[1000] parameter(0)\n y = f32[1000] parameter(1)\n ROOT r = f32[1000] multiply(x, y)");
  const std::vector<Literal> inputs = generate_inputs(graph, 0);
  const std::vector<Literal> exact = evaluate(graph, inputs);
  Rounding rounding({}, 5), again({}, 5);
  const std::vector<Literal> moved = evaluate_rounded(graph, inputs, rounding);
  EXPECT_EQ(moved[0], evaluate_rounded(graph, inputs, again)[0]);
  int moves = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const double r = exact[0].get_double(i), error = std::abs(moved[0].get_double(i) - r);
    EXPECT_LE(error, std::ldexp(0x1p-23, std::ilogb(r))) << i;
    moves += error > 0;
  }
  EXPECT_GE(moves, 850) << "most of these products are not exact";
}

TEST(Judge, LoopsErrInEveryTurn) {
  const Graph graph = parse_hlo(R"(HloModule m
body { s = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(s), index=0  x = f32[8] get-tuple-element(s), index=1
       one = s32[] constant(1)  j = s32[] add(i, one)  y = f32[8] sine(x)  ROOT t = (s32[], f32[8]) tuple(j, y) }
cond { s = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(5)
       ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { z = s32[] constant(0)  x = f32[8] parameter(0)  s = (s32[], f32[8]) tuple(z, x)
          w = (s32[], f32[8]) while(s), condition=cond, body=body  ROOT r = f32[8] get-tuple-element(w), index=1 })",
                                "loop.hlo");
  const std::vector<Literal> inputs = generate_inputs(graph, 0);
  Rounding rounding({}, 1);
  EXPECT_NE(evaluate_rounded(graph, inputs, rounding)[0], evaluate(graph, inputs)[0]);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
