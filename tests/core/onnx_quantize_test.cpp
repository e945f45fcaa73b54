// Quantization beyond the ONNX project's node tests.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/onnx_node.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(OnnxQuantize, RoundsToEvenBeforeTheZeroPointAndSaturates) {
  OnnxNode node("QuantizeLinear", 13);
  node.input(f32_array({7}, {0.5, 1.5, 2.5, -0.5, 1e30, -1e30, INFINITY})).input(f32_array({}, {1}));
  node.input(onnx_array(DType::kU8, {}, {1}));
  expect_numbers(node.run()[0], {7}, {1, 3, 3, 1, 255, 0, 255});
}

TEST(OnnxQuantize, ALastBlockMayBeShorter) {
  OnnxNode node("DequantizeLinear", 21);
  node.input(onnx_array(DType::kS8, {1, 5}, {1, 2, 3, 4, 5})).input(f32_array({1, 3}, {1, 10, 100}));
  expect_numbers(node.set("axis", 1).set("block_size", 2).run()[0], {1, 5}, {1, 2, 30, 40, 500});
}

TEST(OnnxQuantize, ScalesThatDoNotFitAreRefused) {
  OnnxNode node("DequantizeLinear", 13);
  node.input(onnx_array(DType::kS8, {1, 3}, {1, 2, 3})).input(f32_array({2}, {1, 2}));
  EXPECT_NE(node.refusal().find("one number an index of dimension 1"), std::string::npos);
  OnnxNode old("DequantizeLinear", 10);
  old.input(onnx_array(DType::kS8, {1, 2}, {1, 2})).input(f32_array({2}, {1, 2}));
  EXPECT_NE(old.refusal().find("must be one number in operator set 10"), std::string::npos);
}

TEST(OnnxQuantize, DynamicQuantizationOfZerosIsZeros) {
  OnnxNode node("DynamicQuantizeLinear", 11, 3);
  const auto y = node.input(f32_array({2}, {0, 0})).run();
  expect_numbers(y[0], {2}, {0, 0});
  expect_numbers(y[2], {}, {0});
}

}  // namespace TEST_FILE
}  // namespace stitchwork
