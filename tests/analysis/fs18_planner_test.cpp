#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/planners/fusionstitching/library.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "tests/support/golden.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::outputs;

using Knobs = std::map<std::string, std::string>;

FusionPlan plan(const Graph& graph, Knobs knobs = {}, std::vector<Edit> edits = {}) {
  knobs.try_emplace("mapping", "paper");
  return make_plan(graph, device("p100"), "fusionstitching-2018", {std::move(knobs), std::move(edits), true});
}

std::vector<std::string> rules_of(const FusionPlan& plan, const std::string& subject) {
  std::vector<std::string> rules;
  for (const Decision& d : plan.decisions)
    if (d.subject == subject) rules.push_back(d.verdict.rule);
  return rules;
}

std::string why(const FusionPlan& plan, const std::string& subject, const std::string& rule) {
  for (const Decision& d : plan.decisions)
    if (d.subject == subject && d.verdict.rule == rule) return d.verdict.why;
  return "";
}

class Fs18Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Fs18Golden, TextIsAsApproved) {
  const Graph graph = dataset(GetParam());
  expect_golden(fmt::format("fusionstitching-2018_{}.txt", GetParam()), to_text(graph, plan(graph)));
}

INSTANTIATE_TEST_SUITE_P(Plans, Fs18Golden,
                         ::testing::Values("fs18_fig3", "fs18_shrink", "fs18_cycle", "fs18_sgd", "softmax",
                                           "layer_norm", "fig7", "layer_norm_grad"));

TEST(Fs18, Figure3IsOneKernelAsThePaperSays) {
  const Graph graph = dataset("fs18_fig3");
  const FusionPlan p = plan(graph, {{"products", "on"}});
  expect_golden("fusionstitching-2018_fs18_fig3_products.txt", to_text(graph, p));
  ASSERT_EQ(p.kernels.size(), 1u);
  EXPECT_EQ(p.counts.library_calls, 0);
  const KernelPlan& kernel = p.kernels[0];
  EXPECT_EQ(kernel.launch.grid, 16);
  std::map<NodeId, std::pair<std::int64_t, std::int64_t>> slots;
  for (const MemorySlot& slot : kernel.shared) slots[slot.op] = {slot.offset, slot.bytes};
  const auto slot = [&](const char* name) { return slots.at(testing::op(graph, name)); };
  EXPECT_EQ(slot("reduce.1"), std::pair(std::int64_t{0}, std::int64_t{256}));
  EXPECT_EQ(slot("exponential.1"), std::pair(std::int64_t{256}, std::int64_t{16384}));
  EXPECT_EQ(slot("reduce.2"), slot("reduce.1"));
  EXPECT_EQ(slot("divide.1"), slot("exponential.1"));  // in place
  EXPECT_TRUE(kernel.shrunk.empty());
  EXPECT_THAT(why(p, "dot.1", "fs18.schedule"), HasSubstr("36 candidates, 5 satisfiable"));
  EXPECT_THAT(why(p, "divide.1", "fs18.schedule"), HasSubstr("(1,8,Row) of 16 blocks"));
  EXPECT_THAT(why(p, "divide.1", "fs.request"), HasSubstr("expensive, before a batch dot"));
  EXPECT_THAT(why(p, "divide.1", "fs.shared"), HasSubstr("in the place of what it reads"));
}

TEST(Fs18, Figure3OfLongerRowsFitsOnlyShrunkAndThenIsNotWorthIt) {
  const Graph graph = dataset("fs18_shrink");
  const FusionPlan p = plan(graph, {{"products", "on"}});
  expect_golden("fusionstitching-2018_fs18_shrink_products.txt", to_text(graph, p));
  EXPECT_THAT(rules_of(p, "divide.1"), ::testing::Contains("fs18.not-optimized"));
  const FusionPlan refused = plan(graph, {{"products", "on"}, {"size_shrinking", "off"}});
  EXPECT_EQ(refused.kernels.size(), 1u);
  EXPECT_EQ(refused.counts.library_calls, 1);
  EXPECT_THAT(rules_of(refused, "divide.1"), ::testing::Contains("fs18.shared-memory"));
}

TEST(Fs18, Figure3WithoutItsDotIsOneKernelAndACall) {
  const Graph graph = dataset("fs18_fig3");
  const FusionPlan p = plan(graph);
  EXPECT_THAT(outputs(graph, p), ElementsAre("divide.1"));
  EXPECT_EQ(p.counts.library_calls, 1);
  EXPECT_EQ(p.kernels[0].launch.grid_barriers, 0);
  EXPECT_THAT(why(p, "divide.1", "fs18.schedule"), HasSubstr("40 candidates, 15 satisfiable"));
}

TEST(Fs18, SoftmaxIsOneKernelUnderFifteenOfFortyEightSchedules) {
  const Graph graph = dataset("softmax");
  const FusionPlan p = plan(graph);
  ASSERT_EQ(p.kernels.size(), 1u);
  const NodeId root = p.kernels[0].outputs.at(0);
  EXPECT_THAT(why(p, graph.entry_computation().node(root).name, "fs18.schedule"),
              HasSubstr("48 candidates, 15 satisfiable"));
  EXPECT_LE(p.kernels[0].launch.shared_bytes, 20480 + 512);
}

TEST(Fs18, AContractedCycleIsRefusedThoughThePapersRuleAllowsIt) {
  const Graph graph = dataset("fs18_cycle");
  const Edit apart{EditKind::kForbidMerge, {"m2", "r1"}, "", 0};
  const FusionPlan p = plan(graph, {{"elementwise_fusion", "off"}}, {apart});
  EXPECT_THAT(rules_of(p, "m2"), ::testing::Contains("fs18.cycle"));
  EXPECT_EQ(p.kernels.size(), 2u);
  EXPECT_EQ(plan(graph, {{"elementwise_fusion", "off"}}).kernels.size(), 1u);
}

TEST(Fs18, UpdatesOfOneShapeArePacked) {
  const Graph graph = dataset("fs18_sgd");
  const FusionPlan p = plan(graph);
  EXPECT_EQ(p.kernels.size(), 2u);
  EXPECT_THAT(rules_of(p, "subtract.2"), ::testing::Contains("fs18.packed"));
  EXPECT_EQ(plan(graph, {{"elementwise_fusion", "off"}}).kernels.size(), 3u);
}

TEST(Fs18, ARoofOfLayersHasNoFewerKernels) {
  for (const char* name :
       {"softmax", "layer_norm_grad", "attention", "mlp_training", "remote_trap", "bert_layer"}) {
    const Graph graph = dataset(name);
    EXPECT_LE(plan(graph).kernels.size(), plan(graph, {{"roof", "layer"}}).kernels.size()) << name;
  }
}

TEST(Fs18, ColumnReductionsAreDealtByColumns) {
  const Graph graph = dataset("column_sum");
  const FusionPlan p = plan(graph);
  ASSERT_EQ(p.kernels.size(), 1u);
  EXPECT_GT(p.kernels[0].launch.grid, 1);
}

TEST(Fs18, OverridesAreHonoured) {
  const Graph graph = dataset("softmax");
  const FusionPlan whole = plan(graph);
  const std::string name = graph.entry_computation().node(whole.kernels.at(0).outputs.at(0)).name;
  for (const std::int64_t threads : {32, 96, 256, 1024}) {
    const Edit block{EditKind::kBlock, {name}, "", threads};
    const FusionPlan p = plan(graph, {}, {block});
    EXPECT_EQ(p.edits, std::vector<Edit>{block});
    EXPECT_EQ(p.kernels.back().launch.block, threads);  // the op ends the last one
  }
  std::string reduce;
  for (const Node& node : graph.entry_computation().nodes)
    if (node.op == Op::kReduce) reduce = node.name;
  const Edit split{EditKind::kSplit, {reduce}, "", 0};
  EXPECT_GT(plan(graph, {}, {split}).kernels.size(), 1u);
}

TEST(Fs18, BadKnobValuesNameTheKnownOnes) {
  const Graph graph = dataset("softmax");
  try {
    plan(graph, {{"roof", "7"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("knob roof has no value '7'"));
    EXPECT_THAT(error.what(), HasSubstr("path, layer"));
  }
}

TEST(Fs18, ALibrarysTimesDecide) {
  const Graph graph = testing::graph_of("p = f32[64,256] parameter(0)\n ROOT t = f32[64,256] tanh(p)");
  fusionstitching::PerformanceLibrary library{"p100-sxm2", {}};
  library.entries["tanh f32[64,256] row 0/4 t128"] = {0.001, "measured"};
  PlanOptions options{{{"mapping", "paper"}}, {}, false};
  options.library = &library;
  const FusionPlan p = make_plan(graph, device("p100"), "fusionstitching-2018", options);
  EXPECT_EQ(p.kernels.at(0).launch.grid, 4);
  EXPECT_EQ(p.kernels.at(0).launch.block, 128);
}

// Table 1 has no dynamic-update-slice: it is bypassed where it is inlined, and as an output it has a loop.
TEST(Fs18, AnOutputThatTable1DoesNotHaveIsTunedAsAnyOther) {
  const Graph graph = testing::graph_of(
      "p = f32[300,32,250] parameter(0)\n u = f32[1,32,250] parameter(1)\n i = s32[] parameter(2)\n"
      "z = s32[] constant(0)\n ROOT d = f32[300,32,250] dynamic-update-slice(p, u, i, z, z)");
  const FusionPlan p = plan(graph);
  ASSERT_EQ(p.kernels.size(), 1u);
  EXPECT_THAT(why(p, "d", "fs18.schedule"), HasSubstr("us modelled"));
  EXPECT_LE(p.kernels[0].predicted_us,
            1.25 * make_plan(graph, device("p100"), "xla").kernels.at(0).predicted_us);
}

TEST(Fs18, ManyThreadsPlanTheSame) {
  const Graph graph = dataset("bert_layer");
  EXPECT_EQ(to_text(graph, plan(graph)), to_text(graph, plan(graph)));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
