#include "simulator/cost/sm_loads.h"

#include <gtest/gtest.h>

#include <random>

namespace stitchwork::sim {
namespace TEST_FILE {

ThreadWork work(double instructions) { return {.warp_instructions = instructions}; }

TEST(SmLoads, BlocksStartOnSmsInTurn) {
  const Device& d = device("v100");
  SmLoads loads(d, 160);
  for (std::uint64_t b = 0; b < 100; ++b) loads.add(b, work(b < 80 ? 10 : 1));
  const Stretch s = loads.close(1, 100);
  EXPECT_DOUBLE_EQ(s.all.warp_instructions, 820);
  EXPECT_DOUBLE_EQ(s.busiest_sm.warp_instructions, 11);
  EXPECT_DOUBLE_EQ(s.longest_block.warp_instructions, 10);
}

TEST(SmLoads, LaterBlocksStartWhereWorkEndsFirst) {
  SmLoads loads(device("v100"), 80);
  for (std::uint64_t b = 0; b < 80; ++b) loads.add(b, work(b == 0 ? 100 : 1));
  for (std::uint64_t b = 80; b < 80 + 79 * 9; ++b) loads.add(b, work(1));
  EXPECT_DOUBLE_EQ(loads.close(1, 80).busiest_sm.warp_instructions, 100);
}

TEST(SmLoads, ATailFillsWhatTheWavesLeftIdle) {
  SmLoads loads(device("v100"), 80);
  for (std::uint64_t b = 0; b < 80; ++b) loads.add(b, work(b < 40 ? 100 : 1));
  loads.close(1, 80);
  for (std::uint64_t b = 80; b < 120; ++b) loads.add(b, work(50));
  EXPECT_DOUBLE_EQ(loads.close(1, 40).busiest_sm.warp_instructions, 0);
}

TEST(SmLoads, BlocksThatAreAlikeAddUpAsOneByOne) {
  const Device& d = device("v100");
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    SmLoads together(d, 160), single(d, 160);
    std::uint64_t next = 0;
    for (int wave = 0; wave < 5; ++wave) {
      const std::uint64_t count = 1 + random() % 400, times = 1 + random() % 3;
      const std::vector<ThreadWork> blocks(count, work(7));
      together.add(next, blocks, times);
      for (std::uint64_t b = 0; b < count * times; ++b) single.add(next + b, blocks[0]);
      next += count * times;
    }
    const Stretch a = together.close(1, 160), b = single.close(1, 160);
    EXPECT_DOUBLE_EQ(a.all.warp_instructions, b.all.warp_instructions);
    EXPECT_LE(std::abs(a.busiest_sm.warp_instructions - b.busiest_sm.warp_instructions), 7);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
