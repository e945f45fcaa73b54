// Clocks in which shared memory serves the accesses of one warp, as hardware counts them.
#include <fmt/format.h>

#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// One warp of V100 or A100; %r1 its lane, %r2 where its 8 KB of shared memory lie. Its shared memory holds
/// zeros.
LaunchResult of_warp(const std::string& body, const std::string& on = "v100") {
  const std::string text =
      ".shared .align 16 .b8 s[8192];\nmov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r9, 1;\n" + body +
      "\nret;";
  const Outcome o = run_on_numbers(ptx::parse(wrap_ptx(text), "t.ptx"),
                                   {.kernel = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}}, {}, on, 64, 64);
  EXPECT_EQ(o.text(), "");
  return o.result;
}
std::uint64_t wavefronts(const std::string& body, const std::string& on = "v100") {
  return of_warp(body, on).counters.shared_wavefronts;
}
/// The address %r3 = s + lane * bytes.
std::string lane_times(int bytes) { return fmt::format("mad.lo.u32 %r3, %r1, {}, %r2;", bytes); }

TEST(SharedWavefronts, OfAFullWarpAreItsBytesOver128) {
  const LaunchResult wide = of_warp(lane_times(16) + "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];");
  EXPECT_EQ(wide.counters.shared_wavefronts, 4u);
  EXPECT_EQ(wide.counters.shared_bank_conflicts, 0u);
  EXPECT_EQ(wavefronts(lane_times(16) + "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};"), 4u);
  EXPECT_EQ(wavefronts(lane_times(8) + "ld.shared.v2.u32 {%r4, %r5}, [%r3];"), 2u);
  EXPECT_EQ(wavefronts(lane_times(8) + "ld.shared.u64 %d4, [%r3];"), 2u);
  EXPECT_EQ(wavefronts(lane_times(4) + "ld.shared.u32 %r4, [%r3];"), 1u);
  EXPECT_EQ(wavefronts(lane_times(2) + "ld.shared.u16 %h1, [%r3];"), 1u);
}

TEST(SharedWavefronts, OfOneWordForAllAreOneButForWhatRegistersTake) {
  EXPECT_EQ(wavefronts("ld.shared.u32 %r4, [%r2];"), 1u);
  EXPECT_EQ(wavefronts("ld.shared.v2.u32 {%r4, %r5}, [%r2];"), 1u);
  EXPECT_EQ(wavefronts("ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];"), 2u);
  // Eight lanes read the same 16 bytes, the next eight others: a quarter each.
  const std::string quarters = "shr.u32 %r3, %r1, 3; mad.lo.u32 %r3, %r3, 16, %r2;";
  EXPECT_EQ(wavefronts(quarters + "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];"), 2u);
}

TEST(SharedWavefronts, OfConflictsAreTheDistinctWordsOfABank) {
  const LaunchResult rows = of_warp(lane_times(128) + "ld.shared.u32 %r4, [%r3];");
  EXPECT_EQ(rows.counters.shared_wavefronts, 32u);
  EXPECT_EQ(rows.counters.shared_bank_conflicts, 31u);
  // 16 bytes 128 apart: in each quarter eight lanes in the same four banks.
  const LaunchResult wide = of_warp(lane_times(128) + "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];");
  EXPECT_EQ(wide.counters.shared_wavefronts, 32u);
  EXPECT_EQ(wide.counters.shared_bank_conflicts, 28u);
}

TEST(SharedWavefronts, OfMatricesAreOneForEach) {
  EXPECT_EQ(
      wavefronts(lane_times(16) + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3];"),
      4u);
  EXPECT_EQ(wavefronts(lane_times(16) + "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r4, %r5}, [%r3];"), 2u);
  EXPECT_EQ(wavefronts(lane_times(16) + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r3];"), 1u);
  // Rows of 128 bytes: all eight of a matrix in the same banks.
  const std::string rows = "and.b32 %r4, %r1, 7; mad.lo.u32 %r3, %r4, 128, %r2;";
  EXPECT_EQ(wavefronts(rows + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3];"), 32u);
}

TEST(SharedWavefronts, OfAtomicsAreTheLanesOfTheBusiestBank) {
  EXPECT_EQ(wavefronts(lane_times(4) + "red.shared.add.u32 [%r3], %r9;"), 1u);
  EXPECT_EQ(wavefronts("red.shared.add.u32 [%r2], %r9;"), 32u);
  EXPECT_EQ(wavefronts("atom.shared.add.u32 %r4, [%r2], %r9;"), 32u);
  EXPECT_EQ(wavefronts("setp.lt.u32 %p1, %r1, 5;\n@%p1 red.shared.add.u32 [%r2], %r9;"), 5u);
  // Lanes 0 to 7 at one counter, 8 to 15 at the next, 128 bytes on: one bank.
  EXPECT_EQ(wavefronts("shr.u32 %r3, %r1, 3; mad.lo.u32 %r3, %r3, 128, %r2; red.shared.add.u32 [%r3], %r9;"),
            32u);
  EXPECT_EQ(wavefronts("shr.u32 %r3, %r1, 3; mad.lo.u32 %r3, %r3, 4, %r2; red.shared.add.u32 [%r3], %r9;"),
            8u);
  // 64 bits a lane: half warps.
  EXPECT_EQ(wavefronts(lane_times(8) + "mov.u64 %d4, 1; red.shared.add.u64 [%r3], %d4;"), 2u);
}

TEST(SharedWavefronts, OfAsynchronousCopiesAreThoseOfStores) {
  const std::string from = "ld.param.u64 %d1, [in]; mov.u64 %d2, %d1;";
  EXPECT_EQ(
      wavefronts(from + lane_times(16) + "cp.async.cg.shared.global [%r3], [%d1], 16; cp.async.wait_all;",
                 "a100"),
      4u);
  EXPECT_EQ(
      wavefronts(from + lane_times(128) + "cp.async.ca.shared.global [%r3], [%d1], 4; cp.async.wait_all;",
                 "a100"),
      32u);
}

TEST(SharedWavefronts, TakeTheirClocks) {
  // A thousand loads of 16 bytes by each of 16 warps on every SM, without conflicts: four clocks each.
  const auto us = [](const std::string& load) {
    std::string body =
        ".shared .align 16 .b8 s[8192];\nmov.u32 %r1, %laneid; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 16, %r2;";
    for (int k = 0; k < 1000; ++k) body += load;
    Launch launch{.kernel = "k", .grid = {80, 1, 1}, .block = {512, 1, 1}};
    const Device& v100 = device("v100");
    return run_on_numbers(ptx::parse(wrap_ptx(body + "ret;"), "t.ptx"), launch, {}, "v100", 1, 1)
               .result.time_us -
           v100.launch_us;
  };
  const double clocks_us = 16 * 1000 / device("v100").clock_ghz / 1e3;
  EXPECT_NEAR(us("ld.shared.u32 %r4, [%r3];\n"), clocks_us * 4,
              0.1 * clocks_us);  // every fourth word: 4 in a bank
  EXPECT_NEAR(us("ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];\n"), clocks_us * 4, 0.1 * clocks_us);
  EXPECT_NEAR(us("ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];\n"), clocks_us * 2, 0.1 * clocks_us);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
