// Reductions over every choice of dimensions, alone and several to a kernel, under both thread mappings.
#include <fmt/format.h>

#include "tests/codegen/planned.h"

namespace stitchwork {
namespace TEST_FILE {

Graph module_of(const std::string& body) {
  return testing::graph_of(
      "HloModule m\n"
      "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
      "max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }\n"
      "ENTRY main {\n  zero = f32[] constant(0)\n" +
      body + "}\n");
}

struct Case {
  const char* name;
  const char* operand;
  const char* result;
  const char* dimensions;
};

class Reductions : public ::testing::TestWithParam<Case> {};

TEST_P(Reductions, AreRight) {
  SKIP_WITHOUT_COMPILER();
  const Case& c = GetParam();
  testing::expect_planned_correct(
      module_of(fmt::format("  x = f32{} parameter(0)\n  e = f32{} tanh(x)\n"
                            "  ROOT r = f32{} reduce(e, zero), dimensions={}, to_apply=sum\n",
                            c.operand, c.operand, c.result, c.dimensions)));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Reductions,
    ::testing::Values(
        Case{"middle", "[8,128,64]", "[8,64]", "{1}"},
        Case{"outer_and_inner", "[8,128,64]", "[128]", "{0,2}"}, Case{"all", "[8,128,64]", "[]", "{0,1,2}"},
        Case{"inner", "[8,128,64]", "[8,128]", "{2}"}, Case{"outer_two", "[8,128,64]", "[64]", "{0,1}"},
        Case{"inner_two", "[8,128,64]", "[8]", "{1,2}"}, Case{"odd_middle", "[5,33,7]", "[5,7]", "{1}"},
        Case{"extent_one", "[40,1,9]", "[40,9]", "{1}"},
        Case{"inner_extent_one", "[40,9,1]", "[40,9]", "{2}"}, Case{"one_element", "[1,1]", "[]", "{0,1}"},
        Case{"empty_rows", "[0,8]", "[0]", "{1}"}, Case{"empty_columns", "[8,0]", "[8]", "{1}"},
        Case{"empty_outer", "[0,8]", "[8]", "{0}"}, Case{"long_row", "[1,100001]", "[1]", "{1}"},
        Case{"long_column", "[50000,3]", "[3]", "{0}"}, Case{"short_columns", "[7,30000]", "[30000]", "{0}"},
        Case{"misaligned_rows", "[300,33]", "[300]", "{1}"}, Case{"one_tile", "[20000,33]", "[33]", "{0}"},
        Case{"vector_of_one", "[2000,1]", "[2000]", "{1}"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(WarpRows, WhatAllWarpsReadOnceATaskWaitsForTheBlock) {
  // The one row of `low` lies in a warp, but the initial value of `high`, whose row is another, is read
  // before rows are told apart.
  const Graph graph = module_of(
      "  x = f32[16] parameter(0)\n  y = f32[12] parameter(1)\n"
      "  low = f32[] reduce(x, zero), dimensions={0}, to_apply=sum\n  start = f32[] copy(low)\n"
      "  ROOT high = f32[] reduce(y, start), dimensions={0}, to_apply=max\n");
  PlanOptions options;
  options.knobs["mapping"] = "tuned";
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch-no-dominant-merging", options);
  ASSERT_EQ(plan.kernels.size(), 1u);
  ASSERT_EQ(plan.kernels[0].groups.size(), 2u);
  const std::string cuda = to_cuda(graph, build_schedule(graph, plan.kernels[0]), true);
  EXPECT_NE(cuda.find("__syncthreads();"), std::string::npos);
  EXPECT_EQ(cuda.find("sw_warp_barrier();"), std::string::npos);
}

TEST(SeveralReductions, OfDifferentShapesShareAKernel) {
  SKIP_WITHOUT_COMPILER();
  testing::expect_planned_correct(
      module_of("  x = f32[96,160] parameter(0)\n  y = f32[24,96] parameter(1)\n"
                "  r = f32[96] reduce(x, zero), dimensions={1}, to_apply=sum\n"
                "  c = f32[160] reduce(x, zero), dimensions={0}, to_apply=max\n"
                "  a = f32[] reduce(x, zero), dimensions={0,1}, to_apply=sum\n"
                "  p = f32[24,96] broadcast(r), dimensions={1}\n  q = f32[24,96] multiply(p, y)\n"
                "  s = f32[24] reduce(q, zero), dimensions={1}, to_apply=sum\n"
                "  b = f32[24] broadcast(a), dimensions={}\n  t = f32[24] add(s, b)\n"
                "  ROOT o = (f32[24], f32[160], f32[96]) tuple(t, c, r)\n"));
}

TEST(SeveralReductions, RowsThatFitNoVectorStandBesideRowsThatDo) {
  SKIP_WITHOUT_COMPILER();
  testing::expect_planned_correct(module_of(
      "  x = f32[64,128] parameter(0)\n  w = f32[64,129] parameter(1)\n"
      "  r = f32[64] reduce(x, zero), dimensions={1}, to_apply=max\n"
      "  b = f32[64,128] broadcast(r), dimensions={0}\n  d = f32[64,128] subtract(x, b)\n  e = f32[64,128] "
      "exponential(d)\n"
      "  f = f32[64] reduce(e, zero), dimensions={1}, to_apply=sum\n  g = f32[64,128] broadcast(f), "
      "dimensions={0}\n"
      "  y = f32[64,128] divide(e, g)\n  v = f32[64] reduce(w, zero), dimensions={1}, to_apply=sum\n"
      "  h = f32[64,128] broadcast(v), dimensions={0}\n  ROOT o = f32[64,128] multiply(y, h)\n"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
