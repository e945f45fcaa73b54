// Each sanitizer finds the fault it is for, and says nothing of the program that does it right.
#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr Sanitizers kRace{.race = true, .init = false};
constexpr Sanitizers kInit{.race = false, .init = true};

struct Sanitized {
  LaunchResult result;
  std::vector<std::uint32_t> out;

  /// "kind: message", or "" for a clean run.
  std::string text() const {
    if (result.findings.empty()) return "";
    return std::string(name(result.findings[0].kind)) + ": " + result.findings[0].message;
  }
};

/// Runs the body of a kernel k(in, out): %d1 holds in, %d2 out, %r1 tid, %r2 ctaid, %d3 4 * tid; 4096 bytes
/// of `in` are zero, `out` is not written.
Sanitized sanitized(Sanitizers what, const std::string& body, std::uint32_t grid, std::uint32_t block,
                    const std::string& target = "sm_75", int host_threads = 0) {
  std::string text = wrap_ptx(
      "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
      "mul.wide.u32 %d3, %r1, 4;\n" +
      body + "\nret;");
  text.replace(text.find("sm_75"), 5, target);
  const ptx::Module module = ptx::parse(text, "t.ptx");
  DeviceMemory memory(true);
  const DeviceAddress in = upload(memory, std::vector<std::uint32_t>(1024), "in");
  const DeviceAddress out = memory.allocate(4096, "out");
  Launch launch{.kernel = "k", .grid = {grid, 1, 1}, .block = {block, 1, 1}};
  launch.arguments = {Argument::pointer(in), Argument::pointer(out)};
  Options options;
  options.sanitize = what;
  options.host_threads = host_threads;
  Sanitized s{run(module, launch, memory, device("v100"), options), {}};
  s.out = download<std::uint32_t>(memory, out, 1024);
  return s;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no " + from);
  return text.replace(at, from.size(), to);
}

// ---- shared memory

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

// ---- global memory

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

// ---- initialisation

TEST(Sanitizer, AReadOfGlobalMemoryNobodyWroteIsFound) {
  EXPECT_EQ(sanitized(kInit, "ld.global.u32 %r3, [%d2+8];", 1, 1).text(),
            "uninitialised-read: reads 4 bytes at out+8, of which byte 0 was never written");
  const Sanitized s = sanitized(kInit, "st.global.u32 [%d2+8], 1;\nld.global.u32 %r3, [%d2+8];", 1, 32);
  EXPECT_EQ(s.text(), "");
  EXPECT_EQ(s.result.sanitized.init_accesses, 32);
  EXPECT_EQ(sanitized(kInit, "ld.global.u32 %r3, [%d1];", 1, 1).text(), "");
  EXPECT_EQ(sanitized(kInit, "atom.global.add.u32 %r3, [%d1], 1;", 1, 1).text(), "");
  EXPECT_NE(sanitized(kInit, "atom.global.add.u32 %r3, [%d2], 1;", 1, 1).text(), "");
}
TEST(Sanitizer, AReadThatIsWrittenOnlyInPartIsFound) {
  EXPECT_EQ(sanitized(kInit, "st.global.u16 [%d2], 1;\nld.global.u32 %r3, [%d2];", 1, 1).text(),
            "uninitialised-read: reads 4 bytes at out+0, of which byte 2 was never written");
  EXPECT_EQ(sanitized(kInit, "st.global.u16 [%d2], 1;\natom.global.cas.b32 %r3, [%d2], 0, 1;", 1, 1).text(),
            "");
}
TEST(Sanitizer, SharedMemoryIsNewForEveryBlock) {
  const std::string body = R"(
.shared .align 4 .b8 s[4];
setp.eq.u32 %p1, %r2, 0;
@%p1 st.shared.u32 [s], 1;
ld.shared.u32 %r3, [s];)";
  const Sanitized s = sanitized(kInit, body, 2, 1);
  EXPECT_EQ(s.text(),
            "uninitialised-read: reads 4 bytes at shared memory offset 0, of which byte 0 was never written");
  EXPECT_EQ(s.result.findings.at(0).block.x, 1u);
  EXPECT_EQ(sanitized(kInit, body, 1, 1).text(), "");
}
TEST(Sanitizer, LocalMemoryIsOfEachThread) {
  const std::string body = R"(
.local .align 4 .b8 depot[16];
setp.lt.u32 %p1, %r1, LIMIT;
@%p1 st.local.u32 [depot+4], 1;
ld.local.u32 %r3, [depot+4];)";
  EXPECT_EQ(sanitized(kInit, replaced(body, "LIMIT", "64"), 1, 64).text(), "");
  const Sanitized s = sanitized(kInit, replaced(body, "LIMIT", "40"), 1, 64);
  EXPECT_EQ(s.text(),
            "uninitialised-read: reads 4 bytes at local memory offset 4, of which byte 0 was never written");
  EXPECT_EQ(s.result.findings.at(0).thread.x, 40u);
}
TEST(Sanitizer, BytesThatNothingReadsMayBeLeftOpen) {
  // As NVRTC 13 packs factors for dp2a.lo, which reads the lower two bytes of them.
  const std::string packed = R"(
mov.b32 %r3, 7;
prmt.b32 %r4, %r3, %r1, 0x3340;
prmt.b32 %r5, %r6, %r7, 0x3340;
prmt.b32 %r8, HALVES, %r5, 0x5410;
dp2a.lo.u32.u32 %r9, %r3, %r8, %r3;
st.global.u32 [%d2], %r9;)";
  EXPECT_EQ(sanitized(kInit, replaced(packed, "HALVES", "%r4"), 1, 1).text(), "");
  EXPECT_EQ(
      sanitized(kInit, replaced(packed, "HALVES", "%r6"), 1, 1).text(),
      "unset-register: uses %r9, which this thread never set, or made of what was never set or written");
}
TEST(Sanitizer, ARegisterNeverSetIsFound) {
  const Sanitized s = sanitized(kInit, "add.u32 %r4, %r3, 1;\nst.global.u32 [%d2], %r4;", 1, 1);
  EXPECT_EQ(
      s.text(),
      "unset-register: uses %r4, which this thread never set, or made of what was never set or written");
}
TEST(Sanitizer, ARegisterSetOnSomePathsIsFoundInTheThreadsThatTookAnother) {
  const std::string body = R"(
setp.lt.u32 %p1, %r1, 5;
@%p1 bra SKIP;
mov.u32 %r3, 1;
SKIP:
setp.lt.u32 %p2, %r1, LIMIT;
@%p2 bra END;
add.u32 %r4, %r3, 1;
st.global.u32 [%d2], %r4;
END:)";
  EXPECT_EQ(sanitized(kInit, replaced(body, "LIMIT", "5"), 1, 32).text(), "");
  const Sanitized s = sanitized(kInit, replaced(body, "LIMIT", "3"), 1, 32);
  EXPECT_EQ(
      s.text(),
      "unset-register: uses %r4, which this thread never set, or made of what was never set or written");
  EXPECT_EQ(s.result.findings.at(0).thread.x, 3u);
}
TEST(Sanitizer, AGuardedSetCountsForItsLanes) {
  const std::string body = R"(
setp.lt.u32 %p1, %r1, 8;
@%p1 ld.global.u32 %r3, [%d1];
@GUARD add.u32 %r4, %r3, 1;
@GUARD st.global.u32 [%d2], %r4;)";
  EXPECT_EQ(sanitized(kInit, replaced(replaced(body, "GUARD", "%p1"), "GUARD", "%p1"), 1, 32).text(), "");
  EXPECT_NE(sanitized(kInit, replaced(replaced(body, "GUARD", "!%p1"), "GUARD", "!%p1"), 1, 32).text(), "");
}
TEST(Sanitizer, ComputingWithAnUnsetRegisterIsNoUseUntilTheResultShows) {
  const std::string body = R"(
setp.eq.u32 %p1, %r1, 77;
@%p1 mov.u32 %r5, 1;
add.u32 %r3, %r5, 1;
setp.lt.u32 %p3, %r3, 5;
and.pred %p3, %p3, %p1;
selp.b32 %r4, %r3, 7, %p3;
st.global.u32 [%d2], %r4;
)";
  EXPECT_EQ(sanitized(kInit, body, 1, 32).text(), "");  // as compilers compute both sides of a choice
  for (const char* use : {"st.global.u32 [%d2], %r3;", "mov.u32 %r6, %r3;\nst.global.u32 [%d2], %r6;",
                          "cvt.u64.u32 %d4, %r3;\nadd.u64 %d4, %d4, %d1;\nld.global.u8 %r6, [%d4];",
                          "setp.lt.u32 %p4, %r3, 5;\n@%p4 bra END;\nst.global.u32 [%d2], 1;\nEND:",
                          "selp.b32 %r4, 7, %r3, %p3;\nst.global.u32 [%d2], %r4;"})
    EXPECT_TRUE(sanitized(kInit, body + use, 1, 32).text().starts_with("unset-register")) << use;
}

TEST(Sanitizer, AnUnsetElementOfAVectorStoreIsNotWritten) {
  const std::string store = "st.global.v2.u32 [%d2], {%r1, %r4};\n";
  const std::string again = store + "st.global.u32 [%d2+4], 7;\n";
  EXPECT_EQ(sanitized(kInit, again + "ld.global.u32 %r5, [%d2+4];", 1, 1).text(), "");
  EXPECT_EQ(sanitized(kInit, store + "ld.global.u32 %r5, [%d2];", 1, 1).text(), "");
  const std::string read = sanitized(kInit, again + store + "ld.global.u32 %r5, [%d2+4];", 1, 1).text();
  EXPECT_TRUE(read.starts_with("uninitialised-read: reads 4 bytes")) << read;
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

// NVRTC loads three floats as a vector of four where their place is aligned so.
TEST(Sanitizer, AnElementOfAVectorThatNobodyReadsMayBeUnset) {
  const std::string body = R"(
.shared .align 16 .b8 s[16];
mov.u32 %r4, s;
setp.lt.u32 %p1, %r1, 3;
shl.b32 %r3, %r1, 2;
add.u32 %r5, %r4, %r3;
@%p1 st.shared.u32 [%r5], %r1;
bar.sync 0;
ld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [%r4];
add.u32 %r6, %r6, %r7;
add.u32 %r6, %r6, %r8;
add.u64 %d4, %d2, %d3;
st.global.u32 [%d4], %r6;)";
  const Sanitized clean = sanitized(kInit, body, 1, 32);
  EXPECT_EQ(clean.text(), "");
  EXPECT_EQ(clean.out[31], 3u);
  EXPECT_EQ(
      sanitized(kInit, replaced(body, "add.u32 %r6, %r6, %r8", "add.u32 %r6, %r6, %r9"), 1, 32).text(),
      "uninitialised-read: reads 16 bytes at shared memory offset 0, of which byte 12 was never written");
  EXPECT_EQ(
      sanitized(kInit, replaced(body, "%r1, 3;", "%r1, 2;"), 1, 32).text(),
      "uninitialised-read: reads 12 bytes at shared memory offset 0, of which byte 8 was never written");
}

// NVRTC loads the last vector of a row whole where a part of it is within, and looks later which.
TEST(Sanitizer, AnElementOfAVectorThatIsLeftOutLaterMayBeUnset) {
  const std::string body = R"(
.shared .align 16 .b8 s[16];
mov.u32 %r4, s;
setp.lt.u32 %p1, %r1, 3;
shl.b32 %r3, %r1, 2;
add.u32 %r5, %r4, %r3;
@%p1 st.shared.u32 [%r5], %r1;
bar.sync 0;
ld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [%r4];
add.u32 %r6, %r6, %r7;
add.u32 %r6, %r6, %r8;
setp.lt.u32 %p2, %r1, 32;
@%p2 bra OUT;
add.u32 %r6, %r6, %r9;
OUT:
add.u64 %d4, %d2, %d3;
st.global.u32 [%d4], %r6;)";
  const Sanitized clean = sanitized(kInit, body, 1, 32);
  EXPECT_EQ(clean.text(), "");
  EXPECT_EQ(clean.out[31], 3u);
  EXPECT_EQ(
      sanitized(kInit, replaced(body, "%r1, 32;", "%r1, 5;"), 1, 32).text(),
      "unset-register: uses %r6, which this thread never set, or made of what was never set or written");
  // What all that is loaded leads to is used, whatever path is taken.
  EXPECT_EQ(
      sanitized(kInit, replaced(body, "add.u64 %d4", "add.u32 %r6, %r6, %r9;\nadd.u64 %d4"), 1, 32).text(),
      "uninitialised-read: reads 16 bytes at shared memory offset 0, of which byte 12 was never written");
  EXPECT_EQ(
      sanitized(kInit, replaced(body, "%r1, 3;", "%r1, 2;"), 1, 32).text(),
      "uninitialised-read: reads 16 bytes at shared memory offset 0, of which byte 8 was never written");
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
