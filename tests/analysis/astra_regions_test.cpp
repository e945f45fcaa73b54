// Pins, regions, strategies: views reproduce what they are views of, calls over regions compute the ladders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/base/at.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "tests/support/astra_graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using astra::FusedCall;
using astra::Region;
using astra::Space;
using astra::Strategy;
using astra::StrategyGroup;
using astra::View;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::refusals;
using testing::space_of;

/// The names of a strategy's regions, row by row: "p;q" one below the other, "p|q" beside each other.
std::set<std::string> layouts(const Graph& graph, const Strategy& strategy) {
  std::set<std::string> result;
  for (const Region& region : strategy.regions) {
    std::string text;
    std::int64_t row = 0;
    for (const int v : region.views) {
      const View& view = strategy.views[at(v)];
      if (!text.empty()) text += view.row == row ? "|" : ";";
      row = view.row;
      text += graph.entry_computation().node(view.op).name;
    }
    result.insert(text);
  }
  return result;
}

TEST(AstraRegions, OfACellAreRowsOfGates) {
  const Graph graph = testing::astra_lstm_cell();
  const Space space = space_of(graph);
  ASSERT_EQ(space.strategies.list.size(), 1u);
  const Strategy& strategy = space.strategies.list[0];
  EXPECT_EQ(layouts(graph, strategy),
            (std::set<std::string>{"x|h", "wi|wf|wg|wo;ui|uf|ug|uo", "zi|zf|zg|zo"}));
  EXPECT_TRUE(strategy.regions[0].source);
  const auto calls = astra::fused_calls(space.products, space.ladders, space.groups[0], strategy,
                                        strategy.groups[0], {{1, 4, 2}});
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].gemm.m, 4);
  EXPECT_EQ(calls[0].gemm.n, 32);
  EXPECT_EQ(calls[0].gemm.k, 16);
  EXPECT_EQ(calls[0].gemm.b_row, 32);
  EXPECT_FALSE(calls[0].accumulate);
}

TEST(AstraRegions, OfALadderOfWeightGradientsAreStacked) {
  const Graph graph = testing::astra_ladder();
  const Space space = space_of(graph);
  const Strategy& strategy = space.strategies.list.at(0);
  EXPECT_EQ(layouts(graph, strategy), (std::set<std::string>{"h0;h1;h2", "p0;p1;p2"}));
  const auto calls = astra::fused_calls(space.products, space.ladders, space.groups[0], strategy,
                                        strategy.groups[0], {{1, 1, 3}});
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].gemm.m, 8);
  EXPECT_EQ(calls[0].gemm.n, 6);
  EXPECT_EQ(calls[0].gemm.k, 18);
  EXPECT_EQ(calls[0].gemm.a_row, 1);
  EXPECT_EQ(calls[0].gemm.a_col, 8);
}

TEST(AstraRegions, TwoSharedArraysFork) {
  const Graph graph = testing::astra_conflict();
  const Space space = space_of(graph);
  ASSERT_EQ(space.strategies.list.size(), 2u);
  EXPECT_EQ(space.strategies.conflicts, 1);
  std::set<std::set<std::string>> all;
  for (const Strategy& strategy : space.strategies.list) {
    EXPECT_EQ(strategy.saved_calls, 1);
    EXPECT_EQ(strategy.unfused.size(), 1u);
    all.insert(layouts(graph, strategy));
  }
  EXPECT_EQ(all, (std::set<std::set<std::string>>{{"p;q", "pw;qw"}, {"p|q", "u;v"}}));
}

TEST(AstraRegions, OneSharedArrayIsGivenUpByTheLargest) {
  const Graph graph = testing::astra_one_tensor();
  const Space space = space_of(graph);
  ASSERT_EQ(space.strategies.list.size(), 1u);
  EXPECT_EQ(refusals(space, "astra.offending-tensor"), 1);
  const Strategy& strategy = space.strategies.list[0];
  EXPECT_THAT(strategy.unfused, IsEmpty());
  const std::set<std::string> found = layouts(graph, strategy);
  EXPECT_TRUE(found.contains("a|c")) << ::testing::PrintToString(found);
  EXPECT_TRUE(found.contains("d|b|e") || found.contains("e|b|d")) << ::testing::PrintToString(found);
  int calls = 0;
  for (const StrategyGroup& group : strategy.groups) {
    const auto whole = astra::fused_calls(space.products, space.ladders, space.groups[at(group.number)],
                                          strategy, group, {{1, 1, group.group.k()}});
    calls += static_cast<int>(whole.size());
    if (whole.size() == 2) {
      EXPECT_TRUE(whole[1].accumulate);
    }
  }
  EXPECT_EQ(calls, 4);
}

/// Every cell of a region is one view's or nobody's; rows and columns of the grid are full lines.
void expect_is_partition(const Strategy& strategy) {
  for (std::size_t r = 0; r < strategy.regions.size(); ++r) {
    const Region& region = strategy.regions[r];
    std::vector<int> taken(static_cast<std::size_t>(region.rows * region.cols), 0);
    std::set<std::int64_t> tops, lefts;
    for (const int v : region.views) {
      const View& view = strategy.views[at(v)];
      ASSERT_EQ(view.region, static_cast<int>(r));
      ASSERT_LE(view.row + view.rows, region.rows);
      ASSERT_LE(view.col + view.cols, region.cols);
      tops.insert(view.row);
      lefts.insert(view.col);
      for (std::int64_t i = 0; i < view.rows; ++i)
        for (std::int64_t j = 0; j < view.cols; ++j)
          ASSERT_EQ(taken[static_cast<std::size_t>((view.row + i) * region.cols + view.col + j)]++, 0);
    }
    EXPECT_TRUE(tops.contains(0));
    EXPECT_TRUE(lefts.contains(0));
  }
}

/// Device memory as a strategy lays it out, filled with what the evaluator computes.
class Memory {
 public:
  Memory(const Graph& graph, const Strategy& strategy) : graph_(graph), strategy_(strategy) {
    evaluate(graph, generate_inputs(graph, 1), [&](const Node& node, const Literal& value) {
      if (node.shape.is_tuple) return;
      std::vector<double>& mine = values_[node.id];
      for (std::int64_t i = 0; i < node.shape.elements_count(); ++i) mine.push_back(value.get_double(i));
    });
  }

  /// Puts the arrays that no product makes where they lie.
  void fill(const std::set<NodeId>& made) {
    own_ = values_;
    regions_.clear();
    for (const Region& region : strategy_.regions)
      regions_.emplace_back(static_cast<std::size_t>(region.rows * region.cols), std::nan(""));
    for (const View& view : strategy_.views)
      if (!made.contains(view.op)) store(view, values_.at(view.op));
    for (const NodeId id : made) std::fill(own_.at(id).begin(), own_.at(id).end(), std::nan(""));
  }

  void start(NodeId at_op, NodeId from) {
    if (const View* view = view_of(at_op))
      store(*view, values_.at(from));
    else
      own_.at(at_op) = values_.at(from);
  }

  void run(const FusedCall& call) {
    const std::vector<double>&a = array(call.left), &b = array(call.right);
    std::vector<double>& c = array(call.result);
    const Gemm& g = call.gemm;
    for (std::int64_t i = 0; i < g.m; ++i)
      for (std::int64_t j = 0; j < g.n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < g.k; ++l)
          sum += a.at(static_cast<std::size_t>(call.left.offset + i * g.a_row + l * g.a_col)) *
                 b.at(static_cast<std::size_t>(call.right.offset + l * g.b_row + j * g.b_col));
        double& to = c.at(static_cast<std::size_t>(call.result.offset + i * g.c_row + j));
        to = call.accumulate ? to + sum : sum;
      }
  }

  void expect_is(NodeId op) {
    const std::vector<double>& wanted = values_.at(op);
    std::vector<double> found = own_.at(op);
    if (const View* view = view_of(op)) {
      found.clear();
      for (std::int64_t i = 0; i < view->rows; ++i)
        for (std::int64_t j = 0; j < view->cols; ++j) found.push_back(cell(*view, i, j));
    }
    ASSERT_EQ(found.size(), wanted.size());
    double scale = 1e-6;
    for (const double value : wanted) scale = std::max(scale, std::abs(value));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(found[i], wanted[i], 1e-4 * scale) << graph_.entry_computation().node(op).name;
  }

 private:
  const View* view_of(NodeId op) const {
    for (const View& view : strategy_.views)
      if (view.op == op) return &view;
    return nullptr;
  }
  double& cell(const View& view, std::int64_t i, std::int64_t j) {
    return regions_[at(view.region)][static_cast<std::size_t>(
        (view.row + i) * strategy_.regions[at(view.region)].cols + view.col + j)];
  }
  void store(const View& view, const std::vector<double>& value) {
    for (std::int64_t i = 0; i < view.rows; ++i)
      for (std::int64_t j = 0; j < view.cols; ++j)
        cell(view, i, j) = value[static_cast<std::size_t>(i * view.cols + j)];
  }
  std::vector<double>& array(const astra::CallMatrix& matrix) {
    return matrix.region < 0 ? own_.at(matrix.op) : regions_[at(matrix.region)];
  }

  const Graph& graph_;
  const Strategy& strategy_;
  std::map<NodeId, std::vector<double>> values_, own_;
  std::vector<std::vector<double>> regions_;
};

/// Every group of every strategy in one random chunk: what its calls leave is the ladders' value.
int check_calls(const Graph& graph, const Space& space, std::mt19937& random) {
  int checked = 0;
  for (const Strategy& strategy : space.strategies.list) {
    expect_is_partition(strategy);
    Memory memory(graph, strategy);
    for (const StrategyGroup& group : strategy.groups) {
      const auto chunks = astra::chunks(group.group, device("v100-sxm2")).list;
      const astra::FusionGroup& whole = space.groups[at(group.number)];
      std::set<NodeId> roots;
      for (const int l : whole.ladders) roots.insert(space.ladders[at(l)].root);
      memory.fill(roots);
      for (const int l : whole.ladders)
        if (space.ladders[at(l)].start != kNoNode)
          memory.start(space.ladders[at(l)].root, space.ladders[at(l)].start);
      std::multiset<NodeId> dots;
      for (const FusedCall& call : astra::fused_calls(space.products, space.ladders, whole, strategy, group,
                                                      chunks[random() % chunks.size()])) {
        memory.run(call);
        dots.insert(call.dots.begin(), call.dots.end());
      }
      EXPECT_EQ(static_cast<int>(dots.size()), whole.products());
      for (const NodeId root : roots) memory.expect_is(root);
      ++checked;
    }
  }
  return checked;
}

TEST(AstraRegions, CallsOverThemComputeTheLadders) {
  std::mt19937 random(3);
  for (const Graph& graph : {testing::astra_lstm_cell(), testing::astra_ladder(), testing::astra_ladder(true),
                             testing::astra_conflict(), testing::astra_one_tensor(), testing::astra_chains(),
                             testing::dataset("scrnn_tiny"), testing::dataset("stacked_lstm_tiny")})
    check_calls(graph, space_of(graph), random);
  int checked = 0, forks = 0, given_up = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    const Graph graph = testing::random_dots(seed, 12 + static_cast<int>(seed % 40));
    const Space space = space_of(graph);
    checked += check_calls(graph, space, random);
    forks += space.strategies.list.size() > 1 ? 1 : 0;
    given_up += refusals(space, "astra.offending-tensor");
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(checked, 300);
  EXPECT_GT(forks, 10);
  EXPECT_GT(given_up, 0);
}

TEST(AstraRegions, IndependentSetsAreThoseOfTryingEverything) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const int n = 1 + static_cast<int>(random() % 10);
    std::vector<std::vector<int>> adjacent(at(n));
    for (int a = 0; a < n; ++a)
      for (int b = a + 1; b < n; ++b)
        if (random() % 3 == 0) {
          adjacent[at(a)].push_back(b);
          adjacent[at(b)].push_back(a);
        }
    for (auto& list : adjacent) std::sort(list.begin(), list.end());
    const auto independent = [&](unsigned set) {
      for (int a = 0; a < n; ++a)
        for (const int b : adjacent[at(a)])
          if (((set >> a) & 1) != 0 && ((set >> b) & 1) != 0) return false;
      return true;
    };
    std::vector<std::vector<int>> wanted;
    for (unsigned set = 1; set < (1u << n); ++set) {
      bool maximal = independent(set);
      for (int v = 0; v < n; ++v)
        maximal = maximal && (((set >> v) & 1) != 0 || !independent(set | (1u << v)));
      if (!maximal) continue;
      wanted.emplace_back();
      for (int v = 0; v < n; ++v)
        if (((set >> v) & 1) != 0) wanted.back().push_back(v);
    }
    std::sort(wanted.begin(), wanted.end());
    ASSERT_EQ(astra::maximal_independent_sets(adjacent, 10'000), wanted);
  }
}

TEST(AstraRegions, PinsGoBack) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<astra::Pinnable> arrays;
    for (int a = 0; a < 12; ++a)
      arrays.push_back({a % 5 == 4 ? 100 : a, 1 + static_cast<std::int64_t>(random() % 2), 1, a % 5 == 4});
    astra::Pins pins(arrays), again(arrays);
    std::vector<std::tuple<int, int, int>> kept;
    for (int step = 0; step < 40; ++step) {
      const std::size_t mark = pins.mark();
      std::vector<std::tuple<int, int, int>> tried;
      for (int p = 0; p < 3; ++p) {
        const int a = static_cast<int>(random() % 12), b = static_cast<int>(random() % 12),
                  d = static_cast<int>(random() % 2);
        if (a != b && pins.pin(a, b, d)) tried.emplace_back(a, b, d);
      }
      if (random() % 2 == 0) {
        pins.undo(mark);
        continue;
      }
      for (const auto& [a, b, d] : tried) ASSERT_TRUE(again.pin(a, b, d));
    }
    for (int a = 0; a < 12; ++a) {
      auto x = pins.together(a), y = again.together(a);
      std::sort(x.begin(), x.end());
      std::sort(y.begin(), y.end());
      ASSERT_EQ(x, y);
      for (const int b : x) {
        ASSERT_EQ(pins.cell_of(b).row - pins.cell_of(a).row, again.cell_of(b).row - again.cell_of(a).row);
        ASSERT_EQ(pins.cell_of(b).col - pins.cell_of(a).col, again.cell_of(b).col - again.cell_of(a).col);
      }
    }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
