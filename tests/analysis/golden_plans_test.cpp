#include <fmt/format.h>
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
  const auto [model, planner] = GetParam();
  const Graph graph = dataset(model);
  PlanOptions options;
  // The mapping of the paper, whatever the default: these plans are read beside it.
  if (planner == std::string("astitch")) options.knobs["mapping"] = "paper";
  const FusionPlan plan = make_plan(graph, device("v100"), planner, options);
  expect_golden(fmt::format("{}_{}.txt", planner, model), to_text(graph, plan));
}

std::vector<Case> cases() {
  std::vector<Case> result = {{"fig7", "unfused"},     {"gelu", "astitch"},  {"bert_layer", "astitch"},
                              {"adam_200", "astitch"}, {"fig5", "tvm"},      {"fig7", "tvm"},
                              {"softmax", "tvm"},      {"layer_norm", "tvm"}};
  // Under the paper's baseline too, so that what stitching changes can be read.
  for (const char* model : {"fig5", "fig7", "row_750000x32", "row_64x30000", "column_sum", "softmax",
                            "layer_norm", "layer_norm_grad", "attention", "mlp_training", "remote_trap",
                            "adam_tiny", "rotary", "rotary_interleaved"})
    for (const char* planner : {"xla", "astitch"}) result.push_back({model, planner});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Plans, GoldenPlans, ::testing::ValuesIn(cases()), [](const auto& info) {
  return std::string(info.param.model) + "_" + info.param.planner;
});

}  // namespace
}  // namespace stitchwork
