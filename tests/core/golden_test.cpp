// The reference against JAX, on the golden tensors of the small datasets.
#include <gtest/gtest.h>

#include "core/evaluate/judge.h"
#include "core/hlo/hlo_text.h"
#include "tests/support/golden_tensors.h"

namespace stitchwork {
namespace TEST_FILE {

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, EvaluatorAgreesWithJax) {
  const Graph graph = read_graph((testing::kDatasets / (GetParam() + ".hlo")).string());
  const std::vector<Literal> expected = testing::golden_tensors(GetParam(), "out");
  ASSERT_FALSE(expected.empty());
  const CheckResult check = Judge(graph, testing::golden_tensors(GetParam(), "in")).check(expected);
  EXPECT_TRUE(check.ok) << check.message;
}

INSTANTIATE_TEST_SUITE_P(Datasets, Golden, ::testing::ValuesIn(testing::golden_datasets()),
                         [](const auto& info) { return info.param; });

}  // namespace TEST_FILE
}  // namespace stitchwork
