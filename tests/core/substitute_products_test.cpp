// fuse-products: dots that a planner names become one.
#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/passes/passes.h"
#include "core/substitute/derivation.h"
#include "core/substitute/rule.h"
#include "tests/core/substitute_support.h"

namespace stitchwork {
namespace TEST_FILE {

using rewriting::Derivation;
using rewriting::Place;
using ::testing::HasSubstr;

Graph entry_graph(const std::string& body) {
  return canonicalize(parse_hlo("HloModule m\nENTRY main {\n" + body + "\n}\n", "test.hlo"));
}

/// x [4,8] and y [4,6] with two weights each; sums of both, one of them with a third summand.
Graph two_gates() {
  return entry_graph(R"(
  x = f32[4,8] parameter(0)
  y = f32[4,6] parameter(1)
  w1 = f32[8,5] parameter(2)
  w2 = f32[8,3] parameter(3)
  v1 = f32[6,5] parameter(4)
  v2 = f32[6,3] parameter(5)
  b = f32[4,5] parameter(6)
  xw1 = f32[4,5] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  yv1 = f32[4,5] dot(y, v1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  xw2 = f32[4,3] dot(x, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  yv2 = f32[4,3] dot(y, v2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  xb = f32[4,5] add(xw1, b)
  z1 = f32[4,5] add(xb, yv1)
  z2 = f32[4,3] add(xw2, yv2)
  t1 = f32[4,5] tanh(z1)
  ROOT r = (f32[4,5], f32[4,3], f32[4,5]) tuple(t1, z2, z1))");
}

int dots(const Graph& graph) {
  return static_cast<int>(std::ranges::count(graph.entry_computation().nodes, Op::kDot, &Node::op));
}

Graph joined(const Graph& model, std::vector<Place> at) {
  Derivation derivation(model);
  derivation.apply_at(rewriting::rule_named("fuse-products"), "main", std::move(at));
  validate(derivation.result().graph);
  testing::expect_consistent(derivation.result());
  EXPECT_EQ(to_text(rewriting::replay(model, derivation.result().steps).graph),
            to_text(derivation.result().graph));
  return derivation.result().graph;
}

void expect_same_values(const Graph& model, const Graph& graph) {
  const std::vector<Literal> inputs = testing::whole_inputs(model, 3);
  EXPECT_EQ(testing::difference(evaluate(graph, inputs), evaluate(model, inputs)), "");
}

std::string refusal(const Graph& model, std::vector<Place> at) {
  try {
    joined(model, std::move(at));
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(FuseProducts, SumsAndCommonOperandsAreOneDot) {
  const Graph model = two_gates();
  const Graph all = joined(model, {{"z1", "xw1", "yv1", "z2", "xw2", "yv2"}});
  EXPECT_EQ(dots(all), 1);
  expect_same_values(model, all);  // whole numbers: sums are exact in any order
  const auto one = std::ranges::find(all.entry_computation().nodes, Op::kDot, &Node::op);
  EXPECT_EQ(to_text(one->shape), "f32[4,8]");
  EXPECT_EQ(all.entry_computation().node(one->operands[0]).shape.dims, (std::vector<std::int64_t>{4, 14}));
}

TEST(FuseProducts, RungsByThemselvesLeaveTheAdds) {
  const Graph model = two_gates();
  const Graph rungs = joined(model, {{"xw1", "xw2"}, {"yv1", "yv2"}});
  EXPECT_EQ(dots(rungs), 2);
  expect_same_values(model, rungs);
  const Graph one_sum = joined(model, {{"z1", "xw1", "yv1"}});
  EXPECT_EQ(dots(one_sum), 3);
  expect_same_values(model, one_sum);
}

TEST(FuseProducts, TransposesThatAloneReadADotBelongToIt) {
  const Graph model = entry_graph(R"(
  d0 = f32[4,6] parameter(0)
  d1 = f32[5,6] parameter(1)
  h0 = f32[4,3] parameter(2)
  h1 = f32[5,3] parameter(3)
  g0 = f32[6,3] dot(d0, h0), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  g1 = f32[6,3] dot(d1, h1), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  t0 = f32[3,6] transpose(g0), dimensions={1,0}
  t1 = f32[3,6] transpose(g1), dimensions={1,0}
  s = f32[3,6] add(t1, t0)
  ROOT r = (f32[3,6]) tuple(s))");
  const Graph all = joined(model, {{"s", "g0", "g1"}});
  EXPECT_EQ(dots(all), 1);
  EXPECT_EQ(all.entry_computation().size(), 8);  // four arrays, two appended, the dot, the tuple
  expect_same_values(model, all);
}

TEST(FuseProducts, WhatIsNoGridIsRefused) {
  const Graph model = two_gates();
  EXPECT_THAT(refusal(model, {{"xw1", "yv2"}}), HasSubstr("does not hold there"));        // nothing in common
  EXPECT_THAT(refusal(model, {{"z1", "xw1", "xw2"}}), HasSubstr("does not hold there"));  // xw2 is not summed
  EXPECT_THAT(refusal(model, {{"z1", "xw1", "yv1", "z2", "xw2"}}), HasSubstr("does not hold there"));
  EXPECT_THAT(refusal(model, {{"xw1"}}), HasSubstr("does not hold there"));
  EXPECT_THAT(refusal(model, {{"xw1", "xw1"}}), HasSubstr("does not hold there"));
  EXPECT_THAT(refusal(model, {{"t1", "xw1"}}), HasSubstr("does not hold there"));
  EXPECT_THAT(refusal(model, {{"xw1", "none"}}), HasSubstr("there is no op 'none'"));
  // One is computed from the other.
  const Graph chain = entry_graph(R"(
  x = f32[4,4] parameter(0)
  a = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[4,4] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[4,4], f32[4,4]) tuple(a, b))");
  EXPECT_THAT(refusal(chain, {{"a", "b"}}), HasSubstr("its places wait for each other"));
}

TEST(FuseProducts, FindsNoPlaceByItself) {
  Derivation derivation(two_gates());
  EXPECT_EQ(derivation.apply_everywhere(rewriting::rule_named("fuse-products")), 0);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
