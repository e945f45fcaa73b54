// The race check of global memory, within a block and between blocks.
#include "tests/simulator/sanitized.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace sanitizing;

TEST(Sanitizer, BlocksThatWriteOnePlaceRace) {
  EXPECT_EQ(sanitized(kRace, "st.global.u32 [%d2], %r2;", 2, 1).text(),
            "global-race: writes 4 bytes at out+0, which block (0,0,0), thread (0,0,0) wrote at PTX line 17, "
            "with no "
            "release and acquire in between");
  EXPECT_EQ(sanitized(kRace, "red.global.add.u32 [%d1], %r2;", 2, 32).text(), "");
}
TEST(Sanitizer, AReadOfWhatAnotherBlockWritesRacesWhicheverRunsFirst) {
  const std::string body = R"(
mul.wide.u32 %d5, %r2, 4;
add.u64 %d6, %d1, %d5;
xor.b64 %d7, %d5, 4;
add.u64 %d7, %d1, %d7;
)";
  EXPECT_NE(sanitized(kRace, body + "st.global.u32 [%d6], 5;\nld.global.u32 %r5, [%d7];", 2, 1).text(), "");
  EXPECT_NE(sanitized(kRace, body + "ld.global.u32 %r5, [%d7];\nst.global.u32 [%d6], 5;", 2, 1).text(), "");
  EXPECT_EQ(sanitized(kRace, body + "ld.global.u32 %r5, [%d6];\nst.global.u32 [%d6], 5;", 2, 1).text(), "");
}
TEST(Sanitizer, ManyReadersOfOneWordDoNotHideThatOneIsOfAnotherBlock) {
  const std::string body = R"(
ld.global.u32 %r3, [%d1];
bar.sync 0;
setp.eq.u32 %p1, %r1, 0;
setp.eq.and.u32 %p1, %r2, BLOCK, %p1;
@%p1 st.global.u32 [%d1], 1;)";
  EXPECT_NE(sanitized(kRace, replaced(body, "BLOCK", "2"), 3, 96).text(), "");
  EXPECT_NE(sanitized(kRace, replaced(body, "BLOCK", "0"), 3, 96).text(), "");
  EXPECT_EQ(sanitized(kRace, replaced(body, "BLOCK", "0"), 1, 96).text(), "");
}
TEST(Sanitizer, WarpsOfABlockRaceInGlobalMemoryToo) {
  const std::string body = R"(
add.u64 %d4, %d1, %d3;
st.global.u32 [%d4], %r1;
BARRIER
xor.b64 %d5, %d3, 128;
add.u64 %d5, %d1, %d5;
ld.global.u32 %r3, [%d5];)";
  EXPECT_EQ(sanitized(kRace, replaced(body, "BARRIER", "bar.sync 0;"), 1, 64).text(), "");
  EXPECT_TRUE(sanitized(kRace, replaced(body, "BARRIER", ""), 1, 64).text().starts_with("global-race"));
}

/// Every block leaves a number, waits for the grid, and takes that of its neighbour. The counter is at
/// in+2048.
const std::string kGridBarrier = R"(
mul.wide.u32 %d5, %r2, 256;
add.u64 %d6, %d1, %d5;
add.u64 %d6, %d6, %d3;
st.global.u32 [%d6], %r1;
bar.sync 0; // before
setp.ne.u32 %p1, %r1, 0;
@%p1 bra WAITED;
fence.acq_rel.gpu; // release
atom.add.u32 %r3, [%d1+2048], 1;
AGAIN:
ld.relaxed.gpu.u32 %r4, [%d1+2048];
setp.lt.u32 %p2, %r4, 4;
@%p2 bra AGAIN;
fence.acq_rel.gpu; // acquire
WAITED:
bar.sync 0; // after
xor.b64 %d7, %d5, 256;
add.u64 %d8, %d1, %d7;
sub.u64 %d9, 252, %d3;
add.u64 %d8, %d8, %d9;
ld.global.u32 %r5, [%d8];)";

TEST(Sanitizer, AGridBarrierOrdersBlocks) {
  const Sanitized s = sanitized(kRace, kGridBarrier, 4, 64);
  EXPECT_EQ(s.text(), "");
  EXPECT_EQ(s.result.counters.grid_barriers, 1u);
}
TEST(Sanitizer, EveryPartOfAGridBarrierIsNeeded) {
  for (const char* part : {"bar.sync 0; // before", "fence.acq_rel.gpu; // release",
                           "fence.acq_rel.gpu; // acquire", "bar.sync 0; // after"}) {
    EXPECT_TRUE(sanitized(kRace, replaced(kGridBarrier, part, ""), 4, 64).text().starts_with("global-race"))
        << part;
  }
}
TEST(Sanitizer, OrdersOnTheAccessesThemselvesStandForFences) {
  std::string body = replaced(kGridBarrier, "fence.acq_rel.gpu; // release", "");
  body = replaced(body, "atom.add", "atom.release.gpu.add");
  body = replaced(body, "fence.acq_rel.gpu; // acquire", "");
  EXPECT_EQ(sanitized(kRace, replaced(body, "ld.relaxed", "ld.acquire"), 4, 64).text(), "");
  EXPECT_NE(sanitized(kRace, body, 4, 64).text(), "");
}
TEST(Sanitizer, AFenceOfTheBlockDoesNotReachOtherBlocks) {
  EXPECT_NE(
      sanitized(kRace, replaced(kGridBarrier, "fence.acq_rel.gpu; // release", "membar.cta;"), 4, 64).text(),
      "");
}
TEST(Sanitizer, GridBarriersInARowEachOrder) {
  std::string second = kGridBarrier;
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"bra AGAIN;", "bra AGAIN2;"},
                                                        {"AGAIN:", "AGAIN2:"},
                                                        {"bra WAITED;", "bra WAITED2;"},
                                                        {"WAITED:", "WAITED2:"},
                                                        {"%r4, 4;", "%r4, 8;"},
                                                        {"ld.global.u32 %r5, [%d8];", ""}})
    second = replaced(second, from, to);
  const std::string write = "st.global.u32 [%d6], %r1;", other_write = "st.global.u32 [%d6], %r2;";
  // Written again only after all have waited for the readers.
  EXPECT_EQ(sanitized(kRace, kGridBarrier + replaced(second, write, "") + other_write, 4, 64).text(), "");
  EXPECT_TRUE(sanitized(kRace, kGridBarrier + replaced(second, write, other_write), 4, 64)
                  .text()
                  .starts_with("global-race"));
}

/// Each block leaves a number; the last to count itself adds them up.
const std::string kLastBlock = R"(
mul.wide.u32 %d5, %r2, 4;
add.u64 %d6, %d1, %d5;
st.global.u32 [%d6], %r2;
membar.gl; // release
atom.global.add.u32 %r3, [%d1+2048], 1;
setp.ne.u32 %p1, %r3, 3;
@%p1 bra DONE;
ACQUIRE
ld.global.u32 %r4, [%d1];
DONE:)";

TEST(Sanitizer, TheLastBlockToCountItselfMayReadTheOthers) {
  EXPECT_EQ(sanitized(kRace, replaced(kLastBlock, "ACQUIRE", "membar.gl;"), 4, 1).text(), "");
  // Its own fence came before the count that found the others' results: nothing older is left in L1 (NVIDIA's
  // threadFenceReduction reads so). Without that fence, or found by a load and not by a count, they may be
  // stale.
  EXPECT_EQ(sanitized(kRace, replaced(kLastBlock, "ACQUIRE", ""), 4, 1).text(), "");
  EXPECT_NE(sanitized(kRace, replaced(replaced(kLastBlock, "ACQUIRE", ""), "membar.gl; // release", ""), 4, 1)
                .text(),
            "");
  const std::string by_load =
      replaced(kLastBlock, "setp.ne.u32 %p1, %r3, 3;",
               "TURN: ld.volatile.global.u32 %r3, [%d1+2048]; setp.ne.u32 %p2, %r3, 4; @%p2 "
               "bra TURN; setp.ne.u32 %p1, %r2, 0;");
  EXPECT_EQ(sanitized(kRace, replaced(by_load, "ACQUIRE", "membar.gl;"), 4, 1).text(), "");
  EXPECT_NE(
      sanitized(kRace, replaced(replaced(by_load, "ACQUIRE", ""), "[%d1];\nDONE", "[%d1+8];\nDONE"), 4, 1)
          .text(),
      "");
  const std::string strong = replaced(kLastBlock, "ld.global", "ld.volatile.global");
  EXPECT_EQ(sanitized(kRace, replaced(strong, "ACQUIRE", ""), 4, 1).text(), "");
  EXPECT_NE(
      sanitized(kRace, replaced(replaced(strong, "ACQUIRE", ""), "membar.gl; // release", ""), 4, 1).text(),
      "");
}

/// As the CUDA C++ Programming Guide writes an atomic that there is none of.
const std::string kCompareAndSwap = R"(
ld.global.u32 %r4, [%d1];
AGAIN:
add.u32 %r5, %r4, 3;
atom.global.cas.b32 %r6, [%d1], %r4, %r5;
setp.ne.u32 %p1, %r6, %r4;
mov.u32 %r4, %r6;
@%p1 bra AGAIN;)";

TEST(Sanitizer, TheFirstGuessOfACompareAndSwapMakesNoRace) {
  EXPECT_EQ(sanitized(kRace, kCompareAndSwap, 3, 64).text(), "");
  // What it read is used for something else, or is of another place.
  for (const char* load :
       {"ld.global.u32 %r7, [%d1];", "ld.global.u32 %r4, [%d1+4];\nst.global.u32 [%d1+4], %r2;"})
    EXPECT_TRUE(sanitized(kRace, replaced(kCompareAndSwap, "ld.global.u32 %r4, [%d1];", load), 3, 64)
                    .text()
                    .starts_with("global-race"))
        << load;
  // By way of moves and conversions, and of a variable whose address is in a register, too.
  const std::string shared = R"(
.shared .align 4 .b8 s[8];
setp.eq.u32 %p2, %r1, 0;
@%p2 st.shared.u16 [s+4], 7;
bar.sync 0;
ld.shared.u16 %h1, [s+4];
mov.u16 %h2, %h1;
mov.u32 %r8, s+4;
AGAIN:
cvt.u32.u16 %r4, %h2;
add.u16 %h3, %h2, 3;
cvt.u16.u32 %h5, %r4;
atom.shared.cas.b16 %h4, [%r8], %h5, %h3;
setp.ne.u16 %p1, %h4, %h2;
mov.u16 %h2, %h4;
@%p1 bra AGAIN;)";
  EXPECT_EQ(sanitized(kRace, shared, 1, 64).text(), "");
  EXPECT_TRUE(sanitized(kRace, replaced(shared, "mov.u16 %h2, %h1;", "add.u16 %h2, %h1, 0;"), 1, 64)
                  .text()
                  .starts_with("shared-race"));
}

TEST(Sanitizer, ANonCoherentReadOfWhatTheLaunchWroteIsFound) {
  const std::string body = "st.global.u32 [%d1], 5;\nld.global.nc.u32 %r3, [%d1OFFSET];";
  EXPECT_EQ(sanitized(kRace, replaced(body, "OFFSET", ""), 1, 1).text(),
            "non-coherent-read: reads 4 bytes at in+0 through the non-coherent cache, which thread (0,0,0) "
            "wrote at "
            "PTX line 17 in the same launch");
  EXPECT_EQ(sanitized(kRace, replaced(body, "OFFSET", "+4"), 1, 1).text(), "");
}

TEST(Sanitizer, FindingsAreTheSameWhateverTheHostThreads) {
  const std::string body =
      "ld.global.u32 %r3, [%d1];\nsetp.eq.u32 %p1, %r2, 700;\n@%p1 st.global.u32 [%d1], 1;";
  const Finding one = sanitized(kRace, body, 2048, 128, "sm_75", 1).result.findings.at(0);
  for (int threads : {2, 3}) {
    const Finding f = sanitized(kRace, body, 2048, 128, "sm_75", threads).result.findings.at(0);
    EXPECT_EQ(f.message, one.message);
    EXPECT_EQ(f.block.x, one.block.x);
    EXPECT_EQ(f.thread.x, one.thread.x);
  }
}
TEST(Sanitizer, CountersAreThoseOfARunWithoutIt) {
  const Sanitized with = sanitized({.race = true, .init = true}, kGridBarrier, 4, 64);
  const Sanitized without = sanitized({}, kGridBarrier, 4, 64);
  EXPECT_EQ(with.text(), "");
  EXPECT_EQ(counter_list(with.result.counters), counter_list(without.result.counters));
  EXPECT_EQ(without.result.sanitized.race_accesses, 0);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
