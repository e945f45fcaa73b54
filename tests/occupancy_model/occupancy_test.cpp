#include "occupancy_model/occupancy.h"

#include <gtest/gtest.h>

#include <climits>
#include <cstring>
#include <random>
#include <vector>

#include "occupancy_model/occupancy_limits.h"

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define STITCHWORK_HAS_CUDA_OCCUPANCY 1
#elif __has_include("/usr/local/cuda/include/cuda_occupancy.h")
#include "/usr/local/cuda/include/cuda_occupancy.h"
#define STITCHWORK_HAS_CUDA_OCCUPANCY 1
#endif

namespace stitchwork {
namespace TEST_FILE {

TEST(Occupancy, KnownLimits) {
  const Device& v100 = device("v100");
  EXPECT_EQ(occupancy(v100, 1024, 32, 0).blocks_per_sm, 2);
  EXPECT_EQ(occupancy(v100, 1024, 32, 0).blocks_per_wave, 160);
  EXPECT_EQ(occupancy(v100, 1024, 32, 0).limiter, "threads");
  EXPECT_EQ(occupancy(v100, 1024, 33, 0).blocks_per_sm, 1);
  EXPECT_EQ(occupancy(v100, 1024, 33, 0).limiter, "registers");
  EXPECT_EQ(occupancy(v100, 1024, 32, 49153).blocks_per_sm, 1);
  EXPECT_EQ(occupancy(v100, 1024, 32, 49153).limiter, "shared memory");
  EXPECT_EQ(occupancy(v100, 32, 16, 0).blocks_per_sm, 32);
  EXPECT_EQ(occupancy(v100, 32, 16, 0).limiter, "blocks");
  EXPECT_DOUBLE_EQ(occupancy(v100, 32, 16, 0).warps_ratio, 0.5);
  EXPECT_EQ(occupancy(v100, 1025, 16, 0).blocks_per_sm, 0);
  EXPECT_EQ(occupancy(v100, 32, 16, 98305).blocks_per_sm, 0);
  EXPECT_EQ(occupancy(v100, 32, 256, 0).blocks_per_sm, 0);
}

TEST(Occupancy, AReservedKibibyteABlockCounts) {
  const Device& h200 = device("h200");
  EXPECT_EQ(occupancy(h200, 128, 32, 227 * 1024).blocks_per_sm, 1);
  EXPECT_EQ(occupancy(h200, 128, 32, 227 * 1024 + 1).blocks_per_sm, 0);
  EXPECT_EQ(occupancy(h200, 128, 32, 113 * 1024).blocks_per_sm, 2);
  EXPECT_EQ(occupancy(h200, 128, 32, 114 * 1024).blocks_per_sm, 1);
}

#ifdef STITCHWORK_HAS_CUDA_OCCUPANCY
TEST(Occupancy, EqualsTheToolkitsCalculator) {
  std::mt19937 random(1);
  const auto pick = [&random](int lo, int hi) {
    return lo + static_cast<int>(random() % static_cast<unsigned>(hi - lo + 1));
  };
  for (const Device& d : devices()) {
    cudaOccDeviceProp properties;
    properties.computeMajor = d.cc_major;
    properties.computeMinor = d.cc_minor;
    properties.maxThreadsPerBlock = d.max_threads_per_block;
    properties.maxThreadsPerMultiprocessor = d.max_threads_per_sm();
    properties.regsPerBlock = static_cast<int>(d.registers_per_sm);
    properties.regsPerMultiprocessor = static_cast<int>(d.registers_per_sm);
    properties.warpSize = 32;
    properties.sharedMemPerBlock = static_cast<std::size_t>(d.shared_bytes_per_block_default);
    properties.sharedMemPerMultiprocessor = static_cast<std::size_t>(d.shared_bytes_per_sm);
    properties.numSms = d.sms;
    properties.sharedMemPerBlockOptin = static_cast<std::size_t>(d.shared_bytes_per_block_optin);
    properties.reservedSharedMemPerBlock = static_cast<std::size_t>(d.shared_bytes_reserved_per_block);
    cudaOccDeviceState state{};
    for (int trial = 0; trial < 20000; ++trial) {
      // The calculator admits 256 registers a thread; no compiler assigns more than 255.
      const int threads = pick(1, 1056), registers = pick(0, 255);
      const int shared = pick(0, 3) == 0 ? 0 : pick(0, static_cast<int>(d.shared_bytes_per_sm));
      cudaOccFuncAttributes function{};
      function.maxThreadsPerBlock = INT_MAX;
      function.numRegs = registers;
      function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
      function.maxDynamicSharedSizeBytes = static_cast<std::size_t>(shared);
      cudaOccResult expected{};
      ASSERT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(&expected, &properties, &function, &state, threads,
                                                        static_cast<std::size_t>(shared)),
                CUDA_OCC_SUCCESS);
      ASSERT_EQ(occupancy(d, threads, registers, shared).blocks_per_sm,
                expected.activeBlocksPerMultiprocessor)
          << d.id << ": " << threads << " threads, " << registers << " registers, " << shared << " bytes";
    }
  }
}
#endif

TEST(Occupancy, TheTableSaysWhatEachResourceAdmits) {
  const auto limits = occupancy_limits(device("v100"), 250, 33, 16000);
  EXPECT_EQ(limits[0].per_block, 8);  // warps, rounded up
  EXPECT_EQ(limits[0].blocks, 8);
  EXPECT_EQ(limits[1].per_block, 8 * 1280);  // 33 x 32 registers, rounded up to 256, of 8 warps
  EXPECT_EQ(limits[1].blocks, 6);
  EXPECT_EQ(limits[2].per_block, 16128);  // rounded up to 256 bytes
  EXPECT_EQ(limits[2].blocks, 6);
  EXPECT_EQ(limits[3].blocks, 32);
  EXPECT_EQ(occupancy_limits(device("v100"), 256, 32, 0)[2].blocks, OccupancyLimit::kUnlimited);
  for (const Device& d : devices())
    for (const int threads : {32, 100, 512, 1024}) {
      std::int64_t least = OccupancyLimit::kUnlimited;
      for (const OccupancyLimit& l : occupancy_limits(d, threads, 40, 10000))
        least = std::min(least, l.blocks);
      EXPECT_EQ(occupancy(d, threads, 40, 10000).blocks_per_sm, least) << d.id;
    }
}

TEST(AssumeRelaxApply, PapersAndDocumentedExamples) {
  const auto expect = [](const char* id, int threads, std::int64_t shared, int blocks, int bound) {
    const LaunchBound launch = assume_relax_apply(device(id), threads, shared);
    EXPECT_EQ(launch.blocks_per_sm, blocks) << id << " " << threads;
    EXPECT_EQ(launch.register_bound, bound) << id << " " << threads;
    EXPECT_EQ(launch.blocks_per_wave, blocks * device(id).sms) << id << " " << threads;
  };
  expect("v100", 1024, 0, 2, 32);
  expect("v100", 1024, 48 * 1024, 2, 32);
  expect("v100", 1024, 48 * 1024 + 1, 1, 64);
  expect("v100", 768, 0, 2, 40);
  expect("t4", 1024, 0, 1, 64);
  expect("rtx4090", 1024, 0, 1, 64);
  expect("v100", 128, 96 * 1024, 1, 255);
}

TEST(AssumeRelaxApply, RelaxingNeverCostsABlock) {
  for (const Device& d : devices())
    for (int threads = 1; threads <= 1024; threads += 7)
      for (const std::int64_t shared : {0, 9000, 30000, 49152}) {
        if (shared > d.shared_bytes_per_block_optin) continue;
        const LaunchBound launch = assume_relax_apply(d, threads, shared);
        ASSERT_GE(launch.register_bound, 32);
        ASSERT_EQ(occupancy(d, threads, launch.register_bound, shared).blocks_per_sm, launch.blocks_per_sm)
            << d.id << " " << threads << " " << shared;
      }
}

TEST(LaunchBounds, LeaveTheRegistersWithWhichTheBlocksAreHeld) {
  EXPECT_EQ(launch_bound_registers(device("a100"), 1024, 2), 32);
  EXPECT_EQ(launch_bound_registers(device("a100"), 800, 2), 32) << "25 warps on four register files";
  EXPECT_EQ(launch_bound_registers(device("a100"), 128, 1), 255);
  for (const Device& d : devices())
    for (int threads = 32; threads <= 1024; threads += 32)
      for (int blocks = 1; blocks * threads <= d.max_warps_per_sm * 32 && blocks <= d.max_blocks_per_sm;
           ++blocks)
        ASSERT_GE(occupancy(d, threads, launch_bound_registers(d, threads, blocks), 0).blocks_per_sm, blocks)
            << d.id << " " << threads;
}

TEST(Clusters, AreHeldHoweverTpcsAreSpreadOverGpcs) {
  std::mt19937 random(1);
  for (const Device& d : devices()) {
    if (d.max_cluster_blocks == 0) continue;
    for (int blocks_per_sm = 1; blocks_per_sm <= 8; ++blocks_per_sm)
      for (const int cluster : {1, 2, 4, 8, 16}) {
        const std::int64_t held = clusters_held_anyway(d, blocks_per_sm, cluster);
        EXPECT_LE(held, clusters_per_wave(d, blocks_per_sm, cluster));
        EXPECT_GT(held, 0);
        if (2 * blocks_per_sm % cluster == 0) {
          EXPECT_EQ(held, d.sms * blocks_per_sm / cluster);
        }
        for (int spread = 0; spread < 100; ++spread) {
          std::vector<int> sms(static_cast<std::size_t>(d.gpcs));
          for (int tpc = 0; tpc < d.sms / 2; ++tpc) sms[random() % sms.size()] += 2;
          std::int64_t clusters = 0;
          for (const int gpc : sms) clusters += std::int64_t{gpc} * blocks_per_sm / cluster;
          ASSERT_LE(held, clusters) << d.id << ": " << blocks_per_sm << " an SM, clusters of " << cluster;
        }
      }
  }
}

/// Two of 512 threads an SM of an H200: 29 clusters of 8, while GPCs of 16 and 18 SMs hold 32.
TEST(Clusters, HeldAnywayAreFewerThanGpcsOfEvenSizeHold) {
  const Device& h200 = device("h200");
  EXPECT_EQ(clusters_per_wave(h200, 2, 8), 32);
  EXPECT_EQ(clusters_held_anyway(h200, 2, 8), 29);
  EXPECT_EQ(clusters_held_anyway(h200, 4, 8), 66);
  EXPECT_EQ(clusters_held_anyway(h200, 1, 1), 132);
}

TEST(AssumeRelaxApply, ABlockThatDoesNotFitHasNoBound) {
  EXPECT_EQ(assume_relax_apply(device("t4"), 256, 65 * 1024).blocks_per_sm, 0);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
