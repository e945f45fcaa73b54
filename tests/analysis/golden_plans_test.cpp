#include <gtest/gtest.h>

#include "analysis/planner.h"
#include "tests/support/golden.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace {

using testing::dataset;

struct Case {
  const char* model;
  const char* planner;
};

class GoldenPlans : public ::testing::TestWithParam<Case> {};

TEST_P(GoldenPlans, TextIsAsApproved) {
  const Graph graph = dataset(GetParam().model);
  const FusionPlan plan = make_plan(graph, device("v100"), GetParam().planner);
  expect_golden(std::string(GetParam().planner) + "_" + GetParam().model + ".txt", to_text(graph, plan));
}

INSTANTIATE_TEST_SUITE_P(
    Plans, GoldenPlans,
    ::testing::Values(Case{"fig7", "unfused"}, Case{"fig7", "xla"}, Case{"softmax", "xla"},
                      Case{"layer_norm", "xla"}, Case{"column_sum", "xla"}, Case{"row_750000x32", "xla"},
                      Case{"row_64x30000", "xla"}, Case{"fig5", "tvm"}, Case{"fig7", "tvm"},
                      Case{"softmax", "tvm"}, Case{"layer_norm", "tvm"}),
    [](const auto& info) { return std::string(info.param.model) + "_" + info.param.planner; });

}  // namespace
}  // namespace stitchwork
