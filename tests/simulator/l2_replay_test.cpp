// Resident blocks share the L2 while they run: what one reads again others may have pushed out.
#include "simulator/cache/l2_replay.h"

#include <fmt/format.h>

#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// Each block of 1024 threads reads a row of its own `passes` times, past L1. Two fit an SM of V100: 160 at
/// once.
std::string rows_read(int row_bytes, int passes, const std::string& behind = "") {
  return wrap_ptx(fmt::format(R"(
ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
mul.wide.u32 %d3, %r2, {0}; add.u64 %d3, %d1, %d3; mul.wide.u32 %d4, %r1, 4; add.u64 %d3, %d3, %d4; mov.u32 %r10, 0;
PASS: mov.u32 %r11, 0; mov.u64 %d5, %d3;
STEP: ld.global.cg.u32 %r4, [%d5]; add.u64 %d5, %d5, 4096; add.u32 %r11, %r11, 4096; setp.lt.u32 %p1, %r11, {0}; @%p1 bra STEP;
add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, {1}; @%p1 bra PASS;
{2}
ret;)",
                              row_bytes, passes, behind));
}

LaunchResult run_rows(const std::string& text, int row_bytes, std::uint32_t blocks, Options options = {},
                      const char* on = "v100") {
  const ptx::Module module = ptx::parse(text, "rows.ptx");
  DeviceMemory memory;
  Launch launch{.kernel = "k", .grid = {blocks, 1, 1}, .block = {1024, 1, 1}};
  const std::size_t bytes = std::size_t{blocks} * static_cast<std::size_t>(row_bytes);
  launch.arguments = {Argument::pointer(memory.adopt(std::vector<std::byte>(bytes), "in")),
                      Argument::pointer(memory.adopt(std::vector<std::byte>(1 << 16), "out"))};
  const LaunchResult r = run(module, launch, memory, device(on), options);
  EXPECT_TRUE(r.findings.empty()) << r.findings[0].message;
  return r;
}
double times_read(int row_bytes, std::uint32_t blocks, Options options = {}, const char* on = "v100") {
  const LaunchResult r = run_rows(rows_read(row_bytes, 2), row_bytes, blocks, options, on);
  return static_cast<double>(r.counters.dram_read_transactions) * 32 /
         (static_cast<double>(blocks) * row_bytes);
}

constexpr int kKib = 1024;

TEST(L2Replay, RowsOfResidentBlocksThatDoNotFitTogetherAreReadAgain) {
  // V100's 6 MiB: 160 rows of 64 KiB are 10 MiB, of 16 KiB 2.5 MiB.
  EXPECT_NEAR(times_read(64 * kKib, 320), 2, 0.02);
  EXPECT_EQ(times_read(16 * kKib, 320), 1);
  // Of 40 blocks alone 64 KiB each fit.
  EXPECT_EQ(times_read(64 * kKib, 40), 1);
}

TEST(L2Replay, A100KeepsOneAndAHalfCopiesOfALine) {
  // 216 resident rows of 176 KiB are 39 of 42 MB, of which 28 are distinct lines; of 64 KiB 14, which leaves
  // room for sets that more lines fall into than into others.
  EXPECT_GT(times_read(176 * kKib, 216, {}, "a100-pcie-40"), 1.9);
  EXPECT_LT(times_read(64 * kKib, 216, {}, "a100-pcie-40"), 1.05);
}

TEST(L2Replay, CountersAreTheSameWhateverTheHostThreads) {
  for (const int row_kib : {16, 36, 40, 64}) {
    Options options;
    std::vector<std::vector<std::pair<std::string_view, double>>> all;
    for (const int threads : {1, 2, 3, 5}) {
      options.host_threads = threads;
      all.push_back(
          counter_list(run_rows(rows_read(row_kib * kKib, 2), row_kib * kKib, 333, options).counters));
      EXPECT_EQ(all.back(), all.front()) << threads;
    }
  }
}

TEST(L2Replay, ASampleFindsTheSame) {
  Options sampled;
  sampled.sampled = true;
  EXPECT_NEAR(times_read(64 * kKib, 1600, sampled), 2, 0.02);
}

TEST(L2Replay, BlocksOfAPhaseRunSideBySide) {
  // All wait for all, then each reads its row once more: another 10 MiB.
  const std::string barrier = R"(
bar.sync 0; setp.ne.u32 %p2, %r1, 0; @%p2 bra WAITED;
red.global.add.u32 [%d2], 1;
POLL: ld.acquire.gpu.u32 %r20, [%d2]; setp.lt.u32 %p3, %r20, 160; @%p3 bra POLL;
WAITED: bar.sync 0;
mov.u32 %r11, 0; mov.u64 %d5, %d3;
AGAIN: ld.global.cg.u32 %r4, [%d5]; add.u64 %d5, %d5, 4096; add.u32 %r11, %r11, 4096; setp.lt.u32 %p1, %r11, ROW; @%p1 bra AGAIN;
)";
  for (const auto& [row, times] : {std::pair{64 * kKib, 3.0}, {16 * kKib, 1.0}}) {
    std::string text = rows_read(row, 2, barrier);
    text.replace(text.find("ROW"), 3, std::to_string(row));
    const LaunchResult r = run_rows(text, row, 160);
    EXPECT_EQ(r.counters.grid_barriers, 1u);
    // Some sets have fewer lines than ways, which stay.
    EXPECT_NEAR(static_cast<double>(r.counters.dram_read_transactions) * 32 / (160.0 * row), times, 0.05);
  }
}

TEST(L2Replay, TakesAFewEntriesOfEachPieceInTurn) {
  // A cache of one set of 16 lines in each partition. Two pieces of 12 lines each, read twice: 24 lines do
  // not fit.
  constexpr std::uint64_t kPartitions = L2State::kPartitions;
  const auto lines = [](std::uint64_t first) {
    std::vector<std::uint64_t> log;
    for (int pass = 0; pass < 2; ++pass)
      for (std::uint64_t l = first; l < first + 12; ++l) log.push_back((l * kPartitions) << 5 | 1 << 1);
    return log;
  };
  const std::vector<std::uint64_t> a = lines(0), b = lines(12);
  const auto reads = [&](bool together) {
    L2State l2(128 * 16 * kPartitions);
    L2Counters counters;
    const LogPiece of_a{a.data(), a.data() + a.size(), &counters},
        of_b{b.data(), b.data() + b.size(), &counters};
    std::vector<LogPiece> pieces{of_a};
    if (together) pieces.push_back(of_b);
    replay_side_by_side(l2, pieces);
    if (!together) {
      pieces = {of_b};
      replay_side_by_side(l2, pieces);
    }
    EXPECT_EQ(counters.read_sectors, 48u);
    return counters.dram_reads;
  };
  EXPECT_EQ(reads(false), 24u);
  EXPECT_EQ(reads(true), 48u);
}

TEST(L2Replay, CountsForEachPieceWhatItCosts) {
  L2State l2(1 << 20);
  L2Counters first, second;
  std::vector<std::uint64_t> a, b;
  for (std::uint64_t l = 0; l < 40; ++l) a.push_back(l << 5 | 15 << 1);
  for (std::uint64_t l = 100; l < 110; ++l) b.push_back(l << 5 | 1 << 1 | 1);
  std::vector<LogPiece> pieces{{a.data(), a.data() + a.size(), &first},
                               {b.data(), b.data() + b.size(), &second}};
  replay_side_by_side(l2, pieces);
  EXPECT_EQ(first.read_sectors, 160u);
  EXPECT_EQ(first.write_sectors, 0u);
  EXPECT_EQ(second.read_sectors, 0u);
  EXPECT_EQ(second.write_sectors, 10u);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
