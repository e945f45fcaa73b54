// Planner auto computes again what would cost more to store and read.
#include "analysis/planners/auto/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include "analysis/planners/planner.h"
#include "analysis/stitching/nodes.h"
#include "analysis/stitching/scope.h"
#include "core/base/sorted.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using automatic::Recomputation;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::graph_of;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::op;

/// A step of training in small: the product's activation is read by the next product, its inside by the
/// gradient, which the second product lies before.
Graph training_step() {
  return graph_of(R"(
    x = f32[4096,1024] parameter(0)
    w = f32[1024,1024] parameter(1)
    v = f32[1024,1024] parameter(2)
    d = f32[4096,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    square = f32[4096,1024] multiply(d, d)
    cube = f32[4096,1024] multiply(square, d)
    inside = f32[4096,1024] add(d, cube)
    t = f32[4096,1024] tanh(inside)
    activation = f32[4096,1024] multiply(t, d)
    e = f32[4096,1024] dot(activation, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    g1 = f32[4096,1024] multiply(e, t)
    g2 = f32[4096,1024] multiply(e, square)
    g3 = f32[4096,1024] multiply(g2, inside)
    ROOT g = f32[4096,1024] add(g1, g3))");
}

std::vector<std::string> names(const Graph& graph, const std::vector<NodeId>& ops) {
  std::vector<std::string> result;
  for (const NodeId id : ops) result.push_back(graph.entry_computation().node(id).name);
  return result;
}

TEST(Recompute, TheGradientComputesTheActivationAgainFromTheProduct) {
  const Graph graph = training_step();
  for (const char* on : {"v100", "a100", "h200"}) {
    const FusionPlan read = make_plan(graph, device(on), "auto", {.knobs = {{"recompute", "off"}}});
    const FusionPlan again = make_plan(graph, device(on), "auto");
    EXPECT_THAT(testing::outputs(graph, read), ElementsAre("square+inside+t+activation", "g"));
    EXPECT_THAT(testing::outputs(graph, again), ElementsAre("activation", "g"));
    // Seven arrays less of twelve: three are not stored, and one is read for three.
    EXPECT_LT(again.predicted_us, read.predicted_us);
    for (const char* name : {"square", "inside", "t"})
      for (const KernelPlan& kernel : again.kernels)
        EXPECT_EQ(kernel.schemes.at(op(graph, name)), Scheme::kRecomputed) << name;
    EXPECT_EQ(make_plan(graph, device(on), "astitch").kernels.size(), 2u);
  }
}

TEST(Recompute, TellsWhatItTakesAndWhatThatIsReadFor) {
  // The first kernel keeps the sum of rows, which others read: `centred` is computed again from it.
  const Graph graph = graph_of(R"(
    x = f32[8192,1024] parameter(0)
    w = f32[1024,1024] parameter(1)
    zero = f32[] constant(0)
    r = f32[8192] reduce(x, zero), dimensions={1}, to_apply=sum
    rb = f32[8192,1024] broadcast(r), dimensions={0}
    centred = f32[8192,1024] subtract(x, rb)
    a = f32[8192,1024] tanh(centred)
    d = f32[8192,1024] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    s = f32[8192,1024] multiply(d, centred)
    n = f32[8192,1024] negate(x)
    ROOT t = f32[8192,1024] add(s, n))");
  const FusionPlan plan = make_plan(graph, device("a100"), "auto", {{}, {}, true});
  EXPECT_THAT(testing::outputs(graph, plan), ElementsAre("r+a", "t"));
  std::vector<std::string> taken, read;
  for (const Decision& decision : plan.decisions) {
    if (decision.verdict.rule != "auto.recompute") continue;
    (decision.verdict.ok ? taken : read).push_back(decision.subject + " " + decision.object);
    EXPECT_THAT(decision.verdict.why, ::testing::HasSubstr("us in 2 launches"));
  }
  EXPECT_THAT(taken, ElementsAre("centred "));
  EXPECT_THAT(read, ElementsAre("r centred"));
}

TEST(Recompute, IsJudgedByTheFormsThatKernelsHave) {
  // The unrolled network's gradients read what the forward pass stores; in AStitch's forms alone they would
  // take less by computing it again, in their own they take more.
  for (const char* model : {"dyn_rnn", "rnn", "bi_rnn", "dien", "bert_train_tiny"})
    for (const char* on : {"v100", "h200"}) {
      const Graph graph = testing::dataset(model);
      const double off = make_plan(graph, device(on), "auto", {.knobs = {{"recompute", "off"}}}).predicted_us;
      EXPECT_LE(make_plan(graph, device(on), "auto").predicted_us, off * (1 + 1e-9)) << model << " " << on;
    }
}

struct Parts {
  Graph graph;
  astitch::Nodes nodes;
  std::vector<Candidate> kernels;
};

/// Two kernels: ops of these names, and what comes before.
std::unique_ptr<Parts> two_kernels(Graph graph, const std::set<std::string>& in_second) {
  auto parts = std::make_unique<Parts>();
  parts->graph = std::move(graph);
  parts->nodes = astitch::node_facts(parts->graph);
  std::vector<NodeId> first, second;
  for (NodeId id = 0; id < static_cast<NodeId>(parts->nodes.facts.size()); ++id)
    if (parts->nodes[id].member) (in_second.contains(parts->nodes.name(id)) ? second : first).push_back(id);
  parts->kernels = {astitch::stitch_op(parts->nodes, first), astitch::stitch_op(parts->nodes, second)};
  return parts;
}

std::vector<std::string> again_of(const Parts& parts, const Constraints& constraints = {}) {
  std::vector<std::string> result;
  for (const Recomputation& one : automatic::recomputations(parts.nodes, parts.kernels, constraints))
    for (std::size_t i = 0; i < one.kernels.size(); ++i)
      for (const NodeId id : one.after[i].members)
        if (!contains_sorted(parts.kernels[static_cast<std::size_t>(one.kernels[i])].members, id))
          result.push_back(parts.graph.entry_computation().node(id).name);
  return result;
}

/// Element-wise ops of f32 and pred over parameters, `kForward` of them in the first kernel; the second reads
/// some of these, and one parameter.
constexpr int kForward = 9;
Graph random_forward(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::string> floats = {"p0", "p1", "p2"}, preds;
  const auto pick = [&](const std::vector<std::string>& of) { return of[random() % of.size()]; };
  std::string text = "p0 = f32[512] parameter(0)\n p1 = f32[512] parameter(1)\n p2 = f32[512] parameter(2)\n";
  std::vector<std::string> ops;
  for (int i = 0; i < kForward; ++i) {
    const std::string name = "v" + std::to_string(i);
    const std::string a = pick(floats), b = pick(floats);
    switch (random() % 4) {
      case 0:
        text += name + " = pred[512] compare(" + a + ", " + b + "), direction=LT\n";
        preds.push_back(name);
        break;
      case 1:
        if (!preds.empty()) {
          text += name + " = f32[512] select(" + pick(preds) + ", " + a + ", " + b + ")\n";
          floats.push_back(name);
          break;
        }
        [[fallthrough]];
      default:
        text += name + " = f32[512] " + (random() % 2 == 0 ? "add" : "multiply") + "(" + a + ", " + b + ")\n";
        floats.push_back(name);
    }
    ops.push_back(name);
  }
  // All of them lead to results, so that the first kernel computes them whatever the second does.
  std::string results, types;
  const auto result = [&](const std::string& name, const std::string& type) {
    results += (results.empty() ? "" : ", ") + name;
    types += (types.empty() ? "" : ", ") + type;
  };
  std::string last = pick({"p0", "p1", "p2"});
  for (int i = 0; i < 3; ++i) {
    const std::string read = pick(ops), name = "w" + std::to_string(i);
    const bool pred = std::ranges::count(preds, read) > 0;
    text += pred ? name + " = f32[512] select(" + read + ", " + last + ", p0)\n"
                 : name + " = f32[512] subtract(" + last + ", " + read + ")\n";
    last = name;
  }
  result(last, "f32[512]");
  for (const std::string& name : ops)
    if (random() % 3 == 0) result(name, std::ranges::count(preds, name) > 0 ? "pred[512]" : "f32[512]");
  return graph_of(text + "ROOT t = (" + types + ") tuple(" + results + ")");
}

/// Bytes that the second kernel reads for what it computes again, and that are stored for it alone.
std::int64_t bytes(const Parts& parts, const std::set<NodeId>& again) {
  const astitch::Nodes& nodes = parts.nodes;
  const Candidate &first = parts.kernels[0], &second = parts.kernels[1];
  std::set<NodeId> read, read_anyhow;
  for (const NodeId member : second.members)
    for (const NodeId operand : nodes.node(member).operands)
      (contains_sorted(first.members, operand) ? read : read_anyhow).insert(operand);
  for (const NodeId member : again) {
    const auto& operands = nodes.node(member).operands;
    read.insert(operands.begin(), operands.end());
  }
  std::int64_t sum = 0;
  for (const NodeId value : read) {
    if (again.contains(value) || contains_sorted(second.members, value)) continue;
    if (!contains_sorted(first.members, value))
      sum += read_anyhow.contains(value) ? 0 : nodes.bytes(value);
    else
      sum += nodes.bytes(value) * (nodes[value].buffer_needed ? 1 : 2);
  }
  return sum;
}

class RandomRecomputations : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomRecomputations, MoveTheFewestBytesOfAllChoices) {
  const auto parts = two_kernels(random_forward(GetParam()), {"w0", "w1", "w2"});
  const std::vector<NodeId>& first = parts->kernels[0].members;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (unsigned choice = 0; choice < 1u << first.size(); ++choice) {
    std::set<NodeId> again;
    for (std::size_t i = 0; i < first.size(); ++i)
      if ((choice >> i & 1) != 0) again.insert(first[i]);
    least = std::min(least, bytes(*parts, again));
  }
  std::set<NodeId> chosen;
  for (const std::string& name : again_of(*parts)) chosen.insert(op(parts->graph, name));
  EXPECT_EQ(bytes(*parts, chosen), least);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRecomputations, ::testing::Range<std::uint32_t>(0, 60));

/// The gradient reads t, which comes from the parameter by two ops.
const char* const kShort = R"(
    x = f32[1024,512] parameter(0)
    s = f32[1024,512] sine(x)
    t = f32[1024,512] tanh(s)
    a = f32[1024,512] negate(t)
    g = f32[1024,512] multiply(t, x)
    ROOT r = (f32[1024,512], f32[1024,512]) tuple(a, g))";

TEST(Recompute, OverridesKeepOpsWhereTheyAre) {
  const auto parts = two_kernels(graph_of(kShort), {"g"});
  EXPECT_THAT(again_of(*parts), ElementsAre("s", "t"));
  Constraints scheme, apart;
  scheme.schemes[op(parts->graph, "t")] = Scheme::kIndependent;
  EXPECT_THAT(again_of(*parts, scheme), IsEmpty());
  apart.apart = {{op(parts->graph, "t"), op(parts->graph, "g")}};
  EXPECT_THAT(again_of(*parts, apart), IsEmpty());
}

TEST(Recompute, WhatManyElementsReadIsReadFromMemory) {
  // A row's scale is computed once a row; whoever computed it again would do so for every element.
  const auto parts = two_kernels(graph_of(R"(
    x = f32[64,1024] parameter(0)
    v = f32[64] parameter(1)
    s = f32[64] rsqrt(v)
    sb = f32[64,1024] broadcast(s), dimensions={0}
    a = f32[64,1024] multiply(x, sb)
    sc = f32[64,1024] broadcast(s), dimensions={0}
    c = f32[64,1024] negate(a)
    g = f32[64,1024] multiply(c, sc)
    ROOT r = (f32[64,1024], f32[64,1024]) tuple(a, g))"),
                                 {"c", "g"});
  EXPECT_THAT(again_of(*parts), Not(Contains("s")));
}

TEST(Recompute, AKernelThatNothingReadsAnyMoreGoes) {
  const auto parts = two_kernels(graph_of(R"(
    x = f32[1024,512] parameter(0)
    s = f32[1024,512] sine(x)
    t = f32[1024,512] tanh(s)
    ROOT g = f32[1024,512] multiply(t, x))"),
                                 {"g"});
  const auto all = automatic::recomputations(parts->nodes, parts->kernels, {});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0].kernels, ElementsAre(0, 1));
  EXPECT_THAT(all[0].after[0].outputs, IsEmpty());
  EXPECT_THAT(names(parts->graph, all[0].after[1].members), ElementsAre("s", "t", "g"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
