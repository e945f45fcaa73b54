// The generator of random graphs makes what property tests say they cover, and failures shrink.
#include "tests/support/random_graph.h"

#include <gtest/gtest.h>

#include <set>

#include "core/hlo/hlo_text.h"
#include "tests/support/shrink_hlo.h"

namespace stitchwork {
namespace TEST_FILE {

/// True if no run of dimensions on one side, shorter than all, has as many elements as one of the other side:
/// then no part of the reshape only splits or joins dimensions.
bool does_not_factor(const Shape& from, const Shape& to) {
  std::set<std::int64_t> products;
  std::int64_t all = 1;
  for (std::int64_t d : from.dims) products.insert(all *= d);
  std::int64_t product = 1;
  int common = 0, dims = 0;
  for (std::int64_t d : to.dims) {
    if (d == 1) continue;
    ++dims;
    common += products.contains(product *= d);
  }
  const auto wide = std::count_if(from.dims.begin(), from.dims.end(), [](std::int64_t d) { return d > 1; });
  return all > 0 && common == 1 && dims > 1 && wide > 1;
}

TEST(RandomGraph, EveryOpKindRankAndOddDimensionOccurs) {
  std::map<Op, int> ops;
  std::map<std::size_t, int> ranks;
  std::map<DType, int> types;
  int empty = 0, ones = 0, fan_out = 0, results = 0, odd_reshapes = 0, outer_reductions = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const Graph graph = parse_hlo(testing::random_hlo(seed), "random.hlo");
    const Computation& computation = graph.entry_computation();
    std::map<NodeId, int> users;
    for (const Node& node : computation.nodes) {
      if (node.shape.is_tuple) {
        results += node.operands.size() > 1;
        continue;
      }
      ++ops[node.op];
      ++types[node.shape.dtype];
      ++ranks[node.shape.dims.size()];
      for (std::int64_t d : node.shape.dims) {
        empty += d == 0;
        ones += d == 1;
      }
      for (NodeId operand : node.operands) fan_out += ++users[operand] == 2;
      if (node.op == Op::kReshape)
        odd_reshapes += does_not_factor(computation.node(node.operands[0]).shape, node.shape);
      if (node.op == Op::kReduce)
        outer_reductions += std::find(node.attrs.dimensions.begin(), node.attrs.dimensions.end(), 0) !=
                            node.attrs.dimensions.end();
    }
  }
  for (Op op : {Op::kAdd,     Op::kTanh,         Op::kPower,
                Op::kSelect,  Op::kCompare,      Op::kConvert,
                Op::kClamp,   Op::kBroadcast,    Op::kReduce,
                Op::kReshape, Op::kTranspose,    Op::kSlice,
                Op::kPad,     Op::kReverse,      Op::kConcatenate,
                Op::kGather,  Op::kDynamicSlice, Op::kDynamicUpdateSlice,
                Op::kIota,    Op::kDot})
    EXPECT_GE(ops[op], 20) << def(op).name;
  for (std::size_t rank = 0; rank <= 6; ++rank) EXPECT_GE(ranks[rank], 20) << "rank " << rank;
  for (DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kPred, DType::kS8,
                     DType::kS32, DType::kU8, DType::kU64})
    EXPECT_GE(types[type], 20) << name(type);
  for (int count : {empty, ones, fan_out, results, odd_reshapes, outer_reductions}) EXPECT_GE(count, 20);
}

TEST(RandomGraph, ATextIsTheSameForTheSameSeed) {
  EXPECT_EQ(testing::random_hlo(5), testing::random_hlo(5));
  EXPECT_NE(testing::random_hlo(5), testing::random_hlo(6));
}

TEST(ShrinkHlo, AFailureShrinksToTheOpThatFails) {
  int shrunk = 0;
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    const std::string text = testing::random_hlo(seed);
    if (text.find(" transpose(") == std::string::npos) continue;
    const std::string part = testing::shrink_hlo(
        text, [](const std::string& t) { return t.find(" transpose(") != std::string::npos; });
    const Graph graph = parse_hlo(part, "part.hlo");
    // A parameter or constant, the transpose and the tuple.
    EXPECT_EQ(graph.entry_computation().nodes.size(), 3u) << part;
    ++shrunk;
  }
  EXPECT_GT(shrunk, 10);
}
TEST(ShrinkHlo, AFailureOfTwoResultsTogetherKeepsBoth) {
  const char* text =
      "HloModule m\nENTRY main {\n  v0 = f32[4] parameter(0)\n  v1 = f32[4] tanh(v0)\n  v2 = f32[4] abs(v1)\n"
      "  v3 = f32[4] negate(v0)\n  ROOT result = (f32[4], f32[4], f32[4]) tuple(v1, v2, v3)\n}\n";
  const std::string part = testing::shrink_hlo(text, [](const std::string& t) {
    return t.find("tanh") != std::string::npos && t.find("negate") != std::string::npos;
  });
  EXPECT_EQ(part,
            "HloModule m\nENTRY main {\n  v0 = f32[4] parameter(0)\n  v1 = f32[4] tanh(v0)\n"
            "  v3 = f32[4] negate(v0)\n  ROOT result = (f32[4], f32[4]) tuple(v1, v3)\n}\n");
}
TEST(ShrinkHlo, WhatDoesNotFailInPartsStaysWhole) {
  const std::string text = testing::random_hlo(3);
  EXPECT_EQ(testing::shrink_hlo(text, [&](const std::string& t) { return t == text; }), text);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
