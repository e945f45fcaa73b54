#include "simulator/machine/byte_flags.h"

#include <gtest/gtest.h>

#include <random>

namespace stitchwork::sim {
namespace TEST_FILE {

TEST(ByteFlags, RangesAreThoseOfFlagsOneByOne) {
  constexpr std::size_t kBytes = 300;
  ByteFlags flags(kBytes, false);
  std::vector<bool> expected(kBytes, false);
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t first = random() % kBytes, count = random() % (kBytes - first + 1);
    const bool value = random() % 2 != 0;
    if (round % 3 == 0) {
      flags.set(first, count, value);
      std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(first), count, value);
    }
    const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(first),
               end = begin + static_cast<std::ptrdiff_t>(count);
    EXPECT_EQ(flags.all(first, count), std::find(begin, end, false) == end) << first << "+" << count;
    EXPECT_EQ(flags.any(first, count), std::find(begin, end, true) != end) << first << "+" << count;
    EXPECT_EQ(flags.leading(first, count), static_cast<std::size_t>(std::find(begin, end, false) - begin));
  }
}

TEST(ByteFlags, NoBytesAreEmpty) {
  EXPECT_TRUE(ByteFlags().empty());
  EXPECT_TRUE(ByteFlags(0, true).empty());
  EXPECT_TRUE(ByteFlags(1, true).all(0, 1));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
