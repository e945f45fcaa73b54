#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/astitch_passes.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

using ::testing::ElementsAre;

TEST(AstitchMerging, Fig7HasThePapersDominantsAndSubDominants) {
  const Graph graph = dataset("fig7");
  const Passes passes(graph, {1024, 160, true, true}, true, false);
  ASSERT_EQ(passes.groups.size(), 2u);
  EXPECT_EQ(passes.nodes.name(passes.groups[0].dominant), "reduce.1");
  EXPECT_THAT(names(passes.nodes, passes.groups[0].materialised), ElementsAre("reduce.1", "power.1"));
  EXPECT_EQ(passes.nodes.name(passes.groups[1].dominant), "reduce.2");
  EXPECT_THAT(names(passes.nodes, passes.groups[1].materialised), ElementsAre("reduce.2", "multiply.1"));
}

TEST(AstitchMerging, WithoutMergingEveryCandidateDominates) {
  const Graph graph = dataset("fig7");
  const Passes passes(graph, {1024, 160, true, true}, false, false);
  EXPECT_EQ(passes.groups.size(), 4u);
}

TEST(AstitchMerging, ReductionsOverDifferentDimensionsStayApart) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[512,512] parameter(0)
    zero = f32[] constant(0)
    a = f32[512,512] exponential(x)
    rows = f32[512] reduce(a, zero), dimensions={1}, to_apply=sum
    cols = f32[512] reduce(a, zero), dimensions={0}, to_apply=sum
    ROOT t = (f32[512], f32[512]) tuple(rows, cols)
  })");
  const Passes passes(graph);
  ASSERT_EQ(passes.groups.size(), 2u);
  EXPECT_EQ(stitchwork::name(passes.groups[0].mapping), "row_pack");
  EXPECT_EQ(stitchwork::name(passes.groups[1].mapping), "column");
}

TEST(AstitchMerging, ReductionsOfOneInputShareAGroup) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[512,512] parameter(0)
    zero = f32[] constant(0)
    b = f32[512,512] exponential(x)
    a = f32[512,512] multiply(b, b)
    r1 = f32[512] reduce(b, zero), dimensions={1}, to_apply=sum
    r2 = f32[512] reduce(a, zero), dimensions={1}, to_apply=sum
    ROOT t = (f32[512], f32[512]) tuple(r1, r2)
  })");
  const Passes passes(graph);
  ASSERT_EQ(passes.groups.size(), 1u);
  EXPECT_THAT(names(passes.nodes, passes.groups[0].materialised), ElementsAre("r1", "r2"));
}

TEST(AstitchMerging, SmallSharedValuesJoinNothing) {
  const auto components = [](int n) {
    const Graph graph = parse(fmt::format(R"(ENTRY e {{
      bias = f32[{0}] parameter(0)
      x = f32[{0},64] parameter(1)
      y = f32[{0},64] parameter(2)
      v = f32[{0},64] broadcast(bias), dimensions={{0}}
      w = f32[{0},64] broadcast(bias), dimensions={{0}}
      a = f32[{0},64] add(x, v)
      b = f32[{0},64] add(y, w)
      zero = f32[] constant(0)
      ra = f32[{0}] reduce(a, zero), dimensions={{1}}, to_apply=sum
      rb = f32[{0}] reduce(b, zero), dimensions={{1}}, to_apply=sum
      ROOT r = f32[{0}] add(ra, rb)
    }})",
                                          n));
    const Nodes nodes = node_facts(graph);
    Recorder recorder(false);
    const Scope scope = find_scope(nodes, 512, recorder);
    const Body body = make_body(nodes, scope.stitch_ops.at(0));
    return connected_candidates(body, find_candidates(body, {}, recorder)).size();
  };
  EXPECT_EQ(components(1024), 3u);
  EXPECT_EQ(components(1025), 2u);
}

TEST(AstitchMerging, SmallUpdatesOfOneValueShareAGroup) {
  const Graph graph = parse(R"(ENTRY e {
    g = f32[100] parameter(0)
    m = f32[100] parameter(1)
    p = f32[100] parameter(2)
    next = f32[100] add(m, g)
    step = f32[100] multiply(next, next)
    q = f32[100] subtract(p, step)
    ROOT t = (f32[100], f32[100]) tuple(next, q)
  })");
  const Passes passes(graph);
  ASSERT_EQ(passes.groups.size(), 1u);
  EXPECT_THAT(names(passes.nodes, passes.groups[0].materialised), ElementsAre("next", "q"));
}

TEST(AstitchMerging, RefusedMergesHaveDecisions) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[512,512] parameter(0)
    zero = f32[] constant(0)
    a = f32[512,512] exponential(x)
    rows = f32[512] reduce(a, zero), dimensions={1}, to_apply=sum
    cols = f32[512] reduce(a, zero), dimensions={0}, to_apply=sum
    wide = f32[512,512] broadcast(cols), dimensions={1}
    out = f32[512,512] add(a, wide)
    ROOT t = (f32[512], f32[512,512]) tuple(rows, out)
  })");
  Passes passes(graph);
  const auto decisions = passes.recorder.take();
  EXPECT_TRUE(std::any_of(decisions.begin(), decisions.end(), [](const Decision& d) {
    return d.step == "merging" && !d.verdict && !d.object.empty();
  }));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
