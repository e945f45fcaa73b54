// Transforms, windows and sequences beyond the ONNX project's node tests.
#include <gtest/gtest.h>

#include "tests/support/onnx_node.h"

namespace stitchwork {
namespace TEST_FILE {

OnnxNode dft(const std::vector<std::int64_t>& dims, const std::vector<double>& x) {
  OnnxNode node("DFT", 20);
  node.input(f32_array(dims, x));
  return node;
}

TEST(OnnxSignal, TransformOfAnImpulseTurns) {
  const auto y = dft({1, 4, 1}, {0, 1, 0, 0}).run();
  expect_numbers(y[0], {1, 4, 2}, {1, 0, 0, -1, -1, 0, 0, 1});
  const auto back = dft({1, 4, 2}, {1, 0, 0, -1, -1, 0, 0, 1}).set("inverse", 1).run();
  expect_numbers(back[0], {1, 4, 2}, {0, 0, 1, 0, 0, 0, 0, 0});
}

TEST(OnnxSignal, OneSidedTransformsComeBackForEvenAndOddLengths) {
  for (const std::vector<double>& x : {std::vector<double>{3, 1, 4, 1}, std::vector<double>{3, 1, 4, 1, 5}}) {
    const auto length = static_cast<std::int64_t>(x.size());
    const auto half = dft({1, length, 1}, x).set("onesided", 1).run();
    EXPECT_EQ(half[0].shape.dims, (std::vector<std::int64_t>{1, length / 2 + 1, 2}));
    OnnxNode node = dft(half[0].shape.dims, numbers_of(half[0]));
    node.known(onnx_array(DType::kS64, {}, {static_cast<double>(length)}))
        .set("inverse", 1)
        .set("onesided", 1);
    expect_numbers(node.run()[0], {1, length, 1}, x, 1e-5);
  }
}

TEST(OnnxSignal, LengthsCutOrPadTheSignal) {
  OnnxNode shorter = dft({1, 3, 1}, {1, 2, 4});
  expect_numbers(shorter.known(onnx_array(DType::kS64, {}, {2})).run()[0], {1, 2, 2}, {3, 0, -1, 0});
  OnnxNode longer = dft({1, 1, 1}, {5});
  expect_numbers(longer.known(onnx_array(DType::kS64, {}, {2})).run()[0], {1, 2, 2}, {5, 0, 5, 0});
}

TEST(OnnxSignal, OneSidedTransformsOfComplexSignalsAreRefused) {
  EXPECT_NE(dft({1, 2, 2}, {1, 0, 0, 0}).set("onesided", 1).refusal().find("needs real input"),
            std::string::npos);
}

TEST(OnnxSignal, AWindowOfOneElementIsWholeWherePeriodic) {
  OnnxNode node("HannWindow", 17);
  expect_numbers(node.known(onnx_array(DType::kS64, {}, {1})).run()[0], {1}, {0});
  EXPECT_NE(node.set("periodic", 0).refusal().find("not defined"), std::string::npos);
}

TEST(OnnxSequence, SplitAndConcatenateAreInverse) {
  OnnxNode node("SplitToSequence", 11, 1);
  node.input(f32_array({3, 2}, {1, 2, 3, 4, 5, 6})).set("axis", 0).set("keepdims", 0);
  const auto parts = node.run();
  ASSERT_EQ(parts.size(), 3U);
  expect_numbers(parts[2], {2}, {5, 6});
}

TEST(OnnxOperators, WhatIsNotReadSaysWhy) {
  OnnxNode node("RandomNormal", 13);
  EXPECT_NE(node.refusal().find("draws random numbers"), std::string::npos);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
