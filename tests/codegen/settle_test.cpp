// Kernels that spill registers are planned again.
#include "codegen/settle.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <random>

#include "codegen/compile/ptxas.h"
#include "tests/codegen/harness.h"
#include "tests/codegen/workloads.h"
#include "tests/support/paper.h"

namespace stitchwork::testing {
namespace TEST_FILE {

#define SKIP_WITHOUT_PTXAS() \
  SKIP_WITHOUT_COMPILER();   \
  if (find_ptxas().empty()) GTEST_SKIP() << "no ptxas is installed: registers are not known"

/// Under mapping=paper, whose blocks of 1,024 threads have 32 registers each. Values alive at once: each is
/// needed by the first and again by the last of the ops on all of them.
/// With `centred`, less their sum, for which all blocks wait.
Graph hungry(int values, bool centred = false, const std::string& dtype = "f32") {
  std::string text =
      "HloModule hungry\nsum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
      "ENTRY main {\n";
  for (int i = 0; i < values; ++i)
    text += fmt::format("  p{0} = f32[65536] parameter({0})\n  v{0} = f32[65536] logistic(p{0})\n", i);
  std::string last = "v0";
  for (int i = 1; i < values; ++i) {
    text += fmt::format("  a{0} = f32[65536] {2}({1}, v{0})\n", i, last, i % 2 ? "multiply" : "add");
    last = fmt::format("a{}", i);
  }
  std::string back = last;
  for (int i = values - 1; i >= 0; --i) {
    text += fmt::format("  {3}b{0} = f32[65536] {2}({1}, v{0})\n", i, back, i % 2 ? "add" : "multiply",
                        i == 0 && !centred ? "ROOT " : "");
    back = fmt::format("b{}", i);
  }
  if (centred)
    text +=
        "  zero = f32[] constant(0)\n  total = f32[] reduce(b0, zero), dimensions={0}, to_apply=sum\n"
        "  totals = f32[65536] broadcast(total), dimensions={}\n  ROOT c = f32[65536] subtract(b0, totals)\n";
  text += "}";
  for (std::size_t at = 0; (at = text.find("f32", at)) != std::string::npos; at += dtype.size())
    text.replace(at, 3, dtype);
  return graph_of(text);
}

CompileOptions compile_options() {
  CompileOptions options;
  return options;
}

using Factor = std::function<double(const std::vector<Edit>&)>;
Factor by(double factor) {
  return [factor](const std::vector<Edit>&) { return factor; };
}

/// `factor`: what the estimates of plans made again are multiplied by, to say which is the cheapest.
Executable settled(const Graph& graph, bool may_replan, const Factor& factor = by(1)) {
  const auto plan = [&](const std::vector<Edit>& edits) {
    FusionPlan result = make_plan(graph, device("v100"), "astitch", paper("astitch", {.edits = edits}));
    for (KernelPlan& kernel : result.kernels)
      if (!edits.empty()) kernel.predicted_us *= factor(edits);
    return result;
  };
  return compile_settled(graph, device("v100"), plan({}), may_replan ? Replan(plan) : Replan(),
                         compile_options());
}

TEST(Settle, AKernelThatSpillsGetsFewerBlocksAnSm) {
  SKIP_WITHOUT_PTXAS();
  const Graph graph = hungry(40);
  const Executable before =
      compile(graph, device("v100"), make_plan(graph, device("v100"), "astitch", paper("astitch")),
              compile_options());
  if (!before.kernels.at(0).spill_bytes) GTEST_SKIP() << "this ptxas does not take the compiler's PTX";
  ASSERT_GT(*before.kernels[0].spill_bytes, 0);
  const Executable after = settled(graph, true);
  EXPECT_LT(*after.kernels.at(0).spill_bytes, *before.kernels[0].spill_bytes);
  EXPECT_LT(after.plan.kernels[0].launch.blocks_per_sm, before.plan.kernels[0].launch.blocks_per_sm);
  EXPECT_GT(after.plan.kernels[0].launch.register_bound, before.plan.kernels[0].launch.register_bound);
  ASSERT_FALSE(after.plan.edits.empty());
  EXPECT_EQ(after.plan.edits[0].kind, EditKind::kResidency);
  ASSERT_GE(after.checks.size(), 2u);
  EXPECT_EQ(after.checks[0].verdict.rule, "compile.spills");
  EXPECT_EQ(after.checks[1].verdict.rule, "compile.retry");
  expect_correct(graph, after.plan);
}

TEST(Settle, AKernelThatSpillsOnABlockAnSmGetsSmallerBlocks) {
  SKIP_WITHOUT_PTXAS();
  const Graph graph = hungry(100);
  const Executable after = settled(graph, true, by(0));  // whatever is planned again is cheaper
  if (!after.kernels.at(0).spill_bytes) GTEST_SKIP() << "this ptxas does not take the compiler's PTX";
  EXPECT_EQ(*after.kernels[0].spill_bytes, 0);
  EXPECT_LT(after.plan.kernels[0].launch.block, 1024);
  EXPECT_GT(after.plan.kernels[0].launch.register_bound, 64);
  EXPECT_THAT(after.plan.edits, ::testing::Contains(::testing::Field(&Edit::kind, EditKind::kBlock)));
  expect_correct(graph, after.plan);
}

TEST(Settle, AKernelThatSpillsOnABlockAnSmIsSplitBehindAGlobalValue) {
  SKIP_WITHOUT_PTXAS();
  const Graph graph = hungry(120, true, "f64");  // two registers each: no block is small enough
  const Executable after = settled(graph, true, [](const std::vector<Edit>& edits) {
    return std::ranges::any_of(edits, [](const Edit& edit) { return edit.kind == EditKind::kSplit; }) ? 0.0
                                                                                                      : 100.0;
  });
  if (!after.kernels.at(0).spill_bytes) GTEST_SKIP() << "this ptxas does not take the compiler's PTX";
  const auto split = std::find_if(after.plan.edits.begin(), after.plan.edits.end(),
                                  [](const Edit& edit) { return edit.kind == EditKind::kSplit; });
  ASSERT_NE(split, after.plan.edits.end());
  EXPECT_THAT(split->ops, ::testing::ElementsAre("total"));
  ASSERT_EQ(after.plan.kernels.size(), 2u);
  EXPECT_EQ(after.plan.kernels[0].launch.grid_barriers, 1) << "before the partials of total are folded";
  EXPECT_EQ(after.plan.kernels[1].launch.grid_barriers, 0);
  EXPECT_THAT(after.checks, ::testing::Contains(::testing::Field(
                                &Decision::verdict, ::testing::Field(&Verdict::why, to_text(*split)))));
  expect_correct(graph, after.plan);
}

TEST(Settle, AKernelThatSpillsKeepsItsPlanWhereTheOtherIsDearer) {
  SKIP_WITHOUT_PTXAS();
  const Graph graph = hungry(40);
  const Executable before = settled(graph, false), after = settled(graph, true, by(100));
  if (!after.kernels.at(0).spill_bytes) GTEST_SKIP() << "this ptxas does not take the compiler's PTX";
  EXPECT_TRUE(after.plan.edits.empty());
  EXPECT_EQ(after.kernels[0].source_sha256, before.kernels.at(0).source_sha256);
  ASSERT_GE(after.checks.size(), 3u);
  EXPECT_EQ(after.checks.back().verdict.rule, "compile.dearer");
}

/// What the first plan of a workload spills, and its estimate against that of the plan settled on.
struct Settled {
  std::int64_t spilled = 0;
  double first_us = 0, us = 0;
  std::string text;
};

Settled settled(const std::string& name, const WorkloadSize& size, const char* on) {
  const Graph graph = graph_of(workload(name).hlo(size));
  const Device& target = device(on);
  const auto plan = [&](const std::vector<Edit>& edits) {
    return make_plan(graph, target, "astitch", {.edits = edits});
  };
  Settled result;
  const Executable first = compile(graph, target, plan({}), compile_options());
  for (const CompiledKernel& kernel : first.kernels) result.spilled += kernel.spill_bytes.value_or(0);
  const Executable executable = compile_settled(graph, target, plan({}), plan, compile_options());
  result.first_us = first.plan.predicted_us;
  result.us = executable.plan.predicted_us;
  result.text = fmt::format("{} {}x{} {} on {}: {} bytes spilled, {:.1f} us, settled on {:.1f}", name,
                            size.rows, size.cols, size.dtype, on, result.spilled, result.first_us, result.us);
  for (const Decision& check : executable.checks)
    result.text += fmt::format("\n  {} {}", check.verdict.rule, check.verdict.why);
  return result;
}

TEST(Settle, AFewSpilledBytesAreNotWorthAPlanThatTakesTwiceAsLong) {
  SKIP_WITHOUT_PTXAS();
  // Shapes are drawn: none was looked at when the rule was made.
  std::mt19937 random(20);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(high - low + 1));
  };
  const Settled known = settled("layer_norm", {4096, 8192, "f32"}, "v100");
  EXPECT_LE(known.us, 1.55 * known.first_us) << known.text;
  int spilling = 0;
  for (const char* on : {"v100", "a100", "h200"})
    for (int i = 0; i < 3; ++i) {
      const char* name = i % 2 == 0 ? "layer_norm" : "layer_norm_grad";
      const WorkloadSize size{draw(512, 8192), 64 * draw(32, 192), i == 2 ? "bf16" : "f32"};
      const Settled result = settled(name, size, on);
      // The spilled bytes of these are a few percent of what the kernels move.
      EXPECT_LE(result.us, 1.55 * result.first_us) << result.text;
      spilling += result.spilled > 0 ? 1 : 0;
    }
  EXPECT_GE(spilling, 3) << "hardly any of these first plans spills";
}

TEST(Settle, KernelsMadeDearerKeepTheirPlanThoughOthersComputeOpsOfThemAgain) {
  SKIP_WITHOUT_PTXAS();
  // All steps of this network compute the same masks; many of them spill, and a few are better off for it.
  const Graph graph = testing::dataset("dyn_rnn");
  const auto plan = [&](const std::vector<Edit>& edits) {
    return make_plan(graph, device("h200"), "auto", {.edits = edits});
  };
  const FusionPlan first = plan({});
  const Executable executable = compile_settled(graph, device("h200"), first, plan, compile_options());
  const auto kernels_us = [](const FusionPlan& of) {
    double us = 0;
    for (const KernelPlan& kernel : of.kernels) us += kernel.predicted_us;
    return us;
  };
  EXPECT_LE(kernels_us(executable.plan), 1.1 * kernels_us(first));
}

TEST(Settle, AGivenPlanIsOnlyJudged) {
  SKIP_WITHOUT_PTXAS();
  const Graph graph = hungry(40);
  const Executable given = settled(graph, false);
  if (!given.kernels.at(0).spill_bytes) GTEST_SKIP() << "this ptxas does not take the compiler's PTX";
  EXPECT_TRUE(given.plan.edits.empty());
  ASSERT_EQ(given.checks.size(), 1u);
  EXPECT_FALSE(given.checks[0].verdict.ok);
}

TEST(Settle, AKernelThatFitsIsLeftAlone) {
  SKIP_WITHOUT_PTXAS();
  const Graph graph = hungry(2);
  const Executable settled_plan = settled(graph, true);
  EXPECT_TRUE(settled_plan.checks.empty());
  EXPECT_TRUE(settled_plan.plan.edits.empty());
}

}  // namespace TEST_FILE
}  // namespace stitchwork::testing
