#include <gtest/gtest.h>

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

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlans, ::testing::Range<std::uint32_t>(0, 100));

}  // namespace TEST_FILE
}  // namespace stitchwork
