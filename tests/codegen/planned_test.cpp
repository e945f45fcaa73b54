#include "tests/codegen/planned.h"

#include "tests/support/random_graph.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::expect_planned_correct;

TEST(Planned, LayoutsGathersAndWindows) {
  SKIP_WITHOUT_COMPILER();
  expect_planned_correct(testing::graph_of(R"(HloModule layouts
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
mx { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }
ENTRY main {
  x = f32[7,13] parameter(0)
  y = f32[7,5] parameter(1)
  ids = s32[4,1] parameter(2)
  start0 = s32[] parameter(3)
  start1 = s32[] parameter(4)
  update = f32[3,4] parameter(5)
  one = f32[] constant(1.5)
  inf = f32[] constant(-inf)
  joined = f32[7,18] concatenate(x, y), dimensions={1}
  e = f32[7,18] exponential(joined)
  padded = f32[10,20] pad(e, one), padding=1_2x2_0
  reversed = f32[10,20] reverse(padded), dimensions={0,1}
  sliced = f32[4,6] slice(reversed), slice={[1:9:2], [3:20:3]}
  gathered = f32[4,13] gather(x, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,13}
  turned = f32[13,4] transpose(gathered), dimensions={1,0}
  window = f32[3,4] dynamic-slice(x, start0, start1), dynamic_slice_sizes={3,4}
  negated = f32[3,4] negate(window)
  updated = f32[7,13] dynamic-update-slice(x, update, start0, start1)
  squares = f32[7,13] multiply(updated, updated)
  count = f32[7,13] iota(), iota_dimension=1
  mix = f32[7,13] add(squares, count)
  flat = f32[91] reshape(mix)
  folded = f32[13,7] reshape(flat)
  rows = f32[7] reduce(mix, one), dimensions={1}, to_apply=sum
  cols = f32[13] reduce(mix, inf), dimensions={0}, to_apply=mx
  all = f32[] reduce(folded, one), dimensions={0,1}, to_apply=sum
  windows = f32[7,6] reduce-window(x, inf), window={size=3x4 stride=1x2 pad=1_1x0_1}, to_apply=mx
  spread = f32[13,3] pad(update, one), padding=0_8_1x-1_0
  ROOT t = (f32[4,6], f32[13,4], f32[3,4], f32[7,13], f32[13,7], f32[7], f32[13], f32[], f32[7,6], f32[13,3]) tuple(sliced, turned, negated, mix, folded, rows, cols, all, windows, spread)
}
)"));
}

TEST(Planned, ScalarsAndEmptyDimensions) {
  SKIP_WITHOUT_COMPILER();
  expect_planned_correct(testing::graph_of(R"(HloModule corners
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  s = f32[] parameter(0)
  one = f32[1,1,1] parameter(1)
  none = f32[3,0] parameter(2)
  start = f32[] constant(4)
  twice = f32[] add(s, s)
  root = f32[] tanh(twice)
  spread = f32[1,1,1] broadcast(root), dimensions={}
  product = f32[1,1,1] multiply(spread, one)
  total = f32[] reduce(product, start), dimensions={0,1,2}, to_apply=sum
  wider = f32[3,0] exponential(none)
  nothing = f32[3] reduce(wider, start), dimensions={1}, to_apply=sum
  ROOT t = (f32[], f32[1,1,1], f32[], f32[3,0], f32[3]) tuple(root, product, total, wider, nothing)
}
)"));
}

TEST(Planned, ARandomGraph) {
  SKIP_WITHOUT_COMPILER();
  expect_planned_correct(testing::graph_of(testing::random_hlo(1)));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
