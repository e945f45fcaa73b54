// Products, ladders, provenance, groups and chunks: the worked examples, the exports, random graphs of dots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "analysis/planners/astra/provenance.h"
#include "core/base/at.h"
#include "tests/support/astra_graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using astra::FusionGroup;
using astra::Ladder;
using astra::Space;
using ::testing::ElementsAre;
using testing::graph_of;
using testing::group_sizes;
using ::testing::IsEmpty;
using testing::op;
using testing::refusals;
using testing::space_of;

std::vector<int> calls_of_chunks(const Space& space, int group) {
  std::vector<int> result;
  for (const astra::Chunk& chunk : astra::chunks(space.groups[at(group)], device("v100-sxm2")).list)
    result.push_back(astra::calls(space.groups[at(group)], chunk));
  return result;
}

TEST(AstraGroups, GatesOfACellAreOneGroup) {
  const Graph graph = testing::astra_lstm_cell();
  const Space space = space_of(graph);
  EXPECT_THAT(group_sizes(space), ElementsAre("1x4x2"));
  ASSERT_EQ(space.groups.size(), 1u);
  EXPECT_THAT(calls_of_chunks(space, 0), ElementsAre(1, 2, 2, 4, 4, 8));
  EXPECT_EQ(refusals(space, "astra.provenance"), 0);
}

const Ladder& ladder_of(const Space& space, NodeId root) {
  for (const Ladder& ladder : space.ladders)
    if (ladder.root == root) return ladder;
  throw std::runtime_error("no such ladder");
}

TEST(AstraGroups, LaddersAreSeenThroughTransposes) {
  const Graph graph = testing::astra_ladder();
  const Space space = space_of(graph);
  EXPECT_THAT(group_sizes(space), ElementsAre("1x1x3"));
  const FusionGroup& group = space.groups[0];
  EXPECT_EQ(group.left[0][0].matrix.op, op(graph, "h0"));
  EXPECT_EQ(group.right[0][0].matrix.op, op(graph, "p0"));
  EXPECT_EQ(group.to(0, 0).op, op(graph, "s0"));
  EXPECT_EQ(group.to(0, 0).rows, 8);
  EXPECT_THAT(calls_of_chunks(space, 0), ElementsAre(1, 2, 3));
}

TEST(AstraGroups, ASumThatOthersReadEndsALadder) {
  const Graph graph = testing::astra_ladder(true);
  const Space space = space_of(graph);
  EXPECT_EQ(ladder_of(space, op(graph, "s1")).rungs.size(), 2u);
  EXPECT_EQ(ladder_of(space, op(graph, "t0")).rungs.size(), 1u);
  EXPECT_EQ(space.groups.size(), 2u);
}

TEST(AstraGroups, AProductThatAnotherDependsOnIsNoRung) {
  const Graph graph = testing::astra_ladder(false, true);
  const Space space = space_of(graph);
  EXPECT_EQ(refusals(space, "astra.depends"), 1);
}

TEST(AstraGroups, EveryRefusalHasItsRule) {
  const Graph graph = graph_of(R"(
  x = f32[4,4] parameter(0)
  w = f32[4,4] parameter(1)
  u = f32[4,4] parameter(2)
  b = f32[2,4,4] parameter(3)
  i = s32[4,4] parameter(4)
  v = f32[4] parameter(5)
  k = f32[1,1,4,4] parameter(6)
  batched = f32[2,4,4] dot(b, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  whole = s32[4,4] dot(i, i), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  vector = f32[4] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  xw = f32[4,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  xu = f32[4,4] dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  twice = f32[4,4] add(xw, xu)
  deep = f32[4,4] dot(twice, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  deeper = f32[4,4] dot(x, twice), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  sum = f32[4,4] add(deep, deeper)
  again = f32[4,4] add(sum, deep)
  sorted = f32[4,4] custom-call(v), custom_call_target="other"
  host = f32[4,4] dot(sorted, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[2,4,4], s32[4,4], f32[4], f32[4,4], f32[4,4]) tuple(batched, whole, vector, again, host))");
  const Space space = space_of(graph);
  for (const char* rule : {"astra.batch-dims", "astra.dtype", "astra.layout", "astra.same-operand-twice",
                           "astra.read-elsewhere", "astra.provenance", "astra.host-call"})
    EXPECT_GE(refusals(space, rule), 1) << rule;
}

TEST(AstraGroups, RangesEndWhereACallFillsTheDevice) {
  std::string text = " x = f32[2048,64] parameter(0)\n";
  std::string names, types;
  for (int i = 0; i < 16; ++i) {
    text += fmt::format(" w{0} = f32[64,2048] parameter({1})\n", i, i + 1);
    text += fmt::format(
        " y{0} = f32[2048,2048] dot(x, w{0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n", i);
    names += fmt::format("{}y{}", i == 0 ? "" : ", ", i);
    types += fmt::format("{}f32[2048,2048]", i == 0 ? "" : ", ");
  }
  const Graph graph = graph_of(text + fmt::format(" ROOT r = ({}) tuple({})", types, names));
  const Space space = space_of(graph);
  ASSERT_THAT(group_sizes(space), ElementsAre("1x16x1"));
  // 1,024 tiles of 64 x 64 a product, 640 fill 8 waves of 80 SMs.
  const astra::Chunks chunks = astra::chunks(space.groups[0], device("v100-sxm2"));
  EXPECT_EQ(chunks.list.size(), 1u);
  EXPECT_EQ(chunks.out_of_range, 4);
}

TEST(AstraGroups, OfExportsAreThoseOfTheDesign) {
  // Steps are 3 (SC-RNN) and 2: gates of a step, data gradients of a step, weight gradients over all time.
  EXPECT_THAT(group_sizes(space_of(testing::dataset("scrnn_tiny"))),
              ElementsAre("3x1x3", "2x1x3", "1x1x3", "1x1x3", "1x1x3", "1x1x3", "3x1x1", "1x1x2", "1x1x2",
                          "1x1x2", "1x1x2", "1x1x2", "1x1x2", "1x1x2", "1x1x2"));
  const std::vector<std::string> lstm = group_sizes(space_of(testing::dataset("stacked_lstm_tiny")));
  EXPECT_EQ(std::count(lstm.begin(), lstm.end(), "2x4x2"), 2);
  EXPECT_EQ(std::count(lstm.begin(), lstm.end(), "1x4x2"), 4);
}

/// By dot those that reach it.
std::map<NodeId, std::set<NodeId>> ancestors(const Computation& computation) {
  std::vector<std::set<NodeId>> reaching(at(computation.size()));
  std::map<NodeId, std::set<NodeId>> result;
  for (const Node& node : computation.nodes) {
    std::set<NodeId>& mine = reaching[at(node.id)];
    for (const NodeId read : node.operands) mine.insert(reaching[at(read)].begin(), reaching[at(read)].end());
    if (node.op != Op::kDot) continue;
    result[node.id] = mine;
    mine.insert(node.id);
  }
  return result;
}

/// The ops that go where a group is one call.
std::set<NodeId> ops_of(const Space& space, const FusionGroup& group) {
  std::set<NodeId> result;
  for (const int l : group.ladders) {
    const Ladder& ladder = space.ladders[at(l)];
    result.insert(ladder.inner.begin(), ladder.inner.end());
    for (const int rung : ladder.rungs) {
      result.insert(space.products.list[at(rung)].dot);
      result.insert(space.products.list[at(rung)].result);
    }
  }
  return result;
}

bool acyclic_together(const Computation& computation, const Space& space) {
  std::vector<int> of(at(computation.size()));
  for (std::size_t i = 0; i < of.size(); ++i) of[i] = static_cast<int>(space.groups.size() + i);
  for (std::size_t g = 0; g < space.groups.size(); ++g)
    for (const NodeId id : ops_of(space, space.groups[g])) of[at(id)] = static_cast<int>(g);
  std::map<int, std::set<int>> before, behind;
  for (const Node& node : computation.nodes) {
    before[of[at(node.id)]];
    for (const NodeId read : node.operands)
      if (of[at(read)] != of[at(node.id)]) {
        before[of[at(node.id)]].insert(of[at(read)]);
        behind[of[at(read)]].insert(of[at(node.id)]);
      }
  }
  std::vector<int> free;
  for (const auto& [name, list] : before)
    if (list.empty()) free.push_back(name);
  std::size_t done = 0;
  while (!free.empty()) {
    const int next = free.back();
    free.pop_back();
    ++done;
    for (const int user : behind[next]) {
      before[user].erase(next);
      if (before[user].empty()) free.push_back(user);
    }
  }
  return done == before.size();
}

/// The leaves of a ladder's adds are its rungs and what they are added to, each once, read by it alone.
void expect_is_sum(const Computation& computation, const Space& space, const Ladder& ladder) {
  const auto users = computation.users();
  std::multiset<NodeId> leaves, wanted;
  for (const NodeId add : ladder.inner)
    for (const NodeId read : computation.node(add).operands)
      if (!std::binary_search(ladder.inner.begin(), ladder.inner.end(), read)) leaves.insert(read);
  for (const int rung : ladder.rungs) wanted.insert(space.products.list[at(rung)].result);
  if (ladder.start != kNoNode) wanted.insert(ladder.start);
  if (ladder.rungs.size() == 1) {
    EXPECT_THAT(ladder.inner, IsEmpty());
    return;
  }
  EXPECT_EQ(leaves, wanted);
  for (const NodeId add : ladder.inner) {
    EXPECT_EQ(computation.node(add).op, Op::kAdd);
    if (add != ladder.root) {
      EXPECT_EQ(users[at(add)].size(), 1u);
    }
  }
  for (const NodeId leaf : leaves) EXPECT_EQ(users[at(leaf)].size(), 1u);
}

using Side = std::set<std::vector<std::pair<NodeId, int>>>;
Side side_of(const std::vector<std::vector<astra::Operand>>& lists) {
  Side result;
  for (const auto& list : lists) {
    std::vector<std::pair<NodeId, int>> key;
    for (const astra::Operand& o : list) key.emplace_back(o.matrix.op, o.contracted);
    result.insert(key);
  }
  return result;
}

/// What all products of a group have in common, by trying.
auto likeness(const Computation& computation, const Space& space, const FusionGroup& group,
              std::map<NodeId, std::set<NodeId>>& reaching) {
  std::set<NodeId> provenance;
  const Ladder& ladder = space.ladders[at(group.ladders[0])];
  for (const int rung : ladder.rungs) {
    const auto& mine = reaching[space.products.list[at(rung)].dot];
    provenance.insert(mine.begin(), mine.end());
  }
  if (ladder.start != kNoNode) return std::tuple(provenance, group.k(), -1 - ladder.start, ladder.root);
  (void)computation;
  return std::tuple(provenance, group.k(), group.left[0][0].contracted, group.right[0][0].contracted);
}

TEST(AstraGroups, OfRandomGraphsAreIndependentAcyclicTogetherAndMaximal) {
  int fused = 0, in_ladders = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    const Graph graph = testing::random_dots(seed, 12 + static_cast<int>(seed % 50));
    const Computation& computation = graph.entry_computation();
    const Space space = space_of(graph);
    auto reaching = ancestors(computation);
    std::set<NodeId> made;
    for (const FusionGroup& group : space.groups) {
      std::vector<NodeId> dots;
      for (const int l : group.ladders)
        for (const int rung : space.ladders[at(l)].rungs) dots.push_back(space.products.list[at(rung)].dot);
      ASSERT_EQ(static_cast<int>(dots.size()), group.products());
      for (const NodeId a : dots) {
        EXPECT_TRUE(made.insert(a).second) << "in two groups";
        for (const NodeId b : dots) EXPECT_FALSE(reaching[b].contains(a)) << "seed " << seed;
      }
      fused += group.products() > 1 ? 1 : 0;
      in_ladders += group.k() > 1 ? 1 : 0;
    }
    ASSERT_EQ(made.size(), space.products.list.size());
    ASSERT_TRUE(acyclic_together(computation, space)) << "seed " << seed;
    for (const Ladder& ladder : space.ladders) expect_is_sum(computation, space, ladder);
    for (const FusionGroup& a : space.groups)
      for (const FusionGroup& b : space.groups) {
        if (&a == &b ||
            likeness(computation, space, a, reaching) != likeness(computation, space, b, reaching))
          continue;
        const Side al = side_of(a.left), bl = side_of(b.left), ar = side_of(a.right), br = side_of(b.right);
        std::set<NodeId> held;
        std::size_t arrays = 0;
        for (const Side* side : {&al, &ar, al == bl ? &br : &bl})
          for (const auto& list : *side)
            for (const auto& [id, d] : list) {
              held.insert(id);
              ++arrays;
            }
        if (held.size() < arrays || (al == bl && ar == br)) continue;  // an array has one place
        EXPECT_FALSE(al == bl || ar == br) << "seed " << seed << ": two blocks are one";
      }
  }
  EXPECT_GT(fused, 400);
  EXPECT_GT(in_ladders, 100);
}

TEST(AstraGroups, EqualNumbersAreEqualProvenance) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const Graph graph = testing::random_dots(seed, 60);
    const Computation& computation = graph.entry_computation();
    const Space space = space_of(graph);
    auto reaching = ancestors(computation);
    const std::vector<int> by_join = astra::provenance(computation, space.products, space.ladders, 0);
    for (std::size_t a = 0; a < space.ladders.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) {
        if (space.ladders[a].start != kNoNode || space.ladders[b].start != kNoNode) continue;
        std::set<NodeId> x, y;
        for (const int rung : space.ladders[a].rungs)
          x.merge(std::set(reaching[space.products.list[at(rung)].dot]));
        for (const int rung : space.ladders[b].rungs)
          y.merge(std::set(reaching[space.products.list[at(rung)].dot]));
        EXPECT_EQ(space.provenance[a] == space.provenance[b], x == y);
        if (by_join[a] == by_join[b]) {
          EXPECT_EQ(x, y);
        }
      }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
