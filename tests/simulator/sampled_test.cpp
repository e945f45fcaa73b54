// A sample of waves stands for all of them, where they are alike; refused where they are not.
#include <cmath>

#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// Every counter of a launch of `file`, exact and sampled, of buffers of `words` words and a last argument.
struct Both {
  LaunchResult exact, sampled;
};
Both run_both(const std::string& file, Launch launch, const std::vector<std::size_t>& words, int last) {
  Both both;
  const ptx::Module module = fixture(file);
  for (const bool sampled : {false, true}) {
    DeviceMemory memory;
    launch.arguments.clear();
    for (std::size_t n : words)
      launch.arguments.push_back(Argument::pointer(memory.adopt(std::vector<std::byte>(n * 4), "buffer")));
    launch.arguments.push_back(Argument::i32(last));
    Options options;
    options.sampled = sampled;
    (sampled ? both.sampled : both.exact) = run(module, launch, memory, device("v100"), options);
  }
  return both;
}

void expect_near(const Both& both) {
  ASSERT_TRUE(both.sampled.sampled);
  EXPECT_FALSE(both.exact.sampled);
  EXPECT_LT(both.sampled.blocks_simulated, both.exact.blocks_simulated);
  const auto exact = counter_list(both.exact.counters), sampled = counter_list(both.sampled.counters);
  for (std::size_t k = 0; k < exact.size(); ++k)
    EXPECT_NEAR(sampled[k].second, exact[k].second, 0.02 * std::abs(exact[k].second)) << exact[k].first;
  EXPECT_NEAR(both.sampled.time_us, both.exact.time_us, 0.02 * both.exact.time_us);
}

TEST(Sampled, ElementwiseKernelsCountAsInExactMode) {
  const int n = 256 * 640 * 9 + 1000;  // nine waves and a bit
  const Both both =
      run_both("vecadd.ptx", {.kernel = "vecadd", .grid = {(n + 255) / 256, 1, 1}, .block = {256, 1, 1}},
               {std::size_t{n}, std::size_t{n}, std::size_t{n}}, n);
  expect_near(both);
  EXPECT_EQ(both.sampled.blocks_simulated, 4u * 640 + 4);
}

TEST(Sampled, RowKernelsCountAsInExactMode) {
  const Both both = run_both("softmax.ptx", {.kernel = "softmax", .grid = {4096, 1, 1}, .block = {256, 1, 1}},
                             {4096 * 256, 4096 * 256}, 256);
  expect_near(both);
}

TEST(Sampled, ASmallGridIsSimulatedWhole) {
  const Both both = run_both("vecadd.ptx", {.kernel = "vecadd", .grid = {64, 1, 1}, .block = {256, 1, 1}},
                             {16384, 16384, 16384}, 16384);
  EXPECT_FALSE(both.sampled.sampled);
  EXPECT_EQ(both.sampled.blocks_simulated, 64u);
  EXPECT_EQ(both.sampled.counters.inst_executed, both.exact.counters.inst_executed);
}

std::string refusal(const ptx::Module& module, Launch launch, const Options& options) {
  DeviceMemory memory(options.sanitize.init);
  for (Argument& a : launch.arguments)
    if (a.bytes.size() == 8) a = Argument::pointer(memory.adopt(std::vector<std::byte>(1 << 22), "buffer"));
  try {
    run(module, launch, memory, device("v100"), options);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(Sampled, BlocksThatAreNotAlikeAreRefused) {
  // Block b goes round a loop b / 512 times.
  const ptx::Module module = ptx::parse(wrap_ptx(R"(
ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x; shr.u32 %r1, %r1, 9; mov.u32 %r2, 0;
AGAIN: setp.ge.u32 %p1, %r2, %r1; @%p1 bra END; add.u32 %r2, %r2, 1; bra AGAIN;
END: st.global.u32 [%d1], %r2; ret;)"),
                                        "uneven.ptx");
  Options options;
  options.sampled = true;
  Launch launch{.kernel = "k", .grid = {20000, 1, 1}, .block = {32, 1, 1}};
  launch.arguments = {Argument::pointer(0), Argument::pointer(0)};
  EXPECT_NE(refusal(module, launch, options).find("its blocks are not alike"), std::string::npos);
}

TEST(Sampled, GridBarriersSanitizersAndWarmCachesAreRefused) {
  Options options;
  options.sampled = true;
  const ptx::Module barrier = fixture("grid_barrier.ptx");
  Launch launch{.kernel = barrier.kernels()[0].name, .grid = {80, 1, 1}, .block = {128, 1, 1}};
  for (const ptx::ParameterInfo& p : barrier.kernels()[0].parameters)
    launch.arguments.push_back(p.bytes == 8 ? Argument::pointer(0) : Argument::i32(16));
  EXPECT_NE(refusal(barrier, launch, options).find("its blocks wait for each other"), std::string::npos);
  const ptx::Module vecadd = fixture("vecadd.ptx");
  Launch add{.kernel = "vecadd", .grid = {64, 1, 1}, .block = {256, 1, 1}};
  add.arguments = {Argument::pointer(0), Argument::pointer(0), Argument::pointer(0), Argument::i32(16384)};
  options.sanitize.race = true;
  EXPECT_NE(refusal(vecadd, add, options).find("a sample of its blocks says nothing of races"),
            std::string::npos);
  options.sanitize = {};
  options.cache = CacheMode::kWarm;
  EXPECT_NE(refusal(vecadd, add, options).find("warm cache"), std::string::npos);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
