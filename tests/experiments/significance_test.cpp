#include "experiments/significance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stitchwork {
namespace TEST_FILE {

using ::testing::DoubleNear;

TEST(Significance, MannWhitneyAgreesWithPublishedValues) {
  // scipy.stats.mannwhitneyu(..., method="asymptotic"), two-sided, with continuity correction.
  EXPECT_THAT(mann_whitney_p({19, 22, 16, 29, 24}, {20, 11, 17, 12}), DoubleNear(0.11134688653314041, 1e-12));
  EXPECT_THAT(mann_whitney_p({1, 2, 2, 3}, {2, 4, 4, 5}), DoubleNear(0.10159149986165274, 1e-12));
  EXPECT_DOUBLE_EQ(mann_whitney_p({1, 1}, {1, 1}), 1);
}

TEST(Significance, IntervalsOfMediansHoldTheTrueOneAsOftenAsTheySay) {
  // 300 samples of 15 values of a normal distribution whose median is 100.
  std::mt19937 engine(7);
  std::normal_distribution<double> normal(100, 5);
  int held = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<double> values(15);
    for (double& x : values) x = normal(engine);
    const auto interval = median_interval(values);
    ASSERT_TRUE(interval);
    held += interval->low <= 100 && 100 <= interval->high ? 1 : 0;
  }
  EXPECT_GE(held, 270);
  EXPECT_LE(held, 299) << "an interval that always holds says nothing";
}

TEST(Significance, IntervalsOfRatiosScaleWithTheSamples) {
  const std::vector<double> before{10, 11, 10.5, 10.2, 10.8}, after{20, 22, 21, 20.4, 21.6};
  const auto same = ratio_interval(before, before), twice = ratio_interval(before, after);
  ASSERT_TRUE(same && twice);
  EXPECT_LT(same->low, 1);
  EXPECT_GT(same->high, 1);
  EXPECT_DOUBLE_EQ(twice->low, 2 * same->low);
  EXPECT_DOUBLE_EQ(twice->high, 2 * same->high);
}

TEST(Significance, NothingIsSaidOfTooFewValuesOrOfRatiosToZero) {
  EXPECT_FALSE(median_interval({1}));
  EXPECT_FALSE(ratio_interval({1, 2}, {1}));
  EXPECT_FALSE(ratio_interval({0, 2}, {1, 2}));
  EXPECT_TRUE(std::isnan(median_of({})));
  EXPECT_DOUBLE_EQ(median_of({4, 1, 3, 2}), 2.5);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
