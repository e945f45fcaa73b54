#include "gui/layout/layered.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace stitchwork::gui {
namespace TEST_FILE {

std::vector<LayoutSize> boxes(int count) {
  return std::vector<LayoutSize>(static_cast<std::size_t>(count), {100, 40});
}

Placement2D laid_out(int nodes, const std::vector<LayoutEdge>& edges) {
  return place(layer(nodes, edges), boxes(nodes), {20, 30});
}

void expect_no_overlap(const Placement2D& p, const std::vector<LayoutSize>& sizes) {
  for (std::size_t a = 0; a < p.corner.size(); ++a)
    for (std::size_t b = a + 1; b < p.corner.size(); ++b) {
      const bool apart = p.corner[a].across + sizes[a].across <= p.corner[b].across + 1e-6 ||
                         p.corner[b].across + sizes[b].across <= p.corner[a].across + 1e-6 ||
                         p.corner[a].along + sizes[a].along <= p.corner[b].along + 1e-6 ||
                         p.corner[b].along + sizes[b].along <= p.corner[a].along + 1e-6;
      EXPECT_TRUE(apart) << a << " and " << b << " overlap";
    }
}

std::vector<LayoutEdge> random_edges(int nodes, int edges, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<LayoutEdge> result;
  for (int e = 0; e < edges; ++e) {
    const int to = 1 + static_cast<int>(random() % static_cast<unsigned>(nodes - 1));
    const int from = std::max(0, to - 1 - static_cast<int>(random() % 30U));
    result.push_back({from, to});
  }
  return result;
}

TEST(Layered, EveryEdgeLeadsToALaterRank) {
  const auto edges = random_edges(200, 400, 1);
  const Layering l = layer(200, edges);
  std::vector<int> rank(200, -1);
  for (std::size_t r = 0; r < l.ranks.size(); ++r)
    for (const auto& slot : l.ranks[r])
      if (slot.node >= 0) rank[static_cast<std::size_t>(slot.node)] = static_cast<int>(r);
  int checked = 0;
  for (std::size_t e = 0; e < edges.size(); ++e)
    if (!l.stub[e]) {
      EXPECT_LT(rank[static_cast<std::size_t>(edges[e].from)], rank[static_cast<std::size_t>(edges[e].to)]);
      ++checked;
    }
  EXPECT_GT(checked, 100);
}

TEST(Layered, BoxesDoNotOverlap) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto edges = random_edges(120, 180, seed);
    std::vector<LayoutSize> sizes;
    for (int i = 0; i < 120; ++i) sizes.push_back({30.0 + 17 * (i % 7), 20.0 + 11 * (i % 5)});
    expect_no_overlap(place(layer(120, edges), sizes, {20, 30}), sizes);
  }
}

TEST(Layered, ChainIsStraight) {
  const Placement2D p = laid_out(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}});
  for (int i = 1; i < 5; ++i)
    EXPECT_NEAR(p.corner[static_cast<std::size_t>(i)].across, p.corner[0].across, 1e-6);
  EXPECT_NEAR(p.size.along, 5 * 40 + 4 * 30, 1e-6);
}

TEST(Layered, SourcesSinkToTheirUsers) {
  // 3 is read by 4 alone, which stands at the end of a chain.
  const Placement2D p = laid_out(5, {{0, 1}, {1, 2}, {2, 4}, {3, 4}});
  EXPECT_NEAR(p.corner[3].along, p.corner[2].along, 1e-6);
}

TEST(Layered, FanOutBeyondTheLimitBecomesStubs) {
  std::vector<LayoutEdge> edges;
  for (int i = 1; i <= kStubFanOut + 1; ++i) edges.push_back({0, i});
  Layering l = layer(kStubFanOut + 2, edges);
  EXPECT_TRUE(std::all_of(l.stub.begin(), l.stub.end(), [](char s) { return s != 0; }));
  edges.pop_back();
  l = layer(kStubFanOut + 2, edges);
  EXPECT_TRUE(std::none_of(l.stub.begin(), l.stub.end(), [](char s) { return s != 0; }));
}

TEST(Layered, EdgesOverManyRanksBecomeStubs) {
  std::vector<LayoutEdge> edges;
  for (int i = 0; i < 70; ++i) edges.push_back({i, i + 1});
  edges.push_back({0, 70});
  const Layering l = layer(71, edges);
  EXPECT_TRUE(l.stub.back());
  EXPECT_EQ(std::count(l.stub.begin(), l.stub.end(), 1), 1);
}

TEST(Layered, CyclesOfFoldedGraphsAreLaidOut) {
  const Layering l = layer(3, {{0, 1}, {1, 2}, {2, 0}});
  EXPECT_TRUE(l.reversed[2]);
  expect_no_overlap(place(l, boxes(3), {20, 30}), boxes(3));
}

TEST(Layered, NothingAndOneNodeAreFine) {
  EXPECT_EQ(laid_out(0, {}).size.across, 0);
  EXPECT_EQ(laid_out(1, {}).corner[0], (LayoutPoint{0, 0}));
}

TEST(Layered, NodesWithoutEdgesFillRows) {
  const Placement2D p = laid_out(100, {});
  expect_no_overlap(p, boxes(100));
  EXPECT_LT(p.size.across, 3 * p.size.along);
  EXPECT_LT(p.size.along, 3 * p.size.across);
}

TEST(Layered, SizesDoNotChangeRanksOrOrder) {
  const auto edges = random_edges(60, 90, 3);
  const Layering l = layer(60, edges);
  auto grown = boxes(60);
  grown[20] = {900, 700};
  const Placement2D small = place(l, boxes(60), {20, 30}), large = place(l, grown, {20, 30});
  for (const auto& rank : l.ranks)
    for (std::size_t i = 1; i < rank.size(); ++i) {
      const auto left = rank[i - 1].node, right = rank[i].node;
      if (left < 0 || right < 0) continue;
      EXPECT_LT(small.corner[static_cast<std::size_t>(left)].across,
                small.corner[static_cast<std::size_t>(right)].across);
      EXPECT_LT(large.corner[static_cast<std::size_t>(left)].across,
                large.corner[static_cast<std::size_t>(right)].across);
    }
}

TEST(Layered, SameInputSameLayout) {
  const auto edges = random_edges(300, 500, 9);
  const Placement2D a = laid_out(300, edges), b = laid_out(300, edges);
  EXPECT_EQ(a.corner, b.corner);
  EXPECT_EQ(a.bends, b.bends);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
