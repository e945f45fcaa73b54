// What L1 serves: loads whose lines the block has read before, but for those that look past it.
#include "simulator/cache/l1_cache.h"

#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr std::int64_t kKib = 1024;

/// Counters of the body of a kernel k(in, out): %d1 holds in, %d2 out, both with the thread's word added.
Counters counted(const std::string& body, std::uint32_t grid = 1, const std::string& target = "v100") {
  const ptx::Module module =
      ptx::parse(wrap_ptx("ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %r1, %tid.x;\n"
                          "mul.wide.u32 %d3, %r1, 4;\nadd.u64 %d1, %d1, %d3;\nadd.u64 %d2, %d2, %d3;\n" +
                          body + "\nret;"),
                 "t.ptx");
  DeviceMemory memory;
  Launch launch{.kernel = "k", .grid = {grid, 1, 1}, .block = {32, 1, 1}};
  launch.arguments = {Argument::pointer(upload(memory, std::vector<std::uint32_t>(65536), "in")),
                      Argument::pointer(memory.allocate(4096, "out"))};
  const LaunchResult r = run(module, launch, memory, device(target), {});
  EXPECT_TRUE(r.findings.empty());
  return r.counters;
}

constexpr const char* kLoad = "ld.global.u32 %r2, [%d1];\n";

TEST(L1, HoldsWhatTheBlockHasRead) {
  const Counters c = counted(std::string(kLoad) + kLoad + "ld.global.nc.u32 %r3, [%d1];");
  EXPECT_EQ(c.gld_transactions, 12u);
  EXPECT_EQ(c.l1_hit_sectors, 8u);
  EXPECT_EQ(c.l2_read_sectors, 4u);
}
TEST(L1, FillsSectorsAndNotLines) {
  // A word of each line, then all of it: one sector of four is there.
  const Counters c = counted(
      "ld.global.u32 %r2, [%d1];\nsub.u64 %d4, %d1, %d3;\nld.global.u32 %r3, [%d4+256];\n"
      "add.u64 %d4, %d4, %d3;\nld.global.u32 %r4, [%d4+256];");
  EXPECT_EQ(c.gld_transactions, 4u + 1 + 4);
  EXPECT_EQ(c.l1_hit_sectors, 1u);
}
TEST(L1, IsPassedByLoadsThatSaySo) {
  for (const char* past : {"ld.global.cg.u32", "ld.global.cv.u32", "ld.volatile.global.u32",
                           "ld.relaxed.gpu.global.u32", "ld.acquire.gpu.global.u32"}) {
    const std::string load = std::string(past) + " %r3, [%d1];\n";
    EXPECT_EQ(counted(load + load).l1_hit_sectors, 0u) << past;
    EXPECT_EQ(counted(load + kLoad).l1_hit_sectors, 0u) << past;  // nor does it bring lines in
  }
  EXPECT_EQ(counted(std::string("ld.global.ca.u32 %r3, [%d1];\n") + kLoad).l1_hit_sectors, 4u);
}
TEST(L1, IsEmptyBehindAFenceOfTheDevice) {
  EXPECT_EQ(counted(std::string(kLoad) + "membar.gl;\n" + kLoad).l1_hit_sectors, 0u);
  EXPECT_EQ(counted(std::string(kLoad) + "fence.acq_rel.gpu;\n" + kLoad).l1_hit_sectors, 0u);
  EXPECT_EQ(counted(std::string(kLoad) + "membar.cta;\n" + kLoad).l1_hit_sectors, 4u);
}
TEST(L1, WritesThroughAndDoesNotTakeStoresIn) {
  const std::string store = "st.global.u32 [%d2], %r1;\n", load = "ld.global.u32 %r2, [%d2];\n";
  const Counters stored = counted(store + store + load);
  EXPECT_EQ(stored.l2_write_sectors, 8u);
  EXPECT_EQ(stored.l1_hit_sectors, 0u);
  EXPECT_EQ(counted(store + load + store + load).l1_hit_sectors, 4u);  // a line that is there stays
}
TEST(L1, OfABlockBeginsEmpty) { EXPECT_EQ(counted(kLoad, 200).l1_hit_sectors, 0u); }
TEST(L1, OfGp104TakesOnlyNonCoherentLoads) {
  const std::string other = "ld.global.nc.u32 %r3, [%d1];\n";
  EXPECT_EQ(counted(std::string(kLoad) + kLoad, 1, "p4").l1_hit_sectors, 0u);
  EXPECT_EQ(counted(other + other, 1, "p4").l1_hit_sectors, 4u);
  EXPECT_EQ(counted(std::string(kLoad) + kLoad, 1, "p100").l1_hit_sectors, 4u);
}
TEST(L1, HoldsNoMoreThanItsBytes) {
  // 48 KiB in steps of a warp's line, twice: a P100's 24 KiB have dropped each line before it is read again.
  const std::string body = R"(
mov.u32 %r5, 0;
AGAIN:
mov.u64 %d4, %d1;
mov.u32 %r6, 0;
NEXT:
ld.global.u32 %r2, [%d4];
add.u64 %d4, %d4, 128;
add.u32 %r6, %r6, 1;
setp.lt.u32 %p1, %r6, 384;
@%p1 bra NEXT;
add.u32 %r5, %r5, 1;
setp.lt.u32 %p2, %r5, 2;
@%p2 bra AGAIN;)";
  EXPECT_GT(counted(body).l1_hit_sectors, 384u * 4 * 95 / 100);  // of V100's 128 KiB
  EXPECT_LT(counted(body, 1, "p100").l1_hit_sectors, 384u * 4 / 3);
}
TEST(L1, IsWhatSharedMemoryLeavesOfTheUnifiedCache) {
  EXPECT_EQ(l1_bytes_a_block(device("v100"), 0, 1), 128 * kKib);
  EXPECT_EQ(l1_bytes_a_block(device("v100"), 0, 8), 16 * kKib);
  EXPECT_EQ(l1_bytes_a_block(device("v100"), 9 * kKib, 1), (128 - 16) * kKib);
  EXPECT_EQ(l1_bytes_a_block(device("v100"), 48 * kKib, 2), (128 - 96) * kKib / 2);
  EXPECT_EQ(l1_bytes_a_block(device("t4"), 0, 1), (96 - 32) * kKib);
  EXPECT_EQ(l1_bytes_a_block(device("a100-sxm-80"), 0, 1), (192 - 8) * kKib);  // a block reserves 1 KiB
  EXPECT_EQ(l1_bytes_a_block(device("h200"), 227 * kKib, 1), (256 - 228) * kKib);
  EXPECT_EQ(l1_bytes_a_block(device("p100"), 48 * kKib, 1), 24 * kKib);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
