// Templates of FusionStitching 2019: notation, layout, kernels by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>

#include "analysis/judge/cost.h"
#include "analysis/planners/fusionstitching/ilp/layout.h"
#include "analysis/planners/fusionstitching/ilp/packing.h"
#include "analysis/planners/fusionstitching/ilp/substitution.h"
#include "analysis/planners/fusionstitching/ilp/template_text.h"
#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "tests/support/graphs.h"
#include "tests/support/random_graph.h"

namespace stitchwork::fusionstitching {
namespace TEST_FILE {

using testing::graph_of;
using ::testing::HasSubstr;

const char* const kSoftmax = R"(
  x = f32[256,384] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  most = f32[256] reduce(x, low), dimensions={1}, to_apply=max
  mosts = f32[256,384] broadcast(most), dimensions={0}
  less = f32[256,384] subtract(x, mosts)
  e = f32[256,384] exponential(less)
  total = f32[256] reduce(e, zero), dimensions={1}, to_apply=sum
  totals = f32[256,384] broadcast(total), dimensions={0}
  ROOT y = f32[256,384] divide(e, totals))";

FusionPlan plan_with(const Graph& graph, const std::string& text) {
  PlanOptions options;
  options.knobs["mapping"] = "paper";
  options.edits = {{EditKind::kTemplate, {"y"}, text, 0}};
  return make_plan(graph, device("v100"), "fusionstitching", options);
}

std::string refusal(const Graph& graph, const std::string& text) {
  try {
    plan_with(graph, text);
  } catch (const Error& error) {
    return fmt::format("{}:{}: {}", error.line(), error.column(), error.message());
  }
  return "none";
}

TEST(Fs19TemplateText, IsReadAsItIsPrinted) {
  const Graph graph = graph_of(kSoftmax);
  const Computation& c = graph.entry_computation();
  for (const std::string text : {"most[GRID,CTA]S; e[GRID,CTA]S; total[GRID,WARP]S; y[GRID_128-CTA_2,CTA];",
                                 "y[GRID_98304];", "total[GRID_64-WARP_4,CTA]; y[GRID_64-WARP_4,CTA];"})
    EXPECT_EQ(to_text(c, parse_template(c, text)), text);
}

TEST(Fs19TemplateText, MistakesAreToldWhereTheyAre) {
  const Graph graph = graph_of(kSoftmax);
  EXPECT_THAT(refusal(graph, "most[GRID,LANE]S;"), HasSubstr("1:11: 'LANE' is no attribute"));
  EXPECT_THAT(refusal(graph, "most[GRID,CTA]S;\n nobody[GRID];"), HasSubstr("2:2: no op is called 'nobody'"));
  EXPECT_THAT(refusal(graph, "most[GRID,CTA]S; e[GRID,CTA]S; total[GRID,CTA]S;"),
              HasSubstr("y has no schedule"));
  EXPECT_THAT(refusal(graph, "y[GRID_12-CTA_2,CTA];"), HasSubstr("1:3: GRID_12-CTA_2 covers 24 of 256"));
  EXPECT_THAT(refusal(graph, "y[GRID,CTA,CTA];"), HasSubstr("3 attributes"));
  EXPECT_THAT(refusal(graph, "y[GRID-CTA_2,CTA];"), HasSubstr("its number of tiles"));
  EXPECT_THAT(refusal(graph, "y[CTA,GRID];"), HasSubstr("blocks take dimension 1"));
  EXPECT_THAT(refusal(graph, "y"), HasSubstr("expected '['"));
  EXPECT_THAT(refusal(graph, ""), HasSubstr("at least one op"));
}

TEST(Fs19TemplateText, AValueReadAcrossBlocksIsRefusedInTheWordsOfVerify) {
  const Graph graph = graph_of(kSoftmax);
  EXPECT_THAT(refusal(graph, "most[GRID,CTA]S; e[GRID,CTA]S; total[GRID,CTA]S; y[GRID_128-CTA_2,CTA];"),
              HasSubstr("block"));
}

TEST(Fs19TemplateText, TheKernelIsAsTheTextSays) {
  const Graph graph = graph_of(kSoftmax);
  const Computation& c = graph.entry_computation();
  const std::string text = "most[GRID,CTA]S; e[GRID,CTA]S; total[GRID,CTA]S; y[GRID,CTA];";
  const FusionPlan plan = plan_with(graph, text);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].launch.grid, 256);
  EXPECT_EQ(plan.kernels[0].groups.size(), 4u);
  EXPECT_EQ(to_text(c, schedules_of(c, plan.kernels[0])), text);
}

TEST(Fs19Layout, ReductionsAreReadByTheirOwnBlock) {
  const Graph graph = graph_of(kSoftmax);
  const Computation& c = graph.entry_computation();
  const astitch::Nodes nodes = astitch::node_facts(graph);
  const Ops ops = find_ops(nodes, device("v100"), false);
  const auto op = [&](const char* name) { return testing::op(graph, name); };
  std::vector<NodeId> all;
  for (const char* name : {"most", "less", "e", "total", "y"}) all.push_back(op(name));
  const Fusion fusion = fusion_of(ops, all);
  const std::vector<NodeId> must{op("most"), op("total")};
  EXPECT_EQ(block_numbers(c, fusion, must).front(), 256);
  const ChunkLayout rows = chunk_layout(c, fusion, must, 256);
  EXPECT_EQ(rows.refused, kNoNode);
  EXPECT_EQ(rows.chunks.at(op("most")), 1);
  EXPECT_EQ(rows.chunks.at(op("y")), 384);
  // Half a row a block: its maximum would be another's.
  EXPECT_NE(chunk_layout(c, fusion, must, 512).refused, kNoNode);
}

/// Where blocks of 32 columns would leave half of the processors idle or more, they have fewer, or a part of
/// each.
TEST(Fs19Templates, SumsOfColumnsFillTheDevice) {
  std::mt19937 random(29);
  for (int i = 0; i < 24; ++i) {
    const std::string id = std::array{"v100", "a100", "h200"}[static_cast<std::size_t>(i % 3)];
    const int rows = 2048 << random() % 4, columns = 64 * (1 + static_cast<int>(random() % 64));
    SCOPED_TRACE(fmt::format("{}: {} x {}", id, rows, columns));
    const Graph graph = graph_of(fmt::format(R"(
      x = f32[{0},{1}] parameter(0)
      zero = f32[] constant(0)
      ROOT y = f32[{1}] reduce(x, zero), dimensions={{0}}, to_apply=sum)",
                                             rows, columns));
    const FusionPlan plan = make_plan(graph, device(id), "fusionstitching");
    ASSERT_EQ(plan.kernels.size(), 1u);
    const KernelPlan& kernel = plan.kernels.front();
    const auto* tiles = std::get_if<mapping::Columns>(&kernel.groups.front().mapping);
    ASSERT_NE(tiles, nullptr);
    EXPECT_GE(tiles->tile, 8);  // of a sector
    if (tiles->segments == 1 && columns <= 16 * device(id).sms) {
      EXPECT_LT(tiles->tile, 32) << kernel.launch.grid << " blocks of " << tiles->tile << " columns";
    }
  }
}

TEST(Fs19Packing, PartsThatNothingConnectsHaveBlocksOfTheirOwn) {
  const Graph graph = graph_of(R"(
  x = f32[64,96] parameter(0)
  z = f32[32] parameter(1)
  zero = f32[] constant(0)
  a = f32[64,96] tanh(x)
  b = f32[64,96] negate(x)
  s = f32[64] reduce(x, zero), dimensions={1}, to_apply=sum
  d = f32[32] exponential(z)
  ROOT t = (f32[64,96], f32[64,96], f32[64], f32[32]) tuple(a, b, s, d))");
  const FusionPlan plan =
      make_plan(graph, device("v100"), "fusionstitching", {.knobs = {{"mapping", "paper"}}});
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].launch.grid_barriers, 0);
  const FusionPlan apart = make_plan(graph, device("v100"), "fusionstitching",
                                     {.knobs = {{"mapping", "paper"}, {"packing", "off"}}});
  EXPECT_GT(apart.kernels.size(), 1u);
}

/// The fastest sound template of all sizes of blocks, every one estimated to its end.
struct Fastest {
  double us = 0;
  KernelPlan kernel;
};
std::optional<Fastest> fastest_of_all(const Ops& ops, const Fusion& fusion, const IlpOptions& options) {
  std::optional<Fastest> best;
  for (const int size : kCtaSizes)
    for (const Template& each : find_templates(ops, fusion, size, options).all) {
      const auto [kernel, found] = evaluated_kernel(*ops.nodes->computation, each.stitched);
      if (!verify_values(*ops.nodes->graph, *ops.device, kernel, found).empty()) continue;
      const double us = kernel_cost(*ops.nodes->graph, *ops.device, kernel, found).predicted_us;
      if (!best || us < best->us) best = Fastest{us, kernel};
    }
  return best;
}

bool has_loops_of_outputs(const Ops& ops, const Fusion& fusion, const IlpOptions& options) {
  return std::ranges::any_of(find_templates(ops, fusion, kCtaSizes[0], options).all,
                             [](const Template& each) { return each.composition == Composition::kThread; });
}

TEST(Fs19Packing, ChoosesAsIfEveryTemplateWereEstimatedToItsEnd) {
  int compared = 0;
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    testing::RandomGraphOptions of;
    of.ops = 16 + static_cast<int>(seed);
    of.types = false;
    if (seed % 2 == 0) of.domain = {64 << (seed % 3), 48 + seed};
    const Graph graph = canonicalize(parse_hlo(testing::RandomGraph(seed, of).text(), "random.hlo"));
    IlpOptions options;
    options.shared_bytes = kPaperSharedBytes;
    const astitch::Nodes nodes = astitch::node_facts(graph);
    const Ops ops = find_ops(nodes, device("v100"), options.products);
    Recorder none(false);
    Packer packer(ops, options);
    for (const Pattern& pattern : substitution_patterns(ops, find_partition(ops, Standing::kEarly, none),
                                                        {.packing = false}, {}, none)) {
      const Fusion fusion = fusion_of(ops, pattern.ops);
      // Loops of outputs alone are put side by side once they are chosen.
      if (components(ops, pattern.ops).size() > 1 || has_loops_of_outputs(ops, fusion, options)) continue;
      const auto expected = fastest_of_all(ops, fusion, options);
      const PackedKernel packed = packer.pack(pattern.ops);
      ASSERT_EQ(packed.whole.has_value(), expected.has_value()) << "seed " << seed << " " << packed.made.why;
      if (!expected) continue;
      EXPECT_EQ(packed.us, expected->us) << "seed " << seed;
      const KernelPlan kernel = stitched_kernel(*nodes.computation, *packed.whole);
      EXPECT_EQ(kernel.launch.block, expected->kernel.launch.block) << "seed " << seed;
      EXPECT_EQ(kernel.schemes, expected->kernel.schemes) << "seed " << seed;
      EXPECT_TRUE(
          std::ranges::equal(kernel.groups, expected->kernel.groups, {}, &Group::mapping, &Group::mapping))
          << "seed " << seed;
      ++compared;
    }
  }
  EXPECT_GT(compared, 24);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::fusionstitching
