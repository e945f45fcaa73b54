#include "analysis/schedule/tiles.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "tests/support/graphs.h"
#include "tests/support/mapping_fields.h"

namespace stitchwork {
namespace TEST_FILE {

testing::MappingFields tile(std::int64_t rows, int cols) {
  testing::MappingFields m;
  m.kind = testing::MappingKind::kTile;
  m.rows = 4 * rows;
  m.cols = std::int64_t{4} * cols;
  m.rows_per_block = rows;
  m.threads_per_row = cols;
  m.split = 4;
  m.tasks = m.blocks = 16;
  return m;
}

/// The most words of one bank that a warp's lanes, from element `first` of the tile on, ask for.
std::size_t conflicts(const testing::MappingFields& m, int bytes, TileOrder order, std::int64_t first) {
  const std::int64_t stride = tile_stride(m, bytes);
  std::map<std::int64_t, std::set<std::int64_t>> banks;
  for (std::int64_t at = first; at < first + 32; ++at) {
    const bool cols = order == TileOrder::kAlongCols;
    const std::int64_t row = cols ? at / m.threads_per_row : at % m.rows_per_block;
    const std::int64_t col = cols ? at % m.threads_per_row : at / m.rows_per_block;
    const std::int64_t word = (row * stride + col) * bytes / 4;
    banks[word % 32].insert(word);
  }
  std::size_t most = 0;
  for (const auto& [bank, words] : banks) most = std::max(most, words.size());
  return most;
}

TEST(Tiles, LanesMeetNoBankTwiceInEitherOrder) {
  for (const auto& [rows, cols] :
       {std::pair{32, 32}, std::pair{32, 64}, std::pair{16, 64}, std::pair{64, 16}})
    for (const int bytes : {1, 2, 4})
      for (const TileOrder order : {TileOrder::kAlongCols, TileOrder::kAlongRows})
        for (const std::int64_t first : {0, 32, 96}) {
          SCOPED_TRACE(fmt::format("{} x {} of {} bytes", rows, cols, bytes));
          // 16 words a row: a warp along the rows needs an odd stride, one along the cols of two rows a
          // stride of 16 banks. Padding cannot give both; the rest meet no bank twice.
          const bool both = rows == 64 && bytes == 4 && order == TileOrder::kAlongCols;
          EXPECT_EQ(conflicts(tile(rows, cols), bytes, order, first), both ? 2u : 1u);
        }
}

TEST(Tiles, HoldTheirRows) {
  for (const int bytes : {1, 2, 4, 8}) {
    EXPECT_GE(tile_stride(tile(32, 32), bytes), 32);
    EXPECT_EQ(tile_bytes(tile(32, 32), bytes), 32 * tile_stride(tile(32, 32), bytes) * bytes);
  }
}

TEST(Tiles, EveryElementHasAThread) {
  for (const auto& [rows, cols] :
       {std::pair{32, 32}, std::pair{3, 256}, std::pair{256, 3}, std::pair{31, 100}})
    for (const int block : {128, 256, 1024}) {
      const testing::MappingFields m = tile(std::min(rows, block), std::min(cols, block));
      for (const TileOrder order : {TileOrder::kAlongCols, TileOrder::kAlongRows}) {
        const std::int64_t lines =
            order == TileOrder::kAlongCols ? m.rows_per_block : std::int64_t{m.threads_per_row};
        const Layout layout(m, block, order);
        EXPECT_GE(layout.vectors * layout.stride, lines);
      }
    }
}

Graph transposed() {
  return testing::graph_of(R"(HloModule m
ENTRY main {
  x = f32[1024,1024] parameter(0)
  t = f32[1024,1024] transpose(x), dimensions={1,0}
  ROOT y = f32[1024,1024] negate(t)
}
)");
}

TEST(Tiles, TransposesTakeThemByTheEstimate) {
  const Graph graph = transposed();
  PlanOptions options;
  options.record_decisions = true;
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch", options);
  ASSERT_EQ(plan.kernels.at(0).tiles.size(), 1u);
  EXPECT_TRUE(is<mapping::Patch>(plan.kernels[0].groups[0].mapping));
  EXPECT_TRUE(std::any_of(plan.decisions.begin(), plan.decisions.end(), [](const Decision& d) {
    return d.verdict.rule == "astitch.tiles" && d.verdict.ok;
  }));
  for (const auto& [knob, value] : {std::pair{"tiles", "off"}, std::pair{"mapping", "paper"}}) {
    PlanOptions without;
    without.knobs[knob] = value;
    EXPECT_TRUE(make_plan(graph, device("v100"), "astitch", without).kernels.at(0).tiles.empty()) << knob;
  }
}

TEST(Tiles, BesideClustersTheGridStaysOfWholeClusters) {
  const Graph graph = canonicalize(parse_hlo(R"(HloModule m
minimum { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT r = bf16[] minimum(a, b) }
ENTRY main {
  x = bf16[270,135] parameter(0)
  y = f32[270,135] parameter(1)
  one = bf16[] constant(1)
  least = bf16[] reduce(x, one), dimensions={0,1}, to_apply=minimum
  turned = f32[135,270] transpose(y), dimensions={1,0}
  ROOT result = (bf16[], f32[135,270]) tuple(least, turned)
})",
                                             "test.hlo"));
  const FusionPlan plan = make_plan(graph, device("b200"), "astitch", {});  // checks what it made
  EXPECT_TRUE(std::any_of(plan.kernels.begin(), plan.kernels.end(), [](const KernelPlan& kernel) {
    return kernel.launch.cluster > 1 && !kernel.tiles.empty();
  })) << to_text(graph, plan);
}

std::string first_rule(const Graph& graph, const FusionPlan& plan) {
  const std::vector<Verdict> problems = verify(graph, device("v100"), plan);
  return problems.empty() ? "" : problems[0].rule;
}

TEST(Tiles, VerifyRefusesWhatIsTooSmallInTheWayOrReadByNobody) {
  const Graph graph = transposed();
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch", {});
  ASSERT_EQ(first_rule(graph, plan), "");
  FusionPlan wrong = plan;
  wrong.kernels[0].tiles[0].bytes = 16;
  EXPECT_EQ(first_rule(graph, wrong), "verify.slot");
  wrong = plan;
  wrong.kernels[0].tiles[0].op = graph.entry_computation().find("t");
  EXPECT_EQ(first_rule(graph, wrong), "verify.tile");
  wrong = plan;
  wrong.kernels[0].tiles.push_back(wrong.kernels[0].tiles[0]);
  EXPECT_EQ(first_rule(graph, wrong), "verify.slot");
  wrong = plan;
  as<mapping::Patch>(wrong.kernels[0].groups[0].mapping)->width /= 2;
  EXPECT_EQ(first_rule(graph, wrong).substr(0, 14), "verify.mapping");
}

testing::MappingFields staged(std::int64_t cols, int threads, int block = 128) {
  testing::MappingFields m;
  m.kind = testing::MappingKind::kRowPack;
  m.rows = 4096;
  m.cols = cols;
  m.threads_per_row = threads;
  m.rows_per_block = block / threads;
  m.tasks = m.blocks = m.rows / m.rows_per_block;
  m.staged = true;
  return m;
}

TEST(StagedRows, BeginAsManyBanksApartAsTheyAreLong) {
  EXPECT_EQ(staged_wavefronts(staged(33, 1), 4), 1);
  EXPECT_EQ(staged_wavefronts(staged(33, 2), 4), 2);
  EXPECT_EQ(staged_wavefronts(staged(36, 1), 4), 4);
  EXPECT_EQ(staged_wavefronts(staged(36, 4), 4), 1);
  EXPECT_EQ(staged_wavefronts(staged(33, 1), 2), 1);
  EXPECT_EQ(staged_wavefronts(staged(33, 32), 4), 1);
}

TEST(StagedRows, MoveByVectorsThatDivideATask) {
  EXPECT_EQ(staging_mapping(staged(33, 1), 4).vectors.width, 4);
  EXPECT_EQ(staging_mapping(staged(33, 1), 2).vectors.width, 8);
  EXPECT_EQ(staging_mapping(staged(33, 64), 4).vectors.width, 2);  // tasks of 66 elements
  const mapping::Elements range = staging_mapping(staged(33, 1), 4);
  EXPECT_EQ(range.count, 4096 * 33);
  EXPECT_EQ(range.per_task, 128 * 33);
  EXPECT_EQ(task_count(range), staged(33, 1).tasks);
}

TEST(StagedRows, AreCopiedByWhatATaskBeginsWith) {
  const auto copied = [](testing::MappingFields m, StagedPart part, int bytes, int stages = 1) {
    m.stages = stages;
    return copied_bytes(part, m, bytes);
  };
  const auto elements = StagedPart::kElements, rows = StagedPart::kRows, cols = StagedPart::kCols;
  EXPECT_EQ(copied(staged(33, 1), elements, 4), 16);
  EXPECT_EQ(copied(staged(33, 1), elements, 1), 16);
  EXPECT_EQ(copied(staged(33, 1), elements, 4, 0), 0);  // they go through registers
  EXPECT_EQ(copied(staged(33, 64), elements, 4), 8);    // tasks of 66 elements
  EXPECT_EQ(copied(staged(33, 64), elements, 2), 4);
  EXPECT_EQ(copied(staged(33, 64), elements, 1), 0);  // no copy is of 2 bytes
  EXPECT_EQ(copied(staged(33, 32), rows, 4), 16);
  EXPECT_EQ(copied(staged(33, 64), rows, 4), 8);
  EXPECT_EQ(copied(staged(33, 1), cols, 4), 0);  // of all tasks
}

TEST(StagedRows, HaveTilesForTheTasksAhead) {
  testing::MappingFields m = staged(33, 64);
  m.stages = 3;
  EXPECT_EQ(staged_tasks(StagedPart::kElements, m, 4), 3);
  EXPECT_EQ(staged_bytes(StagedPart::kElements, m, 4, 3), 3 * 272);  // each begins at a vector
  EXPECT_EQ(staged_bytes(StagedPart::kElements, m, 4, 1), 264);
  EXPECT_EQ(staged_tasks(StagedPart::kElements, m, 1), 1);
  EXPECT_EQ(staged_tasks(StagedPart::kCols, m, 4), 1);
}

TEST(StagedSingleRows, LieInTheirTilesAsInMemory) {
  for (const auto& [cols, alignment] : {std::pair{50257, 32}, std::pair{4100, 32}, std::pair{8192, 1}}) {
    SCOPED_TRACE(cols);
    const testing::MappingFields m = staged(cols, 256, 256);
    EXPECT_TRUE(stages_a_row(m));
    EXPECT_EQ(staged_alignment(m), alignment);
    EXPECT_EQ(staging_mapping(m, 4).vectors.width, 4);
    EXPECT_EQ(staging_mapping(m, 1).vectors.width, 16);
    EXPECT_EQ(staged_elements(StagedPart::kElements, m) % 16, 0);
    EXPECT_GE(staged_elements(StagedPart::kElements, m), cols + alignment - 1);
    EXPECT_LT(staged_elements(StagedPart::kElements, m), cols + 2 * alignment);
  }
  EXPECT_FALSE(stages_a_row(staged(33, 1)));
  EXPECT_EQ(staged_alignment(staged(33, 64)), 1);  // tasks of rows begin with a vector of some length
}

TEST(StagedSingleRows, ArePartedAmongABlocksClusterAtSectors) {
  for (const int cluster : {2, 4, 8})
    for (const int cols : {2081, 4096, 50257}) {
      testing::MappingFields m = staged(cols, 256, 256);
      m.cluster = cluster;
      m.threads_per_row = 256 * cluster;
      m.tasks_per_block = cluster;
      EXPECT_EQ(staged_cols(m) % 32, 0);
      EXPECT_GE(staged_cols(m) * cluster, cols);
      EXPECT_EQ(staging_mapping(m, 4).parts->part, staged_cols(m));
    }
}

Graph softmax(std::int64_t rows, std::int64_t cols) {
  return testing::graph_of(
      fmt::format("HloModule m\n"
                  "sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}\n"
                  "ENTRY main {{\n  x = f32[{0},{1}] parameter(0)\n  zero = f32[] constant(0)\n"
                  "  e = f32[{0},{1}] exponential(x)\n"
                  "  s = f32[{0}] reduce(e, zero), dimensions={{1}}, to_apply=sum\n"
                  "  b = f32[{0},{1}] broadcast(s), dimensions={{0}}\n"
                  "  ROOT y = f32[{0},{1}] divide(e, b)\n}}\n",
                  rows, cols));
}

TEST(StagedRows, AreThoseThatBeginWithinSectors) {
  for (const auto& [cols, wanted] : {std::pair{33, true}, std::pair{32, false}, std::pair{40, false}}) {
    const FusionPlan plan = make_plan(softmax(1 << 20, cols), device("h200"), "astitch", {});
    EXPECT_EQ(is_staged(plan.kernels.at(0).groups.at(0).mapping), wanted) << cols;
    EXPECT_EQ(plan.kernels.at(0).tiles.size(), wanted ? 2u : 0u) << cols;
  }
}

TEST(StagedRows, VerifyHoldsResultsApartFromWhatIsStillRead) {
  const Graph graph = softmax(1 << 20, 33);
  const FusionPlan plan = make_plan(graph, device("h200"), "astitch", {});
  const auto rule = [&](const FusionPlan& of) {
    const std::vector<Verdict> problems = verify(graph, device("h200"), of);
    return problems.empty() ? "" : problems[0].rule;
  };
  ASSERT_EQ(rule(plan), "");
  ASSERT_EQ(plan.kernels[0].tiles.at(0).offset, plan.kernels[0].tiles.at(1).offset);
  FusionPlan wrong = plan;
  wrong.kernels[0].tiles[1].offset += 16;
  wrong.kernels[0].launch.shared_bytes += 16;
  EXPECT_EQ(rule(wrong), "verify.slot");  // half over one another: another thread's elements
  wrong = plan;
  wrong.kernels[0].tiles[0].bytes -= 16;
  EXPECT_EQ(rule(wrong), "verify.slot");
  wrong = plan;
  set_vectors(wrong.kernels[0].groups[0].mapping, {2, 1});
  EXPECT_EQ(rule(wrong), "verify.mapping.staged");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
