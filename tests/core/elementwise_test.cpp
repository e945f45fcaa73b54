// Every element-wise op of the table, three ways: inference accepts, inference refuses, known values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/graph/op.h"

namespace stitchwork {
namespace TEST_FILE {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// Inputs operand by operand, and the values HLO defines.
struct Case {
  Op op;
  DType type;
  std::vector<std::vector<double>> operands;
  std::vector<double> expected;
};

using enum DType;

const std::vector<Case> kCases = {
    {Op::kAbs, kF32, {{-1.5, 2, -0.0}}, {1.5, 2, 0}},
    {Op::kAbs, kS8, {{-128, -3, 5}}, {-128, 3, 5}},
    {Op::kNegate, kF16, {{-1.5, 2}}, {1.5, -2}},
    {Op::kNegate, kU8, {{1, 0}}, {255, 0}},
    {Op::kSign, kF32, {{-3, 0, 4, kNan}}, {-1, 0, 1, kNan}},
    {Op::kSign, kS32, {{-3, 0, 4}}, {-1, 0, 1}},
    {Op::kFloor, kF32, {{-1.5, 1.5, kInf}}, {-2, 1, kInf}},
    {Op::kCeil, kF64, {{-1.5, 1.5}}, {-1, 2}},
    {Op::kRoundNearestAfz, kF32, {{-2.5, 0.5, 1.4}}, {-3, 1, 1}},
    {Op::kRoundNearestEven, kF32, {{-2.5, 0.5, 1.5, 3.5, 1.4, -0.6, kInf}}, {-2, 0, 2, 4, 1, -1, kInf}},
    {Op::kNot, kPred, {{0, 1}}, {1, 0}},
    {Op::kNot, kS16, {{0, 5}}, {-1, -6}},
    {Op::kPopcnt, kS8, {{-1, 0, 5}}, {8, 0, 2}},
    {Op::kClz, kS16, {{1, 0, -1}}, {15, 16, 0}},
    {Op::kReal, kF32, {{3, kNan}}, {3, kNan}},
    {Op::kImag, kF32, {{3, kNan}}, {0, 0}},
    {Op::kCopy, kS64, {{-7}}, {-7}},
    {Op::kReducePrecision, kF32, {{1.0, 3.14159, 1e-40}}, {1.0, 3.14159012, 0}},
    {Op::kExp, kF32, {{0, 1, -kInf}}, {1, std::exp(1.0), 0}},
    {Op::kExpm1, kF32, {{1e-6}}, {1.0000005e-6}},
    {Op::kLog, kF64, {{1, 0, -1}}, {0, -kInf, kNan}},
    {Op::kLog1p, kF32, {{1e-6}}, {9.999995e-7}},
    {Op::kTanh, kF32, {{0, 100, -0.5}}, {0, 1, -0.46211715726}},
    {Op::kLogistic, kF32, {{0, 100, -kInf}}, {0.5, 1, 0}},
    {Op::kSqrt, kF32, {{4, -1}}, {2, kNan}},
    {Op::kRsqrt, kBF16, {{4, 0}}, {0.5, kInf}},
    {Op::kCbrt, kF32, {{-8}}, {-2}},
    {Op::kSin, kF32, {{0.5}}, {0.479425538604}},
    {Op::kCos, kF32, {{0.5}}, {0.87758256189}},
    {Op::kTan, kF32, {{0.5}}, {0.546302489844}},
    {Op::kSinh, kF32, {{0, 1, -kInf}}, {0, 1.17520119364, -kInf}},
    {Op::kCosh, kF32, {{0, -1, kInf}}, {1, 1.54308063482, kInf}},
    {Op::kAsin, kF32, {{-1, 0.5, 2}}, {-1.57079632679, 0.523598775598, kNan}},
    {Op::kAcos, kF32, {{-1, 0.5, 2}}, {3.14159265359, 1.0471975512, kNan}},
    {Op::kAsinh, kF32, {{0, -1, kInf}}, {0, -0.88137358702, kInf}},
    {Op::kAcosh, kF32, {{1, 2, 0.5}}, {0, 1.31695789692, kNan}},
    {Op::kAtanh, kF32, {{0.5, 1, 2}}, {0.549306144334, kInf, kNan}},
    {Op::kMultiplyHigh, kS32, {{-2147483648.0, 3}, {2, 5}}, {-1, 0}},
    {Op::kMultiplyHigh, kU8, {{255, 16}, {255, 16}}, {254, 1}},
    {Op::kErf, kF32, {{0.5, -kInf}}, {0.520499877813, -1}},
    {Op::kAdd, kF16, {{2048, 1}, {1, 1}}, {2048, 2}},
    {Op::kAdd, kU8, {{250}, {10}}, {4}},
    {Op::kAdd, kPred, {{1, 0}, {1, 0}}, {1, 0}},
    {Op::kAdd, kS32, {{2147483647}, {1}}, {-2147483648.0}},
    {Op::kSubtract, kU32, {{1}, {2}}, {4294967295.0}},
    {Op::kMultiply, kF32, {{3}, {-0.5}}, {-1.5}},
    {Op::kMultiply, kS16, {{300}, {300}}, {24464}},
    {Op::kDivide, kF32, {{1, 0}, {0, 0}}, {kInf, kNan}},
    {Op::kDivide, kS32, {{7, -7, 5, -2147483648.0}, {2, 2, 0, -1}}, {3, -3, -1, -2147483648.0}},
    {Op::kDivide, kU8, {{5}, {0}}, {255}},
    {Op::kRemainder, kF32, {{-7.5, 5}, {2, kInf}}, {-1.5, 5}},
    {Op::kRemainder, kS32, {{-7, 5, -2147483648.0}, {2, 0, -1}}, {-1, 5, 0}},
    {Op::kMaximum, kF32, {{1, kNan, 2}, {2, 1, kNan}}, {2, kNan, kNan}},
    {Op::kMinimum, kF32, {{1, kNan, 2}, {2, 1, kNan}}, {1, kNan, kNan}},
    {Op::kMinimum, kS8, {{-1}, {1}}, {-1}},
    {Op::kPower, kF32, {{2, -8, 0}, {10, 2, 0}}, {1024, 64, 1}},
    {Op::kPower, kS32, {{3, -1, 2, 0}, {4, -3, -1, 0}}, {81, -1, 0, 1}},
    {Op::kAtan2, kF32, {{1}, {-1}}, {2.356194490192}},
    {Op::kAnd, kPred, {{1, 1}, {0, 1}}, {0, 1}},
    {Op::kAnd, kS32, {{-1}, {6}}, {6}},
    {Op::kOr, kU16, {{5}, {2}}, {7}},
    {Op::kXor, kPred, {{1, 1}, {0, 1}}, {1, 0}},
    {Op::kShiftLeft, kS8, {{1, 1, 1}, {7, 8, -1}}, {-128, 0, 0}},
    {Op::kShiftRightLogical, kS8, {{-1, -1}, {4, 9}}, {15, 0}},
    {Op::kShiftRightArithmetic, kS8, {{-128, -1, 64}, {4, 9, 9}}, {-8, -1, 0}},
    {Op::kClamp, kF32, {{0}, {-1, 0.5, 3, kNan}, {1}}, {0, 0.5, 1, kNan}},
};

/// Ops whose operands differ in type have tests of their own below.
bool has_own_test(Op op) {
  return op == Op::kIsFinite || op == Op::kConvert || op == Op::kBitcastConvert || op == Op::kCompare ||
         op == Op::kSelect || op == Op::kMap || op == Op::kComplex;
}

Literal vector_of(DType type, const std::vector<double>& values) {
  Literal literal = Literal::zeros(Shape::array(type, {static_cast<std::int64_t>(values.size())}));
  for (std::size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<std::int64_t>(i), values[i]);
  if (values.size() == 1) literal.shape.dims.clear();
  return literal;
}

Node node_of(Op op) {
  Node node;
  node.op = op;
  node.name = "x";
  if (op == Op::kReducePrecision) node.attrs.other = {{"exponent_bits", "8"}, {"mantissa_bits", "23"}};
  return node;
}

Shape inferred(const Node& node, const std::vector<Shape>& shapes) {
  std::vector<const Shape*> operands;
  for (const Shape& shape : shapes) operands.push_back(&shape);
  return infer_shape(Graph{}, node, operands);
}

void expect_values(const Literal& actual, const std::vector<double>& expected, std::string_view what) {
  ASSERT_EQ(actual.shape.elements_count(), static_cast<std::int64_t>(expected.size())) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double a = actual.get_double(static_cast<std::int64_t>(i));
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(a)) << what << " element " << i << " is " << a;
    else if (std::isinf(expected[i]))
      EXPECT_EQ(a, expected[i]) << what << " element " << i;
    else
      EXPECT_NEAR(a, expected[i], 1e-7 * std::max(1.0, std::abs(expected[i]))) << what << " element " << i;
  }
}

Literal computed(Node node, const std::vector<Literal>& operands) {
  std::vector<const Literal*> pointers;
  std::vector<Shape> shapes;
  for (const Literal& operand : operands) {
    pointers.push_back(&operand);
    shapes.push_back(operand.shape);
  }
  node.shape = inferred(node, shapes);
  Computation computation;
  computation.name = "test";
  return evaluate_node(Graph{}, computation, node, pointers);
}

TEST(Elementwise, KnownValues) {
  for (const Case& c : kCases) {
    std::vector<Literal> operands;
    for (const auto& values : c.operands) operands.push_back(vector_of(c.type, values));
    const std::string what = fmt::format("{} of {}", def(c.op).name, name(c.type));
    SCOPED_TRACE(what);
    const Literal result = computed(node_of(c.op), operands);
    EXPECT_EQ(result.shape.dtype, c.type);
    expect_values(result, c.expected, what);
  }
}

TEST(Elementwise, EveryOpHasAKernelAndAKnownValue) {
  for (const OpDef& row : op_table()) {
    if (!is_elementwise(row.op)) {
      EXPECT_FALSE(has_elementwise_kernel(row.op)) << row.name;
      continue;
    }
    EXPECT_EQ(has_elementwise_kernel(row.op), row.op != Op::kMap && row.op != Op::kComplex) << row.name;
    if (has_own_test(row.op)) continue;
    EXPECT_TRUE(std::ranges::any_of(kCases, [&](const Case& c) { return c.op == row.op; })) << row.name;
  }
}

TEST(Elementwise, EveryExecutableTypeInTheDomainIsComputedAndNoOtherAccepted) {
  for (const OpDef& row : op_table()) {
    if (!is_elementwise(row.op) || has_own_test(row.op)) continue;
    for (DType type : {kPred, kS8, kS16, kS32, kS64, kU8, kU16, kU32, kU64, kF16, kBF16, kF32, kF64}) {
      const std::vector<Literal> operands(static_cast<std::size_t>(row.max_operands),
                                          vector_of(type, {1, 0, 1}));
      const bool pred = type == kPred, real = is_floating(type);
      bool accepted = true;
      switch (row.domain) {
        case Domain::kAny:
        case Domain::kNumeric:
        case Domain::kOrdered:
          break;
        case Domain::kSigned:
          accepted = !pred;
          break;
        case Domain::kFloat:
        case Domain::kReal:
          accepted = real;
          break;
        case Domain::kIntegral:
          accepted = !pred && !real;
          break;
        case Domain::kBits:
          accepted = !real;
          break;
      }
      // Arithmetic of pred exists for the ops XLA gives a meaning to.
      if (pred && row.domain == Domain::kNumeric && row.op != Op::kAdd && row.op != Op::kMultiply) continue;
      const auto attempt = [&] { computed(node_of(row.op), operands); };
      if (accepted) {
        EXPECT_NO_THROW(attempt()) << row.name << " of " << name(type);
      } else {
        EXPECT_THROW(attempt(), Error) << row.name << " of " << name(type);
      }
    }
  }
}

TEST(Elementwise, OperandsOfDifferentDimensionsAreRefused) {
  for (const OpDef& row : op_table()) {
    if (!is_elementwise(row.op) || row.max_operands < 2 || row.op == Op::kMap) continue;
    const DType type = row.domain == Domain::kBits || row.domain == Domain::kIntegral ? kS32 : kF32;
    std::vector<Shape> shapes(static_cast<std::size_t>(row.max_operands), Shape::array(type, {4}));
    if (row.op == Op::kSelect) shapes[0].dtype = kPred;
    EXPECT_NO_THROW(inferred(node_of(row.op), shapes)) << row.name;
    shapes.back().dims = {5};
    EXPECT_THROW(inferred(node_of(row.op), shapes), Error) << row.name;
  }
}

TEST(OpTable, EveryOpRefusesAWrongNumberOfOperands) {
  for (const OpDef& row : op_table()) {
    const Shape shape = Shape::array(kF32, {4});
    const auto attempt = [&](int count) {
      inferred(node_of(row.op), std::vector<Shape>(static_cast<std::size_t>(count), shape));
    };
    if (row.min_operands > 0) {
      EXPECT_THROW(attempt(row.min_operands - 1), Error) << row.name;
    }
    if (row.max_operands >= 0) {
      EXPECT_THROW(attempt(row.max_operands + 1), Error) << row.name;
    }
  }
}

TEST(OpTable, NamesAreUniqueAndFound) {
  for (const OpDef& row : op_table()) EXPECT_EQ(op_from_name(row.name), row.op) << row.name;
  EXPECT_EQ(op_from_name("no-such-op"), std::nullopt);
}

TEST(OpTable, CudaExpressionsNameEveryOperand) {
  for (const OpDef& row : op_table()) {
    if (row.cuda.empty() || row.op == Op::kImag) continue;
    for (int i = 0; i < row.max_operands; ++i)
      EXPECT_NE(row.cuda.find(fmt::format("${}", i)), std::string_view::npos) << row.name;
  }
}

TEST(Elementwise, ConvertTruncatesSaturatesAndKeepsLowBits) {
  const auto converted = [](DType from, std::vector<double> values, DType to) {
    Node node = node_of(Op::kConvert);
    node.shape = Shape::array(to, {});
    return computed(node, {vector_of(from, values)});
  };
  expect_values(converted(kF32, {-1.9, 1e20, kNan, -kInf}, kS32), {-1, 2147483647, 0, -2147483648.0},
                "f32 to s32");
  expect_values(converted(kF32, {-1.9, 300, 255.5}, kU8), {0, 255, 255}, "f32 to u8");
  expect_values(converted(kF64, {1e300, -1e300}, kS64), {9223372036854775807.0, -9223372036854775808.0},
                "f64 to s64");
  expect_values(converted(kS32, {300, -1}, kU8), {44, 255}, "s32 to u8");
  expect_values(converted(kF32, {0, 0.5, kNan}, kPred), {0, 1, 1}, "f32 to pred");
  expect_values(converted(kF32, {65519, 65520, 1e-8}, kF16), {65504, kInf, 0}, "f32 to f16");
  expect_values(converted(kF32, {1.00390625, 1.01171875}, kBF16), {1, 1.015625}, "f32 to bf16: ties to even");
}

TEST(Elementwise, BitcastConvertKeepsBits) {
  Node node = node_of(Op::kBitcastConvert);
  node.shape = Shape::array(kS32, {});
  EXPECT_EQ(computed(node, {vector_of(kF32, {1})}).get_int(0), 0x3f800000);
  node.shape = Shape::array(kU8, {});
  const Literal bytes = computed(node, {vector_of(kS32, {0x01020304})});
  EXPECT_EQ(bytes.shape.dims, std::vector<std::int64_t>{4});
  EXPECT_EQ(bytes.get_int(0), 4);
}

TEST(Elementwise, ComparisonsWithNanAreFalseButNotEqual) {
  Node node = node_of(Op::kCompare);
  const std::vector<Literal> operands = {vector_of(kF32, {1, 2, kNan}), vector_of(kF32, {2, 2, kNan})};
  const std::vector<std::pair<Comparison, std::vector<double>>> expected = {
      {Comparison::kEq, {0, 1, 0}}, {Comparison::kNe, {1, 0, 1}}, {Comparison::kLt, {1, 0, 0}},
      {Comparison::kLe, {1, 1, 0}}, {Comparison::kGt, {0, 0, 0}}, {Comparison::kGe, {0, 1, 0}}};
  for (const auto& [comparison, values] : expected) {
    node.attrs.comparison = comparison;
    expect_values(computed(node, operands), values, "compare");
  }
  node.attrs.other = {{"type", "TOTALORDER"}};
  node.attrs.comparison = Comparison::kLt;
  expect_values(computed(node, {vector_of(kF32, {-0.0, kInf, -1}), vector_of(kF32, {0.0, kNan, -2})}),
                {1, 1, 0}, "total order");
}

TEST(Elementwise, SelectTakesScalarAndElementPredicates) {
  const Literal a = vector_of(kBF16, {1, 2, 3}), b = vector_of(kBF16, {4, 5, 6});
  expect_values(computed(node_of(Op::kSelect), {vector_of(kPred, {1, 0, 1}), a, b}), {1, 5, 3}, "select");
  expect_values(computed(node_of(Op::kSelect), {vector_of(kPred, {0}), a, b}), {4, 5, 6},
                "select by a scalar");
  EXPECT_THROW(computed(node_of(Op::kSelect), {vector_of(kS32, {0, 1, 1}), a, b}), Error);
}

TEST(Elementwise, IsFiniteOfNanAndInfinity) {
  expect_values(computed(node_of(Op::kIsFinite), {vector_of(kF16, {1, kInf, kNan, -kInf})}), {1, 0, 0, 0},
                "is-finite");
}

TEST(Elementwise, ReducePrecisionRoundsToTheNamedFormat) {
  Node node = node_of(Op::kReducePrecision);
  node.attrs.other = {{"exponent_bits", "5"}, {"mantissa_bits", "10"}};  // f16
  expect_values(computed(node, {vector_of(kF32, {2049, 70000, 1e-6})}), {2048, kInf, 0}, "as f16");
}

TEST(Literal, HalfConversionsRoundTripEveryBitPattern) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float as_f16 = f16_to_f32(half), as_bf16 = bf16_to_f32(half);
    if (as_f16 == as_f16) {
      ASSERT_EQ(f32_to_f16(as_f16), half);
    } else {
      ASSERT_TRUE(std::isnan(f16_to_f32(f32_to_f16(as_f16))));
    }
    if (as_bf16 == as_bf16) {
      ASSERT_EQ(f32_to_bf16(as_bf16), half);
    }
  }
}

TEST(Literal, HalvesRoundToNearestEven) {
  for (std::uint16_t half = 0; half < 0x7bff; ++half) {  // every finite pair of neighbours
    const float low = f16_to_f32(half), high = f16_to_f32(static_cast<std::uint16_t>(half + 1));
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(f32_to_f16(middle), half % 2 == 0 ? half : half + 1);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, low)), half);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, high)), half + 1);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
