// Scans written as windows, whose reducers XLA expands to slices and paddings of halving lengths: values
// between blocks that a map alone proves local, by its guards.
#include "tests/support/scans.h"

#include <gtest/gtest.h>

#include <random>

#include "analysis/planners/planner.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

class Scans : public ::testing::TestWithParam<int> {};

TEST_P(Scans, ArePlannedByEveryPlanner) {
  std::mt19937 draw(static_cast<std::uint32_t>(GetParam()));
  const auto size = [&](int most) { return std::uniform_int_distribution<std::int64_t>(2, most)(draw); };
  for (const char* reducer : testing::kScanReducers) {
    const int dim = static_cast<int>(draw() % 2);
    const std::int64_t rows = size(dim == 0 ? 60 : 9), cols = size(dim == 0 ? 9 : 60);
    const Graph graph = testing::graph_of(testing::window_scan(rows, cols, dim, reducer));
    for (const Planner& row : planners_for(graph))
      EXPECT_NO_THROW(make_plan(graph, device("a100-sxm-40"), row.name))
          << row.name << ": " << testing::window_scan(rows, cols, dim, reducer);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Scans, ::testing::Range(1, 9));

}  // namespace TEST_FILE
}  // namespace stitchwork
