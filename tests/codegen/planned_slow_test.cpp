#include "tests/codegen/planned.h"
#include "tests/support/random_graph.h"

namespace stitchwork {
namespace TEST_FILE {

class RandomGraphs : public ::testing::TestWithParam<int> {};

TEST_P(RandomGraphs, AreComputedAlikeByEveryPlanner) {
  SKIP_WITHOUT_COMPILER();
  testing::expect_planned_correct(
      testing::graph_of(testing::random_hlo(static_cast<std::uint32_t>(GetParam()))));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphs, ::testing::Range(2, 30));

}  // namespace TEST_FILE
}  // namespace stitchwork
