#include <gtest/gtest.h>

#include "core/hlo/hlo_text.h"
#include "core/index/index_map.h"

namespace stitchwork {
namespace TEST_FILE {

/// The map of operand `operand` of the root of an entry computation with this body, as text.
std::string root_map(const std::string& body, int operand) {
  const Graph graph = parse_hlo(
      "HloModule m\n"
      "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
      "ENTRY e {\n" +
          body + "\n}\n",
      "test.hlo");
  const Computation& entry = graph.entry_computation();
  const std::optional<IndexMap> map = operand_map(entry, entry.root, operand);
  return map ? to_text(*map) : "none";
}

TEST(OperandMap, Elementwise) {
  const std::string select =
      "p = pred[] parameter(0)  a = f32[2,3] parameter(1)  b = f32[2,3] parameter(2)\n"
      "ROOT r = f32[2,3] select(p, a, b)";
  EXPECT_EQ(root_map(select, 0), "(d0, d1) -> ()");
  EXPECT_EQ(root_map(select, 1), "(d0, d1) -> (d0, d1)");
  EXPECT_EQ(root_map("a = f32[4] parameter(0)  ROOT r = f16[4] convert(a)", 0), "(d0) -> (d0)");
}

TEST(OperandMap, BroadcastReadsTheNamedDimensions) {
  EXPECT_EQ(root_map("a = f32[5] parameter(0)  ROOT r = f32[3,5,2] broadcast(a), dimensions={1}", 0),
            "(d0, d1, d2) -> (d1)");
  EXPECT_EQ(root_map("a = f32[] parameter(0)  ROOT r = f32[3] broadcast(a), dimensions={}", 0), "(d0) -> ()");
}

TEST(OperandMap, ReshapeTouchesOnlyWhatChanges) {
  EXPECT_EQ(root_map("a = f32[128,12,64] parameter(0)  ROOT r = f32[128,768] reshape(a)", 0),
            "(d0, d1) -> (d0, d1 floordiv 64, d1 mod 64)");
  EXPECT_EQ(root_map("a = f32[128,768] parameter(0)  ROOT r = f32[1,128,12,64] reshape(a)", 0),
            "(d0, d1, d2, d3) -> (d1, d2 * 64 + d3)");
  EXPECT_EQ(root_map("a = f32[6,4] parameter(0)  ROOT r = f32[8,3] reshape(a)", 0),
            "(d0, d1) -> ((d0 * 3 + d1) floordiv 4, (d0 * 3 + d1) mod 4)");
  EXPECT_EQ(root_map("a = f32[1,1] parameter(0)  ROOT r = f32[] reshape(a)", 0), "() -> (0, 0)");
}

TEST(OperandMap, BitcastKeepsThePhysicalOrder) {
  EXPECT_EQ(root_map("a = f32[6,4] parameter(0)  ROOT r = f32[24] bitcast(a)", 0),
            "(d0) -> (d0 floordiv 4, d0 mod 4)");
  // A column-major matrix seen row-major is its transpose.
  EXPECT_EQ(root_map("a = f32[6,4]{0,1} parameter(0)  ROOT r = f32[4,6]{1,0} bitcast(a)", 0),
            "(d0, d1) -> (d1, d0)");
}

TEST(OperandMap, TransposeSliceReverse) {
  EXPECT_EQ(root_map("a = f32[2,3,5] parameter(0)  ROOT r = f32[5,2,3] transpose(a), dimensions={2,0,1}", 0),
            "(d0, d1, d2) -> (d1, d2, d0)");
  EXPECT_EQ(root_map("a = f32[10,8] parameter(0)  ROOT r = f32[3,8] slice(a), slice={[2:8:2], [0:8]}", 0),
            "(d0, d1) -> (d0 * 2 + 2, d1)");
  EXPECT_EQ(root_map("a = f32[4,3] parameter(0)  ROOT r = f32[4,3] reverse(a), dimensions={0}", 0),
            "(d0, d1) -> (-d0 + 3, d1)");
}

TEST(OperandMap, ConcatenateIsGuardedAlongItsAxis) {
  const std::string body =
      "a = f32[2,3] parameter(0)  b = f32[2,4] parameter(1)  c = f32[2,1] parameter(2)\n"
      "ROOT r = f32[2,8] concatenate(a, b, c), dimensions={1}";
  EXPECT_EQ(root_map(body, 0), "(d0, d1) -> (d0, d1) where d1 in 0..2");
  EXPECT_EQ(root_map(body, 1), "(d0, d1) -> (d0, d1 - 3) where d1 in 3..6");
  EXPECT_EQ(root_map(body, 2), "(d0, d1) -> (d0, 0) where d1 in 7..7");
}

TEST(OperandMap, PadIsGuardedByEdgesAndInterior) {
  const std::string body =
      "a = f32[4,3] parameter(0)  v = f32[] parameter(1)\n"
      "ROOT r = f32[12,3] pad(a, v), padding=2_3_1x-1_1";
  EXPECT_EQ(root_map(body, 0),
            "(d0, d1) -> (d0 floordiv 2 - 1, d1 + 1) where d0 in 2..8, d1 in 0..1, d0 mod 2 in 0..0");
  EXPECT_EQ(root_map(body, 1), "(d0, d1) -> ()");
}

TEST(OperandMap, ReduceReadsReducedDimensionsThroughSymbols) {
  const std::string body =
      "a = f32[4,5,6] parameter(0)  z = f32[] constant(0)\n"
      "ROOT r = f32[5] reduce(a, z), dimensions={0,2}, to_apply=sum";
  EXPECT_EQ(root_map(body, 0), "(d0)[s0 in 0..3, s1 in 0..5] -> (s0, d0, s1)");
  EXPECT_EQ(root_map(body, 1), "(d0) -> ()");
}

TEST(OperandMap, ReduceOfSeveralArraysHasTheDimsOfOneOutput) {
  const Graph graph = parse_hlo(
      "HloModule m\n"
      "both { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)  d = f32[] "
      "parameter(3)\n"
      "  s = f32[] add(a, c)  t = f32[] add(b, d)  ROOT u = (f32[], f32[]) tuple(s, t) }\n"
      "ENTRY e { x = f32[4,5] parameter(0)  y = f32[4,5] parameter(1)  z = f32[] constant(0)\n"
      "  r = (f32[4], f32[4]) reduce(x, y, z, z), dimensions={1}, to_apply=both\n"
      "  ROOT g = f32[4] get-tuple-element(r), index=1 }\n",
      "test.hlo");
  const Computation& entry = graph.entry_computation();
  const NodeId reduce = entry.find("r");
  EXPECT_EQ(to_text(operand_map(entry, reduce, 1).value()), "(d0)[s0 in 0..4] -> (d0, s0)");
  EXPECT_EQ(to_text(operand_map(entry, reduce, 2).value()), "(d0) -> ()");
  EXPECT_FALSE(operand_map(entry, entry.root, 0));
}

TEST(OperandMap, ReduceWindowIsGuardedByItsPadding) {
  EXPECT_EQ(root_map("a = f32[1,8] parameter(0)  z = f32[] constant(0)\n"
                     "ROOT r = f32[1,4] reduce-window(a, z), window={size=1x3 stride=1x2 pad=0_0x1_0}, "
                     "to_apply=sum",
                     0),
            "(d0, d1)[s0 in 0..2] -> (0, d1 * 2 + s0 - 1) where d1 * 2 + s0 in 1..8");
}

TEST(OperandMap, DotContractsThroughSymbols) {
  const std::string body =
      "a = f32[7,2,3,5] parameter(0)  b = f32[7,5,4] parameter(1)\n"
      "ROOT r = f32[7,2,3,4] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={3}, "
      "rhs_contracting_dims={1}";
  EXPECT_EQ(root_map(body, 0), "(d0, d1, d2, d3)[s0 in 0..4] -> (d0, d1, d2, s0)");
  EXPECT_EQ(root_map(body, 1), "(d0, d1, d2, d3)[s0 in 0..4] -> (d0, s0, d3)");
}

TEST(OperandMap, GatherReadsItsRowAtRunTime) {
  const std::string body =
      "a = f32[30522,768] parameter(0)  i = s32[1,128,1] parameter(1)\n"
      "ROOT r = f32[1,128,768] gather(a, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, "
      "index_vector_dim=2, slice_sizes={1,768}";
  EXPECT_EQ(root_map(body, 0), "(d0, d1, d2){r0 = node 1[0, d1, 0] in 0..30521} -> (r0, d2)");
  EXPECT_EQ(root_map(body, 1), "(d0, d1, d2)[s0 in 0..0] -> (0, d1, 0)");
}

TEST(OperandMap, GatherWithTwoIndicesAndBatchDims) {
  EXPECT_EQ(root_map("a = f32[9,8,7] parameter(0)  i = s32[2,5] parameter(1)\n"
                     "ROOT r = f32[5,3,2] gather(a, i), offset_dims={1,2}, collapsed_slice_dims={1}, "
                     "start_index_map={2,1}, index_vector_dim=0, slice_sizes={3,1,2}",
                     0),
            "(d0, d1, d2){r0 = node 1[0, d0] in 0..5, r1 = node 1[1, d0] in 0..7} -> (d1, r1, d2 + r0)");
  EXPECT_EQ(root_map("a = f32[6,8] parameter(0)  i = s32[6,5] parameter(1)\n"
                     "ROOT r = f32[6,5] gather(a, i), offset_dims={}, collapsed_slice_dims={1}, "
                     "start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
                     "index_vector_dim=2, slice_sizes={1,1}",
                     0),
            "(d0, d1){r0 = node 1[d0, d1] in 0..7} -> (d0, r0)");
}

TEST(OperandMap, DynamicSliceIsClamped) {
  const std::string body =
      "a = f32[10,8] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)\n"
      "ROOT r = f32[4,8] dynamic-slice(a, i, j), dynamic_slice_sizes={4,8}";
  EXPECT_EQ(root_map(body, 0), "(d0, d1){r0 = node 1[] in 0..6} -> (d0 + r0, d1)");
  EXPECT_EQ(root_map(body, 1), "(d0, d1) -> ()");
}

TEST(OperandMap, DynamicUpdateSliceTakesTheUpdateWhereItsConstraintHolds) {
  const std::string body =
      "a = f32[10,8] parameter(0)  u = f32[4,8] parameter(1)  i = s32[] parameter(2)  j = s32[] "
      "parameter(3)\n"
      "ROOT r = f32[10,8] dynamic-update-slice(a, u, i, j)";
  EXPECT_EQ(root_map(body, 0), "(d0, d1) -> (d0, d1)");
  EXPECT_EQ(root_map(body, 1), "(d0, d1){r0 = node 2[] in 0..6} -> (d0 - r0, d1) where d0 - r0 in 0..3");
}

TEST(OperandMap, SortsScattersAndTuplesAreNoMaps) {
  EXPECT_EQ(
      root_map("a = f32[4] parameter(0)  b = f32[4] parameter(1)  ROOT r = (f32[4], f32[4]) tuple(a, b)", 0),
      "none");
  EXPECT_EQ(root_map("a = f32[4,2] parameter(0)  i = s32[1] parameter(1)  u = f32[1,2] parameter(2)\n"
                     "ROOT r = f32[4,2] scatter(a, i, u), update_window_dims={1}, inserted_window_dims={0}, "
                     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
                     0),
            "none");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
