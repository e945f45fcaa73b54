// Values that stay with their threads across grid barriers while their blocks go through several tasks.
#include <gmock/gmock.h>

#include "tests/codegen/planned.h"
#include "tests/support/normalised.h"
#include "tests/support/paper.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
using testing::normalised;

FusionPlan planned(const Graph& graph) {
  return make_plan(graph, device("v100"), "astitch", testing::paper("astitch"));
}

/// `centred` is kept whether or not it is estimated to be worth it.
FusionPlan keeping(const Graph& graph) {
  PlanOptions options;
  options.edits = {{.kind = EditKind::kScheme, .ops = {"centred"}, .to = "resident"}};
  return make_plan(graph, device("v100"), "astitch", testing::paper("astitch", options));
}

/// The same plan, but nothing is kept.
FusionPlan forgetful(FusionPlan plan) {
  KernelPlan& kernel = plan.kernels.at(0);
  for (const Residence& r : kernel.resident) kernel.schemes[r.op] = Scheme::kLocal;
  kernel.resident.clear();
  return plan;
}

std::string cuda(const Graph& graph, const FusionPlan& plan) {
  return to_cuda(graph, build_schedule(graph, plan.kernels.at(0)), false);
}

/// Right in every place, and read once.
void expect_read_once(const Graph& graph, const FusionPlan& plan) {
  ASSERT_EQ(plan.kernels.at(0).resident.size(), 1u);
  const sim::Counters kept = testing::expect_correct(graph, plan);
  const sim::Counters again = testing::expect_correct(graph, forgetful(plan));
  const auto bytes = static_cast<std::uint64_t>(
      graph.entry_computation().node(graph.entry_computation().parameters[0]).shape.byte_size());
  EXPECT_GE(again.gld_bytes, kept.gld_bytes + bytes);
}

TEST(Residence, RegistersOfAnUnrolledTaskLoop) {
  SKIP_WITHOUT_COMPILER();
  // 163 rows and 700 columns: the last block has fewer tasks, the last threads fewer elements.
  const Graph graph = testing::graph_of(normalised(163, 700));
  const FusionPlan plan = keeping(graph);
  ASSERT_FALSE(plan.kernels.at(0).resident.at(0).shared);
  EXPECT_THAT(cuda(graph, plan), HasSubstr("#pragma unroll 2\n"));
  expect_read_once(graph, plan);
}

TEST(Residence, SharedMemoryByTaskElementAndThread) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(normalised(1021, 901));
  const FusionPlan plan = keeping(graph);
  ASSERT_TRUE(plan.kernels.at(0).resident.at(0).shared);
  EXPECT_THAT(cuda(graph, plan), HasSubstr("+ thread]"));
  expect_read_once(graph, plan);
}

TEST(Residence, SharedMemoryHoldsHalfPrecisionInTwoBytes) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(normalised(1021, 901, "bf16"));
  const FusionPlan plan = keeping(graph);
  ASSERT_TRUE(plan.kernels.at(0).resident.at(0).shared);
  EXPECT_EQ(plan.kernels.at(0).resident.at(0).bytes, 7 * 1024 * 2);
  expect_read_once(graph, plan);
}

TEST(Residence, WhatDoesNotFitIsComputedAgain) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(normalised(4000, 769));
  const FusionPlan plan = planned(graph);
  EXPECT_TRUE(plan.kernels.at(0).resident.empty());
  testing::expect_correct(graph, plan);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
