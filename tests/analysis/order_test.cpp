// Which of several forms is taken: a strict weak order, and a bound on what it may cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "analysis/judge/judge.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

/// Figures that often share a bucket, or lie at its edges.
class Draw {
 public:
  explicit Draw(std::uint32_t seed, double resolution) : random_(seed), resolution_(resolution) {}

  Worth worth() {
    Worth w;
    w.us = figure(2);
    w.dram_sectors = figure(1000);
    w.l2_sectors = figure(2000);
    w.simple = {few(), few(), few(), few()};
    return w;
  }
  std::size_t below(std::size_t n) { return random_() % n; }
  std::mt19937& engine() { return random_; }

 private:
  double figure(double least) {
    if (random_() % 8 == 0) return random_() % 2 == 0 ? 0 : std::numeric_limits<double>::infinity();
    const double steps = static_cast<double>(random_() % 64) / 16;
    const double x = least * std::pow(1 + resolution_, steps);
    return random_() % 4 == 0 ? std::nextafter(x, 0) : x;
  }
  int few() { return static_cast<int>(random_() % 3); }

  std::mt19937 random_;
  double resolution_;
};

bool alike(const Order& order, const Worth& a, const Worth& b) {
  return !order.before(a, b) && !order.before(b, a);
}

TEST(Order, OrderIsAStrictWeakOrder) {
  constexpr int kTriples = 100'000;
  int ties = 0;
  for (const double resolution : {0.01, 0.1, 0.31}) {
    const Order order{resolution};
    Draw draw(1, resolution);
    for (int i = 0; i < kTriples / 3 + 1; ++i) {
      const Worth a = draw.worth(), b = i % 5 == 0 ? a : draw.worth(), c = i % 7 == 0 ? b : draw.worth();
      ASSERT_FALSE(order.before(a, a));
      ASSERT_FALSE(order.before(a, b) && order.before(b, a));
      if (order.before(a, b) && order.before(b, c)) {
        ASSERT_TRUE(order.before(a, c));
      }
      if (alike(order, a, b) && alike(order, b, c)) {
        ASSERT_TRUE(alike(order, a, c));
      }
      ties += alike(order, a, b);
    }
  }
  EXPECT_GE(ties, kTriples / 5);
}

TEST(Order, WhatIsTakenIsWithinTheResolutionOfTheFastestWhateverTheOrderOfTheForms) {
  for (const double resolution : {0.01, 0.1, 0.31}) {
    const Order order{resolution};
    Draw draw(2, resolution);
    int not_the_fastest = 0;
    for (int i = 0; i < 2'000; ++i) {
      std::vector<Worth> forms(2 + draw.below(12));
      std::generate(forms.begin(), forms.end(), [&] { return draw.worth(); });
      for (Worth& form : forms) form.us = std::clamp(form.us, 1.0, 1e6);
      const double fastest = std::min_element(forms.begin(), forms.end(), [](const Worth& a, const Worth& b) {
                               return a.us < b.us;
                             })->us;
      const Worth taken = forms[order.best(forms)];
      EXPECT_LE(taken.us, fastest * (1 + resolution) * (1 + 1e-12));
      not_the_fastest += taken.us > fastest;
      std::shuffle(forms.begin(), forms.end(), draw.engine());
      const Worth again = forms[order.best(forms)];
      EXPECT_TRUE(alike(order, taken, again));
      EXPECT_EQ(taken.us, again.us);
    }
    EXPECT_GT(not_the_fastest, 100) << "sectors and simplicity never decide";
  }
}

TEST(Order, FollowsSectorsAndSimplicityWhereTimesAreAlike) {
  const Order order{0.1};
  const Worth form{.us = 10.1, .dram_sectors = 1000, .l2_sectors = 4000, .simple = {1, 2, 3, 1}};
  const auto with = [&](auto change) {
    Worth changed = form;
    changed.us = 10.3;  // in the same bucket, and slower
    change(changed);
    return changed;
  };
  ASSERT_EQ(order.bucket(10.1), order.bucket(10.3));
  EXPECT_TRUE(order.before(form, with([](Worth&) {})));
  EXPECT_TRUE(order.before(with([](Worth& w) { w.dram_sectors = 800; }), form));
  EXPECT_TRUE(order.before(with([](Worth& w) { w.l2_sectors = 3000; }), form));
  EXPECT_TRUE(order.before(with([](Worth& w) { w.simple.grid_barriers = 0; }), form));
  EXPECT_TRUE(order.before(with([](Worth& w) { w.simple.choices = 0; }), form));
  EXPECT_TRUE(order.before(form, with([](Worth& w) {
                             w.us = 12;
                             w.dram_sectors = 1;
                           })));
}

TEST(Order, HasNoPlaceForWhatIsNoNumber) {
  EXPECT_THROW(Order{0.1}.bucket(std::nan("")), InternalError);
  EXPECT_THROW(Order{}.bucket(3), InternalError);
}

TEST(Worth, AddsUpOverKernels) {
  const Graph graph = testing::dataset("softmax_tiny");
  const FusionPlan plan = make_plan(graph, device("v100"), "unfused");
  ASSERT_GT(plan.kernels.size(), 1u);
  const Worth all = modelled_judge().worth(graph, device("v100"), plan.kernels);
  Worth sum;
  for (const KernelPlan& kernel : plan.kernels) {
    const Worth one = modelled_judge().worth(graph, device("v100"), {&kernel, 1});
    sum.us += one.us;
    sum.dram_sectors += one.dram_sectors;
    sum.l2_sectors += one.l2_sectors;
    sum.simple.steps += one.simple.steps;
    EXPECT_EQ(one.simple.grid_barriers, 0);
  }
  EXPECT_NEAR(all.us, sum.us, 1e-9 * sum.us);
  EXPECT_EQ(all.dram_sectors, sum.dram_sectors);
  EXPECT_EQ(all.l2_sectors, sum.l2_sectors);
  EXPECT_EQ(all.simple.steps, sum.simple.steps);
  EXPECT_EQ(all.evidence, Evidence::kModelled);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
