#include "analysis/facts/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/at.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kSum =
    "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n";

/// A model and what a compiler made of it.
struct Pair {
  Pair(const std::string& before, const std::string& after)
      : model(canonicalize(parse_hlo("HloModule m\n" + std::string(kSum) + before, "before.hlo"))),
        optimised(canonicalize(parse_hlo("HloModule m\n" + std::string(kSum) + after, "after.hlo"))),
        links(link_graphs(model, optimised)) {}

  /// The op of the optimised module that gives the value of the model's; "": none.
  std::string now(const std::string& op) const {
    const NodeId id = links.origins.now[at(model.entry_computation().find(op))];
    return id == kNoNode ? "" : optimised.entry_computation().node(id).name;
  }
  std::vector<std::string> of(const std::string& op) const {
    std::vector<std::string> names;
    for (const NodeId id : links.origins.of[at(optimised.entry_computation().find(op))])
      names.push_back(model.entry_computation().node(id).name);
    return names;
  }
  std::string gone(const std::string& op) const {
    const auto found = links.gone.find(model.entry_computation().find(op));
    return found == links.gone.end() ? "" : found->second;
  }

  Graph model, optimised;
  GraphLinks links;
};

TEST(Link, EqualComputationsGiveEqualValuesWhateverTheirNamesShapesAndLayouts) {
  const Pair pair(
      "ENTRY e { x = f32[1,4,8] parameter(0)  y = f32[8] parameter(1)  z = f32[] constant(0)\n"
      "  r = f32[1,8] reshape(y)  wide = f32[1,4,8] broadcast(r), dimensions={0,2}\n"
      "  add.1 = f32[1,4,8] add(x, wide)  sum.1 = f32[1,4] reduce(add.1, z), dimensions={2}, to_apply=sum\n"
      "  ROOT neg.1 = f32[1,4] negate(sum.1) }",
      "ENTRY e { p = f32[1,4,8] parameter(0)  q = f32[8] parameter(1)  c = f32[] constant(0)\n"
      "  flat = f32[4,8] bitcast(p)  b = f32[4,8] broadcast(q), dimensions={1}\n"
      "  neg.1 = f32[4,8] add(b, flat)  s = f32[4] reduce(neg.1, c), dimensions={1}, to_apply=sum\n"
      "  n = f32[4] negate(s)  ROOT out = f32[1,4] bitcast(n) }");
  EXPECT_EQ(pair.now("add.1"), "neg.1");  // whatever else is called so in the model
  EXPECT_EQ(pair.now("sum.1"), "s");
  EXPECT_EQ(pair.now("neg.1"), "n");
  EXPECT_EQ(pair.now("wide"), "b");
  EXPECT_EQ(pair.now("r"), "q");
  EXPECT_THAT(pair.links.gone, IsEmpty());
  EXPECT_THAT(pair.links.own, IsEmpty());
}

TEST(Link, WhatChangesNothingAndNumbersOfNumbersAreNoValuesOfTheirOwn) {
  const Pair pair(
      "ENTRY e { x = f32[8] parameter(0)  y = f32[6] parameter(1)  zero = f32[] constant(0)  one = s32[] "
      "constant(1)\n"
      "  zeros = f32[8] broadcast(zero), dimensions={}  less = f32[8] subtract(x, zeros)\n"
      "  more = f32[8] add(zeros, less)  e1 = f32[8] exponential(more)\n"
      "  few = s32[3] broadcast(one), dimensions={}  wide = s32[1] slice(few), slice={[1:2]}  c = f32[1] "
      "convert(wide)\n"
      "  r = f32[] reshape(c)  ones = f32[8] broadcast(r), dimensions={}  same = f32[8] multiply(e1, ones)\n"
      "  quotient = f32[8] divide(same, ones)  from = f32[8] subtract(zeros, quotient)\n"
      "  p = f32[8] pad(y, r), padding=1_1  ROOT t = (f32[8], f32[8]) tuple(from, p) }",
      "ENTRY e { x = f32[8] parameter(0)  y = f32[6] parameter(1)  one = f32[] constant(1)  zero = f32[] "
      "constant(0)\n"
      "  zeros = f32[8] broadcast(zero), dimensions={}  e2 = f32[8] exponential(x)\n"
      "  from = f32[8] subtract(zeros, e2)  p2 = f32[8] pad(y, one), padding=1_1\n"
      "  ROOT t = (f32[8], f32[8]) tuple(from, p2) }");
  EXPECT_EQ(pair.now("e1"), "e2");
  EXPECT_EQ(pair.now("quotient"), "e2");
  EXPECT_EQ(pair.now("from"), "from");  // from zero is not without it
  EXPECT_EQ(pair.now("p"), "p2");
  EXPECT_THAT(pair.gone("ones"), HasSubstr("folded"));
}

TEST(Link, RewrittenOpsAreFoundByOpNameAndWhatTheyRead) {
  const Pair pair(
      "ENTRY e { x = f32[8] parameter(0)  y = f32[8] parameter(1)  c = f32[] constant(4)\n"
      "  four = f32[8] broadcast(c), dimensions={}\n"
      "  d1 = f32[8] divide(x, four), metadata={op_name=\"f/div\"}\n"
      "  d2 = f32[8] divide(y, four), metadata={op_name=\"f/div\"}\n"
      "  e1 = f32[8] exponential(d1)  e2 = f32[8] exponential(d2)  ROOT t = (f32[8], f32[8]) tuple(e1, e2) }",
      "ENTRY e { x = f32[8] parameter(0)  y = f32[8] parameter(1)  c = f32[] constant(0.25)\n"
      "  quarter = f32[8] broadcast(c), dimensions={}\n"
      "  m2 = f32[8] multiply(y, quarter), metadata={op_name=\"f/div\"}\n"
      "  m1 = f32[8] multiply(x, quarter), metadata={op_name=\"f/div\"}\n"
      "  a = f32[8] exponential(m1)  b = f32[8] exponential(m2)  ROOT t = (f32[8], f32[8]) tuple(a, b) }");
  EXPECT_EQ(pair.now("d1"), "m1");
  EXPECT_EQ(pair.now("d2"), "m2");
  EXPECT_EQ(pair.now("e1"), "a");
  EXPECT_EQ(pair.now("e2"), "b");
}

TEST(Link, CopiesAreFoundByTheNameTheyAreMadeOf) {
  // Both read the same and have one op_name: what the copy is called tells which it is.
  const std::string model =
      "ENTRY e { x = f32[8] parameter(0)  c = f32[] constant(3)  k = f32[8] broadcast(c), dimensions={}\n"
      "  pow.7 = f32[8] power(x, k), metadata={op_name=\"f/p\"}\n"
      "  pow.9 = f32[8] power(k, x), metadata={op_name=\"f/p\"}\n"
      "  ROOT a = f32[8] add(pow.7, pow.9) }";
  const Pair pair(
      model,
      "ENTRY e { x = f32[8] parameter(0)  c = f32[] constant(2.5)  k = f32[8] broadcast(c), dimensions={}\n"
      "  pow.9.clone.1 = f32[8] power(k, x), metadata={op_name=\"f/p\"}\n"
      "  pow.7.3 = f32[8] power(x, k), metadata={op_name=\"f/p\"}\n"
      "  ROOT a = f32[8] add(pow.7.3, pow.9.clone.1) }");
  EXPECT_EQ(pair.now("pow.7"), "pow.7.3");
  EXPECT_EQ(pair.now("pow.9"), "pow.9.clone.1");
}

TEST(Link, WhereSeveralWouldDoNothingIsGuessed) {
  const Pair pair(
      "ENTRY e { x = f32[8] parameter(0)  c = f32[] constant(3)  k = f32[8] broadcast(c), dimensions={}\n"
      "  p = f32[8] power(x, k), metadata={op_name=\"f/p\"}  q = f32[8] power(k, x), "
      "metadata={op_name=\"f/p\"}\n"
      "  ROOT a = f32[8] add(p, q) }",
      "ENTRY e { x = f32[8] parameter(0)  c = f32[] constant(2.5)  k = f32[8] broadcast(c), dimensions={}\n"
      "  other = f32[8] atan2(x, k), metadata={op_name=\"f/p\"}  ROOT a = f32[8] negate(other) }");
  EXPECT_EQ(pair.now("p"), "");
  EXPECT_EQ(pair.now("q"), "");
  EXPECT_EQ(pair.now("a"), "a");  // the result
}

TEST(Link, AnotherConstantIsAnotherValue) {
  const Pair pair(
      "ENTRY e { i = s32[] parameter(0)  eight = s32[] constant(8)  one = s32[] constant(1)\n"
      "  a = s32[] subtract(eight, i), metadata={op_name=\"jit(f)/sub\"}\n"
      "  b = s32[] subtract(a, one), metadata={op_name=\"jit(f)/sub\"}\n"
      "  c = s32[] negate(b)  ROOT d = s32[] multiply(c, c) }",
      "ENTRY e { p = s32[] parameter(0)  seven = s32[] constant(7)\n"
      "  s = s32[] subtract(seven, p), metadata={op_name=\"jit(f)/sub\"}\n"
      "  n = s32[] negate(s)  ROOT m = s32[] multiply(n, n) }");
  EXPECT_EQ(pair.now("a"), "");
  EXPECT_NE(pair.now("b"), "p");
  EXPECT_EQ(pair.now("d"), "m");
}

TEST(Link, WhatACompilerPutsBetweenStandsForWhatWasThere) {
  // Three products by one input became one; a following addition was taken into it.
  const Pair pair(
      "ENTRY e { x = f32[4,8] parameter(0)  u = f32[8,2] parameter(1)  v = f32[8,3] parameter(2)\n"
      "  du = f32[4,2] dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
      "metadata={op_name=\"u\"}\n"
      "  dv = f32[4,3] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
      "metadata={op_name=\"v\"}\n"
      "  eu = f32[4,2] exponential(du)  ev = f32[4,3] exponential(dv)\n"
      "  ROOT t = (f32[4,2], f32[4,3]) tuple(eu, ev) }",
      "ENTRY e { x = f32[4,8] parameter(0)  u = f32[8,2] parameter(1)  v = f32[8,3] parameter(2)\n"
      "  w = f32[8,5] concatenate(u, v), dimensions={1}\n"
      "  both = f32[4,5] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
      "metadata={op_name=\"u\"}\n"
      "  su = f32[4,2] slice(both), slice={[0:4],[0:2]}  sv = f32[4,3] slice(both), slice={[0:4],[2:5]}\n"
      "  eu = f32[4,2] exponential(su)  ev = f32[4,3] exponential(sv)\n"
      "  ROOT t = (f32[4,2], f32[4,3]) tuple(eu, ev) }");
  EXPECT_THAT(pair.of("both"), ElementsAre("du", "dv"));
  EXPECT_EQ(pair.now("eu"), "eu");
  EXPECT_THAT(pair.links.gone, IsEmpty());
  EXPECT_EQ(pair.links.own.size(), 3u);  // concatenate and slices are the compiler's own
}

TEST(Link, WhatIsFoldedOrNotThereIsSaid) {
  const Pair pair(
      "ENTRY e { x = f32[8] parameter(0)  i = s32[8] iota(), iota_dimension=0  f = f32[8] convert(i)\n"
      "  c = f32[8] cosine(f)  ROOT a = f32[8] add(x, c) }",
      "ENTRY e { x = f32[8] parameter(0)  k = f32[8] constant({1, 0.5, -0.4, -1, -0.65, 0.28, 0.96, 0.75})\n"
      "  ROOT a = f32[8] add(x, k) }");
  EXPECT_EQ(pair.now("a"), "a");
  EXPECT_THAT(pair.gone("c"), HasSubstr("folded"));
  EXPECT_THAT(pair.gone("i"), HasSubstr("folded"));
}

TEST(Link, ModulesOfOneModelComputeTheSame) {
  const Pair pair(
      "ENTRY e { x = f32[8] parameter(0)  y = f32[8] parameter(1)  a = f32[8] add(x, y)  "
      "ROOT n = f32[8] negate(a) }",
      "ENTRY e { q = f32[8] parameter(1)  p = f32[8] parameter(0)  s = f32[8] add(q, p)  "
      "ROOT m = f32[8] subtract(p, s) }");
  const std::vector<NodeId> equal = equal_values(pair.model, pair.optimised);
  const auto name = [&](const char* op) {
    const NodeId id = equal[at(pair.model.entry_computation().find(op))];
    return id == kNoNode ? "" : pair.optimised.entry_computation().node(id).name;
  };
  EXPECT_EQ(name("x"), "p");
  EXPECT_EQ(name("a"), "s");
  EXPECT_EQ(name("n"), "");
}

TEST(Link, LayoutsOfResultsAreNoPartOfWhatIsComputed) {
  const Pair pair(
      "ENTRY e { x = f32[2,3] parameter(0)  n = f32[2,3] negate(x)  ROOT t = (f32[2,3]{1,0}) tuple(n) }",
      "ENTRY e { x = f32[2,3] parameter(0)  n = f32[2,3]{0,1} negate(x)  ROOT t = (f32[2,3]{0,1}) tuple(n) "
      "}");
  EXPECT_EQ(equal_values(pair.model, pair.optimised)[at(pair.model.entry_computation().root)],
            pair.optimised.entry_computation().root);
}

TEST(Link, DimensionsOfOneElementAreNoPartOfALoopsState) {
  const auto scan = [](const char* bias) {
    return fmt::format(
        "body {{ s = (s32[], f32[4,8], {0}) parameter(0)  i = s32[] get-tuple-element(s), index=0\n"
        "  h = f32[4,8] get-tuple-element(s), index=1  b = {0} get-tuple-element(s), index=2\n"
        "  one = s32[] constant(1)  j = s32[] add(i, one)  flat = f32[8] reshape(b)\n"
        "  w = f32[4,8] broadcast(flat), dimensions={{1}}\n"
        "  t = f32[4,8] add(h, w)  ROOT r = (s32[], f32[4,8], {0}) tuple(j, t, b) }}\n"
        "cond {{ s = (s32[], f32[4,8], {0}) parameter(0)  i = s32[] get-tuple-element(s), index=0\n"
        "  n = s32[] constant(5)  ROOT l = pred[] compare(i, n), direction=LT }}\n"
        "ENTRY e {{ x = f32[4,8] parameter(0)  y = f32[8] parameter(1)  z = s32[] constant(0)\n"
        "  v = {0} reshape(y)  st = (s32[], f32[4,8], {0}) tuple(z, x, v)\n"
        "  loop = (s32[], f32[4,8], {0}) while(st), condition=cond, body=body\n"
        "  ROOT out = f32[4,8] get-tuple-element(loop), index=1 }}\n",
        bias);
  };
  const Pair pair(scan("f32[1,8]"), scan("f32[8]"));
  EXPECT_NE(equal_values(pair.model, pair.optimised)[at(pair.model.entry_computation().root)], kNoNode);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
