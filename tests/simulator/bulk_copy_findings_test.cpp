// Bulk copies: in which order what they read and write is there, and what is done wrong.
#include <fmt/format.h>

#include "tests/simulator/bulk_copies.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace bulk_copies;

TEST(BulkCopy, ReadersWhoDoNotWaitSeeOldContents) {
  // Without sanitizers, and a block that waits after all: the data lands when somebody looks.
  std::string body =
      without(kCopy, "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n@!%p2 bra WAIT;");
  body.insert(body.find("END:"),
              "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n@!%p2 bra WAIT;\n");
  const Outcome r = run_kernel(body);
  ASSERT_EQ(r.text(), "");
  EXPECT_EQ(r.out[5], 0xA5A5A5A5u + 1);
  expect_finding(body, "shared-race", {.sanitize = kRace});
  expect_finding(body, "uninitialised-read", {.sanitize = {.init = true}});
}

TEST(BulkCopy, StoresWantAProxyFenceBehindOrdinaryWrites) {
  const std::string fence = "fence.proxy.async.shared::cta;\nbar.sync 0;\n@!%p1 bra END;";
  const std::string none = without(kCopy, fence, "bar.sync 0;\n@!%p1 bra END;");
  expect_finding(none, "with no fence.proxy.async in between", {.sanitize = kRace});
  // By the thread that issues it, after the barrier, it serves as well.
  const std::string later =
      without(kCopy, fence, "bar.sync 0;\n@!%p1 bra END;\nfence.proxy.async.shared::cta;");
  EXPECT_EQ(run_kernel(later, {.sanitize = kBoth}).text(), "");
  // Before the writes it does not.
  std::string early = none;
  early.insert(early.find("st.shared.v4"), "fence.proxy.async;\n");
  expect_finding(early, "with no fence.proxy.async in between", {.sanitize = kRace});
  // Without the barrier other warps are not ordered at all.
  expect_finding(without(kCopy, fence, "fence.proxy.async.shared::cta;\n@!%p1 bra END;"),
                 "with nothing that orders it before", {.sanitize = kRace});
}

TEST(BulkCopy, LoadsWantAProxyFenceBehindOrdinaryWritesOfTheirSource) {
  std::string body = kCopy;
  body.insert(body.find("bar.sync 0;"),
              "cvt.u64.u32 %d9, %r2; add.u64 %d9, %d1, %d9;\nst.global.u32 [%d9], %r1;\n");
  expect_finding(body, "global-race: has a bulk copy read 4096 bytes at in+0, of which", {.sanitize = kRace});
  std::string fenced = body;
  fenced.insert(fenced.find("bar.sync 0;"), "fence.proxy.async;\n");
  EXPECT_EQ(run_kernel(fenced, {.sanitize = kBoth}).text(), "");
}

TEST(BulkCopy, WhatOrdinaryStoresWroteIsOverwrittenBehindAProxyFence) {
  const std::string shared = "add.u32 %r20, %r4, %r2;\nst.shared.v4.u32 [%r20], {%r1, %r1, %r1, %r1};\n";
  const std::string global = "cvt.u64.u32 %d9, %r2; add.u64 %d9, %d2, %d9;\nst.global.u32 [%d9], %r1;\n";
  for (const auto& [write, what] :
       {std::pair{shared, "shared-race: has a bulk copy write 4096 bytes at"},
        std::pair{global, "global-race: has a bulk copy write 4096 bytes at out"}}) {
    SCOPED_TRACE(what);
    // The tile is not added to: what is stored is what was loaded.
    std::string body = kCopy;
    const std::size_t add = body.find("add.u32 %r5, %r4, %r2;"), added = body.find("bar.sync 0;", add);
    body.erase(add, added - add);
    const std::size_t start = body.find("bar.sync 0;");
    body.insert(start, write);
    expect_finding(body, what, {.sanitize = kRace});
    expect_finding(body, "with no fence.proxy.async in between", {.sanitize = kRace});
    std::string by_writers = body, by_issuer = body;
    by_writers.insert(start + write.size(), "fence.proxy.async;\n");
    EXPECT_EQ(run_kernel(by_writers, {.sanitize = kBoth}).text(), "");
    by_issuer.insert(start + write.size() + std::string("bar.sync 0;\n").size(), "@%p1 fence.proxy.async;\n");
    EXPECT_EQ(run_kernel(by_issuer, {.sanitize = kBoth}).text(), "");
  }
}

TEST(BulkCopy, TheSourceOfAStoreBelongsToItUntilItIsRead) {
  const std::string wait = "cp.async.bulk.wait_group.read 0;\n";
  const std::string write = "@%p1 st.shared.u32 [%r4], %r1;\n";
  std::string after = kCopy;
  after.insert(after.find("END:"), write);
  EXPECT_EQ(run_kernel(after, {.sanitize = kBoth}).text(), "");
  std::string before = kCopy;
  before.insert(before.find(wait), write);
  expect_finding(before, "shared-race: writes 4 bytes at shared memory offset 128, which a bulk copy read",
                 {.sanitize = kRace});
  // Another warp is ordered by a barrier behind the wait.
  const std::string other = "setp.eq.u32 %p6, %r1, 99;\n@%p6 st.shared.u32 [%r4], %r1;\n";
  expect_finding(kCopy + "\n" + other, "shared-race", {.sanitize = kRace});
  EXPECT_EQ(run_kernel(kCopy + "\nbar.sync 0;\n" + other, {.sanitize = kBoth}).text(), "");
}

TEST(BulkCopy, WhatAStoreWroteIsThereAfterTheWholeWait) {
  const std::string read = "ld.global.u32 %r40, [%d2+64];\nst.global.u32 [%d2], %r40;\nEND:";
  expect_finding(without(kCopy, "END:", read),
                 "global-race: reads 4 bytes at out+64, which a bulk copy wrote", {.sanitize = kRace});
  const std::string whole = without(without(kCopy, "END:", read), "wait_group.read", "wait_group");
  const Outcome r = run_kernel(whole, {.sanitize = kBoth});
  ASSERT_EQ(r.text(), "");
  EXPECT_EQ(r.out[0], 18u);
}

TEST(BulkCopy, GroupsAreWaitedForInTheOrderOfTheirCommits) {
  // Two groups; the first is waited for, its source overwritten; then the second's, which is not.
  const std::string body = R"(
add.u32 %r5, %r4, %r2;
st.shared.v4.u32 [%r5], {%r1, %r1, %r1, %r1};
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p1 bra END;
cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r4], 2048;
cp.async.bulk.commit_group;
cp.async.bulk.global.shared::cta.bulk_group [%d2+2048], [%r4+2048], 2048;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 1;
st.shared.u32 [%r4{}], 77;
cp.async.bulk.wait_group 0;
END:)";
  const Outcome r = run_kernel(without(body, "{}", "+16"), {.sanitize = kBoth});
  ASSERT_EQ(r.text(), "");
  for (std::uint32_t k = 0; k < kWords; ++k) ASSERT_EQ(r.out[k], k / 4);
  expect_finding(without(body, "{}", "+2064"), "shared-race", {.sanitize = kRace});
}

TEST(BulkCopy, NothingMayBeUnderWayWhenABlockEnds) {
  expect_finding(without(kCopy, "cp.async.bulk.wait_group.read 0;"),
                 "block-lifetime: copies 4096 bytes at shared memory offset 128, and the block ends without");
  expect_finding(without(kCopy, "cp.async.bulk.commit_group;"), "block-lifetime");
  std::string more = kCopy;
  more.insert(more.find("END:"),
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d1], 64, [%r3];\n");
  expect_finding(more, "block-lifetime: copies 64 bytes to shared memory offset 128 of a block that ends");
}

TEST(BulkCopy, BytesNobodyExpectedOrSentAreADeadlock) {
  expect_finding(without(kCopy, "[%r3], 4096;", "[%r3], 4112;"), "wants 0 more arrivals and 16 more bytes");
  expect_finding(without(kCopy, "[%r3], 4096;", "[%r3], 4080;"), "was given 16 bytes too many");
}

TEST(BulkCopy, AddressesAndSizesAreCheckedAlways) {
  const std::string load = "[%r4], [%d1], 4096, [%r3]";
  expect_finding(without(kCopy, load, "[%r4], [%d1], 4092, [%r3]"), "misaligned: copies 4092 bytes");
  expect_finding(without(kCopy, load, "[%r4+8], [%d1], 4080, [%r3]"), "misaligned");
  expect_finding(without(kCopy, load, "[%r4], [%d1+4], 4080, [%r3]"), "misaligned");
  expect_finding(without(kCopy, load, "[%r4], [%d1+8176], 4096, [%r3]"), "out-of-bounds",
                 {.grid = {1, 1, 1}});
  expect_finding(without(kCopy, load, "[%r4], [%d1], 12304, [%r3]"), "out-of-bounds", {.grid = {8, 1, 1}});
  expect_finding(without(kCopy, load, "[%r4], [%d1], 4096, [%r3+4]"), "misaligned");
  expect_finding(without(kCopy, load, "[%r4], [%d1], 4096, [%r3+8]"), "where none is initialised");
  expect_finding(without(kCopy, load, "[%r3], [%d1], 4096, [%r3]"), "over the mbarrier at offset 0");
  const std::string store = "[%d2], [%r4], 4096";
  expect_finding(without(kCopy, store, "[%d2], [%r4], 4092"), "misaligned");
  expect_finding(without(kCopy, store, "[%d2+8], [%r4], 16"), "misaligned");
  expect_finding(without(kCopy, store, "[%d2+8192], [%r4], 4096"), "out-of-bounds");
  expect_finding(without(kCopy, store, "[%d2], [%r4+8192], 16"), "out-of-bounds");
}

TEST(BulkCopy, ReadsOfMemoryNobodyWroteAreFound) {
  std::string body = without(kCopy, "[%r4], [%d1], 4096, [%r3]", "[%r4], [%d2], 4096, [%r3]");
  expect_finding(body, "uninitialised-read: has a bulk copy read 4096 bytes at out+0",
                 {.sanitize = {.init = true}});
  expect_finding(without(kCopy, "[%d2], [%r4], 4096", "[%d2], [%r4+16], 4096"), "uninitialised-read",
                 {.sanitize = {.init = true}});
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
