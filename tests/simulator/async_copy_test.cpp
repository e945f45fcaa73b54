// cp.async and who may touch what it writes: until it has been waited for nobody, and what others read must
// be ordered before it is issued; arrivals at mbarriers when copies are complete.
#include <fmt/format.h>

#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// A kernel of sm_90: %d1 and %d2 are where this thread's 16 bytes of in and out lie, %r3 its 16 bytes of
/// `tile`, %r4 those of the thread 32 after it; %r5 those in `other`; %r6 `bar`.
Outcome run_copies(const std::string& body, bool sanitize = true, std::uint32_t threads = 64) {
  std::string text = wrap_ptx(
      ".shared .align 16 .b8 tile[1024];\n.shared .align 16 .b8 other[1024];\n.shared .align 8 .b8 bar[8];\n"
      "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 4;\n"
      "cvt.u64.u32 %d3, %r2;\nadd.u64 %d1, %d1, %d3;\nadd.u64 %d2, %d2, %d3;\nmov.u32 %r3, tile;\nadd.u32 "
      "%r3, %r3, "
      "%r2;\nadd.u32 %r7, %r2, 512;\nand.b32 %r7, %r7, 1023;\nmov.u32 %r4, tile;\nadd.u32 %r4, %r4, %r7;\n"
      "mov.u32 %r5, other;\nadd.u32 %r5, %r5, %r2;\nmov.u32 %r6, bar;\nsetp.eq.u32 %p1, %r1, 0;\n" +
      body + "\nret;");
  text.replace(text.find("sm_75"), 5, "sm_90");
  Options options;
  if (sanitize) options.sanitize = {.race = true, .init = true, .sync = true};
  return run_on_numbers(ptx::parse(text, "copies.ptx"), {.kernel = "k", .grid = {}, .block = {threads, 1, 1}},
                        options, "h100", 512, 256);
}
std::string without(std::string text, const std::string& part) {
  text.erase(text.find(part), part.size());
  return text;
}

const std::string kCopyAndRead =
    "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};\nbar.sync 0;\ncp.async.ca.shared.global [%r3], [%d1], "
    "16;\n"
    "cp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0; // read\nld.shared.v4.u32 {%r10, %r11, "
    "%r12, %r13}, "
    "[%r4];\nst.global.v4.u32 [%d2], {%r10, %r11, %r12, %r13};";

TEST(AsyncCopyOrder, WhatWasWaitedForAndPassedABarrierIsThere) {
  const Outcome outcome = run_copies(kCopyAndRead);
  EXPECT_EQ(outcome.text(), "");
  for (std::uint32_t t = 0; t < 64; ++t)
    for (std::uint32_t k = 0; k < 4; ++k) EXPECT_EQ(outcome.out[4 * t + k], (4 * t + k + 128) % 256 + 1);
}

TEST(AsyncCopyOrder, ReadingWhatACopyIsWritingIsFound) {
  // By another thread, or by the thread itself; whether or not something was there before.
  const std::string early = without(kCopyAndRead, "cp.async.wait_group 0;\n");
  EXPECT_EQ(run_copies(early).text(),
            "shared-race: reads 16 bytes at shared memory offset 512, which the cp.async at PTX line 34 is "
            "writing, with "
            "no wait for it in between");
  std::string own = early;
  own.replace(own.find("[%r4]"), 5, "[%r3]");
  EXPECT_NE(run_copies(own).text().find("the cp.async at PTX line 34 is writing"), std::string::npos);
  std::string written = without(own, "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r3];\n");
  written.insert(written.find("st.global"), "st.shared.u32 [%r3+4], 1;\n");
  EXPECT_NE(run_copies(written).text().find("writes 4 bytes at shared memory offset 4, which the cp.async"),
            std::string::npos)
      << run_copies(written).text();
  const std::string twice =
      "cp.async.ca.shared.global [%r3], [%d1], 16;\ncp.async.ca.shared.global [%r3], [%d1+16], "
      "16;\ncp.async.wait_all;";
  EXPECT_NE(run_copies(twice).text().find("has a cp.async write 16 bytes"), std::string::npos)
      << run_copies(twice).text();
}

TEST(AsyncCopyOrder, OtherBytesMayBeTouchedMeanwhile) {
  const Outcome outcome = run_copies(
      "st.shared.v4.u32 [%r5], {%r1, %r2, %r1, %r1};\nbar.sync 0;\ncp.async.cg.shared.global [%r3], [%d1], "
      "16;\n"
      "cp.async.commit_group;\nld.shared.u32 %r10, [%r5+4];\ncp.async.wait_group 0;\nld.shared.u32 %r11, "
      "[%r3];\n"
      "add.u32 %r10, %r10, %r11;\nst.global.u32 [%d2], %r10;");
  EXPECT_EQ(outcome.text(), "");
  for (std::uint32_t t = 0; t < 64; ++t) EXPECT_EQ(outcome.out[4 * t], 16 * t + 4 * t + 1);
}

TEST(AsyncCopyOrder, ACopyOverWhatOthersStillReadIsFoundAtItsIssue) {
  const std::string body =
      "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};\nbar.sync 0;\nld.shared.u32 %r10, [%r4];\nbar.sync 0; "
      "// read\n"
      "cp.async.ca.shared.global [%r3], [%d1], 16;\nbar.sync 0;\ncp.async.wait_all;\nst.global.u32 [%d2], "
      "%r10;";
  EXPECT_EQ(run_copies(body).text(), "");
  // The barrier behind the issue orders the reads before the wait, but not before the copy.
  const std::string text = run_copies(without(body, "bar.sync 0; // read\n")).text();
  EXPECT_NE(text.find("shared-race: writes 16 bytes"), std::string::npos) << text;
}

/// A warp copies, arrives at the mbarrier when its copies are there, and the other warp waits.
std::string hand_over(const std::string& arrive, int count) {
  return fmt::format(
      "@%p1 mbarrier.init.shared.b64 [%r6], {};\nbar.sync 0;\nsetp.ge.u32 %p2, %r1, 32;\n@%p2 bra WAIT;\n"
      "cp.async.ca.shared.global [%r3], [%d1], 16;\n{}\nbra DONE;\nWAIT:\n"
      "mbarrier.test_wait.parity.shared.b64 %p3, [%r6], 0;\n@!%p3 bra WAIT;\nld.shared.v4.u32 {{%r10, %r11, "
      "%r12, %r13}}, "
      "[%r4];\nst.global.v4.u32 [%d2], {{%r10, %r11, %r12, %r13}};\nDONE:",
      count, arrive);
}

TEST(AsyncCopyOrder, ArrivalsComeWhenTheCopiesAreComplete) {
  const std::string noinc = "cp.async.mbarrier.arrive.noinc.shared.b64 [%r6];";
  const std::string plain =
      "cp.async.mbarrier.arrive.shared::cta.b64 [%r6];\nmbarrier.arrive.shared.b64 %d9, [%r6];";
  const std::string generic =
      "cvt.u64.u32 %d8, %r6;\ncvta.shared.u64 %d8, %d8;\ncp.async.mbarrier.arrive.noinc.b64 [%d8];";
  for (const std::string& arrive : {noinc, plain, generic}) {
    for (const bool sanitize : {false, true}) {
      const Outcome outcome = run_copies(hand_over(arrive, 32), sanitize);
      EXPECT_EQ(outcome.text(), "") << arrive;
      for (std::uint32_t k = 128; k < 256; ++k) ASSERT_EQ(outcome.out[k], k - 128 + 1) << arrive;
    }
  }
  // An ordinary arrival does not wait for copies: what they write is not there.
  const std::string early = run_copies(hand_over("mbarrier.arrive.shared.b64 %d9, [%r6];", 32)).text();
  EXPECT_NE(early.find("which the cp.async at PTX line"), std::string::npos) << early;
  const std::string few = run_copies(hand_over(noinc, 33)).text();
  EXPECT_NE(few.find("barrier-mismatch"), std::string::npos) << few;
  EXPECT_NE(few.find("wants 1 more arrivals"), std::string::npos) << few;
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
