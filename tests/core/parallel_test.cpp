#include "core/base/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/interrupt.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(ParallelFor, EachItemOnce) {
  for (const std::size_t count : {0u, 1u, 2u, 1000u}) {
    std::vector<std::atomic<int>> times(count);
    parallel_for(count, [&](std::size_t i) { ++times[i]; });
    EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](const auto& t) { return t == 1; })) << count;
  }
}

TEST(ParallelFor, ThrowsWhatALoopWouldHaveMetFirst) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<std::size_t> last = 0;
    try {
      parallel_for(10'000, [&](std::size_t i) {
        std::size_t seen = last;
        while (seen < i && !last.compare_exchange_weak(seen, i)) {
        }
        if (i >= 30) throw Error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "30");
    }
    EXPECT_LT(last, 30 + 2 * std::max(2u, std::thread::hardware_concurrency()))
        << "items begun after a failure";
  }
}

TEST(ParallelFor, BodiesEndWhereTheCallerIsInterrupted) {
  struct Stop {};
  std::atomic<bool> stop = false;
  const Interruptible asked([&] {
    if (stop) throw Stop{};
  });
  std::atomic<int> ended = 0;
  EXPECT_THROW(parallel_for(100,
                            [&](std::size_t i) {
                              if (i == 1) stop = true;
                              while (!stop) std::this_thread::yield();
                              interruption_point();
                              ++ended;
                            }),
               Stop);
  EXPECT_EQ(ended, 0);
}

TEST(ParallelFor, WithinABodyIsALoop) {
  parallel_for(4, [](std::size_t) {
    const std::thread::id here = std::this_thread::get_id();
    parallel_for(4, [&](std::size_t) { EXPECT_EQ(std::this_thread::get_id(), here); });
  });
}

}  // namespace TEST_FILE
}  // namespace stitchwork
