// The integer program of FusionStitching 2019 and its cycles.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "analysis/planners/fusionstitching/ilp/dominance.h"
#include "analysis/planners/fusionstitching/ilp/set_packing.h"
#include "analysis/planners/fusionstitching/ilp/solver.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"

namespace stitchwork::fusionstitching {
namespace TEST_FILE {

using testing::graph_of;

TEST(Fs19SetPacking, TakesTheHeaviestDisjointColumns) {
  const SetPacking program{{3, 5, 3}, {{{0, 1}, 1, false}, {{1, 2}, 1, false}}};
  const SetPackingSolution solution = solve(program);
  EXPECT_TRUE(solution.optimal);
  EXPECT_EQ(solution.taken, (std::vector<int>{0, 2}));
}

TEST(Fs19SetPacking, CutsAndRequiredRowsHold) {
  EXPECT_EQ(solve({{2, 1}, {{{0, 1}, 1, false}, {{0}, 0, false}}}).taken, (std::vector<int>{1}));
  EXPECT_EQ(solve({{0, 5}, {{{0, 1}, 1, false}, {{0}, 1, true}}}).taken, (std::vector<int>{0}));
  EXPECT_FALSE(solve({{1, 1}, {{{0}, 1, true}, {{1}, 1, true}, {{0, 1}, 1, false}}}).feasible);
}

/// The heaviest columns that no row forbids, by looking at all; nothing where every choice breaks a row.
std::optional<std::vector<int>> heaviest(const SetPacking& program) {
  std::optional<std::vector<int>> best;
  double most = 0;
  for (unsigned bits = 0; bits < 1U << program.weights.size(); ++bits) {
    const bool holds = std::all_of(program.rows.begin(), program.rows.end(), [&](const SetPacking::Row& row) {
      int count = 0;
      for (const int c : row.columns) count += static_cast<int>(bits >> c & 1U);
      return row.exactly ? count == row.most : count <= row.most;
    });
    double weight = 0;
    std::vector<int> taken;
    for (int c = 0; c < static_cast<int>(program.weights.size()); ++c)
      if ((bits >> c & 1U) != 0) weight += program.weights[static_cast<std::size_t>(c)], taken.push_back(c);
    if (holds && (!best || weight > most)) most = weight, best = taken;
  }
  return best;
}

TEST(Fs19Dominance, PartsHaveTheOptimumOfTheWhole) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int dropped_columns = 0, dropped_rows = 0, split = 0, infeasible = 0;
  for (int round = 0; round < 2000; ++round) {
    SetPacking program;
    const int columns = 2 + below(9), rows = 1 + below(8);
    // Few weights, so that many are near each other; a fraction of its own makes each optimum unique.
    for (int c = 0; c < columns; ++c)
      program.weights.push_back(below(4) + std::ldexp(static_cast<double>(random()), -40));
    for (int r = 0; r < rows; ++r) {
      SetPacking::Row row;
      for (int c = 0; c < columns; ++c)
        if (below(3) == 0) row.columns.push_back(c);
      if (row.columns.empty()) continue;
      const auto count = static_cast<int>(row.columns.size());
      row.exactly = below(12) == 0;
      if (!row.exactly && below(4) == 0) row.most = count - 1;  // a cycle's cut
      program.rows.push_back(row);
    }
    const auto best = heaviest(program);
    std::optional<std::vector<int>> together = std::vector<int>();
    std::size_t columns_left = 0, rows_left = 0;
    const std::vector<PackingPart> parts = without_dominated(program);
    for (const PackingPart& part : parts) {
      columns_left += part.columns.size();
      rows_left += part.program.rows.size();
      const auto own = heaviest(part.program);
      if (!own) together.reset();
      if (!together) break;
      for (const int c : *own) together->push_back(part.columns[static_cast<std::size_t>(c)]);
    }
    if (together) std::sort(together->begin(), together->end());
    ASSERT_EQ(together, best) << "round " << round;
    if (!best) {
      ++infeasible;
      continue;
    }
    dropped_columns += columns_left < program.weights.size();
    dropped_rows += rows_left < program.rows.size();
    split += parts.size() > 1;
  }
  EXPECT_GT(dropped_columns, 500);
  EXPECT_GT(dropped_rows, 500);
  EXPECT_GT(split, 200);
  EXPECT_GT(infeasible, 20);
}

struct Case {
  explicit Case(const std::string& body)
      : graph(graph_of(body)),
        nodes(astitch::node_facts(graph)),
        ops(find_ops(nodes, device("v100"), false)) {}
  std::vector<NodeId> ids(std::vector<std::string> names) const {
    std::vector<NodeId> result;
    for (const std::string& name : names) result.push_back(testing::op(graph, name));
    std::sort(result.begin(), result.end());
    return result;
  }
  Graph graph;
  astitch::Nodes nodes;
  Ops ops;
};

Scores exact_scores(std::vector<double> us) {
  const std::size_t count = us.size();
  return {std::move(us), std::vector<bool>(count, true),
          [](const std::vector<int>&) { return std::vector<double>(); }};
}

// Figure 3's point: A and C, B and D, each alone fine, together a cycle.
const char* const kCrossed = R"(
  x = f32[64,96] parameter(0)
  y = f32[64,96] parameter(1)
  a = f32[64,96] tanh(x)
  b = f32[64,96] tanh(y)
  c = f32[64,96] add(a, b)
  d = f32[64,96] subtract(b, a)
  ROOT t = (f32[64,96], f32[64,96]) tuple(c, d))";

TEST(Fs19Cycles, TwoPatternsThatNeedEachOtherAreFound) {
  const Case g(kCrossed);
  const std::vector<Pattern> patterns{{g.ids({"a", "c"})}, {g.ids({"b", "d"})}};
  EXPECT_TRUE(find_cycles(g.ops, patterns, {0}).empty());
  const auto cycles = find_cycles(g.ops, patterns, {0, 1});
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_EQ(cycles[0].patterns, (std::vector<int>{0, 1}));
}

TEST(Fs19Cycles, APatternThatWaitsForItselfIsOne) {
  const Case g(R"(
  x = f32[64,96] parameter(0)
  a = f32[64,96] tanh(x)
  b = f32[64,96] exponential(a)
  ROOT c = f32[64,96] add(a, b))");
  const auto cycles = find_cycles(g.ops, {{g.ids({"a", "c"})}}, {0});
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_EQ(cycles[0].patterns, (std::vector<int>{0}));
}

TEST(Fs19Solver, CutsTheCycleAndSolvesAgain) {
  const Case g(kCrossed);
  const std::vector<Pattern> patterns{{g.ids({"a", "c"})}, {g.ids({"b", "d"})}};
  Scores scores = exact_scores({3, 2});
  const Choice choice = choose_optimal(g.ops, patterns, {}, scores);
  EXPECT_EQ(choice.patterns, (std::vector<int>{0}));
  EXPECT_EQ(choice.rounds, 2);
  EXPECT_EQ(choice.cycles.size(), 1u);
  EXPECT_TRUE(choice.limit.empty());
}

TEST(Fs19Solver, ScoresAreOnlyMadeExactWhereASolutionTakesThem) {
  const Case g(kCrossed);
  const std::vector<Pattern> patterns{
      {g.ids({"a", "b", "c", "d"})}, {g.ids({"a", "b"})}, {g.ids({"c", "d"})}};
  std::vector<int> asked;
  Scores scores{{10, 3, 2}, std::vector<bool>(3, false), [&](const std::vector<int>& which) {
                  std::vector<double> us;
                  for (const int p : which) {
                    asked.push_back(p);
                    us.push_back(p == 0 ? -1 : p == 1 ? 2.5 : 2);
                  }
                  return us;
                }};
  const Choice choice = choose_optimal(g.ops, patterns, {}, scores);
  EXPECT_EQ(choice.patterns, (std::vector<int>{1, 2}));
  EXPECT_DOUBLE_EQ(choice.us, 4.5);
  EXPECT_EQ(asked.front(), 0);
}

TEST(Fs19Solver, RequiredSetsAreInATakenPattern) {
  const Case g(kCrossed);
  const std::vector<Pattern> patterns{{g.ids({"a", "c"})}, {g.ids({"b", "d"})}};
  Scores scores = exact_scores({1, 5});
  EXPECT_EQ(choose_optimal(g.ops, patterns, {g.ids({"a", "c"})}, scores).patterns, (std::vector<int>{0}));
  Scores again = exact_scores({1, 5});
  EXPECT_EQ(choose_greedily(g.ops, patterns, {g.ids({"a", "c"})}, again).patterns, (std::vector<int>{0}));
  Scores none = exact_scores({-1, 5});
  EXPECT_THROW(choose_optimal(g.ops, patterns, {g.ids({"a", "c"})}, none), Error);
}

/// The best sum of all acyclic choices of disjoint patterns, by trying them all.
double brute_force(const Ops& ops, const std::vector<Pattern>& patterns, const std::vector<double>& us) {
  double best = 0;
  std::vector<int> taken;
  std::set<NodeId> used;
  const std::function<void(std::size_t, double)> extend = [&](std::size_t next, double sum) {
    if (next == patterns.size()) {
      if (sum > best && find_cycles(ops, patterns, taken).empty()) best = sum;
      return;
    }
    extend(next + 1, sum);
    const auto& members = patterns[next].ops;
    if (us[next] < 0 ||
        std::any_of(members.begin(), members.end(), [&](NodeId id) { return used.contains(id); }))
      return;
    used.insert(members.begin(), members.end());
    taken.push_back(static_cast<int>(next));
    extend(next + 1, sum + us[next]);
    taken.pop_back();
    for (const NodeId id : members) used.erase(id);
  };
  extend(0, 0);
  return best;
}

TEST(Fs19Solver, OptimumIsThatOfAllChoicesAndGreedyIsNeverBetter) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int round = 0; round < 500; ++round) {
    const std::size_t count = 3 + below(10);
    std::string body = "x0 = f32[8,8] parameter(0)\n";
    for (std::size_t i = 1; i <= count; ++i)
      body += fmt::format("x{} = f32[8,8] add(x{}, x{})\n", i, below(i),
                          i - 1 - below(std::min<std::size_t>(i, 3)));
    std::string tuple, types;
    for (std::size_t i = 1; i <= count; ++i) {
      tuple += fmt::format("{}x{}", i > 1 ? ", " : "", i);
      types += i > 1 ? ", f32[8,8]" : "f32[8,8]";
    }
    const Case g(body + fmt::format("ROOT t = ({}) tuple({})", types, tuple));
    std::vector<NodeId> members;
    for (NodeId id = 0; id < static_cast<NodeId>(g.ops.size()); ++id)
      if (g.ops[id].fusible) members.push_back(id);
    if (members.size() < 2) continue;
    std::vector<Pattern> patterns;
    std::vector<double> us;
    for (int p = 0; p < 12; ++p) {
      std::vector<NodeId> ids;
      for (const NodeId id : members)
        if (below(3) == 0) ids.push_back(id);
      if (ids.size() > 1) patterns.push_back({ids});
    }
    remove_doubles(patterns);
    for (std::size_t p = 0; p < patterns.size(); ++p) us.push_back(static_cast<double>(below(40)) - 4);
    Scores scores = exact_scores(us);
    const Choice optimum = choose_optimal(g.ops, patterns, {}, scores);
    // Ties of half a nanosecond a pattern.
    EXPECT_NEAR(optimum.us, brute_force(g.ops, patterns, us), 1e-3 * static_cast<double>(patterns.size()))
        << body;
    EXPECT_TRUE(find_cycles(g.ops, patterns, optimum.patterns).empty());
    Scores again = exact_scores(us);
    const Choice greedy = choose_greedily(g.ops, patterns, {}, again);
    EXPECT_TRUE(find_cycles(g.ops, patterns, greedy.patterns).empty());
    EXPECT_LE(greedy.us, optimum.us + 1e-3 * static_cast<double>(patterns.size()));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::fusionstitching
