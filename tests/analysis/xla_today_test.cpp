// XLA's fusion of today, held against kernels that XLA made (tests/data/dumps).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/facts/facts.h"
#include "analysis/planners/planner.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/planners/xla/run_time.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "tests/support/fuzz.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::Contains;
using testing::dataset;
using ::testing::ElementsAre;
using testing::graph_of;
using testing::op;
using testing::outputs;

FusionPlan plan(const Graph& graph, const char* card = "a100") {
  return make_plan(graph, device(card), "xla-today", {.record_decisions = true});
}

std::vector<std::string> rules(const FusionPlan& plan, const std::string& subject) {
  std::vector<std::string> found;
  for (const Decision& d : plan.decisions)
    if (d.subject == subject) found.push_back(d.verdict.rule);
  return found;
}

TEST(XlaToday, HasAsManyKernelsAsXlaMakes) {
  // Launches of tests/data/dumps, which XLA of jaxlib 0.10.2 made.
  EXPECT_EQ(plan(dataset("softmax"), "a100").kernels.size(), 1u);
  EXPECT_EQ(plan(dataset("softmax"), "v100").kernels.size(), 3u);
  EXPECT_EQ(plan(dataset("layer_norm"), "a100").kernels.size(), 1u);
  EXPECT_EQ(plan(dataset("fig7"), "a100").kernels.size(), 4u);
  EXPECT_EQ(plan(dataset("fig7"), "v100").kernels.size(), 4u);
}

TEST(XlaToday, NormalisationsAreKernelsOfTritonFromAmpereOn) {
  const Graph graph = graph_of(
      "p = f32[64,256] parameter(0)\n z = f32[] constant(0)\n e = f32[64,256] exponential(p)\n"
      "r = f32[64] reduce(e, z), dimensions={1}, to_apply=sum\n"
      "b = f32[64,256] broadcast(r), dimensions={0}\n ROOT d = f32[64,256] divide(e, b)");
  const FusionPlan ampere = plan(graph, "a100"), volta = plan(graph, "v100");
  EXPECT_THAT(outputs(graph, ampere), ElementsAre("d"));
  EXPECT_THAT(rules(ampere, "d"), Contains("xla-today.normalization"));
  EXPECT_THAT(outputs(graph, volta), ElementsAre("r", "d"));
  EXPECT_THAT(rules(volta, "r"), Contains("xla-today.reduction-epilogue"));
}

TEST(XlaToday, ReductionsOfDimensionsApartAreTwo) {
  const auto summed = [](const char* shape, const char* result, const char* dims) {
    return graph_of(std::string("p = f32[") + shape +
                    "] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[" + result +
                    "] reduce(p, z), dimensions={" + dims + "}, to_apply=sum");
  };
  const Graph group_norm = summed("2,32,32,32,10", "2,32", "1,2,4");
  const FusionPlan two = plan(group_norm);
  EXPECT_EQ(two.kernels.size(), 2u);
  EXPECT_EQ(planned_graph(group_norm, two).entry_computation().nodes.size(),
            group_norm.entry_computation().nodes.size() + 1);
  EXPECT_THAT(two.rewritten->steps, ::testing::SizeIs(1));
  // What has tiles, and what is short, stays one; XLA of 2019 takes nothing apart.
  EXPECT_EQ(plan(summed("64,32,48", "32", "0,2")).kernels.size(), 1u);
  EXPECT_EQ(plan(summed("8,4,3,4,8", "4,4", "0,2,4")).kernels.size(), 1u);
  EXPECT_EQ(make_plan(group_norm, device("a100"), "xla").kernels.size(), 1u);
}

TEST(XlaToday, ColumnSumsAreNoNormalisation) {
  const Graph graph = graph_of(
      "p = f32[256,64] parameter(0)\n z = f32[] constant(0)\n"
      "r = f32[64] reduce(p, z), dimensions={0}, to_apply=sum\n"
      "b = f32[256,64] broadcast(r), dimensions={1}\n ROOT d = f32[256,64] divide(p, b)");
  EXPECT_EQ(plan(graph).kernels.size(), 2u);
}

TEST(XlaToday, AnOpGoesIntoAllItsReadersOrIntoNone) {
  // Cheap: computed in both readers. The library call keeps it apart.
  const std::string body =
      "p = f32[1024,1024] parameter(0)\n q = f32[1024,1024] parameter(1)\n c = f32[1024,1024] add(p, q)\n"
      "x = f32[1024,1024] multiply(c, p)\n"
      "t = f32[1024,1024] transpose(c), dimensions={1,0}\n";
  const Graph both = graph_of(body + "ROOT r = (f32[1024,1024], f32[1024,1024]) tuple(x, t)");
  EXPECT_THAT(rules(plan(both), "c"), Contains("xla-today.fused"));
  const Graph one =
      graph_of(body +
               "d = f32[1024,1024] dot(c, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
               "ROOT r = (f32[1024,1024], f32[1024,1024], f32[1024,1024]) tuple(x, t, d)");
  EXPECT_THAT(rules(plan(one), "c"), Contains("xla.not-loop-fusible"));
}

TEST(XlaToday, WhatCostsMoreWithinItsReadersStaysApart) {
  // Each of a million elements of the broadcast would take the power anew.
  const auto body = [](const char* op) {
    return std::string("p = f32[1024] parameter(0)\n q = f32[1024] parameter(1)\n x = f32[1024] ") + op +
           "(p, q)\n y = f32[1024,1024] broadcast(x), dimensions={0}\n"
           "z = f32[1024,1024] parameter(2)\n ROOT r = f32[1024,1024] add(y, z)";
  };
  const Graph cheap = graph_of(body("multiply")), dear = graph_of(body("power"));
  EXPECT_THAT(outputs(cheap, plan(cheap)), ElementsAre("r"));
  EXPECT_THAT(outputs(dear, plan(dear)), ElementsAre("x", "r"));
  EXPECT_THAT(rules(plan(dear), "x"), Contains("xla-today.no-gain"));
}

TEST(XlaToday, TheModelCountsWhatIsComputedAndReadAgain) {
  const Graph graph = graph_of(
      "p = f32[1024] parameter(0)\n x = f32[1024] tanh(p)\n"
      "y = f32[512,1024] broadcast(x), dimensions={1}\n ROOT r = f32[512,1024] negate(y)");
  xla::FusionGraph fusion(graph);
  xla::RunTimes times(fusion, device("a100"));
  const int x = fusion.provider(op(graph, "x")), y = fusion.provider(op(graph, "y"));
  const double apart = times.of(x).us + times.of(y).us;
  EXPECT_GT(times.fused(x, y).us, times.of(y).us);
  // 512 times tanh of 1,024 elements: 467 clocks each (XLA's profile).
  EXPECT_GT(times.fused(x, y).us, apart);
  EXPECT_EQ(times.fused(x, y).emitted_ops, 2);
}

// What follows from the estimates of both is what counting the fused kernel anew gives.
TEST(XlaToday, EstimatesThatFollowAreThoseCountedAnew) {
  int fused = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Graph graph = canonicalize(parse_hlo(testing::planned_hlo(seed), "random.hlo"));
    xla::FusionGraph fusion(graph);
    xla::RunTimes times(fusion, device("a100"));
    for (const int i : fusion.post_order()) {
      if (i == fusion.result() || plan_role(fusion.op(i)) != PlanRole::kMemory) continue;
      for (const int user : fusion.users(i)) {
        if (user == fusion.result() || plan_role(fusion.op(user)) != PlanRole::kMemory) continue;
        const xla::RunTime follows = times.fused(i, user);
        times.fuse(i, user);
        fusion.fuse(i, user);
        const xla::RunTime anew = xla::RunTimes(fusion, device("a100")).of(user);
        EXPECT_NEAR(follows.us, anew.us, 1e-9 * anew.us) << seed << " " << user;
        EXPECT_EQ(follows.emitted_ops, anew.emitted_ops) << seed << " " << user;
        EXPECT_EQ(follows.splits, anew.splits) << seed << " " << user;
        EXPECT_EQ(times.of(user).us, follows.us) << seed << " " << user;
        ++fused;
      }
    }
  }
  EXPECT_GT(fused, 400);
}

TEST(XlaToday, OverridesKeepOpsApart) {
  const Graph graph = dataset("softmax");
  for (const char* card : {"a100", "v100"}) {
    PlanOptions options;
    options.edits = {{EditKind::kForbidMerge, {"subtract.16", "exponential.17"}, "", 0}};
    const FusionPlan apart = make_plan(graph, device(card), "xla-today", options);
    EXPECT_GT(apart.kernels.size(), plan(graph, card).kernels.size()) << card;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
