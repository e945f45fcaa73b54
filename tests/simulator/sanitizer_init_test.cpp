// What is used before it is written or set, in memory and in registers.
#include "tests/simulator/sanitized.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace sanitizing;

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

/// A tile of which five threads have an element, by way of SPACE and back to front; what comes of it goes to
/// OUT.
const std::string kPartialTile = R"(
.shared .align 16 .b8 s[128];
.local .align 16 .b8 depot[16];
setp.lt.u32 %p1, %r1, 5;
add.u64 %d4, %d1, %d3;
@%p1 ld.global.u32 %r3, [%d4];
shl.b32 %r5, %r1, 2;
mov.u32 %r6, s;
add.u32 %r6, %r6, %r5;
mov.u64 %d5, s;
cvta.shared.u64 %d5, %d5;
add.u64 %d5, %d5, %d3;
mov.u64 %d6, depot;
xor.b32 %r7, %r6, 4;
add.u64 %d7, %d2, %d3;
STORE
bar.sync 0;
LOAD
setp.lt.u32 %p2, %r1, LIMIT;
USE
END:)";
std::string partial_tile(const std::string& store, const std::string& load, const std::string& limit,
                         const std::string& use) {
  return replaced(replaced(replaced(replaced(kPartialTile, "STORE", store), "LOAD", load), "LIMIT", limit),
                  "USE", use);
}
TEST(Sanitizer, WhatIsUnsetPassesThroughMemoryAndIsFoundWhereItDecides) {
  const std::string unset =
      "unset-register: uses %r8, which this thread never set, or made of what was never set or written";
  const std::string store = "@%p2 st.global.u32 [%d7], %r8;";
  // Thread 4 takes what thread 5 does not have.
  const std::pair<const char*, const char*> ways[] = {
      {"st.shared.u32 [%r6], %r3;", "ld.shared.u32 %r8, [%r7];"},
      {"st.u32 [%d5], %r3;", "ld.shared.u32 %r8, [%r7];"},
      {"st.shared.u32 [%r6], %r3;", "xor.b64 %d5, %d5, 4;\nld.u32 %r8, [%d5];"},
      {"", "shfl.sync.bfly.b32 %r8, %r3, 1, 31, -1;"},
      {"st.shared.u32 [%r6], %r3;",
       "and.b32 %r7, %r7, -8;\nld.shared.v2.u32 {%r9, %r10}, [%r7];\nand.b32 %r11, %r1, 1;\n"
       "setp.eq.u32 %p3, %r11, 1;\nselp.b32 %r8, %r9, %r10, %p3;"}};
  for (const auto& [from, to] : ways) {
    EXPECT_EQ(sanitized(kInit, partial_tile(from, to, "4", store), 1, 32).text(), "") << to;
    const Sanitized s = sanitized(kInit, partial_tile(from, to, "5", store), 1, 32);
    EXPECT_EQ(s.text(), unset) << to;
    EXPECT_EQ(s.result.findings.at(0).thread.x, 4u) << to;
  }
  const auto& [from, to] = ways[0];
  for (const char* use :
       {"setp.lt.u32 %p3, %r8, 5;\n@%p2 bra WITHIN;\nbra END;\nWITHIN:\n@%p3 st.global.u32 [%d7], 1;",
        "mul.wide.u32 %d8, %r8, 4;\nadd.u64 %d8, %d1, %d8;\n@%p2 ld.global.u32 %r9, [%d8];",
        "@%p2 red.shared.add.u32 [s], %r8;"}) {
    EXPECT_EQ(sanitized(kInit, partial_tile(from, to, "4", use), 1, 32).text(), "") << use;
    EXPECT_TRUE(
        sanitized(kInit, partial_tile(from, to, "5", use), 1, 32).text().starts_with("unset-register"))
        << use;
  }
  // Of each thread, by local memory; and what is written over is set.
  const std::string local = "st.local.u32 [%d6], %r3;", back = "ld.local.u32 %r8, [%d6];";
  EXPECT_EQ(sanitized(kInit, partial_tile(local, back, "5", store), 1, 32).text(), "");
  EXPECT_EQ(sanitized(kInit, partial_tile(local, back, "6", store), 1, 32).text(), unset);
  EXPECT_EQ(
      sanitized(kInit, partial_tile(local + "\nst.local.u32 [%d6], 3;", back, "32", store), 1, 32).text(),
      "");
}
TEST(Sanitizer, AGenericStoreOfWhatIsUnsetIsFoundInGlobalMemory) {
  EXPECT_EQ(
      sanitized(kInit, partial_tile("st.u32 [%d7], %r3;", "", "5", ""), 1, 32).text(),
      "unset-register: uses %r3, which this thread never set, or made of what was never set or written");
  EXPECT_EQ(sanitized(kInit, partial_tile("st.u32 [%d7], %r3;", "", "5", ""), 1, 5).text(), "");
}
TEST(Sanitizer, AnUnsetElementOfAVectorStoreIsNotWritten) {
  const std::string store = "st.global.v2.u32 [%d2], {%r1, %r4};\n";
  const std::string again = store + "st.global.u32 [%d2+4], 7;\n";
  EXPECT_EQ(sanitized(kInit, again + "ld.global.u32 %r5, [%d2+4];", 1, 1).text(), "");
  EXPECT_EQ(sanitized(kInit, store + "ld.global.u32 %r5, [%d2];", 1, 1).text(), "");
  const std::string read = sanitized(kInit, again + store + "ld.global.u32 %r5, [%d2+4];", 1, 1).text();
  EXPECT_TRUE(read.starts_with("uninitialised-read: reads 4 bytes")) << read;
}
TEST(Sanitizer, AVectorStoreWithoutAnElementThatIsSetIsFoundInGlobalMemory) {
  const std::string found =
      "unset-register: uses %r4, which this thread never set, or made of what was never set or written";
  for (const char* store : {"st.global.v2.u32 [%d2], {%r4, %r5};", "st.v2.u32 [%d2], {%r4, %r5};",
                            "st.global.v4.u32 [%d2], {%r4, %r4, %r5, %r5};"})
    EXPECT_EQ(sanitized(kInit, store, 1, 1).text(), found) << store;
  EXPECT_EQ(sanitized(kInit, "st.global.v2.u32 [%d2], {%r4, 7};", 1, 1).text(), "");
  // Each thread sets one element or none.
  const std::string some =
      "setp.lt.u32 %p1, %r1, {};\n@%p1 mov.u32 %r4, 1;\nmul.wide.u32 %d4, %r1, 8;\nadd.u64 %d4, %d2, %d4;\n"
      "st.global.v2.u32 [%d4], {{%r4, %r5}};";
  EXPECT_EQ(sanitized(kInit, fmt::format(fmt::runtime(some), 32), 1, 32).text(), "");
  const Sanitized one = sanitized(kInit, fmt::format(fmt::runtime(some), 31), 1, 32);
  EXPECT_EQ(one.text(), found);
  EXPECT_EQ(one.result.findings[0].thread.x, 31u);
  // Vectors of 32 bytes: whichever half has an element that is set.
  EXPECT_TRUE(sanitized(kInit, "st.global.v8.b32 [%d2], {%r4, %r5, %r4, %r5, %r4, %r5, %r4, %r5};", 1, 1)
                  .text()
                  .starts_with("unset-register"));
  EXPECT_TRUE(sanitized(kInit, "st.global.v4.b64 [%d2], {%d4, %d5, %d4, %d5};", 1, 1)
                  .text()
                  .starts_with("unset-register"));
  for (const char* elements : {"7, %r5, %r4, %r5, %r4, %r5, %r4, %r5", "%r4, %r5, %r4, %r5, %r4, %r5, %r4, 7",
                               "%r4, %r5, %r4, %r5, %r1, %r5, %r4, %r5"})
    EXPECT_EQ(sanitized(kInit, fmt::format("st.global.v8.b32 [%d2], {{{}}};", elements), 1, 1).text(), "")
        << elements;
  const std::string eight =
      "setp.lt.u32 %p1, %r1, {0};\n@%p1 mov.u32 %r{1}, 1;\nmul.wide.u32 %d4, %r1, 32;\nadd.u64 %d4, %d2, "
      "%d4;\nst.global.v8.b32 [%d4], {{%r3, %r3, %r3, %r4, %r5, %r5, %r5, %r5}};";
  for (const int set : {3, 4, 5}) {
    EXPECT_EQ(sanitized(kInit, fmt::format(fmt::runtime(eight), 32, set), 1, 32).text(), "") << set;
    const Sanitized last = sanitized(kInit, fmt::format(fmt::runtime(eight), 31, set), 1, 32);
    EXPECT_TRUE(last.text().starts_with("unset-register")) << set;
    EXPECT_EQ(last.result.findings.at(0).thread.x, 31u) << set;
  }
  // Shared memory keeps what a last tile does not have.
  EXPECT_EQ(sanitized(kInit, ".shared .align 8 .b8 s[8];\nst.shared.v2.u32 [s], {%r4, %r5};", 1, 1).text(),
            "");
}

// A vector of four elements is read, of which threads have set three.
const std::string kThreeOfFour = R"(
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
)";

// NVRTC loads three floats as a vector of four where their place is aligned so.
TEST(Sanitizer, AnElementOfAVectorThatNobodyReadsMayBeUnset) {
  const std::string body = kThreeOfFour + R"(add.u64 %d4, %d2, %d3;
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
  const std::string body = kThreeOfFour + R"(setp.lt.u32 %p2, %r1, 32;
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
