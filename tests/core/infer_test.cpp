// What infer_shape accepts and refuses; element-wise ops are tested over the table in elementwise_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/graph/window.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

const std::string kHead =
    "HloModule m\nsum { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b) }\n";

/// The root's line against operands x f32[4,6], y f32[6,5], s f32[], i s32[3,1], u f32[3,6].
void parse(const std::string& root) {
  parse_hlo(
      kHead +
          "ENTRY e {\n  x = f32[4,6] parameter(0)\n  y = f32[6,5] parameter(1)\n  s = f32[] parameter(2)\n"
          "  i = s32[3,1] parameter(3)\n  u = f32[3,6] parameter(4)\n  n = s32[] parameter(5)\n  ROOT " +
          root + "\n}\n",
      "test");
}

std::string refusal(const std::string& root) {
  try {
    parse(root);
  } catch (const Error& error) {
    EXPECT_EQ(error.line(), 12) << error.what();
    return error.message();
  }
  return "accepted";
}

struct Row {
  const char* accepted;
  const char* refused;
  const char* because;
};

const Row kRows[] = {
    {"r = f32[4,6,2] broadcast(x), dimensions={0,1}", "r = f32[4,5,2] broadcast(x), dimensions={0,1}",
     "extent 5"},
    {"r = f32[2,4,6] broadcast(x), dimensions={1,2}", "r = f32[2,4,6] broadcast(x), dimensions={1}",
     "lists 1"},
    {"r = f32[24] reshape(x)", "r = f32[25] reshape(x)", "from 24 to 25"},
    {"r = f32[6,4] transpose(x), dimensions={1,0}", "r = f32[6,4] transpose(x), dimensions={1,1}", "twice"},
    {"r = f32[2,6] slice(x), slice={[0:4:2], [0:6]}", "r = f32[2,6] slice(x), slice={[0:5:2], [0:6]}",
     "[0:5:2]"},
    {"r = f32[4,6] reverse(x), dimensions={0}", "r = f32[4,6] reverse(x), dimensions={2}", "dimension 2"},
    {"r = f32[7,6] concatenate(x, u), dimensions={0}", "r = f32[7,6] concatenate(x, u), dimensions={1}",
     "operand 1 is [3,6]"},
    {"r = f32[5,8] pad(x, s), padding=0_1x1_1", "r = f32[5,8] pad(x, x), padding=0_1x1_1", "scalar"},
    {"r = f32[2,6] pad(x, s), padding=-1_-1x0_0", "r = f32[0,6] pad(x, s), padding=-3_-2x0_0", "dimension 0"},
    {"r = f32[4] reduce(x, s), dimensions={1}, to_apply=sum",
     "r = f32[4] reduce(x, s), dimensions={2}, to_apply=sum", "dimension 2"},
    {"r = f32[] reduce(x, s), dimensions={0,1}, to_apply=sum",
     "r = f32[] reduce(x, y), dimensions={0,1}, to_apply=sum", "scalar"},
    {"r = f32[4,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
     "r = f32[4,5] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "contracting"},
    {"r = f32[3,6] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
     "index_vector_dim=1, slice_sizes={1,6}",
     "r = f32[3,6] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
     "index_vector_dim=1, slice_sizes={1,7}",
     "slice size 7"},
    {"r = f32[2,6] dynamic-slice(x, n, n), dynamic_slice_sizes={2,6}",
     "r = f32[2,6] dynamic-slice(x, n), dynamic_slice_sizes={2,6}", "1 start indices"},
    {"r = f32[4,6] dynamic-update-slice(x, u, n, n)", "r = f32[6,5] dynamic-update-slice(y, u, n, n)",
     "exceeds"},
    {"r = f32[2,6] reduce-window(x, s), window={size=2x1 stride=2x1}, to_apply=sum",
     "r = f32[2,6] reduce-window(x, s), window={size=2 stride=2}, to_apply=sum", "1 dimensions"},
    {"r = f32[4,6] iota(), iota_dimension=1", "r = f32[4,6] iota(), iota_dimension=2", "dimension 2"},
    {"r = (f32[4,6], f32[]) tuple(x, s)", "r = (f32[4,6], f32[1]) tuple(x, s)", ""},
    {"r = f32[] call(s, s), to_apply=sum", "r = f32[] call(x, s), to_apply=sum", "parameter 0"},
    {"r = f32[4,6] exponential(x)", "r = s32[] exponential(n)", "does not take s32"},
    {"r = pred[4,6] compare(x, x), direction=LT", "r = f32[4,6] compare(x, x), direction=LT", ""},
    {"r = f32[4,6] clamp(s, x, s)", "r = f32[4,6] clamp(s, x, y)", "different dimensions"},
    {"r = f32[4,6] add(x, x)", "r = f32[4,6] add(x, s)", "different dimensions [4,6] and []"},
    {"r = s32[] add(n, n)", "r = s32[] add(n, s)", "different types s32 and f32"},
};

TEST(InferShape, AcceptsWhatFits) {
  for (const Row& row : kRows) EXPECT_NO_THROW(parse(row.accepted)) << row.accepted;
}

TEST(InferShape, RefusesWhatDoesNotAndSaysWhy) {
  for (const Row& row : kRows) EXPECT_THAT(refusal(row.refused), HasSubstr(row.because)) << row.refused;
  for (const Row& row : kRows) EXPECT_NE(refusal(row.refused), "accepted") << row.refused;
}

TEST(InferShape, ConvolutionReadsItsLabels) {
  Node node;
  node.op = Op::kConvolution;
  node.attrs.other = {{"window", "{size=3x3 stride=2x2 pad=1_1x1_1}"}, {"dim_labels", "bf01_oi01->b01f"}};
  const Shape image = Shape::array(DType::kF16, {8, 3, 32, 30}),
              kernel = Shape::array(DType::kF16, {16, 3, 3, 3});
  const Shape* operands[] = {&image, &kernel};
  EXPECT_EQ(infer_shape(Graph{}, node, operands), Shape::array(DType::kF16, {8, 16, 15, 16}));
  node.attrs.other.emplace_back("feature_group_count", "3");
  EXPECT_THROW(infer_shape(Graph{}, node, operands), Error);
  node.attrs.other = {{"window", "{size=3x3}"}, {"dim_labels", "bf01_oi01-b01f"}};
  EXPECT_THROW(infer_shape(Graph{}, node, operands), Error);
}

TEST(InferShape, ProductsTakeTheDeclaredElementType) {
  EXPECT_NO_THROW(
      parse_hlo("HloModule m\nENTRY e {\n  a = bf16[2,3] parameter(0)\n  ROOT d = f32[2,2] dot(a, a), "
                "lhs_contracting_dims={1}, rhs_contracting_dims={1}\n}",
                "test"));
}

TEST(Window, ReadsEveryField) {
  const auto window =
      parse_window("{size=3x2 stride=2x1 pad=0_1x-1_2 lhs_dilate=1x2 rhs_dilate=3x1 rhs_reversal=0x1}");
  ASSERT_EQ(window.size(), 2u);
  EXPECT_EQ(window[0], (WindowDim{3, 2, 0, 1, 1, 3, false}));
  EXPECT_EQ(window[1], (WindowDim{2, 1, -1, 2, 2, 1, true}));
  EXPECT_TRUE(parse_window("{}").empty());
}

TEST(Window, RefusesNonsense) {
  for (const char* text :
       {"{size=3x}", "{size}", "{size=3 stride=2x2}", "{colour=3}", "{size=0}", "{size=3 pad=a_b}"})
    EXPECT_THROW(parse_window(text), Error) << text;
}

TEST(Window, PositionsCountWithDilationAndPadding) {
  EXPECT_EQ(window_positions(5, {.size = 3, .stride = 2}), 2);
  EXPECT_EQ(window_positions(5, {.size = 3, .pad_low = 1, .pad_high = 1}), 5);
  EXPECT_EQ(window_positions(5, {.size = 3, .window_dilation = 2}), 1);
  EXPECT_EQ(window_positions(5, {.size = 1, .base_dilation = 2}), 9);
  EXPECT_EQ(window_positions(2, {.size = 3}), 0);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
