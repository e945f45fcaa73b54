#include "analysis/explain/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain/explain.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PlanDiff between(const Graph& graph, const char* a, const char* b) {
  return diff(graph, make_plan(graph, device("v100"), a), make_plan(graph, device("v100"), b));
}

std::vector<std::string> names(const std::vector<DiffKernel>& kernels) {
  std::vector<std::string> result;
  for (const DiffKernel& k : kernels) result.push_back(k.name);
  return result;
}

TEST(Diff, APlanDoesNotDifferFromItself) {
  const Graph graph = dataset("layer_norm");
  for (const Planner& row : planners_for(graph)) {
    const FusionPlan plan = make_plan(graph, device("v100"), row.name);
    const PlanDiff d = diff(graph, plan, plan);
    EXPECT_EQ(d.same_kernels, plan.counts.memory_kernels) << row.name;
    EXPECT_THAT(d.removed, IsEmpty());
    EXPECT_THAT(d.added, IsEmpty());
    EXPECT_THAT(d.changed, IsEmpty());
    EXPECT_THAT(d.moved, IsEmpty());
    EXPECT_THAT(d.boundaries, IsEmpty());
    EXPECT_EQ(d.a.predicted_us, d.b.predicted_us);
  }
}

TEST(Diff, ProductsByOtherKernelsAreAChange) {
  const Graph graph = dataset("scrnn_tiny");
  const FusionPlan a = make_plan(graph, device("v100"), "xla");
  FusionPlan b = a;
  std::vector<std::string> expected;
  for (PlanStep& step : b.steps)
    if (step.kind == StepKind::kLibrary && expected.size() < 2) {
      step.variant = "tiled-64x64";
      expected.push_back(graph.entry_computation().node(step.nodes.front()).name);
    }
  const PlanDiff d = diff(graph, a, b);
  ASSERT_EQ(d.products.size(), 2u);
  for (const ProductChange& product : d.products) {
    EXPECT_THAT(expected, ::testing::Contains(product.op));
    EXPECT_EQ(product.from, "");
    EXPECT_EQ(product.to, "tiled-64x64");
  }
  EXPECT_THAT(to_text(d), ::testing::HasSubstr("products by the library -> tiled-64x64: "));
  EXPECT_THAT(diff(graph, b, b).products, IsEmpty());
  EXPECT_THAT(explain(graph, b, expected[0]).step, ::testing::EndsWith(", made by our kernel tiled-64x64"));
}

TEST(Diff, NamesTheKernelsThatGoAndTheRulesThatHadKeptThemApart) {
  const Graph graph = dataset("fig7");
  const PlanDiff d = between(graph, "xla", "astitch");
  EXPECT_EQ(d.a.memory_kernels, 4);
  EXPECT_EQ(d.b.memory_kernels, 1);
  EXPECT_EQ(d.removed.size(), 3u);
  EXPECT_THAT(d.added, IsEmpty());
  ASSERT_EQ(d.changed.size(), 1u);
  EXPECT_GT(d.changed[0].gained.size(), 0u);
  std::vector<std::string> rules;
  for (const Boundary& b : d.boundaries) {
    EXPECT_FALSE(b.apart_in_b);
    ASSERT_TRUE(b.apart) << b.producer << " " << b.consumer;
    rules.push_back(b.apart->verdict.rule);
  }
  EXPECT_THAT(rules, ::testing::Contains("xla.reduce-is-never-a-producer"));
  EXPECT_THAT(rules, ::testing::Contains("xla.expensive-and-reused"));
}

TEST(Diff, IsTheSameSeenFromTheOtherSide) {
  const Graph graph = dataset("fig7");
  const PlanDiff there = between(graph, "xla", "astitch"), back = between(graph, "astitch", "xla");
  EXPECT_EQ(names(there.removed), names(back.added));
  EXPECT_EQ(there.moved.size(), back.moved.size());
  ASSERT_EQ(there.boundaries.size(), back.boundaries.size());
  for (const Boundary& b : back.boundaries) EXPECT_TRUE(b.apart_in_b);
}

TEST(Diff, AnOpThatWritesItsResultInOnePlanOnlyIsAMovedOp) {
  const Graph graph = dataset("fig7");
  const PlanDiff d = between(graph, "tvm", "tvm-duplicating");
  ASSERT_EQ(d.removed.size(), 1u);
  EXPECT_EQ(d.removed[0].name, "broadcast_2");
  const auto power =
      std::find_if(d.moved.begin(), d.moved.end(), [](const MovedOp& m) { return m.op == "power.1"; });
  ASSERT_NE(power, d.moved.end());
  EXPECT_THAT(power->from, ElementsAre("k1 broadcast_2"));
  EXPECT_THAT(power->to, ElementsAre("k1 reduce_2", "k2 multiply_1"));
}

TEST(Diff, OtherMappingsOfTheSameOpsAreAChange) {
  const Graph graph = dataset("row_750000x32");
  const PlanDiff d = between(graph, "xla", "xla+atm");
  ASSERT_EQ(d.changed.size(), 1u);
  EXPECT_THAT(d.changed[0].gained, IsEmpty());
  EXPECT_NE(d.changed[0].launch_a, d.changed[0].launch_b);
  EXPECT_THAT(d.moved, IsEmpty());
}

TEST(Diff, PlansOfDifferentModelsAreRefused) {
  const Graph fig5 = dataset("fig5"), fig7 = dataset("fig7");
  const FusionPlan a = make_plan(fig5, device("v100"), "xla"), b = make_plan(fig7, device("v100"), "xla");
  EXPECT_THROW(diff(fig7, a, b), Error);
}

TEST(Diff, TextSaysWhatAndWhy) {
  const Graph graph = dataset("fig7");
  const std::string text = to_text(between(graph, "xla", "astitch"));
  EXPECT_THAT(text, HasSubstr("memory kernels 4 -> 1 (-3)"));
  EXPECT_THAT(text, HasSubstr("apart in A [xla.expensive-and-reused]"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
