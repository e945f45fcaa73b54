// Ops that no kernel computes run as library steps: values behind tuples, control flow, sorting, scatter.
#include <gmock/gmock.h>

#include "core/base/error.h"
#include "runtime/run.h"
#include "tests/codegen/planned.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::expect_planned_correct;
using testing::graph_of;

TEST(LibrarySteps, ValuesPassThroughABarrierOfATuple) {
  SKIP_WITHOUT_COMPILER();
  expect_planned_correct(graph_of(R"(HloModule barrier
ENTRY main {
  x = f32[8,16] parameter(0)
  w = f32[16,4] parameter(1)
  e = f32[8,16] exponential(x)
  t = (f32[8,16], f32[16,4]) tuple(e, w)
  b = (f32[8,16], f32[16,4]) opt-barrier(t)
  e2 = f32[8,16] get-tuple-element(b), index=0
  w2 = f32[16,4] get-tuple-element(b), index=1
  s = f32[8,16] sqrt(e2)
  d = f32[8,4] dot(s, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = f32[16,4] negate(w2)
  ROOT r = (f32[8,4], f32[16,4], f32[8,16]) tuple(d, n, e2)
}
)"));
}

TEST(LibrarySteps, LoopsAndConditionalsRun) {
  SKIP_WITHOUT_COMPILER();
  expect_planned_correct(graph_of(R"(HloModule control
cond { c = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(c), index=0  n = s32[] constant(3)  ROOT lt = pred[] compare(i, n), direction=LT }
body { b = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(b), index=0  v = f32[4] get-tuple-element(b), index=1
  one = s32[] constant(1)  j = s32[] add(i, one)  w = f32[4] add(v, v)  ROOT t = (s32[], f32[4]) tuple(j, w) }
yes { y = f32[4] parameter(0)  ROOT e = f32[4] exponential(y) }
no { z = f32[4] parameter(0)  ROOT m = f32[4] negate(z) }
ENTRY main {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  start = f32[4] tanh(x)
  t = (s32[], f32[4]) tuple(zero, start)
  loop = (s32[], f32[4]) while(t), condition=cond, body=body
  v = f32[4] get-tuple-element(loop), index=1
  a = f32[4] abs(v)
  which = pred[] constant(true)
  taken = f32[4] conditional(which, a, v), true_computation=yes, false_computation=no
  ROOT r = f32[4] add(taken, v)
}
)"));
}

TEST(LibrarySteps, SortsTopKsAndScattersRun) {
  SKIP_WITHOUT_COMPILER();
  expect_planned_correct(graph_of(R"(HloModule indexed
less { a = f32[] parameter(0)  b = f32[] parameter(1)  c = s32[] parameter(2)  d = s32[] parameter(3)  ROOT lt = pred[] compare(a, b), direction=LT }
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ge { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = pred[] compare(a, b), direction=GE }
larger { v = f32[] parameter(0)  i = s32[] parameter(1)  w = f32[] parameter(2)  j = s32[] parameter(3)
  gt = pred[] compare(v, w), direction=GT  x = f32[] select(gt, v, w)  k = s32[] select(gt, i, j)  ROOT t = (f32[], s32[]) tuple(x, k) }
ENTRY main {
  x = f32[3,8] parameter(0)
  ids = s32[2,1] parameter(1)
  up = f32[2,8] parameter(2)
  e = f32[3,8] exponential(x)
  place = s32[3,8] iota(), iota_dimension=1
  sorted = (f32[3,8], s32[3,8]) sort(e, place), dimensions={1}, to_apply=less
  values = f32[3,8] get-tuple-element(sorted), index=0
  top = (f32[3,2], s32[3,2]) topk(e), k=2, largest=true
  best = f32[3,2] get-tuple-element(top), index=0
  where = s32[3,2] get-tuple-element(top), index=1
  twice = f32[3,2] add(best, best)
  scattered = f32[3,8] scatter(values, ids, up), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  argmax = (f32[3], s32[3]) reduce(scattered, place, low, zero), dimensions={1}, to_apply=larger
  at = s32[3] get-tuple-element(argmax), index=1
  next = s32[3] add(at, at)
  half = f32[3,4] slice(values), slice={[0:3], [0:4]}
  none = f32[] constant(0)
  unpooled = f32[3,8] select-and-scatter(e, half, none), window={size=1x2 stride=1x2}, select=ge, scatter=sum
  ROOT r = (f32[3,2], s32[3,2], f32[3,8], s32[3], f32[3,8]) tuple(twice, where, scattered, next, unpooled)
}
)"));
}

TEST(LibrarySteps, WhatCannotBeComputedIsNamedWithItsLine) {
  const auto message = [](const char* text) -> std::string {
    try {
      require_runnable(graph_of(text));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT c = f32[4] custom-call(x), "
                      "custom_call_target=\"f\"\n}\n"),
              ::testing::ContainsRegex(":4: c \\(custom-call of f\\) cannot be executed; "));
  EXPECT_THAT(
      message(
          "HloModule m\nENTRY e {\n  x = f32[4,4] parameter(0)\n  z = c64[4,4] convert(x)\n  c = c64[4,4] "
          "cholesky(z)\n  ROOT r = f32[4,4] real(c)\n}\n"),
      ::testing::ContainsRegex(":5: c \\(cholesky\\) cannot be executed: values of type c64"));
  EXPECT_EQ(message("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] abs(x)\n}\n"), "");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
