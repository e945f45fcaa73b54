// Results and library calls around the kernels.
#include "core/base/error.h"
#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

void expect_correct_by_every_planner(const Graph& graph) {
  for (const Planner& row : planners_for(graph)) {
    SCOPED_TRACE(row.name);
    testing::expect_correct(graph, make_plan(graph, device("v100"), row.name));
  }
}

TEST(Run, NestedTuplesAreResults) {
  SKIP_WITHOUT_COMPILER();
  expect_correct_by_every_planner(testing::graph_of(R"(HloModule m
ENTRY main {
  p = f32[10,14] parameter(0)
  n = f32[10,14] negate(p)
  a = f32[10,14] abs(n)
  inner = (f32[10,14], f32[10,14]) tuple(n, p)
  ROOT t = (f32[10,14], (f32[10,14], f32[10,14])) tuple(a, inner)
}
)"));
}

std::string sort_of_two(const std::string& rest) {
  return R"(HloModule m
less { a = f32[] parameter(0)  b = f32[] parameter(1)  c = s32[] parameter(2)  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY main {
  p = f32[20,10] parameter(0)
  n = f32[20,10] negate(p)
  i = s32[20,10] iota(), iota_dimension=1
  )" + rest +
         "\n}\n";
}

TEST(Run, KernelsReadTheElementsOfALibraryCallsTuple) {
  SKIP_WITHOUT_COMPILER();
  expect_correct_by_every_planner(testing::graph_of(sort_of_two(
      "s = (f32[20,10], s32[20,10]) sort(n, i), dimensions={1}, to_apply=less\n"
      "  v = f32[20,10] get-tuple-element(s), index=0\n  k = s32[20,10] get-tuple-element(s), index=1\n"
      "  a = f32[20,10] abs(v)\n  ROOT t = (f32[20,10], s32[20,10]) tuple(a, k)")));
}

TEST(Run, ALibraryCallsTupleMayBeTheResult) {
  SKIP_WITHOUT_COMPILER();
  expect_correct_by_every_planner(testing::graph_of(
      sort_of_two("ROOT s = (f32[20,10], s32[20,10]) sort(n, i), dimensions={1}, to_apply=less")));
}

std::string refusal(const std::string& body) {
  const Graph graph = testing::graph_of(
      "HloModule m\nsum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
      "small { a = f8e4m3fn[] parameter(0)  b = f8e4m3fn[] parameter(1)  ROOT s = f8e4m3fn[] add(a, b) }\n"
      "both { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] multiply(a, b)\n"
      "  ROOT s = f32[] add(c, b) }\nENTRY main {\n" +
      body + "\n}\n");
  try {
    compile(graph, device("v100"), make_plan(graph, device("v100"), "unfused"));
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Run, OpsThatCanOnlyBePlannedAreRefusedByName) {
  SKIP_WITHOUT_COMPILER();
  EXPECT_EQ(refusal("p = f32[10,14] parameter(0)\n z = f32[] constant(0)\n"
                    "ROOT r = f32[10] reduce(p, z), dimensions={1}, to_apply=both"),
            "r (reduce) cannot be executed: 'both' is not one commutative operation");
  EXPECT_EQ(refusal("p = f8e4m3fn[10,14] parameter(0)\n z = f8e4m3fn[] constant(0)\n"
                    "ROOT r = f8e4m3fn[10] reduce(p, z), dimensions={1}, to_apply=small"),
            "r (reduce) cannot be executed: f8e4m3fn has no generated code");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
