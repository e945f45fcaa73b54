// Planner auto: each kernel in the cheapest of its forms, and it says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "analysis/judge/cost.h"
#include "analysis/plan/recorder.h"
#include "analysis/planners/planner.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/verify/verify.h"
#include "core/hlo/hlo_text.h"
#include "tests/support/graphs.h"
#include "tests/support/most_maps.h"
#include "tests/support/paper.h"
#include "tests/support/random_graph.h"
#include "tests/support/rotation.h"
#include "tests/support/scans.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using testing::graph_of;
using ::testing::HasSubstr;

double predicted(const Graph& graph, const Device& device, const char* planner) {
  return make_plan(graph, device, planner).predicted_us;  // verifies
}

TEST(Auto, IsPredictedNoWorseThanXlaAndAstitchBeyondItsMargin) {
  for (const char* name : {"fig5", "fig7", "softmax", "layer_norm", "gelu", "column_sum", "row_64x30000",
                           "row_750000x32", "bert_tiny", "bert_layer"}) {
    for (const char* id : {"v100", "t4", "h200"}) {
      SCOPED_TRACE(std::string(name) + " on " + id);
      const Graph graph = dataset(name);
      const double best =
          std::min(predicted(graph, device(id), "xla"), predicted(graph, device(id), "astitch"));
      EXPECT_LE(predicted(graph, device(id), "auto"), best * 1.03);
    }
  }
}

TEST(Auto, ComputesRotationsOfRotaryEmbeddingsWhereTheyAreRead) {
  // Sines and cosines of positions times frequencies, and halves of rows beside each other: a kernel of one
  // loop computes the rotations of a row for every head, and costs less than a barrier between.
  const Graph graph = graph_of(testing::kOneRotation);
  for (const char* id : {"v100", "a100", "h200"}) {
    SCOPED_TRACE(id);
    EXPECT_GT(predicted(graph, device(id), "astitch"), 1.1 * predicted(graph, device(id), "tvm"));
    EXPECT_LE(predicted(graph, device(id), "auto"), 1.03 * predicted(graph, device(id), "tvm"));
  }
}

TEST(Auto, OneLoopGivesSeveralValuesOfOneShape) {
  // Queries and keys rotated alike: the loop computes the rotations for both.
  const Graph graph = dataset("rotary");
  for (const char* id : {"v100", "a100", "h100"}) {
    const FusionPlan plan = make_plan(graph, device(id), "auto", {.record_decisions = true});
    ASSERT_EQ(plan.kernels.size(), 1U);
    EXPECT_EQ(plan.kernels[0].outputs.size(), 2U);
    EXPECT_EQ(plan.kernels[0].launch.grid_barriers, 0);
    EXPECT_LT(plan.predicted_us, 0.97 * predicted(graph, device(id), "astitch"));
  }
}

TEST(Auto, ComputesNoOpAtMoreIndicesThanCodeHasRoomFor) {
  // In one loop a scan's first sums are computed at hundreds of indices, each by an expression of its own.
  const Graph graph = graph_of(testing::ScanText(64, 256, 1, testing::ScanStep::kSum).text());
  const FusionPlan plan = make_plan(graph, device("h200"), "auto", {.record_decisions = true});
  const auto refused = std::ranges::find_if(plan.decisions, [](const Decision& decision) {
    return decision.step == kFormStep && decision.verdict.rule == "auto.inlined";
  });
  ASSERT_NE(refused, plan.decisions.end());
  EXPECT_FALSE(refused->verdict.ok);
  EXPECT_THAT(refused->verdict.why, HasSubstr("would be computed at more than 24 indices"));
  for (const testing::ScanStep step : {testing::ScanStep::kSum, testing::ScanStep::kRecurrence})
    for (const int axis : {0, 1}) {
      const Graph scan = graph_of(testing::ScanText(128, 128, axis, step).text());
      for (const char* planner : {"astitch", "auto"})
        EXPECT_LE(testing::most_maps(scan, make_plan(scan, device("h200"), planner)), kMostMaps)
            << planner << axis;
    }
}

TEST(Auto, RandomGraphsPlanValidly) {
  for (std::uint32_t seed = 0; seed < 16; ++seed) {
    const std::string text = testing::random_hlo(seed, {.ops = 10 + static_cast<int>(seed)});
    SCOPED_TRACE(text);
    make_plan(canonicalize(parse_hlo(text, "random.hlo")), device("v100"), "auto");
  }
}

TEST(Auto, CutsAtBarriersThatCostTooMuch) {
  Device slow = device("v100");
  slow.grid_barrier_us = 1000;
  const Graph graph = dataset("fig7");
  EXPECT_GT(make_plan(graph, slow, "astitch").kernels.at(0).launch.grid_barriers, 0);
  for (const KernelPlan& kernel : make_plan(graph, slow, "auto").kernels)
    EXPECT_EQ(kernel.launch.grid_barriers, 0);
}

TEST(Auto, UpdatesOfManyArraysRunBesideEachOtherAndWaitForNoScalar) {
  // Adam of 200 arrays, whose bias corrections are powers of a step.
  const Graph graph = dataset("adam_200");
  const Device& a100 = device("a100-sxm-40");
  const FusionPlan plan = make_plan(graph, a100, "auto", {.record_decisions = true});
  ASSERT_EQ(plan.kernels.size(), 1U);
  EXPECT_EQ(plan.kernels[0].launch.grid_barriers, 0);
  std::set<std::int64_t> firsts;
  for (const Group& group : plan.kernels[0].groups) firsts.insert(group.deal.first_block);
  EXPECT_EQ(firsts.size(), plan.kernels[0].groups.size()) << "no array is behind another in the same blocks";
  const auto again = [](const Decision& d) {
    return d.object.starts_with("stitched, scalars again") && d.verdict;
  };
  EXPECT_TRUE(std::ranges::any_of(plan.decisions, again));
  // The bytes are 9.7 MB, 7 us at the device's bandwidth.
  EXPECT_LT(plan.predicted_us, 15);
}

TEST(Auto, StitchesWhereLaunchesCostTooMuch) {
  Device slow = device("v100");
  slow.launch_us = 1000;
  EXPECT_EQ(make_plan(dataset("fig7"), slow, "auto").kernels.size(), 1u);
}

TEST(Auto, KeepsRowsWholeWhereTheBarrierOfASplitCostsMore) {
  const Graph graph = dataset("fig7");
  const auto split = [&](const char* planner) {
    int most = 1;
    for (const KernelPlan& kernel :
         make_plan(graph, device("v100"), planner, testing::paper(planner)).kernels)
      for (const Group& group : kernel.groups) most = std::max(most, segments(group.mapping));
    return most;
  };
  EXPECT_GT(split("astitch"), 1);
  EXPECT_EQ(split("auto"), 1);
}

TEST(Auto, DecisionsGiveTheTimeOfEveryForm) {
  const Graph graph = dataset("fig7");
  const FusionPlan plan =
      make_plan(graph, device("v100"), "auto", testing::paper("auto", {.record_decisions = true}));
  int chosen = 0;
  std::string forms;
  for (const Decision& decision : plan.decisions) {
    if (decision.step != kFormStep || !decision.verdict.rule.starts_with("auto.")) continue;
    chosen += decision.verdict.ok;
    forms += decision.object + ": " + decision.verdict.rule + ": " + decision.verdict.why + "\n";
  }
  EXPECT_EQ(chosen, 1) << forms;
  for (const char* form : {"stitched: ", "cut behind phase 0: ", "whole rows", "blocks of 256", "auto.xla"})
    EXPECT_THAT(forms, HasSubstr(form));
}

TEST(Auto, KeepsWhatOverridesFix) {
  const Graph graph = dataset("fig7");
  const FusionPlan plan =
      make_plan(graph, device("v100"), "auto", {.edits = {{EditKind::kSplitFactor, {"reduce.2"}, "", 4}}});
  bool found = false;
  for (const Group& group : plan.kernels.at(0).groups)
    found |= group.dominant == testing::op(graph, "reduce.2") && segments(group.mapping) == 4;
  EXPECT_TRUE(found);
}

TEST(Auto, XlaFusionsOfAKernelLeaveValuesThatOthersReadThroughBroadcasts) {
  // m is read by the second tower through a broadcast behind the matrix product.
  const Graph graph = graph_of(R"(
    x = f32[64,64] parameter(0)
    zero = f32[] constant(0)
    r = f32[64] reduce(x, zero), dimensions={1}, to_apply=sum
    m = f32[64] negate(r)
    w = f32[64,64] broadcast(m), dimensions={0}
    a = f32[64,64] multiply(w, x)
    d = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT b = f32[64,64] add(d, w))");
  Device slow = device("v100");
  slow.grid_barrier_us = 1000;
  for (const Device* on : {&device("v100"), static_cast<const Device*>(&slow)}) make_plan(graph, *on, "auto");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
