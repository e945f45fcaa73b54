#include <gtest/gtest.h>

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

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlans, ::testing::Range<std::uint32_t>(0, 100));

}  // namespace TEST_FILE
}  // namespace stitchwork
