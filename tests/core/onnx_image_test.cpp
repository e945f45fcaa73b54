// Resize, Upsample and sampling beyond the ONNX project's node tests.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/onnx_node.h"

namespace stitchwork {
namespace TEST_FILE {

OnnxNode resize(std::int64_t version, const std::vector<double>& x, double scale) {
  OnnxNode node("Resize", version);
  node.input(f32_array({static_cast<std::int64_t>(x.size())}, x));
  if (version >= 11) node.absent();
  node.known(f32_array({1}, {scale}));
  return node;
}

OnnxNode resize_to(const std::vector<double>& x, double size) {
  OnnxNode node("Resize", 19);
  node.input(f32_array({static_cast<std::int64_t>(x.size())}, x)).absent().absent();
  node.known(onnx_array(DType::kS64, {1}, {size}));
  return node;
}

TEST(OnnxResize, NearestModesPartAtHalves) {
  // Four of two, asymmetric: the results lie at 0, 0.5, 1 and 1.5.
  const auto picks = [](const char* mode) {
    OnnxNode node = resize_to({1, 2}, 4);
    node.set("coordinate_transformation_mode", "asymmetric").set("nearest_mode", mode);
    return numbers_of(node.run()[0]);
  };
  EXPECT_EQ(picks("round_prefer_floor"), (std::vector<double>{1, 1, 2, 2}));
  EXPECT_EQ(picks("round_prefer_ceil"), (std::vector<double>{1, 2, 2, 2}));
  EXPECT_EQ(picks("floor"), (std::vector<double>{1, 1, 2, 2}));
  EXPECT_EQ(picks("ceil"), (std::vector<double>{1, 2, 2, 2}));
}

TEST(OnnxResize, ScalesPassOverAPolicyOfSizes) {
  OnnxNode node = resize(19, {1, 2}, 2);
  node.set("keep_aspect_ratio_policy", "stretch");
  EXPECT_EQ(numbers_of(node.run()[0]), (std::vector<double>{1, 1, 2, 2}));
}

TEST(OnnxResize, LinearReachesBeyondTheBorderByItsElement) {
  // half_pixel: the results lie at -0.25, 0.25, 0.75 and 1.25.
  expect_numbers(resize_to({1, 3}, 4).set("mode", "linear").run()[0], {4}, {1, 1.5, 2.5, 3});
}

TEST(OnnxResize, PytorchHalfPixelTakesTheFirstElementForOne) {
  OnnxNode node = resize_to({1, 3, 5}, 1);
  node.set("mode", "linear").set("coordinate_transformation_mode", "pytorch_half_pixel");
  expect_numbers(node.run()[0], {1}, {1});
}

TEST(OnnxResize, CropAndResizeFillsWhatLiesOutside) {
  OnnxNode node("Resize", 13);
  node.input(f32_array({3}, {1, 2, 3})).known(f32_array({2}, {0.5, 1.5})).absent();
  node.known(onnx_array(DType::kS64, {1}, {3}));
  node.set("mode", "linear").set("coordinate_transformation_mode", "tf_crop_and_resize");
  node.set("extrapolation_value", 9.0);
  expect_numbers(node.run()[0], {3}, {2, 3, 9});  // at 1, 2 and 3
}

TEST(OnnxResize, AntialiasAveragesWhatAnElementStandsFor) {
  // Two of four by a triangle of width 2 on either side: at 0.5 weights 3/8, 3/8, 1/8 and 1/8 of the border.
  const auto y = resize_to({8, 16, 24, 32}, 2).set("mode", "linear").set("antialias", 1).run();
  expect_numbers(y[0], {2}, {(8 * 4 + 16 * 3 + 24) / 8.0, (16 + 24 * 3 + 32 * 4) / 8.0});
}

TEST(OnnxResize, EmptyDimensionsStayEmpty) {
  OnnxNode node("Resize", 19);
  node.input(f32_array({0, 2}, {})).absent().absent().known(onnx_array(DType::kS64, {2}, {0, 4}));
  expect_numbers(node.run()[0], {0, 4}, {});
}

TEST(OnnxResize, OldVersionsRepeatOnlyByWholeScales) {
  expect_numbers(resize(10, {1, 2}, 2).run()[0], {4}, {1, 1, 2, 2});
  EXPECT_NE(resize(10, {1, 2}, 1.5).refusal().find("not defined in operator set 10"), std::string::npos);
  EXPECT_NE(resize(10, {1, 2}, 2).set("mode", "linear").refusal(), "");
}

TEST(OnnxResize, ScalesThatAreNoNumbersAreRefused) {
  for (const double scale : {0.0, -1.0, static_cast<double>(INFINITY), static_cast<double>(NAN), 1e30})
    EXPECT_NE(resize(19, {1, 2}, scale).refusal(), "") << scale;
}

TEST(OnnxResize, LinearModeOfIntegersIsRefused) {
  OnnxNode node("Resize", 19);
  node.input(onnx_array(DType::kU8, {2}, {1, 2})).absent().known(f32_array({1}, {2}));
  EXPECT_NE(node.set("mode", "linear").refusal().find("rounded"), std::string::npos);
}

/// A row of four elements sampled at one place (align_corners: -1 is the first element, 1 the last).
double sampled(double at, const char* mode, const char* padding) {
  OnnxNode node("GridSample", 20);
  node.input(f32_array({1, 1, 4}, {1, 2, 4, 8})).input(f32_array({1, 1, 1}, {at}));
  node.set("mode", mode).set("padding_mode", padding).set("align_corners", 1);
  return numbers_of(node.run()[0])[0];
}

TEST(OnnxGridSample, PlacesBeyondTheBorder) {
  const double beyond = 1 + 2.0 / 3;  // element 4, one after the last
  EXPECT_NEAR(sampled(beyond, "linear", "zeros"), 0, 1e-5);
  EXPECT_NEAR(sampled(beyond, "linear", "border"), 8, 1e-5);
  EXPECT_NEAR(sampled(beyond, "linear", "reflection"), 4, 1e-5);
  EXPECT_NEAR(sampled(1 + 1.0 / 3, "linear", "zeros"), 4, 1e-5);  // half way to the zero
  EXPECT_NEAR(sampled(-1e30, "linear", "zeros"), 0, 0);
  EXPECT_NEAR(sampled(1e30, "nearest", "border"), 8, 0);
}

TEST(OnnxGridSample, CubicMeetsTheElementsThemselves) {
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(sampled(-1 + i * 2.0 / 3, "cubic", "border"), std::exp2(i), 1e-4) << i;
}

TEST(OnnxRoiAlign, AMaximumIsOfWeightedElements) {
  for (const char* mode : {"avg", "max"}) {
    OnnxNode node("RoiAlign", 16);
    node.input(f32_array({1, 1, 2, 2}, {4, 8, 12, 16})).input(f32_array({1, 4}, {0, 0, 2, 2}));
    node.input(onnx_array(DType::kS64, {1}, {0})).set("mode", mode).set("sampling_ratio", 1);
    node.set("output_height", 1).set("output_width", 1);
    // The only sample lies at (0.5, 0.5): a quarter of every element.
    expect_numbers(node.run()[0], {1, 1, 1, 1}, {mode == std::string("avg") ? 10.0 : 4.0});
  }
}

TEST(OnnxImage, CenterCropPadKeepsTheSmallerPartFirst) {
  OnnxNode node("CenterCropPad", 18);
  node.input(f32_array({1, 4}, {1, 2, 3, 4})).known(onnx_array(DType::kS64, {2}, {2, 1}));
  expect_numbers(node.run()[0], {2, 1}, {2, 0});
}

TEST(OnnxImage, Col2ImAddsWhereBlocksOverlap) {
  OnnxNode node("Col2Im", 18);
  node.input(f32_array({1, 2, 2}, {1, 2, 10, 20}));  // blocks of 2 in a row of 3: (1, 10), (2, 20)
  node.known(onnx_array(DType::kS64, {1}, {3})).known(onnx_array(DType::kS64, {1}, {2}));
  expect_numbers(node.run()[0], {1, 1, 3}, {1, 12, 20});
}

}  // namespace TEST_FILE
}  // namespace stitchwork
