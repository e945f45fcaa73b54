#include "analysis/facts/post_dominators.h"

#include <gtest/gtest.h>

#include <random>

namespace stitchwork {
namespace TEST_FILE {

TEST(PostDominators, PathsOfADiamondMeetWhereItCloses) {
  const PostDominators d({{1, 2}, {3}, {3}, {}});
  EXPECT_EQ(d.immediate(0), 3);
  EXPECT_TRUE(d.meets_at(0, 3));
  EXPECT_FALSE(d.meets_at(0, 1));
  EXPECT_TRUE(d.meets_at(1, 3));
  EXPECT_TRUE(d.meets_at(2, 2));
}

TEST(PostDominators, WhatEndsInTwoPlacesMeetsInTheSink) {
  const PostDominators d({{1, 2}, {}, {}});
  EXPECT_EQ(d.immediate(0), PostDominators::kSink);
  EXPECT_FALSE(d.meets_at(0, 1));
}

/// Whether an end can be reached from `node` without coming past `other`.
bool avoids(const std::vector<std::vector<int>>& readers, int node, int other) {
  if (node == other) return false;
  const auto& next = readers[static_cast<std::size_t>(node)];
  if (next.empty()) return true;
  for (const int reader : next)
    if (avoids(readers, reader, other)) return true;
  return false;
}

TEST(PostDominators, AgreeWithAllPathsOfRandomGraphs) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::vector<int>> readers(10);
    for (int n = 0; n < 9; ++n)
      for (int r = n + 1; r < 10; ++r)
        if (random() % 4 == 0) readers[static_cast<std::size_t>(n)].push_back(r);
    const PostDominators d(readers);
    for (int n = 0; n < 10; ++n)
      for (int o = n; o < 10; ++o) EXPECT_EQ(d.meets_at(n, o), !avoids(readers, n, o)) << seed;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
