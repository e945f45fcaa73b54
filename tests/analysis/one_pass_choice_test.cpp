// A reduction is gathered in the pass of an earlier one where the one estimate of kernels says that this is
// faster, and only there.
#include <gtest/gtest.h>

#include <random>

#include "analysis/judge/cost.h"
#include "analysis/judge/read_again.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/planner.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/one_pass.h"
#include "core/base/sorted.h"
#include "tests/support/held_out.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::HeldOut;

/// The log of the sum of exponentials of each row: no element is stored.
Graph logsumexp(const testing::WorkloadSize& size) {
  return testing::graph_of(fmt::format(R"(p = {2}[{0},{1}] parameter(0)
    x = f32[{0},{1}] convert(p)
    low = f32[] constant(-inf)
    zero = f32[] constant(0)
    m = f32[{0}] reduce(x, low), dimensions={{1}}, to_apply=max
    mb = f32[{0},{1}] broadcast(m), dimensions={{0}}
    d = f32[{0},{1}] subtract(x, mb)
    e = f32[{0},{1}] exponential(d)
    s = f32[{0}] reduce(e, zero), dimensions={{1}}, to_apply=sum
    l = f32[{0}] log(s)
    ROOT y = f32[{0}] add(l, m))",
                                       size.rows, size.cols, size.dtype));
}

Graph rows_graph(const HeldOut& of) {
  return of.family == "logsumexp" ? logsumexp(of.size) : testing::held_out_graph(of);
}

/// Whether the elements of the sum's x fill more registers of a thread than are for values to keep.
bool exceeds_registers(const Graph& graph, const KernelPlan& kernel, const Group& group, NodeId op) {
  const DType dtype = graph.entry_computation().node(one_pass_form(graph, op)->x).shape.dtype;
  const std::int64_t registers =
      Layout(group.mapping, kernel.launch.block).elements() * std::max(1, byte_size(dtype) / 4);
  return registers > registers_to_keep_in(kernel.launch);
}

KernelPlan with(KernelPlan kernel, std::size_t group, NodeId op, bool gathered) {
  std::vector<NodeId>& one_pass = kernel.groups[group].one_pass;
  std::erase(one_pass, op);
  if (gathered) insert_sorted(one_pass, op);
  return kernel;
}

TEST(OnePassChoice, IsThatOfTheEstimateOfTheKernel) {
  int gathered = 0, apart = 0;
  const char* const devices[] = {"v100", "a100-sxm-80", "h200"};
  const char* const families[] = {"softmax", "layer_norm", "logsumexp", "masked_softmax"};
  for (std::uint32_t i = 0; i < 120; ++i) {
    const HeldOut drawn = testing::held_out(families[i % 4], testing::kFirstTestSeed + i,
                                            {8, 2048, 24'000, 400'000, std::int64_t{1} << 26});
    const Device& target = device(devices[i / 4 % 3]);
    SCOPED_TRACE(drawn.text() + " on " + target.id);
    const Graph graph = rows_graph(drawn);
    // Residents are chosen behind the gathering and may change what it saves.
    const FusionPlan plan = make_plan(graph, target, "astitch", {.knobs = {{"residence", "off"}}});
    for (const KernelPlan& kernel : plan.kernels)
      for (std::size_t g = 0; g < kernel.groups.size(); ++g) {
        const Group& group = kernel.groups[g];
        if (is_staged(group.mapping)) continue;
        for (const NodeId op : materialised(group)) {
          if (!can_gather(graph, kernel, group, op) || !exceeds_registers(graph, kernel, group, op)) continue;
          const double together = kernel_cost(graph, target, with(kernel, g, op, true)).predicted_us;
          const double alone = kernel_cost(graph, target, with(kernel, g, op, false)).predicted_us;
          const bool chosen = contains_sorted(group.one_pass, op);
          EXPECT_EQ(chosen, together < alone) << together << " us gathered, " << alone << " us apart";
          ++(chosen ? gathered : apart);
        }
      }
  }
  EXPECT_GE(gathered, 10);
  EXPECT_GE(apart, 5);
}

/// Planned for rows that no block keeps; of the one kernel's one group.
struct LongRows {
  explicit LongRows(Graph of) : graph(std::move(of)) {
    plan = make_plan(graph, device("v100"), "astitch", {.knobs = {{"one_pass", "off"}}});
    for (const NodeId op : materialised(group()))
      if (can_gather(graph, kernel(), group(), op)) gathered = op;
  }
  const KernelPlan& kernel() const { return plan.kernels.at(0); }
  const Group& group() const { return kernel().groups.at(0); }
  KernelWork work(bool together) const {
    return kernel_cost(graph, device("v100"), with(kernel(), 0, gathered, together)).work;
  }
  std::vector<int> steps(bool together, std::string_view op) const {
    const KernelPlan of = with(kernel(), 0, gathered, together);
    const GroupEvaluations found = evaluations(graph.entry_computation(), of, of.groups[0]);
    const std::vector<int> all = steps_of_values(graph, of, of.groups[0], found);
    std::vector<int> result;
    for (std::size_t v = 0; v < all.size(); ++v)
      if (found.values[v].op == graph.entry_computation().find(op)) result.push_back(all[v]);
    return result;
  }

  Graph graph;
  FusionPlan plan;
  NodeId gathered = kNoNode;
};

TEST(OnePassChoice, WhatNoRegisterHoldsIsComputedInEveryStepThatReadsIt) {
  const LongRows rows(logsumexp({320, 65536, "f16"}));
  ASSERT_NE(rows.gathered, kNoNode);
  using Steps = std::vector<int>;
  EXPECT_EQ(rows.steps(false, "p"), Steps{2});
  EXPECT_EQ(rows.steps(false, "x"), Steps{2}) << "widened for the maximum, and for the sum";
  EXPECT_EQ(rows.steps(false, "e"), Steps{1});
  EXPECT_EQ(rows.steps(true, "p"), Steps{1});
  EXPECT_EQ(rows.steps(true, "x"), Steps{1});
  EXPECT_EQ(rows.steps(true, "e"), Steps{0}) << "gathered from x";
}

TEST(OnePassChoice, GatheringCountsByWhatIsGathered) {
  const LongRows exponentials(logsumexp({320, 65536, "f32"}));
  const LongRows squares(testing::held_out_graph({"layer_norm", {320, 65536, "f32"}}));
  ASSERT_NE(exponentials.gathered, kNoNode);
  ASSERT_NE(squares.gathered, kNoNode);
  constexpr double kWarps = 320.0 * 65536 / 32;
  // The exponential of the sum's own pass is of the same units.
  EXPECT_EQ(exponentials.work(true).mufu_warp_instructions, exponentials.work(false).mufu_warp_instructions);
  EXPECT_NEAR(squares.work(true).mufu_warp_instructions - squares.work(false).mufu_warp_instructions, kWarps,
              0.01 * kWarps);
  const auto more = [](const LongRows& rows) {
    return rows.work(true).warp_instructions - rows.work(false).warp_instructions;
  };
  EXPECT_GT(more(exponentials), 2 * kWarps);
  EXPECT_LT(more(exponentials), 6 * kWarps);
  EXPECT_GT(more(squares), 0.5 * kWarps);
  EXPECT_LT(more(squares), 5 * kWarps);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
