#include "analysis/schedule/propagation.h"

#include <gtest/gtest.h>

#include "analysis/facts/facts.h"
#include "tests/support/graphs.h"
#include "tests/support/mapping_fields.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using testing::graph_of;
using testing::op;

std::vector<NodeId> computed(const Graph& graph) {
  std::vector<NodeId> ops;
  for (const Node& node : graph.entry_computation().nodes) {
    const PlanRole role = plan_role(node);
    if ((role == PlanRole::kMemory || role == PlanRole::kAlias) && !node.shape.is_tuple)
      ops.push_back(node.id);
  }
  return ops;
}

Placements placed(const Graph& graph, const char* dominant, testing::MappingKind kind, std::int64_t rows,
                  std::int64_t cols) {
  testing::MappingFields mapping;
  mapping.kind = kind;
  mapping.rows = rows;
  mapping.cols = cols;
  return *propagate(graph.entry_computation(), op(graph, dominant), mapping, computed(graph));
}

/// "full (d0, d1) -> ..." or "absent".
std::string at(const Graph& graph, const Placements& places, const char* name) {
  const auto found = places.find(op(graph, name));
  if (found == places.end()) return "absent";
  constexpr const char* kNames[] = {"full", "rows", "partial", "cols"};
  return std::string(kNames[static_cast<int>(found->second.coverage)]) + " " + to_text(found->second.map);
}

TEST(Propagation, ReachesProducersAndConsumersOfARowReduction) {
  const Graph graph = dataset("fig7");
  const auto places = placed(graph, "reduce.1", testing::MappingKind::kRowPack, 4096, 256);
  EXPECT_EQ(at(graph, places, "add.1"), "full (d0, d1) -> (d0, d1)");
  EXPECT_EQ(at(graph, places, "parameter.1"), "full (d0, d1) -> (d0, d1)");
  EXPECT_EQ(at(graph, places, "parameter.2"), "rows (d0, d1) -> (d0)");
  EXPECT_EQ(at(graph, places, "reduce.1"), "rows (d0, d1) -> (d0)");
  EXPECT_EQ(at(graph, places, "power.1"), "rows (d0, d1) -> (d0)");
}

TEST(Propagation, SoftmaxLiesInOneDomain) {
  const Graph graph = dataset("softmax");
  const auto places = placed(graph, "reduce.22", testing::MappingKind::kRowPack, 4096, 1024);
  for (const char* name : {"exponential.17", "subtract.16", "divide.27"})
    EXPECT_EQ(places.at(op(graph, name)).coverage, Coverage::kFull) << name;
  EXPECT_EQ(places.at(op(graph, "reduce.10")).coverage, Coverage::kRows);
  EXPECT_EQ(places.at(op(graph, "reduce.22")).coverage, Coverage::kRows);
}

TEST(Propagation, TransposesAndReshapesStayOneToOne) {
  const Graph graph = graph_of(
      "p = f32[8,12] parameter(0)\n t = f32[12,8] transpose(p), dimensions={1,0}\n r = f32[96] reshape(t)\n"
      "ROOT n = f32[96] negate(r)");
  const auto places = placed(graph, "n", testing::MappingKind::kElementwise, 96, 1);
  EXPECT_EQ(places.at(op(graph, "p")).coverage, Coverage::kFull);
  EXPECT_EQ(at(graph, places, "t"), "full (d0, d1) -> (d0 floordiv 8, d0 mod 8)");
}

TEST(Propagation, SlicesAndSharedVectorsArePartial) {
  const Graph graph = graph_of(
      "p = f32[8,12] parameter(0)\n v = f32[6] parameter(1)\n s = f32[8,6] slice(p), slice={[0:8], [0:6]}\n"
      "b = f32[8,6] broadcast(v), dimensions={1}\n ROOT a = f32[8,6] add(s, b)");
  const auto places = placed(graph, "a", testing::MappingKind::kElementwise, 48, 1);
  EXPECT_EQ(places.at(op(graph, "p")).coverage, Coverage::kPartial);
  EXPECT_EQ(places.at(op(graph, "v")).coverage, Coverage::kPartial);
  EXPECT_EQ(places.at(op(graph, "b")).coverage, Coverage::kFull);
}

TEST(Propagation, TheWholeReadWinsOverTheSlicedOne) {
  const Graph graph = graph_of(
      "p = f32[8,8] parameter(0)\n x = f32[8,8] abs(p)\n s = f32[8,4] slice(x), slice={[0:8], [0:4]}\n"
      "c = f32[8,8] concatenate(s, s), dimensions={1}\n ROOT a = f32[8,8] add(c, x)");
  const auto places = placed(graph, "a", testing::MappingKind::kElementwise, 64, 1);
  EXPECT_EQ(places.at(op(graph, "x")).coverage, Coverage::kFull);
}

TEST(Propagation, AReductionOfTheRowsLiesAcrossThemUnlessTheyAreSplit) {
  const Graph graph = graph_of(
      "p = f32[8,8] parameter(0)\n z = f32[] constant(0)\n"
      "a = f32[8] reduce(p, z), dimensions={1}, to_apply=sum\n"
      "b = f32[8] reduce(p, z), dimensions={0}, to_apply=sum\n ROOT s = (f32[8], f32[8]) tuple(a, b)");
  const auto places = placed(graph, "a", testing::MappingKind::kRowPack, 8, 8);
  EXPECT_EQ(at(graph, places, "b"), "cols (d0, d1) -> (d1)");
  EXPECT_EQ(at(graph, placed(graph, "a", testing::MappingKind::kRowSplit, 8, 8), "b"), "absent");
}

TEST(Propagation, ARowValueSpreadOverTheColsIsReachedFromItsProducer) {
  const Graph graph = graph_of(
      "p = f32[8,6] parameter(0)\n z = f32[] constant(0)\n r = f32[8] reduce(p, z), dimensions={1}, "
      "to_apply=sum\n"
      "b = f32[8,6] broadcast(r), dimensions={0}\n ROOT n = f32[8,6] negate(b)");
  const auto places = placed(graph, "r", testing::MappingKind::kRowPack, 8, 6);
  EXPECT_EQ(at(graph, places, "b"), "full (d0, d1) -> (d0, d1)");
  EXPECT_EQ(places.at(op(graph, "n")).coverage, Coverage::kFull);
}

TEST(Propagation, RootsThatShareOnlyAVectorTakeTheFlatDomain) {
  const Graph graph = graph_of(
      "v = f32[6] parameter(0)\n x = f32[8,6] parameter(1)\n y = f32[8,6] parameter(2)\n"
      "b = f32[8,6] broadcast(v), dimensions={1}\n a = f32[8,6] add(x, b)\n m = f32[8,6] multiply(y, b)\n"
      "ROOT t = (f32[8,6], f32[8,6]) tuple(a, m)");
  testing::MappingFields mapping;
  mapping.rows = 48;
  const auto places = *propagate(graph.entry_computation(), op(graph, "a"), mapping,
                                 {op(graph, "b"), op(graph, "a"), op(graph, "m")});
  EXPECT_EQ(places.at(op(graph, "m")).coverage, Coverage::kFull);
  EXPECT_EQ(places.at(op(graph, "m")).map, places.at(op(graph, "a")).map);
}

TEST(Propagation, LeavesOpsOutsideTheGroupAlone) {
  const Graph graph = graph_of(
      "p = f32[8] parameter(0)\n a = f32[8] abs(p)\n b = f32[8] negate(a)\n"
      "ROOT c = f32[8] tanh(b)");
  testing::MappingFields mapping;
  mapping.rows = 8;
  const auto places = *propagate(graph.entry_computation(), op(graph, "b"), mapping, {op(graph, "b")});
  EXPECT_TRUE(places.contains(op(graph, "a")));  // a source of the group
  EXPECT_FALSE(places.contains(op(graph, "p")));
  EXPECT_FALSE(places.contains(op(graph, "c")));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
