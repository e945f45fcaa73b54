// Sums in the library call of a product or convolution: what a call may hold, and where planner auto leaves
// them to it.
#include "analysis/plan/epilogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain/explain.h"
#include "analysis/judge/library_cost.h"
#include "analysis/plan/plan_memory.h"
#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::Contains;
using testing::dataset;
using ::testing::ElementsAre;
using testing::graph_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The calls of product `d`, by the names of their ops.
std::vector<std::vector<std::string>> calls_of(const std::string& text) {
  const Graph graph = graph_of(text);
  const Computation& computation = graph.entry_computation();
  std::vector<std::vector<std::string>> result;
  for (const auto& call : calls_with_epilogue(computation, computation.users(), computation.find("d"))) {
    EXPECT_TRUE(epilogue_of(computation, call));
    for (std::vector<std::string>& names = result.emplace_back(); const NodeId op : call)
      names.push_back(computation.node(op).name);
  }
  return result;
}

const std::string kProduct = R"(
    x = f32[64,32] parameter(0)
    w = f32[32,48] parameter(1)
    b = f32[48] parameter(2)
    c = f32[64,48] parameter(3)
    d = f32[64,48] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)";

TEST(Epilogue, ACallAddsABiasToItsColumnsAndAnArray) {
  EXPECT_THAT(calls_of(kProduct + R"(
    v = f32[64,48] broadcast(b), dimensions={1}
    s = f32[64,48] add(v, d)
    t = f32[64,48] add(s, c)
    ROOT r = f32[64,48] tanh(t))"),
              ElementsAre(ElementsAre("d", "v", "s"), ElementsAre("d", "v", "s", "t")));
}

TEST(Epilogue, OtherNamesOfTheProductLieBetween) {
  EXPECT_THAT(calls_of(kProduct + R"(
    e = f32[8,8,6,8] reshape(d)
    bb = f32[6,8] reshape(b)
    v = f32[8,8,6,8] broadcast(bb), dimensions={2,3}
    s = f32[8,8,6,8] add(e, v)
    ROOT r = f32[8,8,6,8] tanh(s))"),
              ElementsAre(ElementsAre("d", "e", "v", "s")));
}

TEST(Epilogue, ABiasMayBeSpreadInStepsOfWhichOnlyTheLastRepeatsIt) {
  EXPECT_THAT(calls_of(kProduct + R"(
    o = f32[1,48] broadcast(b), dimensions={1}
    p = f32[48] reshape(o)
    v = f32[64,48] broadcast(p), dimensions={1}
    s = f32[64,48] add(d, v)
    ROOT r = f32[64,48] tanh(s))"),
              ElementsAre(ElementsAre("d", "o", "p", "v", "s")));
}

TEST(Epilogue, DimensionsOfOneElementAreNoRowsOfTheBias) {
  EXPECT_THAT(calls_of(R"(
    x = f32[1,64,32] parameter(0)
    w = f32[32,48] parameter(1)
    b = f32[1,1,48] parameter(2)
    d = f32[1,64,48] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
    p = f32[1,48] reshape(b)
    v = f32[1,64,48] broadcast(p), dimensions={0,2}
    s = f32[1,64,48] add(d, v)
    ROOT r = f32[1,64,48] tanh(s))"),
              ElementsAre(ElementsAre("d", "v", "s")));
  EXPECT_THAT(calls_of(R"(
    x = f32[1,64,32] parameter(0)
    w = f32[32,64] parameter(1)
    b = f32[1,64] parameter(2)
    d = f32[1,64,64] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
    v = f32[1,64,64] broadcast(b), dimensions={0,1}
    ROOT s = f32[1,64,64] add(d, v))"),
              IsEmpty());
}

TEST(Epilogue, ACallStoresTheTransposeOfItsProductAndAddsToThat) {
  const std::string heads = R"(
    x = f32[8,64,32] parameter(0)
    w = f32[8,32,16] parameter(1)
    d = f32[8,64,16] dot(x, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
)";
  EXPECT_THAT(calls_of(heads + R"(
    c = f32[64,8,16] parameter(2)
    t = f32[64,8,16] transpose(d), dimensions={1,0,2}
    s = f32[64,8,16] add(t, c)
    ROOT r = f32[64,8,16] tanh(s))"),
              ElementsAre(ElementsAre("d", "t"), ElementsAre("d", "t", "s")));
  // Nothing is contiguous of what one product computes.
  EXPECT_THAT(calls_of(heads + "ROOT t = f32[64,16,8] transpose(d), dimensions={1,2,0}"), IsEmpty());
  // One batch stride does not reach all heads of all sequences: such a call has its matrices listed, and adds
  // nothing.
  EXPECT_THAT(calls_of(R"(
    x = f32[2,8,64,32] parameter(0)
    w = f32[2,8,32,16] parameter(1)
    c = f32[2,64,8,16] parameter(2)
    d = f32[2,8,64,16] dot(x, w), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}
    t = f32[2,64,8,16] transpose(d), dimensions={0,2,1,3}
    ROOT s = f32[2,64,8,16] add(t, c))"),
              ElementsAre(ElementsAre("d", "t")));
}

TEST(Epilogue, WhatALibraryDoesNotAddIsNoPartOfACall) {
  const auto refused = [](const std::string& rest) { EXPECT_THAT(calls_of(kProduct + rest), IsEmpty()); };
  refused(R"(  // a bias along rows
    a = f32[64] parameter(4)
    v = f32[64,48] broadcast(a), dimensions={0}
    ROOT s = f32[64,48] add(d, v))");
  refused(R"(  // half as many elements as there are columns
    a = f32[24] parameter(4)
    v = f32[64,2,24] broadcast(a), dimensions={2}
    e = f32[64,2,24] reshape(d)
    ROOT s = f32[64,2,24] add(e, v))");
  refused("ROOT s = f32[64,48] add(d, d)");
  refused("ROOT s = f32[64,48] subtract(d, c)");
  refused(R"(  // something else reads the product
    s = f32[64,48] add(d, c)
    t = f32[64,48] tanh(d)
    ROOT r = (f32[64,48], f32[64,48]) tuple(s, t))");
  refused(R"(  // a number in the code
    z = f32[] constant(2)
    v = f32[64,48] broadcast(z), dimensions={}
    ROOT s = f32[64,48] add(d, v))");
  refused(R"(  // a view that lies nowhere
    a = f32[64,96] parameter(4)
    v = f32[64,48] slice(a), slice={[0:64], [0:96:2]}
    ROOT s = f32[64,48] add(d, v))");
}

TEST(Epilogue, TheLargerOfASumAndZeroIsOfTheCallAndTheLastOfIt) {
  const std::string zero = "zero = f32[] constant(0)\n z = f32[64,48] broadcast(zero), dimensions={}\n";
  EXPECT_THAT(calls_of(kProduct + zero + "s = f32[64,48] add(d, c)\n ROOT m = f32[64,48] maximum(s, z)"),
              ElementsAre(ElementsAre("d", "s"), ElementsAre("d", "s", "m")));
  EXPECT_THAT(calls_of(kProduct + zero + "m = f32[64,48] maximum(z, d)\n ROOT s = f32[64,48] add(m, c)"),
              ElementsAre(ElementsAre("d", "m")));
  EXPECT_THAT(calls_of(kProduct + "ROOT m = f32[64,48] maximum(d, c)"), IsEmpty());
}

TEST(Epilogue, TwoArraysAreOneTooMany) {
  EXPECT_THAT(calls_of(kProduct + R"(
    a = f32[64,48] parameter(4)
    s = f32[64,48] add(d, c)
    ROOT t = f32[64,48] add(s, a))"),
              ElementsAre(ElementsAre("d", "s")));
}

TEST(Epilogue, ItsTypesAreThoseThatLibrariesAddIn) {
  for (const auto& [type, calls] : {std::pair{"f16", 1U}, {"bf16", 1U}, {"f64", 0U}, {"s32", 0U}}) {
    std::string text = kProduct + "ROOT s = f32[64,48] add(d, c)";
    for (std::size_t at = 0; (at = text.find("f32", at)) != std::string::npos;) text.replace(at, 3, type);
    EXPECT_EQ(calls_of(text).size(), calls) << type;
  }
}

/// x convolved with w, features in front (`bf01`) or last.
std::string convolved(const std::string& attributes, bool last = false) {
  return last ? R"(
    x = f32[2,8,8,6] parameter(0)
    w = f32[3,3,6,4] parameter(1)
    b = f32[4] parameter(2)
    c = f32[2,8,8,4] parameter(3)
    zero = f32[] constant(0)
    z = f32[2,8,8,4] broadcast(zero), dimensions={}
    d = f32[2,8,8,4] convolution(x, w), dim_labels=b01f_01io->b01f, )" +
                    attributes + "\n"
              : R"(
    x = f32[2,6,8,8] parameter(0)
    w = f32[4,6,3,3] parameter(1)
    b = f32[4] parameter(2)
    c = f32[2,4,8,8] parameter(3)
    zero = f32[] constant(0)
    z = f32[2,4,8,8] broadcast(zero), dimensions={}
    d = f32[2,4,8,8] convolution(x, w), dim_labels=bf01_oi01->bf01, )" +
                    attributes + "\n";
}
constexpr const char* kSame = "window={size=3x3 pad=1_1x1_1}";

TEST(ConvolutionEpilogue, ACallAddsABiasToItsFeaturesAndAnArrayAndTakesTheLargerOfThatAndZero) {
  const auto all = ElementsAre(ElementsAre("d", "v", "s"), ElementsAre("d", "v", "s", "t"),
                               ElementsAre("d", "v", "s", "t", "m"));
  EXPECT_THAT(calls_of(convolved(kSame) + R"(
    v = f32[2,4,8,8] broadcast(b), dimensions={1}
    s = f32[2,4,8,8] add(d, v)
    t = f32[2,4,8,8] add(c, s)
    m = f32[2,4,8,8] maximum(t, z)
    ROOT r = f32[2,4,8,8] tanh(m))"),
              all);
  EXPECT_THAT(calls_of(convolved(kSame, true) + R"(
    v = f32[2,8,8,4] broadcast(b), dimensions={3}
    s = f32[2,8,8,4] add(d, v)
    t = f32[2,8,8,4] add(c, s)
    m = f32[2,8,8,4] maximum(z, t)
    ROOT r = f32[2,8,8,4] tanh(m))"),
              all);
}

TEST(ConvolutionEpilogue, TheMaximumIsTheLastThingOfACall) {
  EXPECT_THAT(calls_of(convolved(kSame) + R"(
    m = f32[2,4,8,8] maximum(d, z)
    ROOT s = f32[2,4,8,8] add(m, c))"),
              ElementsAre(ElementsAre("d", "m")));
}

TEST(ConvolutionEpilogue, ItReadsNoZero) {
  const Graph graph = graph_of(convolved(kSame) + R"(
    v = f32[2,4,8,8] broadcast(b), dimensions={1}
    s = f32[2,4,8,8] add(d, v)
    ROOT m = f32[2,4,8,8] maximum(s, z))");
  const FusionPlan plan = make_plan(graph, device("v100"), "auto");
  EXPECT_EQ(plan.counts.memory_kernels, 0);
  ASSERT_EQ(plan.steps.size(), 1U);
  EXPECT_THAT(verify(graph, device("v100"), plan), IsEmpty());
  const Computation& computation = graph.entry_computation();
  std::vector<NodeId> sources{computation.find("x"), computation.find("w"), computation.find("b")};
  EXPECT_EQ(traffic(graph, plan, plan.steps[0]).reads, sources);
  const auto with = matrix_product(computation, plan.steps[0].nodes),
             without = matrix_product(computation, {plan.steps[0].nodes.data(), 1});
  EXPECT_EQ(with->bytes - without->bytes, 4 * 4);
}

TEST(ConvolutionEpilogue, WhatCudnnDoesNotDoIsNoPartOfACall) {
  const auto refused = [](const std::string& text) { EXPECT_THAT(calls_of(text), IsEmpty()); };
  refused(convolved(kSame) + R"(  // a bias along another dimension
    a = f32[8] parameter(4)
    v = f32[2,4,8,8] broadcast(a), dimensions={2}
    ROOT s = f32[2,4,8,8] add(d, v))");
  refused(convolved(kSame, true) + R"(  // of as many elements as there are features
    a = f32[2,2] parameter(4)
    v = f32[2,8,2,4,4] broadcast(a), dimensions={0,2}
    e = f32[2,8,2,4,4] reshape(d)
    ROOT s = f32[2,8,2,4,4] add(e, v))");
  refused(convolved(kSame) + R"(  // clipped at another number
    one = f32[] constant(1)
    o = f32[2,4,8,8] broadcast(one), dimensions={}
    ROOT m = f32[2,4,8,8] maximum(d, o))");
  refused(convolved(kSame) + "ROOT t = f32[2,4,8,8] transpose(d), dimensions={0,1,3,2}");
  refused(convolved("window={size=3x3 pad=0_2x1_1}") + "ROOT s = f32[2,4,8,8] add(d, c)");
  // A depthwise convolution.
  refused(R"(
    x = f32[2,4,8,8] parameter(0)
    w = f32[4,1,3,3] parameter(1)
    c = f32[2,4,8,8] parameter(2)
    d = f32[2,4,8,8] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, feature_group_count=4
    ROOT s = f32[2,4,8,8] add(d, c))");
  // What is added is what is convolved.
  refused(R"(
    x = f32[2,4,8,8] parameter(0)
    w = f32[4,4,3,3] parameter(1)
    d = f32[2,4,8,8] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
    ROOT s = f32[2,4,8,8] add(d, x))");
}

TEST(ConvolutionEpilogue, ExplainSaysWhatTheCallTook) {
  const Graph graph = dataset("efficientvit_tiny");
  for (const char* planner : {"auto", "xla-today"}) {
    const FusionPlan plan = make_plan(graph, device("v100"), planner, {.record_decisions = true});
    EXPECT_THAT(verify(graph, device("v100"), plan), IsEmpty());
    int with = 0;
    std::string said;
    for (const PlanStep& step : plan.steps) {
      if (step.kind != StepKind::kLibrary || step.nodes.size() == 1) continue;
      const Computation& computation = graph.entry_computation();
      if (computation.node(step.nodes.front()).op != Op::kConvolution) continue;
      ++with;
      const Explanation last = explain(graph, plan, computation.node(step.nodes.back()).name);
      EXPECT_EQ(last.step, "library call " + step.id);
      EXPECT_EQ(last.decisions.back().verdict.rule, std::string(planner) + ".epilogue");
      const auto epilogue = epilogue_of(computation, step.nodes);
      EXPECT_THAT(last.decisions.back().verdict.why, HasSubstr(to_text(computation, *epilogue)));
      said += to_text(computation, *epilogue) + "\n";
    }
    EXPECT_GT(with, 10) << planner;
    for (const char* part : {"bias variables.params", ", ReLU", ", array add."})
      EXPECT_THAT(said, HasSubstr(part)) << planner;
  }
}

const PlanStep& call_of(const FusionPlan& plan, const std::string& id) {
  for (const PlanStep& step : plan.steps)
    if (step.id == id) return step;
  throw Error("no step " + id);
}

TEST(AutoEpilogue, PatternsThatTogetherAreACycleNeedNoKernelBehindTheProducts) {
  const Graph graph = dataset("fs19_cycle");
  for (const char* id : {"v100", "a100", "h100"}) {
    const FusionPlan plan = make_plan(graph, device(id), "auto");
    EXPECT_EQ(plan.counts.memory_kernels, 2);
    EXPECT_EQ(plan.counts.library_calls, 2);
    EXPECT_EQ(call_of(plan, "lib:p").nodes.size(), 2U);
    EXPECT_EQ(call_of(plan, "lib:q").nodes.size(), 2U);
    const FusionPlan off = make_plan(graph, device(id), "auto", {{{"epilogues", "off"}}});
    EXPECT_EQ(call_of(off, "lib:p").nodes.size(), 1U);
    EXPECT_LT(plan.predicted_us, off.predicted_us);
  }
}

TEST(AutoEpilogue, TheCallReadsWhatItAdds) {
  const Graph graph = dataset("fs19_cycle");
  const Computation& computation = graph.entry_computation();
  const FusionPlan plan = make_plan(graph, device("v100"), "auto");
  const PlanStep& call = call_of(plan, "lib:p");
  const auto with = matrix_product(computation, call.nodes),
             without = matrix_product(computation, {call.nodes.data(), 1});
  EXPECT_EQ(with->bytes - without->bytes, 4096 * 1024 * 4);
  const Traffic moved = traffic(graph, plan, call);
  EXPECT_THAT(moved.reads, Contains(computation.find("b")));
  EXPECT_THAT(moved.writes, ElementsAre(computation.find("d")));
}

TEST(AutoEpilogue, VerifyRefusesACallThatNoLibraryMakes) {
  const Graph graph = dataset("fs19_cycle");
  const Computation& computation = graph.entry_computation();
  FusionPlan plan = make_plan(graph, device("v100"), "auto");
  for (PlanStep& step : plan.steps)
    if (step.id == "lib:p") step.nodes.back() = computation.find("c");
  const std::vector<Verdict> found = verify(graph, device("v100"), plan);
  ASSERT_FALSE(found.empty());
  EXPECT_THAT(found.front().why, HasSubstr("no library call computes p, c in one"));
}

TEST(AutoEpilogue, ExplainKnowsTheCallAndNoKernelOfTheSum) {
  const Graph graph = dataset("fs19_cycle");
  const FusionPlan plan = make_plan(graph, device("v100"), "auto", {.record_decisions = true});
  const Explanation sum = explain(graph, plan, "d"), product = explain(graph, plan, "p");
  EXPECT_EQ(sum.step, "library call lib:p");
  EXPECT_EQ(sum.library_time, product.library_time);
  EXPECT_THAT(sum.library_time, HasSubstr("4096x1024x1024"));
  for (const Decision& decision : sum.decisions)
    EXPECT_THAT(decision.step, ::testing::AnyOf("scope", "epilogue"));
  EXPECT_EQ(sum.decisions.back().verdict.rule, "auto.epilogue");
}

TEST(AutoEpilogue, AnOverrideKeepsTheSumInItsKernel) {
  const Graph graph = dataset("fs19_cycle");
  PlanOptions options;
  options.edits = {{EditKind::kForbidMerge, {"c", "d"}, "", 0}};
  const FusionPlan plan = make_plan(graph, device("v100"), "auto", options);
  EXPECT_EQ(call_of(plan, "lib:p").nodes.size(), 1U);
  EXPECT_EQ(call_of(plan, "lib:q").nodes.size(), 1U);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
