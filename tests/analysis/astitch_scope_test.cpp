#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/astitch_passes.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

using ::testing::ElementsAre;

std::string scope_text(const Graph& graph, int max_ops = 512) {
  const Nodes nodes = node_facts(graph);
  Recorder recorder(false);
  return to_text(nodes, find_scope(nodes, max_ops, recorder));
}

TEST(AstitchScope, Fig7IsOneStitchOp) {
  const Graph graph = dataset("fig7");
  const Nodes nodes = node_facts(graph);
  Recorder recorder(false);
  const Scope scope = find_scope(nodes, 512, recorder);
  ASSERT_EQ(scope.stitch_ops.size(), 1u);
  EXPECT_THAT(names(nodes, scope.stitch_ops[0].outputs), ElementsAre("multiply.1"));
}

TEST(AstitchScope, AnEdgeWithAnotherPathThroughALibraryCallIsNotContracted) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64,64] parameter(0)
    a = f32[64,64] exponential(x)
    d = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT b = f32[64,64] add(a, d)
  })");
  EXPECT_EQ(scope_text(graph), "stitch a -> a\nstitch b -> b\n");
}

TEST(AstitchScope, APathThroughStitchedOpsIsSwallowed) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64,64] parameter(0)
    a = f32[64,64] exponential(x)
    b = f32[64,64] negate(a)
    c = f32[64,64] tanh(b)
    ROOT d = f32[64,64] add(a, c)
  })");
  EXPECT_EQ(scope_text(graph), "stitch a, b, c, d -> d\n");
}

TEST(AstitchScope, IndirectCyclesThroughTwoClustersAreAvoided) {
  // a -> d1 -> b and c -> d2 -> f with b -> c's cluster: no merge may close the circle.
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64,64] parameter(0)
    a = f32[64,64] exponential(x)
    d1 = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    b = f32[64,64] negate(d1)
    c = f32[64,64] add(b, x)
    d2 = f32[64,64] dot(c, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT f = f32[64,64] add(a, d2)
  })");
  EXPECT_EQ(scope_text(graph), "stitch a -> a\nstitch b, c -> c\nstitch f -> f\n");
}

TEST(AstitchScope, MapsAreRepeatedInEveryKernelInsteadOfShared) {
  const Graph graph = parse(R"(ENTRY e {
    bias = f32[64] parameter(0)
    x = f32[64,64] parameter(1)
    wide = f32[64,64] broadcast(bias), dimensions={1}
    a = f32[64,64] add(x, wide)
    d = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT b = f32[64,64] add(d, wide)
  })");
  EXPECT_EQ(scope_text(graph), "stitch a -> a\nstitch b -> b\n");
}

TEST(AstitchScope, AMapThatALibraryCallReadsIsComputed) {
  const Graph graph = parse(R"(ENTRY e {
    bias = f32[64] parameter(0)
    x = f32[64,64] parameter(1)
    wide = f32[64,64] broadcast(bias), dimensions={1}
    ROOT d = f32[64,64] dot(wide, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  })");
  EXPECT_EQ(scope_text(graph), "stitch wide -> wide\n");
}

TEST(AstitchScope, AValueBehindARepeatedMapInsideIsAnOutput) {
  const Graph graph = parse(R"(ENTRY e {
    v = f32[64] parameter(0)
    x = f32[64,64] parameter(1)
    a = f32[64] exponential(v)
    wide = f32[64,64] broadcast(a), dimensions={1}
    d = f32[64,64] dot(wide, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT b = f32[64,64] add(d, wide)
  })");
  EXPECT_EQ(scope_text(graph), "stitch a, wide -> a, wide\nstitch b -> b\n");
}

TEST(AstitchScope, AStitchOpHasAtMostTheOpsAllowed) {
  std::string entry = "ENTRY e {\n v0 = f32[64] parameter(0)\n";
  for (int i = 1; i <= 20; ++i) {
    entry += fmt::format(" {}v{} = f32[64] negate(v{})\n", i == 20 ? "ROOT " : "", i, i - 1);
  }
  const Graph graph = parse(entry + "}");
  const Nodes nodes = node_facts(graph);
  Recorder recorder(true);
  const Scope scope = find_scope(nodes, 8, recorder);
  EXPECT_GE(scope.stitch_ops.size(), 3u);
  for (const StitchOp& op : scope.stitch_ops) EXPECT_LE(op.members.size(), 8u);
  const auto decisions = recorder.take();
  EXPECT_TRUE(std::any_of(decisions.begin(), decisions.end(), [](const Decision& d) {
    return !d.verdict && d.verdict.rule == "astitch.max-ops";
  }));
}

TEST(AstitchScope, EveryConsideredEdgeHasADecision) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64,64] parameter(0)
    a = f32[64,64] exponential(x)
    d = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    b = f32[64,64] add(a, d)
    ROOT c = f32[64,64] negate(b)
  })");
  const Nodes nodes = node_facts(graph);
  Recorder recorder(true);
  find_scope(nodes, 512, recorder);
  const auto decisions = recorder.take();
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].subject + decisions[0].object, "bc");
  EXPECT_TRUE(decisions[0].verdict.ok);
  EXPECT_EQ(decisions[1].subject + decisions[1].object, "ab");
  EXPECT_EQ(decisions[1].verdict.rule, "astitch.cycle");
}

TEST(AstitchScope, AnOptimizationBarrierIsNotStitchedAcross) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64] parameter(0)
    a = f32[64] exponential(x)
    barrier = f32[64] opt-barrier(a)
    ROOT b = f32[64] add(a, barrier)
  })");
  EXPECT_EQ(scope_text(graph), "stitch a -> a\nstitch b -> b\n");
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
