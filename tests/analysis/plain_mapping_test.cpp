// Reductions as eager frameworks deal them to blocks.
#include "analysis/schedule/plain_mapping.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/facts/facts.h"
#include "analysis/judge/judge.h"
#include "analysis/planners/planner.h"
#include "analysis/schedule/inlined_kernel.h"
#include "analysis/verify/verify.h"
#include "tests/support/fuzz.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

/// A reduction of [rows, cols] of one of the three kinds; of sizes whose logarithms are even, at most 2^24
/// elements.
std::string drawn_reduction(std::mt19937& random, const char* reducer = "sum") {
  const auto size = [&](double most) {
    return static_cast<std::int64_t>(std::exp2(std::uniform_real_distribution<double>(0, most)(random)));
  };
  const std::int64_t kept = size(14), reduced = std::max<std::int64_t>(1, (1 << 24) / kept / size(6));
  const auto text = [&](const std::string& dims, const std::string& result, const char* over) {
    return fmt::format(R"(
  x = f32[{}] parameter(0)
  start = f32[] constant(0)
  ROOT all = f32[{}] reduce(x, start), dimensions={{{}}}, to_apply={})",
                       dims, result, over, reducer);
  };
  switch (random() % 3) {
    case 0:
      return text(fmt::format("{},{}", kept, reduced), std::to_string(kept), "1");
    case 1:
      return text(fmt::format("{},{}", reduced, kept), std::to_string(kept), "0");
    default:
      return text(fmt::format("{}", reduced), "", "0");
  }
}

double modelled_us(const Graph& graph, const Device& device, const Dealt& dealt) {
  const Computation& computation = graph.entry_computation();
  const KernelPlan kernel =
      inlined_kernel(computation, {computation.root}, {computation.root}, computation.root, dealt);
  return modelled_judge().worth(graph, device, {&kernel, 1}).us;
}

TEST(EagerMapping, SumsAreSplitWhereBlocksAreFewAndThatIsFaster) {
  std::mt19937 random(20260);
  int split = 0;
  double log_ratio = 0;
  for (int i = 0; i < 300; ++i) {
    const Device gpu = testing::planned_device(random);
    const Graph graph = testing::graph_of(drawn_reduction(random));
    const Computation& computation = graph.entry_computation();
    const Node& node = computation.node(computation.root);
    SCOPED_TRACE(fmt::format("{} on {}", computation.node(node.operands[0]).shape.dims.size(), gpu.id));
    const Dealt whole = natural_mapping(computation, node), dealt = eager_mapping(graph, gpu, node);
    EXPECT_TRUE(legal(dealt.mapping, dealt.deal));
    if (dealt == whole) continue;
    ++split;
    const ReductionSize size = reduction_size(computation, node.id);
    EXPECT_LE(whole.deal.blocks(), std::int64_t{gpu.sms} * (gpu.max_threads_per_sm() / 32));
    EXPECT_TRUE(combines_atomically(dealt.mapping));
    EXPECT_GE(size.cols, std::int64_t{256} * (threads_a_row(whole.mapping) - 1));
    // Less than the model can tell apart where memory was busy already.
    const double ratio = modelled_us(graph, gpu, dealt) / modelled_us(graph, gpu, whole);
    EXPECT_LT(ratio, 1.05);
    log_ratio += std::log(ratio);
  }
  ASSERT_GT(split, 30);
  EXPECT_LT(std::exp(log_ratio / split), 0.5);
}

TEST(EagerMapping, WhatAtomicsCannotAddUpStaysWhole) {
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    const Graph graph = testing::graph_of(drawn_reduction(random, "max"));
    const Computation& computation = graph.entry_computation();
    const Node& node = computation.node(computation.root);
    EXPECT_EQ(eager_mapping(graph, device("v100"), node), natural_mapping(computation, node));
  }
}

TEST(EagerMapping, PlansOfItVerify) {
  std::mt19937 random(11);
  for (int i = 0; i < 50; ++i) {
    const Graph graph = testing::graph_of(drawn_reduction(random));
    const Device gpu = testing::planned_device(random);
    for (const Verdict& problem : verify(graph, gpu, make_plan(graph, gpu, "unfused", {})))
      ADD_FAILURE() << problem.why;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
