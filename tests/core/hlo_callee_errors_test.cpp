// What an op passes to the computations it applies, and what they give, is checked where it is read: neither
// passes nor planners nor the evaluator meet a computation that does not fit.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

/// The message of reading `line` (8) behind parameters x, y f32[4,8], i s32[], z f32[], with these to apply.
std::string message(const std::string& line) {
  try {
    parse_hlo(
        "HloModule m\n"
        "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
        "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = pred[] compare(a, b), direction=LT "
        "}\n"
        "isum { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }\n"
        "id { ROOT a = f32[4,8] parameter(0) }\n"
        "ENTRY e { x = f32[4,8] parameter(0)  y = f32[4,8] parameter(1)  i = s32[] parameter(2)\n"
        "  z = f32[] constant(0)\n  " +
            line + "\n}\n",
        "bad.hlo");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(HloCalleeErrors, MapPassesEveryParameterAScalarOfItsOperand) {
  EXPECT_EQ(message("m = f32[4,8] map(x, y), dimensions={0,1}, to_apply=sum"), "");
  EXPECT_EQ(message("m = f32[4,8] map(x), dimensions={0,1}, to_apply=sum"),
            "bad.hlo:8:16: map applies 'sum', which has 2 parameters, 1 are needed");
  EXPECT_EQ(message("m = s32[4,8] map(x, y), dimensions={0,1}, to_apply=isum"),
            "bad.hlo:8:16: map passes f32[] as parameter 0 of 'isum', which is s32[]");
}

TEST(HloCalleeErrors, AReducerAccumulatesWhatItIsGiven) {
  EXPECT_EQ(message("r = s32[4] reduce(x, i), dimensions={1}, to_apply=isum"),
            "bad.hlo:8:14: reduce passes f32[] as parameter 1 of 'isum', which is s32[]");
  EXPECT_EQ(message("r = pred[4] reduce(x, z), dimensions={1}, to_apply=less"),
            "bad.hlo:8:15: reduce applies 'less', which gives pred[] for a parameter f32[]");
  EXPECT_EQ(message("r = f32[4] reduce(x, i), dimensions={1}, to_apply=sum"),
            "bad.hlo:8:14: reduce passes s32[] as parameter 0 of 'sum', which is f32[]");
}

TEST(HloCalleeErrors, AReducerMayBeWiderThanItsInput) {
  EXPECT_EQ(message("h = bf16[4,8] convert(x)\n  r = f32[4] reduce(h, z), dimensions={1}, to_apply=sum"), "");
}

TEST(HloCalleeErrors, SortComparesElementsOfItsOperands) {
  EXPECT_EQ(message("s = f32[4,8] sort(x), dimensions={1}, to_apply=less"), "");
  EXPECT_EQ(message("s = f32[4,8] sort(x), dimensions={1}, to_apply=sum"),
            "bad.hlo:8:16: sort applies 'sum', which gives f32[], pred[] is needed");
  EXPECT_EQ(message("s = (f32[4,8], f32[4,8]) sort(x, y), dimensions={1}, to_apply=less"),
            "bad.hlo:8:28: sort applies 'less', which has 2 parameters, 4 are needed");
  EXPECT_EQ(message("s = f32[4,8] sort(x), dimensions={2}, to_apply=less"),
            "bad.hlo:8:16: sort names dimension 2 of an operand of rank 2");
  EXPECT_EQ(message("s = f32[4,8] sort(x), to_apply=less"), "bad.hlo:8:16: sort lacks dimensions=");
}

TEST(HloCalleeErrors, SelectAndScatterNeedsAChoiceAndASum) {
  const std::string op = "s = f32[4,8] select-and-scatter(x, y, z), window={size=1x1}, select=";
  EXPECT_EQ(message(op + "less, scatter=sum"), "");
  EXPECT_EQ(message(op + "sum, scatter=sum"),
            "bad.hlo:8:16: select-and-scatter applies 'sum', which gives f32[], pred[] is needed");
  EXPECT_EQ(message("s = f32[4,8] select-and-scatter(x, y, z), window={size=1x2}, select=less, scatter=sum"),
            "bad.hlo:8:16: the source of select-and-scatter is f32[4,8], its windows give f32[4,7]");
}

TEST(HloCalleeErrors, LoopsAndBranchesTakeOneParameter) {
  EXPECT_EQ(message("w = f32[4,8] while(x), condition=less, body=id"),
            "bad.hlo:8:16: while applies 'less', which has 2 parameters, 1 are needed");
  EXPECT_EQ(message("w = f32[4,8] conditional(i, x, y), branch_computations={id, id}"), "");
  EXPECT_EQ(message("w = f32[4,8] conditional(i, x), branch_computations={id, id}"),
            "bad.hlo:8:16: conditional of 2 branches has 2 operands, 3 are needed");
  EXPECT_EQ(message("w = f32[4,8] conditional(i, x, z), branch_computations={id, id}"),
            "bad.hlo:8:16: conditional passes f32[] as parameter 0 of 'id', which is f32[4,8]");
  EXPECT_EQ(
      message("w = f32[4,8] conditional(x, x, y), true_computation=id, false_computation=id"),
      "bad.hlo:8:16: conditional of 2 branches is decided by f32[4,8]; it is pred[] for two branches, or "
      "s32[]");
}

TEST(HloCalleeErrors, AnAsynchronousCallTakesItsOperands) {
  EXPECT_EQ(message("a = ((f32[4,8], f32[4,8]), f32[4,8]) async-start(x, y), calls=id"),
            "bad.hlo:8:40: async-start applies 'id', which has 1 parameters, 2 are needed");
}

TEST(HloCalleeErrors, ScatterNamesDimensionsThatFit) {
  const auto scatter = [](const std::string& window, const std::string& vector_dim) {
    return message(
        "q = s32[2,1] parameter(3)\n  u = f32[2,8] parameter(4)\n  s = f32[4,8] scatter(x, q, u), "
        "update_window_dims={" +
        window + "}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=" +
        vector_dim + ", to_apply=sum");
  };
  EXPECT_EQ(scatter("1", "1"), "");
  EXPECT_EQ(scatter("2", "1"), "bad.hlo:10:16: scatter names dimension 2 of an operand of rank 2");
  EXPECT_EQ(scatter("0", "1"),
            "bad.hlo:10:16: the dimensions [8] of scatter's update outside its windows are not "
            "those [2] of its indices");
  EXPECT_EQ(scatter("1", "0"),
            "bad.hlo:10:16: scatter's scatter_dims_to_operand_dims has 1 entries, an index "
            "vector 2");
  EXPECT_EQ(message("s = f32[4,8] scatter(x, i, y), to_apply=sum"),
            "bad.hlo:8:16: scatter lacks update_window_dims=");
}

TEST(HloCalleeErrors, GatherDropsOnlyDimensionsOfOneElement) {
  EXPECT_EQ(message("q = s32[3,1] parameter(3)\n  g = f32[3,8] gather(x, q), offset_dims={1}, "
                    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={2,8}"),
            "bad.hlo:9:16: gather's slice size 2 in dimension 0, which its result lacks, is not 1");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
