// The planner of FusionStitching 2019 as a whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/judge/cost.h"
#include "analysis/plan/plan_json.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "tests/support/fuzz.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace {

using testing::dataset;
using testing::graph_of;
using ::testing::HasSubstr;

FusionPlan planned(const Graph& graph, std::map<std::string, std::string> knobs, bool decisions = false) {
  PlanOptions options;
  options.knobs = std::move(knobs);
  options.record_decisions = decisions;
  return make_plan(graph, device("v100"), "fusionstitching-no-products", options);
}

int count_rule(const FusionPlan& plan, const std::string& rule) {
  return static_cast<int>(std::count_if(plan.decisions.begin(), plan.decisions.end(),
                                        [&](const Decision& d) { return d.verdict.rule == rule; }));
}

TEST(FusionStitching, CrossedPatternsOfLargeOpsAreCutOnce) {  // F19 Figure 3
  const Graph graph = dataset("fs19_cycle");
  const FusionPlan plan = planned(graph, {{"launch_cost", "paper"}}, true);
  EXPECT_EQ(plan.counts.memory_kernels, 3);
  EXPECT_EQ(plan.counts.library_calls, 2);
  EXPECT_EQ(count_rule(plan, "fs19.cycle"), 1);
  EXPECT_EQ(count_rule(plan, "fs19.ilp"), 1);
}

TEST(FusionStitching, SmallOpsBetweenProductsArePacked) {
  const Graph graph = dataset("fs19_cycle_tiny");
  EXPECT_EQ(planned(graph, {{"launch_cost", "paper"}}).counts.memory_kernels, 2);
}

TEST(FusionStitching, UpdatesOfSeveralTensorsAreOneKernelOfTwoLanes) {
  const FusionPlan plan = planned(dataset("fs18_sgd"), {{"mapping", "paper"}});
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].groups.size(), 2u);
  EXPECT_NE(plan.kernels[0].groups[0].lane, plan.kernels[0].groups[1].lane);
}

TEST(FusionStitching, NormalisationsOfRowsAreOneKernelThatReadsAndWritesOnce) {
  for (const auto& [model, bytes] : {std::pair("softmax", 33554432), std::pair("layer_norm", 25171968)}) {
    const Graph graph = dataset(model);
    const FusionPlan plan = planned(graph, {{"mapping", "paper"}});
    EXPECT_EQ(plan.counts.memory_kernels, 1) << model;
    EXPECT_EQ(plan_cost(graph, device("v100"), plan).dram_bytes, bytes) << model;
  }
}

TEST(FusionStitching, WhatNeedsABarrierOfTheGridIsSeveralKernels) {
  EXPECT_EQ(planned(dataset("fig7"), {{"mapping", "paper"}}).counts.memory_kernels, 2);
  EXPECT_GE(planned(dataset("layer_norm_grad"), {{"mapping", "paper"}}).counts.memory_kernels, 2);
  const FusionPlan trap = planned(dataset("remote_trap"), {{"mapping", "paper"}});
  EXPECT_EQ(trap.counts.memory_kernels, 2);
  EXPECT_EQ(trap.counts.library_calls, 2);
}

TEST(FusionStitching, KernelsHaveNoBarriersScratchOrBounds) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const Graph graph = canonicalize(parse_hlo(testing::random_hlo(seed), "random.hlo"));
    for (const KernelPlan& kernel : planned(graph, {}).kernels) {
      EXPECT_EQ(kernel.launch.grid_barriers, 0) << seed;
      EXPECT_EQ(kernel.launch.register_bound, 0) << seed;
      EXPECT_TRUE(kernel.scratch.empty()) << seed;
    }
  }
}

TEST(FusionStitching, ByExecutionNoPlanIsSlowerThanUnfused) {
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    const Graph graph = canonicalize(parse_hlo(testing::random_hlo(seed), "random.hlo"));
    const double unfused = make_plan(graph, device("v100"), "unfused").predicted_us;
    for (const char* mapping : {"paper", "tuned"})
      EXPECT_LE(planned(graph, {{"score", "execution"}, {"mapping", mapping}}).predicted_us,
                unfused * (1 + 1e-9))
          << seed << " " << mapping;
  }
}

TEST(FusionStitching, AnIntegerProgramSavesNoLessThanGreedyChoice) {
  const auto saved = [](const FusionPlan& plan) {
    double us = 0;
    for (const Decision& d : plan.decisions)
      if (d.verdict.rule == "fs19.ilp")
        us = std::stod(d.verdict.why.substr(d.verdict.why.rfind("save ") + 5));
    return us;
  };
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const Graph graph = canonicalize(parse_hlo(testing::random_hlo(seed), "random.hlo"));
    for (const char* score : {"mixed", "execution"})
      EXPECT_GE(saved(planned(graph, {{"score", score}}, true)) + 0.01,
                saved(planned(graph, {{"score", score}, {"solver", "greedy"}}, true)))
          << seed << " " << score;
  }
}

TEST(FusionStitching, PlansAreTheSameEveryTime) {
  for (const char* model : {"fig7", "bert_layer"}) {
    const Graph graph = dataset(model);
    const auto text = [&] { return plan_document(graph, planned(graph, {})).dump(); };
    EXPECT_EQ(text(), text()) << model;
  }
}

const char* const kTwo = R"(
  x = f32[64,96] parameter(0)
  y = f32[64,96] parameter(1)
  a = f32[64,96] tanh(x)
  b = f32[64,96] exponential(a)
  c = f32[64,96] negate(y)
  d = f32[64,96] sqrt(c)
  ROOT t = (f32[64,96], f32[64,96]) tuple(b, d))";

FusionPlan edited(const Graph& graph, std::vector<Edit> edits,
                  std::map<std::string, std::string> knobs = {}) {
  PlanOptions options;
  options.edits = std::move(edits);
  options.knobs = std::move(knobs);
  return make_plan(graph, device("v100"), "fusionstitching", options);
}

TEST(FusionStitching, OverridesKeepApartAndBringTogether) {
  const Graph graph = graph_of(kTwo);
  EXPECT_EQ(edited(graph, {}).counts.memory_kernels, 1);
  EXPECT_EQ(edited(graph, {{EditKind::kForbidMerge, {"a", "c"}, {}, 0}}).counts.memory_kernels, 2);
  EXPECT_GE(edited(graph, {{EditKind::kSplit, {"a"}, {}, 0}}).counts.memory_kernels, 2);
  EXPECT_EQ(edited(graph, {}, {{"packing", "off"}}).counts.memory_kernels, 2);
  EXPECT_THAT(
      testing::outputs(graph, edited(graph, {{EditKind::kMerge, {"b", "d"}, {}, 0}}, {{"packing", "off"}})),
      ::testing::Contains(HasSubstr("b+d")));
  const FusionPlan wide = edited(graph, {{EditKind::kBlock, {"b"}, {}, 512}});
  EXPECT_EQ(wide.kernels[0].launch.block, 512);
}

TEST(FusionStitching, KnobsThatAreNoneAreRefused) {
  const Graph graph = graph_of(kTwo);
  EXPECT_THROW(edited(graph, {}, {{"score", "best"}}), Error);
  EXPECT_THROW(edited(graph, {}, {{"adaptive_mapping", "on"}}), Error);
}

}  // namespace
}  // namespace stitchwork
