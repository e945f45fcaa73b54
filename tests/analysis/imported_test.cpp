// Plans of dumps that XLA has fused already.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "analysis/explain/explain.h"
#include "analysis/json/plan_json.h"
#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Graph module(const std::string& text) {
  return canonicalize(
      parse_hlo("HloModule dump\n"
                "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n" +
                    text,
                "dump.hlo"));
}

std::vector<std::string> steps(const FusionPlan& plan) {
  std::vector<std::string> ids;
  for (const PlanStep& step : plan.steps) ids.push_back(step.id);
  return ids;
}

FusionPlan imported(const Graph& graph) {
  FusionPlan plan = make_plan(graph, device("v100"), "imported", {.record_decisions = true});
  EXPECT_THAT(verify(graph, device("v100"), plan), IsEmpty());
  return plan;
}

constexpr const char* kSoftmax = R"(
fused_max { p = f32[64,128] parameter(0)  z = f32[] constant(0)  e = f32[64,128] exponential(p)
  ROOT r = f32[64] reduce(e, z), dimensions={1}, to_apply=sum }
fused_div { p = f32[64,128] parameter(0)  s = f32[64] parameter(1)  e = f32[64,128] exponential(p)
  b = f32[64,128] broadcast(s), dimensions={0}  ROOT d = f32[64,128] divide(e, b) }
ENTRY main { x = f32[64,128] parameter(0)  w = f32[128,32] parameter(1)
  sums = f32[64]{0} fusion(x), kind=kInput, calls=fused_max
  soft = f32[64,128]{1,0} fusion(x, sums), kind=kLoop, calls=fused_div
  d = f32[64,32] dot(soft, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[32,64] bitcast(d)
  ROOT n = f32[32,64] negate(b) })";

TEST(Imported, EveryFusionIsAKernelAndWhatIsNotFusedStandsAlone) {
  const Graph graph = module(kSoftmax);
  const FusionPlan plan = imported(graph);
  EXPECT_THAT(steps(plan), ElementsAre("k0", "k1", "lib:d", "k2"));
  EXPECT_THAT(testing::outputs(graph, plan), ElementsAre("r", "d.1", "n"));
  // The exponential is computed in both kernels, as in the dump.
  const NodeId e = testing::op(graph, "e");
  EXPECT_TRUE(plan.kernels[0].schemes.contains(e));
  EXPECT_EQ(plan.kernels[1].schemes.at(e), Scheme::kRecomputed);
  EXPECT_EQ(make_plan(graph, device("v100"), "astitch").counts.memory_kernels, 2);
}

TEST(Imported, ExplainNamesTheFusion) {
  const Graph graph = module(kSoftmax);
  EXPECT_THAT(to_text(explain(graph, imported(graph), "r")),
              HasSubstr("imported from the dump: fusion sums kind=kInput"));
  EXPECT_THAT(to_text(explain(graph, imported(graph), "n")), HasSubstr("an op outside fusions"));
}

TEST(Imported, IsSavedAndReadBack) {
  const Graph graph = module(kSoftmax);
  const std::string text = plan_to_json(graph, imported(graph)).dump();
  EXPECT_EQ(plan_to_json(graph, plan_from_json(graph, text, "plan.json")).dump(), text);
}

TEST(Imported, AFusionOfSeveralValuesIsOneKernelWhereGeneratedCodeHasItsForm) {
  const Graph graph = module(R"(
fused { p = f32[64,128] parameter(0)  e = f32[64,128] exponential(p)  n = f32[64,128] negate(p)
  ROOT t = (f32[64,128], f32[64,128]) tuple(e, n) }
ENTRY main { x = f32[64,128] parameter(0)
  ROOT f = (f32[64,128], f32[64,128]) fusion(x), kind=kLoop, calls=fused })");
  EXPECT_THAT(testing::outputs(graph, imported(graph)), ElementsAre("e+n"));
}

TEST(Imported, ValuesOfDifferentFormsAreOneStitchedKernel) {
  const Graph graph = module(R"(
fused { p = f32[64,128] parameter(0)  e = f32[64,128] exponential(p)  z = f32[] constant(0)
  n = f32[128] reduce(e, z), dimensions={0}, to_apply=sum
  ROOT t = (f32[64,128], f32[128]) tuple(e, n) }
ENTRY main { x = f32[64,128] parameter(0)
  ROOT f = (f32[64,128], f32[128]) fusion(x), kind=kInput, calls=fused })");
  EXPECT_THAT(testing::outputs(graph, imported(graph)), ElementsAre("e+n"));
}

/// XLA's Triton fusions hold rows in blocks: a thread for each result would sum its row anew.
TEST(Imported, AReductionInsideATritonFusionIsComputedOncePerRow) {
  const Graph graph = module(R"(
fused { p = f32[512,1024] parameter(0)  z = f32[] constant(0)  e = f32[512,1024] exponential(p)
  r = f32[512] reduce(e, z), dimensions={1}, to_apply=sum
  b = f32[512,1024] broadcast(r), dimensions={0}
  d = f32[512,1024] divide(e, b)
  ROOT t = (f32[512,1024], f32[512]) tuple(d, r) }
ENTRY main { x = f32[512,1024] parameter(0)
  ROOT f = (f32[512,1024]{1,0}, f32[512]{0}) fusion(x), kind=kCustom, calls=fused })");
  const FusionPlan plan = imported(graph);
  ASSERT_EQ(plan.kernels.size(), 1u);
  for (const auto& [op, scheme] : plan.kernels[0].schemes)
    EXPECT_NE(scheme, Scheme::kRecomputed) << graph.entry_computation().node(op).name;
  const FusionPlan stitched = make_plan(graph, device("v100"), "astitch", {});
  EXPECT_LT(plan.predicted_us, 1.5 * stitched.predicted_us);
}

TEST(Imported, AFusionThatHoldsACallIsCutThere) {
  const Graph graph = module(R"(
fused { p = f32[64,64] parameter(0)  e = f32[64,64] exponential(p)
  d = f32[64,64] dot(e, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}  ROOT t = f32[64,64] tanh(d) }
ENTRY main { x = f32[64,64] parameter(0)  ROOT f = f32[64,64] fusion(x), kind=kCustom, calls=fused })");
  const FusionPlan plan = imported(graph);
  EXPECT_THAT(steps(plan), ElementsAre("k0", "lib:d", "k1"));
  EXPECT_THAT(to_text(explain(graph, plan, "t")), HasSubstr("cut at the library calls it holds"));
}

TEST(Imported, OneOfEqualValuesIsMaterialisedOnce) {
  const Graph graph = module(R"(
one { p = f32[64] parameter(0)  e = f32[64] exponential(p)  ROOT n = f32[64] negate(e) }
two { p = f32[64] parameter(0)  ROOT e = f32[64] exponential(p) }
ENTRY main { x = f32[64] parameter(0)  a = f32[64] fusion(x), kind=kLoop, calls=one
  b = f32[64] fusion(x), kind=kLoop, calls=two  c = f32[64] exponential(x)
  s = f32[64] sine(b)  m = f32[64] multiply(a, c)
  ROOT t = (f32[64], f32[64]) tuple(s, m) })");
  const FusionPlan plan = imported(graph);
  EXPECT_EQ(plan.kernels.size(), 4u);
}

TEST(Imported, AModuleWithoutFusionsIsRefusedInALine) {
  const Graph graph = testing::graph_of("x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x)");
  try {
    make_plan(graph, device("v100"), "imported");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("planner imported cannot plan this model: it has no fusions"));
  }
}

TEST(Imported, LoopBodiesAreTheDumpsOwnToo) {
  const Graph graph = module(R"(
step { p = f32[64] parameter(0)  e = f32[64] exponential(p)  ROOT n = f32[64] negate(e) }
cond { c = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(c), index=0  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT }
body { b = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(b), index=0
  v = f32[64] get-tuple-element(b), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  w = f32[64] fusion(v), kind=kLoop, calls=step  ROOT t = (s32[], f32[64]) tuple(j, w) }
ENTRY main { x = f32[64] parameter(0)  zero = s32[] constant(0)  t = (s32[], f32[64]) tuple(zero, x)
  ROOT loop = (s32[], f32[64]) while(t), condition=cond, body=body })");
  const FusionPlan plan = imported(graph);
  ASSERT_EQ(plan.computations.size(), 1u);
  EXPECT_EQ(plan.counts.dynamic_memory_kernels, 3 * 2);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
