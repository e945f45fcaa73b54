// Chains of ops as long as a graph can be: nothing on the way to CUDA C++ takes a stack frame an op.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/planner.h"
#include "codegen/kernel.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace {

Graph chain_of(int ops) {
  std::string text = "HloModule m\nENTRY main {\nx = f32[64] parameter(0)\nv0 = f32[64] negate(x)\n";
  for (int i = 1; i < ops; ++i)
    text += i % 2 != 0 ? fmt::format("v{} = f32[64] add(v{}, x)\n", i, i - 1)
                       : fmt::format("v{} = f32[64] abs(v{})\n", i, i - 1);
  return testing::graph_of(text + fmt::format("ROOT r = f32[64] negate(v{})\n}}\n", ops - 1));
}

class LongChain : public ::testing::TestWithParam<const char*> {};

TEST_P(LongChain, IsPrinted) {
  const Graph graph = chain_of(20000);
  const FusionPlan plan = make_plan(graph, device("v100"), GetParam());
  std::size_t additions = 0;
  for (const KernelPlan& kernel : plan.kernels) {
    const std::string text = to_cuda(graph, lower(graph, kernel), true);
    for (std::size_t at = 0; (at = text.find(" + ", at)) != std::string::npos; ++at) ++additions;
  }
  EXPECT_GE(additions, 10000u);
}

INSTANTIATE_TEST_SUITE_P(Planners, LongChain, ::testing::Values("xla", "tvm"));

}  // namespace
}  // namespace stitchwork
