// Patterns of FusionStitching 2019: partition, substitution, exploration.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/planners/fusionstitching/ilp/cycles.h"
#include "analysis/planners/fusionstitching/ilp/exploration.h"
#include "analysis/planners/fusionstitching/ilp/substitution.h"
#include "tests/support/fuzz.h"
#include "tests/support/graphs.h"

namespace stitchwork::fusionstitching {
namespace TEST_FILE {

using ::testing::Contains;
using testing::graph_of;
using ::testing::HasSubstr;

/// A graph with what the passes ask of it.
struct Case {
  explicit Case(Graph of, bool products = true)
      : graph(std::move(of)),
        nodes(astitch::node_facts(graph)),
        ops(find_ops(nodes, device("v100"), products)) {}
  explicit Case(const std::string& body, bool products = true) : Case(graph_of(body), products) {}

  NodeId op(const std::string& name) const { return testing::op(graph, name); }
  std::vector<NodeId> ids(const std::vector<std::string>& names) const {
    std::vector<NodeId> result;
    for (const std::string& name : names) result.push_back(op(name));
    std::sort(result.begin(), result.end());
    return result;
  }

  Graph graph;
  astitch::Nodes nodes;
  Ops ops;
  Recorder recorder{true};
};

const char* const kChain = R"(
  x = f32[64,96] parameter(0)
  zero = f32[] constant(0)
  a = f32[64,96] tanh(x)
  rows = f32[64] reduce(a, zero), dimensions={1}, to_apply=sum
  b = f32[64] exponential(rows)
  columns = f32[96] reduce(a, zero), dimensions={0}, to_apply=sum
  c = f32[96] negate(columns)
  all = f32[] reduce(a, zero), dimensions={0,1}, to_apply=sum
  d = f32[] sqrt(all)
  ROOT t = (f32[64], f32[96], f32[]) tuple(b, c, d))";

TEST(Fs19Partition, KindsFollowWhatIsReduced) {
  const Case c(kChain);
  EXPECT_EQ(c.ops[c.op("rows")].kind, OpKind::kRowReduction);
  EXPECT_EQ(c.ops[c.op("columns")].kind, OpKind::kColumnReduction);
  EXPECT_EQ(c.ops[c.op("all")].kind, OpKind::kScalarReduction);
  EXPECT_EQ(c.ops[c.op("a")].kind, OpKind::kElementwise);
  EXPECT_EQ(c.ops[c.op("x")].kind, OpKind::kNone);
}

TEST(Fs19Partition, ProductsArePartitionOpsByTheirTimeAndBatch) {
  Case c(R"(
  x = f32[4096,1024] parameter(0)
  w = f32[1024,1024] parameter(1)
  q = f32[8,16,16] parameter(2)
  u = f32[16,16] parameter(3)
  large = f32[4096,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  batched = f32[8,16,16] dot(q, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  small = f32[16,16] dot(u, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[4096,1024], f32[8,16,16], f32[16,16]) tuple(large, batched, small))");
  const Partition partition = find_partition(c.ops, Standing::kEarly, c.recorder);
  EXPECT_EQ(partition[c.op("large")], PartitionStep::kLargeGemms);
  EXPECT_FALSE(c.ops[c.op("large")].fusible);
  EXPECT_EQ(partition[c.op("batched")], PartitionStep::kBatchedGemms);
  EXPECT_EQ(partition[c.op("small")], PartitionStep::kGemms);
  EXPECT_TRUE(c.ops[c.op("small")].fusible);
  const Case without(graph_of(R"(
  u = f32[16,16] parameter(0)
  ROOT small = f32[16,16] dot(u, u), lhs_contracting_dims={1}, rhs_contracting_dims={0})"),
                     false);
  EXPECT_FALSE(without.ops[without.op("small")].fusible);
}

std::vector<int> places(const Ops& ops, const Partition& partition) {
  std::vector<int> place(ops.size(), -1);
  for (std::size_t i = 0; i < partition.order.size(); ++i)
    place[static_cast<std::size_t>(partition.order[i])] = static_cast<int>(i);
  return place;
}

TEST(Fs19Partition, OrderIsTopologicalAndStepsNest) {
  for (std::uint32_t seed = 0; seed < 200; ++seed)
    for (const Standing standing : {Standing::kEarly, Standing::kLate}) {
      Case c(canonicalize(parse_hlo(testing::random_hlo(seed), "random.hlo")));
      const Partition partition = find_partition(c.ops, standing, c.recorder);
      const std::vector<int> place = places(c.ops, partition);
      for (const NodeId id : partition.order)
        for (const NodeId producer : c.ops[id].producers)
          ASSERT_LT(place[static_cast<std::size_t>(producer)], place[static_cast<std::size_t>(id)])
              << "seed " << seed << ": " << c.ops.name(producer) << " before " << c.ops.name(id);
    }
}

TEST(Fs19Partition, WhatWaitsForNothingStandsEarlyOrWhereItIsRead) {
  Case c(R"(
  x = f32[64,96] parameter(0)
  m = f32[64,96] parameter(1)
  zero = f32[] constant(0)
  kept = f32[64,96] multiply(m, m)
  all = f32[] reduce(x, zero), dimensions={0,1}, to_apply=sum
  root = f32[] sqrt(all)
  wide = f32[64,96] broadcast(root), dimensions={}
  ROOT sum = f32[64,96] add(kept, wide))");
  const auto is_before = [&](Standing standing) {
    const std::vector<int> place = places(c.ops, find_partition(c.ops, standing, c.recorder));
    return place[static_cast<std::size_t>(c.op("kept"))] < place[static_cast<std::size_t>(c.op("all"))];
  };
  EXPECT_TRUE(is_before(Standing::kEarly));
  EXPECT_FALSE(is_before(Standing::kLate));
}

TEST(Fs19Partition, BetweenKernelsSegmentsMakeNoCycleWithThem) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Case c(canonicalize(parse_hlo(testing::random_hlo(seed), "random.hlo")));
    for (const Standing standing : {Standing::kEarly, Standing::kLate}) {
      const Partition partition = find_partition(c.ops, standing, c.recorder);
      // Kernels: some of exploration's patterns, which are intervals of no order.
      Contraction graph(c.ops);
      std::vector<std::vector<NodeId>> kernels;
      std::set<NodeId> taken;
      const auto meets = [&](const Pattern& pattern) {
        return std::ranges::any_of(pattern.ops, [&](NodeId id) { return taken.contains(id); });
      };
      for (const Pattern& pattern : exploratory_patterns(c.ops, {}, {}, c.recorder)) {
        if (pattern.ops.size() > 3 || meets(pattern) || graph.makes_cycle(pattern.ops)) continue;
        graph.contract(pattern.ops);
        taken.insert(pattern.ops.begin(), pattern.ops.end());
        kernels.push_back(pattern.ops);
      }
      const Partition rest = between(c.ops, partition, kernels);
      EXPECT_TRUE(std::ranges::is_permutation(rest.order, partition.order));
      for (const Pattern& pattern : substitution_patterns(c.ops, rest, {}, {}, c.recorder)) {
        ASSERT_FALSE(meets(pattern)) << "seed " << seed;
        ASSERT_FALSE(graph.makes_cycle(pattern.ops)) << "seed " << seed;
      }
    }
  }
}

TEST(Fs19Substitution, EveryStepPartsTheGraphFurther) {
  Case c(kChain);
  const Partition partition = find_partition(c.ops, Standing::kEarly, c.recorder);
  const auto patterns = substitution_patterns(c.ops, partition, {}, {}, c.recorder);
  const auto has = [&](const std::vector<std::string>& names) {
    return Contains(Pattern{c.ids(names), PatternSource::kSubstitution});
  };
  EXPECT_THAT(patterns, has({"a", "rows", "b", "columns", "c", "all", "d"}));
  EXPECT_THAT(patterns, has({"a", "rows", "b", "all", "d"}));  // before the column reduction
}

TEST(Fs19Substitution, DisjointPatternsOfAnyStepsNeverMakeACycle) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Case c(canonicalize(parse_hlo(testing::random_hlo(seed), "random.hlo")));
    const Partition partition = find_partition(c.ops, Standing::kEarly, c.recorder);
    const auto patterns = substitution_patterns(c.ops, partition, {}, {}, c.recorder);
    // Every maximal choice of disjoint ones, by the order in which they are taken.
    for (std::size_t first = 0; first < patterns.size(); ++first) {
      Contraction graph(c.ops);
      std::set<NodeId> taken;
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        const Pattern& pattern = patterns[(first + i) % patterns.size()];
        if (std::any_of(pattern.ops.begin(), pattern.ops.end(),
                        [&](NodeId id) { return taken.contains(id); }))
          continue;
        ASSERT_FALSE(graph.makes_cycle(pattern.ops)) << "seed " << seed;
        graph.contract(pattern.ops);
        taken.insert(pattern.ops.begin(), pattern.ops.end());
      }
    }
  }
}

TEST(Fs19Substitution, WithoutPackingPatternsAreConnected) {
  Case c(kChain);
  const Partition partition = find_partition(c.ops, Standing::kEarly, c.recorder);
  for (const Pattern& pattern : substitution_patterns(c.ops, partition, {.packing = false}, {}, c.recorder))
    EXPECT_EQ(components(c.ops, pattern.ops).size(), 1u);
}

TEST(Fs19Substitution, SegmentsEndAtTheLimitsOfAKernel) {
  Case c(kChain);
  const Partition partition = find_partition(c.ops, Standing::kEarly, c.recorder);
  const auto patterns = substitution_patterns(c.ops, partition, {.max_ops = 3}, {}, c.recorder);
  for (const Pattern& pattern : patterns) EXPECT_LE(pattern.ops.size(), 3u);
  const auto decisions = c.recorder.take();
  EXPECT_TRUE(std::any_of(decisions.begin(), decisions.end(),
                          [](const Decision& d) { return d.verdict.rule == "fs19.kernel-limits"; }));
}

TEST(Fs19Exploration, SeedsAreLargeAndPatternsConvex) {
  Case c(R"(
  x = f32[4096,1024] parameter(0)
  a = f32[4096,1024] tanh(x)
  b = f32[4096,1024] exponential(a)
  w = f32[1024,1024] parameter(1)
  s = f32[4096,1024] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[4096,1024] add(b, s))",
         false);
  ExplorationLimits limits;
  limits.launch_us = 8;
  const auto patterns = exploratory_patterns(c.ops, limits, {}, c.recorder);
  EXPECT_THAT(patterns, Contains(Pattern{c.ids({"a", "b"}), PatternSource::kExploratory}));
  EXPECT_THAT(patterns, Contains(Pattern{c.ids({"b", "d"}), PatternSource::kExploratory}));
  // a and d with b: the product lies between a and d.
  for (const Pattern& pattern : patterns)
    EXPECT_FALSE(std::binary_search(pattern.ops.begin(), pattern.ops.end(), c.op("a")) &&
                 std::binary_search(pattern.ops.begin(), pattern.ops.end(), c.op("d")));
  limits.launch_us = 1e6;
  EXPECT_TRUE(exploratory_patterns(c.ops, limits, {}, c.recorder).empty());
}

TEST(Fs19Exploration, SumsOfSeveralBlocksHaveWhatTheyAloneRead) {
  const auto body = [](int rows) {
    return fmt::format(R"(
  x = f32[{0},4096] parameter(0)
  zero = f32[] constant(0)
  a = f32[{0},4096] tanh(x)
  shared = f32[{0},4096] negate(x)
  square = f32[{0},4096] multiply(a, shared)
  sum = f32[] reduce(square, zero), dimensions={{0,1}}, to_apply=sum
  ROOT t = (f32[], f32[{0},4096]) tuple(sum, shared))",
                       rows);
  };
  Case c(body(4096)), small(body(8));
  EXPECT_EQ(split_sums(c.ops, {}, {}),
            (std::vector{Pattern{c.ids({"a", "square", "sum"}), PatternSource::kSplitSum}}));
  EXPECT_TRUE(split_sums(small.ops, {}, {}).empty());
  Constraints apart;
  apart.apart.push_back({c.op("square"), c.op("sum")});
  EXPECT_TRUE(split_sums(c.ops, {}, apart).empty());
}

TEST(Fs19Exploration, CapsAreToldAndKept) {
  std::string body = "x = f32[4096,1024] parameter(0)\n a0 = f32[4096,1024] tanh(x)\n";
  std::string last = "a0";
  for (int i = 1; i < 40; ++i) {
    body += fmt::format("a{} = f32[4096,1024] add(a{}, x)\n", i, i - 1);
    last = fmt::format("a{}", i);
  }
  body += fmt::format("ROOT r = f32[4096,1024] negate({})", last);
  Case c(body);
  ExplorationLimits limits;
  limits.launch_us = 8;
  limits.most_patterns_a_seed = 5;
  limits.most_ops = 4;
  const auto patterns = exploratory_patterns(c.ops, limits, {}, c.recorder);
  for (const Pattern& pattern : patterns) EXPECT_LE(pattern.ops.size(), 4u);
  const auto decisions = c.recorder.take();
  EXPECT_TRUE(std::any_of(decisions.begin(), decisions.end(),
                          [](const Decision& d) { return d.verdict.rule == "fs19.cap"; }));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::fusionstitching
