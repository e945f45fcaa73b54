#include "analysis/judge/cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "analysis/explain/compare.h"
#include "analysis/judge/cost_access.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"
#include "tests/support/mapping_fields.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using testing::graph_of;

KernelCost cost_of(const Graph& graph, const char* planner, std::size_t kernel = 0) {
  const FusionPlan plan = make_plan(graph, device("v100"), planner);
  return kernel_cost(graph, device("v100"), plan.kernels.at(kernel));
}

TEST(Cost, ACopyKernelMovesItsBytesOnceInFullSectors) {
  const Graph graph = graph_of("p = f32[1048576] parameter(0)\n ROOT n = f32[1048576] negate(p)");
  const KernelCost cost = cost_of(graph, "unfused");
  EXPECT_EQ(cost.dram_read_bytes, 4 << 20);
  EXPECT_EQ(cost.dram_write_bytes, 4 << 20);
  EXPECT_DOUBLE_EQ(cost.work.l2_sectors, 2 * (4 << 20) / 32.0);
  EXPECT_EQ(cost.recomputed_elements, 0);
}

TEST(Cost, AWarpOfOneLaneLoadsAsOftenAsAFullOne) {
  EXPECT_DOUBLE_EQ(
      cost_of(graph_of("p = f32[] parameter(0)\n ROOT n = f32[] negate(p)"), "unfused").work.global_accesses,
      1);
}

TEST(Cost, TransposedReadsTouchASectorAnElement) {
  const Graph graph =
      graph_of("p = f32[1024,1024] parameter(0)\n ROOT t = f32[1024,1024] transpose(p), dimensions={1,0}");
  EXPECT_DOUBLE_EQ(cost_of(graph, "unfused").work.l2_sectors, (1 << 20) + (4 << 20) / 32.0);
}

TEST(Cost, SlicesReadOnlyWhatTheyKeep) {
  const Graph graph =
      graph_of("p = f32[1024,64] parameter(0)\n ROOT s = f32[16,64] slice(p), slice={[0:16], [0:64]}");
  EXPECT_EQ(cost_of(graph, "unfused").dram_read_bytes, 16 * 64 * 4);
}

TEST(Cost, ConcatenatedPartsAreReadOnce) {
  const Graph graph = graph_of(
      "p = f32[256,64] parameter(0)\n q = f32[256,64] parameter(1)\n"
      "ROOT c = f32[512,64] concatenate(p, q), dimensions={0}");
  EXPECT_EQ(cost_of(graph, "unfused").dram_read_bytes, 2 * 256 * 64 * 4);
}

// The bias lies behind the guard of its part: it is loaded by the rows of that part, not once a row for each
// of them.
TEST(Cost, ABiasInAConcatenatedPartIsReadByTheRowsOfThePart) {
  const auto sectors = [](const char* part) {
    const Graph graph = graph_of(
        std::string(
            "p = f32[512,1,64] parameter(0)\n q = f32[512,1,64] parameter(1)\n b = f32[64] parameter(2)\n"
            "w = f32[512,1,64] broadcast(b), dimensions={2}\n a = f32[512,1,64] add(p, w)\n") +
        "c = f32[512,2,64] concatenate(" + part + ", q), dimensions={1}\n z = f32[] constant(0)\n" +
        "ROOT r = f32[512,2] reduce(c, z), dimensions={2}, to_apply=sum");
    return cost_of(graph, "astitch").work.l2_sectors;
  };
  const double without = sectors("p"), with = sectors("a");
  EXPECT_GT(with, without);
  EXPECT_LE(with, without + 2 * 512 * 64 * 4 / 32.0);
}

// A scalar behind a guard on the element: an access a warp of its part, not one an element for every warp.
TEST(Cost, AScalarInAConcatenatedPartIsReadByTheWarpsOfThePart) {
  const Graph graph = graph_of(
      "p = f32[65536] parameter(0)\n s = f32[] parameter(1)\n w = f32[65536] broadcast(s), dimensions={}\n"
      "ROOT c = f32[131072] concatenate(p, w), dimensions={0}");
  EXPECT_LE(cost_of(graph, "unfused").work.ldst_warp_instructions, (65536 + 65536 + 131072) / 32.0 + 1);
}

TEST(Cost, StitchedSoftmaxReadsItsInputFromDramOnce) {
  const Graph graph = dataset("softmax");
  const KernelCost cost = cost_of(graph, "astitch");
  EXPECT_EQ(cost.dram_read_bytes, 4096 * 1024 * 4);
  EXPECT_EQ(cost.dram_write_bytes, 4096 * 1024 * 4);
}

// A value a row is one sector of a row for its first warp; the L1 has it for the others.
TEST(Cost, AWavefrontIsOfOneLineHoweverFewOfItsSectorsAreRead) {
  const auto wavefronts_a_warp = [](int columns) {
    const Graph graph = testing::graph_of(fmt::format(R"(
  x = f32[4096,64] parameter(0)
  ROOT part = f32[4096,{0}] slice(x), slice={{[0:4096],[0:{0}]}})",
                                                      columns));
    const FusionPlan plan = make_plan(graph, device("v100"), "unfused");
    return kernel_cost(graph, device("v100"), plan.kernels.at(0)).work.l1_wavefronts /
           (4096 * columns / 32.0);
  };
  // Of loads, and one of the store.
  EXPECT_DOUBLE_EQ(wavefronts_a_warp(1), 32 + 1);
  EXPECT_DOUBLE_EQ(wavefronts_a_warp(4), 8 + 1);
  EXPECT_DOUBLE_EQ(wavefronts_a_warp(8), 4 + 1);
  EXPECT_DOUBLE_EQ(wavefronts_a_warp(32), 1 + 1);
}

TEST(Cost, WarpsOfARowFindItsValuesInTheL1) {
  const Graph graph = graph_of(
      "p = f32[4096,1024] parameter(0)\n q = f32[4096] parameter(1)\n z = f32[] constant(0)\n"
      "b = f32[4096,1024] broadcast(q), dimensions={0}\n m = f32[4096,1024] multiply(p, b)\n"
      "ROOT r = f32[4096] reduce(m, z), dimensions={1}, to_apply=sum");
  EXPECT_LE(cost_of(graph, "xla").work.l2_sectors, 4096 * (1024 * 4 / 32.0 + 1 + 1));
}

// Every vector of both arrays that a thread has is asked for before the first is used: NVRTC unrolls the loop
// over them, and ptxas moves their loads ahead. More than 8 requests are not counted.
TEST(Cost, LoadsInFlightAreTheVectorsOfAllArrays) {
  const auto in_flight = [](const char* op, int cols) {
    const Graph graph =
        graph_of(fmt::format("p = f32[65536,{0}] parameter(0)\n q = f32[65536,{0}] parameter(1)\n"
                             "z = f32[] constant(0)\n m = f32[65536,{0}] {1}\n"
                             "ROOT r = f32[65536] reduce(m, z), dimensions={{1}}, to_apply=sum",
                             cols, op));
    const FusionPlan plan = make_plan(graph, device("h200"), "astitch");
    const double loads = kernel_cost(graph, device("h200"), plan.kernels.at(0)).work.independent_loads;
    const testing::MappingFields m = plan.kernels.at(0).groups.at(0);
    return std::pair(loads, m.vector * std::max(1, cols / (m.threads_per_row * m.vector)));
  };
  const auto [one, of_one] = in_flight("abs(p)", 128);
  EXPECT_NEAR(one, of_one, 0.01);
  const auto [both, of_both] = in_flight("multiply(p, q)", 128);
  EXPECT_NEAR(both, 2 * of_both, 0.01);
  const auto [longer, of_longer] = in_flight("abs(p)", 1024);
  EXPECT_GT(of_longer, 8);
  EXPECT_NEAR(longer, 8, 0.01);
}

// ptxas moves loads ahead of the arithmetic between them (LoadOrder of the simulator).
TEST(Cost, LoadsOfAnElementThatDoNotHangOnEachOtherAreInFlightTogether) {
  const auto in_flight = [](const char* ops) {
    const Graph graph = graph_of(std::string("p = f32[64,100] parameter(0)\n q = f32[64,100] parameter(1)\n"
                                             "s = f32[64,100] parameter(2)\n") +
                                 ops);
    return cost_of(graph, "xla").work.independent_loads;
  };
  const char* product = "m = f32[64,100] multiply(p, q)\n";
  EXPECT_DOUBLE_EQ(in_flight("ROOT n = f32[64,100] negate(p)"), 1);
  EXPECT_DOUBLE_EQ(in_flight((std::string(product) + "ROOT n = f32[64,100] add(m, s)").c_str()), 3);
  EXPECT_DOUBLE_EQ(in_flight((std::string(product) + "ROOT n = f32[64,100] maximum(m, s)").c_str()), 3);
  // What is gathered follows its index, beside which the other operand is in flight.
  EXPECT_DOUBLE_EQ(
      in_flight("i = s32[64,1] parameter(3)\n g = f32[64,100] gather(p, i), offset_dims={1}, "
                "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,100}\n"
                "ROOT n = f32[64,100] add(g, s)"),
      2);
}

// Pieces of a concatenation that are computed are branches: what one loads is not in flight with what another
// one does, nor with what stands before the branch. Those that are loaded alone are under predicates, beside
// whatever else the element asks for, and it has one of them.
TEST(Cost, LoadsOfOneBranchAreInFlightTogetherAndThoseUnderPredicatesWithAll) {
  const auto in_flight = [](const char* ops) {
    const Graph graph = graph_of(std::string("p = f32[64,100] parameter(0)\n q = f32[64,100] parameter(1)\n"
                                             "s = f32[64,200] parameter(2)\n") +
                                 ops);
    return cost_of(graph, "xla").work.independent_loads;
  };
  const char* plain = "c = f32[64,200] concatenate(p, q), dimensions={1}\n";
  EXPECT_DOUBLE_EQ(in_flight((std::string(plain) + "ROOT n = f32[64,200] negate(c)").c_str()), 1);
  EXPECT_DOUBLE_EQ(in_flight((std::string(plain) + "ROOT n = f32[64,200] add(c, s)").c_str()), 2);
  const char* power =
      "a = f32[64,100] power(p, q)\n b = f32[64,100] power(a, a)\n e = f32[64,100] power(b, b)\n"
      "m = f32[64,100] power(e, e)\n";
  // Of three loads an element two are in a piece, in half of the elements.
  EXPECT_DOUBLE_EQ(
      in_flight((std::string(power) + "ROOT c = f32[64,200] concatenate(m, p), dimensions={1}").c_str()),
      (2 * 2 + 1) / 3.0);
  EXPECT_DOUBLE_EQ(in_flight("z = f32[] constant(0)\n ROOT n = f32[64,102] pad(p, z), padding=0_0x1_1"), 1);
}

// What every block does before its tasks is not the busiest block's alone.
TEST(Cost, SumsOfOneBlockBesideManyGroupsAreCheap) {
  const Graph graph = dataset("adam_step_tiny");
  const Device& v100 = device("v100");
  EXPECT_LT(make_plan(graph, v100, "astitch").predicted_us, 2 * (v100.launch_us + v100.grid_barrier_us));
}

TEST(Cost, DuplicatedOpsCountAsRecomputed) {
  const Graph graph = graph_of(
      "p = f32[64,64] parameter(0)\n z = f32[] constant(0)\n x = f32[64,64] abs(p)\n"
      "r = f32[64] reduce(x, z), dimensions={1}, to_apply=sum\n w = f32[64,64] broadcast(r), dimensions={0}\n"
      "ROOT m = f32[64,64] multiply(x, w)");
  const FusionPlan plan = make_plan(graph, device("v100"), "xla");
  EXPECT_EQ(plan_cost(graph, device("v100"), plan).recomputed_elements, 64 * 64);
}

TEST(Cost, PredictionsAddUpWithTheGapsBetweenSteps) {
  const Graph graph = dataset("bert_layer");
  const Device& v100 = device("v100");
  const FusionPlan plan = make_plan(graph, v100, "xla");
  double sum = 0;
  for (const PlanStep& step : plan.steps) sum += step.predicted_us;
  EXPECT_NEAR(plan.predicted_us, sum + v100.launch_gap_us * static_cast<double>(plan.steps.size() - 1), 1e-6);
}

TEST(Cost, FusionPaysInTheModelToo) {
  const Graph graph = dataset("bert_layer");
  const auto rows = compare(graph, device("v100"), {"unfused", "xla", "astitch"});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_GT(rows[0].predicted_us, rows[1].predicted_us);
  EXPECT_GT(rows[1].predicted_us, rows[2].predicted_us);
  EXPECT_GT(rows[0].dram_bytes, rows[1].dram_bytes);
  EXPECT_EQ(rows[2].planner, "astitch");
  EXPECT_GT(rows[2].plan_ms, 0);
}

TEST(Compare, KnobsGoToThePlannersThatHaveThem) {
  const Graph graph = dataset("fig7");
  EXPECT_NO_THROW(
      compare(graph, device("v100"), {"xla", "astitch"}, {.knobs = {{"dominant_merging", "off"}}}));
  EXPECT_THROW(compare(graph, device("v100"), {"xla", "unfused"}, {.knobs = {{"dominant_merging", "off"}}}),
               Error);
}

/// Counted: of ranges of so many neighbours, those that some element of the map is in, by the elements.
TEST(Cost, DivergenceIsThatOfTheWarpsThatComputeAPiece) {
  std::mt19937 random(5);
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  for (int drawn = 0; drawn < 400; ++drawn) {
    const int width = 1 << below(3);
    const std::int64_t period = below(2) == 0 ? 32 * (1 + below(20)) : 2 + below(500);
    const std::int64_t rows = width * 32 * period;  // the periods have begun at every place of a range
    const std::int64_t from = below(3) == 0 ? period / 4 / 8 * 8 : below(static_cast<int>(period));
    const std::int64_t to = from + below(static_cast<int>(period - from));
    IndexMap map;
    map.dims = {rows, 1};
    map.results = {mod(IndexExpr::dim(0), period)};
    map.constraints = {{mod(IndexExpr::dim(0), period), {from, to}}};
    const Layout layout(mapping::Elements{.count = rows, .per_task = 256 * width, .vectors = {width, 1}},
                        256);
    ASSERT_EQ(layout.width, width);
    const std::int64_t together = 32 * width;
    double ranges = 0, elements = 0;
    for (std::int64_t begin = 0; begin < rows; begin += together) {
      std::int64_t in = 0;
      for (std::int64_t e = begin; e < begin + together; ++e) in += from <= e % period && e % period <= to;
      ranges += in > 0;
      elements += static_cast<double>(in);
    }
    const double counted = ranges * static_cast<double>(together) / elements;
    EXPECT_NEAR(costs::divergence(map, layout) / counted, 1, 0.02)
        << to_text(map) << " in vectors of " << width << ": " << counted;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
