// Transposes go through padded tiles of shared memory: both sides move in whole sectors, no lane waits for
// another's bank, and results stay.
#include <fmt/format.h>

#include "tests/codegen/planned.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;

struct Moved {
  double load_spread = 0, store_spread = 0;  ///< sectors of requests over those of the bytes asked for
  std::uint64_t conflicts = 0;
  std::size_t tiles = 0;
};

Moved run(const Graph& graph, const std::string& tiles = "on") {
  PlanOptions options;
  options.knobs["tiles"] = tiles;
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch", options);
  testing::expect_correct(graph, plan);
  const RunResult result = testing::run_sanitized(graph, device("v100"), plan).run;
  Moved moved;
  for (const KernelRun& kernel : result.kernels) moved.conflicts += kernel.counters.shared_bank_conflicts;
  const testing::SectorSpread spread = testing::sector_spread(result);
  moved.load_spread = spread.loads;
  moved.store_spread = spread.stores;
  for (const KernelPlan& kernel : plan.kernels) moved.tiles += kernel.tiles.size();
  return moved;
}

Graph transpose(const std::string& dtype, const std::vector<std::int64_t>& from,
                const std::vector<int>& order) {
  std::vector<std::int64_t> to;
  for (const int d : order) to.push_back(from[static_cast<std::size_t>(d)]);
  return graph_of(fmt::format(R"(HloModule m
ENTRY main {{
  x = {0}[{1}] parameter(0)
  ROOT y = {0}[{2}] transpose(x), dimensions={{{3}}}
}}
)",
                              dtype, fmt::join(from, ","), fmt::join(to, ","), fmt::join(order, ",")));
}

TEST(Transposes, MoveInWholeSectorsWithoutBankConflicts) {
  SKIP_WITHOUT_COMPILER();
  for (const char* dtype : {"f32", "bf16"}) {
    SCOPED_TRACE(dtype);
    for (const auto& [dims, order] :
         {std::pair{std::vector<std::int64_t>{512, 512}, std::vector<int>{1, 0}},
          std::pair{std::vector<std::int64_t>{6, 256, 192}, std::vector<int>{0, 2, 1}},
          std::pair{std::vector<std::int64_t>{64, 48, 96}, std::vector<int>{2, 1, 0}},
          std::pair{std::vector<std::int64_t>{8, 16, 32, 64}, std::vector<int>{0, 3, 1, 2}}}) {
      SCOPED_TRACE(fmt::format("{}", fmt::join(dims, "x")));
      const Moved moved = run(transpose(dtype, dims, order));
      EXPECT_EQ(moved.tiles, 1u);
      EXPECT_LE(moved.load_spread, 1.05);
      EXPECT_LE(moved.store_spread, 1.05);
      EXPECT_EQ(moved.conflicts, 0u);
    }
  }
}

TEST(Transposes, LinesThatBeginAnywhereTakeASectorMore) {
  SKIP_WITHOUT_COMPILER();
  const Moved moved = run(transpose("f32", {509, 1021}, {1, 0}));
  EXPECT_EQ(moved.tiles, 1u);
  // 128 bytes from any multiple of 4 on lie in 4 + 7/8 sectors.
  EXPECT_LE(moved.load_spread, 1.25);
  EXPECT_LE(moved.store_spread, 1.25);
  EXPECT_EQ(moved.conflicts, 0u);
}

TEST(Transposes, OfFewChannelsMoveWholeLines) {
  SKIP_WITHOUT_COMPILER();
  const Moved moved = run(transpose("f32", {16, 128, 128, 3}, {0, 3, 1, 2}));
  EXPECT_EQ(moved.tiles, 1u);
  EXPECT_LE(moved.load_spread, 1.3);
  EXPECT_LE(moved.store_spread, 1.05);
}

TEST(Transposes, WhatKeepsTheLastDimensionNeedsNoTile) {
  SKIP_WITHOUT_COMPILER();
  const Moved moved = run(transpose("f32", {4, 64, 8, 64}, {0, 2, 1, 3}));
  EXPECT_EQ(moved.tiles, 0u);
  EXPECT_LE(moved.load_spread, 1.05);
  EXPECT_LE(moved.store_spread, 1.05);
}

TEST(Transposes, TheKnobLeavesThemAgainstMemory) {
  SKIP_WITHOUT_COMPILER();
  const Moved moved = run(transpose("f32", {512, 512}, {1, 0}), "off");
  EXPECT_EQ(moved.tiles, 0u);
  EXPECT_GE(std::max(moved.load_spread, moved.store_spread), 4);
}

/// Both orders, of inputs and of results, beside a value a row and one a column.
std::string mixed(std::int64_t rows, std::int64_t cols, const std::string& dtype) {
  return fmt::format(R"(HloModule m
ENTRY main {{
  x = {0}[{1},{2}] parameter(0)
  y = {0}[{2},{1}] parameter(1)
  r = {0}[{2}] parameter(2)
  c = {0}[{1}] parameter(3)
  t = {0}[{2},{1}] transpose(x), dimensions={{1,0}}
  rows = {0}[{2},{1}] broadcast(r), dimensions={{0}}
  cols = {0}[{2},{1}] broadcast(c), dimensions={{1}}
  s = {0}[{2},{1}] add(t, y)
  m = {0}[{2},{1}] multiply(s, rows)
  a = {0}[{2},{1}] add(m, cols)
  back = {0}[{1},{2}] transpose(a), dimensions={{1,0}}
  n = {0}[{1},{2}] negate(back)
  ROOT both = ({0}[{2},{1}], {0}[{1},{2}]) tuple(a, n)
}}
)",
                     dtype, rows, cols);
}

TEST(Transposes, LoadsAndStoresOfOneGroupTurn) {
  SKIP_WITHOUT_COMPILER();
  for (const char* dtype : {"f32", "f16"}) {
    const Moved moved = run(graph_of(mixed(256, 320, dtype)));
    EXPECT_GE(moved.tiles, 2u);
    EXPECT_LE(moved.load_spread, 1.1);
    EXPECT_LE(moved.store_spread, 1.05);
    EXPECT_EQ(moved.conflicts, 0u);
  }
}

TEST(Transposes, AreRightInAnyShapeAndType) {
  SKIP_WITHOUT_COMPILER();
  for (const auto& [rows, cols] :
       {std::pair{31, 33}, std::pair{1, 70}, std::pair{130, 2}, std::pair{65, 127}})
    run(graph_of(mixed(rows, cols, "f32")));
  for (const char* dtype : {"f64", "f16", "s8", "pred", "u64"}) {
    SCOPED_TRACE(dtype);
    run(transpose(dtype, {130, 257}, {1, 0}));
    run(transpose(dtype, {3, 40, 67}, {2, 0, 1}));
  }
  run(transpose("f32", {0, 64}, {1, 0}));
}

TEST(Transposes, ReductionsGoAlongTheOrderInMemory) {
  SKIP_WITHOUT_COMPILER();
  for (const int reduced : {0, 1}) {
    const Moved moved = run(graph_of(fmt::format(R"(HloModule m
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY main {{
  x = f32[512,768] parameter(0)
  zero = f32[] constant(0)
  t = f32[768,512] transpose(x), dimensions={{1,0}}
  e = f32[768,512] exponential(t)
  ROOT y = f32[{}] reduce(e, zero), dimensions={{{}}}, to_apply=sum
}}
)",
                                                 reduced == 0 ? 512 : 768, reduced)));
    EXPECT_LE(moved.load_spread, 1.05);
  }
}

TEST(Transposes, OfSlicesAndPaddedArraysAreGuarded) {
  SKIP_WITHOUT_COMPILER();
  run(graph_of(R"(HloModule m
ENTRY main {
  x = f32[300,200] parameter(0)
  zero = f32[] constant(0)
  s = f32[256,150] slice(x), slice={[7:263], [20:170]}
  p = f32[260,160] pad(s, zero), padding=1_3x4_6
  t = f32[160,260] transpose(p), dimensions={1,0}
  e = f32[160,260] exponential(t)
  ROOT y = f32[160,260] subtract(e, t)
}
)"));
}

/// Softmax over rows that lie side by side in memory, times a value a column; `back`: its result once more,
/// the same way.
Graph softmax_of_columns(std::int64_t rows, std::int64_t cols, const std::string& dtype, bool back = false) {
  const std::string in_rows = fmt::format("{}[{},{}]", dtype, rows, cols);
  const std::string in_cols = fmt::format("{}[{},{}]", dtype, cols, rows);
  const std::string text = fmt::format(R"(HloModule m
sum {{ a = {0}[] parameter(0)  b = {0}[] parameter(1)  ROOT s = {0}[] add(a, b) }}
max {{ a = {0}[] parameter(0)  b = {0}[] parameter(1)  ROOT s = {0}[] maximum(a, b) }}
ENTRY main {{
  x = {3} parameter(0)
  c = {0}[{2}] parameter(1)
  low = {0}[] constant(-inf)
  zero = {0}[] constant(0)
  t = {4} transpose(x), dimensions={{1,0}}
  m = {0}[{1}] reduce(t, low), dimensions={{1}}, to_apply=max
  mb = {4} broadcast(m), dimensions={{0}}
  d = {4} subtract(t, mb)
  e = {4} exponential(d)
  s = {0}[{1}] reduce(e, zero), dimensions={{1}}, to_apply=sum
  sb = {4} broadcast(s), dimensions={{0}}
  q = {4} divide(e, sb)
  cb = {4} broadcast(c), dimensions={{1}}
  y = {4} multiply(q, cb)
)",
                                       dtype, rows, cols, in_cols, in_rows);
  return graph_of(text + (back ? fmt::format("  z = {0} transpose(y), dimensions={{1,0}}\n"
                                             "  ROOT both = ({1}, {0}) tuple(y, z)\n}}\n",
                                             in_cols, in_rows)
                               : fmt::format("  ROOT same = {} copy(y)\n}}\n", in_rows)));
}

TEST(Transposes, RowsTakeUpWhatLiesSideBySideThroughATile) {
  SKIP_WITHOUT_COMPILER();
  for (const char* dtype : {"f32", "bf16"})
    for (const auto& [rows, cols] : {std::pair{512, 128}, std::pair{256, 512}}) {
      SCOPED_TRACE(fmt::format("{} {}x{}", dtype, rows, cols));
      const Graph graph = softmax_of_columns(rows, cols, dtype);
      const Moved moved = run(graph), against = run(graph, "off");
      EXPECT_EQ(moved.tiles, 1u);
      EXPECT_LE(moved.load_spread, 1.05);
      EXPECT_LE(moved.store_spread, 1.05);
      // Rows begin with vectors, which leaves lanes of a fill, or of short rows, a bank in common. Without
      // padding the fill alone would wait 7 times for 32 elements.
      EXPECT_LE(moved.conflicts, static_cast<unsigned>(rows * cols / 8));
      EXPECT_EQ(against.tiles, 0u);
      EXPECT_GE(against.load_spread, 2);
    }
}

TEST(Transposes, OfRowsAreRightInAnyShapeAndType) {
  SKIP_WITHOUT_COMPILER();
  for (const auto& [rows, cols] : {std::pair{31, 33}, std::pair{1, 70}, std::pair{130, 2}, std::pair{65, 127},
                                   std::pair{77, 1001}, std::pair{40, 3000}})
    for (const bool back : {false, true}) {
      SCOPED_TRACE(fmt::format("{}x{}{}", rows, cols, back ? " and back" : ""));
      run(softmax_of_columns(rows, cols, "f32", back));
    }
  for (const char* dtype : {"f64", "f16", "bf16"}) {
    SCOPED_TRACE(dtype);
    run(softmax_of_columns(130, 257, dtype));
    run(softmax_of_columns(96, 64, dtype, true));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
