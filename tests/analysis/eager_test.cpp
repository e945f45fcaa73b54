// What an eager framework launches: views, products and library functions (docs/planners/eager.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/planners/eager/functions.h"
#include "analysis/planners/eager/views.h"
#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "core/passes/passes.h"
#include "tests/support/fuzz.h"
#include "tests/support/graphs.h"
#include "tests/support/scoped_graph.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using testing::graph_of;
using ::testing::IsEmpty;
using testing::op;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

FusionPlan plan(const Graph& graph) {
  return make_plan(graph, device("v100"), "eager", {.record_decisions = true});
}

/// The outputs of each kernel.
std::vector<std::string> kernels(const Graph& graph, const FusionPlan& plan) {
  return testing::outputs(planned_graph(graph, plan), plan);
}
std::vector<std::string> kernels(const std::string& body) {
  const Graph graph = graph_of(body);
  return kernels(graph, plan(graph));
}

std::vector<std::string> rules(const FusionPlan& plan, const std::string& subject) {
  std::vector<std::string> found;
  for (const Decision& d : plan.decisions)
    if (d.subject == subject) found.push_back(d.verdict.rule);
  return found;
}

std::string scoped(const std::string& scope) {
  return R"(, metadata={op_name="jit(f)/jit(main)/)" + scope + "\"}";
}

// ---- products

TEST(Eager, AProductGivesItsResultTransposedAndTakesOperandsSo) {
  const Graph graph = graph_of(
      "p = f32[16,40] parameter(0)\n q = f32[16,64] parameter(1)\n"
      "d = f32[40,64] dot(p, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
      "w = f32[64,40] transpose(d), dimensions={1,0}\n x = f32[40,16] transpose(p), dimensions={1,0}\n"
      "r = f32[16,64] parameter(2)\n y = f32[40,64] dot(x, r), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0}\n"
      "ROOT t = (f32[64,40], f32[40,64]) tuple(w, y)");
  const FusionPlan made = plan(graph);
  EXPECT_THAT(made.kernels, IsEmpty());
  EXPECT_EQ(made.counts.library_calls, 2);
}

TEST(Eager, AProductOfHeadsTakesNoTransposeThatMovesItsBatch) {
  // matmul() of such views copies them: their batches have no common stride.
  EXPECT_THAT(kernels("p = f32[4,16,2,8] parameter(0)\n q = f32[4,2,8,16] parameter(1)\n"
                      "t = f32[4,2,16,8] transpose(p), dimensions={0,2,1,3}\n"
                      "ROOT d = f32[4,2,16,16] dot(t, q), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, "
                      "lhs_contracting_dims={3}, rhs_contracting_dims={2}"),
              ElementsAre("t"));
}

// ---- views

TEST(Eager, ViewsAreReadThroughByEachReader) {
  const Graph graph = graph_of(
      "p = f32[8,16,4] parameter(0)\n b = f32[4] parameter(1)\n"
      "s = f32[1,16,4] slice(p), slice={[1:2], [0:16], [0:4]}\n r = f32[16,4] reshape(s)\n"
      "t = f32[4,16] transpose(r), dimensions={1,0}\n c = f32[4,16] broadcast(b), dimensions={0}\n"
      "a = f32[4,16] add(t, c)\n m = f32[4,16] multiply(t, c)\n"
      "ROOT z = (f32[4,16], f32[4,16]) tuple(a, m)");
  const FusionPlan made = plan(graph);
  EXPECT_THAT(kernels(graph, made), ElementsAre("a", "m"));
  EXPECT_EQ(made.kernels[0].ops, made.kernels[0].groups[0].ops);
  for (const KernelPlan& kernel : made.kernels)
    for (const char* view : {"s", "t", "c"}) EXPECT_TRUE(kernel.schemes.contains(op(graph, view))) << view;
  EXPECT_THAT(rules(made, "t"), ElementsAre("eager.view"));
  EXPECT_THAT(rules(made, "a"), ElementsAre("eager.one-op-a-kernel"));
}

TEST(Eager, AViewThatACallReadsIsOneKernel) {
  const Graph graph = graph_of(
      "p = f32[16,8,4] parameter(0)\n q = f32[8,8] parameter(1)\n"
      "s = f32[16,8,1] slice(p), slice={[0:16], [0:8], [2:3]}\n r = f32[16,8] reshape(s)\n"
      "d = f32[16,8] dot(r, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "e = f32[16,8] dot(r, q), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
      "n = f32[16,8] negate(r)\n ROOT z = (f32[16,8], f32[16,8], f32[16,8]) tuple(d, e, n)");
  const FusionPlan made = plan(graph);
  EXPECT_THAT(kernels(graph, made), UnorderedElementsAre("s", "n"));
  EXPECT_THAT(rules(made, "s"), ElementsAre("eager.contiguous"));
}

TEST(Eager, ResultsAreWrittenOut) {
  EXPECT_THAT(kernels("p = f32[8,4] parameter(0)\n ROOT t = f32[4,8] transpose(p), dimensions={1,0}"),
              ElementsAre("t"));
  EXPECT_THAT(kernels("c = f32[] constant(2)\n ROOT b = f32[8] broadcast(c), dimensions={}"),
              ElementsAre("b"));
}

TEST(Eager, FlipsAndConcatenationsAreKernelsThatReadThroughViews) {
  EXPECT_THAT(kernels("p = f32[8,4] parameter(0)\n t = f32[4,8] transpose(p), dimensions={1,0}\n"
                      "r = f32[4,8] reverse(t), dimensions={0}\n"
                      "ROOT c = f32[4,16] concatenate(t, r), dimensions={1}"),
              ElementsAre("r", "c"));
}

TEST(Eager, AShapeThatHasNoStridesIsACopy) {
  // reshape() of a transposed tensor.
  const Graph graph = graph_of(
      "p = f32[8,4] parameter(0)\n t = f32[4,8] transpose(p), dimensions={1,0}\n"
      "r = f32[32] reshape(t)\n ROOT n = f32[32] negate(r)");
  const FusionPlan made = plan(graph);
  EXPECT_THAT(kernels(graph, made), ElementsAre("t", "n"));
  EXPECT_THAT(made.kernels[1].ops, ElementsAre(op(graph, "n")));
}

TEST(Eager, StridesAreThoseOfTensorView) {
  using eager::reshaped_strides;
  EXPECT_THAT(reshaped_strides({8, 4}, {4, 1}, {2, 4, 4}), Optional(ElementsAre(16, 4, 1)));
  EXPECT_THAT(reshaped_strides({4, 8}, {1, 4}, {32}), std::nullopt);
  EXPECT_THAT(reshaped_strides({4, 8}, {1, 4}, {2, 2, 8}), Optional(ElementsAre(2, 1, 4)));
  EXPECT_THAT(reshaped_strides({16, 1, 4}, {64, 4, 1}, {16, 4}), Optional(ElementsAre(64, 1)));
  EXPECT_THAT(reshaped_strides({16, 4}, {64, 1}, {64}), std::nullopt);
  EXPECT_THAT(reshaped_strides({3, 4}, {0, 1}, {1, 3, 4}), Optional(ElementsAre(0, 0, 1)));
  EXPECT_THAT(reshaped_strides({3, 4}, {0, 1}, {12}), std::nullopt);
  EXPECT_THAT(reshaped_strides({}, {}, {1, 1}), Optional(ElementsAre(1, 1)));
  EXPECT_THAT(reshaped_strides({0, 4}, {4, 1}, {4, 0}), Optional(ElementsAre(0, 1)));
}

// ---- library functions

constexpr const char* kSigmoid =
    "p = f32[16,8] parameter(0)\n o = f32[] constant(1)\n b = f32[16,8] broadcast(o), dimensions={}\n"
    "n = f32[16,8] negate(p)\n e = f32[16,8] exponential(n)\n a = f32[16,8] add(e, b)\n"
    "s = f32[16,8] divide(b, a)\n";

TEST(Eager, ASigmoidIsOneKernelAndSoIsItsGradient) {
  const Graph graph = graph_of(std::string(kSigmoid) +
                               "g = f32[16,8] parameter(1)\n m = f32[16,8] subtract(b, s)\n"
                               "t = f32[16,8] multiply(s, m)\n u = f32[16,8] multiply(g, t)\n"
                               "ROOT z = (f32[16,8], f32[16,8]) tuple(s, u)");
  const FusionPlan made = plan(graph);
  EXPECT_THAT(kernels(graph, made), ElementsAre("s", "u"));
  for (const char* name : {"n", "e", "a", "s", "m", "t", "u"})
    EXPECT_THAT(rules(made, name), ElementsAre("eager.library-function")) << name;
}

TEST(Eager, ATanhsGradientIsOneKernel) {
  EXPECT_THAT(kernels("p = f32[16,8] parameter(0)\n g = f32[16,8] parameter(1)\n o = f32[] constant(1)\n"
                      "b = f32[16,8] broadcast(o), dimensions={}\n t = f32[16,8] tanh(p)\n"
                      "m = f32[16,8] subtract(b, t)\n u = f32[16,8] multiply(g, m)\n"
                      "v = f32[16,8] multiply(u, t)\n ROOT w = f32[16,8] add(u, v)"),
              ElementsAre("t", "w"));
}

TEST(Eager, WhatIsNearlyASigmoidIsNone) {
  std::string two = kSigmoid;
  two.replace(two.find("constant(1)"), 11, "constant(2)");
  EXPECT_THAT(kernels(two + "ROOT z = (f32[16,8]) tuple(s)"), ElementsAre("n", "e", "a", "s"));
  EXPECT_THAT(kernels(std::string(kSigmoid) + "ROOT z = (f32[16,8], f32[16,8]) tuple(s, e)"),
              ElementsAre("n", "e", "a", "s"));
}

TEST(Eager, OriginsAreFunctionsThatAreJittedAndOnnxOperators) {
  const auto of = [](const std::string& type, const std::string& name) {
    const eager::Origin origin = eager::origin_of({type, name, {}});
    return origin.function + " @ " + origin.place;
  };
  EXPECT_EQ(of("", "jit(f)/jit(main)/jvp(jit(log_softmax))/sub"),
            "log_softmax @ jit(f)/jit(main)/jvp(jit(log_softmax))");
  EXPECT_EQ(of("", "jit(f)/transpose(jvp(M))/jit(_softmax)/mul"),
            "softmax backward @ jit(f)/transpose(jvp(M))/jit(_softmax)");
  EXPECT_EQ(of("", "jit(f)/jit(silu)/jit(sigmoid)/mul"), "silu @ jit(f)/jit(silu)");
  EXPECT_EQ(of("", "jit(softmax)/jit(main)/exp"), " @ ");
  EXPECT_EQ(of("", "jit(f)/softmax/exp"), " @ ");
  EXPECT_EQ(of("", "jit(f)/jit(softmax)"), " @ ");
  EXPECT_EQ(of("Softmax", "layer/Softmax_1"), "Softmax @ layer/Softmax_1");
  EXPECT_EQ(of("MatMul", "layer/MatMul_1"), " @ ");
}

std::string log_softmax(const char* dims, const char* rows, int reduced, int kept) {
  const std::string all = std::string("f32[") + dims + "] ", some = std::string("f32[") + rows + "] ",
                    by = "), dimensions={" + std::to_string(reduced) + "}, to_apply=",
                    over = "), dimensions={" + std::to_string(kept) + "}",
                    at = scoped("jvp(jit(log_softmax))/op"),
                    back = scoped("transpose(jvp(jit(log_softmax)))/op");
  return "p = " + all + "parameter(0)\n g = " + all + "parameter(1)\n i = f32[] constant(-inf)\n" +
         "o = f32[] constant(0)\n h = " + some + "reduce(p, i" + by + "max" + at + "\n hb = " + all +
         "broadcast(h" + over + at + "\n d = " + all + "subtract(p, hb)" + at + "\n e = " + all +
         "exponential(d)" + at + "\n r = " + some + "reduce(e, o" + by + "sum" + at + "\n l = " + some +
         "log(r)" + at + "\n lb = " + all + "broadcast(l" + over + at + "\n y = " + all + "subtract(d, lb)" +
         at + "\n n = " + some + "reduce(g, o" + by + "sum" + back + "\n q = " + some + "divide(n, r)" +
         back + "\n qb = " + all + "broadcast(q" + over + back + "\n m = " + all + "multiply(qb, e)" + back +
         "\n x = " + all + "subtract(g, m)" + back + "\n";
}

TEST(Eager, ASoftmaxIsAKernelForwardAndOneBackward) {
  const Graph graph =
      graph_of(log_softmax("16,1000", "16", 1, 0) + "ROOT z = (f32[16,1000], f32[16,1000]) tuple(y, x)");
  const FusionPlan made = plan(graph);
  EXPECT_THAT(kernels(graph, made), ElementsAre("e+r+y", "x"));
  for (const KernelPlan& kernel : made.kernels) {
    EXPECT_EQ(kernel.launch.grid_barriers, 0);
    EXPECT_EQ(kernel.launch.grid, 16) << "a block a row";
  }
  EXPECT_THAT(rules(made, "l"), ElementsAre("eager.library-function"));
  EXPECT_THAT(rules(made, "lb"), ElementsAre("eager.view"));
}

TEST(Eager, ASoftmaxIsFoundByItsFormAlsoWhereAPartIsReadElsewhere) {
  const auto spelled = [](const std::string& denominator, const std::string& results) {
    return kernels(
        "p = f32[8,100] parameter(0)\n i = f32[] constant(-inf)\n o = f32[] constant(0)\n"
        "h = f32[8] reduce(p, i), dimensions={1}, to_apply=max\n"
        "hb = f32[8,100] broadcast(h), dimensions={0}\n d = f32[8,100] subtract(p, hb)\n"
        "e = f32[8,100] exponential(d)\n r = f32[8] reduce(" +
        denominator +
        ", o), dimensions={1}, to_apply=sum\n rb = f32[8,100] broadcast(r), dimensions={0}\n"
        "y = f32[8,100] divide(e, rb)\n" +
        results);
  };
  EXPECT_THAT(spelled("e", "ROOT n = f32[8,100] negate(y)"), ElementsAre("y", "n"));
  EXPECT_THAT(spelled("e", "n = f32[8,100] negate(e)\n ROOT t = (f32[8,100], f32[8,100]) tuple(y, n)"),
              ElementsAre("e+y", "n"));
  EXPECT_THAT(spelled("d", "ROOT n = f32[8,100] negate(y)"), ElementsAre("h", "d", "e", "r", "y", "n"))
      << "of other elements";
}

TEST(Eager, AFunctionThatAWayLeadsOutOfAndBackIsNone) {
  const std::string scope = scoped("jit(softplus)/op");
  const Graph graph =
      graph_of("p = f32[16,16] parameter(0)\n e = f32[16,16] exponential(p)" + scope +
               "\n d = f32[16,16] dot(e, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
               "l = f32[16,16] log(e)" +
               scope + "\n ROOT a = f32[16,16] add(l, d)" + scope);
  const FusionPlan made = plan(graph);
  EXPECT_THAT(kernels(graph, made), UnorderedElementsAre("e", "l", "a"));
  EXPECT_THAT(rules(made, "a"), ElementsAre("eager.library-function", "eager.one-op-a-kernel"));
}

TEST(Eager, TwoFunctionsThatReadEachOtherAreNone) {
  // No way leads out of either and back, but as kernels each would wait for the other.
  const std::string one = scoped("a/jit(gelu)/op"), other = scoped("b/jit(silu)/op");
  EXPECT_THAT(kernels("p = f32[16] parameter(0)\n q = f32[16] parameter(1)\n s = f32[16] sine(p)" + one +
                      "\n c = f32[16] cosine(q)" + other + "\n u = f32[16] add(s, c)" + one +
                      "\n v = f32[16] multiply(c, s)" + other + "\n ROOT z = (f32[16], f32[16]) tuple(u, v)"),
              ElementsAre("s", "c", "u", "v"));
}

/// Of each random graph make_plan verifies the plan.
TEST(Eager, HasNoMoreKernelsThanOpsAndNoneForAViewThatKernelsAloneRead) {
  const testing::FuzzRange range = testing::fuzz_range(0, 120);
  int functions = 0, refused = 0;
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    SCOPED_TRACE(seed);
    std::string text = testing::planned_hlo(seed);
    if (seed % 3 != 0) text = testing::with_scopes(text, seed);
    const Graph graph = graph_of(text);
    const FusionPlan made = plan(graph);
    const PlanCounts unfused = make_plan(graph, device("v100"), "unfused").counts;
    EXPECT_LE(made.counts.memory_kernels + made.counts.copies, unfused.memory_kernels + unfused.copies);
    const Graph& planned = planned_graph(graph, made);
    const eager::Views views(planned);
    for (const KernelPlan& kernel : made.kernels)
      for (const NodeId output : kernel.outputs)
        EXPECT_TRUE(!views.is_view(output) || views.is_dense(output))
            << planned.entry_computation().node(output).name;
    for (const Decision& d : made.decisions)
      if (d.verdict.rule == "eager.library-function") ++(d.verdict.ok ? functions : refused);
  }
  if (range.chosen) return;
  EXPECT_GE(functions, 100) << "ops of functions that are one kernel";
  EXPECT_GE(refused, 5) << "functions that are none";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
