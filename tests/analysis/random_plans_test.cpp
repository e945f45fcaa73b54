#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/judge/cost_within.h"
#include "analysis/planners/planner.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "tests/support/fuzz.h"

namespace stitchwork {
namespace TEST_FILE {

// make_plan itself checks what it made with verify.
class RandomPlans : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomPlans, EveryPlannerMakesAValidPlan) {
  const std::string text = testing::random_hlo(GetParam());
  const Graph graph = canonicalize(parse_hlo(text, "random.hlo"));
  const std::string_view id = testing::kFuzzDevices[GetParam() % std::size(testing::kFuzzDevices)];
  for (const Planner& row : planners_for(graph))
    EXPECT_NO_THROW(make_plan(graph, device(id), row.name)) << row.name << " for " << id << " of\n" << text;
}

TEST_P(RandomPlans, EstimatesThatEndEarlySayTheSame) {
  const Graph graph = canonicalize(parse_hlo(testing::random_hlo(GetParam()), "random.hlo"));
  const Device& device =
      stitchwork::device(testing::kFuzzDevices[GetParam() % std::size(testing::kFuzzDevices)]);
  for (const std::string_view planner : {"astitch", "fusionstitching", "xla"})
    for (const KernelPlan& kernel : make_plan(graph, device, planner).kernels) {
      const KernelEvaluations found = evaluations(graph.entry_computation(), kernel);
      const double us = kernel_cost(graph, device, kernel, found).predicted_us;
      for (const double share : {0.1, 0.5, 0.9, 0.999999})
        EXPECT_EQ(us_within(graph, device, kernel, found, us * share), std::nullopt) << planner;
      for (const double share : {1.0, 1.1, 10.0})
        EXPECT_EQ(us_within(graph, device, kernel, found, us * share), us) << planner;
    }
}

// What is recorded asks for every gain, what is not only for those at the head of the queue.
TEST_P(RandomPlans, XlaOfTodayFusesTheSameByBounds) {
  testing::RandomGraphOptions options = testing::fuzz_options(GetParam());
  options.ops = 20 + static_cast<int>(GetParam()) * 2;
  const Graph graph = canonicalize(parse_hlo(testing::RandomGraph(GetParam(), options).text(), "random.hlo"));
  const FusionPlan by_bounds = make_plan(graph, device("v100"), "xla-today");
  const FusionPlan by_gains = make_plan(graph, device("v100"), "xla-today", {.record_decisions = true});
  EXPECT_TRUE(
      std::ranges::equal(by_bounds.kernels, by_gains.kernels, {}, &KernelPlan::ops, &KernelPlan::ops));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlans, ::testing::Range<std::uint32_t>(0, 100));

}  // namespace TEST_FILE
}  // namespace stitchwork
