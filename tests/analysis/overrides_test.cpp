// Overrides: their JSON, and that every planner follows them or says why it cannot.
#include "analysis/plan/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/json/overrides_json.h"
#include "analysis/json/plan_json.h"
#include "analysis/plan/constraints.h"
#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"
#include "tests/support/json_schema.h"
#include "tests/support/paper.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::AllOf;
using testing::dataset;
using testing::graph_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Device& v100() { return device("v100"); }

Edit scheme(const std::string& op, const std::string& to) { return {EditKind::kScheme, {op}, to, 0}; }
Edit merge(const std::string& a, const std::string& b) { return {EditKind::kMerge, {a, b}, "", 0}; }
Edit forbid(const std::string& a, const std::string& b) { return {EditKind::kForbidMerge, {a, b}, "", 0}; }
Edit split(const std::string& after) { return {EditKind::kSplit, {after}, "", 0}; }
Edit block(const std::string& of, std::int64_t n) { return {EditKind::kBlock, {of}, "", n}; }
Edit split_factor(const std::string& op, std::int64_t n) { return {EditKind::kSplitFactor, {op}, "", n}; }

FusionPlan plan_with(const Graph& graph, const std::vector<Edit>& edits,
                     const std::string& planner = "astitch") {
  return make_plan(graph, v100(), planner,
                   testing::paper(planner, {.edits = edits, .record_decisions = true}));  // verifies
}

/// The message of the Error that planning with the edits gives, with its hint.
std::string refusal(const Graph& graph, const std::vector<Edit>& edits,
                    const std::string& planner = "astitch") {
  try {
    plan_with(graph, edits, planner);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

const KernelPlan* kernel_of(const Graph& graph, const FusionPlan& plan, const std::string& name) {
  for (const KernelPlan& kernel : plan.kernels)
    if (kernel.schemes.contains(testing::op(graph, name))) return &kernel;
  return nullptr;
}

Scheme scheme_of(const Graph& graph, const FusionPlan& plan, const std::string& name) {
  return kernel_of(graph, plan, name)->schemes.at(testing::op(graph, name));
}

/// Two towers that share nothing, and one below a matrix product of the first.
Graph towers() {
  return graph_of(R"(
    x = f32[64,64] parameter(0)
    y = f32[64,64] parameter(1)
    a = f32[64,64] tanh(x)
    d = f32[64,64] dot(a, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    b = f32[64,64] negate(d)
    zero = f32[] constant(0)
    c = f32[64,64] exponential(y)
    e = f32[64] reduce(c, zero), dimensions={1}, to_apply=sum
    ROOT t = (f32[64,64], f32[64]) tuple(b, e))");
}

const std::vector<Edit> kOneOfEach = {scheme("a", "regional"), merge("a", "b"),
                                      forbid("a", "c"),        split("b"),
                                      block("c", 256),         split_factor("d", 4)};

TEST(Overrides, JsonRoundTripKeepsEveryKindOfEdit) {
  const auto document = overrides_to_json(kOneOfEach);
  EXPECT_EQ(overrides_from_json(document.dump(), "o.json"), kOneOfEach);
  EXPECT_THAT(testing::JsonSchema::read("docs/schema/override.schema.json").problems(document), IsEmpty());
}

TEST(Overrides, JsonErrorsNameFileAndPlace) {
  const auto error = [](const std::string& edit) -> std::string {
    try {
      overrides_from_json(R"({"schema":"stitchwork.override/1","edits":[)" + edit + "]}", "o.json");
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_THAT(error(R"({"do":"fly"})"), AllOf(HasSubstr("o.json: edits[0].do"), HasSubstr("forbid_merge")));
  EXPECT_THAT(error(R"({"do":"merge","ops":["a"]})"), HasSubstr("edits[0].ops: expected two ops, found 1"));
  EXPECT_THAT(error(R"({"do":"scheme","op":"a"})"), HasSubstr("edits[0]: 'to' is missing"));
}

TEST(Overrides, PlansRecordThemInJsonAndAsDecisions) {
  const Graph graph = dataset("fig7");
  const std::vector<Edit> edits = {split("power.1"), block("reduce.2", 512)};
  const FusionPlan plan = plan_with(graph, edits);
  EXPECT_EQ(plan.edits, edits);
  const auto document = plan_to_json(graph, plan);
  EXPECT_THAT(testing::JsonSchema::read("docs/schema/plan.schema.json").problems(document), IsEmpty());
  EXPECT_EQ(plan_from_json(graph, document.dump(), "p.json").edits, edits);
  ASSERT_GE(plan.decisions.size(), 2u);
  EXPECT_EQ(plan.decisions[0].verdict.rule, "override.split");
  EXPECT_EQ(plan.decisions[1].verdict.rule, "override.block");
}

TEST(Overrides, UnknownOpsGetCloseNames) {
  EXPECT_THAT(refusal(dataset("fig7"), {split("powr.1")}),
              AllOf(HasSubstr("no op is called 'powr.1'"), HasSubstr("power.1")));
}

TEST(Overrides, OpsNoKernelComputesAreRefused) {
  EXPECT_THAT(refusal(towers(), {merge("a", "d")}), HasSubstr("d is a dot"));
  EXPECT_THAT(refusal(dataset("fig7"), {split("parameter.1")}), HasSubstr("parameter.1 is a parameter"));
}

TEST(Overrides, ContradictionsAreRefused) {
  const Graph graph = dataset("fig7");
  EXPECT_THAT(refusal(graph, {merge("add.1", "power.1"), forbid("power.1", "add.1")}),
              HasSubstr("both merge"));
  EXPECT_THAT(refusal(graph, {block("add.1", 256), block("add.1", 128)}), HasSubstr("another override"));
  EXPECT_THAT(refusal(graph, {block("add.1", 256), block("multiply.1", 128)}),
              HasSubstr("has blocks of 256"));
  EXPECT_THAT(refusal(graph, {merge("add.1", "power.1"), forbid("divide.1", "add.1")}),
              HasSubstr("keeps divide.1 and add.1, which must be in the kernel too, apart"));
}

TEST(Overrides, PlannersSayWhichEditsTheyHonour) {
  EXPECT_THAT(refusal(dataset("fig7"), {split("power.1")}, "unfused"), HasSubstr("it takes no overrides"));
  EXPECT_THAT(refusal(dataset("fig7"), {block("power.1", 64)}, "xla"),
              HasSubstr("it honours forbid_merge, split"));
}

TEST(OverrideScheme, GlobalStoresTheValueBehindABarrier) {
  const Graph graph = dataset("fig7");
  const FusionPlan plan = plan_with(graph, {scheme("reduce.1", "global")});
  EXPECT_EQ(scheme_of(graph, plan, "reduce.1"), Scheme::kGlobal);
  EXPECT_EQ(plan.kernels.at(0).launch.grid_barriers, 3);
}

TEST(OverrideScheme, GlobalOfAnInlinedOpStoresIt) {
  const Graph graph = dataset("fig7");
  EXPECT_EQ(scheme_of(graph, plan_with(graph, {scheme("divide.1", "global")}), "divide.1"), Scheme::kGlobal);
}

TEST(OverrideScheme, RegionalOfAnInlinedOpStoresItInSharedMemory) {
  const Graph graph = dataset("softmax");
  const FusionPlan plain = plan_with(graph, {});
  std::string inlined;
  for (const auto& [op, s] : plain.kernels.at(0).schemes)
    if (s == Scheme::kLocal && graph.entry_computation().node(op).op == Op::kExp)
      inlined = graph.entry_computation().node(op).name;
  ASSERT_NE(inlined, "");
  const std::string answer = refusal(graph, {scheme(inlined, "regional")});
  if (answer == "accepted")
    EXPECT_EQ(scheme_of(graph, plan_with(graph, {scheme(inlined, "regional")}), inlined), Scheme::kRegional);
  else
    EXPECT_THAT(answer, HasSubstr("bytes of shared memory"));
}

TEST(OverrideScheme, LocalComputesAHeavyOpWhereItIsRead) {
  const Graph graph = dataset("fig7");
  EXPECT_EQ(scheme_of(graph, plan_with(graph, {}), "power.1"), Scheme::kGlobal);
  EXPECT_EQ(scheme_of(graph, plan_with(graph, {scheme("power.1", "local")}), "power.1"), Scheme::kLocal);
}

TEST(OverrideScheme, RefusalsSayWhatStandsAgainstIt) {
  const Graph graph = dataset("fig7");
  EXPECT_THAT(refusal(graph, {scheme("power.1", "regional")}),
              HasSubstr("not block-local for reduce.2: rows are split over blocks"));
  EXPECT_THAT(refusal(graph, {split_factor("reduce.2", 1), scheme("power.1", "regional")}),
              HasSubstr("not block-local for reduce.2: produced in"));
  EXPECT_THAT(refusal(graph, {scheme("reduce.1", "local")}), HasSubstr("it is stored"));
  EXPECT_THAT(refusal(graph, {scheme("multiply.1", "global")}), HasSubstr("no op of its kernel reads it"));
  EXPECT_THAT(refusal(graph, {scheme("reduce.1", "independent")}),
              HasSubstr("power.1 read it in its kernel"));
  EXPECT_THAT(refusal(graph, {scheme("add.1", "recomputed")}), HasSubstr("groups of reduce.1: local"));
  EXPECT_THAT(refusal(graph, {scheme("add.1", "far")}), HasSubstr("known: independent, local"));
}

TEST(OverrideScheme, RegionalValuesThatDoNotFitSharedMemorySayTheBytes) {
  const Graph graph = graph_of(R"(
    x = f32[512,16384] parameter(0)
    y = f32[512,16384,2] parameter(1)
    zero = f32[] constant(0)
    r = f32[512] reduce(x, zero), dimensions={1}, to_apply=sum
    wr = f32[512,16384] broadcast(r), dimensions={0}
    d = f32[512,16384] subtract(x, wr)
    e = f32[512,16384] exponential(d)
    we = f32[512,16384,2] broadcast(e), dimensions={0,1}
    ROOT out = f32[512,16384,2] add(we, y))");
  EXPECT_THAT(refusal(graph, {scheme("e", "regional")}), HasSubstr("bytes of shared memory, 49152 allowed"));
}

TEST(OverrideMerge, JoinsOpsThatShareNothing) {
  const Graph graph = towers();
  EXPECT_EQ(plan_with(graph, {}, "astitch").kernels.size() >= 2, true);
  const FusionPlan plan = plan_with(graph, {merge("b", "e")});
  EXPECT_EQ(kernel_of(graph, plan, "b"), kernel_of(graph, plan, "e"));
}

TEST(OverrideMerge, ACycleIsRefusedWithItsPath) {
  EXPECT_THAT(refusal(towers(), {merge("a", "b")}),
              HasSubstr("a cycle: d lies between them on the path a -> d -> b"));
}

TEST(OverrideMerge, BringsAlongWhatLiesBetween) {
  const Graph graph = dataset("fig7");
  const FusionPlan plan = plan_with(graph, {merge("add.1", "multiply.1")});
  EXPECT_EQ(kernel_of(graph, plan, "power.1"), kernel_of(graph, plan, "add.1"));
}

TEST(OverrideForbidMerge, KeepsOpsInKernelsOfTheirOwn) {
  const Graph graph = dataset("fig7");
  for (const char* planner : {"astitch", "xla"}) {
    SCOPED_TRACE(planner);
    const FusionPlan plan = plan_with(graph, {forbid("divide.1", "power.1")}, planner);
    EXPECT_NE(kernel_of(graph, plan, "divide.1"), kernel_of(graph, plan, "power.1"));
  }
}

TEST(OverrideSplit, EndsTheKernelBehindTheOp) {
  const Graph graph = dataset("fig7");
  for (const char* planner : {"astitch", "xla"}) {
    SCOPED_TRACE(planner);
    const FusionPlan plan = plan_with(graph, {split("divide.1")}, planner);
    EXPECT_NE(kernel_of(graph, plan, "divide.1"), kernel_of(graph, plan, "power.1"));
  }
  EXPECT_THAT(refusal(graph, {split("multiply.1")}), HasSubstr("no op that a kernel computes reads"));
}

TEST(OverrideBlock, SetsTheThreads) {
  const Graph graph = dataset("fig7");
  EXPECT_EQ(plan_with(graph, {block("reduce.1", 256)}).kernels.at(0).launch.block, 256);
  EXPECT_THAT(refusal(graph, {block("reduce.1", 2048)}), HasSubstr("at most 1024 threads"));
  EXPECT_THAT(refusal(graph, {block("reduce.1", 100)}), HasSubstr("whole warps"));
}

TEST(OverrideSplitFactor, SplitsOrKeepsRows) {
  const Graph graph = dataset("fig7");
  const auto split_of = [&](const std::string& op, int n) {
    const FusionPlan plan = plan_with(graph, {split_factor(op, n)});
    for (const Group& group : plan.kernels.at(0).groups)
      if (group.dominant == testing::op(graph, op)) return segments(group.mapping);
    return 0;
  };
  EXPECT_EQ(split_of("reduce.2", 1), 1);
  EXPECT_EQ(split_of("reduce.2", 4), 4);
  EXPECT_EQ(split_of("reduce.1", 3), 3);
  EXPECT_THAT(refusal(graph, {split_factor("reduce.1", 300)}), HasSubstr("its rows have 256 elements"));
  EXPECT_THAT(refusal(graph, {split_factor("power.1", 2)}), HasSubstr("power.1 is no reduction"));
}

TEST(OverrideSplitFactor, AppliesToColumnReductions) {
  const Graph graph = dataset("column_sum");
  std::string reduce;
  for (const Node& node : graph.entry_computation().nodes)
    if (node.op == Op::kReduce) reduce = node.name;
  for (const int n : {1, 5}) {
    const FusionPlan plan = plan_with(graph, {split_factor(reduce, n)});
    EXPECT_EQ(segments(plan.kernels.at(0).groups.at(0).mapping), n);
  }
}

TEST(OverrideResidency, LeavesEachThreadMoreRegisters) {
  const Graph graph = dataset("fig7");
  const FusionPlan plan = plan_with(graph, {{EditKind::kResidency, {"reduce.1"}, "", 1}});
  const KernelLaunch& launch = plan.kernels.at(0).launch;
  EXPECT_EQ(launch.blocks_per_sm, 1);
  EXPECT_EQ(launch.register_bound, 64);
  EXPECT_LE(launch.grid, 80);
  EXPECT_THAT(refusal(graph, {{EditKind::kResidency, {"reduce.1"}, "", 0}}), HasSubstr("1 to 32 blocks"));
}

TEST(OverrideForbidMerge, RemoteStitchingConsultsIt) {
  const Graph graph = graph_of(R"(
    x = f32[64,64] parameter(0)
    a = f32[64,64] tanh(x)
    b = f32[64,64] exponential(x)
    ROOT t = (f32[64,64], f32[64,64]) tuple(a, b))");
  const FusionPlan free = plan_with(graph, {});
  ASSERT_EQ(kernel_of(graph, free, "a"), kernel_of(graph, free, "b"));
  const FusionPlan plan = plan_with(graph, {forbid("a", "b")});
  EXPECT_NE(kernel_of(graph, plan, "a"), kernel_of(graph, plan, "b"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
