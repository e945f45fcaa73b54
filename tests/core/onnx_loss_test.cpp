// Losses and Dropout beyond the ONNX project's node tests.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/onnx_node.h"

namespace stitchwork {
namespace TEST_FILE {

OnnxNode likelihood(const std::vector<double>& targets) {
  OnnxNode node("NegativeLogLikelihoodLoss", 13);
  node.input(f32_array({2, 3}, {-1, -2, -3, -4, -5, -6}));
  node.input(onnx_array(DType::kS64, {2}, targets));
  return node;
}

TEST(OnnxLoss, TheMeanIsOverTargetsThatCount) {
  expect_numbers(likelihood({2, 0}).run()[0], {}, {(3 + 4) / 2.0});
  expect_numbers(likelihood({2, -100}).set("ignore_index", -100).run()[0], {}, {3});
}

TEST(OnnxLoss, AWeightedMeanIsOverTheWeights) {
  OnnxNode node = likelihood({2, 0});
  expect_numbers(node.input(f32_array({3}, {0.5, 7, 2})).run()[0], {}, {(3 * 2 + 4 * 0.5) / 2.5});
}

TEST(OnnxLoss, AnInfiniteScoreOfAnotherClassIsNotSeen) {
  OnnxNode node("NegativeLogLikelihoodLoss", 13);
  node.input(f32_array({1, 2}, {-INFINITY, -1})).input(onnx_array(DType::kS32, {1}, {1}));
  expect_numbers(node.set("reduction", "none").run()[0], {1}, {1});
}

TEST(OnnxLoss, ATargetOfAnotherShapeIsRefused) {
  OnnxNode node("NegativeLogLikelihoodLoss", 13);
  node.input(f32_array({1, 2}, {0, 0})).input(onnx_array(DType::kS32, {2}, {1, 0}));
  EXPECT_NE(node.refusal().find("its dimensions must be [1]"), std::string::npos);
}

TEST(OnnxRandom, DropoutPassesUnlessItTrains) {
  OnnxNode node("Dropout", 13, 2);
  node.input(f32_array({2}, {1, 2})).known(f32_array({}, {0.5}));
  const auto y = node.run();
  expect_numbers(y[0], {2}, {1, 2});
  expect_numbers(y[1], {2}, {1, 1});
  node.known(onnx_array(DType::kPred, {}, {1}));
  EXPECT_NE(node.refusal().find("draws random numbers"), std::string::npos);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
