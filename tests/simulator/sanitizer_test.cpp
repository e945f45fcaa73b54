// The race check of shared memory: it finds each fault it is for, and says nothing of the program that does
// it right.
#include "core/base/error.h"
#include "tests/simulator/sanitized.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace sanitizing;

/// Every thread leaves its number and takes that of its partner in the other warp.
const std::string kExchange = R"(
.shared .align 4 .b8 s[256];
shl.b32 %r3, %r1, 2;
mov.u32 %r4, s;
add.u32 %r5, %r4, %r3;
st.shared.u32 [%r5], %r1;
bar.sync 0;
xor.b32 %r6, %r5, 128;
ld.shared.u32 %r7, [%r6];
add.u64 %d4, %d2, %d3;
st.global.u32 [%d4], %r7;)";

TEST(Sanitizer, ASharedRaceBetweenWarpsIsFoundWithBothAccesses) {
  EXPECT_EQ(sanitized(kRace, replaced(kExchange, "bar.sync 0;", ""), 1, 64).text(),
            "shared-race: reads 4 bytes at shared memory offset 128, which thread (32,0,0) wrote at PTX line "
            "22, with "
            "no barrier of the block in between");
}
TEST(Sanitizer, ABarrierOrdersWarps) {
  const Sanitized s = sanitized(kRace, kExchange, 1, 64);
  EXPECT_EQ(s.text(), "");
  EXPECT_EQ(s.result.sanitized.race_accesses, 3 * 64);
  EXPECT_EQ(s.result.sanitized.init_accesses, 0);
  EXPECT_EQ(s.out[5], 37u);
}
TEST(Sanitizer, OverwritingWhatAnotherWarpStillReadsIsARace) {
  // The second round of an exchange needs a barrier between reading the first and writing.
  const std::string again = kExchange + "\nBARRIER\nadd.u32 %r1, %r1, 1;\nst.shared.u32 [%r5], %r1;";
  EXPECT_EQ(sanitized(kRace, replaced(again, "BARRIER", "bar.sync 0;"), 1, 64).text(), "");
  EXPECT_TRUE(
      sanitized(kRace, replaced(again, "BARRIER", ""), 1, 64)
          .text()
          .starts_with("shared-race: writes 4 bytes at shared memory offset 0, which thread (32,0,0) read"));
}
TEST(Sanitizer, LanesOfAWarpNeedAWarpBarrierFromVoltaOn) {
  const std::string body =
      replaced(replaced(kExchange, "bar.sync 0;", "bar.warp.sync -1;"), "128", "4");  // the neighbour's
  EXPECT_EQ(sanitized(kRace, body, 1, 64).text(), "");
  const std::string without = replaced(body, "bar.warp.sync -1;", "");
  EXPECT_NE(sanitized(kRace, without, 1, 64).text().find("with no barrier of the warp in between"),
            std::string::npos);
  EXPECT_EQ(sanitized(kRace, without, 1, 64, "sm_61").text(), "");
}
TEST(Sanitizer, LanesThatWriteOneByteRaceUnlessTheyWriteOneValue) {
  const std::string body = R"(
.shared .align 4 .b8 s[4];
VALUE
st.shared.u32 [s], %r3;)";
  EXPECT_NE(sanitized(kRace, replaced(body, "VALUE", "mov.u32 %r3, %r1;"), 1, 32).text(), "");
  EXPECT_NE(sanitized(kRace, replaced(body, "VALUE", "shr.u32 %r3, %r1, 5;"), 1, 64).text(), "");
  EXPECT_EQ(sanitized(kRace, replaced(body, "VALUE", "mov.u32 %r3, 7;"), 1, 64).text(), "");
}
TEST(Sanitizer, NeighbouringBytesOfAWordAreApart) {
  const std::string body = R"(
.shared .align 4 .b8 s[128];
mov.u32 %r3, s;
add.u32 %r3, %r3, %r1;
st.shared.u8 [%r3], %r1;
MORE)";
  EXPECT_EQ(sanitized(kRace, replaced(body, "MORE", ""), 1, 128).text(), "");
  EXPECT_NE(sanitized(kRace, replaced(body, "MORE", "ld.shared.u32 %r4, [s];"), 1, 128).text(), "");
}
TEST(Sanitizer, WhatOneInstructionWroteInVectorsIsKnownByLane) {
  const std::string body = R"(
.shared .align 16 .b8 s[1024];
shl.b32 %r3, %r1, 4;
mov.u32 %r4, s;
add.u32 %r5, %r4, %r3;
st.shared.v4.u32 [%r5], {%r1, %r1, %r1, %r1};
xor.b32 %r6, %r5, WHOSE;
ld.shared.u32 %r7, [%r6+8];)";
  EXPECT_EQ(sanitized(kRace, replaced(body, "WHOSE", "0"), 1, 64).text(), "");
  EXPECT_EQ(sanitized(kRace, replaced(body, "WHOSE", "16"), 1, 64).text(),
            "shared-race: reads 4 bytes at shared memory offset 24, which thread (1,0,0) wrote at PTX line "
            "22, with "
            "no barrier of the warp in between");
}
TEST(Sanitizer, HalfWordsThatFollowEachOtherAreApart) {
  const std::string body = R"(
.shared .align 4 .b8 s[128];
shl.b32 %r3, %r1, 1;
mov.u32 %r4, s;
add.u32 %r5, %r4, %r3;
cvt.u16.u32 %h1, %r1;
st.shared.u16 [%r5], %h1;
BARRIER
and.b32 %r6, %r5, MASK;
LOAD)";
  const std::string pairs = replaced(replaced(body, "MASK", "-4"), "LOAD", "ld.shared.u32 %r7, [%r6];");
  const std::string own = replaced(replaced(body, "MASK", "-1"), "LOAD", "ld.shared.u16 %h2, [%r6];");
  EXPECT_EQ(sanitized(kRace, replaced(own, "BARRIER", ""), 1, 64).text(), "");
  EXPECT_NE(sanitized(kRace, replaced(pairs, "BARRIER", ""), 1, 64).text().find("no barrier of the warp"),
            std::string::npos);
  EXPECT_EQ(sanitized(kRace, replaced(pairs, "BARRIER", "bar.warp.sync -1;"), 1, 64).text(), "");
}
TEST(Sanitizer, RunsThatBeginWithinASectorAreToldApartByWarp) {
  // Each warp writes the 32 words behind the first, and reads one word further: its last lane the next
  // warp's.
  const std::string body = R"(
.shared .align 4 .b8 s[264];
shl.b32 %r3, %r1, 2;
mov.u32 %r4, s;
add.u32 %r5, %r4, %r3;
st.shared.u32 [%r5+4], %r1;
BARRIER
ld.shared.u32 %r7, [%r5+4];
MORE)";
  const std::string further = replaced(body, "MORE", "bar.warp.sync -1;\nld.shared.u32 %r8, [%r5];");
  EXPECT_EQ(sanitized(kRace, replaced(replaced(body, "MORE", ""), "BARRIER", ""), 1, 64).text(), "");
  EXPECT_EQ(sanitized(kRace, replaced(further, "BARRIER", "bar.sync 0;"), 1, 64).text(), "");
  EXPECT_NE(sanitized(kRace, replaced(further, "BARRIER", ""), 1, 64)
                .text()
                .find("offset 128, which thread (31,0,0) wrote"),
            std::string::npos);
}
TEST(Sanitizer, ReadsOfOneSectorInDifferentWidthsAreAllRemembered) {
  // All lanes of warp 0 read four words each, then one word; a lane of warp 1 overwrites one of them.
  const std::string body = R"(
.shared .align 16 .b8 s[512];
mov.u32 %r4, s;
shl.b32 %r3, %r1, 2;
add.u32 %r5, %r4, %r3;
setp.lt.u32 %p1, %r1, 32;
@%p1 st.shared.u32 [%r5], %r1;
bar.sync 0;
@%p1 ld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [s];
@%p1 ld.shared.u32 %r10, [%r5];
BARRIER
setp.eq.u32 %p2, %r1, WHO;
@%p2 st.shared.u32 [s+20], 77;)";
  const std::string warp1 = replaced(body, "WHO", "40");
  EXPECT_EQ(sanitized(kRace, replaced(warp1, "BARRIER", "bar.sync 0;"), 1, 64).text(), "");
  EXPECT_NE(sanitized(kRace, replaced(warp1, "BARRIER", ""), 1, 64).text().find("thread (5,0,0) read"),
            std::string::npos);
  // The only lane that read the word may overwrite it, another lane of its warp may not.
  EXPECT_EQ(sanitized(kRace, replaced(replaced(body, "WHO", "5"), "BARRIER", ""), 1, 64).text(), "");
  EXPECT_NE(sanitized(kRace, replaced(replaced(body, "WHO", "6"), "BARRIER", ""), 1, 64).text(), "");
}
TEST(Sanitizer, AStoreOverADividedSectorIsRemembered) {
  // Lane by lane in reverse, then in order, then a read of the neighbour warp's part.
  const std::string body = R"(
.shared .align 4 .b8 s[256];
shl.b32 %r3, %r1, 2;
mov.u32 %r4, s;
add.u32 %r5, %r4, %r3;
xor.b32 %r6, %r5, 124;
st.shared.u32 [%r6], %r1;
bar.sync 0;
st.shared.u32 [%r5], %r1;
BARRIER
xor.b32 %r6, %r5, 128;
ld.shared.u32 %r7, [%r6];)";
  EXPECT_EQ(sanitized(kRace, replaced(body, "BARRIER", "bar.sync 0;"), 1, 64).text(), "");
  EXPECT_NE(sanitized(kRace, replaced(body, "BARRIER", ""), 1, 64).text().find("wrote at PTX line 25"),
            std::string::npos);
}
TEST(Sanitizer, AnAsynchronousCopyThatFillsUpWithZerosReadsTheRest) {
  const std::string body = R"(
.shared .align 16 .b8 s[512];
shl.b32 %r3, %r1, 4;
mov.u32 %r4, s;
add.u32 %r5, %r4, %r3;
add.u64 %d4, %d2, 16;
cp.async.ca.shared.global [%r5], [%d4], 16, 12;
cp.async.wait_all;)";
  EXPECT_NE(sanitized(kInit, body, 1, 32, "sm_80").text().find("uninitialised-read: reads 12 bytes"),
            std::string::npos);
}
TEST(Sanitizer, AtomicsOfSharedMemoryDoNotRaceButAPlainReadWithThemDoes) {
  const std::string body = R"(
.shared .align 4 .b8 s[4];
setp.eq.u32 %p1, %r1, 0;
@%p1 st.shared.u32 [s], 0;
bar.sync 0;
red.shared.add.u32 [s], 1;
BARRIER
ld.shared.u32 %r3, [s];)";
  EXPECT_EQ(sanitized(kRace, replaced(body, "BARRIER", "bar.sync 0;"), 1, 64).text(), "");
  EXPECT_NE(sanitized(kRace, replaced(body, "BARRIER", ""), 1, 64).text(), "");
}
TEST(Sanitizer, ABarrierOfSomeWarpsOrdersOnlyThose) {
  const std::string body = R"(
.shared .align 4 .b8 s[512];
shl.b32 %r3, %r1, 2;
mov.u32 %r4, s;
add.u32 %r5, %r4, %r3;
st.shared.u32 [%r5], %r1;
shr.u32 %r8, %r1, 6;
add.u32 %r8, %r8, 1;
bar.sync %r8, 64;
xor.b32 %r6, %r5, PARTNER;
ld.shared.u32 %r7, [%r6];)";
  EXPECT_EQ(sanitized(kRace, replaced(body, "PARTNER", "128"), 1, 128).text(), "");
  EXPECT_NE(sanitized(kRace, replaced(body, "PARTNER", "256"), 1, 128).text(), "");
}
TEST(Sanitizer, ThreadsThatHaveEndedAreOrderedByLaterBarriers) {
  const std::string body = R"(
.shared .align 4 .b8 s[256];
shl.b32 %r3, %r1, 2;
mov.u32 %r4, s;
add.u32 %r5, %r4, %r3;
st.shared.u32 [%r5], %r1;
setp.ge.u32 %p1, %r1, 32;
@%p1 ret;
bar.sync 0;
ld.shared.u32 %r7, [%r5+128];)";
  EXPECT_EQ(sanitized(kRace, body, 1, 64).text(), "");
}

TEST(Sanitizer, NamesAreParsedAndUnknownOnesRefused) {
  EXPECT_FALSE(parse_sanitizers("mem").any());
  const Sanitizers all = parse_sanitizers("mem,race,sync,init");
  EXPECT_TRUE(all.race && all.init && all.sync);
  EXPECT_TRUE(parse_sanitizers("race").race);
  EXPECT_FALSE(parse_sanitizers("race").init);
  for (const char* bad : {"", "races", "race,,init", "all"})
    EXPECT_THROW(parse_sanitizers(bad), Error) << bad;
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
