// Bulk copies: what they move, and what they count.
#include "core/base/error.h"
#include "tests/simulator/bulk_copies.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace bulk_copies;

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
        "cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r4];",
        "cp.async.bulk.global.shared::cta.bulk_group [%d2], %r4, 16;",
        "cp.async.bulk.global.shared::cta.bulk_group [%r2], [%r4], 16;", "cp.async.bulk.wait_group %r1;",
        "cp.async.bulk.commit_group 1;", "cp.async.bulk.wait_group.write 0;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%d2], [%r4], 16;"})
    EXPECT_THROW(ptx::parse(kernel(form), "bulk.ptx"), Error) << form;
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
