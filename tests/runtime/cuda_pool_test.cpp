#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/cuda/pool.h"

namespace stitchwork::cuda {
namespace TEST_FILE {

TEST(CudaPool, WhatIsGivenBackIsDealtOutAgain) {
  Pool pool;
  pool.add(4096, 1024);
  EXPECT_EQ(pool.take(1), 4096u);
  EXPECT_EQ(pool.take(256), 4352u);
  EXPECT_EQ(pool.take(513), std::nullopt);
  EXPECT_EQ(pool.take(512), 4608u);
  pool.give_back(4096);
  pool.give_back(4352);  // neighbours are one again
  EXPECT_EQ(pool.take(512), 4096u);
  EXPECT_EQ(pool.used(), 1024u);
  EXPECT_EQ(pool.most_used(), 1024u);
}

TEST(CudaPool, NoBufferLiesInTwoAllocations) {
  Pool pool;
  pool.add(0x1000, 256);
  pool.add(0x1100, 256);
  EXPECT_EQ(pool.take(512), std::nullopt);
  const auto first = pool.take(256), second = pool.take(256);
  pool.give_back(*first);
  pool.give_back(*second);
  EXPECT_EQ(pool.take(512), std::nullopt);
}

TEST(CudaPool, BuffersInUseNeverMeet) {
  Pool pool;
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;
  pool.add(kBytes, kBytes);
  std::mt19937 random(7);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> held;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0 && !held.empty()) {
      const std::size_t which = random() % held.size();
      pool.give_back(held[which].first);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      continue;
    }
    const std::uint64_t bytes = 1 + random() % 30000;
    const auto address = pool.take(bytes);
    if (!address) continue;
    ASSERT_TRUE(*address >= kBytes && *address + bytes <= 2 * kBytes && *address % Pool::kAlignment == 0);
    for (const auto& [other, size] : held) ASSERT_TRUE(*address + bytes <= other || other + size <= *address);
    held.emplace_back(*address, bytes);
  }
  for (const auto& [address, bytes] : held) pool.give_back(address);
  EXPECT_EQ(pool.used(), 0u);
  EXPECT_EQ(pool.take(kBytes), kBytes) << "all of it is one range again";
}

}  // namespace TEST_FILE
}  // namespace stitchwork::cuda
