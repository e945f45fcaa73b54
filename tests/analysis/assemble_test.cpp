#include "analysis/plan/assemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/planners/planner.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using ::testing::ElementsAre;
using testing::graph_of;
using testing::op;

std::vector<std::string> step_ids(const FusionPlan& plan) {
  std::vector<std::string> ids;
  for (const PlanStep& step : plan.steps) ids.push_back(step.id);
  return ids;
}

FusionPlan unfused(const Graph& graph) { return make_plan(graph, device("v100"), "unfused"); }

TEST(Assemble, BuffersAreOwnedByWhatAliasesRename) {
  const Graph graph = graph_of(
      "p = f32[4,4] parameter(0)\n a = f32[4,4] abs(p)\n r = f32[16] reshape(a)\n ROOT q = f32[2,8] "
      "reshape(r)");
  const Computation& c = graph.entry_computation();
  EXPECT_EQ(buffer_of(c, op(graph, "q")), op(graph, "a"));
  EXPECT_EQ(buffer_of(c, op(graph, "p")), op(graph, "p"));
}

TEST(Assemble, AliasedResultsAreMaterialisedByTheirOwner) {
  const Graph graph = graph_of(
      "p = f32[4,4] parameter(0)\n a = f32[4,4] abs(p)\n r = f32[16] reshape(a)\n ROOT t = (f32[16]) "
      "tuple(r)");
  const FusionPlan plan = unfused(graph);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_THAT(plan.kernels[0].outputs, ElementsAre(op(graph, "a")));
}

TEST(Assemble, ACopyAloneIsACopyStep) {
  const Graph graph = graph_of("p = f32[4,4] parameter(0)\n ROOT c = f32[4,4] copy(p)");
  const FusionPlan plan = unfused(graph);
  EXPECT_THAT(step_ids(plan), ElementsAre("copy:c"));
  EXPECT_EQ(plan.counts.copies, 1);
  EXPECT_EQ(plan.counts.memory_kernels, 0);
}

TEST(Assemble, ACopyThatAKernelComputesInsideIsStillAStepForItsOtherReaders) {
  const Graph graph = graph_of(
      "p = f32[64,64] parameter(0)\n z = f32[] constant(0)\n"
      "r = f32[64] reduce(p, z), dimensions={1}, to_apply=sum\n c = f32[64] copy(r)\n"
      "b = f32[64,64] broadcast(c), dimensions={0}\n m = f32[64,64] minimum(p, b)\n"
      "ROOT t = (f32[64], f32[64,64]) tuple(c, m)");
  for (const Planner& row : planners_for(graph))
    EXPECT_NO_THROW(make_plan(graph, device("v100"), row.name)) << row.name;
  EXPECT_THAT(step_ids(make_plan(graph, device("v100"), "xla")), ElementsAre("k0", "copy:c", "k1"));
}

TEST(Assemble, ResultsThatAreParametersOrConstantsTakeNoStep) {
  const Graph graph = graph_of(
      "p = f32[4] parameter(0)\n c = f32[] constant(1)\n l = f32[2] constant({1,2})\n"
      "ROOT t = (f32[4], f32[], f32[2]) tuple(p, c, l)");
  EXPECT_TRUE(unfused(graph).steps.empty());
}

TEST(Assemble, StepsFollowTheirInputsAndTiesGoByOp) {
  const Graph graph = graph_of(
      "p = f32[4,4] parameter(0)\n a = f32[4,4] abs(p)\n b = f32[4,4] negate(p)\n"
      "d = f32[4,4] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "e = f32[4,4] tanh(d)\n ROOT t = (f32[4,4], f32[4,4]) tuple(e, a)");
  const FusionPlan plan = unfused(graph);
  EXPECT_THAT(step_ids(plan), ElementsAre("k0", "k1", "lib:d", "k2"));
  EXPECT_EQ(plan.kernels[0].name, "a");
  EXPECT_EQ(plan.counts.library_calls, 1);
}

TEST(Assemble, KernelInputsAreBuffersWithoutImmediates) {
  const Graph graph = graph_of(
      "p = f32[4,4] parameter(0)\n h = f32[] constant(2)\n w = f32[16] broadcast(h), dimensions={}\n"
      "r = f32[16] reshape(p)\n ROOT m = f32[16] multiply(r, w)");
  const FusionPlan plan = make_plan(graph, device("v100"), "xla");
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_THAT(kernel_inputs(graph, plan.kernels[0]), ElementsAre(op(graph, "p")));
}

TEST(Assemble, NamesAreUniqueIdentifiers) {
  const Graph graph = graph_of(
      "p = f32[4] parameter(0)\n a.1 = f32[4] abs(p)\n a_1 = f32[4] negate(a.1)\n"
      "ROOT a-1 = f32[4] tanh(a_1)");
  const FusionPlan plan = unfused(graph);
  EXPECT_EQ(plan.kernels[0].name, "a_1");
  EXPECT_EQ(plan.kernels[1].name, "a_1_2");
}

TEST(Unfused, EveryOpIsAKernelExceptNamesSourcesAndCalls) {
  const FusionPlan plan = unfused(dataset("fig7"));
  EXPECT_EQ(plan.counts.memory_kernels, 11);
  EXPECT_EQ(plan.counts.library_calls, 0);
}

TEST(Unfused, MappingsFollowTheOp) {
  const Graph graph = graph_of(
      "p = f32[100,40] parameter(0)\n z = f32[] constant(0)\n"
      "row = f32[100] reduce(p, z), dimensions={1}, to_apply=sum\n"
      "col = f32[40] reduce(p, z), dimensions={0}, to_apply=sum\n r = f32[1000,4] reshape(p)\n"
      "short = f32[1000] reduce(r, z), dimensions={1}, to_apply=sum\n"
      "ROOT t = (f32[100], f32[40], f32[1000]) tuple(row, col, short)");
  const FusionPlan plan = unfused(graph);
  const auto kind = [&](std::size_t k) { return name(plan.kernels.at(k).groups.at(0).mapping); };
  EXPECT_EQ(kind(0), "row_pack");
  EXPECT_EQ(kind(1), "column");
  EXPECT_EQ(kind(2), "row_serial");
  EXPECT_EQ(plan.kernels[0].launch.block, 64);
  EXPECT_EQ(plan.kernels[0].launch.grid, 100);
}

// A kernel that computes a value again and stores it for a part of its own is no maker of it for others:
// those may come before it.
TEST(Assemble, OfSeveralMakersOfAValueTheFirstToEndGivesIt) {
  const Graph graph = graph_of(
      "p = f32[64] parameter(0)\n x = f32[64] abs(p)\n y = f32[64] negate(x)\n z = f32[64] tanh(y)\n"
      "a = f32[64] multiply(x, z)\n ROOT t = (f32[64], f32[64]) tuple(a, y)");
  const auto id = [&](const char* name) { return op(graph, name); };
  const FusionPlan apart = unfused(graph);
  const auto kernel_of = [&](const char* name) {
    return *std::ranges::find_if(apart.kernels,
                                 [&](const KernelPlan& k) { return k.ops == std::vector{id(name)}; });
  };
  // z's kernel gives x, too, as if a part of it read that.
  KernelPlan both = kernel_of("z");
  const KernelPlan again = kernel_of("x");
  both.groups.insert(both.groups.begin(), again.groups.begin(), again.groups.end());
  both.ops = {id("x"), id("z")};
  both.outputs = {id("x"), id("z")};
  both.schemes.insert(again.schemes.begin(), again.schemes.end());
  both.levels.insert(again.levels.begin(), again.levels.end());
  const FusionPlan plan =
      assemble(graph, device("v100"), "test", {kernel_of("x"), kernel_of("y"), both, kernel_of("a")});
  EXPECT_THAT(plan.kernels.at(0).outputs, ElementsAre(id("x")));
  EXPECT_THAT(plan.kernels.at(2).outputs, ElementsAre(id("z")));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
