#include "analysis/plan/control_flow.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/explain/explain.h"
#include "analysis/json/plan_json.h"
#include "analysis/judge/cost.h"
#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "core/passes/trip_count.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// `trips` iterations of two element-wise ops that a dot separates.
Graph loop(int trips, const std::string& limit = "constant(%)") {
  const std::string bound = limit == "constant(%)" ? fmt::format("constant({})", trips) : limit;
  return canonicalize(parse_hlo(fmt::format(R"(HloModule loop
cond {{ c = (s32[], f32[64,64], s32[]) parameter(0)  i = s32[] get-tuple-element(c), index=0
  m = s32[] get-tuple-element(c), index=2  n = s32[] {}  ROOT lt = pred[] compare(i, n), direction=LT }}
body {{ b = (s32[], f32[64,64], s32[]) parameter(0)  i = s32[] get-tuple-element(b), index=0
  v = f32[64,64] get-tuple-element(b), index=1  m = s32[] get-tuple-element(b), index=2
  one = s32[] constant(1)  j = s32[] add(i, one)  e = f32[64,64] exponential(v)
  d = f32[64,64] dot(e, e), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}  w = f32[64,64] tanh(d)
  ROOT t = (s32[], f32[64,64], s32[]) tuple(j, w, m) }}
ENTRY main {{ x = f32[64,64] parameter(0)  k = s32[] parameter(1)  zero = s32[] constant(0)
  t = (s32[], f32[64,64], s32[]) tuple(zero, x, k)
  loop = (s32[], f32[64,64], s32[]) while(t), condition=cond, body=body
  r = f32[64,64] get-tuple-element(loop), index=1  ROOT n = f32[64,64] negate(r) }})",
                                            bound),
                                "loop.hlo"));
}

TEST(ControlFlow, BodiesArePlannedByTheSamePlannerAndCountedByTheirTrips) {
  const Graph graph = loop(5);
  for (const Planner& row : planners_for(graph)) {
    SCOPED_TRACE(row.name);
    // A dot that a kernel computes would be no call.
    PlanOptions options;
    if (std::find(row.knobs.begin(), row.knobs.end(), "products") != row.knobs.end())
      options.knobs["products"] = "off";
    const FusionPlan plan = make_plan(graph, device("v100"), row.name, options);
    ASSERT_EQ(plan.computations.size(), 1u) << "nobody computes the condition of a loop that is counted";
    int kernels = static_cast<int>(plan.kernels.size()), calls = 0;
    std::int64_t body = 0;
    for (const ComputationPlan& part : plan.computations) {
      EXPECT_EQ(part.plan.planner, row.name);
      kernels += static_cast<int>(part.plan.kernels.size());
      calls += part.plan.counts.library_calls;
      body = part.plan.counts.dynamic_memory_kernels;
    }
    EXPECT_EQ(plan.counts.memory_kernels, kernels);
    EXPECT_EQ(plan.counts.library_calls, 1);  // the dot; the loop is none
    EXPECT_EQ(calls, 1);
    EXPECT_GE(body, 2);
    EXPECT_EQ(plan.counts.dynamic_memory_kernels, 1 + 5 * body);
    EXPECT_EQ(dynamic_library_calls(graph, plan), 5);
  }
}

TEST(ControlFlow, TimeGrowsWithTheTripsAndAnUnknownNumberCountsOnce) {
  const auto time = [](const Graph& graph) {
    const FusionPlan plan = make_plan(graph, device("v100"), "xla");
    EXPECT_NEAR(plan.predicted_us, plan_cost(graph, device("v100"), plan).predicted_us, 1e-6);
    return plan.predicted_us;
  };
  const double one = time(loop(1)), eleven = time(loop(11));
  const Graph dynamic = loop(0, "copy(m)");
  EXPECT_GT(eleven, 5 * one);
  EXPECT_LT(time(dynamic), 2 * one);
  const FusionPlan plan = make_plan(dynamic, device("v100"), "xla");
  EXPECT_THAT(to_text(dynamic, plan), HasSubstr("control control:loop while, trips unknown"));
  EXPECT_THAT(to_text(loop(11), make_plan(loop(11), device("v100"), "xla")), HasSubstr("while, 11 trips"));
}

TEST(ControlFlow, GapsBetweenTheRunsOfALoopCount) {
  const Device& v100 = device("v100");
  const auto time = [&](const Graph& graph) {
    const FusionPlan plan = make_plan(graph, v100, "xla");
    double parts = 0;
    for (const ComputationPlan& part : plan.computations) parts += part.plan.predicted_us;
    return std::pair(plan.steps.at(0).predicted_us, parts);
  };
  const auto [counted, body] = time(loop(5));
  EXPECT_NEAR(counted, 5 * body + 4 * v100.launch_gap_us, 1e-9);
  // As if it ran once: condition, body, condition.
  const Graph dynamic = loop(0, "copy(m)");
  const auto [once, both] = time(dynamic);
  EXPECT_NEAR(once, 2 * both - body + 2 * v100.launch_gap_us, 1e-9);
  EXPECT_GT(both, body);
}

TEST(ControlFlow, OpsOfAConditionThatNobodyComputesAreExplained) {
  const Graph graph = loop(5);
  const Explanation said = explain(graph, make_plan(graph, device("v100"), "unfused"), "lt");
  EXPECT_EQ(said.step, "in cond, the condition of loop (5 trips): the host counts, nothing computes it");
  EXPECT_TRUE(said.placements.empty());
}

TEST(ControlFlow, TripsThatAUserTellsLeaveTheConditionToDecide) {
  const Graph dynamic = loop(0, "copy(m)");
  const Graph told = with_trips(dynamic, {{"loop", 7}});
  ASSERT_EQ(run_by_control(told).size(), 2u);
  const FusionPlan plan = make_plan(told, device("v100"), "unfused");
  ASSERT_EQ(plan.computations.size(), 2u);
  std::int64_t condition = 0, body = 0;
  for (const ComputationPlan& part : plan.computations)
    (told.computation(part.computation).name == "body" ? body : condition) =
        part.plan.counts.dynamic_memory_kernels;
  EXPECT_EQ(plan.counts.dynamic_memory_kernels, 1 + 7 * (condition + body) + condition);
  EXPECT_EQ(dynamic_library_calls(told, plan), 7);
}

TEST(ControlFlow, ABranchCostsTheMostExpensive) {
  const Graph graph = canonicalize(parse_hlo(R"(HloModule m
small { a = f32[2048,2048] parameter(0)  ROOT s = f32[8,8] slice(a), slice={[0:8], [0:8]} }
large { a = f32[2048,2048] parameter(0)  d = f32[2048,2048] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = f32[8,8] slice(d), slice={[0:8], [0:8]} }
ENTRY main { p = pred[] parameter(0)  x = f32[2048,2048] parameter(1)
  ROOT c = f32[8,8] conditional(p, x, x), true_computation=small, false_computation=large })",
                                             "m.hlo"));
  const FusionPlan plan = make_plan(graph, device("v100"), "xla");
  ASSERT_EQ(plan.computations.size(), 2u);
  EXPECT_EQ(plan.predicted_us,
            std::max(plan.computations[0].plan.predicted_us, plan.computations[1].plan.predicted_us));
  EXPECT_GT(plan.predicted_us,
            2 * std::min(plan.computations[0].plan.predicted_us, plan.computations[1].plan.predicted_us));
}

TEST(ControlFlow, NestedComputationsComeBeforeWhatRunsThem) {
  const Graph graph = canonicalize(parse_hlo(R"(HloModule nested
yes { y = f32[4] parameter(0)  ROOT e = f32[4] exponential(y) }
no { z = f32[4] parameter(0)  ROOT m = f32[4] negate(z) }
cond { c = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(c), index=0  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT }
body { b = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(b), index=0
  v = f32[4] get-tuple-element(b), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  odd = s32[] and(i, one)  o = pred[] convert(odd)
  w = f32[4] conditional(o, v, v), true_computation=yes, false_computation=no
  ROOT t = (s32[], f32[4]) tuple(j, w) }
ENTRY main { x = f32[4] parameter(0)  zero = s32[] constant(0)  t = (s32[], f32[4]) tuple(zero, x)
  loop = (s32[], f32[4]) while(t), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(loop), index=1 })",
                                             "nested.hlo"));
  std::vector<std::string> names;
  for (const ComputationId id : run_by_control(graph)) names.push_back(graph.computation(id).name);
  EXPECT_THAT(names, ElementsAre("yes", "no", "body"));
  const FusionPlan plan = make_plan(graph, device("v100"), "unfused");
  // body: add, and, convert, and one kernel of either branch; three trips
  EXPECT_EQ(plan.counts.dynamic_memory_kernels, 3 * 4);
  EXPECT_EQ(plan.counts.memory_kernels, 3 + 1 + 1);
}

TEST(ControlFlow, PlansOfComputationsAreSavedAndReadBack) {
  const Graph graph = loop(4);
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  const std::string text = plan_to_json(graph, plan).dump();
  const FusionPlan read = plan_from_json(graph, text, "plan.json");
  EXPECT_EQ(plan_to_json(graph, read).dump(), text);
  EXPECT_TRUE(verify(graph, device("v100"), read).empty());
  std::string wrong = text;
  wrong.replace(wrong.find("\"name\":\"body\""), 13, "\"name\":\"bodi\"");
  EXPECT_THROW(plan_from_json(graph, wrong, "plan.json"), Error);
}

TEST(ControlFlow, OpsOfABodyAreExplained) {
  const Graph graph = loop(4);
  const FusionPlan plan = make_plan(graph, device("v100"), "xla", {.record_decisions = true});
  const Explanation explanation = explain(graph, plan, "w");
  ASSERT_EQ(explanation.placements.size(), 1u);
  EXPECT_EQ(explanation.opcode, "tanh");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
