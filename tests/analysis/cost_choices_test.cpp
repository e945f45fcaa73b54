// What estimates count of values that are there for some elements alone.
#include "analysis/judge/cost_choices.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/judge/cost.h"
#include "analysis/planners/planner.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

KernelWork work_of(const std::string& ops) {
  const Graph graph = testing::graph_of(ops);
  const FusionPlan plan = make_plan(graph, device("h200"), "xla");
  EXPECT_EQ(plan.kernels.size(), 1u);
  return kernel_cost(graph, device("h200"), plan.kernels.at(0)).work;
}

/// A concatenation of so many exponentials of f32[256,64] each.
std::string pieces(int number) {
  std::string text, names;
  for (int i = 0; i < number; ++i) {
    const std::string n = std::to_string(i);
    text +=
        "p" + n + " = f32[256,64] parameter(" + n + ")\n e" + n + " = f32[256,64] exponential(p" + n + ")\n";
    names += (i == 0 ? "e" : ", e") + n;
  }
  return text + "ROOT c = f32[" + std::to_string(256 * number) + ",64] concatenate(" + names +
         "), dimensions={0}";
}

TEST(CostChoices, FewArgumentsAreComputedForEveryElementAndManyForTheirOwn) {
  const double warps_a_piece = 256 * 64 / 32;
  EXPECT_DOUBLE_EQ(work_of(pieces(2)).mufu_warp_instructions, 2 * 2 * warps_a_piece);
  EXPECT_DOUBLE_EQ(work_of(pieces(3)).mufu_warp_instructions, 3 * 3 * warps_a_piece);
  EXPECT_NEAR(work_of(pieces(8)).mufu_warp_instructions, 8 * warps_a_piece, 1);
}

TEST(CostChoices, AWindowsOpIsExecutedForEachOfItsElements) {
  const auto adds = [](const char* window, const char* result) {
    return work_of(std::string("p = f32[64,1024] parameter(0)\n z = f32[] constant(0)\n ROOT w = ") + result +
                   " reduce-window(p, z), window={" + window + "}, to_apply=sum")
        .fp32_warp_instructions;
  };
  const double results = 64 * 1024 / 32;
  EXPECT_DOUBLE_EQ(adds("size=1x5 pad=0_0x4_0", "f32[64,1024]"), 5 * results);
  EXPECT_DOUBLE_EQ(adds("size=1x9 pad=0_0x8_0", "f32[64,1024]"), 9 * results);
}

TEST(CostChoices, AWindowInABranchIsGoneThroughWhereTheBranchIsTaken) {
  const std::string window = " reduce-window(p, z), window={size=1x9 pad=0_0x8_0}, to_apply=sum\n";
  const KernelWork alone =
      work_of("p = f32[64,1024] parameter(0)\n z = f32[] constant(0)\n ROOT w = f32[64,1024]" + window);
  const KernelWork beside = work_of(
      "p = f32[64,1024] parameter(0)\n q = f32[64,1024] parameter(1)\n z = f32[] constant(0)\n"
      "w = f32[64,1024]" +
      window + "ROOT c = f32[256,1024] concatenate(w, q, q, q), dimensions={0}");
  EXPECT_DOUBLE_EQ(beside.fp32_warp_instructions, alone.fp32_warp_instructions);
  EXPECT_LT(beside.warp_instructions, 3 * alone.warp_instructions);
}

TEST(CostChoices, OverlappingWindowsReadEachSectorOnceATask) {
  const KernelWork work = work_of(
      "p = f32[64,1024] parameter(0)\n z = f32[] constant(0)\n"
      "ROOT w = f32[64,1024] reduce-window(p, z), window={size=1x33 pad=0_0x32_0}, to_apply=sum");
  const double array = 64 * 1024 * 4 / 32;
  EXPECT_LT(work.l2_sectors, 2 * array * 1.3);
  EXPECT_GT(work.l1_hit_sectors, 10 * array);
}

TEST(CostChoices, GuardsTakeIntegerInstructions) {
  const KernelWork plain =
      work_of("p = f32[256,128] parameter(0)\n n = f32[256,128] negate(p)\n ROOT m = f32[256,128] negate(n)");
  const KernelWork padded = work_of(
      "p = f32[256,96] parameter(0)\n z = f32[] constant(0)\n n = f32[256,128] pad(p, z), "
      "padding=0_0x16_16\n ROOT m = f32[256,128] negate(n)");
  EXPECT_EQ(plain.int32_warp_instructions, 0);
  EXPECT_GT(padded.int32_warp_instructions, 256 * 128 / 32);  // a selection an element, and what it asks
}

TEST(CostChoices, ResultsInNarrowFloatsAreRounded) {
  const auto slots = [](const std::string& dtype, const std::string& op) {
    const std::string shape = dtype + "[1024,64]";
    return work_of("p = " + shape + " parameter(0)\n q = " + shape + " parameter(1)\n ROOT r = " + shape +
                   " " + op + "(p, q)")
        .warp_instructions;
  };
  const double warps = 1024 * 64 / 32;
  const double exact = slots("bf16", "maximum"), rounded = slots("bf16", "add");
  const double wide = slots("f32", "maximum") - slots("f32", "add");
  EXPECT_DOUBLE_EQ(rounded - exact + wide, 2 * warps);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
