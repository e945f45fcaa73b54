#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "analysis/planners/planner.h"
#include "tests/support/golden.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

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
  std::vector<Case> result = {{"fig7", "unfused"},  {"gelu", "astitch"}, {"bert_layer", "astitch"},
                              {"fig5", "tvm"},      {"fig7", "tvm"},     {"softmax", "tvm"},
                              {"layer_norm", "tvm"}};
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

/// A kernel of many alike groups, each kind of group once: how many there are of it, what its ops are and
/// where their values are, and how often it is mapped how. Names are left out.
std::string summary(const Graph& graph, const FusionPlan& plan) {
  const Computation& computation = graph.entry_computation();
  const std::string text = to_text(graph, plan);
  std::string result = text.substr(0, text.find("  group "));
  for (const KernelPlan& kernel : plan.kernels) {
    std::map<std::string, std::map<std::string, int>> kinds;
    for (const Group& group : kernel.groups) {
      std::string ops;
      for (const NodeId op : group.ops)
        ops += fmt::format("    {} {} level {}\n", def(computation.node(op).op).name,
                           name(kernel.schemes.at(op)), kernel.levels.at(op));
      ++kinds[ops][to_text(group.mapping, group.deal)];
    }
    for (const auto& [ops, mappings] : kinds) {
      int groups = 0;
      for (const auto& [mapping, number] : mappings) groups += number;
      result += fmt::format("  {} groups of\n{}", groups, ops);
      for (const auto& [mapping, number] : mappings)
        result += fmt::format("   {} times {}\n", number, mapping);
    }
    result +=
        fmt::format("  {} outputs, {} values in scratch\n", kernel.outputs.size(), kernel.scratch.size());
  }
  return result;
}

/// An optimiser's step: as its summary, and each group on blocks of its own as far as they go.
TEST(GoldenPlans, AdamOf200TensorsIsOneUpdateOverAndOver) {
  const Graph graph = dataset("adam_200");
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch", {.knobs = {{"mapping", "paper"}}});
  expect_golden("astitch_adam_200_summary.txt", summary(graph, plan));
  const KernelPlan& kernel = plan.kernels.at(0);
  std::set<std::int64_t> first_blocks;
  for (const Group& group : kernel.groups) {
    EXPECT_LE(group.deal.first_block + group.deal.blocks(), kernel.launch.grid);
    first_blocks.insert(group.deal.first_block);
  }
  EXPECT_GE(first_blocks.size(), static_cast<std::size_t>(kernel.launch.grid) / 2)
      << "lanes share the blocks out";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
