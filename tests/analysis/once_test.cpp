#include "analysis/facts/once.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/explain/compare.h"
#include "analysis/json/plan_json.h"
#include "analysis/judge/cost.h"
#include "analysis/plan/plan_memory.h"
#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using testing::graph_of;
using ::testing::HasSubstr;
using testing::op;

/// Three projections of one array, and what follows them.
Graph projections() {
  return graph_of(R"(
  x = f32[32,1024] parameter(0)
  w.q = f32[1024,256] parameter(1)
  w.k = f32[1024,256] parameter(2)
  w.v = f32[1024,256] parameter(3)
  q = f32[32,256] dot(x, w.q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k = f32[32,256] dot(x, w.k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  v = f32[32,256] dot(x, w.v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[32,256] exponential(k)
  m = f32[32,256] multiply(q, e)
  ROOT r = f32[32,256] add(m, v))");
}

const Device& a100() { return device("a100-sxm-80"); }

PlanOptions stable(std::vector<std::string> weights) {
  return {.knobs = {{"weights", "stable"}}, .weights = std::move(weights)};
}

FusionPlan merged() { return make_plan(projections(), a100(), "fission", stable({"w.*"})); }

std::vector<std::string> once_steps(const FusionPlan& plan) {
  std::vector<std::string> ids;
  for (const PlanStep& step : plan.steps)
    if (step.once) ids.push_back(step.id);
  return ids;
}

TEST(Weights, ANameOrPatternIsOfParameters) {
  const Graph graph = projections();
  EXPECT_THAT(weights_named(graph, {"w.v", "w.[kq]"}), ElementsAre("w.k", "w.q", "w.v"));
  for (const char* none : {"w.z", "q", "y*"}) EXPECT_THROW(weights_named(graph, {none}), Error) << none;
  try {
    make_plan(graph, a100(), "fission", stable({}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("weights=stable, and no parameter is declared as a weight"));
  }
}

TEST(Weights, OnceIsWhatDependsOnThemAndConstantsAlone) {
  const Graph graph = graph_of(R"(
  x = f32[8] parameter(0)
  w = f32[8] parameter(1)
  c = f32[8] constant({1,2,3,4,5,6,7,8})
  a = f32[8] add(w, c)
  b = f32[8] reshape(a)
  d = f32[8,8] dot(b, a), lhs_contracting_dims={}, rhs_contracting_dims={}
  m = f32[8] multiply(a, x)
  ROOT t = (f32[8,8], f32[8]) tuple(d, m))");
  const Computation& c = graph.entry_computation();
  EXPECT_TRUE(once_values(c).empty());
  const std::vector<bool> once = once_values(c, {"w"});
  for (const char* name : {"w", "c", "a", "b", "d"})
    EXPECT_TRUE(once[static_cast<std::size_t>(op(graph, name))]) << name;
  for (const char* name : {"x", "m", "t"})
    EXPECT_FALSE(once[static_cast<std::size_t>(op(graph, name))]) << name;
}

// Appending the weights costs a kernel a run, unless it is done once: then the three are one call.
TEST(Weights, RewritingsArePricedWithoutWhatIsDoneOnce) {
  const Graph graph = projections();
  const FusionPlan plan = merged(), every_run = make_plan(graph, a100(), "fission");
  EXPECT_EQ(plan.counts.library_calls, 1);
  EXPECT_EQ(plan.counts.memory_kernels, 1) << "of a run";
  ASSERT_EQ(plan.kernels.size(), 2U);
  EXPECT_THAT(once_steps(plan), ElementsAre("k0"));
  EXPECT_TRUE(plan.steps.front().once);
  EXPECT_LT(plan.predicted_us, 0.7 * every_run.predicted_us);
  EXPECT_GT(plan.once_us, 0);
  EXPECT_EQ(every_run.once_us, 0);

  const PlanCost cost = plan_cost(graph, a100(), plan);
  EXPECT_DOUBLE_EQ(cost.predicted_us, plan.predicted_us);
  EXPECT_DOUBLE_EQ(cost.once_us, plan.once_us);
  double us = a100().launch_gap_us;
  for (const PlanStep& step : plan.steps)
    if (!step.once) us += step.predicted_us;
  EXPECT_DOUBLE_EQ(us, plan.predicted_us);
  const CompareRow row = row_of(graph, plan, 0);
  EXPECT_EQ(row.once_us, plan.once_us);
  EXPECT_EQ(row.memory_us, plan.kernels[1].predicted_us);
  // What later runs find there stays until the end.
  const PlanMemory memory = plan_memory(graph, plan);
  for (const BufferLife& buffer : memory.buffers)
    if (planned_graph(graph, plan).entry_computation().node(buffer.owner).shape.dims ==
        std::vector<std::int64_t>{1024, 768})
      EXPECT_EQ(buffer.last, plan.steps.size() - 1);
}

TEST(Weights, ResultsAreMadeInEveryRun) {
  const Graph graph = graph_of(
      "x = f32[64] parameter(0)\n w = f32[64] parameter(1)\n a = f32[64] abs(w)\n n = f32[64] negate(x)\n"
      "ROOT t = (f32[64], f32[64]) tuple(a, n)");
  const FusionPlan plan = make_plan(graph, a100(), "auto", stable({"w"}));
  EXPECT_TRUE(once_steps(plan).empty());
}

// A kernel that weights alone feed is joined with none of every run.
TEST(Weights, WhatIsDoneOnceIsNotStitchedToARun) {
  const Graph graph = graph_of(R"(
  x = f32[256,256] parameter(0)
  y = f32[256,256] parameter(1)
  w = f32[256,256] parameter(2)
  a = f32[256,256] tanh(w)
  b = f32[256,256] tanh(x)
  d = f32[256,256] dot(a, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[256,256] dot(b, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[256,256] negate(f))");
  const auto kernel_of = [&](const FusionPlan& plan, const char* name) {
    const auto found = std::ranges::find_if(plan.kernels, [&](const KernelPlan& kernel) {
      return std::ranges::count(kernel.ops, op(graph, name)) > 0;
    });
    return found - plan.kernels.begin();
  };
  const FusionPlan every_run = make_plan(graph, a100(), "auto");
  EXPECT_EQ(kernel_of(every_run, "a"), kernel_of(every_run, "b")) << "two small kernels are one";
  const FusionPlan plan = make_plan(graph, a100(), "auto", stable({"w"}));
  EXPECT_NE(kernel_of(plan, "a"), kernel_of(plan, "b"));
  EXPECT_THAT(once_steps(plan), ElementsAre("k0"));
}

TEST(Weights, PlansAreSavedAndVerifiedWithThem) {
  const Graph graph = projections();
  const FusionPlan plan = merged();
  const std::string text = plan_to_json(graph, plan).dump();
  const FusionPlan read = plan_from_json(graph, text, "plan.json");
  EXPECT_EQ(read.weights, plan.weights);
  EXPECT_EQ(read.once_us, plan.once_us);
  EXPECT_EQ(once_steps(read), once_steps(plan));
  EXPECT_EQ(plan_to_json(graph, read).dump(), text);
  EXPECT_TRUE(verify(graph, a100(), read).empty());
  EXPECT_EQ(make_plan(graph, a100(), "fission", as_planned(read, false)).predicted_us, plan.predicted_us);

  const auto refused = [&](auto change) {
    FusionPlan mutant = read;
    change(mutant);
    const std::vector<Verdict> problems = verify(graph, a100(), mutant);
    return std::ranges::any_of(problems, [](const Verdict& v) { return v.rule == "verify.once"; });
  };
  EXPECT_TRUE(refused([](FusionPlan& p) { p.weights.pop_back(); })) << "it depends on what is no weight";
  EXPECT_TRUE(refused([](FusionPlan& p) { p.weights = {"q"}; })) << "no parameter";
  EXPECT_TRUE(refused([](FusionPlan& p) { p.steps[1].once = true; })) << "it reads an input";
  EXPECT_TRUE(refused([](FusionPlan& p) { p.steps.back().once = true; })) << "behind steps of a run";
  EXPECT_FALSE(refused([](FusionPlan& p) { p.steps[0].once = false; }))
      << "done in every run it is right, too";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
