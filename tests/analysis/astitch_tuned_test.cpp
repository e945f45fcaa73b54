#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/judge/cost.h"
#include "analysis/planners/planner.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/layout.h"
#include "analysis/stitching/mapping_tuned.h"
#include "analysis/stitching/row_work.h"
#include "occupancy_model/occupancy.h"
#include "tests/support/golden.h"
#include "tests/support/graphs.h"
#include "tests/support/held_out.h"
#include "tests/support/mapping_fields.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

using Kind = GroupDomain::Kind;

MappingLimits limits_of(const char* id, int block, bool one_wave) {
  const Device& where = device(id);
  MappingLimits limits;
  limits.block = block;
  limits.blocks_per_wave = assume_relax_apply(where, block, 0).blocks_per_wave;
  limits.one_wave = one_wave;
  limits.tuned_for = &where;
  return limits;
}

TEST(TunedMapping, ShortRowsTakePartOfAWarpAndLoadVectors) {
  const testing::MappingFields m = map_tuned({750000, 32, 4, Kind::kRows}, limits_of("v100", 256, false));
  EXPECT_EQ(m.kind, testing::MappingKind::kRowPack);
  EXPECT_EQ(m.vector, 4);
  EXPECT_EQ(m.threads_per_row, 8);
  EXPECT_EQ(m.rows_per_block, 32);
  EXPECT_EQ(m.blocks, m.tasks);
}

TEST(TunedMapping, RowsThatNoVectorDividesWasteFewLanes) {
  const testing::MappingFields m = map_tuned({100000, 33, 4, Kind::kRows}, limits_of("h200", 256, false));
  EXPECT_EQ(m.vector, 1);
  const std::int64_t lanes = Layout(m, 256).vectors * m.threads_per_row;
  EXPECT_LT(lanes, 64);  // what a warp a row has
}

TEST(TunedMapping, TasksAreDealtToEverySlotOfAWave) {
  const MappingLimits limits = limits_of("v100", 1024, true);
  ASSERT_EQ(limits.blocks_per_wave, 160);
  const testing::MappingFields m = map_tuned({161, 1024, 4, Kind::kElements}, limits);
  EXPECT_LE(m.blocks, 160);
  testing::MappingFields rows = map_tuned({161 * 32, 1024, 4, Kind::kRows}, limits);
  EXPECT_EQ(rows.blocks, 160);
  EXPECT_EQ(rows.tasks_per_block, (rows.tasks + 159) / 160);
}

// Vectors of a domain that fills few SMs leave each thread several times the arithmetic: where that is long,
// single elements in more blocks are faster.
TEST(TunedMapping, LongChainsOnFewElementsAreDealtToMoreThreads) {
  MappingLimits limits = limits_of("a100", 256, false);
  const auto mapped = [&](std::int64_t elements, double instructions) {
    limits.row_work.instructions = instructions;
    return testing::MappingFields(map_tuned({elements, 1, 4, Kind::kElements}, limits));
  };
  EXPECT_EQ(mapped(8192, 4).vector, 4);
  EXPECT_EQ(mapped(8192, 200).vector, 1);
  EXPECT_GT(mapped(8192, 200).blocks, mapped(8192, 4).blocks);
  EXPECT_EQ(mapped(1 << 24, 20).vector, 4) << "all SMs have enough, and memory decides";
}

// What an element of a group is computed from counts where it is computed: each op once, an op of fewer
// elements by its share, nothing of other kernels or behind a reduction.
TEST(TunedMapping, AChainIsAllThatIsComputedForAnElement) {
  const Graph graph = testing::graph_of(R"(
  p = f32[64,128] parameter(0)
  v = f32[64] parameter(1)
  e = f32[64] exponential(v)
  b = f32[64,128] broadcast(e), dimensions={0}
  t = f32[64,128] tanh(p)
  m = f32[64,128] multiply(t, b)
  a = f32[64,128] add(m, t)
  z = f32[] constant(0)
  r = f32[64] reduce(a, z), dimensions={1}, to_apply=sum
  ROOT n = f32[64] negate(r))");
  const Nodes nodes = node_facts(graph);
  const auto id = [&](const char* name) { return testing::op(graph, name); };
  const auto of = [&](const char* name) { return static_cast<double>(instructions(nodes, id(name))); };
  std::vector<NodeId> members{id("e"), id("t"), id("m"), id("a"), id("r"), id("n")};
  std::ranges::sort(members);
  const double chain = of("a") + of("m") + of("t") + of("e") / 128;
  EXPECT_DOUBLE_EQ(chain_instructions(nodes, members, id("a")), chain);
  std::erase(members, id("t"));
  EXPECT_DOUBLE_EQ(chain_instructions(nodes, members, id("a")), chain - of("t"));
  EXPECT_DOUBLE_EQ(chain_instructions(nodes, members, id("n")), of("n"));
}

// The loop over columns is unrolled: what a step computes many values for would spill.
TEST(TunedMapping, SumsOfManyValuesAreUnrolledLess) {
  const Graph graph = testing::dataset("dyn_rnn");
  const FusionPlan plan = make_plan(graph, device("v100"), "auto", {.knobs = {{"products", "off"}}});
  int large = 0, most = 0;
  for (const KernelPlan& kernel : plan.kernels) {
    const KernelEvaluations found = evaluations(graph.entry_computation(), kernel);
    for (std::size_t g = 0; g < kernel.groups.size(); ++g) {
      if (!is<mapping::Columns>(kernel.groups[g].mapping)) continue;
      const int unroll = vectors(kernel.groups[g].mapping).unroll;
      const auto values = static_cast<int>(found[g].values.size());
      large += values > 32 ? 1 : 0;
      most = std::max(most, unroll);
      EXPECT_LE(unroll == 1 ? 0 : unroll * values, 256) << kernel.name;
    }
  }
  EXPECT_GT(large, 5);
  EXPECT_GT(most, 1);
}

/// Judged by the estimate of the whole kernel, which knows the barrier and the fold of partials; the
/// mapping's own is what chose. Shapes are drawn (tests/support/held_out.h).
TEST(TunedMapping, ARowIsSplitOnlyWhereThatSavesMoreThanTheBarrierTakes) {
  int split = 0, whole = 0;
  for (const char* id : {"v100", "h200"})
    for (std::uint32_t seed = stitchwork::testing::kFirstTestSeed;
         seed < stitchwork::testing::kFirstTestSeed + 60; ++seed) {
      const auto [family, size] =
          stitchwork::testing::held_out("row_sum", seed, {1, 128, 512, 1 << 20, 1 << 24});
      SCOPED_TRACE(fmt::format("{}x{} on {}", size.rows, size.cols, id));
      const Graph graph = stitchwork::testing::graph_of(
          fmt::format("x = f32[{0},{1}] parameter(0)\n zero = f32[] constant(0)\n"
                      "ROOT r = f32[{0}] reduce(x, zero), dimensions={{1}}, to_apply=sum",
                      size.rows, size.cols));
      const auto us = [&](std::int64_t factor) {
        return make_plan(graph, device(id), "astitch",
                         {.edits = {{EditKind::kSplitFactor, {"r"}, "", factor}}})
            .predicted_us;
      };
      const FusionPlan chosen = make_plan(graph, device(id), "astitch");
      const testing::MappingFields m = chosen.kernels.at(0).groups.at(0);
      if (m.kind == testing::MappingKind::kRowSplit) {
        ++split;
        EXPECT_LT(chosen.predicted_us, us(1));
      } else if (m.kind == testing::MappingKind::kRowPack && m.cluster == 1) {
        ++whole;
        EXPECT_LE(chosen.predicted_us, (1 + kDomainError) * us(2));
      }
    }
  EXPECT_GE(split, 10);
  EXPECT_GE(whole, 10);
}

TEST(TunedMapping, ColumnTilesAreNoWiderThanTheirResults) {
  const testing::MappingFields m = map_tuned({4, 100000, 4, Kind::kColumns}, limits_of("v100", 256, false));
  EXPECT_EQ(m.rows_per_block, 4);
  EXPECT_EQ(m.threads_per_row, 64);
  EXPECT_GT(m.split, 1);
}

TEST(TunedMapping, AFewMoreResultsThanATileHasAreOneTile) {
  const testing::MappingFields m = map_tuned({33, 1 << 20, 4, Kind::kColumns}, limits_of("h200", 256, false));
  EXPECT_EQ(m.rows_per_block, 33);
  EXPECT_EQ(m.threads_per_row, 7);
}

/// Sums of the rows of x, and x less its row's sum: `in` and `out` are types of memory, sums are of f32.
Graph centred(std::int64_t rows, std::int64_t cols, const std::string& in, const std::string& out) {
  const std::string all = fmt::format("[{},{}]", rows, cols);
  return stitchwork::testing::graph_of(fmt::format(
      "HloModule centred\n"
      "sum {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}}\n"
      "ENTRY main {{\n  p = {2}{0} parameter(0)\n  x = f32{0} convert(p)\n  zero = f32[] constant(0)\n"
      "  r = f32[{1}] reduce(x, zero), dimensions={{1}}, to_apply=sum\n"
      "  b = f32{0} broadcast(r), dimensions={{0}}\n  d = f32{0} subtract(x, b)\n"
      "  ROOT y = {3}{0} convert(d)\n}}\n",
      all, rows, in, out));
}

testing::MappingFields rows_of(const FusionPlan& plan) { return plan.kernels.at(0).groups.at(0); }

TEST(TunedMapping, VectorsGoByTheWidestArrayInMemory) {
  EXPECT_EQ(rows_of(make_plan(centred(16384, 768, "bf16", "bf16"), device("h200"), "astitch")).vector, 8);
  EXPECT_EQ(rows_of(make_plan(centred(16384, 768, "bf16", "f32"), device("h200"), "astitch")).vector, 4);
  EXPECT_EQ(rows_of(make_plan(centred(16384, 768, "f32", "f32"), device("h200"), "astitch")).vector, 4);
}

TEST(TunedMapping, LanesOfARowReadWholeSectorsOfTheNarrowestArray) {
  const FusionPlan plan = make_plan(centred(750000, 32, "pred", "f32"), device("h200"), "astitch");
  const testing::MappingFields m = rows_of(plan);
  EXPECT_GE(m.threads_per_row * m.vector, 32);
}

TEST(TunedMapping, RowsReadAgainFromL2AreNotSplit) {
  const FusionPlan plan = make_plan(centred(512, 50257, "f32", "f32"), device("h200"), "astitch");
  EXPECT_EQ(rows_of(plan).split, 1);
  EXPECT_EQ(plan.kernels[0].launch.grid_barriers, 0);
}

TEST(TunedMapping, ATaskOfFewerRowsThanItHasRoomForReadsNoMore) {
  const MappingLimits limits = limits_of("h200", 256, false);
  testing::MappingFields full;
  full.kind = testing::MappingKind::kRowPack;
  full.cols = 4096;
  full.threads_per_row = 32;
  full.rows_per_block = 8;
  const auto us = [&](std::int64_t rows, std::int64_t room) {
    testing::MappingFields mapping = full;
    mapping.rows = rows;
    mapping.rows_per_block = room;
    return sketch_us(*limits.tuned_for, sketch_of({rows, full.cols, 4, Kind::kRows}, mapping, limits));
  };
  for (const std::int64_t rows : {1, 2, 4}) EXPECT_DOUBLE_EQ(us(rows, 8), us(rows, rows)) << rows;
  EXPECT_LT(us(1, 8), us(8, 8));

  // Its 16 rows are one task, which has room for more: each input is read once, its columns' sums included.
  const Graph graph = stitchwork::testing::dataset("layer_norm_grad_tiny");
  const FusionPlan plan = make_plan(graph, device("h200"), "astitch");
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_LE(plan.kernels[0].launch.grid_barriers, 1);
  std::int64_t inputs = 0;
  for (const NodeId parameter : graph.entry_computation().parameters)
    inputs += graph.entry_computation().node(parameter).shape.byte_size();
  EXPECT_LE(kernel_cost(graph, device("h200"), plan.kernels[0]).dram_read_bytes, inputs);
}

TEST(TunedMapping, OneThreadAnOutputOnlyWhereOutputsAreManyAndReductionsShort) {
  const MappingLimits limits = limits_of("v100", 256, false);
  const std::int64_t many = 32 * limits.blocks_per_wave;
  EXPECT_EQ(task_rows(map_tuned({many, 16, 4, Kind::kColumns}, limits).mapping), 256);
  EXPECT_LT(task_rows(map_tuned({many - 1, 16, 4, Kind::kColumns}, limits).mapping), 256);
  EXPECT_LT(task_rows(map_tuned({many, 17, 4, Kind::kColumns}, limits).mapping), 256);
}

TEST(TunedMapping, AnOverrideOfTheSplitIsFollowed) {
  for (const Kind kind : {Kind::kRows, Kind::kColumns}) {
    const testing::MappingFields m = map_tuned({100, 5000, 4, kind}, limits_of("v100", 256, false), 7);
    EXPECT_EQ(m.split, 7);
    EXPECT_EQ(m.combine, testing::Combine::kPartials);
  }
}

TEST(TunedMapping, EveryShapeIsCovered) {
  for (const bool one_wave : {false, true})
    for (const int block : {128, 256, 512, 1024})
      for (const Kind kind : {Kind::kElements, Kind::kRows, Kind::kColumns})
        for (const std::int64_t rows : {0, 1, 2, 31, 160, 161, 4097, 750000})
          for (const std::int64_t cols : {0, 1, 7, 16, 32, 33, 1000, 1025, 30000})
            for (const int bytes : {1, 2, 4, 8}) {
              if (kind == Kind::kElements && cols != 1) continue;
              const MappingLimits limits = limits_of("v100", block, one_wave);
              const testing::MappingFields m = map_tuned({rows, cols, bytes, kind}, limits);
              SCOPED_TRACE(to_text(m));
              EXPECT_EQ(m.tasks, std::max<std::int64_t>(1, (rows + m.rows_per_block - 1) / m.rows_per_block) *
                                     m.split);
              EXPECT_EQ(m.tasks_per_block, (m.tasks + m.blocks - 1) / m.blocks);
              EXPECT_LE(m.blocks, m.tasks);
              if (one_wave) {
                EXPECT_LE(m.blocks, limits.blocks_per_wave);
              }
              if (m.kind != testing::MappingKind::kElementwise && m.kind != testing::MappingKind::kRowSplit) {
                EXPECT_LE(m.threads_per_row * m.rows_per_block, block);
              }
              EXPECT_LE(m.split, std::max<std::int64_t>(1, cols));
              EXPECT_LE(m.vector * bytes, kVectorBytes);
              if (m.kind == testing::MappingKind::kColumn) {
                EXPECT_LE(Layout(m, block).slices * Layout(m, block).places, std::int64_t{block} * m.vector);
                continue;
              }
              const bool elements = m.kind == testing::MappingKind::kElementwise;
              EXPECT_EQ((elements ? rows : cols) % m.vector, 0);
              EXPECT_EQ((elements ? m.rows_per_block : (cols + m.split - 1) / m.split) % m.vector, 0);
            }
}

/// So many tensors stepped along their gradients.
Graph steps(int tensors) {
  std::string body = "  rate = f32[] parameter(0)\n  rates = f32[34952] broadcast(rate), dimensions={}\n",
              types, results;
  for (int i = 0; i < tensors; ++i) {
    body += fmt::format(
        "  p{0} = f32[34952] parameter({1})\n  g{0} = f32[34952] parameter({2})\n"
        "  q{0} = f32[34952] multiply(g{0}, g{0})\n  r{0} = f32[34952] sqrt(q{0})\n"
        "  d{0} = f32[34952] divide(g{0}, r{0})\n  e{0} = f32[34952] multiply(d{0}, rates)\n"
        "  n{0} = f32[34952] subtract(p{0}, e{0})\n",
        i, 2 * i + 1, 2 * i + 2);
    types += (i == 0 ? "" : ", ") + std::string("f32[34952]");
    results += fmt::format("{}n{}", i == 0 ? "" : ", ", i);
  }
  return stitchwork::testing::graph_of(body + "  ROOT all = (" + types + ") tuple(" + results + ")");
}

TEST(TunedMapping, ATensorIsMappedAlikeHoweverManyOthersItsKernelHas) {
  const FusionPlan alone = make_plan(steps(1), device("h200"), "astitch");
  const FusionPlan among = make_plan(steps(150), device("h200"), "astitch");
  ASSERT_EQ(among.kernels.size(), 1u);
  EXPECT_EQ(among.kernels[0].launch.block, alone.kernels[0].launch.block);
  for (const Group& group : among.kernels[0].groups) {
    EXPECT_EQ(vectors(group.mapping).width, 4);
    EXPECT_EQ(task_rows(group.mapping), task_rows(alone.kernels[0].groups[0].mapping));
    EXPECT_GE(task_rows(group.mapping), vectors(group.mapping).width * among.kernels[0].launch.block)
        << "no thread is idle";
  }
}

class TunedGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(TunedGolden, PlanOnV100) {
  const Graph graph = stitchwork::testing::dataset(GetParam());
  expect_golden(
      std::string("astitch_tuned_") + GetParam() + ".txt",
      to_text(graph, make_plan(graph, device("v100"), "astitch", {.knobs = {{"mapping", "tuned"}}})));
}

INSTANTIATE_TEST_SUITE_P(Datasets, TunedGolden,
                         ::testing::Values("softmax", "layer_norm", "gelu", "column_sum", "row_750000x32",
                                           "row_64x30000"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
