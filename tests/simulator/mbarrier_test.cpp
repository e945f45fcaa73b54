// mbarriers: phases and counts as the ISA has them, warps that wait for each other, and what is done wrong.
#include <fmt/format.h>

#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// A kernel k(in, out) of sm_90: %d1 holds in, %d2 out, %d3 where its thread's word of out goes; %r1 tid,
/// %r2 4 * tid, %p1 whether it is thread 0, %r3 the address of `bar`, %r4 that of `data`, %r5 that of `data`
/// for this thread.
std::string kernel(const std::string& body) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 "
         "out)\n{\n"
         ".reg .pred %p<8>;\n.reg .b32 %r<40>;\n.reg .b64 %d<32>;\n"
         ".shared .align 16 .b8 bar[64];\n.shared .align 16 .b8 data[4096];\n"
         "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r30, %ctaid.x;\n"
         "mov.u32 %r31, %ntid.x; mad.lo.u32 %r30, %r30, %r31, %r1; mul.wide.u32 %d3, %r30, 4; add.u64 %d3, "
         "%d2, "
         "%d3;\nshl.b32 %r2, %r1, 2; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, bar; mov.u32 %r4, data; add.u32 "
         "%r5, "
         "%r4, %r2;\n" +
         body + "\nret;\n}\n";
}

struct Launched {
  Dim3 grid{2, 1, 1}, block{64, 1, 1};
  std::optional<Dim3> cluster{};
  Sanitizers sanitize{};
  std::string device = "h100";
};

Outcome run_kernel(const std::string& body, const Launched& setup = {}) {
  const ptx::Module module = ptx::parse(kernel(body), "mbarrier.ptx");
  Launch launch{.kernel = "k", .grid = setup.grid, .block = setup.block};
  launch.cluster = setup.cluster;
  Options options;
  options.sanitize = setup.sanitize;
  return run_on_numbers(module, launch, options, setup.device, 4096,
                        setup.grid.count() * setup.block.count());
}

constexpr Sanitizers kBoth{.race = true, .init = true};

void expect_finding(const std::string& body, const std::string& text, const Launched& setup = {}) {
  const Outcome r = run_kernel(body, setup);
  EXPECT_NE(r.text().find(text), std::string::npos) << "found: " << r.text() << "\nin:\n" << body;
  EXPECT_FALSE(r.result.findings.empty());
}

std::string init(int count, int at = 0) {
  return fmt::format("@%p1 mbarrier.init.shared::cta.b64 [%r3+{}], {};\nbar.sync 0;\n", at, count);
}
/// Waits until the phase with the parity in `parity` is complete.
std::string wait(const std::string& label, const std::string& parity, int at = 0) {
  return fmt::format("{0}: mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r3+{1}], {2};\n@!%p7 bra {0};\n",
                     label, at, parity);
}

TEST(Mbarrier, CountsArrivalsAndTellsThePendingOnes) {
  // One thread: 5 arrivals of which the last three come together.
  const std::string body = init(5) + R"(
@!%p1 bra DONE;
mbarrier.arrive.shared.b64 %d10, [%r3];
mbarrier.pending_count.b64 %r10, %d10;
st.global.u32 [%d2], %r10;
mbarrier.test_wait.shared.b64 %p2, [%r3], %d10;
selp.u32 %r11, 1, 0, %p2;
st.global.u32 [%d2+4], %r11;
mbarrier.arrive.noComplete.shared.b64 %d11, [%r3], 1;
mbarrier.pending_count.b64 %r10, %d11;
st.global.u32 [%d2+8], %r10;
mbarrier.arrive.release.cta.shared::cta.b64 %d12, [%r3], 3;
mbarrier.pending_count.b64 %r10, %d12;
st.global.u32 [%d2+12], %r10;
mbarrier.test_wait.acquire.cta.shared::cta.b64 %p2, [%r3], %d10;
selp.u32 %r11, 1, 0, %p2;
st.global.u32 [%d2+16], %r11;
mbarrier.test_wait.parity.shared.b64 %p2, [%r3], 0;
mbarrier.test_wait.parity.shared.b64 %p3, [%r3], 1;
selp.u32 %r11, 1, 0, %p2;
selp.u32 %r12, 1, 0, %p3;
st.global.u32 [%d2+20], %r11;
st.global.u32 [%d2+24], %r12;
mbarrier.arrive.shared.b64 %d13, [%r3];
mbarrier.pending_count.b64 %r10, %d13;
st.global.u32 [%d2+28], %r10;
DONE:)";
  const Outcome r = run_kernel(body, {.grid = {1, 1, 1}, .sanitize = kBoth});
  ASSERT_EQ(r.text(), "");
  const std::vector<std::uint32_t> expected = {5, 0, 4, 3, 1, 1, 0, 5};
  EXPECT_EQ(std::vector(r.out.begin(), r.out.begin() + 8), expected);
}

TEST(Mbarrier, DroppedArrivalsAreMissingFromTheNextPhaseOn) {
  const std::string body = init(2) + R"(
@!%p1 bra DONE;
mbarrier.arrive_drop.shared.b64 _, [%r3];
mbarrier.arrive.shared.b64 _, [%r3];
mbarrier.arrive.shared.b64 %d10, [%r3];
mbarrier.pending_count.b64 %r10, %d10;
st.global.u32 [%d2], %r10;
mbarrier.test_wait.shared.b64 %p2, [%r3], %d10;
selp.u32 %r11, 1, 0, %p2;
st.global.u32 [%d2+4], %r11;
DONE:)";
  const Outcome r = run_kernel(body);
  ASSERT_EQ(r.text(), "");
  EXPECT_EQ(r.out[0], 1u) << "one arrival in the second phase";
  EXPECT_EQ(r.out[1], 1u);
}

/// All threads leave a word, arrive, wait, and take that of the thread across the block.
const std::string kExchange = R"(
st.shared.u32 [%r5], %r1;
mbarrier.arrive.shared.b64 %d10, [%r3];
LOOP: mbarrier.try_wait.shared.b64 %p2, [%r3], %d10;
@!%p2 bra LOOP;
xor.b32 %r6, %r2, 124;
xor.b32 %r6, %r6, 128;
add.u32 %r6, %r4, %r6;
ld.shared.u32 %r7, [%r6];
st.global.u32 [%d3], %r7;)";

TEST(Mbarrier, OrdersWhatCameBeforeArrivalsBeforeWhatComesAfterTheWait) {
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    const Outcome r = run_kernel(init(64) + kExchange, {.sanitize = what});
    ASSERT_EQ(r.text(), "");
    for (std::uint32_t t = 0; t < 128; ++t) EXPECT_EQ(r.out[t], (t % 64) ^ 31 ^ 32);
  }
}

TEST(Mbarrier, AWarpThatDoesNotWaitRaces) {
  std::string body = init(64) + kExchange;
  const std::size_t loop = body.find("LOOP:");
  body.erase(loop, body.find("xor.b32", loop) - loop);
  expect_finding(body, "shared-race", {.sanitize = kBoth});
}

TEST(Mbarrier, ArrivalsThatDoNotReleaseOrderNothingWithoutAFence) {
  std::string relaxed = init(64) + kExchange;
  const std::string arrive = "mbarrier.arrive.shared.b64";
  relaxed.replace(relaxed.find(arrive), arrive.size(), "mbarrier.arrive.relaxed.cta.shared::cta.b64");
  expect_finding(relaxed, "shared-race", {.sanitize = kBoth});
  const std::string fenced = [&] {
    std::string text = relaxed;
    return text.replace(text.find("mbarrier.arrive"), 0, "fence.acq_rel.cta;\n");
  }();
  EXPECT_EQ(run_kernel(fenced, {.sanitize = kBoth}).text(), "");
}

/// Two warps pass a word back and forth: one fills, the other takes, each waits for the other's barrier.
const std::string kPingPong = R"(
mov.u32 %r20, 0;
shr.u32 %r21, %r1, 5;
setp.ne.u32 %p2, %r21, 0;
and.b32 %r22, %r2, 127;
add.u32 %r22, %r4, %r22;
mov.u32 %r24, 0;
@%p2 bra CONSUME;
PRODUCE:
and.b32 %r23, %r20, 1;
xor.b32 %r23, %r23, 1;
EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3+8], %r23, 1000;
@!%p3 bra EMPTY;
add.u32 %r25, %r1, %r20;
st.shared.u32 [%r22], %r25;
mbarrier.arrive.shared.b64 _, [%r3];
add.u32 %r20, %r20, 1;
setp.lt.u32 %p4, %r20, 10;
@%p4 bra PRODUCE;
bra.uni END;
CONSUME:
and.b32 %r23, %r20, 1;
FULL: mbarrier.test_wait.parity.shared.b64 %p3, [%r3], %r23;
@%p3 bra TAKE;
nanosleep.u32 20;
bra.uni FULL;
TAKE:
ld.shared.u32 %r25, [%r22];
add.u32 %r24, %r24, %r25;
mbarrier.arrive.shared.b64 _, [%r3+8];
add.u32 %r20, %r20, 1;
setp.lt.u32 %p4, %r20, 10;
@%p4 bra CONSUME;
END:
st.global.u32 [%d3], %r24;)";

TEST(Mbarrier, WarpsThatWaitForEachOtherGoOn) {
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    const Outcome r = run_kernel(init(32) + init(32, 8) + kPingPong, {.sanitize = what});
    ASSERT_EQ(r.text(), "");
    for (std::uint32_t t = 0; t < 32; ++t) {
      EXPECT_EQ(r.out[t], 0u);
      EXPECT_EQ(r.out[32 + t], 10 * t + 45);
    }
  }
}

/// The first warp waits under a guard for what the second does behind it.
TEST(Mbarrier, WarpsThatAGuardHoldsBackGoOn) {
  const std::string body = init(32) + R"(
setp.lt.u32 %p2, %r1, 32;
mov.u32 %r10, 0;
LOOP:
add.u32 %r10, %r10, 1;
mov.pred %p3, 0;
@%p2 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0;
@%p3 bra END;
@%p2 bra LOOP;
mbarrier.arrive.shared::cta.b64 _, [%r3];
END:
st.global.u32 [%d3], %r10;)";
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    const Outcome r = run_kernel(body, {.sanitize = what});
    ASSERT_EQ(r.text(), "");
    EXPECT_EQ(r.out[40], 1u);
    EXPECT_EQ(r.out[3], 2u);
  }
}

TEST(Mbarrier, WhoOverwritesWithoutWaitingForTheReadersRaces) {
  std::string body = init(32) + init(32, 8) + kPingPong;
  const std::string branch = "@!%p3 bra EMPTY;";
  body.replace(body.find(branch), branch.size(), "");
  expect_finding(body, "shared-race", {.sanitize = kBoth});
}

TEST(Mbarrier, BytesHoldThePhaseOpenUntilAllHaveCome) {
  const std::string body = init(1) + R"(
@!%p1 bra DONE;
mbarrier.arrive.expect_tx.shared.b64 %d10, [%r3], 96;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r3], 64;
mbarrier.test_wait.shared.b64 %p2, [%r3], %d10;
selp.u32 %r11, 1, 0, %p2;
st.global.u32 [%d2], %r11;
mbarrier.complete_tx.shared::cta.b64 [%r3], 32;
mbarrier.test_wait.shared.b64 %p2, [%r3], %d10;
selp.u32 %r11, 1, 0, %p2;
st.global.u32 [%d2+4], %r11;
mbarrier.complete_tx.shared::cta.b64 [%r3], 16;
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], 16;
mbarrier.arrive.shared.b64 %d10, [%r3];
mbarrier.test_wait.shared.b64 %p2, [%r3], %d10;
selp.u32 %r11, 1, 0, %p2;
st.global.u32 [%d2+8], %r11;
DONE:)";
  const Outcome r = run_kernel(body);
  ASSERT_EQ(r.text(), "");
  EXPECT_EQ(std::vector(r.out.begin(), r.out.begin() + 3), (std::vector<std::uint32_t>{0, 1, 1}));
}

/// Every block of a cluster of two arrives at the barrier of the other.
const std::string kRemote = R"(
mov.u32 %r20, %cluster_ctarank;
xor.b32 %r21, %r20, 1;
@%p1 mbarrier.init.shared::cta.b64 [%r3], 64;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive;
barrier.cluster.wait;
mapa.shared::cluster.u32 %r22, %r5, %r21;
mapa.shared::cluster.u32 %r23, %r3, %r21;
add.u32 %r24, %r20, 100;
st.shared::cluster.u32 [%r22], %r24;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r23];
LOOP: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra LOOP;
ld.shared.u32 %r25, [%r5];
st.global.u32 [%d3], %r25;
barrier.cluster.arrive;
barrier.cluster.wait;)";

TEST(Mbarrier, BlocksOfAClusterArriveAtEachOthers) {
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    const Outcome r = run_kernel(kRemote, {.grid = {4, 1, 1}, .cluster = Dim3{2, 1, 1}, .sanitize = what});
    ASSERT_EQ(r.text(), "");
    for (std::uint32_t t = 0; t < 256; ++t) EXPECT_EQ(r.out[t], 100 + (t / 64 + 1) % 2);
  }
}

TEST(Mbarrier, ARemoteArrivalReturnsNoState) {
  std::string body = kRemote;
  body.replace(body.find("shared::cluster.b64 _,"), 22, "shared::cluster.b64 %d10,");
  expect_finding(body, "asks for the state", {.grid = {2, 1, 1}, .cluster = Dim3{2, 1, 1}});
}

TEST(Mbarrier, ABarrierThatNobodyCompletesIsADeadlock) {
  expect_finding(init(65) + kExchange,
                 "barrier-mismatch: waits for the mbarrier at shared memory offset 0, phase "
                 "0 of which wants 1 more arrivals and 0 more bytes");
  expect_finding(init(64) + "@%p1 mbarrier.expect_tx.shared::cta.b64 [%r3], 48;\n" + kExchange,
                 "wants 0 more arrivals and 48 more bytes");
  expect_finding(init(64) + "@%p1 mbarrier.complete_tx.shared::cta.b64 [%r3], 48;\n" + kExchange,
                 "wants 0 more arrivals and was given 48 bytes too many");
  std::string remote = kRemote;
  remote.replace(remote.find("[%r3], 64;"), 10, "[%r3], 99;");
  expect_finding(remote, "wants 35 more arrivals", {.grid = {4, 1, 1}, .cluster = Dim3{2, 1, 1}});
}

TEST(Mbarrier, MisuseIsFound) {
  const std::string arrive = "mbarrier.arrive.shared.b64 %d10, [%r3];\n";
  expect_finding(arrive, "mbarrier: uses an mbarrier at shared memory offset 0, where none is initialised");
  expect_finding(init(64) + "@%p1 mbarrier.inval.shared.b64 [%r3];\nbar.sync 0;\n" + arrive,
                 "where none is initialised");
  expect_finding(init(64) + "@%p1 mbarrier.init.shared.b64 [%r3], 1;", "without mbarrier.inval before");
  expect_finding(init(64) + "@%p1 mbarrier.init.shared.b64 [%r3], 1;", "without mbarrier.inval before");
  EXPECT_EQ(run_kernel(init(64) + "@%p1 mbarrier.inval.shared.b64 [%r3];\n" + init(64) + kExchange).text(),
            "");
  expect_finding("@%p1 mbarrier.init.shared.b64 [%r3], 0;", "for 0 arrivals");
  expect_finding("@%p1 mbarrier.init.shared.b64 [%r3], 1048576;", "for 1048576 arrivals");
  expect_finding(init(32) + "@%p1 mbarrier.arrive.shared.b64 _, [%r3], 33;", "arrives 33 times");
  expect_finding(init(32) + "@%p1 mbarrier.arrive.shared.b64 _, [%r3], 0;", "arrives 0 times");
  expect_finding(init(1) + "@%p1 mbarrier.arrive.noComplete.shared.b64 %d10, [%r3], 1;", ".noComplete");
  expect_finding(init(1) + "@%p1 mbarrier.expect_tx.shared::cta.b64 [%r3], 1048576;",
                 "tx-count 1048576 is too");
  expect_finding(init(1) + "@%p1 mbarrier.complete_tx.shared::cta.b64 [%r3], 1048576;", "is too small");
  expect_finding(init(1) + "@%p1 mbarrier.test_wait.parity.shared.b64 %p2, [%r3], 2;", "parity 2");
  expect_finding(init(1) + "mov.u64 %d10, 0;\n@%p1 mbarrier.test_wait.shared.b64 %p2, [%r3], %d10;",
                 "what is no state");
  expect_finding(init(1) + init(1, 8) +
                     "@!%p1 bra DONE;\nmbarrier.arrive.shared.b64 %d10, [%r3+8];\n"
                     "mbarrier.test_wait.shared.b64 %p2, [%r3], %d10;\nDONE:",
                 "what is no state");
  expect_finding(
      init(1) +
          "@!%p1 bra DONE;\nmbarrier.arrive.shared.b64 %d10, [%r3];\nmbarrier.arrive.shared.b64 _, "
          "[%r3];\nmbarrier.test_wait.shared.b64 %p2, [%r3], %d10;\nDONE:",
      "a phase before the last one");
  expect_finding("mbarrier.init.shared.b64 [%r3+4], 1;", "misaligned");
  expect_finding("mbarrier.init.shared.b64 [%r3+65536], 1;", "out-of-bounds");
  expect_finding("mbarrier.init.b64 [%d2], 1;", "not in shared memory");
  expect_finding(init(64) + "@%p1 st.shared.u32 [%r3+4], 7;\nbar.sync 0;\n" + arrive, "wrote over it");
}

TEST(Mbarrier, OrdinaryAccessesToAnObjectAreFoundBySanitizers) {
  for (const Sanitizers& what : {Sanitizers{.race = true}, Sanitizers{.init = true}}) {
    expect_finding(init(64) + "ld.shared.u32 %r6, [%r3+4];", "of the mbarrier at offset 0",
                   {.sanitize = what});
    expect_finding(init(64) + "@%p1 st.shared.u32 [%r3], 7;", "of the mbarrier at offset 0",
                   {.sanitize = what});
    EXPECT_EQ(run_kernel(init(64) + "@%p1 mbarrier.inval.shared.b64 [%r3];\n@%p1 st.shared.u32 [%r3], 7;",
                         {.sanitize = what})
                  .text(),
              "");
  }
}

TEST(Mbarrier, UseThatNothingOrdersAfterTheInitialisationRaces) {
  std::string body = init(64) + kExchange;
  body.replace(body.find("bar.sync 0;"), 11, "");
  expect_finding(body, "initialised, with no barrier in between", {.sanitize = {.race = true}});
}

TEST(Mbarrier, ThreadsThatMayNotWaitForALaneOfTheirWarpAreToldSo) {
  // Lane 0 waits for the lanes on the other side of the branch.
  expect_finding(init(32) + "@%p1 bra WAIT;\nbra.uni OTHERS;\nWAIT:\n" + wait("LOOP", "0") +
                     "bra.uni END;\nOTHERS: mbarrier.arrive.shared.b64 _, [%r3];\nEND:",
                 "barrier-mismatch: waits for the mbarrier", {.block = {32, 1, 1}});
}

TEST(Mbarrier, DevicesWithoutThemRefuseTheKernel) {
  try {
    run_kernel(init(64) + kExchange, {.device = "a100"});
    FAIL() << "ran";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("which a100"), std::string::npos) << e.what();
  }
}

TEST(Mbarrier, FormsThatAreNoneAreRefused) {
  for (const char* form :
       {"mbarrier.init.shared::cluster.b64 [%r3], 1;", "mbarrier.arrive.acquire.cta.shared.b64 _, [%r3];",
        "mbarrier.arrive.release.shared.b64 _, [%r3];", "mbarrier.arrive.shared.b32 _, [%r3];",
        "mbarrier.test_wait.shared.b64 _, [%r3], %d10;", "mbarrier.test_wait.shared.b64 %p2, [%r3];",
        "mbarrier.test_wait.parity.shared.b64 %p2, [%r3], %r1, 5;", "mbarrier.foo.shared.b64 [%r3];",
        "mbarrier.arrive.noComplete.shared.b64 %d10, [%r3];",
        "mbarrier.try_wait.shared::cluster.b64 %p2, [%r3], %d10;", "mbarrier.expect_tx.shared.b64 [%r3];",
        "mbarrier.pending_count.b64 %r10, %r11, %r12;"})
    EXPECT_THROW(ptx::parse(kernel(form), "mbarrier.ptx"), Error) << form;
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
