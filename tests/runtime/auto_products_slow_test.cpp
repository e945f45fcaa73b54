// Random training steps under planner auto, small products in kernels: right under all sanitizers.
// STITCHWORK_FUZZ_FIRST and STITCHWORK_FUZZ_SEEDS choose others (tests/support/fuzz.h).
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <random>

#include "analysis/facts/facts.h"
#include "analysis/planners/planner.h"
#include "tests/runtime/on_fake_gpu.h"
#include "tests/support/astra_graphs.h"
#include "tests/support/fuzz.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

/// Values of some of the row's knobs.
std::map<std::string, std::string> drawn_knobs(std::mt19937& random) {
  std::map<std::string, std::string> result;
  for (const std::string_view name : planner("auto").knobs) {
    if (random() % 6 != 0 || name == "weights" || name == "products") continue;
    const auto knob = std::ranges::find(knobs(), name, &Knob::name);
    result[std::string(name)] = knob->values[random() % knob->values.size()];
  }
  return result;
}

TEST(AutoProductRuns, RandomTrainingStepsAreRight) {
  SKIP_WITHOUT_COMPILER();
  const testing::FuzzRange range = testing::fuzz_range(0, 24);
  int in_kernels = 0;
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    std::mt19937 random(seed);
    const Graph graph = testing::random_dots(seed, 4 + static_cast<int>(random() % 24));
    constexpr std::array kDevices = {"v100", "t4", "a100-sxm-80", "h200"};
    const Device on = device(kDevices[random() % kDevices.size()]);
    const auto knobs = drawn_knobs(random);
    SCOPED_TRACE(fmt::format("seed {} on {}, {}", seed, on.id, fmt::join(knobs, " ")));
    const FusionPlan plan = make_plan(graph, on, "auto", {.knobs = knobs});  // which verifies it
    in_kernels += std::ranges::any_of(plan.kernels, [&](const KernelPlan& kernel) {
      return std::ranges::any_of(kernel.ops,
                                 [&](NodeId op) { return is_product(graph.entry_computation().node(op)); });
    });
    const Executable executable = compile(graph, on, plan, {.ptxas = false});
    const std::vector<Literal> inputs = generate_inputs(graph, seed);
    RunOptions running;
    running.sanitize = sim::parse_sanitizers("mem,race,sync,init");
    const RunResult run = run_simulated(graph, on, executable, inputs, running);
    EXPECT_THAT(run.findings, ::testing::IsEmpty());
    const CheckResult check = Judge(graph, inputs).check(run.outputs);
    EXPECT_TRUE(check.ok) << check.message;
  }
  if (!range.chosen) EXPECT_GT(in_kernels, 12);
}

// Columns move in vectors; a concatenation of one value a column, behind the loop over them, asks for its own
// place.
TEST(AutoProductRuns, WhatFollowsColumnsInVectorsChoosesByItsRow) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(R"(
    z = f32[] constant(0.5)
    x = f32[1,256] broadcast(z), dimensions={}
    a = f32[256,512] parameter(0)
    b = f32[256,512] parameter(1)
    p = f32[512] parameter(2)
    q = f32[512] parameter(3)
    c = f32[256,1024] concatenate(a, b), dimensions={1}
    d = f32[1,1024] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    v = f32[1024] concatenate(p, q), dimensions={0}
    r = f32[1,1024] reshape(v)
    s = f32[1,1024] add(d, r)
    ROOT t = (f32[256,1024], f32[1024], f32[1,1024]) tuple(c, v, s))");
  const Device on = device("a100-sxm-80");
  const FusionPlan plan = make_plan(graph, on, "auto");
  ASSERT_EQ(plan.kernels.size(), 1u);
  ASSERT_GT(vectors(plan.kernels[0].groups[0].mapping).width, 1);
  const std::vector<Literal> inputs = generate_inputs(graph, 1);
  const RunResult run = run_simulated(graph, on, compile(graph, on, plan, {.ptxas = false}), inputs);
  const CheckResult check = Judge(graph, inputs).check(run.outputs);
  EXPECT_TRUE(check.ok) << check.message;
}

}  // namespace TEST_FILE
}  // namespace stitchwork
