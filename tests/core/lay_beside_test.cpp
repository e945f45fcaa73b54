// Concatenations in place: where arrays lie, and what cannot.
#include "core/passes/lay_beside.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/substitute/derivation.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;

rewriting::RewrittenGraph in_place(const Graph& graph, const rewriting::Place& concats) {
  rewriting::Derivation derivation(graph);
  derivation.apply_at(rewriting::rule_named("concat-in-place"), graph.entry_computation().name, {concats});
  return derivation.result();
}

const PlacedArray& placed(const rewriting::RewrittenGraph& graph, const std::string& op) {
  const Computation& computation = graph.graph.entry_computation();
  const NodeId id = computation.find(op);
  EXPECT_NE(id, kNoNode) << op;
  SW_CHECK(id != kNoNode && computation.node(id).attrs.placed != nullptr, "{}", op);
  return *computation.node(id).attrs.placed;
}

std::string refusal(const Graph& graph, const rewriting::Place& concats) {
  try {
    in_place(graph, concats);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

/// Two steps of x beside h, and all x and all h one below the other beside each other.
Graph steps() {
  return testing::graph_of(R"(
  a = f32[2,3] parameter(0)
  b = f32[2,3] parameter(1)
  w = f32[8,4] parameter(2)
  zero = f32[] constant(0)
  h0 = f32[2,5] broadcast(zero), dimensions={}
  x0 = f32[2,3] tanh(a)
  x1 = f32[2,3] tanh(b)
  s0 = f32[2,8] concatenate(x0, h0), dimensions={1}
  z0 = f32[2,4] dot(s0, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  five = f32[2,5] pad(z0, zero), padding=0_0x0_1
  h1 = f32[2,5] tanh(five)
  s1 = f32[2,8] concatenate(x1, h1), dimensions={1}
  z1 = f32[2,4] dot(s1, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  xs = f32[4,3] concatenate(x0, x1), dimensions={0}
  hs = f32[4,5] concatenate(h0, h1), dimensions={0}
  all = f32[4,8] concatenate(xs, hs), dimensions={1}
  g = f32[8,8] dot(all, all), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT r = (f32[2,4], f32[8,8]) tuple(z1, g))");
}

TEST(Beside, ArraysAreBlocksOfOneMatrix) {
  const Graph graph = steps();
  const rewriting::RewrittenGraph laid = in_place(graph, {"s0", "s1", "xs", "hs", "all"});
  EXPECT_EQ(placed(laid, "x0").offset, 0);
  EXPECT_EQ(placed(laid, "x1").offset, 16);
  EXPECT_EQ(placed(laid, "h1").offset, 19);
  EXPECT_THAT(placed(laid, "h1").extents, ElementsAre(2, 8));
  EXPECT_EQ(placed(laid, "h1").cols, 5);
  EXPECT_EQ(to_text(placed(laid, "h1").matrix), "f32[4,8]");
  EXPECT_EQ(placed(laid, "s0.concat-in-place.1").offset, 16);
  EXPECT_EQ(placed(laid, "s0.concat-in-place.4").owner, placed(laid, "x0").owner);
  // One array of zeros for both concatenations that have it there.
  int numbers = 0;
  for (const Node& node : laid.graph.entry_computation().nodes)
    numbers += node.op == Op::kBroadcast && node.attrs.placed != nullptr ? 1 : 0;
  EXPECT_EQ(numbers, 1);
  const std::vector<Literal> inputs = generate_inputs(graph, 0);
  EXPECT_EQ(evaluate(laid.graph, inputs), evaluate(graph, inputs));
  EXPECT_EQ(sha256_of(rewriting::replay(graph, laid.steps)), sha256_of(laid));
}

TEST(Beside, TheLargestConcatenationsComeFirst) {
  const Graph graph = testing::graph_of(R"(
  a = f32[2,4] parameter(0)
  b = f32[2,4] parameter(1)
  c = f32[2,4] parameter(2)
  p = f32[2,4] tanh(a)
  q = f32[2,4] tanh(b)
  s = f32[2,4] tanh(c)
  right = f32[2,8] concatenate(p, q), dimensions={1}
  below = f32[6,4] concatenate(p, q, s), dimensions={0}
  ROOT r = (f32[2,8], f32[6,4]) tuple(right, below))");
  const Computation& entry = graph.entry_computation();
  EXPECT_THAT(concats_in_place(entry, {entry.find("right"), entry.find("below")}),
              ElementsAre(entry.find("below")));
  EXPECT_NE(refusal(graph, {"right", "below"}), "");
  EXPECT_EQ(refusal(graph, {"right"}), "");
}

int copies(const rewriting::RewrittenGraph& graph) {
  int count = 0;
  for (const Node& node : graph.graph.entry_computation().nodes)
    count += node.op == Op::kConcatenate && node.operands.size() == 1 ? 1 : 0;
  return count;
}

TEST(Beside, WhatWantsAnArrayDenseReadsItDense) {
  const auto of = [](const std::string& more, const std::string& result) {
    return testing::graph_of(R"(
  a = f32[2,4] parameter(0)
  b = f32[2,4] parameter(1)
  p = f32[2,4] tanh(a)
  q = f32[2,4] tanh(b)
)" + more +
                             " s = f32[2,8] concatenate(p, q), dimensions={1}\n ROOT r = " + result);
  };
  EXPECT_EQ(copies(in_place(of("", "(f32[2,8]) tuple(s)"), {"s"})), 0);
  const Graph copied = of(" k = f32[2,4] copy(p)\n", "(f32[2,8], f32[2,4]) tuple(s, k)");
  EXPECT_EQ(copies(in_place(copied, {"s"})), 1);
  const Graph renamed =
      of(" v = f32[8] reshape(p)\n k = f32[] dot(v, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n",
         "(f32[2,8], f32[]) tuple(s, k)");
  EXPECT_EQ(copies(in_place(renamed, {"s"})), 1) << "under another name it is no matrix of rows";
  const Graph mixed = testing::graph_of(R"(
  a = f32[2,4] parameter(0)
  b = f32[2,4] parameter(1)
  q = f32[2,4] tanh(b)
  s = f32[2,8] concatenate(a, q), dimensions={1}
  ROOT r = (f32[2,8]) tuple(s))");
  const rewriting::RewrittenGraph laid = in_place(mixed, {"s"});
  EXPECT_EQ(copies(laid), 0);
  const Computation& entry = laid.graph.entry_computation();
  EXPECT_EQ(entry.node(placed(laid, "q").owner).op, Op::kParameter)
      << "the matrix is there before the first step";
  for (const Graph& graph : {copied, renamed, mixed}) {
    const std::vector<Literal> inputs = generate_inputs(graph, 0);
    EXPECT_EQ(evaluate(in_place(graph, {"s"}).graph, inputs), evaluate(graph, inputs));
  }
}

TEST(Beside, WhatCannotBeIsRefused) {
  const Graph twice = testing::graph_of(R"(
  b = f32[2,4] parameter(0)
  q = f32[2,4] tanh(b)
  s = f32[2,8] concatenate(q, q), dimensions={1}
  ROOT r = (f32[2,8]) tuple(s))");
  EXPECT_NE(refusal(twice, {"s"}), "");
  const Graph products = testing::graph_of(R"(
  b = f32[4,4] parameter(0)
  p = f32[4,4] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q = f32[4,4] dot(b, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  s = f32[4,8] concatenate(p, q), dimensions={1}
  ROOT r = (f32[4,8]) tuple(s))");
  EXPECT_NE(refusal(products, {"s"}), "") << "all of it would be copied";
}

TEST(Beside, RoomBetweenBlocksHasALimit) {
  // a | b, then b over c and c | d: a staircase. Of three steps half of the matrix is empty, of four more.
  const Graph graph = testing::graph_of(R"(
  x = f32[4,4] parameter(0)
  a = f32[4,4] tanh(x)
  b = f32[4,4] exponential(x)
  c = f32[4,4] sine(x)
  d = f32[4,4] cosine(x)
  e = f32[4,4] sqrt(x)
  f = f32[4,4] cbrt(x)
  g = f32[4,4] negate(x)
  h = f32[4,4] floor(x)
  ab = f32[4,8] concatenate(a, b), dimensions={1}
  bc = f32[8,4] concatenate(b, c), dimensions={0}
  cd = f32[4,8] concatenate(c, d), dimensions={1}
  de = f32[8,4] concatenate(d, e), dimensions={0}
  ef = f32[4,8] concatenate(e, f), dimensions={1}
  fg = f32[8,4] concatenate(f, g), dimensions={0}
  gh = f32[4,8] concatenate(g, h), dimensions={1}
  ROOT r = (f32[4,8], f32[8,4], f32[4,8], f32[8,4], f32[4,8], f32[8,4], f32[4,8])
      tuple(ab, bc, cd, de, ef, fg, gh))");
  EXPECT_EQ(refusal(graph, {"ab", "bc", "cd"}), "");
  EXPECT_EQ(refusal(graph, {"ab", "bc", "cd", "de", "ef"}), "") << "6 of 12 blocks are used";
  EXPECT_NE(refusal(graph, {"ab", "bc", "cd", "de", "ef", "fg", "gh"}), "") << "8 of 20 blocks are used";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
