#include "occupancy_model/timing.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stitchwork {
namespace TEST_FILE {

/// A copy of `bytes` in each direction: 16-byte loads, 256 threads a block.
KernelWork copy(double bytes) {
  KernelWork work;
  work.threads_per_block = 256;
  work.blocks_per_sm = 8;
  work.grid_blocks = std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes / (256 * 16)));
  work.dram_sectors = work.l2_sectors = 2 * bytes / 32;
  const double warps = static_cast<double>(work.grid_blocks) * 8;
  work.warp_instructions = 20 * warps;
  work.ldst_warp_instructions = 2 * warps;
  work.independent_loads = 4;
  return work;
}

double total_us(const Device& d, const KernelWork& work) { return kernel_time(d, work).total_us; }

TEST(KernelTime, AnEmptyKernelCostsALaunch) {
  for (const Device& d : devices()) EXPECT_DOUBLE_EQ(total_us(d, {}), d.launch_us);
}

TEST(KernelTime, AGridBarrierOnV100IsThatOfTable6) {
  // Table 6 times whole kernels that hold one barrier and nothing else.
  for (const std::int64_t blocks : {1, 20, 80, 160}) {
    KernelWork work;
    work.grid_blocks = blocks;
    work.threads_per_block = 1024;
    work.blocks_per_sm = 2;
    work.grid_barriers = 1;
    work.phases = 2;
    EXPECT_NEAR(total_us(device("v100"), work), 2.50 + 0.00136 * static_cast<double>(blocks), 1e-9);
    work.grid_barriers = 2;
    EXPECT_NEAR(total_us(device("v100"), work), 2 + 2 * (0.50 + 0.00136 * static_cast<double>(blocks)), 1e-9);
  }
}

TEST(KernelTime, LargeCopiesApproachTheEfficiencyTimesPeak) {
  for (const Device& d : devices()) {
    constexpr double kBytes = 4e9;
    const double gb_s = 2 * kBytes / total_us(d, copy(kBytes)) / 1e3;
    EXPECT_LT(gb_s, d.dram_efficiency * d.dram_gb_s) << d.id;
    // The B200 comes least close: its SMs have the largest share of the bandwidth to move.
    EXPECT_GT(gb_s, 0.87 * d.dram_efficiency * d.dram_gb_s) << d.id;
  }
}

TEST(KernelTime, GrowsWithEveryKindOfWork) {
  for (const Device& d : devices()) {
    const KernelWork base = copy(1e8);
    const auto grows = [&](double KernelWork::*field, double value) {
      KernelWork more = base;
      more.*field = value;
      EXPECT_GT(total_us(d, more), total_us(d, base)) << d.id;
    };
    grows(&KernelWork::dram_sectors, base.dram_sectors * 2);
    grows(&KernelWork::l2_sectors, base.l2_sectors * 20);
    grows(&KernelWork::warp_instructions, 1e9);
    grows(&KernelWork::fp32_warp_instructions, 1e9);
    grows(&KernelWork::mufu_warp_instructions, 1e9);
    grows(&KernelWork::ldst_warp_instructions, 1e9);
    grows(&KernelWork::shared_wavefronts, 1e9);
    KernelWork barrier = base;
    barrier.grid_barriers = 1;
    EXPECT_GT(total_us(d, barrier), total_us(d, base)) << d.id;
  }
}

TEST(KernelTime, SharesOfPeaksAreOfTheWorkAndOfTheTime) {
  for (const Device& d : devices()) {
    const KernelWork work = copy(1e9);
    const KernelTime time = kernel_time(d, work);
    // Bytes at the peak bandwidth over the time; a copy that is long gets most of what copies can have.
    EXPECT_NEAR(unit_share(time, kDramUnit), 2e9 / (d.dram_gb_s * 1e3) / time.total_us, 1e-9) << d.id;
    EXPECT_GT(unit_share(time, kDramUnit), 0.8 * d.dram_efficiency) << d.id;
    const double slots = d.sms * d.sm.schedulers * d.clock_ghz * 1e3 * time.total_us;
    EXPECT_NEAR(unit_share(time, kIssueUnit), work.warp_instructions / slots, 1e-9) << d.id;
    KernelWork more = work;
    more.fp32_warp_instructions = more.warp_instructions = 1e11;
    const KernelTime computing = kernel_time(d, more);
    for (std::size_t u = 0; u < kUnits.size(); ++u) {
      EXPECT_LE(unit_share(computing, u), 1) << d.id << " " << kUnits[u].name;
      if (kUnits[u].name == computing.issue_pipe) {
        EXPECT_GT(unit_share(computing, u), 0.8) << d.id;
      }
    }
    EXPECT_EQ(unit_share(computing, kDramUnit), time.busy_us[kDramUnit] / computing.total_us) << d.id;
    EXPECT_EQ(unit_share(KernelTime{}, kDramUnit), 0);
  }
}

TEST(KernelTime, FewBlocksCannotFillTheMemory) {
  const Device& d = device("h200");
  KernelWork wide = copy(1e8), narrow = wide;
  narrow.grid_blocks = 16;
  narrow.warp_instructions = wide.warp_instructions;
  EXPECT_GT(total_us(d, narrow), 4 * total_us(d, wide));
}

TEST(KernelTime, OneWordAThreadCannotFillAnH200) {
  const Device& d = device("h200");
  KernelWork words = copy(1e9);
  words.independent_loads = 1;
  const double gb_s = 2e9 / total_us(d, words) / 1e3;
  EXPECT_LT(gb_s, 2500);
  EXPECT_GT(gb_s, 1500);
  words.independent_loads = 4;
  EXPECT_GT(2e9 / total_us(d, words) / 1e3, 3500);
}

TEST(KernelTime, FewerResidentWarpsIssueMoreSlowly) {
  const Device& d = device("v100");
  KernelWork work;
  work.grid_blocks = 80;
  work.threads_per_block = 512;
  work.warp_instructions = 1e8;
  const double full = total_us(d, work);
  work.threads_per_block = 128;
  EXPECT_NEAR(total_us(d, work) - d.launch_us, 4 * (full - d.launch_us), 1e-6 * full);
}

TEST(KernelTime, TheTailWaveCounts) {
  const Device& d = device("v100");
  const auto with_blocks = [&](std::int64_t blocks) {
    KernelWork work;
    work.grid_blocks = blocks;
    work.threads_per_block = 1024;
    work.blocks_per_sm = 1;
    work.warp_instructions = 1e6 * static_cast<double>(blocks);
    return total_us(d, work) - d.launch_us;
  };
  EXPECT_NEAR(with_blocks(81), 2 * with_blocks(80), 1e-6 * with_blocks(80));
  EXPECT_NEAR(with_blocks(160), 2 * with_blocks(80), 1e-6 * with_blocks(80));
}

/// Clocks that an SM takes for 1,000 warp instructions of one kind, or for as much of something else.
double clocks(const char* id, double ThreadWork::*field) {
  ThreadWork work;
  work.*field = 1000;
  return issue_clocks(device(id), work);
}

TEST(IssueClocks, EveryPipeHasItsRate) {
  // 32 results an instruction over the lanes of the CUDA C++ Programming Guide's table.
  EXPECT_DOUBLE_EQ(clocks("v100", &ThreadWork::warp_instructions), 250);
  EXPECT_DOUBLE_EQ(clocks("v100", &ThreadWork::fp32_warp_instructions), 500);
  EXPECT_DOUBLE_EQ(clocks("v100", &ThreadWork::fp64_warp_instructions), 1000);
  EXPECT_DOUBLE_EQ(clocks("t4", &ThreadWork::fp64_warp_instructions), 16000);
  EXPECT_DOUBLE_EQ(clocks("h100", &ThreadWork::fp64_warp_instructions), 500);
  EXPECT_DOUBLE_EQ(clocks("v100", &ThreadWork::half2_warp_instructions), 500);
  EXPECT_DOUBLE_EQ(clocks("p4", &ThreadWork::half2_warp_instructions), 32000);
  EXPECT_DOUBLE_EQ(clocks("v100", &ThreadWork::int32_warp_instructions), 500);
  EXPECT_DOUBLE_EQ(clocks("p4", &ThreadWork::int32_warp_instructions), 250);
  EXPECT_DOUBLE_EQ(clocks("v100", &ThreadWork::mufu_warp_instructions), 2000);
  EXPECT_DOUBLE_EQ(clocks("p4", &ThreadWork::mufu_warp_instructions), 1000);
  EXPECT_DOUBLE_EQ(clocks("v100", &ThreadWork::ldst_warp_instructions), 1000);
  EXPECT_DOUBLE_EQ(clocks("t4", &ThreadWork::ldst_warp_instructions), 2000);
  EXPECT_DOUBLE_EQ(clocks("v100", &ThreadWork::l1_wavefronts), 1000);
  EXPECT_DOUBLE_EQ(clocks("t4", &ThreadWork::l1_wavefronts), 2000);
  EXPECT_DOUBLE_EQ(clocks("v100", &ThreadWork::shared_wavefronts), 1000);
}

TEST(IssueClocks, TensorCoresReachThePeaksOfProducts) {
  const auto us = [](const char* id, TensorType type) {
    ThreadWork work;
    work.tensor_multiply_adds[static_cast<std::size_t>(type)] = 1e9;
    return issue_clocks(device(id), work) / device(id).clock_ghz / 1e3;
  };
  // 1e9 multiply-adds on each of 80 SMs at 125 TFLOPS; 108 SMs at 312 and 156.
  EXPECT_NEAR(us("v100", TensorType::kF16), 2e9 * 80 / 125e12 * 1e6, 1e-6);
  EXPECT_NEAR(us("a100-sxm-80", TensorType::kBf16), 2e9 * 108 / 312e12 * 1e6, 1e-6);
  EXPECT_NEAR(us("a100-sxm-80", TensorType::kTf32), 2e9 * 108 / 156e12 * 1e6, 1e-6);
  // V100 has no tensor cores for bf16: fp32 multiply-adds.
  EXPECT_NEAR(us("v100", TensorType::kBf16), 2e9 * 80 / 15.7e12 * 1e6, 1e-6);
}

TEST(KernelTime, NamesThePipeThatLimitsIssue) {
  KernelWork work;
  work.grid_blocks = 640;
  work.threads_per_block = 256;
  work.blocks_per_sm = 8;
  work.warp_instructions = 1e8;
  EXPECT_EQ(kernel_time(device("v100"), work).issue_pipe, "instructions");
  work.mufu_warp_instructions = 5e7;
  EXPECT_EQ(kernel_time(device("v100"), work).issue_pipe, "special functions");
  work.fp32_warp_instructions = 5e8;
  EXPECT_EQ(kernel_time(device("v100"), work).issue_pipe, "fp32");
}

/// A launch of 640 blocks whose threads do `all` in one wave.
LaunchWork one_wave(const Device& d, const ThreadWork& all, double same_address = 0) {
  LaunchWork launch{.threads_per_block = 256, .blocks_per_sm = 8, .grid_blocks = 640};
  launch.stretches = stretches(d, 640, 8, all, 0, 1);
  launch.stretches[0].same_address_atomics = same_address;
  return launch;
}

TEST(KernelTime, AtomicsContend) {
  const Device& d = device("v100");
  const ThreadWork plain{.l2_sectors = 1e7};
  ThreadWork updates = plain;
  updates.l2_atomic_sectors = 5e6;
  const double plain_us = kernel_time(d, one_wave(d, plain)).l2_us;
  EXPECT_NEAR(kernel_time(d, one_wave(d, updates)).l2_us, 1.5 * plain_us, 1e-6);
  // Lanes of a request on one word update its sector again, by the same factor.
  updates.l2_atomic_conflicts = 2.5e6;
  EXPECT_NEAR(kernel_time(d, one_wave(d, updates)).l2_us, 2 * plain_us, 1e-6);
  // A million updates of one address follow each other, a clock each.
  EXPECT_NEAR(kernel_time(d, one_wave(d, updates, 1e6)).l2_us, 1e6 / d.clock_ghz / 1e3, 1e-6);
}

TEST(KernelTime, AChainOfLoadsTakesTheLatencyOfItsLevel) {
  const Device& d = device("v100");
  const auto us = [&](double dram, double l2, double l1) {
    // 100 loads of each of 640 x 8 warps, one after another.
    LaunchWork launch{.threads_per_block = 256, .blocks_per_sm = 8, .grid_blocks = 640};
    launch.stretches = stretches(
        d, 640, 8, {.l2_sectors = l2, .l1_hit_sectors = l1, .global_accesses = 100.0 * 640 * 8}, dram, 1);
    return kernel_time(d, launch).latency_us;
  };
  const double us_a_clock = 1 / d.clock_ghz / 1e3;
  EXPECT_NEAR(us(1000, 1000, 0), 100 * 375 * us_a_clock, 1e-6);
  EXPECT_NEAR(us(0, 1000, 0), 100 * 193 * us_a_clock, 1e-6);
  EXPECT_NEAR(us(0, 1, 1e9), 100 * 28 * us_a_clock, 1e-4);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
