// Templates of FusionStitching 2019: notation, layout, kernels by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "analysis/planners/fusionstitching/ilp/layout.h"
#include "analysis/planners/fusionstitching/ilp/packing.h"
#include "analysis/planners/fusionstitching/ilp/template_text.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"

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

/// Where blocks of 32 columns would leave half of the processors idle or more, they have fewer.
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
    if (columns <= 16 * device(id).sms) {
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

}  // namespace TEST_FILE
}  // namespace stitchwork::fusionstitching
