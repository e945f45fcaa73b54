#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/judge/cost.h"
#include "analysis/plan/mapping.h"
#include "analysis/planners/planner.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/launch.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FusionPlan plan(const Graph& graph, std::string_view on = "v100",
                std::map<std::string, std::string> knobs = {}) {
  return make_plan(graph, device(on), "astitch", {std::move(knobs), {}, true});
}

std::vector<std::string> across(const Graph& graph, const FusionPlan& plan) {
  std::vector<std::string> names;
  for (const KernelPlan& kernel : plan.kernels)
    for (const Group& group : kernel.groups)
      for (const NodeId op : group.across) names.push_back(graph.entry_computation().node(op).name);
  return names;
}

/// The input's gradient under softmax, and a bias' one: row sums, and the columns of what they make.
Graph softmax_gradient(int rows, int cols) {
  return canonicalize(parse_hlo(fmt::format(R"(HloModule t
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY main {{
  y = f32[{0},{1}] parameter(0)
  g = f32[{0},{1}] parameter(1)
  zero = f32[] constant(0)
  yg = f32[{0},{1}] multiply(y, g)
  s = f32[{0}] reduce(yg, zero), dimensions={{1}}, to_apply=sum
  ws = f32[{0},{1}] broadcast(s), dimensions={{0}}
  d = f32[{0},{1}] subtract(g, ws)
  dx = f32[{0},{1}] multiply(d, y)
  db = f32[{1}] reduce(dx, zero), dimensions={{0}}, to_apply=sum
  ROOT t = (f32[{0},{1}], f32[{1}]) tuple(dx, db)
}}
)",
                                            rows, cols),
                                "test.hlo"));
}

TEST(AstitchAcross, LayerNormsGradientReadsEachInputOnce) {
  const Graph graph = dataset("layer_norm_grad");
  for (const char* on : {"v100", "h200"}) {
    const FusionPlan made = plan(graph, on);
    ASSERT_EQ(made.kernels.size(), 1u) << on;
    EXPECT_EQ(across(graph, made).size(), 2u) << on;
    EXPECT_EQ(made.kernels[0].launch.grid_barriers, 1) << on;
    std::int64_t inputs = 0;
    for (const Node& node : graph.entry_computation().nodes)
      if (node.op == Op::kParameter) inputs += node.shape.byte_size();
    const KernelCost cost = kernel_cost(graph, device(on), made.kernels[0]);
    EXPECT_LT(cost.dram_read_bytes, inputs * 1.25) << on;
  }
}

TEST(AstitchAcross, ABiasGradientJoinsTheRowsOfASoftmaxGradient) {
  const Graph graph = softmax_gradient(4096, 512);
  const FusionPlan made = plan(graph);
  EXPECT_THAT(across(graph, made), ElementsAre("db"));
  const auto taken = std::find_if(made.decisions.begin(), made.decisions.end(),
                                  [](const Decision& d) { return d.verdict.rule == "astitch.across-rows"; });
  ASSERT_NE(taken, made.decisions.end());
  EXPECT_EQ(taken->subject, "db");
  EXPECT_TRUE(taken->verdict.ok);
  EXPECT_THAT(taken->verdict.why, HasSubstr("in groups of their own"));
}

TEST(AstitchAcross, IsNotDoneWithoutReuseOrMerging) {
  const Graph graph = softmax_gradient(4096, 512);
  for (const char* knob : {"across_rows", "data_reuse", "dominant_merging", "exhaustive_stitching"})
    EXPECT_THAT(across(graph, plan(graph, "v100", {{knob, "off"}})), IsEmpty()) << knob;
}

/// make_plan throws for what verify refuses.
TEST(AstitchAcross, OddShapesAreSummedAcrossWhereThatIsEstimatedToBeFaster) {
  int taken = 0, left = 0;
  for (const int rows : {0, 1, 2, 3, 31, 5000})
    for (const int cols : {1, 2, 3, 31, 33, 1000, 7001}) {
      const Graph graph = softmax_gradient(rows, cols);
      for (const char* mapping : {"paper", "tuned"}) {
        SCOPED_TRACE(fmt::format("{}x{} {}", rows, cols, mapping));
        const FusionPlan made = plan(graph, "v100", {{"mapping", mapping}});
        const FusionPlan apart = plan(graph, "v100", {{"mapping", mapping}, {"across_rows", "off"}});
        const bool crosses = !across(graph, made).empty();
        (crosses ? taken : left) += 1;
        if (!crosses) {
          EXPECT_EQ(made.predicted_us, apart.predicted_us);
          continue;
        }
        EXPECT_LT(made.predicted_us, apart.predicted_us);
        const KernelPlan& kernel = made.kernels.at(0);
        const NodeId db = graph.entry_computation().find("db");
        for (const Group& group : kernel.groups)
          if (is_across(group, db)) {
            const auto partials = std::ranges::find(kernel.scratch, db, &MemorySlot::op);
            ASSERT_NE(partials, kernel.scratch.end());
            EXPECT_EQ(partials->bytes, group.deal.takers * cols * 4) << "a partial a block and column";
          }
      }
    }
  EXPECT_GE(taken, 8);
  EXPECT_GE(left, 20);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
