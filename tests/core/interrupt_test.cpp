#include "core/base/interrupt.h"

#include <gtest/gtest.h>

#include <thread>

namespace stitchwork {
namespace TEST_FILE {

struct Stop {};

TEST(Interrupt, PointsDoNothingWhereNobodyAsked) { EXPECT_NO_THROW(interruption_point()); }

TEST(Interrupt, WhatThePollThrowsEndsTheWork) {
  int left = 3;
  const Interruptible asked([&] {
    if (--left == 0) throw Stop{};
  });
  int done = 0;
  EXPECT_THROW(for (;; ++done) interruption_point(), Stop);
  EXPECT_EQ(done, 2);
}

TEST(Interrupt, InnermostCountsAndTheOuterOneComesBack) {
  int outer = 0, inner = 0;
  const Interruptible asked([&] { ++outer; });
  {
    const Interruptible nearer([&] { ++inner; });
    interruption_point();
  }
  interruption_point();
  EXPECT_EQ(outer, 1);
  EXPECT_EQ(inner, 1);
}

TEST(Interrupt, OtherThreadsAreNotAsked) {
  const Interruptible asked([] { throw Stop{}; });
  std::thread([] { interruption_point(); }).join();  // would end the program
}

}  // namespace TEST_FILE
}  // namespace stitchwork
