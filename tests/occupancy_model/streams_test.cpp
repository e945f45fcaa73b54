// Kernels of two streams share the device: bandwidth, issue and places for blocks.
#include "occupancy_model/streams.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "occupancy_model/library.h"

namespace stitchwork {
namespace TEST_FILE {

constexpr double kTolerance = 1e-6;

StreamKernel kernel(double launch, double runs, double dram, double issue, double resident) {
  return {{.total_us = launch + runs, .launch_us = launch, .dram_us = dram, .issue_us = issue}, resident};
}
double end(const std::vector<std::vector<StreamSpan>>& spans) {
  double last = 0;
  for (const auto& stream : spans)
    for (const StreamSpan& s : stream) last = std::max(last, s.end_us);
  return last;
}
const Device& v100() { return device("v100"); }

TEST(Streams, OneKernelTakesItsOwnTime) {
  const std::vector<std::vector<StreamKernel>> streams = {{kernel(2, 10, 9, 1, 1)}};
  EXPECT_NEAR(end(share_device(v100(), streams)), 12, kTolerance);
}
TEST(Streams, TwoThatNeedAllOfTheBandwidthTakeTwiceAsLongBesideEachOther) {
  const std::vector<std::vector<StreamKernel>> streams(2, {kernel(2, 10, 10, 1, 0.5)});
  EXPECT_NEAR(end(share_device(v100(), streams)), 2 + 20, kTolerance);
}
TEST(Streams, TwoSmallOnesOfFewBlocksRunSideBySide) {
  const std::vector<std::vector<StreamKernel>> streams(2, {kernel(2, 10, 1, 1, 0.1)});
  EXPECT_NEAR(end(share_device(v100(), streams)), 12, kTolerance);
}
TEST(Streams, BlocksThatFillTheDeviceLeaveNoPlaceForOthers) {
  const std::vector<std::vector<StreamKernel>> streams(2, {kernel(2, 10, 1, 1, 1)});
  EXPECT_NEAR(end(share_device(v100(), streams)), 2 + 20, kTolerance);
}
TEST(Streams, OneBoundByMemoryAndOneBoundByIssueOverlap) {
  const std::vector<std::vector<StreamKernel>> streams = {{kernel(2, 10, 10, 1, 0.5)},
                                                          {kernel(2, 10, 0, 9, 0.5)}};
  const auto spans = share_device(v100(), streams);
  EXPECT_NEAR(spans[0][0].end_us, 12, kTolerance);
  EXPECT_NEAR(spans[1][0].end_us, 12, kTolerance);
}
TEST(Streams, WhatIsLeftGoesToTheOneThatCanUseIt) {
  // Half of the bandwidth each until the short one ends: 4 us of work take 8; the other then has 6 left.
  const std::vector<std::vector<StreamKernel>> streams = {{kernel(2, 4, 4, 0, 0.5)},
                                                          {kernel(2, 10, 10, 0, 0.5)}};
  const auto spans = share_device(v100(), streams);
  EXPECT_NEAR(spans[0][0].end_us, 2 + 8, kTolerance);
  EXPECT_NEAR(spans[1][0].end_us, 2 + 14, kTolerance);
}
TEST(Streams, KernelsOfAStreamFollowEachOtherBehindAGap) {
  const std::vector<std::vector<StreamKernel>> streams = {{kernel(2, 4, 4, 0, 1), kernel(2, 4, 4, 0, 1)}};
  const auto spans = share_device(v100(), streams);
  EXPECT_NEAR(spans[0][1].begin_us, 6 + v100().launch_gap_us, kTolerance);
  EXPECT_NEAR(spans[0][1].end_us, 12 + v100().launch_gap_us, kTolerance);
}
TEST(Streams, ThatAreEmptyOrOfEmptyKernelsEnd) {
  const std::vector<std::vector<StreamKernel>> streams = {{}, {kernel(2, 0, 0, 0, 1)}};
  const auto spans = share_device(v100(), streams);
  EXPECT_TRUE(spans[0].empty());
  EXPECT_NEAR(spans[1][0].end_us, 2, kTolerance);
  EXPECT_TRUE(share_device(v100(), {}).empty());
}

TEST(Schedule, AStepBeginsAGapBehindWhatItWaitsFor) {
  const StreamKernel small = kernel(2, 10, 1, 1, 0.1), large = kernel(2, 30, 1, 1, 0.1);
  const std::vector<StreamStep> steps = {{small, 0}, {large, 1}, {small, 0, {1}}, {small, 1, {2}}};
  const auto spans = run_schedule(v100(), steps);
  const double gap = v100().launch_gap_us;
  EXPECT_NEAR(spans[0].end_us, 12, kTolerance);
  EXPECT_NEAR(spans[1].end_us, 32, kTolerance);
  EXPECT_NEAR(spans[2].begin_us, 32 + gap, kTolerance);
  EXPECT_NEAR(spans[3].begin_us, 44 + 2 * gap, kTolerance);
  EXPECT_NEAR(spans[3].end_us, 56 + 2 * gap, kTolerance);
}
TEST(Schedule, StepsOfOneStreamTakeTheirSumWithGaps) {
  const std::vector<StreamStep> steps(5, StreamStep{kernel(2, 10, 9, 1, 1), 3});
  EXPECT_NEAR(run_schedule(v100(), steps).back().end_us, 5 * 12 + 4 * v100().launch_gap_us, kTolerance);
}
TEST(Schedule, StepsWaitForTheHostWhereItIsSlower) {
  const double gap = v100().launch_gap_us;
  // The host takes 20 us a launch: steps of 12 us end 12 us behind it; of 40 us only the first waits.
  std::vector<StreamStep> fast, slow;
  for (int i = 1; i <= 4; ++i) {
    fast.push_back({kernel(2, 10, 9, 1, 1), i % 2, {}, 20.0 * i});
    slow.push_back({kernel(2, 38, 9, 1, 1), 0, {}, 20.0 * i});
  }
  const auto spans = run_schedule(v100(), fast);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(spans[i].begin_us, 20.0 * static_cast<double>(i + 1), kTolerance);
    EXPECT_NEAR(spans[i].end_us, spans[i].begin_us + 12, kTolerance);
  }
  EXPECT_NEAR(run_schedule(v100(), slow).back().end_us, 20 + 4 * 40 + 3 * gap, kTolerance);
}
TEST(Schedule, TwoProductsBesideEachOtherAndAsOneAreNearWhatAstraMeasured) {
  // Section 3.2: two products of 256x1024 by 1024x1024 on two streams of a P100 of 9 TFLOP/s at base clock.
  Device p100 = device("p100-sxm2");
  p100.id = "p100-at-base-clock";  // no sustained rate of its own
  p100.clock_ghz *= 9 / p100.fp32_tflops;
  p100.fp32_tflops = 9;
  const auto of = [](double m) {
    return MatrixProduct{.m = m, .n = 1024, .k = 1024, .bytes = 4 * (m * 1024 + 1024 * 1024 + m * 1024)};
  };
  const auto pair_us = [&](const LibraryTime& half) {
    const StreamKernel product{{.total_us = half.total_us,
                                .launch_us = half.launch_us,
                                .dram_us = half.memory_us,
                                .issue_us = half.compute_us * half.tiles / (half.rounds * p100.sms)},
                               std::min(1.0, half.tiles / p100.sms)};
    const std::vector<StreamStep> steps = {{product, 0}, {product, 1}};
    const auto spans = run_schedule(p100, steps);
    return std::max(spans[0].end_us, spans[1].end_us);
  };
  constexpr double kPaperBeside = 172, kPaperFused = 211, kWithin = 0.12;
  // Which tiles cuBLAS took is not said: the fastest by the model fall short of what was measured (124.5 us),
  // those of 64x64 take more, as each product has 64 of them for 56 SMs.
  EXPECT_LT(pair_us(library_time(p100, of(256))), kPaperBeside);
  EXPECT_GT(pair_us(library_time(p100, of(256), library_kernels()[1])), kPaperBeside);
  // The fused product took longer than both: as of the coarse tile, which leaves 24 of 56 SMs without work.
  const LibraryKernel& coarse = library_kernels()[0];
  ASSERT_EQ(coarse.name, "128x128");
  const MatrixProduct whole = of(512);
  const double least = library_time(p100, whole, coarse).total_us;
  EXPECT_LE(library_time(p100, whole).total_us, least);
  EXPECT_NEAR(least, kPaperFused, kWithin * kPaperFused);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
