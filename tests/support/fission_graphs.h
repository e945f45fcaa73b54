// Graphs of the worked examples of operator fission (docs/planners/fission.md).
#pragma once

#include "tests/support/graphs.h"

namespace stitchwork::testing {

/// E1: a softmax between products.
inline Graph softmax_between_products() {
  return graph_of(R"(
  q = f32[512,64] parameter(0)
  k = f32[64,512] parameter(1)
  v = f32[512,64] parameter(2)
  scores = f32[512,512] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  lowest = f32[] constant(-inf)
  zero = f32[] constant(0)
  mx = f32[512] reduce(scores, lowest), dimensions={1}, to_apply=max
  mx_all = f32[512,512] broadcast(mx), dimensions={0}
  sub = f32[512,512] subtract(scores, mx_all)
  ex = f32[512,512] exponential(sub)
  sum = f32[512] reduce(ex, zero), dimensions={1}, to_apply=sum
  sum_all = f32[512,512] broadcast(sum), dimensions={0}
  p = f32[512,512] divide(ex, sum_all)
  ROOT o = f32[512,64] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)");
}

/// E5: only its columns' sums are asked for.
inline Graph sum_behind_a_product() {
  return graph_of(R"(
  x = f32[1024,256] parameter(0)
  w = f32[256,1000] parameter(1)
  zero = f32[] constant(0)
  y = f32[1024,1000] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = f32[1000] reduce(y, zero), dimensions={0}, to_apply=sum
)");
}

/// E7: a product that both a row sum and a column sum read.
inline Graph sums_of_squares() {
  return graph_of(R"(
  x = f32[2048,2048] parameter(0)
  zero = f32[] constant(0)
  y = f32[2048,2048] multiply(x, x)
  r = f32[2048] reduce(y, zero), dimensions={1}, to_apply=sum
  c = f32[2048] reduce(y, zero), dimensions={0}, to_apply=sum
  ROOT both = (f32[2048], f32[2048]) tuple(r, c)
)");
}

}  // namespace stitchwork::testing
