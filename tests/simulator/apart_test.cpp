// Sanitizers on several host threads: the same findings, memory, counts and counters as in order.
#include "simulator/check/apart.h"

#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr std::uint32_t kGrid = 512, kBlock = 256, kThreads = kGrid * kBlock;

struct Ran {
  LaunchResult result;
  std::vector<std::uint32_t> in, out;
  bool out_has_unwritten = false;

  std::string text() const {
    if (result.findings.empty()) return "";
    const Finding& f = result.findings[0];
    return std::string(name(f.kind)) + ": " + f.message;
  }
};

/// Runs k(in, out) with a thread a word: %d4 and %d5 are this thread's words of both, %r3 its number. `in`
/// counts up, `out` is not written.
Ran ran(const std::string& body, int host_threads, Sanitizers what = {.race = true, .init = true}) {
  const std::string text = wrap_ptx(
      "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
      "mad.lo.u32 %r3, %r2, 256, %r1;\nmul.wide.u32 %d3, %r3, 4;\nadd.u64 %d4, %d1, %d3;\nadd.u64 %d5, %d2, "
      "%d3;\n" +
      body + "\nret;");
  const ptx::Module module = ptx::parse(text, "t.ptx");
  DeviceMemory memory(true);
  std::vector<std::uint32_t> numbers(kThreads + 64);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i);
  const DeviceAddress in = upload(memory, numbers, "in");
  const DeviceAddress out = memory.allocate(4 * numbers.size(), "out");
  Launch launch{.kernel = "k", .grid = {kGrid, 1, 1}, .block = {kBlock, 1, 1}};
  launch.arguments = {Argument::pointer(in), Argument::pointer(out)};
  Options options;
  options.sanitize = what;
  options.host_threads = host_threads;
  Ran r{run(module, launch, memory, device("v100"), options), {}, {}, false};
  r.in = download<std::uint32_t>(memory, in, numbers.size());
  r.out = download<std::uint32_t>(memory, out, numbers.size());
  return r;
}

void expect_same(const std::string& body, const std::string& finding) {
  const Ran alone = ran(body, 1);
  EXPECT_EQ(alone.result.host_threads, 1);
  EXPECT_NE(alone.text().find(finding), std::string::npos) << alone.text();
  EXPECT_EQ(alone.text().empty(), finding.empty()) << alone.text();
  for (int round = 0; round < 5; ++round) {
    const Ran both = ran(body, 2);
    EXPECT_EQ(both.text(), alone.text());
    if (!finding.empty()) continue;  // outputs are then undefined
    EXPECT_EQ(both.in, alone.in);
    EXPECT_EQ(both.out, alone.out);
    EXPECT_EQ(both.result.sanitized.race_accesses, alone.result.sanitized.race_accesses);
    EXPECT_EQ(both.result.sanitized.init_accesses, alone.result.sanitized.init_accesses);
    EXPECT_EQ(both.result.sanitized.mem_accesses, alone.result.sanitized.mem_accesses);
    EXPECT_EQ(counter_list(both.result.counters), counter_list(alone.result.counters));
    EXPECT_EQ(both.result.time_us, alone.result.time_us);
  }
}

const std::string kAddOne = "ld.global.u32 %r4, [%d4];\nadd.u32 %r4, %r4, 1;\nst.global.u32 [%d4], %r4;\n";

TEST(Apart, BlocksThatShareNothingRunBesideEachOther) {
  const std::string body = kAddOne + "st.global.u32 [%d5], %r4;\n";
  expect_same(body, "");
  EXPECT_EQ(ran(body, 2).result.host_threads, 2);
  EXPECT_EQ(ran(body, 8).result.host_threads, 2);  // each has shadow memory of its own
  EXPECT_EQ(ran(body, 2, {.race = false, .init = true}).result.host_threads, 1);
}

TEST(Apart, WhatAllReadAndNobodyWritesIsNoMeeting) {
  const std::string body = "ld.global.u32 %r4, [%d1];\nadd.u32 %r4, %r4, %r3;\nst.global.u32 [%d5], %r4;\n";
  expect_same(body, "");
  EXPECT_EQ(ran(body, 2).result.host_threads, 2);
}

TEST(Apart, NeighboursWithinASectorAreToldApart) {
  // Blocks' words begin four bytes into a sector; bytes of a word are of two blocks' threads where they meet.
  const std::string body =
      "st.global.u32 [%d5+4], %r3;\nadd.u64 %d6, %d1, 65536;\nld.global.u8 %r4, [%d4+3];\n";
  expect_same(body, "");
  EXPECT_EQ(ran(body, 2).result.host_threads, 2);
}

TEST(Apart, OneValueStoredByAllIsNoFaultAndDoneOnce) {
  // All blocks meet at the last word; what they add to their own words must not be added twice.
  const std::string body = kAddOne + "mov.u32 %r5, 7;\nst.global.u32 [%d2+524288], %r5;\n";
  expect_same(body, "");
  const Ran r = ran(body, 2);
  EXPECT_EQ(r.result.host_threads, 1);
  EXPECT_EQ(r.in[1000], 1001U);
  EXPECT_EQ(r.out[kThreads], 7U);
}

TEST(Apart, ARaceBetweenBlocksIsReportedAsInOrder) {
  // Each thread reads the word of its neighbour, which that may have changed.
  expect_same(kAddOne + "ld.global.u32 %r6, [%d4+1024];\nst.global.u32 [%d5], %r6;\n", "global-race");
}

TEST(Apart, AFaultWithinOneBlockIsThatOfTheLowest) {
  expect_same(
      "setp.gt.u32 %p1, %r2, 100;\n@%p1 ld.global.u32 %r4, [%d5];\n@%p1 st.global.u32 [%d4], %r4;\n"
      "@!%p1 st.global.u32 [%d4], %r3;\n",
      "uninitialised-read");
  expect_same("setp.gt.u32 %p1, %r2, 300;\n@%p1 add.u64 %d5, %d5, 524288;\nst.global.u32 [%d5], %r3;\n",
              "out-of-bounds");
}

TEST(Apart, WhatAnotherBlockWroteIsNotInitialisedForThoseBefore) {
  // Block b reads the first word of block b + 1, which in order is written later: unset there, a race at
  // best.
  expect_same("st.global.u32 [%d5], %r3;\nld.global.u32 %r4, [%d5+1024];\nst.global.u32 [%d4], %r4;\n",
              "uninitialised-read");
}

TEST(Apart, ScatteredReadsRunBesideEachOther) {
  const std::string body =
      "mul.lo.u32 %r5, %r3, 40503;\nand.b32 %r5, %r5, 131071;\nmul.wide.u32 %d6, %r5, 4;\nadd.u64 %d6, %d1, "
      "%d6;\n"
      "ld.global.u32 %r6, [%d6];\nst.global.u32 [%d5], %r6;\n";
  expect_same(body, "");
  EXPECT_EQ(ran(body, 2).result.host_threads, 2);
}

TEST(Apart, ScatteredStoresRunInOrder) {
  // A permutation: every word has a cell of its own, which only one thread can afford.
  const std::string body =
      "mul.lo.u32 %r5, %r3, 40503;\nand.b32 %r5, %r5, 131071;\nmul.wide.u32 %d6, %r5, 4;\nadd.u64 %d6, %d2, "
      "%d6;\n"
      "st.global.u32 [%d6], %r3;\n" +
      kAddOne;
  expect_same(body, "");
  EXPECT_EQ(ran(body, 2).result.host_threads, 1);
}

TEST(Apart, PartsOfASectorThatAreReadAndWrittenInPlaceAreNoFault) {
  // Every other word is read and written by its thread, and each sector by four lanes.
  expect_same(
      "add.u64 %d4, %d4, %d3;\nand.b64 %d4, %d4, -8;\nsetp.lt.u32 %p1, %r3, 65536;\n@%p1 ld.global.u32 %r4, "
      "[%d4];\n"
      "@%p1 add.u32 %r4, %r4, 1;\n@%p1 st.global.u32 [%d4], %r4;\n",
      "");
}

TEST(Apart, StoresOfVectorsAndBytesAreUndone) {
  const std::string body =
      "shl.b32 %r6, %r3, 4;\nand.b32 %r6, %r6, 262128;\ncvt.u64.u32 %d6, %r6;\nadd.u64 %d6, %d1, %d6;\n"
      "setp.lt.u32 %p1, %r3, 16384;\n@%p1 st.global.v4.u32 [%d6], {%r3, %r3, %r3, %r3};\n"
      "mov.u32 %r5, 9;\nst.global.u8 [%d2], %r5;\n";
  expect_same(body, "");
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
