// What needs one piece of code counts once against the limits of a kernel.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "analysis/explain/quality.h"
#include "analysis/stitching/equal_ops.h"
#include "core/passes/passes.h"
#include "tests/support/astitch_passes.h"
#include "tests/support/equal_groups.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

std::vector<int> codes_of(const Graph& graph, const std::vector<std::string>& names) {
  const Nodes nodes = node_facts(graph);
  std::vector<int> result;
  for (const std::string& name : names) result.push_back(nodes[graph.entry_computation().find(name)].code);
  return result;
}

Graph optimiser(std::size_t tensors) {
  const std::vector<std::vector<std::int64_t>> sizes = {{1},    {3},    {31},     {33},
                                                        {1024}, {4097}, {64, 96}, {300, 500}};
  std::vector<std::vector<std::int64_t>> dims;
  for (std::size_t i = 0; i < tensors; ++i) dims.push_back(sizes[i % sizes.size()]);
  return canonicalize(parse_hlo(stitchwork::testing::optimiser_hlo(dims), "optimiser.hlo"));
}

FusionPlan plan(const Graph& graph, const std::string& mapping = "paper") {
  return make_plan(graph, device("v100"), "astitch", {.knobs = {{"mapping", mapping}}});
}

TEST(AstitchEqualOps, AnUpdateIsTheSameCodeWhateverItsTensor) {
  const Graph graph = optimiser(16);
  const std::vector<int> codes = codes_of(graph, {"new_m0", "new_m7", "new_p0", "new_p7"});
  EXPECT_GE(codes[0], 0);
  EXPECT_EQ(codes[0], codes[1]);
  EXPECT_GE(codes[2], 0);
  EXPECT_EQ(codes[2], codes[3]);
  EXPECT_NE(codes[0], codes[2]);
}

TEST(AstitchEqualOps, FewPiecesAndTheScalarTheyShareAreCodeOfTheirOwn) {
  EXPECT_THAT(codes_of(optimiser(7), {"new_m0", "new_p6", "used"}), ::testing::Each(-1));
  EXPECT_EQ(codes_of(optimiser(16), {"used"})[0], -1);
}

/// Chains on equal inputs that end differently; the last op tells all of a chain apart.
TEST(AstitchEqualOps, WhatBecomesOfAnOpTellsItApart) {
  std::string text = "ENTRY e {\n", types, names;
  for (int i = 0; i < 16; ++i) {
    text += fmt::format(
        "  x{0} = f32[64] parameter({0})\n  a{0} = f32[64] exponential(x{0})\n  b{0} = f32[64] {1}(a{0})\n",
        i, i % 2 ? "negate" : "abs");
    types += i ? ", f32[64]" : "f32[64]";
    names += fmt::format("{}b{}", i ? ", " : "", i);
  }
  const Graph graph = parse(text + fmt::format("  ROOT t = ({}) tuple({})\n}}", types, names));
  const std::vector<int> codes = codes_of(graph, {"a0", "a2", "a1", "a3"});
  EXPECT_EQ(codes[0], codes[1]);
  EXPECT_EQ(codes[2], codes[3]);
  EXPECT_NE(codes[0], codes[2]);
}

TEST(AstitchEqualOps, ALongChainIsAllCodeOfItsOwn) {
  std::string text = "ENTRY e {\n  x0 = f32[64] parameter(0)\n";
  for (int i = 1; i <= 700; ++i)
    text += fmt::format("  {2}x{0} = f32[64] negate(x{1})\n", i, i - 1, i == 700 ? "ROOT " : "");
  EXPECT_EQ(plan(parse(text + "}")).counts.memory_kernels, 2);  // ceil(700 / 512)
}

TEST(AstitchEqualOps, AnOptimisersUpdateIsOneKernelHoweverManyTensors) {
  for (const std::size_t tensors : {60u, 300u, 1000u}) {
    const Graph graph = optimiser(tensors);
    for (const char* mapping : {"paper", "tuned"}) {
      const FusionPlan made = plan(graph, mapping);
      ASSERT_EQ(made.counts.memory_kernels, 1) << tensors << " tensors, " << mapping;
      const KernelPlan& kernel = made.kernels.at(0);
      EXPECT_EQ(kernel.outputs.size(), 2 * tensors);
      EXPECT_LE(kernel.launch.grid_barriers, 1) << "for the scalar that all updates share";
      std::set<std::string> mappings;
      for (const Group& group : kernel.groups) mappings.insert(to_text(group.mapping, group.deal));
      EXPECT_LE(mappings.size(), 9u) << "tensors of 8 sizes, and the scalar";
    }
  }
}

TEST(AstitchEqualOps, TheBoundCountsThemOnceToo) {
  const Graph graph = optimiser(300);
  EXPECT_GT(kernel_bound(graph).ops, 512);
  EXPECT_EQ(kernel_bound(graph).kernels, 1);
}

TEST(AstitchEqualOps, CodeSizesOfSetsCountCommonCodeOnce) {
  CodeSize a, b;
  for (const int code : {-1, 3, 3, 5}) a.add(code);
  for (const int code : {-1, -1, 5, 7}) b.add(code);
  EXPECT_EQ(a.size(), 3);
  EXPECT_EQ(b.size(), 4);
  EXPECT_EQ(a.with(b), 6);
  a.add(b);
  EXPECT_EQ(a.size(), 6);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
