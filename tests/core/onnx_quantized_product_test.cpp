// Matrix products and convolutions of quantized numbers beyond the ONNX project's node tests.
#include <gtest/gtest.h>

#include "tests/support/onnx_node.h"

namespace stitchwork {
namespace TEST_FILE {

Literal u8_array(const std::vector<std::int64_t>& dims, const std::vector<double>& values) {
  return onnx_array(DType::kU8, dims, values);
}

TEST(OnnxQuantizedProduct, ZeroPointsAreOneARowOfTheLeftAndOneAColumnOfTheRight) {
  OnnxNode node("MatMulInteger", 10);
  node.input(u8_array({2, 2}, {1, 2, 3, 4})).input(u8_array({2, 2}, {5, 6, 7, 8}));
  node.input(u8_array({2}, {1, 3})).input(u8_array({2}, {5, 8}));
  // [[0, 1], [0, 1]] times [[0, -2], [2, 0]]
  expect_numbers(node.run()[0], {2, 2}, {2, 0, 2, 0});
}

TEST(OnnxQuantizedProduct, SumsAreNotHeldToTheTypeOfTheFactors) {
  OnnxNode node("MatMulInteger", 10);
  node.input(u8_array({1, 2}, {255, 255})).input(onnx_array(DType::kS8, {2, 1}, {-128, -128}));
  expect_numbers(node.run()[0], {1, 1}, {-65280});
}

TEST(OnnxQuantizedProduct, PaddingOfAConvolutionIsItsZeroPoint) {
  OnnxNode node("ConvInteger", 10);
  node.input(u8_array({1, 1, 3}, {12, 13, 14})).input(u8_array({2, 1, 2}, {1, 2, 3, 4}));
  node.input(u8_array({}, {10})).input(u8_array({2}, {0, 1}));
  node.set("pads", std::vector<std::int64_t>{1, 0});
  // 2, 3, 4 behind a 0, by (1, 2) and (2, 3).
  expect_numbers(node.run()[0], {1, 2, 3}, {4, 8, 11, 6, 13, 18});
}

TEST(OnnxQuantizedProduct, GroupsAreThoseOfTheConvolution) {
  OnnxNode node("ConvInteger", 10);
  node.input(u8_array({1, 2, 2}, {1, 2, 3, 4})).input(u8_array({2, 1, 1}, {1, 10})).set("group", 2);
  expect_numbers(node.run()[0], {1, 2, 2}, {1, 2, 30, 40});
}

/// x [1, 2, 2], one kernel element a channel, scales 0.5, (1, 0.25) and 2, zero points 1, 0 and 3.
OnnxNode quantized_convolution() {
  OnnxNode node("QLinearConv", 10);
  node.input(u8_array({1, 1, 2}, {9, 255})).input(f32_array({}, {0.5})).input(u8_array({}, {1}));
  node.input(u8_array({2, 1, 1}, {1, 2})).input(f32_array({2}, {1, 0.25})).input(u8_array({2}, {0, 0}));
  node.input(f32_array({}, {2})).input(u8_array({}, {3}));
  return node;
}

TEST(OnnxQuantizedProduct, EveryChannelHasAScaleOfItsOwn) {
  // (8, 254) / 4 + 3 and (16, 508) / 16 + 3, rounded to even.
  expect_numbers(quantized_convolution().run()[0], {1, 2, 2}, {5, 67, 4, 35});
}

TEST(OnnxQuantizedProduct, TheBiasIsAddedInTheScaleOfTheProduct) {
  OnnxNode node = quantized_convolution();
  node.input(onnx_array(DType::kS32, {2}, {40, -16}));
  expect_numbers(node.run()[0], {1, 2, 2}, {15, 77, 3, 34});
}

TEST(OnnxQuantizedProduct, ResultsSaturate) {
  OnnxNode node("QLinearMatMul", 10);
  node.input(u8_array({1, 1}, {255})).input(f32_array({}, {1})).input(u8_array({}, {0}));
  node.input(u8_array({1, 2}, {255, 0})).input(f32_array({2}, {1, 1})).input(u8_array({2}, {0, 200}));
  node.input(f32_array({}, {1})).input(u8_array({}, {7}));
  expect_numbers(node.run()[0], {1, 2}, {255, 0});
}

TEST(OnnxQuantizedProduct, ScalesAlongTheSummedDimensionAreRefused) {
  // A square product, where the wrong scale would fit the shape of the result.
  OnnxNode node("QLinearMatMul", 10);
  node.input(u8_array({2, 2}, {1, 2, 3, 4})).input(f32_array({1, 2}, {1, 2})).input(u8_array({}, {0}));
  node.input(u8_array({2, 2}, {1, 2, 3, 4})).input(f32_array({}, {1})).input(u8_array({}, {0}));
  node.input(f32_array({}, {1})).input(u8_array({}, {0}));
  EXPECT_NE(node.refusal().find("one number or one a row of u8[2,2] is needed"), std::string::npos);
}

TEST(OnnxQuantizedProduct, ZeroPointsOfAnotherTypeAreRefused) {
  OnnxNode node("MatMulInteger", 10);
  node.input(u8_array({1, 1}, {1})).input(u8_array({1, 1}, {1})).input(onnx_array(DType::kS8, {}, {1}));
  EXPECT_NE(node.refusal().find("input 0 is u8, its zero point s8"), std::string::npos);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
