// What blocks of a cluster do wrong.
#include <numeric>

#include "tests/simulator/clusters.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace clusters;

TEST(Cluster, FindingsOfWrongAddresses) {
  EXPECT_EQ(run_kernel(kernel(replaced(kExchange, "[%r8]", "[%r8+1024]")), {}).text(),
            "out-of-bounds: reads 4 bytes at shared memory offset 1088, past the 1088 bytes this block has");
  EXPECT_EQ(run_kernel(kernel(replaced(kExchange, "rem.u32 %r7, %r7, %r4;", "")), {}).text(),
            "out-of-bounds: reads 4 bytes of shared memory of block rank 4, of a cluster of 4");
  EXPECT_EQ(
      run_kernel(kernel(replaced(kExchange, "ld.shared::cluster.u32", "ld.shared.u32")), {}).text(),
      "out-of-bounds: reads 4 bytes of shared memory of block rank 0 where only that of the block itself may "
      "be (.shared::cta)");
  EXPECT_EQ(run_kernel(kernel(replaced(kExchange, "[%r8]", "[%r8+2]")), {}).text().substr(0, 10),
            "misaligned");
  EXPECT_EQ(run_kernel(kernel("mapa.u64 %d8, %d1, 0; ld.u32 %r9, [%d8];"), {}).text(),
            "out-of-bounds: takes an address that is not in shared memory");
}

/// Each way to wait that never ends, or is used wrongly.
TEST(Cluster, FindingsOfBarriers) {
  const auto text = [](const std::string& body) { return run_kernel(kernel(body), {}).text(); };
  const std::string arrive = "barrier.cluster.arrive;\n", wait = "barrier.cluster.wait;\n";
  // In block 2 the first warp waits for the second at a block barrier, and that for it at the cluster's.
  EXPECT_EQ(
      text("setp.eq.u32 %p1, %r3, 2;\nsetp.lt.u32 %p2, %r1, 32;\nand.pred %p1, %p1, %p2;\n@%p1 bra other;\n" +
           arrive + wait + "bar.sync 0;\nret;\nother:\nbar.sync 0;\n" + arrive + wait),
      "barrier-mismatch: the cluster barrier wants the 256 running threads of the cluster; 224 have arrived "
      "and the other 32 wait elsewhere");
  EXPECT_EQ(text("setp.eq.u32 %p1, %r3, 2;\n@%p1 bra over;\n" + arrive + wait + "over:\n"), "")
      << "who has ended need not come";
  EXPECT_EQ(text(wait), "barrier-mismatch: waits at the cluster barrier without having arrived at it");
  EXPECT_EQ(text(arrive + arrive + wait),
            "barrier-mismatch: arrives at the cluster barrier again without having waited for it");
  EXPECT_EQ(text("setp.lt.u32 %p1, %r1, 40;\n@%p1 bra over;\n" + arrive + wait + "over:\n").substr(0, 17),
            "divergent-barrier");
  EXPECT_EQ(text("setp.lt.u32 %p1, %r1, 40;\n@%p1 barrier.cluster.arrive.aligned;\n" + wait).substr(0, 17),
            "divergent-barrier");
  EXPECT_EQ(
      text("setp.lt.u32 %p1, %r1, 40;\n@%p1 barrier.cluster.arrive;\n@!%p1 barrier.cluster.arrive;\n" + wait),
      "")
      << "threads arrive for themselves";
}

TEST(Cluster, ReadingABlockThatHasEndedIsFoundWithoutSanitizers) {
  // Blocks end after the exchange is written but before all have read.
  const std::string early = kExchange.substr(0, kExchange.rfind("barrier.cluster.arrive"));
  EXPECT_EQ(run_kernel(kernel(early + "st.global.u32 [%d3], %r9;"), {}).text(),
            "block-lifetime: reads 4 bytes of shared memory of block rank 3 of the cluster, which has ended");
}

/// What only the order of accesses tells: the same program is found whatever the turns of the blocks.
TEST(Cluster, RaceSanitizerKnowsWhatBarriersOrder) {
  const auto text = [](const std::string& body) {
    return run_kernel(kernel(body), {.sanitize = {.race = true}}).text();
  };
  EXPECT_EQ(text(kExchange), "");
  const std::string first = "barrier.cluster.arrive;\nbarrier.cluster.wait;\nadd";
  // Relaxed arrival releases nothing.
  EXPECT_EQ(text(replaced(kExchange, first, "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\nadd"))
                .substr(0, 14),
            "block-lifetime");
  EXPECT_EQ(text("barrier.cluster.arrive; barrier.cluster.wait;\n" +
                 replaced(kExchange, first, "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\nadd"))
                .substr(0, 11),
            "shared-race");
  // Without the first barrier the other block may not even have begun.
  EXPECT_EQ(text(replaced(kExchange, first, "add")),
            "block-lifetime: reads 4 bytes of shared memory of block rank 1, which may not have started: no "
            "cluster "
            "barrier came before");
  // One-sided: rank 0 reads all others, which do not wait for that.
  const std::string gather = R"(
mov.u32 %r6, mine; add.u32 %r6, %r6, %r5; st.shared.u32 [%r6], %r2;
barrier.cluster.arrive; barrier.cluster.wait;
setp.ne.u32 %p1, %r3, 0;
@%p1 bra over;
mapa.shared::cluster.u32 %r8, %r6, 3;
ld.shared::cluster.u32 %r9, [%r8];
st.global.u32 [%d3], %r9;
over:)";
  EXPECT_EQ(text(gather),
            "block-lifetime: reads 4 bytes of shared memory of block rank 3 of the cluster, which has ended");
  // Where the reader comes first by the turns that blocks take, the others end without waiting all the same.
  EXPECT_EQ(text(replaced(replaced(gather, "%p1, %r3, 0", "%p1, %r3, 3"), "%r6, 3;", "%r6, 0;")),
            "block-lifetime: reads 4 bytes of shared memory of block rank 0, which ends without waiting for "
            "that: no cluster barrier came in between");
  EXPECT_EQ(text(gather + "\nbarrier.cluster.arrive; barrier.cluster.wait;"), "");
  EXPECT_EQ(text(gather + "\nbarrier.cluster.arrive.relaxed; barrier.cluster.wait;").substr(0, 14),
            "block-lifetime");
  // Writing what the neighbour has yet to read.
  EXPECT_EQ(text(replaced(kExchange, "ld.shared::cluster.u32 %r9, [%r8];",
                          "ld.shared::cluster.u32 %r9, [%r8]; st.shared.u32 [%r6], %r1;"))
                .substr(0, 11),
            "shared-race");
}

TEST(Cluster, AFlagInTheOtherBlockOrdersToo) {
  // Rank 1 writes data to rank 0 and then sets its flag; rank 0 waits for the flag, reads, and answers; rank
  // 1 waits.
  const std::string body = R"(
mov.u32 %r6, mine; mov.u32 %r20, 0; mov.u32 %r21, 1;
setp.ne.u32 %p1, %r1, 0;
@!%p1 st.shared.u32 [%r6], %r20;
barrier.cluster.arrive; barrier.cluster.wait;
@%p1 bra over;
setp.eq.u32 %p2, %r3, 0;
@%p2 bra reader;
mapa.shared::cluster.u32 %r8, %r6, 0;
mov.u32 %r22, 77;
st.shared::cluster.u32 [%r8+4], %r22;
st.release.cluster.shared::cluster.u32 [%r8], %r21;
wait1:
ld.acquire.cluster.shared.u32 %r9, [%r6];
setp.eq.u32 %p3, %r9, 0;
@%p3 bra wait1;
bra over;
reader:
wait0:
ld.acquire.cluster.shared.u32 %r9, [%r6];
setp.eq.u32 %p3, %r9, 0;
@%p3 bra wait0;
ld.shared.u32 %r10, [%r6+4];
st.global.u32 [%d3], %r10;
mapa.shared::cluster.u32 %r8, %r6, 1;
st.release.cluster.shared::cluster.u32 [%r8], %r21;
over:)";
  const Launched setup{.grid = {2, 1, 1}, .cluster = Dim3{2, 1, 1}, .sanitize = kBoth};
  const Outcome r = run_kernel(kernel(body), setup);
  EXPECT_EQ(r.text(), "");
  EXPECT_EQ(r.out[0], 77u);
  EXPECT_EQ(run_kernel(kernel(replaced(body, "st.release.cluster", "st.relaxed.cluster")), setup)
                .text()
                .substr(0, 11),
            "shared-race");
}

TEST(Cluster, InitSanitizerLooksIntoOtherBlocks) {
  EXPECT_EQ(
      run_kernel(kernel(replaced(kExchange, "[%r8]", "[%r8+512]")), {.sanitize = {.init = true}}).text(),
      "uninitialised-read: reads 4 bytes at shared memory offset 576 of block rank 0, of which byte 0 was "
      "never written");
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
