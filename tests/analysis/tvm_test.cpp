#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/planners/planner.h"
#include "analysis/planners/tvm/partition.h"
#include "analysis/schedule/evaluations.h"
#include "tests/support/graphs.h"
#include "tests/support/most_maps.h"
#include "tests/support/scans.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::Contains;
using testing::dataset;
using ::testing::ElementsAre;
using testing::graph_of;
using ::testing::HasSubstr;
using testing::outputs;

FusionPlan plan(const Graph& graph, const char* duplicate_cheap = "off") {
  return make_plan(graph, device("v100"), "tvm", {{{"duplicate_cheap", duplicate_cheap}}, {}, true});
}

std::vector<std::string> rules(const FusionPlan& plan, const std::string& subject,
                               const std::string& object) {
  std::vector<std::string> found;
  for (const Decision& d : plan.decisions)
    if (d.subject == subject && (object.empty() || d.object == object)) found.push_back(d.verdict.rule);
  return found;
}

TEST(Tvm, Fig7TakesFourKernelsByTheExactRules) {
  const Graph graph = dataset("fig7");
  const FusionPlan p = plan(graph);
  // broadcast.2 has two paths to multiply.1, one of them through reduce.2, so it ends a kernel.
  EXPECT_THAT(outputs(graph, p), ElementsAre("reduce.1", "broadcast.2", "reduce.2", "multiply.1"));
  EXPECT_THAT(rules(p, "broadcast.2", "multiply.1"), ElementsAre("tvm.path-kind"));
  EXPECT_THAT(rules(p, "reduce.1", ""), ElementsAre("tvm.reduce-never-fuses-forward"));
}

TEST(Tvm, Fig7TakesThePapersThreeKernelsWhereCheapProducersAreDuplicated) {
  const Graph graph = dataset("fig7");
  const FusionPlan p = plan(graph, "on");
  EXPECT_THAT(outputs(graph, p), ElementsAre("reduce.1", "reduce.2", "multiply.1"));
  const NodeId power = testing::op(graph, "power.1");
  EXPECT_EQ(p.kernels[1].schemes.at(power), Scheme::kRecomputed);
  EXPECT_EQ(p.kernels[2].schemes.at(power), Scheme::kRecomputed);
}

TEST(Tvm, AProducerWhoseCopiesReadMoreIsNotDuplicated) {
  const Graph graph = graph_of(
      "p = f32[8,64,64] parameter(0)\n z = f32[] constant(0)\n"
      "s = f32[1,64,64] slice(p), slice={[0:1],[0:64],[0:64]}\n m = f32[64,64] reshape(s)\n"
      "a = f32[64] reduce(m, z), dimensions={1}, to_apply=sum\n"
      "b = f32[64] reduce(m, z), dimensions={1}, to_apply=max\n ROOT t = (f32[64], f32[64]) tuple(a, b)");
  EXPECT_THAT(rules(plan(graph, "on"), "s", "a"), Contains("tvm.duplicate-reads-more"));
}

// Each level of a scan reads the one below at two places: copies would double the expressions at each level.
TEST(Tvm, AProducerIsNotDuplicatedToManyIndices) {
  const Graph graph = graph_of(testing::ScanText(64, 64, 0, testing::ScanStep::kRecurrence).text());
  const FusionPlan p = plan(graph, "on");
  const auto refused = std::ranges::find_if(
      p.decisions, [](const Decision& decision) { return decision.verdict.rule == "tvm.duplicate-indices"; });
  ASSERT_NE(refused, p.decisions.end());
  EXPECT_THAT(refused->verdict.why, HasSubstr("at more than 24 indices"));
  EXPECT_LE(testing::most_maps(graph, p), kMostMaps);
}

TEST(Tvm, FunctionsGrowByCopiesToNoMoreThanTheirOwnLimit) {
  // Sums of rows and of columns in turn, each of what is left without the one before: all that was left is
  // needed by every sum.
  std::string text = "v0 = f32[64,128] parameter(0)\n zero = f32[] constant(0)\n";
  constexpr int kSums = 200;
  for (int i = 0; i < kSums; ++i)
    text += fmt::format(
        "r{0} = f32[{3}] reduce(v{0}, zero), dimensions={{{4}}}, to_apply=sum\n"
        "b{0} = f32[64,128] broadcast(r{0}), dimensions={{{5}}}\n"
        "{2}v{1} = f32[64,128] subtract(v{0}, b{0})\n",
        i, i + 1, i + 1 == kSums ? "ROOT " : "", i % 2 == 0 ? 64 : 128, 1 - i % 2, i % 2);
  const FusionPlan p = plan(graph_of(text), "on");
  std::size_t most = 0;
  for (const KernelPlan& kernel : p.kernels) most = std::max(most, kernel.ops.size());
  EXPECT_LE(most, 256U);
  EXPECT_GT(most, 200U);
}

TEST(Tvm, PowerIsRecomputedBehindABroadcast) {
  const Graph graph = dataset("fig5");
  const FusionPlan p = plan(graph);
  ASSERT_EQ(p.kernels.size(), 1u);  // Figure 5 of the AStitch paper
  EXPECT_EQ(p.kernels[0].schemes.at(testing::op(graph, "power.5")), Scheme::kRecomputed);
  EXPECT_THAT(rules(p, "power.5", "broadcast.6"), ElementsAre("tvm.fused"));
}

TEST(Tvm, ADiamondOfElementwiseOpsIsOneKernel) {
  const Graph graph = graph_of(
      "p = f32[64] parameter(0)\n a = f32[64] tanh(p)\n b = f32[64] negate(a)\n c = f32[64] exponential(a)\n"
      "ROOT d = f32[64] add(b, c)");
  EXPECT_THAT(outputs(graph, plan(graph)), ElementsAre("d"));
}

TEST(Tvm, AnOpWhoseReadersNeverMeetEndsItsKernel) {
  const Graph graph = graph_of(
      "p = f32[64] parameter(0)\n a = f32[64] tanh(p)\n b = f32[64] negate(a)\n c = f32[64] exponential(a)\n"
      "ROOT t = (f32[64], f32[64]) tuple(b, c)");
  const FusionPlan p = plan(graph);
  EXPECT_THAT(outputs(graph, p), ElementsAre("a", "b", "c"));
  EXPECT_THAT(rules(p, "a", ""), ElementsAre("tvm.meets-in-a-tuple"));
}

TEST(Tvm, ElementwiseProducersGoIntoAReductionAndInjectiveOnesDoNot) {
  const std::string reduce = "ROOT r = f32[64] reduce(x, z), dimensions={1}, to_apply=sum";
  const Graph light =
      graph_of("p = f32[64,64] parameter(0)\n z = f32[] constant(0)\n x = f32[64,64] tanh(p)\n" + reduce);
  EXPECT_THAT(outputs(light, plan(light)), ElementsAre("r"));
  const Graph layout = graph_of(
      "p = f32[64,64] parameter(0)\n z = f32[] constant(0)\n x = f32[64,64] transpose(p), "
      "dimensions={1,0}\n" +
      reduce);
  const FusionPlan p = plan(layout);
  EXPECT_THAT(outputs(layout, p), ElementsAre("x", "r"));
  EXPECT_THAT(rules(p, "x", "r"), ElementsAre("tvm.sink-kind"));
}

TEST(Tvm, TheEpilogueOfACallIsAKernelOfItsOwnAndSaysWhatTvmWouldSave) {
  const Graph graph = graph_of(
      "p = f32[64,64] parameter(0)\n q = f32[64,64] parameter(1)\n"
      "d = f32[64,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "a = f32[64,64] add(d, q)\n ROOT t = f32[64,64] tanh(a)");
  const FusionPlan p = plan(graph);
  EXPECT_THAT(outputs(graph, p), ElementsAre("t"));
  EXPECT_EQ(p.counts.library_calls, 1);
  EXPECT_THAT(rules(p, "d", "a"), ElementsAre("tvm.fused"));
  EXPECT_THAT(rules(p, "t", "d"), ElementsAre("tvm.library-epilogue"));
}

TEST(Tvm, WhatACallReadsIsNotFusedIntoIt) {
  const Graph graph = graph_of(
      "p = f32[64,64] parameter(0)\n x = f32[64,64] tanh(p)\n"
      "ROOT d = f32[64,64] dot(x, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  EXPECT_THAT(rules(plan(graph), "x", "d"), ElementsAre("tvm.path-kind"));
}

TEST(Tvm, OnlyOneOfTwoCallsTakesTheirSumAsEpilogue) {
  const Graph graph = graph_of(
      "p = f32[64,64] parameter(0)\n"
      "d = f32[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "e = f32[64,64] dot(p, p), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
      "ROOT a = f32[64,64] add(d, e)");
  const FusionPlan p = plan(graph);
  EXPECT_THAT(rules(p, "d", "a"), ElementsAre("tvm.fused"));
  EXPECT_THAT(rules(p, "e", "a"), ElementsAre("tvm.sink-kind"));
}

TEST(Tvm, FieldsFollowATupleIntoTheConcatenateThatReadsIt) {
  const Graph graph = graph_of(
      "p = f32[64] parameter(0)\n a = f32[64] tanh(p)\n b = f32[64] exponential(p)\n"
      "c = f32[128] concatenate(a, b), dimensions={0}\n ROOT n = f32[128] negate(c)");
  EXPECT_THAT(outputs(graph, plan(graph)), ElementsAre("n"));
}

TEST(Tvm, AFunctionHasAtMost256Ops) {
  std::string body = "x0 = f32[64] parameter(0)\n";
  for (int i = 1; i <= 300; ++i)
    body += fmt::format("{}x{} = f32[64] {}(x{})\n", i == 300 ? "ROOT " : "", i, i % 2 ? "tanh" : "negate",
                        i - 1);
  const Graph graph = graph_of(body);
  const FusionPlan p = plan(graph);
  ASSERT_EQ(p.kernels.size(), 2u);
  EXPECT_EQ(p.kernels[0].ops.size(), 256u);
  EXPECT_THAT(rules(p, "x256", ""), ElementsAre("tvm.too-many-ops"));
}

TEST(TvmRules, KindsAreThoseOfTheOpsTvmImports) {
  const Graph graph = graph_of(
      "p = f32[8,8] parameter(0)\n q = f32[8] parameter(1)\n z = f32[] constant(0)\n"
      "u = f32[8,8] tanh(p)\n b = f32[8,8] add(u, p)\n w = f32[8,8] broadcast(q), dimensions={0}\n"
      "t = f32[8,8] transpose(b), dimensions={1,0}\n r = f32[8] reduce(t, z), dimensions={1}, to_apply=sum\n"
      "d = f32[8,8] dot(w, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "ROOT o = (f32[8], f32[8,8]) tuple(r, d)");
  const Computation& c = graph.entry_computation();
  const auto kind = [&](const char* name) { return tvm::kind_of(c.node(c.find(name))); };
  EXPECT_EQ(kind("p"), tvm::Kind::kOpaque);
  EXPECT_EQ(kind("u"), tvm::Kind::kElemwise);
  EXPECT_EQ(kind("b"), tvm::Kind::kBroadcast);
  EXPECT_EQ(kind("w"), tvm::Kind::kBroadcast);
  EXPECT_EQ(kind("t"), tvm::Kind::kInjective);
  EXPECT_EQ(kind("r"), tvm::Kind::kCommReduce);
  EXPECT_EQ(kind("d"), tvm::Kind::kOutEwiseFusable);
  EXPECT_EQ(kind("o"), tvm::Kind::kTuple);
  EXPECT_EQ(tvm::edge_kind(c.node(c.find("b")), c.node(c.find("p")).shape), tvm::Kind::kElemwise);
  EXPECT_EQ(tvm::edge_kind(c.node(c.find("w")), c.node(c.find("q")).shape), tvm::Kind::kBroadcast);
}

TEST(TvmRules, PostDominatorsAreWhereAllPathsMeetFirst) {
  const Graph graph = graph_of(
      "p = f32[8,8] parameter(0)\n z = f32[] constant(0)\n a = f32[8,8] tanh(p)\n"
      "r = f32[8] reduce(a, z), dimensions={1}, to_apply=sum\n w = f32[8,8] broadcast(r), dimensions={0}\n"
      "ROOT d = f32[8,8] divide(a, w)");
  const tvm::ForwardGraph forward = tvm::forward_graph(graph.entry_computation());
  EXPECT_EQ(to_text(forward, tvm::post_dominators(forward)),
            "p: opaque\n"
            "a: element-wise, meets in d by reduction\n"
            "r: reduction, meets in w by broadcast\n"
            "w: broadcast, meets in d by element-wise\n"
            "d: broadcast\n");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
