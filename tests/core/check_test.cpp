#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/inputs.h"

namespace stitchwork {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Literal of(DType type, const std::vector<double>& values) {
  Literal literal = Literal::zeros(Shape::array(type, {static_cast<std::int64_t>(values.size())}));
  for (std::size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<std::int64_t>(i), values[i]);
  return literal;
}

bool ok(DType type, const std::vector<double>& actual, const std::vector<double>& reference) {
  return check_output(of(type, actual), of(type, reference)).ok;
}

TEST(CheckOutput, ToleranceIsRelativePlusATenthOfItTimesTheLargest) {
  EXPECT_TRUE(ok(DType::kF32, {100.01, 0.0009}, {100, 0}));  // 1e-5 * 100 = 1e-3 allowed at zero
  EXPECT_FALSE(ok(DType::kF32, {100, 0.0011}, {100, 0}));
  EXPECT_FALSE(ok(DType::kF32, {100.02, 0}, {100, 0}));
  EXPECT_TRUE(ok(DType::kF16, {100.9}, {100}));
  EXPECT_FALSE(ok(DType::kF16, {102}, {100}));
  EXPECT_TRUE(ok(DType::kBF16, {103}, {100}));
  EXPECT_FALSE(ok(DType::kF64, {1 + 1e-9}, {1}));
}

TEST(CheckOutput, AllZeroReferenceAllowsAMillionth) {
  EXPECT_TRUE(ok(DType::kF32, {9e-7, 0}, {0, 0}));
  EXPECT_FALSE(ok(DType::kF32, {2e-6, 0}, {0, 0}));
}

TEST(CheckOutput, NansAndInfinitiesMustMatch) {
  EXPECT_TRUE(ok(DType::kF32, {kNan, kInf, -kInf, 1}, {kNan, kInf, -kInf, 1}));
  EXPECT_FALSE(ok(DType::kF32, {kNan}, {1}));
  EXPECT_FALSE(ok(DType::kF32, {1}, {kNan}));
  EXPECT_FALSE(ok(DType::kF32, {kInf}, {-kInf}));
  EXPECT_FALSE(ok(DType::kF32, {3e38}, {kInf}));
}

TEST(CheckOutput, IntegersAreExactAndTheFirstOffenderIsNamed) {
  EXPECT_TRUE(ok(DType::kS32, {1, 2}, {1, 2}));
  const CheckResult result = check_output(of(DType::kS32, {1, 5, 7}), of(DType::kS32, {1, 2, 3}));
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.max_abs_error, 4);
  EXPECT_EQ(result.message, "element [1] is 5, 2 is right");
}

TEST(CheckOutput, RelativeErrorIsDampedByTheRootMeanSquare) {
  const CheckResult result = check_output(of(DType::kF64, {3, 4.5}), of(DType::kF64, {3, 4}));
  EXPECT_DOUBLE_EQ(result.max_rel_error, 0.5 / (4 + std::sqrt(12.5)));
}

TEST(CheckOutput, ShapesMustAgree) {
  EXPECT_FALSE(check_output(of(DType::kF32, {1}), of(DType::kF32, {1, 2})).ok);
  EXPECT_FALSE(check_output(of(DType::kF32, {1}), of(DType::kF64, {1})).ok);
}

}  // namespace
}  // namespace stitchwork
