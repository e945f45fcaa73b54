// Asynchronous copies: what counts as in flight, and what the timing model makes of it.
#include <fmt/format.h>

#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr int kTasks = 32, kThreads = 256, kTaskBytes = kThreads * 16;

/// A block of an A100 copies kTasks ranges of 16 bytes a thread to shared memory one after the other, `ahead`
/// of them asked for before the first is waited for, and adds up what came. In the first `copying` threads.
std::string pipeline(int ahead, int copying = kThreads) {
  const std::string issue = fmt::format(R"(
setp.ge.u32 %p2, %r5, {0};
setp.ge.or.u32 %p2, %r1, {1}, %p2;
@%p2 bra ISSUED$;
rem.u32 %r6, %r5, {2};
mad.lo.u32 %r7, %r6, {3}, %r4;
mul.wide.u32 %d4, %r5, {3};
add.u64 %d5, %d3, %d4;
cp.async.cg.shared.global [%r7], [%d5], 16;
ISSUED$:
cp.async.commit_group;
add.u32 %r5, %r5, 1;)",
                                        kTasks, copying, ahead, kTaskBytes);
  const auto labelled = [](std::string text, int label) {
    for (std::size_t at; (at = text.find('$')) != std::string::npos;)
      text.replace(at, 1, std::to_string(label));
    return text;
  };
  std::string body = fmt::format(R"(
.shared .align 16 .b8 s[{}];
ld.param.u64 %d1, [in];
ld.param.u64 %d2, [out];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %d3, %r2, {};
add.u64 %d3, %d1, %d3;
mul.wide.u32 %d4, %r1, 16;
add.u64 %d3, %d3, %d4;
shl.b32 %r3, %r1, 4;
mov.u32 %r4, s;
add.u32 %r4, %r4, %r3;
mov.u32 %r5, 0;
mov.u32 %r8, 0;
mov.u32 %r9, 0;)",
                                 ahead * kTaskBytes, kTasks * kTaskBytes);
  for (int k = 0; k + 1 < ahead; ++k) body += labelled(issue, k);
  body += "\nTASK:" + labelled(issue, ahead) +
          fmt::format(R"(
cp.async.wait_group {};
bar.sync 0;
rem.u32 %r6, %r8, {};
mad.lo.u32 %r7, %r6, {}, %r4;
ld.shared.u32 %r10, [%r7];
add.u32 %r9, %r9, %r10;
bar.sync 0;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p1, %r8, {};
@%p1 bra TASK;
cp.async.wait_all;
mad.lo.u32 %r3, %r2, {}, %r1;
mul.wide.u32 %d4, %r3, 4;
add.u64 %d4, %d2, %d4;
st.global.u32 [%d4], %r9;
ret;)",
                      ahead - 1, ahead, kTaskBytes, kTasks, kThreads);
  std::string text = wrap_ptx(body);
  return text.replace(text.find("sm_75"), 5, "sm_80");
}

LaunchResult ran(int ahead, std::uint32_t blocks, Sanitizers sanitize = {}, int copying = kThreads) {
  const ptx::Module module = ptx::parse(pipeline(ahead, copying), "t.ptx");
  DeviceMemory memory(true);
  std::vector<std::uint32_t> in(std::size_t{blocks} * kTasks * kTaskBytes / 4);
  for (std::size_t k = 0; k < in.size(); ++k) in[k] = static_cast<std::uint32_t>(k);
  const DeviceAddress from = upload(memory, in, "in");
  const DeviceAddress to = memory.allocate(std::size_t{blocks} * kThreads * 4, "out");
  Launch launch{.kernel = "k", .grid = {blocks, 1, 1}, .block = {kThreads, 1, 1}};
  launch.arguments = {Argument::pointer(from), Argument::pointer(to)};
  Options options;
  options.sanitize = sanitize;
  const LaunchResult result = run(module, launch, memory, device("a100-sxm-40"), options);
  const auto out = download<std::uint32_t>(memory, to, std::size_t{blocks} * kThreads);
  for (std::size_t k = 0; k < out.size() && result.findings.empty(); ++k) {
    if (k % kThreads >= static_cast<std::size_t>(copying)) continue;
    std::uint32_t sum = 0;
    for (std::size_t task = 0; task < kTasks; ++task)
      sum += in[(k / kThreads * kTasks + task) * kTaskBytes / 4 + k % kThreads * 4];
    EXPECT_EQ(out[k], sum) << k;
    if (out[k] != sum) break;
  }
  return result;
}

TEST(AsyncCopies, InFlightIsWhatAWarpAskedForWhenItWaits) {
  for (const int ahead : {1, 2, 3}) {
    const LaunchResult r = ran(ahead, 108, {.race = true, .init = true});
    ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
    // At the last waits there are fewer tasks left than stages: of 32 waits `ahead`, ..., 2, 1 of them.
    const double mean = ahead - ahead * (ahead - 1) / 2.0 / kTasks;
    EXPECT_NEAR(r.bytes_in_flight, mean * kTaskBytes, 1) << ahead;
  }
}

TEST(AsyncCopies, WarpsThatAskForNothingHaveNothingInFlight) {
  const LaunchResult all = ran(2, 108), some = ran(2, 108, {}, 96);
  EXPECT_TRUE(some.findings.empty());
  EXPECT_NEAR(some.bytes_in_flight, all.bytes_in_flight * 96 / kThreads, 1);
}

/// One block: nothing hides a round trip to memory but the task that is asked for before the one at hand.
TEST(AsyncCopies, AreWaitedForOnlyByTheirWaitGroup) {
  const double alone = ran(1, 1).time.latency_us, two = ran(2, 1).time.latency_us,
               three = ran(3, 1).time.latency_us;
  EXPECT_NEAR(two / alone, 0.5, 0.05);
  EXPECT_NEAR(three / alone, 1 / 3.0, 0.05);
  const Device& d = device("a100-sxm-40");
  EXPECT_GE(alone, 0.95 * kTasks / 4 * d.sm.dram_latency_clocks / d.clock_ghz / 1e3);
}

TEST(AsyncCopies, WhoReadsBeforeTheWaitReadsWhatWasThereBefore) {
  std::string text = pipeline(2);
  const std::string wait = "cp.async.wait_group 1;";
  text.replace(text.find(wait), wait.size(), "cp.async.wait_group 2;");
  const ptx::Module module = ptx::parse(text, "t.ptx");
  DeviceMemory memory(true);
  Launch launch{.kernel = "k", .grid = {1, 1, 1}, .block = {kThreads, 1, 1}};
  launch.arguments = {Argument::pointer(memory.adopt(std::vector<std::byte>(kTasks * kTaskBytes), "in")),
                      Argument::pointer(memory.allocate(kThreads * 4, "out"))};
  Options options;
  options.sanitize = {.init = true};
  const LaunchResult result = run(module, launch, memory, device("a100-sxm-40"), options);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].kind, FindingKind::kUninitialisedRead);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
