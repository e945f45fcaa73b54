// Floats of 8 bits and integers of fewer in kernels, and factors of matrices beside them, under every
// planner.
#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;

/// Planners whose kernels differ most: an op each, inlined, stitched with values in memory and registers.
void expect_correct_by_some(const Graph& graph) {
  for (const char* planner : {"unfused", "xla", "astitch"}) {
    SCOPED_TRACE(planner);
    testing::expect_correct(graph, make_plan(graph, device("v100"), planner));
  }
}

TEST(SmallTypes, QuantisedProductsAndTheirScalesAreRight) {
  SKIP_WITHOUT_COMPILER();
  expect_correct_by_some(graph_of(R"(
    x = f32[12,40] parameter(0)
    w = f8e4m3fn[40,24] parameter(1)
    z = f32[] constant(0)
    a = f32[12,40] abs(x)
    m = f32[12] reduce(a, z), dimensions={1}, to_apply=max
    l = f32[] constant(57344)
    lb = f32[12] broadcast(l), dimensions={}
    s = f32[12] divide(lb, m)
    sb = f32[12,40] broadcast(s), dimensions={0}
    xs = f32[12,40] multiply(x, sb)
    q = f8e5m2[12,40] convert(xs)
    d = f32[12,24] dot(q, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    si = f32[12,24] broadcast(s), dimensions={0}
    r = f32[12,24] divide(d, si)
    c = f8e4m3fn[12,24] convert(r)
    t = f8e4m3fn[24,12] transpose(c), dimensions={1,0}
    zero = f8e4m3fn[] constant(1.5)
    p = f8e4m3fn[26,12] pad(t, zero), padding=1_1x0_0
    ROOT both = (f8e4m3fn[26,12], f32[12,24], f8e5m2[12,40]) tuple(p, r, q))"));
}

TEST(SmallTypes, IntegersOfFourBitsAreRight) {
  SKIP_WITHOUT_COMPILER();
  expect_correct_by_some(graph_of(R"(
    w = s4[16,32] parameter(0)
    s = f32[16] parameter(1)
    x = f32[16,32] parameter(2)
    f = f32[16,32] convert(w)
    sb = f32[16,32] broadcast(s), dimensions={0}
    v = f32[16,32] multiply(f, sb)
    ten = f32[] constant(10)
    tb = f32[16,32] broadcast(ten), dimensions={}
    h = f32[16,32] multiply(x, tb)
    q = s4[16,32] convert(h)
    u = u4[16,32] convert(h)
    n = s4[16,32] add(q, w)
    b = f32[16,32] convert(u)
    o = f32[16,32] add(v, b)
    ROOT r = (f32[16,32], s4[16,32], u4[16,32]) tuple(o, n, u))"));
}

TEST(SmallTypes, FactorsAreLibraryCalls) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = graph_of(R"(
    x = f32[9,4] parameter(0)
    b = f32[9,2] parameter(1)
    k = f32[9,9] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    i = s32[9,9] iota(), iota_dimension=0
    j = s32[9,9] iota(), iota_dimension=1
    e = pred[9,9] compare(i, j), direction=EQ
    f = f32[9,9] convert(e)
    a = f32[9,9] add(k, f)
    l = f32[9,9] cholesky(a), lower=true
    y = f32[9,2] triangular-solve(l, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
    s = f32[9,2] triangular-solve(l, y), left_side=true, lower=true, transpose_a=TRANSPOSE
    ROOT r = f32[9,2] tanh(s))");
  expect_correct_by_some(graph);
  EXPECT_EQ(make_plan(graph, device("v100"), "astitch").counts.library_calls, 4);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
