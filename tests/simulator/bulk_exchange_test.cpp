// Bulk copies and reductions from a block's shared memory to that of a block of the cluster.
#include "core/base/error.h"
#include "simulator/isa/forms.h"
#include "simulator/isa/isa.h"
#include "simulator/machine/atomics.h"
#include "tests/simulator/bulk_copies.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace bulk_copies;

/// Each block of a cluster of two copies its tile to the other one's shared memory, behind that one's tile.
const std::string kExchange = R"(
mov.u32 %r20, %cluster_ctarank; xor.b32 %r21, %r20, 1;
@!%p1 bra INITED;
mbarrier.init.shared::cta.b64 [%r3], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 4096;
fence.mbarrier_init.release.cluster;
INITED:
add.u32 %r5, %r4, %r2;
cvt.u64.u32 %d9, %r2; add.u64 %d10, %d1, %d9; add.u64 %d11, %d2, %d9;
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d10];
st.shared.v4.u32 [%r5], {%r10, %r11, %r12, %r13};
fence.proxy.async.shared::cta;
barrier.cluster.arrive; barrier.cluster.wait;
@!%p1 bra WAIT;
add.u32 %r22, %r4, 4096;
mapa.shared::cluster.u32 %r22, %r22, %r21; mapa.shared::cluster.u32 %r23, %r3, %r21;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r22], [%r4], 4096, [%r23];
WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra WAIT;
ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5+4096];
st.global.v4.u32 [%d11], {%r10, %r11, %r12, %r13};
barrier.cluster.arrive; barrier.cluster.wait;)";

const std::string kCopyLine =
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r22], [%r4], 4096, [%r23];\n";
const std::string kWaitLoop =
    "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0;\n@!%p2 bra WAIT;\n";
const std::string kOthersTile = "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5+4096];\n";
const std::string kLastBarrier = "barrier.cluster.arrive; barrier.cluster.wait;";

Launched of_two(Sanitizers what = {}) {
  return {.grid = {4, 1, 1}, .cluster = Dim3{2, 1, 1}, .sanitize = what};
}
std::string without_last_barrier() { return kExchange.substr(0, kExchange.rfind(kLastBarrier)); }

TEST(BulkExchange, MovesATileToAnotherBlockOfTheCluster) {
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    const Outcome r = run_kernel(kExchange, of_two(what));
    ASSERT_EQ(r.text(), "");
    for (std::uint32_t k = 0; k < 4 * kWords; ++k) ASSERT_EQ(r.out[k], (k ^ kWords) + 1);
  }
}

TEST(BulkExchange, MovesATileWithinTheBlock) {
  const std::string own = without(without(kExchange, "mov.u32 %r20, %cluster_ctarank; xor.b32 %r21, %r20, 1;",
                                          "mov.u32 %r21, %cluster_ctarank;"),
                                  kLastBarrier, "bar.sync 0;");
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    const Outcome r = run_kernel(own, {.sanitize = what});
    ASSERT_EQ(r.text(), "");
    for (std::uint32_t k = 0; k < 2 * kWords; ++k) ASSERT_EQ(r.out[k], k + 1);
    EXPECT_EQ(r.result.counters.remote_shared_requests, 0u);
    EXPECT_EQ(r.result.counters.shared_store_requests, 2u * (8 + 32));
  }
}

TEST(BulkExchange, AddressesMayHave64BitsAndModifiersAnyOrder) {
  const std::string wide = without(
      kExchange, kCopyLine,
      "cvt.u64.u32 %d20, %r22; cvt.u64.u32 %d21, %r4; cvt.u64.u32 %d22, %r23; mov.u32 %r24, 2048;\n"
      "cp.async.bulk.mbarrier::complete_tx::bytes.shared::cluster.shared::cta [%d20], [%r4], %r24, [%r23];\n"
      "cp.async.bulk.shared::cluster.mbarrier::complete_tx::bytes.shared::cta [%r22+2048], [%d21+2048], "
      "2048, "
      "[%d22];\n");
  const Outcome r = run_kernel(wide, of_two(kBoth));
  ASSERT_EQ(r.text(), "");
  for (std::uint32_t k = 0; k < 4 * kWords; ++k) ASSERT_EQ(r.out[k], (k ^ kWords) + 1);
}

TEST(BulkExchange, CountsWhatItDoesToSharedMemory) {
  const Counters c = run_kernel(kExchange, of_two()).result.counters;
  EXPECT_EQ(c.bulk_copies, 4u);
  EXPECT_EQ(c.bulk_sectors, 0u);
  EXPECT_EQ(c.remote_shared_requests, 4u);
  EXPECT_EQ(c.remote_shared_sectors, 4u * 128);
  EXPECT_EQ(c.gld_requests, 4u * 8) << "of threads alone";
  EXPECT_EQ(c.gst_requests, 4u * 8);
  // 8 warps of each block read a tile; the copy reads one in 32 wavefronts of 128 bytes.
  EXPECT_EQ(c.shared_load_requests, 4u * (8 + 32));
  EXPECT_EQ(c.shared_store_requests, 4u * 8);
}

/// The source is read when somebody looks at the mbarrier: until then, and until a thread is ordered after
/// that, its bytes have to stay.
TEST(BulkExchange, ASourceThatIsOverwrittenTooSoonIsFound) {
  const std::string overwrite = "st.shared.u32 [%r5], 7;\n";
  expect_finding(without(kExchange, kCopyLine, kCopyLine + overwrite),
                 "is reading, with no wait for its mbarrier", of_two(kRace));
  // Own tiles have arrived, which says nothing of those that were sent.
  const std::string after_wait = without(kExchange, kWaitLoop, kWaitLoop + overwrite);
  const Outcome r = run_kernel(after_wait, of_two(kRace));
  EXPECT_TRUE(r.text().starts_with("shared-race: writes 4 bytes")) << r.text();
  // The barrier of the cluster comes after the other block's wait.
  EXPECT_EQ(run_kernel(kExchange + "\n" + overwrite, of_two(kRace)).text(), "");
  // What arrives in bulk overwrites it no less.
  expect_finding(
      without(kExchange, kCopyLine,
              kCopyLine + "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], "
                          "[%d1], 4096, [%r3];\n"),
      "has a bulk copy write 4096 bytes at", of_two(kRace));
  EXPECT_EQ(run_kernel(without(kExchange, kCopyLine, kCopyLine + overwrite), of_two()).out[kWords], 7u)
      << "moved late, so that it shows";
}

TEST(BulkExchange, RacesAtItsEndsAreFound) {
  // What the block that runs first reads, the other one's copy overwrites.
  expect_finding(without(kExchange, kWaitLoop, "WAIT:\n" + kOthersTile),
                 "shared-race: has a bulk copy write 4096", of_two(kRace));
  expect_finding(without(kExchange, "fence.proxy.async.shared::cta;\n"),
                 "with no fence.proxy.async in between", of_two(kRace));
  expect_finding(without(kExchange, "add.u32 %r22, %r4, 4096;", "add.u32 %r22, %r4, 2048;"),
                 "is writing, with no wait for its mbarrier", of_two(kRace));
  expect_finding(
      without(kExchange, "mapa.shared::cluster.u32 %r22, %r22, %r21;", "add.u32 %r22, %r4, 2048;\n") + "\n",
      "completes an mbarrier that is not in the shared memory it copies to", of_two());
  const std::string onto_itself = without(without(kExchange, "xor.b32 %r21, %r20, 1;", "mov.u32 %r21, %r20;"),
                                          "%r4, 4096;\nmapa", "%r4, 2048;\nmapa");
  expect_finding(onto_itself, "onto themselves", of_two(kRace));
}

TEST(BulkExchange, BytesThatWereNeverWrittenAreFound) {
  expect_finding(without(kExchange, "[%r22], [%r4], 4096", "[%r22], [%r4+2048], 4096"),
                 "has a bulk copy read 4096 bytes", of_two({.init = true}));
}

TEST(BulkExchange, MayNotBeUnderWayWhenABlockEnds) {
  // Nobody waits for it: neither the source's block may end, nor the destination's.
  expect_finding(without(without_last_barrier(), kWaitLoop, "WAIT:\n"),
                 "ends before any thread has waited for them", of_two());
  expect_finding(
      without(without(kExchange, "xor.b32 %r21, %r20, 1;", "mov.u32 %r21, %r20;"), kWaitLoop, "WAIT:\n"),
      "of a block that ends without waiting for them at the mbarrier", of_two());
  // Block 0 sends, and ends before block 1 looks.
  const std::string ends = without(without(without_last_barrier(), "@!%p1 bra WAIT;\n",
                                           "setp.eq.u32 %p3, %r20, 1; @%p3 bra WAIT; @!%p1 ret;\n"),
                                   kCopyLine, kCopyLine + "ret;\n");
  expect_finding(ends, "ends before any thread has waited for them", of_two());
}

TEST(BulkExchange, WhatIsOutsideOrMisalignedIsFound) {
  expect_finding(without(kExchange, "[%r22], [%r4], 4096", "[%r22], [%r22], 4096"), "out-of-bounds",
                 of_two());
  expect_finding(without(kExchange, "[%r22], [%r4], 4096", "[%r22], [%r4+8], 4096"), "misaligned", of_two());
  expect_finding(without(kExchange, "[%r22], [%r4], 4096", "[%r22+4096], [%r4], 4096"), "out-of-bounds",
                 of_two());
  expect_finding("mov.u32 %r24, 24;\n" + without(kExchange, "[%r4], 4096, [%r23]", "[%r4], %r24, [%r23]"),
                 "no multiple of 16", of_two());
  expect_finding(without(kExchange, "[%r22], [%r4], 4096", "[%r22], [%r3], 4096"), "over the mbarrier",
                 of_two());
}

/// Behind each tile lies a copy of it with 5 more in each word, to which the other block's tile is reduced.
TEST(BulkExchange, EveryReductionIsThatOfAtomics) {
  int forms = 0;
  for (const std::string_view pattern : ptx::bulk_patterns()) {
    if (!pattern.starts_with("cp.reduce.async.bulk.shared")) continue;
    for (const std::string& form : expand_spelling(pattern)) {
      ++forms;
      std::string body = without(kExchange, kCopyLine, form + " [%r22], [%r4], 4096, [%r23];\n");
      body = without(
          body, "fence.proxy.async.shared::cta;",
          "add.u32 %r40, %r10, 5; add.u32 %r41, %r11, 5; add.u32 %r42, %r12, 5; add.u32 %r43, %r13, 5;\n"
          "st.shared.v4.u32 [%r5+4096], {%r40, %r41, %r42, %r43};\nfence.proxy.async.shared::cta;");
      const std::size_t dot = form.rfind('.'), before = form.rfind('.', dot - 1);
      const auto atomic = find_atomic(form.substr(before + 1, dot - before - 1), form.substr(dot + 1));
      ASSERT_TRUE(atomic) << form;
      const std::uint32_t words = static_cast<std::uint32_t>(atomic->bytes) / 4;
      for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
        const Outcome r = run_kernel(body, of_two(what));
        ASSERT_EQ(r.text(), "") << form;
        for (std::uint32_t k = 0; k < 4 * kWords; k += words) {
          std::uint32_t expected[2] = {k + 6, k + 7}, sent[2] = {(k ^ kWords) + 1, (k ^ kWords) + 2};
          std::uint64_t value = sent[0];
          if (words == 2) value |= std::uint64_t{sent[1]} << 32;
          bool changed = false;
          apply_atomic(atomic->op, reinterpret_cast<std::byte*>(expected), value, 0, changed);
          for (std::uint32_t w = 0; w < words; ++w) ASSERT_EQ(r.out[k + w], expected[w]) << form << " " << k;
        }
      }
    }
  }
  EXPECT_EQ(forms, 12);
  expect_finding(
      without(kExchange, kCopyLine,
              "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 "
              "[%r22], [%r4], 4096, [%r23];\n"),
      "never written", of_two({.init = true}));
}

/// As ptxas 13.0 refuses them.
TEST(BulkExchange, OtherSpellingsAreRefused) {
  const std::string tail = ".mbarrier::complete_tx::bytes [%r4], [%r4], 16, [%r3];";
  for (const std::string& form :
       {"cp.async.bulk.shared::cluster.shared" + tail, "cp.async.bulk.shared::cta.shared::cta" + tail,
        "cp.async.bulk.shared::cluster.shared::cluster" + tail,
        "cp.async.bulk.shared::cta.shared::cluster" + tail,
        std::string(
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.L2::cache_hint [%r4], "
            "[%r4], 16, [%r3], %d5;"),
        std::string(
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster "
            "[%r4], [%r4], 16, [%r3], %r5;"),
        std::string("cp.async.bulk.shared::cluster.shared::cta.bulk_group [%r4], [%r4], 16;"),
        std::string(
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4], [%r4], 16;"),
        std::string(
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [%r4], "
            "[%r4], 16, [%r3];")})
    EXPECT_THROW(ptx::parse(kernel(form), "bulk.ptx"), Error) << form;
}

TEST(BulkExchange, IsTheSameWhateverTheHostThreads) {
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    Launched alone = of_two(what);
    alone.grid = {600, 1, 1};
    alone.host_threads = 1;
    Launched two = alone;
    two.host_threads = 2;
    const Outcome one = run_kernel(kExchange, alone), both = run_kernel(kExchange, two);
    ASSERT_EQ(one.text(), "");
    EXPECT_EQ(both.text(), "");
    EXPECT_EQ(one.out, both.out);
    EXPECT_EQ(counter_list(one.result.counters), counter_list(both.result.counters));
    EXPECT_EQ(one.result.time_us, both.result.time_us);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
