// Floats of 8 bits and integers of fewer, written as arithmetic on their bits, against the evaluator's own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "core/evaluate/evaluator.h"
#include "core/graph/graph.h"
#include "core/graph/small_float.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/moved.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace TEST_FILE {

constexpr DType kFloats[] = {DType::kF8E8M0FNU,  DType::kF8E3M4,        DType::kF8E4M3, DType::kF8E4M3FN,
                             DType::kF8E4M3FNUZ, DType::kF8E4M3B11FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ};
constexpr DType kIntegers[] = {DType::kS1, DType::kS2, DType::kS4, DType::kU1, DType::kU2, DType::kU4};

Graph parse(const std::string& body) {
  return parse_hlo("HloModule m\nENTRY e {\n" + body + "\n}\n", "test.hlo");
}

/// `convert` of an array as it is and as `expand` writes it: equal bytes, but for what NaN's are.
void expect_same_conversion(const Literal& input, DType to) {
  const auto shape = [&](DType type) {
    return fmt::format("{}[{}]", name(type), input.shape.elements_count());
  };
  const Graph graph =
      parse(fmt::format("x = {} parameter(0)\n ROOT r = {} convert(x)", shape(input.shape.dtype), shape(to)));
  const Graph expanded = expand(graph);
  validate(expanded);
  for (const Node& node : expanded.entry_computation().nodes)
    if (node.op == Op::kConvert) {
      const auto bytes = [&](NodeId id) {
        return byte_size(expanded.entry_computation().node(id).shape.dtype);
      };
      EXPECT_TRUE(is_executable(node.shape.dtype) || bytes(node.operands[0]) == 1) << to_text(graph);
    }
  const Literal right = evaluate(graph, {&input, 1}).at(0), given = evaluate(expanded, {&input, 1}).at(0);
  for (std::int64_t i = 0; i < input.shape.elements_count(); ++i) {
    if (is_floating(to) && std::isnan(right.get_double(i))) {
      EXPECT_TRUE(std::isnan(given.get_double(i))) << name(input.shape.dtype) << " " << input.get_double(i);
      continue;
    }
    ASSERT_EQ(right.get_double(i), given.get_double(i))
        << name(input.shape.dtype) << " " << input.get_double(i) << " as " << name(to);
    ASSERT_EQ(std::signbit(right.get_double(i)), std::signbit(given.get_double(i)))
        << name(input.shape.dtype) << " " << input.get_double(i) << " as " << name(to);
  }
}

/// All values of a type of at most 8 bits.
Literal all_values(DType type) {
  const std::int64_t count = std::int64_t{1} << bit_width(type);
  Literal values = Literal::zeros(Shape::array(type, {count}));
  for (std::int64_t i = 0; i < count; ++i)
    if (is_floating(type))
      values.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i);
    else
      values.set_int(i, i);
  return values;
}

/// Every value of the small float, what lies halfway to the next, both one step of `type` aside, and bits at
/// random.
Literal hard_values(DType small, DType type) {
  std::vector<double> values = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""), 1e-45, 5.9e-39, 1e-38, 3.4e38};
  const Literal all = all_values(small);
  for (std::int64_t i = 0; i < 256; ++i)
    for (std::int64_t j : {i, std::min<std::int64_t>(255, i + 1)}) {
      const double half = (all.get_double(i) + all.get_double(j)) / 2;
      const auto step = [&](double to) {
        return type == DType::kF64 ? std::nextafter(half, to)
                                   : std::nextafter(static_cast<float>(half), static_cast<float>(to));
      };
      values.insert(values.end(), {half, step(HUGE_VAL), step(-HUGE_VAL), 2 * half});
    }
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  Literal literal = Literal::zeros(Shape::array(type, {static_cast<std::int64_t>(values.size())}));
  for (std::size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<std::int64_t>(i), values[i]);
  return literal;
}

TEST(ExpandSmall, EveryValueOfASmallFloatBecomesItself) {
  for (const DType type : kFloats)
    for (const DType to : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kS32, DType::kF8E5M2})
      if (to != type) expect_same_conversion(all_values(type), to);
}

TEST(ExpandSmall, FloatsRoundToSmallOnesAsTheirEncoderDoes) {
  for (const DType type : kFloats)
    for (const DType from : {DType::kF32, DType::kF64}) expect_same_conversion(hard_values(type, from), type);
  for (const DType from : {DType::kF16, DType::kBF16})
    expect_same_conversion(hard_values(DType::kF8E4M3FN, from), DType::kF8E4M3FN);
}

TEST(ExpandSmall, SmallIntegersKeepTheirLowBitsAndFloatsSaturate) {
  for (const DType type : kIntegers) {
    for (const DType to : {DType::kS8, DType::kU8, DType::kS32, DType::kU64, DType::kF32, DType::kPred})
      expect_same_conversion(all_values(type), to);
    for (const DType from : {DType::kS32, DType::kU8, DType::kS64, DType::kF32, DType::kF16}) {
      Literal values = Literal::zeros(Shape::array(from, {64}));
      for (std::int64_t i = 0; i < 64; ++i) values.set_double(i, 0.75 * static_cast<double>(i - 20));
      expect_same_conversion(values, type);
    }
  }
}

TEST(ExpandSmall, ArithmeticIsWiderAndRoundsOnce) {
  const Graph graph = parse(R"(
    a = f8e4m3fn[3] parameter(0)
    b = f8e4m3fn[3] parameter(1)
    c = f8e4m3fn[3] add(a, b)
    i = s4[3] convert(c)
    j = s4[3] add(i, i)
    k = pred[3] compare(a, b), direction=LT
    ROOT r = (f8e4m3fn[3], s4[3], pred[3]) tuple(c, j, k))");
  const auto numbers = [](std::vector<double> values) {
    Literal literal = Literal::zeros(Shape::array(DType::kF8E4M3FN, {3}));
    for (std::int64_t i = 0; i < 3; ++i) literal.set_double(i, values[static_cast<std::size_t>(i)]);
    return literal;
  };
  const std::vector<Literal> inputs = {numbers({1, 3.5, -2}), numbers({0.0625, 2, 13})};
  const std::vector<Literal> out = evaluate(canonicalize(graph), inputs);
  // 1.0625 is halfway between 1 and 1.125, whose last bit is odd; 5 + 5 and 7 + 7 wrap around modulo 16.
  const double sums[] = {1, 5.5, 11};
  const std::int64_t twice[] = {2, -6, -2};
  const std::int64_t less[] = {0, 0, 1};
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(out[0].get_double(i), sums[i]);
    EXPECT_EQ(out[1].get_int(i), twice[i]);
    EXPECT_EQ(out[2].get_int(i), less[i]);
  }
}

TEST(ExpandSmall, WhatWaitsForATokenIsMoved) {
  const Graph graph = canonicalize(parse(R"(
    a = f8e4m3fn[4] parameter(0)
    t = token[] after-all()
    b = f8e4m3fn[4] add-dependency(a, t)
    ROOT r = f32[4] convert(b))"));
  const auto& nodes = graph.entry_computation().nodes;
  const auto waits = std::ranges::find(nodes, Op::kAddDependency, &Node::op);
  ASSERT_NE(waits, nodes.end());
  EXPECT_TRUE(is_moved(*waits));
  EXPECT_TRUE(moves(*waits, nodes.at(static_cast<std::size_t>(waits->operands[0]))));
}

TEST(ExpandSmall, CanonicalGraphsStayAsTheyAre) {
  const Graph once = canonicalize(parse(R"(
    a = f8e5m2[4,8] parameter(0)
    b = u4[8,2] parameter(1)
    f = f32[8,2] convert(b)
    g = f8e5m2[8,2] convert(f)
    ROOT d = f8e5m2[4,2] dot(a, g), lhs_contracting_dims={1}, rhs_contracting_dims={0})"));
  EXPECT_EQ(to_text(once), to_text(canonicalize(once)));
  for (const Node& node : once.entry_computation().nodes)
    EXPECT_TRUE(is_executable(node.shape.dtype) || is_moved(node)) << node.name;
}

}  // namespace TEST_FILE
}  // namespace stitchwork
