// Atomics of several lanes on one address: counters against a histogram on the host, and times.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr std::uint32_t kThreads = 128;

/// out[in[thread]] += 1, by an instruction that gives back what was there, or not.
ptx::Module scatter_add(const std::string& instruction = "red.global.add.u32 [%d5], 1;",
                        int element_bytes = 4) {
  return ptx::parse(wrap_ptx(fmt::format("ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];\n"
                                         "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
                                         "mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %d3, %r4, 4;\n"
                                         "add.u64 %d4, %d1, %d3; ld.global.u32 %r5, [%d4];\n"
                                         "mul.wide.u32 %d5, %r5, {}; add.u64 %d5, %d2, %d5;\n{}\nret;",
                                         element_bytes, instruction)),
                    "scatter.ptx");
}

LaunchResult scattered(const ptx::Module& module, const std::vector<std::uint32_t>& to, std::size_t words,
                       const Options& options = {}, const std::string& on = "v100") {
  DeviceMemory memory(true);
  const DeviceAddress in = upload(memory, to, "in");
  const DeviceAddress out = upload(memory, std::vector<std::uint32_t>(words), "out");
  const Launch launch{.kernel = "k",
                      .grid = {static_cast<std::uint32_t>(to.size()) / kThreads, 1, 1},
                      .block = {kThreads, 1, 1},
                      .arguments = {Argument::pointer(in), Argument::pointer(out)}};
  LaunchResult result = run(module, launch, memory, device(on), options);
  EXPECT_TRUE(result.findings.empty());
  return result;
}

/// What docs/simulator.md says of the counters, word by word.
struct Expected {
  std::uint64_t same_address = 0, conflicts = 0;
  explicit Expected(const std::vector<std::uint32_t>& to) {
    std::map<std::uint32_t, std::uint64_t> all;
    for (const std::uint32_t word : to) same_address = std::max(same_address, ++all[word]);
    for (std::size_t warp = 0; warp < to.size(); warp += 32) {
      std::map<std::uint32_t, std::uint64_t> lanes, sectors;
      for (std::size_t l = warp; l < warp + 32; ++l) {
        std::uint64_t& most = sectors[to[l] / 8];
        most = std::max(most, ++lanes[to[l]]);
      }
      for (const auto& [sector, most] : sectors) conflicts += most - 1;
    }
  }
};

/// `count` threads' places: any of `distinct` words that lie anywhere among 64 x as many.
std::vector<std::uint32_t> drawn(std::mt19937& random, std::size_t count, std::uint32_t distinct) {
  std::set<std::uint32_t> found;
  while (found.size() < distinct) found.insert(static_cast<std::uint32_t>(random() % (64 * distinct)));
  const std::vector<std::uint32_t> places(found.begin(), found.end());
  std::vector<std::uint32_t> to(count);
  for (std::uint32_t& place : to) place = places[random() % distinct];
  return to;
}

TEST(ContendedAtomics, AreCountedAsTheHistogramSays) {
  std::mt19937 random(18);
  const ptx::Module reductions = scatter_add(),
                    with_results = scatter_add("atom.global.add.u32 %r6, [%d5], 1;");
  for (const std::uint32_t distinct : {1u, 2u, 3u, 31u, 32u, 100u, 1000u, 50'000u})
    for (const std::size_t blocks : {1u, 7u, 90u}) {
      const auto to = drawn(random, blocks * kThreads, distinct);
      const Expected expected(to);
      for (const ptx::Module* module : {&reductions, &with_results}) {
        const Counters c = scattered(*module, to, 64 * std::size_t{distinct}).counters;
        EXPECT_EQ(c.atomics, to.size());
        EXPECT_EQ(c.same_address_atomics, expected.same_address) << distinct << " " << blocks;
        EXPECT_EQ(c.atomic_conflicts, expected.conflicts) << distinct << " " << blocks;
      }
    }
}

TEST(ContendedAtomics, OfLanesThatAreOffDoNotCount) {
  const ptx::Module odd = scatter_add(
      "and.b32 %r7, %r1, 1; setp.eq.u32 %p1, %r7, 1;\n"
      "@%p1 red.global.add.u32 [%d5], 1;");
  const Counters c = scattered(odd, std::vector<std::uint32_t>(kThreads, 5), 64).counters;
  EXPECT_EQ(c.same_address_atomics, kThreads / 2);
  EXPECT_EQ(c.atomic_conflicts, 4u * 15);
}

TEST(ContendedAtomics, OfHalfWordsShareTheirWord) {
  const ptx::Module halves =
      scatter_add("mov.b16 %h1, 0x3c00; atom.global.add.noftz.f16 %h2, [%d5], %h1;", 2);
  std::vector<std::uint32_t> to(kThreads);
  for (std::uint32_t t = 0; t < kThreads; ++t) to[t] = t;
  const Counters c = scattered(halves, to, kThreads).counters;
  EXPECT_EQ(c.same_address_atomics, 2u);
  EXPECT_EQ(c.atomic_conflicts, 4u * 2);
}

/// A warp's threads follow each other on runs of `distinct` words: fewer words, more that wait in the L2,
/// while DRAM moves fewer sectors. Where updates are what limits, the whole time grows with them.
TEST(ContendedAtomics, TakeLongerTheMoreOfThemMeet) {
  constexpr std::size_t kUpdates = 1 << 18;
  const ptx::Module module = scatter_add();
  for (const char* on : {"v100", "a100", "h200"}) {
    double before_us = 0, before_l2_us = 0;
    std::uint64_t before = 0;
    for (std::uint32_t distinct = kUpdates; distinct > 0; distinct /= 4) {
      std::vector<std::uint32_t> to(kUpdates);
      for (std::size_t t = 0; t < kUpdates; ++t) to[t] = static_cast<std::uint32_t>(t % distinct);
      const LaunchResult r = scattered(module, to, kUpdates, {}, on);
      EXPECT_EQ(r.counters.same_address_atomics, kUpdates / distinct);
      EXPECT_GT(r.counters.same_address_atomics, before);
      EXPECT_GE(r.time.l2_us, before_l2_us) << on << " " << distinct;
      if (before_l2_us > r.time.dram_us + r.time.latency_us) {
        EXPECT_GT(r.time_us, before_us) << on << " " << distinct;
      }
      before = r.counters.same_address_atomics;
      before_us = r.time_us;
      before_l2_us = r.time.l2_us;
    }
    const Device& d = device(on);
    EXPECT_GT(before_us, kUpdates * d.sm.same_address_atomic_clocks / d.clock_ghz / 1e3) << "one word";
  }
}

TEST(ContendedAtomics, OfASampleAreThoseOfAllBlocks) {
  std::mt19937 random(3);
  const std::size_t updates = std::size_t{kThreads} * 80 * 16 * 12;  // a dozen waves on a V100
  for (const std::uint32_t distinct : {1u, 64u}) {
    std::vector<std::uint32_t> to(updates);
    for (std::size_t t = 0; t < updates; ++t) to[t] = static_cast<std::uint32_t>(t % distinct);
    const ptx::Module module = scatter_add();
    const LaunchResult all = scattered(module, to, 64);
    const LaunchResult sample = scattered(module, to, 64, {.sampled = true});
    ASSERT_TRUE(sample.sampled);
    EXPECT_NEAR(static_cast<double>(sample.counters.same_address_atomics),
                static_cast<double>(all.counters.same_address_atomics),
                0.02 * static_cast<double>(updates / distinct));
    EXPECT_NEAR(sample.time_us, all.time_us, 0.02 * all.time_us);
  }
}

/// All blocks come to one counter and wait for it: what that takes is in the barrier's own time.
TEST(ContendedAtomics, OfABarrierAreItsOwnTime) {
  const ptx::Module barrier = ptx::parse(
      wrap_ptx("ld.param.u64 %d2, [out]; mov.u32 %r3, %nctaid.x; mov.u32 %r1, %tid.x;\n"
               "setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;\n"
               "membar.gl; red.global.add.u32 [%d2], 1;\n"
               "WAIT: ld.volatile.global.u32 %r4, [%d2]; setp.lt.u32 %p2, %r4, %r3; @%p2 bra WAIT;\n"
               "membar.gl;\nDONE: bar.sync 0; red.global.add.u32 [%d2+64], 1; ret;"),
      "barrier.ptx");
  const Outcome o =
      run_on_numbers(barrier, {.kernel = "k", .grid = {40, 1, 1}, .block = {32, 1, 1}}, {}, "v100", 1, 64);
  ASSERT_EQ(o.text(), "");
  EXPECT_EQ(o.result.counters.grid_barriers, 1u);
  EXPECT_EQ(o.result.counters.same_address_atomics, 40u * 32) << "of the counter behind the barrier";
}

TEST(ContendedAtomics, SayThatTheirRateIsNotConfirmed) {
  const auto says = [](const std::vector<std::uint32_t>& to) {
    const LaunchResult r = scattered(scatter_add(), to, kThreads);
    const auto found = not_modelled(device("v100"), r.timed);
    return std::ranges::any_of(found, [](const NotModelled& n) { return n.id == "contended-atomics"; });
  };
  std::vector<std::uint32_t> apart(kThreads);
  for (std::uint32_t t = 0; t < kThreads; ++t) apart[t] = kThreads - 1 - t;
  EXPECT_FALSE(says(apart));
  apart[17] = apart[90];
  EXPECT_TRUE(says(apart));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
