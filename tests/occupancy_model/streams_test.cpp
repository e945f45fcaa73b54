// Kernels of two streams share the device: bandwidth, issue and places for blocks.
#include "occupancy_model/streams.h"

#include <gtest/gtest.h>

namespace stitchwork {
namespace {

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

}  // namespace
}  // namespace stitchwork
