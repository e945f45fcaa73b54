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

/// Rows of batches: a product, its softmax without a maximum, and a product of that.
std::string attention_like(std::int64_t batch, std::mt19937& random) {
  const std::int64_t rows = 8 + random() % 113, cols = 8 + random() % 113;
  const std::int64_t inner = 1 + random() % 12, outer = 1 + random() % 12;
  return fmt::format(R"(
    q = f32[{0},{1},{3}] parameter(0)
    k = f32[{0},{3},{2}] parameter(1)
    v = f32[{0},{2},{4}] parameter(2)
    zero = f32[] constant(0)
    s = f32[{0},{1},{2}] dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
    x = f32[{0},{1},{2}] exponential(s)
    r = f32[{0},{1}] reduce(x, zero), dimensions={{2}}, to_apply=sum
    w = f32[{0},{1},{2}] broadcast(r), dimensions={{0,1}}
    p = f32[{0},{1},{2}] divide(x, w)
    ROOT o = f32[{0},{1},{4}] dot(p, v), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}})",
                     batch, rows, cols, inner, outer);
}

// Of drawn shapes, so that fs19_fig1, whose kernel gave the error of their estimate, decides nothing here.
TEST(AutoProductRuns, ProductsOfABatchAreTakenWhereTheyAreFaster) {
  SKIP_WITHOUT_COMPILER();
  const testing::FuzzRange range = testing::fuzz_range(0, 24);
  int taken = 0;
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    std::mt19937 random(seed);
    constexpr std::array kDevices = {"v100", "a100-sxm-80", "h200"};
    const Device on = device(kDevices[random() % kDevices.size()]);
    const std::string text = attention_like(std::int64_t{128} << random() % 6, random);
    const Graph graph = testing::graph_of(text);
    const FusionPlan with = make_plan(graph, on, "auto"),
                     without = make_plan(graph, on, "auto", {.knobs = {{"products", "off"}}});
    if (with.counts.library_calls == without.counts.library_calls) continue;
    ++taken;
    const std::vector<Literal> inputs = generate_inputs(graph, seed);
    const auto simulated_us = [&](const FusionPlan& plan) {
      RunOptions options;
      options.sampled = true;
      return run_simulated(graph, on, compile(graph, on, plan, testing::compile_options()), inputs, options)
          .total_us;
    };
    EXPECT_LT(simulated_us(with), simulated_us(without)) << "seed " << seed << " on " << on.id << text;
  }
  EXPECT_GE(taken, (range.end - range.first) / 4);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
