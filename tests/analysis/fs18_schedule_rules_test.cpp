#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analysis/planners/fusionstitching/locality.h"
#include "analysis/planners/fusionstitching/schedule_rules.h"
#include "tests/support/graphs.h"

namespace stitchwork::fusionstitching {
namespace TEST_FILE {

using enum ScheduleType;
using testing::graph_of;
using testing::op;

/// The root's operand 0 under every candidate of the root.
std::vector<Schedule> passing(const Graph& graph, const std::string& name) {
  const Computation& computation = graph.entry_computation();
  const Node& node = computation.node(op(graph, name));
  std::vector<Schedule> result;
  for (const Schedule& schedule : candidates(node.shape.dims))
    if (pass(computation, node, 0, schedule)) result.push_back(schedule);
  return result;
}

TEST(FsRules, AReduceOfInnerDimsPassesWhatFigure5Says) {
  const Graph graph = graph_of(
      "p = f32[2,3,4,5,6,7,8] parameter(0)\n z = f32[] constant(0)\n"
      "ROOT r = f32[2,3,4,7,8] reduce(p, z), dimensions={3,4}, to_apply=sum");
  const std::vector<Schedule> all = passing(graph, "r");
  EXPECT_EQ(all.size(), 14u);
  EXPECT_THAT(all, ::testing::IsSupersetOf({Schedule{2, 4, kRow}, Schedule{3, 1, kRow},
                                            Schedule{3, 7, kColumn}, Schedule{4, 8, kColumn}}));
  EXPECT_THAT(all, ::testing::Not(::testing::Contains(Schedule{3, 7, kRow})));
  const Computation& computation = graph.entry_computation();
  EXPECT_EQ(pass(computation, computation.node(op(graph, "r")), 0, {4, 2, kColumn}),
            (Schedule{6, 2, kColumn}));  // renumbered
}

TEST(FsRules, AReduceOfMiddleDimsPassesFifteenOfThemTwoStrided) {
  const Graph graph = graph_of(
      "p = f32[2,3,4,5,6,7,8] parameter(0)\n z = f32[] constant(0)\n"
      "ROOT r = f32[2,3,6,7,8] reduce(p, z), dimensions={2,3}, to_apply=sum");
  const std::vector<Schedule> all = passing(graph, "r");
  EXPECT_EQ(all.size(), 15u);
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const Schedule& s) {
                            return is_strided(s, {2, 3, 6, 7, 8});
                          }),
            2);
}

TEST(FsRules, ATransposePassesWhatDoesNotSplitTheDimsItMoves) {
  const Graph graph =
      graph_of("p = f32[2,4,6,8] parameter(0)\n ROOT t = f32[2,6,4,8] transpose(p), dimensions={0,2,1,3}");
  EXPECT_THAT(passing(graph, "t"),
              ::testing::UnorderedElementsAre(Schedule{0, 1, kRow}, Schedule{0, 2, kRow},
                                              Schedule{1, 1, kRow}, Schedule{2, 1, kColumn},
                                              Schedule{3, 1, kColumn}, Schedule{3, 2, kColumn},
                                              Schedule{3, 4, kColumn}, Schedule{3, 8, kColumn}));
}

TEST(FsRules, ABatchDotPassesRowsOfItsBatchToBothOperands) {
  const Graph graph = graph_of(
      "a = f32[16,64,8] parameter(0)\n b = f32[16,8,32] parameter(1)\n"
      "ROOT d = f32[16,64,32] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
      "rhs_contracting_dims={1}");
  const Computation& computation = graph.entry_computation();
  const Node& dot = computation.node(op(graph, "d"));
  EXPECT_EQ(passing(graph, "d").size(), 5u);  // (0, 1|2|4|8|16, Row)
  EXPECT_EQ(pass(computation, dot, 1, {0, 8, kRow}), (Schedule{0, 8, kRow}));
  EXPECT_EQ(pass(computation, dot, 0, {2, 1, kColumn}), std::nullopt);  // not even one block
}

TEST(FsRules, AReshapePassesAsManyBlocksByTheOperandsOwnDims) {
  const Graph graph = graph_of("p = f32[2,8,64,64] parameter(0)\n ROOT r = f32[16,64,64] reshape(p)");
  const Computation& computation = graph.entry_computation();
  const Node& reshape = computation.node(op(graph, "r"));
  EXPECT_EQ(pass(computation, reshape, 0, {0, 16, kRow}), (Schedule{1, 8, kRow}));
  EXPECT_EQ(pass(computation, reshape, 0, {2, 4, kColumn}), (Schedule{3, 4, kColumn}));
  EXPECT_EQ(pass(computation, reshape, 0, {0, 2, kColumn}), std::nullopt);
}

TEST(FsRules, ABroadcastPassesRowsOfThePrefixItKeeps) {
  const Graph graph =
      graph_of("p = f32[2,8] parameter(0)\n ROOT b = f32[2,8,64] broadcast(p), dimensions={0,1}");
  const Computation& computation = graph.entry_computation();
  const Node& broadcast = computation.node(op(graph, "b"));
  EXPECT_EQ(pass(computation, broadcast, 0, {1, 4, kRow}), (Schedule{1, 4, kRow}));
  EXPECT_EQ(pass(computation, broadcast, 0, {2, 1, kRow}), (Schedule{1, 8, kRow}));
  EXPECT_EQ(pass(computation, broadcast, 0, {2, 2, kRow}), std::nullopt);
}

TEST(FsRules, WhatTheTableDoesNotHaveIsRefusedButForOneBlock) {
  const Graph graph = graph_of("p = f32[8,8] parameter(0)\n ROOT s = f32[4,8] slice(p), slice={[0:4],[0:8]}");
  EXPECT_THAT(passing(graph, "s"), ::testing::Each(::testing::ResultOf(
                                       [](const Schedule& s) {
                                         return blocks_of(s, {4, 8});
                                       },
                                       1)));
}

/// One op of random shape and attributes.
class RandomOp {
 public:
  explicit RandomOp(std::uint32_t seed) : random_(seed) {}

  std::string text() {
    Dims dims;
    for (int d = 1 + below(5); d > 0; --d)
      dims.push_back(std::array<std::int64_t, 8>{1, 2, 3, 4, 6, 8, 12, 32}[below(8)]);
    const std::string p =
        fmt::format("p = f32[{}] parameter(0)\n z = f32[] constant(0)\n", fmt::join(dims, ","));
    switch (below(6)) {
      case 0:
        return p + fmt::format("ROOT r = f32[{}] tanh(p)", fmt::join(dims, ","));
      case 1:
        return p + transpose(dims);
      case 2:
        return p + reduce(dims);
      case 3:
        return p + broadcast(dims);
      case 4:
        return p + reshape(dims);
      default:
        return dot(dims);
    }
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }

  std::string transpose(const Dims& dims) {
    std::vector<std::size_t> order(dims.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
    for (std::size_t d = order.size(); d-- > 1;)
      if (below(2) == 0) std::swap(order[d], order[static_cast<std::size_t>(below(static_cast<int>(d) + 1))]);
    Dims out;
    for (const std::size_t d : order) out.push_back(dims[d]);
    return fmt::format("ROOT r = f32[{}] transpose(p), dimensions={{{}}}", fmt::join(out, ","),
                       fmt::join(order, ","));
  }

  std::string reduce(const Dims& dims) {
    Dims kept, reduced;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (below(2) == 0)
        kept.push_back(dims[d]);
      else
        reduced.push_back(static_cast<std::int64_t>(d));
    }
    if (reduced.empty()) {
      reduced.push_back(0);
      kept.erase(kept.begin());
    }
    return fmt::format("ROOT r = f32[{}] reduce(p, z), dimensions={{{}}}, to_apply=sum", fmt::join(kept, ","),
                       fmt::join(reduced, ","));
  }

  std::string broadcast(const Dims& dims) {
    Dims out, where;
    for (const std::int64_t extent : dims) {
      while (below(3) == 0) out.push_back(4);
      where.push_back(static_cast<std::int64_t>(out.size()));
      out.push_back(extent);
    }
    while (below(2) == 0) out.push_back(6);
    return fmt::format("ROOT r = f32[{}] broadcast(p), dimensions={{{}}}", fmt::join(out, ","),
                       fmt::join(where, ","));
  }

  std::string reshape(Dims dims) {
    const std::string kind = below(2) == 0 ? "reshape" : "bitcast";
    for (std::size_t d = 0; d + 1 < dims.size(); ++d)
      if (below(2) == 0) {
        dims[d] *= dims[d + 1];
        dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(d) + 1);
      }
    return fmt::format("ROOT r = f32[{}] {}(p)", fmt::join(dims, ","), kind);
  }

  std::string dot(Dims dims) {
    const std::string batch = fmt::format("{}", fmt::join(dims, ","));
    std::vector<std::size_t> all(dims.size());
    for (std::size_t d = 0; d < all.size(); ++d) all[d] = d;
    const std::string dims_text = fmt::format("{}", fmt::join(all, ","));
    return fmt::format(
        "p = f32[{0},4,6] parameter(0)\n q = f32[{0},6,5] parameter(1)\n"
        "ROOT r = f32[{0},4,5] dot(p, q), lhs_batch_dims={{{1}}}, rhs_batch_dims={{{1}}}, "
        "lhs_contracting_dims={{{2}}}, rhs_contracting_dims={{{3}}}",
        batch, dims_text, dims.size() + 1, dims.size());
  }

  std::mt19937 random_;
};

TEST(FsRules, WhatPassesTableOneIsBlockLocalByIndexIntervals) {
  int passed = 0;
  for (std::uint32_t seed = 0; passed < 10000; ++seed) {
    ASSERT_LT(seed, 5000u) << "only " << passed << " passed";
    const std::string text = RandomOp(seed).text();
    const Graph graph = parse_hlo(
        "HloModule t\nsum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] "
        "add(a, b) }\nENTRY e {\n" +
            text + "\n}\n",
        "t.hlo");
    const Computation& computation = graph.entry_computation();
    const Node& node = computation.node(computation.root);
    for (const Schedule& schedule : candidates(node.shape.dims))
      for (int i = 0; i < (node.op == Op::kDot ? 2 : 1); ++i) {
        const auto given = pass(computation, node, i, schedule);
        if (!given) continue;
        const Dims& in = computation.node(node.operands[static_cast<std::size_t>(i)]).shape.dims;
        EXPECT_EQ(blocks_of(*given, in), blocks_of(schedule, node.shape.dims)) << text << to_text(schedule);
        if (!in.empty()) {
          EXPECT_EQ(in[static_cast<std::size_t>(given->split_dim)] % given->sword, 0);
        }
        const auto reads = chunking(schedule, node.shape.dims), has = chunking(*given, in);
        if (!reads || !has) continue;  // strided
        EXPECT_TRUE(is_local(computation, node, i, schedule, *given))
            << text << "\n"
            << to_text(schedule) << " -> " << to_text(*given);
        ++passed;
      }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::fusionstitching
