#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/planners/fusionstitching/deep/elementwise_fusion.h"
#include "analysis/planners/fusionstitching/deep/subgraph_fusion.h"
#include "tests/support/graphs.h"

namespace stitchwork::fusionstitching::deep {
namespace TEST_FILE {

using ::testing::ElementsAre;
using testing::graph_of;
using testing::op;

/// The passes up to fusions.
struct Passes {
  explicit Passes(Graph of, bool products = false, Roof roof = Roof::kPath)
      : graph(std::move(of)),
        nodes(astitch::node_facts(graph)),
        units(nodes, products),
        times(graph, graph.entry_computation(), device("p100"), nullptr),
        tuner(graph, device("p100"), units, options, times) {
    options.products = products;
    options.roof = roof;
    options.shared_bytes = 20480;
  }
  std::string fusions() { return to_text(units, fuse(units, tuner, options, recorder)); }
  NodeId id(const char* name) const { return op(graph, name); }

  Graph graph;
  astitch::Nodes nodes;
  Options options;
  Contraction units;
  OpTimes times;
  Tuner tuner;
  Recorder recorder{true};
};

TEST(FsLayers, SpansAreThoseOfFigure3) {
  Passes passes(testing::dataset("fs18_fig3"), true);
  const Layers layers = find_layers(passes.units);
  const auto span = [&](const char* name) { return layers.of(passes.id(name)); };
  EXPECT_EQ(span("dot.1"), 0);
  EXPECT_EQ(span("divide.1"), 2);  // bitcast.1 lies between
  EXPECT_EQ(span("reduce.2"), 4);
  EXPECT_EQ(span("exponential.1"), 5);
  EXPECT_EQ(span("subtract.1"), 6);
  EXPECT_EQ(span("reduce.1"), 8);
}

TEST(FsLayers, ARootTupleHasSpanZeroAndALayerNoDependences) {
  Passes passes(testing::dataset("fs18_cycle"));
  const Layers layers = find_layers(passes.units);
  EXPECT_EQ(layers.of(passes.graph.entry_computation().root), 0);
  EXPECT_THAT(to_text(passes.units, layers), ::testing::HasSubstr("1: r1 r2\n2: m1 m2\n"));
}

TEST(FsLayers, ContractedFusionsAreOneNode) {
  Passes passes(testing::dataset("fs18_cycle"));
  passes.units.merge(passes.id("r1"), passes.id("m1"));
  EXPECT_EQ(passes.units.unit_of(passes.id("m1")), passes.id("r1"));
  EXPECT_FALSE(passes.units.reaches(passes.id("m2"), passes.id("r1")));
  const NodeId m1 = passes.id("m1"), r2 = passes.id("r2"), m2 = passes.id("m2");
  EXPECT_THAT(passes.units.users(passes.units.unit_of(m1)), ::testing::Contains(r2));
  // r2 with m2: m2 feeds {r1, m1}, which feeds r2.
  EXPECT_TRUE(passes.units.reaches(m2, r2));
}

TEST(FsElementwise, OpsOfOneLayerShapeAndTypeArePacked) {
  Passes passes(testing::dataset("fs18_sgd"));
  const Layers layers = find_layers(passes.units);
  std::vector<NodeId> layer;
  for (const NodeId unit : layers.layers[1]) layer.push_back(unit);
  const std::size_t before = layer.size();
  const std::vector<NodeId> roots = pack_elementwise(passes.units, layer, passes.tuner, {}, passes.recorder);
  EXPECT_EQ(before, 3u);
  EXPECT_EQ(roots.size(), 2u);
}

TEST(FsElementwise, LargeOnesStayAlone) {
  Passes passes(
      graph_of("p = f32[4096,4096] parameter(0)\n a = f32[4096,4096] tanh(p)\n b = f32[4096,4096] negate(p)\n"
               "ROOT t = (f32[4096,4096], f32[4096,4096]) tuple(a, b)"));
  const Layers layers = find_layers(passes.units);
  EXPECT_EQ(pack_elementwise(passes.units, layers.layers[1], passes.tuner, {}, passes.recorder).size(), 2u);
  EXPECT_EQ(passes.recorder.take().at(0).verdict.rule, "fs18.too-large-to-pack");
}

TEST(FsSubgraph, AChainThroughReductionsIsOneFusion) {
  Passes passes(testing::dataset("fs18_fig3"), true);
  EXPECT_EQ(passes.fusions(), "dot.1: reduce.1 subtract.1 exponential.1 reduce.2 divide.1 dot.1\n");
}

TEST(FsSubgraph, AProducerWhoseOtherReaderWasGivenUpStaysOutside) {
  // The large dot is a call between e and m.
  Passes passes(
      graph_of("p = f32[64,64] parameter(0)\n e = f32[64,64] exponential(p)\n"
               "d = f32[64,64] dot(e, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
               "ROOT m = f32[64,64] multiply(d, e)"));
  EXPECT_EQ(passes.fusions(), "e: e\nm: m\n");
}

TEST(FsSubgraph, TheRoofOfLayersIsTheNextLayerWithACall) {
  const std::string text =
      "p = f32[64,64] parameter(0)\n q = f32[64,64] parameter(1)\n a = f32[64,64] tanh(p)\n b = f32[64,64] "
      "negate(a)\n"
      "c = f32[64,64] exponential(b)\n d = f32[64,64] dot(q, q), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0}\n"
      "ROOT m = f32[64,64] add(d, c)";
  EXPECT_EQ(Passes(graph_of(text)).fusions(), "m: a b c m\n");
  EXPECT_NE(Passes(graph_of(text), false, Roof::kLayer).fusions(), "m: a b c m\n");
}

TEST(FsTuning, AFusionsSchedulesAreThoseEveryOpFollows) {
  Passes passes(testing::dataset("fs18_fig3"), true);
  const auto fusions = fuse(passes.units, passes.tuner, passes.options, passes.recorder);
  const Tuned& tuned = fusions.begin()->second;
  EXPECT_EQ(tuned.cuts.size(), 5u);  // 1, 2, 4, 8, 16 blocks
  const Tuning tuning = passes.tuner.choices(tuned).front();
  EXPECT_EQ(tuning.blocks, 16);  // the P100 has 56 SMs
  EXPECT_EQ(tuning.schedules.at(passes.id("reduce.1")), (Schedule{1, 8, ScheduleType::kRow}));
  EXPECT_EQ(tuning.schedules.at(passes.id("dot.1")), (Schedule{0, 16, ScheduleType::kRow}));
}

TEST(FsTuning, WhatIsIncrementalAgreesWithPropagatingAtOnce) {
  for (const char* name : {"softmax_tiny", "layer_norm_tiny", "fs18_fig3", "bert_layer"}) {
    Passes passes(testing::dataset(name), true);
    for (const auto& [unit, tuned] : fuse(passes.units, passes.tuner, passes.options, passes.recorder))
      for (const Cut& cut : tuned.cuts)
        EXPECT_TRUE(passes.tuner.is_satisfiable(tuned, cut.root)) << name << " " << to_text(cut.root);
  }
}

TEST(FsLibrary, MissesAreModelledAndNamed) {
  const Graph graph = testing::dataset("fs18_fig3");
  const PerformanceLibrary empty{"p100-sxm2", {}};
  OpTimes times(graph, graph.entry_computation(), device("p100"), &empty);
  const OpTimes::BySize& best = times.best(op(graph, "exponential.1"), {1, 8, ScheduleType::kRow});
  for (const OpTimes::Best& b : best) EXPECT_GT(b.us, device("p100").launch_us);
  EXPECT_EQ(times.misses().size(), kBlockSizes.size());
}

TEST(FsLibrary, MoreBlocksAreFasterUntilTheDeviceIsFull) {
  const Graph graph = graph_of("p = f32[4096,1024] parameter(0)\n ROOT t = f32[4096,1024] tanh(p)");
  OpTimes times(graph, graph.entry_computation(), device("p100"), nullptr);
  const auto us = [&](std::int64_t blocks) {
    return times.best(op(graph, "t"), {0, blocks, ScheduleType::kRow})[3].us;
  };
  EXPECT_LT(us(1024), us(16));
  EXPECT_LT(us(16), us(1));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::fusionstitching::deep
