// Complex numbers and Fourier transforms in kernels and beside them.
#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

/// Planners whose kernels differ most.
FusionPlan expect_correct_by_some(const std::string& text) {
  const Graph graph = canonicalize(parse_hlo(text, "test.hlo"));
  FusionPlan last;
  for (const char* planner : {"unfused", "xla", "astitch"}) {
    SCOPED_TRACE(planner);
    last = make_plan(graph, device("v100"), planner);
    testing::expect_correct(graph, last);
  }
  return last;
}

TEST(ComplexNumbers, AConvolutionByTransformsIsRight) {
  SKIP_WITHOUT_COMPILER();
  const FusionPlan plan = expect_correct_by_some(R"(HloModule m
ENTRY e {
  x = f32[6,32] parameter(0)
  w = f32[6,32] parameter(1)
  a = c64[6,17] fft(x), fft_type=RFFT, fft_length={32}
  b = c64[6,17] fft(w), fft_type=RFFT, fft_length={32}
  p = c64[6,17] multiply(a, b)
  y = f32[6,32] fft(p), fft_type=IRFFT, fft_length={32}
  ROOT r = f32[6,32] tanh(y)
})");
  EXPECT_EQ(plan.counts.library_calls, 3);
}

TEST(ComplexNumbers, ParametersAndResultsAreInterleaved) {
  SKIP_WITHOUT_COMPILER();
  expect_correct_by_some(R"(HloModule m
add { a = c64[] parameter(0)
  b = c64[] parameter(1)
  ROOT s = c64[] add(a, b) }
ENTRY e {
  z = c64[12,20]{0,1} parameter(0)
  w = c64[20] parameter(1)
  i = c64[] constant((0.5, -1))
  o = c64[] constant((0, 0))
  ib = c64[12,20] broadcast(i), dimensions={}
  wb = c64[12,20] broadcast(w), dimensions={1}
  p = c64[12,20] multiply(z, wb)
  d = c64[12,20] divide(p, ib)
  e = c64[12,20] exponential(d)
  n = c64[12] reduce(e, o), dimensions={1}, to_apply=add
  l = c64[12] sqrt(n)
  a = f32[12,20] abs(p)
  ROOT r = (c64[12], c64[12,20], f32[12,20]) tuple(l, d, a)
})");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
