// Plans whose library products may round f32 operands to TF32.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "analysis/explain/explain.h"
#include "analysis/json/plan_json.h"
#include "analysis/judge/cost.h"
#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

const PlanOptions kRounded{.tf32 = true};

/// A product before, within and behind a loop of three turns, of extents drawn by seed.
Graph products(unsigned seed) {
  std::mt19937 random(seed);
  const int n = 64 * std::uniform_int_distribution(1, 32)(random);
  const int m = 64 * std::uniform_int_distribution(1, 32)(random);
  const std::string square = fmt::format("f32[{},{}]", n, n), wide = fmt::format("f32[{},{}]", m, n);
  const std::string contracted = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
  const std::string state = fmt::format("(s32[], {}, {})", wide, square);
  return parse_hlo(fmt::format(R"(HloModule m
body {{
  s = {0} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = {1} get-tuple-element(s), index=1
  w = {2} get-tuple-element(s), index=2
  y = {1} dot(x, w), {3}
  z = {1} tanh(y)
  ROOT r = {0} tuple(next, z, w)
}}
cond {{
  s = {0} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT
}}
ENTRY main {{
  p = {1} parameter(0)
  q = {2} parameter(1)
  first = {1} dot(p, q), {3}
  zero = s32[] constant(0)
  st = {0} tuple(zero, first, q)
  loop = {0} while(st), condition=cond, body=body
  x = {1} get-tuple-element(loop), index=1
  e = {1} exponential(x)
  ROOT last = {1} dot(e, q), {3}
}}
)",
                               state, wide, square, contracted),
                   "products");
}

/// Kernels, copies and gaps take what they took.
double but_library_us(const FusionPlan& plan) {
  double us = 0;
  for (const PlanStep& step : plan.steps)
    if (step.kind != StepKind::kLibrary && step.kind != StepKind::kControl) us += step.predicted_us;
  for (const ComputationPlan& part : plan.computations) us += but_library_us(part.plan);
  return us;
}

TEST(Tf32, TimesLibraryProductsAndNothingElse) {
  for (unsigned seed = 0; seed < 8; ++seed)
    for (const char* id : {"a100", "h200", "l4"}) {
      const Graph graph = canonicalize(products(seed));
      const FusionPlan exact = make_plan(graph, device(id), "astitch");
      const FusionPlan rounded = make_plan(graph, device(id), "astitch", kRounded);
      EXPECT_DOUBLE_EQ(but_library_us(rounded), but_library_us(exact));
      EXPECT_LE(rounded.predicted_us, exact.predicted_us) << id << " " << seed;
      EXPECT_DOUBLE_EQ(plan_cost(graph, device(id), rounded).predicted_us, rounded.predicted_us);
    }
}

TEST(Tf32, IsTheSameAskedForOfASavedPlan) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const Graph graph = canonicalize(products(seed));
    FusionPlan plan = make_plan(graph, device("a100"), "xla");
    const double exact_us = plan.predicted_us;
    allow_tf32(graph, device("a100"), plan);
    const std::string asked = plan_to_json(graph, make_plan(graph, device("a100"), "xla", kRounded)).dump();
    EXPECT_EQ(plan_to_json(graph, plan).dump(), asked);
    const FusionPlan read = plan_from_json(graph, asked, "plan.json");
    EXPECT_TRUE(read.tf32);
    EXPECT_TRUE(read.computations.at(0).plan.tf32);
    EXPECT_EQ(plan_to_json(graph, read).dump(), asked);
    EXPECT_LE(plan.predicted_us, exact_us);
  }
}

TEST(Tf32, IsExplainedByItsUnit) {
  const Graph graph = testing::graph_of(
      "  a = f32[4096,4096] parameter(0)\n  b = f32[4096,4096] parameter(1)\n"
      "  ROOT r = f32[4096,4096] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  const FusionPlan plan = make_plan(graph, device("a100"), "xla", kRounded);
  EXPECT_THAT(explain(graph, plan, "r").library_time,
              ::testing::HasSubstr("tf32 tensor cores of 156 T/s x 0.66"));
  EXPECT_LT(plan.predicted_us, 0.25 * make_plan(graph, device("a100"), "xla").predicted_us);
}

TEST(Tf32, IsRefusedWhereNoUnitComputesIt) {
  const Graph graph = canonicalize(products(0));
  for (const char* id : {"v100", "t4", "p100-sxm2"}) {
    try {
      make_plan(graph, device(id), "xla", kRounded);
      FAIL() << id;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), ::testing::HasSubstr("no tensor cores for TF32"));
      EXPECT_THAT(error.hint(), ::testing::HasSubstr("--tf32"));
    }
    FusionPlan saved = make_plan(graph, device(id), "xla");
    EXPECT_THROW(allow_tf32(graph, device(id), saved), Error);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
