#include <gtest/gtest.h>

#include "analysis/planners/planner.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;

/// Every planner plans `body` (make_plan verifies), astitch also without adaptive mapping; returns the counts
/// of the last, astitch.
PlanCounts plan_all(const std::string& body) {
  const Graph graph = graph_of(body);
  PlanCounts counts;
  PlanOptions fixed_blocks;
  fixed_blocks.knobs = {{"adaptive_mapping", "off"}};
  EXPECT_NO_THROW(make_plan(graph, device("v100"), "astitch", fixed_blocks));
  for (const Planner& row : planners_for(graph))
    EXPECT_NO_THROW(counts = make_plan(graph, device("v100"), row.name).counts);
  return counts;
}

TEST(OddGraphs, NothingToDo) {
  EXPECT_EQ(plan_all("ROOT p = f32[4] parameter(0)").memory_kernels, 0);
  EXPECT_EQ(plan_all("ROOT c = f32[] constant(3)").memory_kernels, 0);
}

TEST(OddGraphs, AConstantBroadcastAsResultIsWritten) {
  EXPECT_EQ(plan_all("c = f32[] constant(3)\n ROOT b = f32[64] broadcast(c), dimensions={}").memory_kernels,
            1);
}

TEST(OddGraphs, AConstantBroadcastForALibraryCallIsWritten) {
  const PlanCounts counts = plan_all(
      "p = f32[8,8] parameter(0)\n c = f32[] constant(3)\n b = f32[8,8] broadcast(c), dimensions={}\n"
      "ROOT d = f32[8,8] dot(p, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  EXPECT_EQ(counts.memory_kernels, 1);
  EXPECT_EQ(counts.library_calls, 1);
}

TEST(OddGraphs, AConstantBroadcastIsWrittenAndReadUnderAnotherName) {
  plan_all(
      "c = f32[] constant(0.5)\n b = f32[31,143] broadcast(c), dimensions={}\n"
      "s = f32[11,403] reshape(b)\n t = f32[403,11] transpose(s), dimensions={1,0}\n"
      "ROOT r = (f32[31,143], f32[403,11]) tuple(b, t)");
}

TEST(OddGraphs, Scalars) {
  EXPECT_EQ(plan_all("p = f32[] parameter(0)\n q = f32[] parameter(1)\n a = f32[] add(p, q)\n"
                     "t = f32[] tanh(a)\n ROOT m = f32[] multiply(t, a)")
                .memory_kernels,
            1);
}

TEST(OddGraphs, EmptyArrays) {
  plan_all(
      "p = f32[0,4] parameter(0)\n q = f32[3,4] parameter(1)\n n = f32[0,4] negate(p)\n"
      "ROOT c = f32[3,4] concatenate(n, q), dimensions={0}");
  plan_all(
      "p = f32[4,0] parameter(0)\n z = f32[] constant(0)\n"
      "ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=sum");
}

TEST(OddGraphs, ElementsOfATupleComeFromTheCallThatMadeIt) {
  const PlanCounts counts = plan_all(
      "p = f32[8] parameter(0)\n k = (f32[8], f32[8]) custom-call(p), custom_call_target=\"split\"\n"
      "a = f32[8] get-tuple-element(k), index=0\n b = f32[8] get-tuple-element(k), index=1\n"
      "s = f32[8] add(a, b)\n ROOT t = (f32[8], f32[8]) tuple(s, b)");
  EXPECT_EQ(counts.memory_kernels, 1);
  EXPECT_EQ(counts.library_calls, 1);
}

TEST(OddGraphs, ElementsOfATupleParameter) {
  EXPECT_EQ(plan_all("p = (f32[8], f32[8]) parameter(0)\n a = f32[8] get-tuple-element(p), index=0\n"
                     "b = f32[8] get-tuple-element(p), index=1\n ROOT s = f32[8] add(a, b)")
                .memory_kernels,
            1);
}

TEST(OddGraphs, DataDependentIndices) {
  plan_all(
      "t = f32[100,16] parameter(0)\n i = s32[7,1] parameter(1)\n j = s32[] parameter(2)\n z = s32[] "
      "constant(0)\n"
      "g = f32[7,16] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
      "index_vector_dim=1, slice_sizes={1,16}\n"
      "d = f32[2,16] dynamic-slice(g, j, z), dynamic_slice_sizes={2,16}\n"
      "n = f32[2,16] negate(d)\n ROOT u = f32[7,16] dynamic-update-slice(g, n, j, z)");
}

TEST(OddGraphs, IotaAndComparisons) {
  EXPECT_EQ(plan_all("i = s32[8,8] iota(), iota_dimension=0\n j = s32[8,8] iota(), iota_dimension=1\n"
                     "p = f32[8,8] parameter(0)\n n = f32[8,8] negate(p)\n"
                     "m = pred[8,8] compare(i, j), direction=GE\n ROOT s = f32[8,8] select(m, p, n)")
                .memory_kernels,
            1);
}

TEST(OddGraphs, Windows) {
  plan_all(
      "p = f32[32,32] parameter(0)\n z = f32[] constant(0)\n e = f32[32,32] tanh(p)\n"
      "w = f32[16,16] reduce-window(e, z), window={size=2x2 stride=2x2}, to_apply=sum\n"
      "ROOT n = f32[16,16] negate(w)");
}

TEST(OddGraphs, AResultListedTwice) {
  EXPECT_EQ(plan_all("p = f32[8] parameter(0)\n a = f32[8] abs(p)\n r = f32[2,4] reshape(a)\n"
                     "ROOT t = (f32[8], f32[2,4], f32[8]) tuple(a, r, a)")
                .memory_kernels,
            1);
}

TEST(OddGraphs, ACopyOfAParameterAsResult) {
  const PlanCounts counts = plan_all(
      "p = f32[8] parameter(0)\n c = f32[8] copy(p)\n n = f32[8] negate(p)\n ROOT t = (f32[8], f32[8]) "
      "tuple(c, n)");
  EXPECT_LE(counts.memory_kernels + counts.copies, 2);
}

TEST(OddGraphs, AReductionOfOneElementBesideOneOfTheOtherDimension) {
  plan_all(
      "p = f32[2100,1] parameter(0)\n q = f32[2100,1] parameter(1)\n r = f32[2100] parameter(2)\n"
      "z = f32[] constant(0)\n a = f32[2100] reduce(p, z), dimensions={1}, to_apply=sum\n"
      "s = f32[2100,1] subtract(p, q)\n e = f32[2100,1] erf(p)\n"
      "b = f32[1] reduce(e, z), dimensions={0}, to_apply=sum\n d = f32[2100] divide(a, r)\n"
      "ROOT t = (f32[2100], f32[2100,1], f32[1], f32[2100]) tuple(a, s, b, d)");
}

TEST(OddGraphs, OnlyOneTaskReadsARowThroughAPad) {
  plan_all(
      "p = f32[3,3] parameter(0)\n z = f32[] constant(0)\n"
      "s = f32[3] reduce(p, z), dimensions={1}, to_apply=sum\n d = f32[6] pad(s, z), padding=2_1_0\n"
      "a = f32[6] abs(d)\n r = f32[6] reverse(a), dimensions={0}\n"
      "ROOT c = f32[3] slice(r), slice={[3:6:1]}");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
