#include <gtest/gtest.h>

#include "analysis/planner.h"
#include "core/hlo_text.h"
#include "core/passes.h"
#include "tests/support/random_graph.h"

namespace stitchwork {
namespace {

TEST(RandomPlansSlow, EveryPlannerMakesAValidPlanOfLargerGraphs) {
  for (std::uint32_t seed = 1000; seed < 1300; ++seed) {
    testing::RandomGraphOptions options;
    options.ops = 20 + static_cast<int>(seed % 7) * 30;
    options.max_elements = seed % 3 == 0 ? 1 << 20 : 1 << 13;
    const std::string text = testing::random_hlo(seed, options);
    const Graph graph = canonicalize(parse_hlo(text, "random.hlo"));
    for (const char* where : {"v100", "t4"})
      for (const Planner& row : planners())
        EXPECT_NO_THROW(make_plan(graph, device(where), row.name)) << row.name << ", seed " << seed << "\n"
                                                                   << text;
  }
}

}  // namespace
}  // namespace stitchwork
