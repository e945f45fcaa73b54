// Tiles loaded in bulk through a ring of stages.
#include <fmt/format.h>

#include "tests/simulator/bulk_copies.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace bulk_copies;

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

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
