// Bulk copies: what they move and when, what they count, and what is done wrong.
#include <fmt/format.h>

#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// A kernel k(in, out) of sm_90: %d1 holds in, %d2 out, both at this block's 4096 bytes; %r1 tid, %r2 16 *
/// tid, %p1 whether it is thread 0, %r3 the address of `bar`, %r4 that of `data`.
std::string kernel(const std::string& body) {
  return ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 "
         "out)\n{\n"
         ".reg .pred %p<8>;\n.reg .b32 %r<60>;\n.reg .b64 %d<32>;\n"
         ".shared .align 128 .b8 bar[128];\n.shared .align 128 .b8 data[8192];\n"
         "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r30, %ctaid.x;\n"
         "mul.wide.u32 %d3, %r30, 4096; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;\n"
         "shl.b32 %r2, %r1, 4; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, bar; mov.u32 %r4, data;\n" +
         body + "\nret;\n}\n";
}

struct Launched {
  Dim3 grid{2, 1, 1}, block{256, 1, 1};
  std::optional<Dim3> cluster{};
  Sanitizers sanitize{};
  std::string device = "h100";
  int host_threads = 0;
};

constexpr std::uint32_t kWords = 1024;  // of a block

Outcome run_kernel(const std::string& body, const Launched& setup = {}) {
  const ptx::Module module = ptx::parse(kernel(body), "bulk.ptx");
  Launch launch{.kernel = "k", .grid = setup.grid, .block = setup.block};
  launch.cluster = setup.cluster;
  Options options;
  options.sanitize = setup.sanitize;
  options.host_threads = setup.host_threads;
  const std::size_t words = setup.grid.count() * kWords;
  return run_on_numbers(module, launch, options, setup.device, words, words, false);
}

constexpr Sanitizers kBoth{.race = true, .init = true}, kRace{.race = true};

void expect_finding(const std::string& body, const std::string& text, const Launched& setup = {}) {
  const Outcome r = run_kernel(body, setup);
  EXPECT_NE(r.text().find(text), std::string::npos) << "found: " << r.text() << "\nin:\n" << body;
  EXPECT_FALSE(r.result.findings.empty());
}

std::string without(std::string text, const std::string& part, const std::string& instead = "") {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) throw std::runtime_error("no " + part);
  return text.replace(at, part.size(), instead);
}

/// A tile is loaded in bulk, every thread adds one to its 16 bytes, and the tile is stored in bulk.
const std::string kCopy = R"(
@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
@%p1 fence.proxy.async.shared::cta;
bar.sync 0;
@!%p1 bra ISSUED;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 4096;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d1], 4096, [%r3];
ISSUED:
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra WAIT;
add.u32 %r5, %r4, %r2;
ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5];
add.u32 %r10, %r10, 1;
add.u32 %r11, %r11, 1;
add.u32 %r12, %r12, 1;
add.u32 %r13, %r13, 1;
st.shared.v4.u32 [%r5], {%r10, %r11, %r12, %r13};
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p1 bra END;
cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r4], 4096;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
END:)";

TEST(BulkCopy, MovesATileInAndOut) {
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    const Outcome r = run_kernel(kCopy, {.sanitize = what});
    ASSERT_EQ(r.text(), "");
    for (std::uint32_t k = 0; k < 2 * kWords; ++k) ASSERT_EQ(r.out[k], k + 2);
  }
}

TEST(BulkCopy, FormsOfTheDestinationAndCacheHintsAreAccepted) {
  std::string body = without(kCopy, "shared::cluster.global", "shared::cta.global");
  body = without(body, "complete_tx::bytes [%r4], [%d1], 4096, [%r3]",
                 "complete_tx::bytes.L2::cache_hint [%r4+0], [%d1+0], 4096, [%r3], %d20");
  body = without(body, "bulk_group [%d2], [%r4], 4096", "bulk_group.L2::cache_hint [%d2], [%r4], 4096, %d20");
  const Outcome r = run_kernel("mov.u64 %d20, 0;\n" + body, {.sanitize = kBoth});
  ASSERT_EQ(r.text(), "");
  EXPECT_EQ(r.out[17], 19u);
}

TEST(BulkCopy, CountsOneRequestAndTheSectorsItMoves) {
  const Outcome r = run_kernel(kCopy);
  const Counters& c = r.result.counters;
  EXPECT_EQ(c.bulk_copies, 4u);
  EXPECT_EQ(c.bulk_sectors, 4u * 128);
  EXPECT_EQ(c.gld_requests, 2u);
  EXPECT_EQ(c.gst_requests, 2u);
  EXPECT_EQ(c.gld_transactions, 2u * 128);
  EXPECT_EQ(c.gst_transactions, 2u * 128);
  EXPECT_EQ(c.gld_bytes, 2u * 4096);
  EXPECT_EQ(c.gst_bytes, 2u * 4096);
  EXPECT_EQ(c.l1_hit_sectors, 0u);
  EXPECT_EQ(c.l2_read_sectors, 2u * 128);
  EXPECT_EQ(c.dram_read_transactions, 2u * 128);
  EXPECT_EQ(c.dram_write_transactions, 2u * 128);
  // 8 warps of each block read and write their tile; each copy is 32 wavefronts of 128 bytes.
  EXPECT_EQ(c.shared_load_requests, 2u * (8 + 32));
  EXPECT_EQ(c.shared_store_requests, 2u * (8 + 32));
}

/// Eight tiles of 512 bytes through two stages. Thread 0 issues; all read, and tell an empty barrier of each
/// stage when they have. The sums of what each thread read go out.
std::string pipeline(int stages) {
  return fmt::format(R"(
@!%p1 bra READY;
mov.u32 %r40, 0;
INIT:
shl.b32 %r41, %r40, 4;
add.u32 %r41, %r3, %r41;
mbarrier.init.shared::cta.b64 [%r41], 1;
mbarrier.init.shared::cta.b64 [%r41+8], 128;
add.u32 %r40, %r40, 1;
setp.lt.u32 %p2, %r40, {0};
@%p2 bra INIT;
fence.proxy.async.shared::cta;
READY:
bar.sync 0;
mov.u32 %r20, 0;
mov.u32 %r21, 0;
mov.u32 %r50, 0;
shl.b32 %r51, %r1, 2;
TILE:
// Issue up to {0} tiles ahead.
@!%p1 bra ISSUED;
ISSUE:
add.u32 %r22, %r20, {0};
setp.ge.u32 %p2, %r21, %r22;
@%p2 bra ISSUED;
setp.ge.u32 %p2, %r21, 8;
@%p2 bra ISSUED;
rem.u32 %r23, %r21, {0};
div.u32 %r24, %r21, {0};
and.b32 %r24, %r24, 1;
xor.b32 %r24, %r24, 1;
shl.b32 %r25, %r23, 4;
add.u32 %r25, %r3, %r25;
EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r25+8], %r24;
@!%p3 bra EMPTY;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r25], 512;
shl.b32 %r26, %r23, 9;
add.u32 %r26, %r4, %r26;
mul.wide.u32 %d10, %r21, 512;
add.u64 %d10, %d1, %d10;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r26], [%d10], 512, [%r25];
add.u32 %r21, %r21, 1;
bra.uni ISSUE;
ISSUED:
rem.u32 %r33, %r20, {0};
div.u32 %r34, %r20, {0};
and.b32 %r34, %r34, 1;
shl.b32 %r35, %r33, 4;
add.u32 %r35, %r3, %r35;
FULL: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r35], %r34;
@!%p4 bra FULL;
shl.b32 %r36, %r33, 9;
add.u32 %r36, %r4, %r36;
add.u32 %r36, %r36, %r51;
ld.shared.u32 %r37, [%r36];
add.u32 %r50, %r50, %r37;
mbarrier.arrive.shared::cta.b64 _, [%r35+8];
add.u32 %r20, %r20, 1;
setp.lt.u32 %p5, %r20, 8;
@%p5 bra TILE;
cvt.u64.u32 %d11, %r51;
add.u64 %d11, %d2, %d11;
st.global.u32 [%d11], %r50;)",
                     stages);
}

TEST(BulkCopy, ARingOfStagesOverlapsLoadsWithWhatReadsThem) {
  for (const int stages : {1, 2, 3, 4}) {
    for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
      const Outcome r = run_kernel(pipeline(stages), {.block = {128, 1, 1}, .sanitize = what});
      ASSERT_EQ(r.text(), "") << stages;
      for (std::uint32_t b = 0; b < 2; ++b)
        for (std::uint32_t t = 0; t < 128; ++t) {
          std::uint32_t sum = 0;
          for (std::uint32_t tile = 0; tile < 8; ++tile) sum += b * kWords + tile * 128 + t + 1;
          ASSERT_EQ(r.out[b * kWords + t], sum);
        }
    }
  }
}

TEST(BulkCopy, AFileOfPipelinesRuns) {
  const ptx::Module module = fixture("bulk.ptx");
  constexpr std::uint32_t kTiles = 5, kElements = kTiles * 512;
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    DeviceMemory memory(true);
    std::vector<std::uint32_t> numbers(kElements);
    for (std::uint32_t k = 0; k < kElements; ++k) numbers[k] = k;
    const DeviceAddress in = upload(memory, numbers, "in");
    const DeviceAddress out = memory.allocate(kElements * 4, "out");
    Launch launch{.kernel = "doubled", .grid = {1, 1, 1}, .block = {96, 1, 1}};
    launch.arguments = {Argument::pointer(in), Argument::pointer(out), Argument::i32(kTiles)};
    Options options;
    options.sanitize = what;
    const LaunchResult r = run(module, launch, memory, device("h200"), options);
    ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
    const auto result = download<std::uint32_t>(memory, out, kElements);
    for (std::uint32_t k = 0; k < kElements; ++k) ASSERT_EQ(result[k], 2 * k);
    // Two tiles are under way but in the last turn.
    EXPECT_DOUBLE_EQ(r.bytes_in_flight, 2048 * (4 * 2 + 1) / 5.0);
    Launch cluster{.kernel = "arrivals", .grid = {2, 1, 1}, .block = {64, 1, 1}, .cluster = Dim3{2, 1, 1}};
    cluster.arguments = {Argument::pointer(out)};
    const LaunchResult a = run(module, cluster, memory, device("h200"), options);
    ASSERT_TRUE(a.findings.empty()) << a.findings[0].message;
    EXPECT_EQ(download<std::uint32_t>(memory, out, 64)[63], 1u) << "the last arrival that was still pending";
  }
}

TEST(BulkCopy, MoreStagesHideMoreOfTheLatency) {
  const Launched setup{.grid = {264, 1, 1}, .block = {128, 1, 1}};
  double before = 1e9;
  for (const int stages : {1, 2, 4}) {
    const Outcome r = run_kernel(pipeline(stages), setup);
    ASSERT_EQ(r.text(), "");
    EXPECT_LT(r.result.time.latency_us, before) << stages;
    before = r.result.time.latency_us;
  }
}

TEST(BulkCopy, MisuseOfARingRaces) {
  const Launched setup{.block = {128, 1, 1}, .sanitize = kRace};
  // Nobody waits for the data.
  expect_finding(without(without(pipeline(2), "@!%p4 bra FULL;"),
                         "FULL: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r35], %r34;"),
                 "with no wait for its mbarrier", setup);
  // The producer does not wait for those who read the stage before.
  expect_finding(
      without(without(pipeline(2), "@!%p3 bra EMPTY;"), "add.u32 %r22, %r20, 2;", "mov.u32 %r22, 8;"),
      "shared-race", setup);
  // All read the other stage than the one they waited for.
  expect_finding(
      without(pipeline(2), "shl.b32 %r36, %r33, 9;", "xor.b32 %r36, %r33, 1; shl.b32 %r36, %r36, 9;"),
      "with no wait for its mbarrier", setup);
  // Readers say they have read before they have.
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%r35+8];\n";
  std::string early = without(pipeline(1), arrive);
  early.insert(early.find("ld.shared.u32 %r37"), arrive);
  expect_finding(early, "shared-race", setup);
}

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

/// Each block of a cluster of two loads its tile into the shared memory of the other.
const std::string kRemote = R"(
mov.u32 %r20, %cluster_ctarank;
xor.b32 %r21, %r20, 1;
@!%p1 bra INITED;
mbarrier.init.shared::cta.b64 [%r3], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 4096;
fence.mbarrier_init.release.cluster;
INITED:
barrier.cluster.arrive;
barrier.cluster.wait;
@!%p1 bra WAIT;
mapa.shared::cluster.u32 %r22, %r4, %r21;
mapa.shared::cluster.u32 %r23, %r3, %r21;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r22], [%d1], 4096, [%r23];
WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra WAIT;
add.u32 %r5, %r4, %r2;
ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5];
cvt.u64.u32 %d9, %r2;
add.u64 %d9, %d2, %d9;
st.global.v4.u32 [%d9], {%r10, %r11, %r12, %r13};
barrier.cluster.arrive;
barrier.cluster.wait;)";

TEST(BulkCopy, ReachesSharedMemoryOfOtherBlocksOfTheCluster) {
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    const Outcome r = run_kernel(kRemote, {.grid = {4, 1, 1}, .cluster = Dim3{2, 1, 1}, .sanitize = what});
    ASSERT_EQ(r.text(), "");
    for (std::uint32_t k = 0; k < 4 * kWords; ++k) ASSERT_EQ(r.out[k], (k ^ kWords) + 1);
  }
  expect_finding(without(kRemote, "shared::cluster.global", "shared::cta.global"), ".shared::cta",
                 {.cluster = Dim3{2, 1, 1}});
  expect_finding(without(kRemote, "4096, [%r23]", "4096, [%r3]"), "not in the shared memory it copies to",
                 {.cluster = Dim3{2, 1, 1}});
}

TEST(BulkCopy, CountersAndFindingsAreTheSameWhateverTheHostThreads) {
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    const Launched alone{.grid = {600, 1, 1}, .sanitize = what, .host_threads = 1};
    Launched two = alone;
    two.host_threads = 2;
    const Outcome one = run_kernel(kCopy, alone), both = run_kernel(kCopy, two);
    ASSERT_EQ(one.text(), "");
    EXPECT_EQ(both.text(), "");
    EXPECT_EQ(both.result.host_threads, 2);
    EXPECT_EQ(one.out, both.out);
    EXPECT_EQ(counter_list(one.result.counters), counter_list(both.result.counters));
    EXPECT_EQ(one.result.sanitized.race_accesses, both.result.sanitized.race_accesses);
    EXPECT_EQ(one.result.sanitized.init_accesses, both.result.sanitized.init_accesses);
    EXPECT_EQ(one.result.time_us, both.result.time_us);
    // All blocks store their first tile: the launch is undone and looked at in order.
    const std::string meets = without(kCopy, "[%d2], [%r4], 4096", "[%d12], [%r4], 4096");
    const std::string base = "ld.param.u64 %d12, [out];\n";
    if (!what.race) continue;
    const Outcome first = run_kernel(base + meets, alone), second = run_kernel(base + meets, two);
    EXPECT_NE(first.text().find("global-race"), std::string::npos) << first.text();
    EXPECT_EQ(first.text(), second.text());
  }
}

TEST(BulkCopy, DevicesWithoutThemRefuseTheKernel) {
  try {
    run_kernel(kCopy, {.device = "a100"});
    FAIL() << "ran";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("sm_80"), std::string::npos) << e.what();
  }
}

TEST(BulkCopy, FormsThatAreNotSupportedAreRefused) {
  for (const char* form :
       {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r4], [%d1], "
        "16, "
        "[%r3], %r5;",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4], [%r4], 16, [%r3];",
        "cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r4];",
        "cp.async.bulk.global.shared::cta.bulk_group [%d2], %r4, 16;",
        "cp.async.bulk.global.shared::cta.bulk_group [%r2], [%r4], 16;", "cp.async.bulk.wait_group %r1;",
        "cp.async.bulk.commit_group 1;", "cp.async.bulk.wait_group.write 0;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%d2], [%r4], 16;"})
    EXPECT_THROW(ptx::parse(kernel(form), "bulk.ptx"), Error) << form;
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
