// The search for rewritings: what it finds in the worked examples, what it refuses, that it loses nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "analysis/json/plan_json.h"
#include "analysis/planners/fission/search.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "core/substitute/rule.h"
#include "tests/support/fission_graphs.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;
using ::testing::HasSubstr;

FusionPlan fission(const Graph& graph, const char* on = "v100-sxm2", PlanOptions options = {}) {
  options.record_decisions = true;
  return make_plan(graph, device(on), "fission", options);
}

double automatic(const Graph& graph, const char* on = "v100-sxm2") {
  return make_plan(graph, device(on), "auto").predicted_us;
}

bool took(const FusionPlan& plan, std::string_view rule) {
  return plan.rewritten != nullptr &&
         std::ranges::any_of(plan.rewritten->steps, [&](const auto& step) { return step.rule == rule; });
}

/// E4: quadratic attention with ReLU.
Graph quadratic_attention() {
  return graph_of(R"(
  q = f32[4096,32] parameter(0)
  k = f32[4096,32] parameter(1)
  v = f32[4096,32] parameter(2)
  zero = f32[] constant(0)
  zeros = f32[4096,32] broadcast(zero), dimensions={}
  fq = f32[4096,32] maximum(q, zeros)
  fk = f32[4096,32] maximum(k, zeros)
  a = f32[4096,4096] dot(fq, fk), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  rows = f32[4096] reduce(a, zero), dimensions={1}, to_apply=sum
  rows_all = f32[4096,4096] broadcast(rows), dimensions={0}
  p = f32[4096,4096] divide(a, rows_all)
  ROOT o = f32[4096,32] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)");
}

TEST(FissionSearch, QuadraticAttentionBecomesLinear) {
  const Graph graph = quadratic_attention();
  const FusionPlan plan = fission(graph);
  EXPECT_LE(plan.predicted_us, 0.1 * automatic(graph));
  PlanOptions moves;
  moves.knobs["reassociate"] = "off";
  EXPECT_GE(fission(graph, "v100-sxm2", moves).predicted_us, 0.9 * automatic(graph));
}

TEST(FissionSearch, ASumBehindAProductGoesBeforeIt) {
  const Graph graph = testing::sum_behind_a_product();
  const FusionPlan plan = fission(graph);
  EXPECT_TRUE(took(plan, "reduce-of-dot"));
  EXPECT_LE(plan.predicted_us, 0.4 * automatic(graph));
}

TEST(FissionSearch, AStitchedSoftmaxHasItsSumForNothing) {
  const Graph graph = testing::softmax_between_products();
  const FusionPlan plan = fission(graph);
  EXPECT_NEAR(plan.predicted_us, automatic(graph), 1e-9);
  EXPECT_FALSE(took(plan, "reduce-as-dot"));
  const auto refused = std::ranges::find_if(plan.decisions, [](const Decision& d) {
    return d.verdict.rule == "fission.sketched" && !d.verdict.ok &&
           d.verdict.why.starts_with("softmax-dot at o;");
  });
  ASSERT_NE(refused, plan.decisions.end());
  EXPECT_EQ(refused->subject, "o");
  EXPECT_THAT(refused->verdict.why, HasSubstr(" us as it is, by XLA's kernels"));
}

TEST(FissionSearch, IsNeverDearerThanAuto) {
  for (const char* model : {"softmax_block_tiny", "linear_attention_tiny", "bert_tiny", "fig7",
                            "attention_tiny", "moe_layer_tiny", "layer_norm_tiny"}) {
    const Graph graph = testing::dataset(model);
    for (const char* on : {"v100-sxm2", "t4", "h200"})
      EXPECT_LE(fission(graph, on).predicted_us, automatic(graph, on) + 1e-6) << model << " " << on;
  }
}

TEST(FissionSearch, AnOverrideKeepsTheOpItNames) {
  const Graph graph = graph_of(R"(
  x = f32[1024,256] parameter(0)
  w = f32[256,1000] parameter(1)
  zero = f32[] constant(0)
  y = f32[1024,1000] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = f32[1000] reduce(y, zero), dimensions={0}, to_apply=sum
)");
  PlanOptions options;
  options.edits = {{EditKind::kBlock, {"s"}, {}, 256}};
  const FusionPlan plan = fission(graph, "v100-sxm2", options);
  EXPECT_FALSE(took(plan, "reduce-of-dot"));
  EXPECT_TRUE(std::ranges::any_of(
      plan.decisions, [](const Decision& d) { return d.verdict.rule == "fission.named-by-override"; }));
}

TEST(FissionSearch, TheSamePlanTwice) {
  for (const char* model : {"linear_attention_tiny", "bert_tiny"}) {
    const Graph graph = testing::dataset(model);
    EXPECT_EQ(plan_to_json(graph, fission(graph)).dump(), plan_to_json(graph, fission(graph)).dump());
  }
}

TEST(FissionSearch, RegionsThatAreAlikeHaveOneText) {
  const Graph graph = testing::dataset("bert_base");
  std::map<std::string, int> texts;
  for (const fission::Region& region : fission::regions(graph)) ++texts[region.text];
  int layers = 0;
  for (const auto& [text, count] : texts) layers += count == 12 ? 1 : 0;
  EXPECT_GE(layers, 3);  // attention, the feed-forward net, norms
}

}  // namespace TEST_FILE
}  // namespace stitchwork
