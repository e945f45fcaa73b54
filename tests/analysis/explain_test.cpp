#include "analysis/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/planner.h"
#include "core/error.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace {

using testing::dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Explanation of(const char* model, const char* planner, const char* op) {
  const Graph graph = dataset(model);
  return explain(graph, make_plan(graph, device("v100"), planner, {.record_decisions = true}), op);
}

TEST(Explain, SaysWhereAnOpIsAndWhyNotElsewhere) {
  const Explanation power = of("fig7", "xla", "power.1");
  ASSERT_EQ(power.placements.size(), 1u);
  EXPECT_EQ(power.placements[0].role, "dominant");
  EXPECT_EQ(power.placements[0].kernel_name, "power_1");
  EXPECT_TRUE(power.placements[0].output);
  EXPECT_THAT(power.placements[0].producers, ElementsAre("divide.1", "broadcast.0"));
  EXPECT_THAT(to_text(power), HasSubstr("power.1 -> broadcast.2: no [xla.expensive-and-reused]"));
}

TEST(Explain, AnOpInSeveralKernelsHasSeveralPlacements) {
  const Explanation broadcast = of("fig7", "xla", "broadcast.2");
  ASSERT_EQ(broadcast.placements.size(), 2u);
  EXPECT_EQ(broadcast.placements[0].scheme, Scheme::kRecomputed);
  EXPECT_THAT(to_text(broadcast), HasSubstr("computed in 2 kernels"));
}

TEST(Explain, SubDominantsNameTheirDominant) {
  const Explanation power = of("fig7", "astitch", "power.1");
  ASSERT_EQ(power.placements.size(), 1u);
  EXPECT_EQ(power.placements[0].role, "sub-dominant");
  EXPECT_EQ(power.placements[0].dominant, "reduce.1");
}

TEST(Explain, OpsOutsideKernelsSayWhatTheyAre) {
  EXPECT_EQ(of("fig7", "xla", "parameter.1").step, "parameter");
  EXPECT_THAT(of("fig7", "xla", "zero").step, HasSubstr("immediate"));
  const Graph graph = dataset("bert_layer");
  const FusionPlan plan = make_plan(graph, device("v100"), "xla");
  for (const Node& node : graph.entry_computation().nodes) {
    if (node.op != Op::kDot) continue;
    EXPECT_EQ(explain(graph, plan, node.name).step, "library call lib:" + node.name);
  }
}

TEST(Explain, UnknownOpsAreAnsweredWithCloseNames) {
  try {
    of("fig7", "xla", "powr.1");
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_THAT(e.hint(), HasSubstr("power.1"));
  }
}

}  // namespace
}  // namespace stitchwork
