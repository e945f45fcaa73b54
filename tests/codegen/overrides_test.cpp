// Kernels planned with overrides compute what the graph says.
#include "tests/codegen/harness.h"

namespace stitchwork::testing {
namespace TEST_FILE {

struct Case {
  const char* name;
  Edit edit;
  const char* planner = "astitch";
};

class OverriddenKernels : public ::testing::TestWithParam<Case> {};

constexpr char kGraph[] = R"(HloModule edited
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[96,160] parameter(0)
  y = f32[24,96] parameter(1)
  w = f32[300] parameter(2)
  zero = f32[] constant(0)
  r = f32[96] reduce(x, zero), dimensions={1}, to_apply=sum
  h = f32[96] tanh(r)
  m = f32[96] multiply(h, r)
  p = f32[24,96] broadcast(m), dimensions={1}
  q = f32[24,96] add(p, y)
  s = f32[24] reduce(q, zero), dimensions={1}, to_apply=sum
  b = f32[24,96] broadcast(s), dimensions={0}
  o = f32[24,96] multiply(q, b)
  c = f32[160] reduce(x, zero), dimensions={0}, to_apply=sum
  v = f32[300] negate(w)
  ROOT t = (f32[24,96], f32[160], f32[300]) tuple(o, c, v)
})";

TEST_P(OverriddenKernels, ComputeWhatTheGraphSays) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = graph_of(kGraph);
  expect_correct(graph, make_plan(graph, device("v100"), GetParam().planner, {.edits = {GetParam().edit}}));
}

INSTANTIATE_TEST_SUITE_P(
    Edits, OverriddenKernels,
    ::testing::Values(Case{"scheme_global", {EditKind::kScheme, {"r"}, "global", 0}},
                      Case{"scheme_global_inlined", {EditKind::kScheme, {"q"}, "global", 0}},
                      Case{"scheme_local", {EditKind::kScheme, {"h"}, "local", 0}},
                      Case{"merge_remote", {EditKind::kMerge, {"o", "v"}, "", 0}},
                      Case{"forbid_merge", {EditKind::kForbidMerge, {"r", "h"}, "", 0}},
                      Case{"forbid_merge_xla", {EditKind::kForbidMerge, {"m", "h"}, "", 0}, "xla"},
                      Case{"split", {EditKind::kSplit, {"m"}, "", 0}},
                      Case{"split_xla", {EditKind::kSplit, {"h"}, "", 0}, "xla"},
                      Case{"block_64", {EditKind::kBlock, {"s"}, "", 64}},
                      Case{"block_96", {EditKind::kBlock, {"c"}, "", 96}},
                      Case{"split_factor_rows", {EditKind::kSplitFactor, {"s"}, "", 3}},
                      Case{"split_factor_columns", {EditKind::kSplitFactor, {"c"}, "", 7}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace TEST_FILE
}  // namespace stitchwork::testing
