#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "analysis/planners/fusionstitching/schedule.h"
#include "analysis/planners/fusionstitching/shrinking.h"
#include "core/hlo/hlo_text.h"
#include "tests/support/graphs.h"

namespace stitchwork::fusionstitching {
namespace TEST_FILE {

using ::testing::ElementsAre;

/// The fusion of F18 Figure 3 (datasets fs18_fig3, fs18_shrink) in 16 blocks.
struct Figure3 {
  explicit Figure3(const std::string& name) : graph(testing::dataset(name)) {
    const Computation& computation = graph.entry_computation();
    for (const Node& node : computation.nodes)
      if (node.op != Op::kParameter && node.op != Op::kConstant) fusion.ops.push_back(node.id);
    fusion.roots = {computation.root};
    asked = requests(
        computation, fusion, [&](NodeId op) { return elements_of(computation.node(op).shape.dims) / 16; },
        computation.users());
  }
  SharedPlan plan(SharingRules rules) const {
    rules.in_place = [this](NodeId op, NodeId read, const IsShared& shared) {
      return is_elementwise_in_place(graph.entry_computation(), op, read, shared);
    };
    // Along this chain the later op has the lesser span.
    return plan_shared(
        graph.entry_computation(), fusion, asked, [](NodeId op) { return -op; }, rules);
  }
  std::string text(const Slots& slots) const { return to_text(graph.entry_computation(), slots); }
  std::vector<std::string> names(const std::vector<Request>& of) const {
    std::vector<std::string> result;
    for (const Request& request : of) result.push_back(graph.entry_computation().node(request.op).name);
    return result;
  }

  Graph graph;
  Fusion fusion;
  std::vector<Request> asked;
};

TEST(FsRequests, ReductionsMustSharedValuesMayExpensiveOnesBeforeADotWantTo) {
  const Figure3 figure("fs18_fig3");
  EXPECT_EQ(to_text(figure.graph.entry_computation(), figure.asked),
            "reduce.1: 256 bytes (reduction or dot)\n"
            "exponential.1: 16384 bytes (expensive, several users)\n"
            "reduce.2: 256 bytes (reduction or dot)\n"
            "divide.1: 16384 bytes (expensive, before a batch dot)\n");
  EXPECT_EQ(requested_bytes(figure.asked), 33280);
}

TEST(FsRequests, DivideIsExpensiveHereThoughLightInTheOpTable) {
  EXPECT_TRUE(is_expensive(Op::kDivide));
  EXPECT_TRUE(is_expensive(Op::kExp));
  EXPECT_FALSE(is_expensive(Op::kAdd));
}

TEST(FsSharing, Figure3IsSharedAsThePaperSays) {
  const Figure3 figure("fs18_fig3");
  const SharedPlan plan = figure.plan({.limit = 20480});
  EXPECT_EQ(figure.text(plan.slots),
            "reduce.1@0+256\nexponential.1@256+16384\nreduce.2@0+256 of reduce.1\n"
            "divide.1@256+16384 of exponential.1 in place\n16640 bytes\n");
  EXPECT_TRUE(plan.fits);
  EXPECT_TRUE(plan.shrunk.empty());
}

TEST(FsSharing, WithoutReuseEveryRequestHasItsOwnBytes) {
  const Figure3 figure("fs18_fig3");
  EXPECT_EQ(figure.plan({.limit = 1 << 20, .reuse = false}).slots.bytes, 33280);
}

TEST(FsSharing, WhatOthersStillReadIsNotOverwritten) {
  // b reads a through a broadcast of a reduction and directly: the exponential must not lie over the maximum.
  const Graph graph = testing::graph_of(
      "p = f32[8,8] parameter(0)\n z = f32[] constant(0)\n m = f32[8] reduce(p, z), dimensions={1}, "
      "to_apply=max\n"
      "e = f32[8] exponential(m)\n l = f32[8] log(m)\n s = f32[8] add(e, l)\n ROOT n = f32[8] multiply(s, "
      "e)");
  const Computation& computation = graph.entry_computation();
  const NodeId e = testing::op(graph, "e"), m = testing::op(graph, "m"), n = testing::op(graph, "n");
  const Fusion fusion{{m, e, testing::op(graph, "l"), testing::op(graph, "s"), n}, {n}};
  const InPlace always = [](NodeId, NodeId, const IsShared&) { return true; };
  const Slots slots =
      share(computation, fusion, {{m, RequestClass::kMust, 32}, {e, RequestClass::kExpensiveShared, 32}},
            always, true);
  ASSERT_EQ(slots.slots.size(), 2u);
  EXPECT_EQ(slots.slots[1].taken_from, kNoNode);
}

TEST(FsSharing, InPlaceIsOnlyElementByElement) {
  const Graph graph = testing::graph_of(
      "p = f32[8,8] parameter(0)\n e = f32[8,8] exponential(p)\n t = f32[8,8] transpose(e), "
      "dimensions={1,0}\n"
      "a = f32[8,8] add(e, t)\n n = f32[8,8] negate(e)\n b = f32[8,8] add(n, e)\n"
      "ROOT r = (f32[8,8], f32[8,8]) tuple(a, b)");
  const auto in_place = [&](const char* name) {
    return is_elementwise_in_place(graph.entry_computation(), testing::op(graph, name),
                                   testing::op(graph, "e"), [](NodeId) { return false; });
  };
  EXPECT_TRUE(in_place("b"));
  EXPECT_FALSE(in_place("t"));
  EXPECT_FALSE(in_place("a"));
}

TEST(FsShrinking, Fs18ShrinkGivesUpTheExponentialThenTheDivide) {
  const Figure3 figure("fs18_shrink");
  EXPECT_EQ(requested_bytes(figure.asked), 512 + 65536 + 512 + 65536);
  EXPECT_EQ(figure.plan({.limit = 20480, .shrink = false}).slots.bytes, 66048);
  const SharedPlan plan = figure.plan({.limit = 20480});
  EXPECT_THAT(figure.names(plan.shrunk), ElementsAre("exponential.1", "divide.1"));
  EXPECT_EQ(plan.slots.bytes, 1024);
  EXPECT_TRUE(plan.fits);
}

TEST(FsShrinking, ReductionsNeverGiveUp) {
  const SharedPlan plan = Figure3("fs18_fig3").plan({.limit = 100});
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.granted.size(), 2u);
}

/// A fusion of element-wise ops of one shape, each of any of those before it.
Graph elementwise_dag(std::mt19937& random) {
  std::string text = "HloModule dag\nENTRY main {\n  v0 = f32[64] parameter(0)\n";
  const int ops = 30;
  const auto any = [&](int below) { return random() % static_cast<unsigned>(below); };
  for (int i = 1; i <= ops; ++i)
    text += fmt::format("  {}v{} = f32[64] {}(v{}, v{})\n", i == ops ? "ROOT " : "", i,
                        std::array{"add", "multiply", "maximum"}[any(3)], any(i), i - 1);
  return parse_hlo(text + "}\n", "dag.hlo");
}

TEST(FsShrinking, WhatIsSurelyTakenIsNeverMoreThanWhatIs) {
  std::mt19937 random(1);
  int equal = 0;
  for (int round = 0; round < 200; ++round) {
    const Graph graph = elementwise_dag(random);
    const Computation& computation = graph.entry_computation();
    Fusion fusion;
    std::vector<Request> requests;
    for (const Node& node : computation.nodes) {
      if (node.op == Op::kParameter) continue;
      fusion.ops.push_back(node.id);
      if (random() % 2 == 0)
        requests.push_back({node.id, RequestClass::kInexpensiveShared, 256 << random() % 3});
    }
    fusion.roots = {computation.root};
    const InPlace in_place = [&](NodeId op, NodeId read, const IsShared& shared) {
      return is_elementwise_in_place(computation, op, read, shared);
    };
    LeastBytes least(computation, fusion, requests);
    while (!requests.empty()) {
      const std::int64_t taken = share(computation, fusion, requests, in_place, true).bytes;
      EXPECT_LE(least.bytes(), taken) << round;
      equal += least.bytes() == taken;
      const std::size_t back = random() % requests.size();
      least.take_back(requests[back]);
      requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(back));
    }
    EXPECT_EQ(least.bytes(), 0);
  }
  EXPECT_GT(equal, 0) << "a bound that is never met says nothing";
}

}  // namespace TEST_FILE
}  // namespace stitchwork::fusionstitching
