#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/astitch_passes.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

std::string candidates_text(const Graph& graph, const Amendments& amendments = {}) {
  const Nodes nodes = node_facts(graph);
  Recorder recorder(false);
  const Scope scope = find_scope(nodes, 512, recorder);
  return to_text(nodes, find_candidates(make_body(nodes, scope.stitch_ops.at(0)), amendments, recorder));
}

TEST(AstitchDominants, Fig7HasThePapersCandidates) {
  EXPECT_EQ(candidates_text(dataset("fig7")),
            "reduce.1: reduce\npower.1: heavy\nreduce.2: reduce\nmultiply.1: output\n");
}

TEST(AstitchDominants, HeavyOpsNotFollowedByABroadcastAreLocal) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64,64] parameter(0)
    a = f32[64,64] exponential(x)
    ROOT b = f32[64,64] negate(a)
  })");
  EXPECT_EQ(candidates_text(graph), "b: output\n");
}

TEST(AstitchDominants, HeavyOpsReachABroadcastThroughLocalOps) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64] parameter(0)
    y = f32[64,64] parameter(1)
    a = f32[64] exponential(x)
    b = f32[64] negate(a)
    wide = f32[64,64] broadcast(b), dimensions={0}
    ROOT c = f32[64,64] add(wide, y)
  })");
  // b is light and its cone costs little: only a is worth storing.
  EXPECT_THAT(candidates_text(graph), ::testing::HasSubstr("a: heavy\n"));
}

TEST(AstitchDominants, AReductionEndsTheReachOfABroadcast) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64,32] parameter(0)
    y = f32[64,64] parameter(1)
    zero = f32[] constant(0)
    a = f32[64,32] exponential(x)
    r = f32[64] reduce(a, zero), dimensions={1}, to_apply=sum
    wide = f32[64,64] broadcast(r), dimensions={0}
    ROOT c = f32[64,64] add(wide, y)
  })");
  EXPECT_EQ(candidates_text(graph), "r: reduce\nc: output\n");
}

TEST(AstitchDominants, AReductionOfOneElementIsLocal) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64,1] parameter(0)
    zero = f32[] constant(0)
    a = f32[64,1] exponential(x)
    r = f32[64] reduce(a, zero), dimensions={1}, to_apply=sum
    ROOT b = f32[64] negate(r)
  })");
  EXPECT_EQ(candidates_text(graph), "b: output\n");
}

TEST(AstitchDominants, AnUnreplicatingBroadcastStoresNothing) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64] parameter(0)
    y = f32[1,64] parameter(1)
    a = f32[64] exponential(x)
    row = f32[1,64] broadcast(a), dimensions={1}
    ROOT c = f32[1,64] add(row, y)
  })");
  EXPECT_EQ(candidates_text(graph), "c: output\n");
}

TEST(AstitchDominants, ALightConeRepeatedOftenCountsAsHeavyUntilDropped) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64] parameter(0)
    z = f32[64] parameter(1)
    y = f32[64,512] parameter(2)
    a = f32[64] divide(x, z)
    wide = f32[64,512] broadcast(a), dimensions={0}
    ROOT c = f32[64,512] add(wide, y)
  })");
  EXPECT_EQ(candidates_text(graph), "a: light\nc: output\n");
  Amendments dropped;
  dropped.dropped.insert(graph.entry_computation().find("a"));
  EXPECT_EQ(candidates_text(graph, dropped), "c: output\n");
}

TEST(AstitchDominants, APromotedValueIsStored) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64] parameter(0)
    a = f32[64] negate(x)
    ROOT b = f32[64] abs(a)
  })");
  Amendments promoted;
  promoted.promoted.insert(graph.entry_computation().find("a"));
  EXPECT_EQ(candidates_text(graph, promoted), "a: shared\nb: output\n");
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
