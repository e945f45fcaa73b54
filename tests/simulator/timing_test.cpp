// Times of launches whose blocks are not alike, of tails and of phases; and what limits each.
#include "occupancy_model/timing_text.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// Runs the body of a kernel k(in, out) on a V100: %d1 holds in, %d2 out, %r1 tid, %r2 ctaid; in and out of
/// 32 MB, in is zero.
LaunchResult timed(const std::string& body, std::uint32_t grid, std::uint32_t block) {
  const ptx::Module module =
      ptx::parse(wrap_ptx("ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %r1, %tid.x;\n"
                          "mov.u32 %r2, %ctaid.x;\n" +
                          body + "\nret;"),
                 "t.ptx");
  DeviceMemory memory;
  constexpr std::size_t kBytes = 32 << 20;
  Launch launch{.kernel = "k", .grid = {grid, 1, 1}, .block = {block, 1, 1}};
  launch.arguments = {Argument::pointer(memory.adopt(std::vector<std::byte>(kBytes), "in")),
                      Argument::pointer(memory.adopt(std::vector<std::byte>(kBytes), "out"))};
  return run(module, launch, memory, device("v100"), {});
}
double us(const LaunchResult& r) { return r.time_us - device("v100").launch_us; }

/// A loop of 8 additions, %r10 times.
const std::string kLoop = R"(
mov.u32 %r11, 0;
AGAIN:
setp.ge.u32 %p1, %r11, %r10;
@%p1 bra END;
add.u32 %r12, %r12, %r1; add.u32 %r12, %r12, %r2; add.u32 %r12, %r12, %r1; add.u32 %r12, %r12, %r2;
add.u32 %r12, %r12, %r1; add.u32 %r12, %r12, %r2; add.u32 %r12, %r12, %r1;
add.u32 %r11, %r11, 1;
bra AGAIN;
END:
st.global.u32 [%d2], %r12;
)";
const std::string kAllAlike = "mov.u32 %r10, 2000;" + kLoop;
const std::string kFirstBlockAlone = "setp.eq.u32 %p2, %r2, 0; selp.u32 %r10, 2000, 1, %p2;" + kLoop;

TEST(SimulatedTime, TheBusiestBlockDecides) {
  const LaunchResult alike = timed(kAllAlike, 80, 512), one = timed(kFirstBlockAlone, 80, 512);
  EXPECT_LT(one.counters.issue_slots, alike.counters.issue_slots / 50);
  EXPECT_NEAR(us(one), us(alike), 0.02 * us(alike));
  EXPECT_EQ(limiter(alike.time), "instruction issue");
  EXPECT_EQ(limiter(one.time), "uneven work, tail");
}

TEST(SimulatedTime, UnevenBlocksOfManyWavesEvenOut) {
  // Every second block works: what SMs with idle blocks have left they take from the next wave.
  const std::string body = "and.b32 %r3, %r2, 1; mul.lo.u32 %r10, %r3, 200;" + kLoop;
  const LaunchResult half = timed(body, 16 * 320, 512),
                     all = timed("mov.u32 %r10, 100;" + kLoop, 16 * 320, 512);
  EXPECT_NEAR(us(half), us(all), 0.05 * us(all));
}

TEST(SimulatedTime, ATailTakesAsLongAsAWaveOfItsBlocks) {
  // 4 blocks of 512 threads an SM on 80 SMs.
  const double wave = us(timed(kAllAlike, 320, 512)), block = us(timed(kAllAlike, 80, 512));
  const LaunchResult tailed = timed(kAllAlike, 321, 512);
  EXPECT_NEAR(us(tailed), wave + block, 0.02 * wave);
  EXPECT_NEAR(tailed.time.tail_us, block, 0.05 * block);
}

TEST(SimulatedTime, FewBlocksAreNoFasterThanOneOnEachSm) {
  const double full = us(timed(kAllAlike, 80, 512));
  const LaunchResult few = timed(kAllAlike, 8, 512);
  EXPECT_NEAR(us(few), full, 0.02 * full);
  EXPECT_EQ(limiter(few.time), "uneven work, tail");
}

/// in: a counter at byte 4 * 1024 * phase. Every block waits for all. `peeled`: the first look is before the
/// loop, as compilers have it, and the block that comes last looks no more.
std::string grid_barrier(int phase, int blocks, bool peeled = false) {
  const std::string at = std::to_string(4096 * (phase + 1)), n = std::to_string(phase);
  return "bar.sync 0;\nsetp.ne.u32 %p3, %r1, 0;\n@%p3 bra WAITED" + n +
         ";\nfence.acq_rel.gpu;\nred.global.add.u32 [%d1+" + at + "], 1;\n" +
         (peeled ? "ld.acquire.gpu.u32 %r20, [%d1+" + at + "];\nsetp.ge.u32 %p4, %r20, " +
                       std::to_string(blocks) + ";\n@%p4 bra WAITED" + n + ";\n"
                 : "") +
         "POLL" + n + ":\nld.acquire.gpu.u32 %r20, [%d1+" + at + "];\nsetp.lt.u32 %p4, %r20, " +
         std::to_string(blocks) + ";\n@%p4 bra POLL" + n + ";\nfence.acq_rel.gpu;\nWAITED" + n +
         ":\nbar.sync 0;\n";
}
std::string renamed(std::string text, const std::string& suffix) {
  for (const std::string label : {"AGAIN", "END"})
    for (std::size_t at = 0; (at = text.find(label, at)) != std::string::npos;
         at += label.size() + suffix.size())
      text.insert(at + label.size(), suffix);
  return text;
}

TEST(SimulatedTime, EachPhaseTakesAsLongAsItsBusiestBlock) {
  // First block 0 works, then block 1: they cannot at the same time.
  const auto of_block = [](int b) {
    return "setp.eq.u32 %p2, %r2, " + std::to_string(b) + "; selp.u32 %r10, 2000, 1, %p2;" +
           renamed(kLoop, std::to_string(b));
  };
  const LaunchResult one = timed(kFirstBlockAlone, 80, 512);
  for (const bool peeled : {false, true}) {
    const LaunchResult two = timed(of_block(0) + grid_barrier(0, 80, peeled) + of_block(1), 80, 512);
    EXPECT_EQ(two.counters.grid_barriers, 1u);
    EXPECT_NEAR(us(two) - two.time.barrier_us, 2 * us(one), 0.05 * us(one)) << peeled;
  }
}

TEST(SimulatedTime, EveryLimitHasItsName) {
  EXPECT_EQ(limiter(timed("", 80, 128).time), "launch");
  // 16 bytes a thread from DRAM.
  const std::string address = R"(
mad.lo.u32 %r3, %r2, 256, %r1; mul.wide.u32 %d3, %r3, 16; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;)";
  const std::string copy = address + R"(
ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d4]; st.global.v4.u32 [%d5], {%r4, %r5, %r6, %r7};)";
  EXPECT_EQ(limiter(timed(copy, 8192, 256).time), "DRAM bandwidth");
  // The same 4 KB again and again, many loads in flight.
  std::string again = "mul.wide.u32 %d3, %r1, 16; add.u64 %d4, %d1, %d3;";
  for (int k = 0; k < 16; ++k)
    again += "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d4+" + std::to_string(4096 * k) + "];\n";
  EXPECT_EQ(limiter(timed(again, 8192, 256).time), "L2 bandwidth");
  // Each load's address is the one loaded before; from L2, which is far, and from L1, which is near.
  const auto chase = [](const std::string& load, int steps) {
    std::string text = "mov.u64 %d3, %d1;";
    for (int k = 0; k < steps; ++k) text += load + " %d4, [%d3]; add.u64 %d3, %d1, %d4;\n";
    return timed(text, 1, 32).time;
  };
  EXPECT_EQ(limiter(chase("ld.global.cg.u64", 64)), "memory latency");
  const KernelTime near = chase("ld.global.u64", 512);  // of one warp on one SM: the rest is uneven work
  EXPECT_GT(near.latency_us, near.issue_us);
  EXPECT_GT(chase("ld.global.cg.u64", 512).latency_us, 6 * chase("ld.global.u64", 512).latency_us);
  std::string barriers;
  for (int k = 0; k < 40; ++k) barriers += grid_barrier(k, 320);
  EXPECT_EQ(limiter(timed(barriers, 320, 64).time), "grid barriers");
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
