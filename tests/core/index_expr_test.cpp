#include <gtest/gtest.h>

#include <random>

#include "core/index/index_map.h"

namespace stitchwork {
namespace TEST_FILE {

IndexExpr d(int i) { return IndexExpr::dim(i); }
IndexExpr v(std::int64_t k) { return IndexExpr::value(k); }

IndexMap context(std::vector<std::int64_t> dims) {
  IndexMap map;
  map.dims = std::move(dims);
  return map;
}

TEST(IndexExpr, SumsAreCanonicalWhateverTheOrder) {
  EXPECT_EQ(d(0) + d(1) * 3 + v(2), v(2) + d(1) * 2 + d(0) + d(1));
  EXPECT_EQ(d(0) - d(0), v(0));
  EXPECT_EQ(to_text(d(1) * 64 + d(0) - v(7)), "d0 + d1 * 64 - 7");
}

TEST(IndexExpr, MultiplesLeaveFloordivAndMod) {
  EXPECT_EQ(floordiv(d(0) * 64 + d(1), 64), d(0) + floordiv(d(1), 64));
  EXPECT_EQ(mod(d(0) * 64 + d(1), 64), mod(d(1), 64));
  EXPECT_EQ(floordiv(v(-1), 4), v(-1));
  EXPECT_EQ(mod(v(-1), 4), v(3));
  EXPECT_EQ(floordiv(d(0) * 6 + v(3), 4), floordiv(d(0) * 3 + v(1), 2));
}

TEST(IndexExpr, NestedDivisionsJoin) {
  EXPECT_EQ(floordiv(floordiv(d(0), 4), 8), floordiv(d(0), 32));
  EXPECT_EQ(floordiv(floordiv(d(0), 4) + v(3), 8), floordiv(d(0) + v(12), 32));
  EXPECT_EQ(mod(mod(d(0), 12), 4), mod(d(0), 4));
  EXPECT_EQ(floordiv(mod(d(0), 12), 4), mod(floordiv(d(0), 4), 3));
}

TEST(IndexExpr, DivisionsWhoseProductIsNoNumberStayNested) {
  // A value behind seventy paddings of every second place, as gradients of scans read them.
  IndexExpr halved = d(0);
  for (int i = 0; i < 70; ++i) halved = floordiv(halved, 2);
  EXPECT_EQ(range_of(halved, context({1 << 20})), (Interval{0, 0}));
}

TEST(IndexExpr, QuotientAndRemainderJoin) {
  EXPECT_EQ(floordiv(d(0), 8) * 8 + mod(d(0), 8), d(0));
  EXPECT_EQ(mod(floordiv(d(0), 8), 4) * 8 + mod(d(0), 8), mod(d(0), 32));
  EXPECT_EQ(floordiv(d(0), 32) * 32 + mod(floordiv(d(0), 8), 4) * 8 + mod(d(0), 8), d(0));
  EXPECT_EQ(floordiv(d(0), 32) * 4 + mod(floordiv(d(0), 8), 4), floordiv(d(0), 8));
}

TEST(IndexExpr, RangesRemoveFloordivAndMod) {
  const IndexMap map = context({128, 64});
  EXPECT_EQ(simplify(mod(d(1), 64), map), d(1));
  EXPECT_EQ(simplify(floordiv(d(1), 64), map), v(0));
  EXPECT_EQ(simplify(floordiv(d(0) * 64 + d(1), 128), map), floordiv(d(0), 2));
  EXPECT_EQ(simplify(mod(d(0) * 64 + d(1), 128), map), mod(d(0), 2) * 64 + d(1));
  EXPECT_EQ(simplify(mod(d(1) + v(64), 64), map), d(1));
}

TEST(IndexExpr, RangesAreExactForAffineAndHullsForMod) {
  const IndexMap map = context({10, 7});
  EXPECT_EQ(range_of(d(0) * 3 - d(1) + v(2), map), (Interval{-4, 29}));
  EXPECT_EQ(range_of(mod(d(0), 4), map), (Interval{0, 3}));
  EXPECT_EQ(range_of(mod(d(1) + v(8), 16), map), (Interval{8, 14}));
  EXPECT_EQ(range_of(floordiv(d(0) - v(1), 4), map), (Interval{-1, 2}));
}

TEST(IndexExpr, RangesWithoutAConstraintAreThoseOfTheOthers) {
  IndexMap map = context({10, 7});
  map.constraints = {{d(0), {0, 4}}, {d(0) + d(1), {3, 5}}};
  EXPECT_EQ(range_of(d(0), map), (Interval{0, 4}));
  EXPECT_EQ(range_without(map.constraints[0], map), (Interval{0, 9}));
  EXPECT_EQ(range_without(map.constraints[1], map), (Interval{0, 10}));
}

TEST(IndexExpr, TextBindsFloordivTighterThanSums) {
  EXPECT_EQ(to_text(floordiv(d(0) * 5 + d(1), 3) * 2 + mod(d(1), 4)),
            "((d0 * 5 + d1) floordiv 3) * 2 + d1 mod 4");
  EXPECT_EQ(to_text(v(-3)), "-3");
}

TEST(IndexExpr, DelinearizeUndoesLinearize) {
  const std::vector<std::int64_t> extents{4, 1, 6, 5};
  const IndexMap map = context(extents);
  const std::vector<IndexExpr> index{d(0), v(0), d(2), d(3)};
  std::vector<IndexExpr> back = delinearize(linearize(index, extents), extents);
  for (std::size_t i = 0; i < extents.size(); ++i) EXPECT_EQ(simplify(back[i], map), index[i]);
}

/// A random expression with its value known by construction: every step is mirrored in plain arithmetic.
struct Traced {
  IndexExpr expr;
  std::vector<std::int64_t> values;  ///< at each point of the box
};

class RandomExpressions {
 public:
  explicit RandomExpressions(std::uint32_t seed) : random_(seed) {
    for (std::int64_t& n : extents_) n = pick(1, 6);
  }
  const std::vector<std::int64_t>& extents() const { return extents_; }
  std::size_t points() const { return static_cast<std::size_t>(extents_[0] * extents_[1] * extents_[2]); }
  std::vector<std::int64_t> point(std::size_t p) const {
    const auto i = static_cast<std::int64_t>(p);
    return {i / (extents_[1] * extents_[2]), i / extents_[2] % extents_[1], i % extents_[2]};
  }
  Traced make(int depth) {
    Traced result;
    if (depth == 0) {
      const auto which = static_cast<int>(pick(0, 3));
      result.expr = which == 3 ? v(pick(-9, 9)) : d(which);
      for (std::size_t p = 0; p < points(); ++p)
        result.values.push_back(which == 3 ? result.expr.constant
                                           : point(p)[static_cast<std::size_t>(which)]);
      return result;
    }
    result = make(depth - 1);
    const std::int64_t k = pick(1, 12);
    switch (pick(0, 4)) {
      case 0:
      case 1: {
        const Traced other = make(depth - 1);
        const std::int64_t scale = pick(-6, 6);
        result.expr = result.expr + other.expr * scale;
        for (std::size_t p = 0; p < points(); ++p) result.values[p] += scale * other.values[p];
        break;
      }
      case 2:
        result.expr = floordiv(result.expr, k);
        for (std::int64_t& x : result.values) x = (x - ((x % k) + k) % k) / k;
        break;
      case 3:
        result.expr = mod(result.expr, k);
        for (std::int64_t& x : result.values) x = ((x % k) + k) % k;
        break;
      default:
        result.expr = result.expr * k;
        for (std::int64_t& x : result.values) x *= k;
    }
    return result;
  }

 private:
  std::int64_t pick(std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(hi - lo + 1));
  }
  std::mt19937 random_;
  std::vector<std::int64_t> extents_ = {1, 1, 1};
};

TEST(IndexExpr, RewritingNeverChangesAValue) {
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    RandomExpressions random(seed);
    const Traced traced = random.make(5);
    const IndexMap map = context(random.extents());
    const IndexExpr simple = simplify(traced.expr, map);
    const Interval range = range_of(traced.expr, map);
    for (std::size_t p = 0; p < random.points(); ++p) {
      const std::vector<std::int64_t> at = random.point(p);
      ASSERT_EQ(evaluate(traced.expr, at, {}), traced.values[p]) << seed << ": " << to_text(traced.expr);
      ASSERT_EQ(evaluate(simple, at, {}), traced.values[p])
          << seed << ": " << to_text(traced.expr) << " became " << to_text(simple);
      ASSERT_TRUE(range.contains(traced.values[p])) << seed << ": " << to_text(traced.expr);
    }
    ASSERT_EQ(simplify(simple, map), simple) << seed;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
