#include "core/index/index_map.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "core/index/index_ranges.h"

namespace stitchwork {
namespace TEST_FILE {

using Dims = std::vector<std::int64_t>;

IndexExpr d(int i) { return IndexExpr::dim(i); }
IndexExpr v(std::int64_t k) { return IndexExpr::value(k); }

IndexMap map_from(Dims dims, std::vector<IndexExpr> results, std::vector<Constraint> constraints = {}) {
  IndexMap map;
  map.dims = std::move(dims);
  map.results = std::move(results);
  map.constraints = std::move(constraints);
  return simplify(std::move(map));
}

IndexMap reshape(const Dims& out, const Dims& in) {
  std::vector<IndexExpr> index;
  for (std::size_t i = 0; i < out.size(); ++i) index.push_back(d(static_cast<int>(i)));
  return map_from(out, delinearize(linearize(index, out), in));
}

IndexMap transpose(const Dims& out, const std::vector<int>& in_dim_of) {
  std::vector<IndexExpr> results;
  for (const int i : in_dim_of) results.push_back(d(i));
  return map_from(out, results);
}

TEST(IndexMap, IdentityIsNeutral) {
  const IndexMap f = reshape({4, 6}, {8, 3});
  EXPECT_EQ(compose(IndexMap::identity(Dims{4, 6}), f), f);
  EXPECT_EQ(compose(f, IndexMap::identity(Dims{8, 3})), f);
  EXPECT_TRUE(IndexMap::identity(Dims{4, 1, 6}).is_identity());
  EXPECT_FALSE(f.is_identity());
}

TEST(IndexMap, ReshapeThereAndBackIsIdentity) {
  const std::vector<std::pair<Dims, Dims>> pairs = {
      {{4096, 256}, {64, 64, 256}}, {{128, 768}, {128, 12, 64}}, {{6, 4}, {8, 3}},
      {{2, 3, 5, 7}, {7, 30}},      {{30, 7}, {7, 30}},          {{1, 128, 768}, {128, 768}}};
  for (const auto& [a, b] : pairs) {
    EXPECT_TRUE(compose(reshape(a, b), reshape(b, a)).is_identity())
        << to_text(compose(reshape(a, b), reshape(b, a)));
    EXPECT_TRUE(compose(reshape(b, a), reshape(a, b)).is_identity());
  }
}

TEST(IndexMap, AttentionHeadsStaySimple) {
  // [128,768] -> [128,12,64] -> transpose [12,128,64]: what each element of the transpose reads.
  const IndexMap heads = compose(transpose({12, 128, 64}, {1, 0, 2}), reshape({128, 12, 64}, {128, 768}));
  EXPECT_EQ(to_text(heads), "(d0, d1, d2) -> (d1, d0 * 64 + d2)");
  // and back: transpose [128,12,64] -> reshape [128,768]
  const IndexMap back = compose(reshape({128, 768}, {128, 12, 64}), transpose({128, 12, 64}, {1, 0, 2}));
  EXPECT_EQ(to_text(back), "(d0, d1) -> (d1 floordiv 64, d0, d1 mod 64)");
  EXPECT_TRUE(compose(back, heads).is_identity());
}

TEST(IndexMap, DividendsAreNonNegativeWhereTheyCanBe) {
  const IndexMap map = compose(reshape({32}, {2, 16}), map_from({2, 16}, {v(1) - d(0), v(15) - d(1)}));
  EXPECT_EQ(to_text(map), "(d0) -> (-d0 floordiv 16 + 1, -d0 mod 16 + 15)");
  const IndexMap other = compose(map_from({32}, {v(31) - d(0)}), reshape({32}, {2, 16}));
  EXPECT_EQ(to_text(other), "(d0) -> ((-d0 + 31) floordiv 16, (-d0 + 31) mod 16)");
}

TEST(IndexMap, ConstraintsNarrowWhatFollows) {
  // The second part of a concatenation, reshaped: under the constraint the offset is gone.
  const IndexMap part = map_from({8, 6}, {d(0) - v(4), d(1)}, {{d(0), {4, 7}}});
  EXPECT_EQ(range_of(part.results[0], part), (Interval{0, 3}));
  const IndexMap both = compose(part, map_from({4, 6}, {d(0), d(1)}, {{d(0), {2, 3}}}));
  EXPECT_EQ(to_text(both), "(d0, d1) -> (d0 - 4, d1) where d0 in 6..7");
}

TEST(IndexMap, ImpliedConstraintsGoAndImpossibleOnesEmptyTheMap) {
  EXPECT_TRUE(map_from({8}, {d(0)}, {{d(0) * 2, {-3, 15}}}).constraints.empty());
  EXPECT_TRUE(map_from({8}, {d(0)}, {{d(0), {8, 20}}}).is_empty());
  EXPECT_TRUE(map_from({8}, {d(0)}, {{d(0), {0, 2}}, {d(0), {5, 7}}}).is_empty());
  EXPECT_FALSE(map_from({8}, {d(0)}, {{d(0), {0, 5}}, {d(0), {5, 7}}}).is_empty());
  EXPECT_TRUE(map_from({8, 0}, {d(0)}).is_empty());
}

TEST(IndexMap, ConstraintsAreNormalised) {
  EXPECT_EQ(map_from({8}, {d(0)}, {{v(3) - d(0) * 2, {-5, 0}}}), map_from({8}, {d(0)}, {{d(0), {2, 4}}}));
}

TEST(IndexMap, ComposeConcatenatesSymbolsAndRuntimeVariables) {
  IndexMap outer = IndexMap::identity(Dims{5});
  outer.symbols = {4};
  outer.results = {d(0), IndexExpr::symbol(0)};
  outer.runtime.push_back({7, {d(0)}, {0, 2}});
  outer.results[0] = d(0) + IndexExpr::runtime(0);
  IndexMap inner;
  inner.dims = {7, 4};
  inner.symbols = {3};
  inner.runtime.push_back({9, {d(1)}, {0, 9}});
  inner.results = {d(1), IndexExpr::symbol(0), IndexExpr::runtime(0) + d(0)};
  EXPECT_EQ(to_text(compose(outer, inner)),
            "(d0)[s0 in 0..3, s1 in 0..2]{r0 = node 7[d0] in 0..2, r1 = node 9[s0] in 0..9} -> "
            "(s0, s1, d0 + r0 + r1)");
}

TEST(IndexMap, DependencyClassesOfTable1) {
  const Dims matrix{4096, 256}, row{4096}, scalar{};
  EXPECT_EQ(dependency(IndexMap::identity(matrix), matrix), Dependency::kOneToOne);
  EXPECT_EQ(dependency(reshape({64, 64, 256}, matrix), matrix), Dependency::kOneToOne);
  EXPECT_EQ(dependency(transpose({256, 4096}, {1, 0}), matrix), Dependency::kOneToOne);
  EXPECT_EQ(dependency(map_from({4, 6}, {d(0) * 2 + v(1), v(5) - d(1)}), Dims{9, 6}), Dependency::kOneToOne);
  EXPECT_EQ(dependency(map_from(matrix, {d(0)}), row), Dependency::kOneToMany);
  EXPECT_EQ(dependency(map_from(matrix, {}), scalar), Dependency::kOneToMany);
  EXPECT_EQ(dependency(map_from({8, 3}, {floordiv(d(0), 2), d(1)}), Dims{4, 3}), Dependency::kOneToMany);
  // Pad and concatenate read no element twice; a broadcast that is concatenated does.
  EXPECT_EQ(dependency(map_from({9}, {d(0) - v(2)}, {{d(0), {2, 6}}}), Dims{5}), Dependency::kOneToOne);
  EXPECT_EQ(dependency(map_from({9, 3}, {d(1)}, {{d(0), {2, 6}}}), Dims{3}), Dependency::kOneToMany);
  IndexMap sum = map_from(row, {d(0)});
  sum.symbols = {256};
  sum.results.push_back(IndexExpr::symbol(0));
  EXPECT_EQ(dependency(sum, matrix), Dependency::kManyToOne);
  IndexMap product = sum;
  product.dims = {4096, 32};
  EXPECT_EQ(dependency(product, matrix), Dependency::kOther);
  IndexMap lookup = map_from({16}, {IndexExpr{}});
  lookup.runtime.push_back({1, {d(0)}, {0, 99}});
  lookup.results = {IndexExpr::runtime(0)};
  EXPECT_EQ(dependency(lookup, Dims{100}), Dependency::kOther);
  // Overlapping windows read an element several times, disjoint ones once.
  const auto pool = [](std::int64_t stride) {
    IndexMap map;
    map.dims = {8};
    map.symbols = {3};
    map.results = {IndexExpr::dim(0) * stride + IndexExpr::symbol(0)};
    return map;
  };
  EXPECT_EQ(dependency(pool(3), Dims{24}), Dependency::kManyToOne);
  EXPECT_EQ(dependency(pool(2), Dims{17}), Dependency::kOther);
}

TEST(IndexMap, InversesOfLayoutOps) {
  const auto round_trip = [](const IndexMap& map, const Dims& extents) {
    const std::optional<IndexMap> inverse = invert(map, extents);
    ASSERT_TRUE(inverse) << to_text(map);
    EXPECT_TRUE(compose(*inverse, map).is_identity()) << to_text(*inverse);
    EXPECT_TRUE(compose(map, *inverse).is_identity()) << to_text(*inverse);
  };
  round_trip(IndexMap::identity(Dims{3, 1, 4}), {3, 1, 4});
  round_trip(reshape({64, 64, 256}, {4096, 256}), {4096, 256});
  round_trip(reshape({4096, 256}, {64, 64, 256}), {64, 64, 256});
  round_trip(reshape({6, 4}, {8, 3}), {8, 3});
  round_trip(reshape({6, 4}, {2, 4, 3}), {2, 4, 3});
  round_trip(transpose({12, 128, 64}, {1, 0, 2}), {128, 12, 64});
  round_trip(map_from({5, 6}, {v(4) - d(0), d(1)}), {5, 6});
  round_trip(compose(transpose({12, 128, 64}, {1, 0, 2}), reshape({128, 12, 64}, {128, 768})), {128, 768});
  // A reshape that does not align, transposed and reshaped again.
  const IndexMap chain =
      compose(reshape({4, 6}, {3, 8}), compose(transpose({3, 8}, {1, 0}), reshape({8, 3}, {6, 4})));
  round_trip(chain, {6, 4});
}

TEST(IndexMap, WhatIsNoBijectionHasNoInverse) {
  EXPECT_FALSE(invert(map_from({4, 6}, {d(0)}), Dims{4}));
  EXPECT_FALSE(invert(map_from({4}, {d(0) * 2}), Dims{8}));
  EXPECT_FALSE(invert(map_from({4}, {d(0)}, {{d(0), {0, 2}}}), Dims{4}));
  EXPECT_FALSE(invert(map_from({4, 4}, {d(0), d(0)}), Dims{4, 4}));
}

/// Random chains of layout ops: the composed map against labels carried element by element.
struct Tensor {
  Dims dims;
  std::vector<std::int64_t> labels;  ///< linear index in the chain's input; -1: not from the input
};

std::int64_t count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

Dims unflatten(std::int64_t linear, const Dims& dims) {
  Dims at(dims.size());
  for (std::size_t i = dims.size(); i-- > 0;) {
    at[i] = linear % dims[i];
    linear /= dims[i];
  }
  return at;
}

std::int64_t flatten(const Dims& at, const Dims& dims) {
  std::int64_t linear = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) linear = linear * dims[i] + at[i];
  return linear;
}

/// One random op: the tensor it makes of `in` and its map.
class RandomOps {
 public:
  explicit RandomOps(std::uint32_t seed) : random_(seed) {}
  std::int64_t pick(std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(hi - lo + 1));
  }
  Dims start() {
    Dims dims(static_cast<std::size_t>(pick(1, 3)));
    for (std::int64_t& n : dims)
      n = std::array<std::int64_t, 6>{1, 2, 3, 4, 6, 8}[static_cast<std::size_t>(pick(0, 5))];
    return dims;
  }

  std::pair<Tensor, IndexMap> bijection(const Tensor& in) {
    switch (pick(0, 2)) {
      case 0:
        return reshaped(in);
      case 1:
        return transposed(in);
      default:
        return reversed(in);
    }
  }
  std::pair<Tensor, IndexMap> any(const Tensor& in) {
    const auto axis = static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(in.dims.size()) - 1));
    std::vector<IndexExpr> results;
    for (std::size_t i = 0; i < in.dims.size(); ++i) results.push_back(d(static_cast<int>(i)));
    Dims out = in.dims;
    const std::int64_t n = in.dims[axis];
    switch (pick(0, 6)) {
      case 0: {  // slice
        const std::int64_t start = pick(0, n - 1), limit = pick(start + 1, n), stride = pick(1, 3);
        out[axis] = (limit - start + stride - 1) / stride;
        results[axis] = results[axis] * stride + v(start);
        const auto source = [=](std::int64_t i) { return start + i * stride; };
        return {along(in, axis, out[axis], source), map_from(out, results)};
      }
      case 1: {  // broadcast: a new dimension
        if (count(out) > 200) return bijection(in);
        out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), pick(1, 3));
        for (std::size_t i = axis; i < results.size(); ++i) results[i] = d(static_cast<int>(i) + 1);
        Tensor tensor{out, {}};
        for (std::int64_t p = 0; p < count(out); ++p) {
          Dims at = unflatten(p, out);
          at.erase(at.begin() + static_cast<std::ptrdiff_t>(axis));
          tensor.labels.push_back(in.labels[static_cast<std::size_t>(flatten(at, in.dims))]);
        }
        return {tensor, map_from(out, results)};
      }
      case 2: {  // pad, with negative edges and interior
        const std::int64_t low = pick(-1, 2), interior = pick(0, 2), step = interior + 1;
        const std::int64_t high = std::max<std::int64_t>(pick(-1, 2), 1 - low - (n - 1) * step - 1);
        out[axis] = low + high + (n - 1) * step + 1;
        const IndexExpr at = results[axis] - v(low);
        results[axis] = floordiv(at, step);
        const auto source = [=](std::int64_t i) {
          const std::int64_t x = i - low;
          return x < 0 || x > (n - 1) * step || x % step != 0 ? -1 : x / step;
        };
        return {along(in, axis, out[axis], source),
                map_from(out, results, {{at, {0, (n - 1) * step}}, {mod(at, step), {0, 0}}})};
      }
      case 3: {  // concatenate between two others
        const std::int64_t before = pick(0, 4), after = pick(0, 4);
        out[axis] = before + n + after;
        results[axis] = results[axis] - v(before);
        const auto source = [=](std::int64_t i) { return i < before || i >= before + n ? -1 : i - before; };
        return {along(in, axis, out[axis], source),
                map_from(out, results, {{d(static_cast<int>(axis)), {before, before + n - 1}}})};
      }
      default:
        return bijection(in);
    }
  }

 private:
  template <typename Source>
  static Tensor along(const Tensor& in, std::size_t axis, std::int64_t extent, const Source& source) {
    Tensor out{in.dims, {}};
    out.dims[axis] = extent;
    for (std::int64_t p = 0; p < count(out.dims); ++p) {
      Dims at = unflatten(p, out.dims);
      at[axis] = source(at[axis]);
      out.labels.push_back(at[axis] < 0 ? -1 : in.labels[static_cast<std::size_t>(flatten(at, in.dims))]);
    }
    return out;
  }
  std::pair<Tensor, IndexMap> reshaped(const Tensor& in) {
    Dims out;
    std::int64_t rest = count(in.dims);
    while (rest > 1 && out.size() < 3) {
      std::vector<std::int64_t> divisors;
      for (std::int64_t k = 1; k <= rest; ++k)
        if (rest % k == 0) divisors.push_back(k);
      out.push_back(
          divisors[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(divisors.size()) - 1))]);
      rest /= out.back();
    }
    out.push_back(rest);
    return {Tensor{out, in.labels}, reshape(out, in.dims)};
  }
  std::pair<Tensor, IndexMap> transposed(const Tensor& in) {
    std::vector<int> position(in.dims.size());
    std::iota(position.begin(), position.end(), 0);
    std::shuffle(position.begin(), position.end(), random_);
    Tensor out{Dims(in.dims.size()), {}};
    for (std::size_t i = 0; i < position.size(); ++i)
      out.dims[static_cast<std::size_t>(position[i])] = in.dims[i];
    for (std::int64_t p = 0; p < count(out.dims); ++p) {
      const Dims at = unflatten(p, out.dims);
      Dims from(at.size());
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = at[static_cast<std::size_t>(position[i])];
      out.labels.push_back(in.labels[static_cast<std::size_t>(flatten(from, in.dims))]);
    }
    return {out, transpose(out.dims, position)};
  }
  std::pair<Tensor, IndexMap> reversed(const Tensor& in) {
    const auto axis = static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(in.dims.size()) - 1));
    const std::int64_t n = in.dims[axis];
    std::vector<IndexExpr> results;
    for (std::size_t i = 0; i < in.dims.size(); ++i) results.push_back(d(static_cast<int>(i)));
    results[axis] = v(n - 1) - results[axis];
    return {along(in, axis, n, [n](std::int64_t i) { return n - 1 - i; }), map_from(in.dims, results)};
  }
  std::mt19937 random_;
};

Tensor labelled(const Dims& dims) {
  Tensor tensor{dims, std::vector<std::int64_t>(static_cast<std::size_t>(count(dims)))};
  std::iota(tensor.labels.begin(), tensor.labels.end(), 0);
  return tensor;
}

void expect_traces(const IndexMap& map, const Tensor& out, const Dims& in, std::uint32_t seed) {
  bool any = false;
  for (std::int64_t p = 0; p < count(out.dims); ++p) {
    const Dims at = unflatten(p, out.dims);
    std::int64_t label = -1;
    bool applies = true;
    for (const Constraint& c : map.constraints) applies &= c.range.contains(evaluate(c.expr, at, {}));
    if (applies) {
      Dims from;
      for (std::size_t i = 0; i < in.size(); ++i) {
        from.push_back(evaluate(map.results[i], at, {}));
        ASSERT_TRUE(range_of(map.results[i], map).contains(from.back())) << seed << ": " << to_text(map);
      }
      label = flatten(from, in);
      any = true;
    }
    ASSERT_EQ(label, out.labels[static_cast<std::size_t>(p)]) << seed << ": " << to_text(map);
  }
  ASSERT_FALSE(any && map.is_empty()) << seed << ": " << to_text(map);
}

TEST(IndexMap, ComposedChainsReadTheElementsThatTracingFinds) {
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    RandomOps random(seed);
    const Dims in = random.start();
    Tensor tensor = labelled(in);
    IndexMap map = IndexMap::identity(in);
    for (int step = 0; step < 6 && count(tensor.dims) <= 4000; ++step) {
      auto [next, op] = random.any(tensor);
      tensor = std::move(next);
      map = compose(op, map);
      ASSERT_NO_FATAL_FAILURE(expect_traces(map, tensor, in, seed));
    }
    ASSERT_EQ(simplify(map), map) << seed << ": " << to_text(map) << " became " << to_text(simplify(map));
  }
}

TEST(IndexMap, ComposeIsAssociativeInMeaning) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    RandomOps random(seed);
    const Dims in = random.start();
    const auto [a, f] = random.any(labelled(in));
    const auto [b, g] = random.any(a);
    const auto [c, h] = random.any(b);
    ASSERT_NO_FATAL_FAILURE(expect_traces(compose(compose(h, g), f), c, in, seed));
    ASSERT_NO_FATAL_FAILURE(expect_traces(compose(h, compose(g, f)), c, in, seed));
  }
}

TEST(IndexMap, InversesOfChainsAreInverses) {
  int inverted = 0;
  constexpr int kChains = 2000;
  for (std::uint32_t seed = 0; seed < kChains; ++seed) {
    RandomOps random(seed);
    const Dims in = random.start();
    Tensor tensor = labelled(in);
    IndexMap map = IndexMap::identity(in);
    for (int step = 0; step < 4; ++step) {
      auto [next, op] = random.bijection(tensor);
      tensor = std::move(next);
      map = compose(op, map);
    }
    const std::optional<IndexMap> inverse = invert(map, in);
    if (!inverse) continue;
    ++inverted;
    for (std::int64_t p = 0; p < count(in); ++p) {
      Dims there;
      for (const IndexExpr& result : inverse->results)
        there.push_back(evaluate(result, unflatten(p, in), {}));
      ASSERT_EQ(tensor.labels[static_cast<std::size_t>(flatten(there, tensor.dims))], p)
          << seed << ": " << to_text(map) << " inverted to " << to_text(*inverse);
    }
    ASSERT_EQ(dependency(map, in), Dependency::kOneToOne) << seed << ": " << to_text(map);
  }
  // Given up on: pieces reversed and then cut across, and reshapes that cut one dim along two others.

  EXPECT_GT(inverted, kChains * 90 / 100);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
