// The planner of FusionStitching 2019 as a whole.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/json/plan_json.h"
#include "analysis/judge/cost.h"
#include "analysis/planners/fusionstitching/ilp/template_text.h"
#include "analysis/planners/planner.h"
#include "analysis/schedule/evaluations.h"
#include "core/base/error.h"
#include "core/base/sorted.h"
#include "tests/support/fuzz.h"
#include "tests/support/golden.h"
#include "tests/support/graphs.h"
#include "tests/support/most_maps.h"
#include "tests/support/scans.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using testing::graph_of;
using ::testing::HasSubstr;

FusionPlan planned_by(const std::string& planner, const Graph& graph,
                      std::map<std::string, std::string> knobs, bool decisions = false) {
  PlanOptions options;
  options.knobs = std::move(knobs);
  options.record_decisions = decisions;
  return make_plan(graph, device("v100"), planner, options);
}

FusionPlan planned(const Graph& graph, std::map<std::string, std::string> knobs, bool decisions = false) {
  return planned_by("fusionstitching-no-products", graph, std::move(knobs), decisions);
}

int count_rule(const FusionPlan& plan, const std::string& rule) {
  return static_cast<int>(std::count_if(plan.decisions.begin(), plan.decisions.end(),
                                        [&](const Decision& d) { return d.verdict.rule == rule; }));
}

class Fs19Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Fs19Golden, TextIsAsApproved) {
  const Graph graph = dataset(GetParam());
  const bool crossed = std::string(GetParam()) == "fs19_cycle";  // whose ops are large by the paper's launch
  const FusionPlan plan = planned_by("fusionstitching", graph,
                                     {{"mapping", "paper"}, {"launch_cost", crossed ? "paper" : "device"}});
  expect_golden(fmt::format("fusionstitching_{}.txt", GetParam()), to_text(graph, plan));
}

INSTANTIATE_TEST_SUITE_P(Plans, Fs19Golden,
                         ::testing::Values("fs18_fig3", "fs18_sgd", "fs19_fig1", "fs19_cycle",
                                           "fs19_cycle_tiny", "softmax", "layer_norm", "fig7",
                                           "layer_norm_grad", "remote_trap"));

TEST(FusionStitching, RefusesPatternsOfWhichALoopComputesAnOpAtManyIndices) {
  const Graph graph = graph_of(testing::ScanText(64, 64, 0, testing::ScanStep::kRecurrence).text());
  const FusionPlan plan = make_plan(graph, device("h200"), "fusionstitching", {.record_decisions = true});
  const auto refused = std::ranges::find_if(
      plan.decisions, [](const Decision& decision) { return decision.verdict.rule == "fs19.maps"; });
  ASSERT_NE(refused, plan.decisions.end());
  EXPECT_THAT(refused->verdict.why, HasSubstr("at more than 24 indices"));
  EXPECT_LE(testing::most_maps(graph, plan), kMostMaps);
}

TEST(FusionStitching, WorkOnScansGrowsWithTheirOps) {
  // A scan of twice the rows has a level more of some thirty ops, but its first values reach twice as many
  // places of the results.
  const auto evaluated = [](std::int64_t rows) {
    const Graph graph = graph_of(testing::ScanText(rows, 64, 0, testing::ScanStep::kRecurrence).text());
    const FusionPlan plan = make_plan(graph, device("h200"), "fusionstitching");
    std::size_t values = 0;
    for (const KernelEvaluations& kernel : evaluations(graph.entry_computation(), plan))
      for (const GroupEvaluations& group : kernel) values += group.values.size();
    return values;
  };
  EXPECT_LT(evaluated(256), 2 * evaluated(64));
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

TEST(FusionStitching, SmallProductsAreComputedWhereTheyAreRead) {
  const FusionPlan plan = planned_by("fusionstitching", dataset("fs19_cycle_tiny"), {});
  EXPECT_EQ(plan.counts.memory_kernels, 1);
  EXPECT_EQ(plan.counts.library_calls, 0);
  // Large gemms are the library's.
  EXPECT_EQ(planned_by("fusionstitching", dataset("fs19_cycle"), {}).counts.library_calls, 2);
}

// F19 Figure 1, of which the text gives the bytes of dot_1 and add.
const char* const kFigure1 =
    "dot_1[GRID,CTA,CTA,THREAD]S; add[GRID,CTA,CTA]S; reduce_1[GRID,WARP,CTA]S; log_1[GRID,CTA]; "
    "dot_2[GRID,CTA,CTA,THREAD]S; divide[GRID,CTA,CTA]; reduce_2[GRID,CTA,THREAD]S; "
    "multiply_2[GRID,CTA]; subtract[GRID,CTA];";

std::int64_t value_bytes(const KernelPlan& kernel) {
  std::map<std::int64_t, std::int64_t> slots;
  for (const MemorySlot& slot : kernel.shared)
    if (slot.op != kNoNode) slots[slot.offset] = std::max(slots[slot.offset], slot.bytes);
  std::int64_t bytes = 0;
  for (const auto& [offset, of_slot] : slots) bytes += of_slot;
  return bytes;
}

TEST(FusionStitching, TheRunningExampleIsOneKernelThatReusesItsBytes) {
  const Graph graph = dataset("fs19_fig1");
  const FusionPlan plan = planned_by("fusionstitching", graph, {{"mapping", "paper"}});
  ASSERT_EQ(plan.counts.memory_kernels, 1);
  EXPECT_EQ(plan.counts.library_calls, 0);
  EXPECT_EQ(plan.kernels[0].launch.grid, 16384);
  EXPECT_EQ(value_bytes(plan.kernels[0]), 36848);
  const FusionPlan xla = make_plan(graph, device("v100"), "xla");
  // Inputs and outputs are 86.2 MB; the model has the mask, which three loops read, come twice.
  EXPECT_LE(plan_cost(graph, device("v100"), plan).dram_bytes, 92.5e6);
  EXPECT_LE(plan.predicted_us, 0.33 * xla.predicted_us);

  PlanOptions options;
  options.knobs["mapping"] = "paper";
  options.edits = {{EditKind::kTemplate, {"subtract"}, kFigure1, 0}};
  const FusionPlan written = make_plan(graph, device("v100"), "fusionstitching", options);
  ASSERT_EQ(written.kernels.size(), 1u);
  const Computation& c = graph.entry_computation();
  for (const FusionPlan* either : {&plan, &written})
    EXPECT_EQ(to_text(c, fusionstitching::schedules_of(c, either->kernels[0])), kFigure1);
  const FusionPlan without = planned(graph, {{"mapping", "paper"}});
  EXPECT_EQ(without.counts.memory_kernels, 2);
  EXPECT_EQ(without.counts.library_calls, 2);
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

TEST(FusionStitching, SumsOfWholeArraysAreSplitAmongBlocksWithTheirInputs) {
  const Graph graph = graph_of(R"(
  x = f32[4096,4096] parameter(0)
  zero = f32[] constant(0)
  square = f32[4096,4096] multiply(x, x)
  ROOT norm = f32[] reduce(square, zero), dimensions={0,1}, to_apply=sum)");
  const FusionPlan tuned = planned(graph, {}), paper = planned(graph, {{"mapping", "paper"}});
  ASSERT_EQ(tuned.kernels.size(), 1u);
  EXPECT_EQ(tuned.counts.memsets, 1);
  EXPECT_GE(tuned.kernels[0].launch.grid, device("v100").sms);
  // With the paper's mapping only a kernel of the reduction alone is, as `unfused` has it.
  EXPECT_EQ(paper.counts.memsets, static_cast<int>(paper.kernels.size()) - 1);
  EXPECT_LT(tuned.predicted_us, 1.02 * make_plan(graph, device("v100"), "xla").predicted_us);
}

TEST(FusionStitching, AnOpAloneIsEstimatedWithWhatItStores) {
  const Graph graph = graph_of(R"(
  x = f32[12,48,16384] parameter(0)
  zero = f32[] constant(0)
  z = f32[12,16,16384] broadcast(zero), dimensions={}
  a = f32[12,16,16384] slice(x), slice={[0:12],[16:32],[0:16384]}
  b = f32[12,16,16384] slice(x), slice={[0:12],[0:16],[0:16384]}
  c = f32[12,16,16384] maximum(a, z)
  d = f32[12,16,16384] maximum(b, z)
  ROOT t = (f32[12,16,16384], f32[12,16,16384]) tuple(c, d))");
  const FusionPlan plan = planned(graph, {{"score", "execution"}}, true);
  EXPECT_EQ(plan.counts.memory_kernels, 1);
  const auto taken = std::ranges::find_if(
      plan.decisions, [](const Decision& decision) { return decision.verdict.rule == "fs19.pattern"; });
  ASSERT_NE(taken, plan.decisions.end());
  // Each moves 25 MB: no two of them in less than 50 MB take.
  const double alone = std::stod(taken->verdict.why.substr(taken->verdict.why.find("execution: ") + 11));
  EXPECT_GT(alone, 50.3e6 / (device("v100").dram_gb_s * 1e3));
}

// A loss and a bias's gradient of one array: by volume they would be one kernel, whose loss is one block's.
TEST(FusionStitching, OneBlocksLoopBesideOthersCountsItsTime) {
  const Graph graph = graph_of(R"(
  x = f32[8192,2048] parameter(0)
  y = f32[8192,2048] parameter(1)
  zero = f32[] constant(0)
  d = f32[8192,2048] subtract(x, y)
  square = f32[8192,2048] multiply(d, d)
  loss = f32[] reduce(square, zero), dimensions={0,1}, to_apply=sum
  bias = f32[2048] reduce(d, zero), dimensions={0}, to_apply=sum
  ROOT t = (f32[], f32[2048]) tuple(loss, bias))");
  for (const char* mapping : {"tuned", "paper"})
    EXPECT_LE(planned(graph, {{"mapping", mapping}}).predicted_us,
              1.2 * make_plan(graph, device("v100"), "xla").predicted_us)
        << mapping;
}

TEST(FusionStitching, WhatPatternsLeaveBetweenThemIsFusedToo) {
  int fewer = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    const Graph graph = canonicalize(parse_hlo(testing::planned_hlo(seed), "random.hlo"));
    const auto knobs = [](const char* on) {
      return std::map<std::string, std::string>{{"score", "execution"}, {"remainders", on}};
    };
    const FusionPlan with = planned(graph, knobs("on")), without = planned(graph, knobs("off"));
    EXPECT_LE(with.predicted_us, without.predicted_us * (1 + 1e-9)) << seed;
    fewer += with.kernels.size() < without.kernels.size() ? 1 : 0;
  }
  EXPECT_GT(fewer, 0);
}

// A sum over the gradients of an optimiser's step stands between its first and its last ops: of each array
// what reads no sum is computed where it is read.
TEST(FusionStitching, UpdatesThatWaitForASumOfAllGradientsReadEachArrayOnce) {
  std::string body = "zero = f32[] constant(0)\n", sum = "zero", results, types;
  constexpr int kArrays = 6;
  for (int i = 0; i < kArrays; ++i) {
    body += fmt::format(R"(
  m{0} = f32[1024,1024] parameter({1})
  g{0} = f32[1024,1024] parameter({2})
  decayed{0} = f32[1024,1024] multiply(m{0}, m{0})
  square{0} = f32[1024,1024] multiply(g{0}, g{0})
  part{0} = f32[] reduce(square{0}, zero), dimensions={{0,1}}, to_apply=sum
  norm{0} = f32[] add({3}, part{0}))",
                        i, 2 * i, 2 * i + 1, sum);
    sum = fmt::format("norm{}", i);
  }
  body += fmt::format("\n  wide = f32[1024,1024] broadcast({}), dimensions={{}}", sum);
  for (int i = 0; i < kArrays; ++i) {
    body += fmt::format(R"(
  scaled{0} = f32[1024,1024] multiply(g{0}, wide)
  next{0} = f32[1024,1024] add(decayed{0}, scaled{0}))",
                        i);
    results += fmt::format("{}next{}", i == 0 ? "" : ", ", i);
    types += fmt::format("{}f32[1024,1024]", i == 0 ? "" : ", ");
  }
  const Graph graph = graph_of(body + fmt::format("\n  ROOT t = ({}) tuple({})", types, results));
  const FusionPlan plan = planned(graph, {{"score", "execution"}});
  const NodeId decayed = testing::op(graph, "decayed0"), next = testing::op(graph, "next0");
  for (const KernelPlan& kernel : plan.kernels)
    EXPECT_EQ(contains_sorted(kernel.ops, decayed), contains_sorted(kernel.ops, next));
  EXPECT_LT(plan.predicted_us, 1.02 * make_plan(graph, device("v100"), "xla").predicted_us);
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

TEST(FusionStitching, MergesAreTakenThoughTheySaveNothing) {
  // Together they are one block's; the sum alone is that of many.
  const Graph graph = graph_of(R"(
  x = f32[4096,4096] parameter(0)
  zero = f32[] constant(0)
  all = f32[] reduce(x, zero), dimensions={0,1}, to_apply=sum
  ROOT root = f32[] sqrt(all))");
  const std::map<std::string, std::string> knobs{{"score", "execution"}};
  const FusionPlan free = edited(graph, {}, knobs),
                   merged = edited(graph, {{EditKind::kMerge, {"all", "root"}, {}, 0}}, knobs);
  EXPECT_EQ(free.counts.memory_kernels, 2);
  EXPECT_EQ(merged.counts.memory_kernels, 1);
  EXPECT_GT(merged.predicted_us, free.predicted_us);
}

TEST(FusionStitching, KnobsThatAreNoneAreRefused) {
  const Graph graph = graph_of(kTwo);
  EXPECT_THROW(edited(graph, {}, {{"score", "best"}}), Error);
  EXPECT_THROW(edited(graph, {}, {{"adaptive_mapping", "on"}}), Error);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
