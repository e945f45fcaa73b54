#include "core/graph/float_semantics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

/// The value reduce-precision should give, by rounding numbers where the evaluator rounds bits.
double reduced(double value, FloatFormat own, FloatFormat to) {
  if (std::isnan(value) || std::isinf(value) || value == 0) return value;
  const int own_bias = (1 << (own.exponent_bits - 1)) - 1;
  if (to.mantissa_bits < own.mantissa_bits) {
    // Below the type's normal numbers the unit stays that of the smallest of them.
    const int exponent = std::max(std::ilogb(value), 1 - own_bias);
    const double unit = std::ldexp(1.0, exponent - to.mantissa_bits);
    const double steps = std::fabs(value) / unit, below = std::floor(steps);
    // Of two equally near the one with an even last bit, which without a mantissa is the exponent's.
    const double bits = below + (to.mantissa_bits == 0 ? exponent + own_bias - 1 : 0);
    const bool up = steps - below > 0.5 || (steps - below == 0.5 && std::fmod(bits, 2) != 0);
    value = std::copysign((below + (up ? 1 : 0)) * unit, value);
  }
  if (std::fabs(value) >= std::ldexp(1.0, own_bias + 1))
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  if (to.exponent_bits >= own.exponent_bits) return value;
  const int bias = (1 << (to.exponent_bits - 1)) - 1;
  if (std::fabs(value) >= std::ldexp(1.0, bias + 1))
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return std::fabs(value) < std::ldexp(1.0, 1 - bias) ? std::copysign(0.0, value) : value;
}

Node reduce_precision(FloatFormat to) {
  Node node;
  node.op = Op::kReducePrecision;
  node.name = "x";
  node.attrs.other = {{"exponent_bits", std::to_string(to.exponent_bits)},
                      {"mantissa_bits", std::to_string(to.mantissa_bits)}};
  return node;
}

void expect_reduced(const Literal& values) {
  const FloatFormat own = float_format(values.shape.dtype);
  const Literal* const operands[] = {&values};
  for (const int exponent_bits : {1, 2, 4, own.exponent_bits - 1, own.exponent_bits, own.exponent_bits + 3})
    for (const int mantissa_bits :
         {0, 1, 2, own.mantissa_bits - 1, own.mantissa_bits, own.mantissa_bits + 9}) {
      const FloatFormat to{exponent_bits, mantissa_bits};
      const Literal result = evaluate_elementwise(reduce_precision(to), values.shape, operands);
      for (std::int64_t i = 0; i < values.shape.elements_count(); ++i) {
        const double wanted = reduced(values.get_double(i), own, to), got = result.get_double(i);
        ASSERT_TRUE(std::isnan(wanted) ? std::isnan(got)
                                       : got == wanted && std::signbit(got) == std::signbit(wanted))
            << name(values.shape.dtype) << " " << values.get_double(i) << " to e" << exponent_bits << "m"
            << mantissa_bits << " gives " << got << ", not " << wanted;
      }
    }
}

TEST(ReducePrecision, OfEveryHalfIsTheRoundedValue) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    Literal all = Literal::zeros(Shape::array(type, {0x10000}));
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
      all.data<std::uint16_t>()[bits] = static_cast<std::uint16_t>(bits);
    expect_reduced(all);
  }
}

template <typename U>
Literal any_bits(DType type) {
  constexpr std::int64_t kCount = 3000;
  Literal values = Literal::zeros(Shape::array(type, {kCount}));
  const FloatFormat format = float_format(type);
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < kCount; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    auto bits = static_cast<U>(state ^ state >> 31);
    // A third are subnormal, a third near one.
    const U fraction = bits & static_cast<U>((U{1} << format.mantissa_bits) - 1);
    if (i % 3 == 0) bits = fraction;
    const U one = static_cast<U>((U{1} << (format.exponent_bits - 1)) - 1) << format.mantissa_bits;
    if (i % 3 == 1) bits = one | fraction;
    values.data<U>()[i] = bits;
  }
  return values;
}

TEST(ReducePrecision, OfWiderFloatsIsTheRoundedValue) {
  expect_reduced(any_bits<std::uint32_t>(DType::kF32));
  expect_reduced(any_bits<std::uint64_t>(DType::kF64));
}

TEST(ReducePrecision, KeepsWhatNanCarries) {
  Literal nan = Literal::zeros(Shape::array(DType::kF32, {2}));
  nan.data<std::uint32_t>()[0] = 0xff812345;
  nan.data<std::uint32_t>()[1] = 0x7fc00000;
  const Literal* const operands[] = {&nan};
  EXPECT_EQ(evaluate_elementwise(reduce_precision({5, 0}), nan.shape, operands).bytes, nan.bytes);
}

TEST(ReducePrecision, NeedsAnExponent) {
  EXPECT_THROW(reduced_precision(reduce_precision({0, 3})), Error);
  EXPECT_THROW(reduced_precision(reduce_precision({5, -1})), Error);
  try {
    parse_hlo(
        "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n"
        "  ROOT r = f32[] reduce-precision(x), exponent_bits=0, mantissa_bits=3\n}",
        "test");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.line(), 4);
  }
}

TEST(TotalOrder, IsReadAndPrinted) {
  const std::string text =
      "HloModule m\nENTRY e {\n  x = bf16[] parameter(0)\n"
      "  ROOT c = pred[] compare(x, x), direction=LT, type=TOTALORDER\n}\n";
  const Graph graph = parse_hlo(text, "test"), again = parse_hlo(to_text(graph), "test");
  for (const Graph* g : {&graph, &again}) {
    const Computation& entry = g->entry_computation();
    EXPECT_TRUE(is_total_order(entry.node(entry.root)));
    EXPECT_TRUE(tells_nans_apart(*g, DType::kBF16));
    EXPECT_FALSE(tells_nans_apart(*g, DType::kF16));
  }
}

std::optional<double> exponent_of(const std::string& lines) {
  const Graph graph = parse_hlo(
      "HloModule m\nENTRY e {\n  x = f32[2,3] parameter(0)\n" + lines + "  ROOT r = f32[2,3] power(x, y)\n}",
      "test");
  const Computation& entry = graph.entry_computation();
  return one_integer(source_of(entry, entry.node(entry.root).operands[1]));
}

TEST(OneInteger, IsFoundBehindBroadcastsAndConversions) {
  EXPECT_EQ(exponent_of("  c = f32[] constant(2)\n  y = f32[2,3] broadcast(c), dimensions={}\n"), 2);
  EXPECT_EQ(exponent_of("  c = s32[] constant(-3)\n  b = s32[2,3] broadcast(c), dimensions={}\n"
                        "  y = f32[2,3] convert(b)\n"),
            -3);
  EXPECT_EQ(exponent_of("  y = f32[2,3] constant({{4, 4, 4}, {4, 4, 4}})\n"), 4);
  EXPECT_EQ(exponent_of("  y = f32[2,3] constant({{4, 4, 4}, {4, 5, 4}})\n"), std::nullopt);
  EXPECT_EQ(exponent_of("  c = f32[] constant(0.5)\n  y = f32[2,3] broadcast(c), dimensions={}\n"),
            std::nullopt);
  EXPECT_EQ(exponent_of("  y = f32[2,3] negate(x)\n"), std::nullopt);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
