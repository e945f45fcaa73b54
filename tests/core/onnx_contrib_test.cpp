// Operators of ONNX Runtime that exporters of transformers leave in models.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/onnx_node.h"

namespace stitchwork {
namespace TEST_FILE {

constexpr const char* kDomain = "com.microsoft";

OnnxNode contrib(const std::string& op, int outputs = 1) { return {op, 1, outputs, kDomain}; }

void expect_near(const Literal& found, const std::vector<std::int64_t>& dims,
                 const std::vector<double>& right) {
  ASSERT_EQ(found.shape.dims, dims);
  for (std::size_t i = 0; i < right.size(); ++i)
    EXPECT_NEAR(found.get_double(static_cast<std::int64_t>(i)), right[i], 2e-6) << i;
}

TEST(OnnxContrib, GeluOfASumInItsForms) {
  const auto exact = [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); };
  const auto fast = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  OnnxNode bias = contrib("BiasGelu");
  bias.input(f32_array({2, 2}, {-1, 0.5, 2, 3})).input(f32_array({2}, {0.25, -1}));
  expect_near(bias.run()[0], {2, 2}, {exact(-0.75), exact(-0.5), exact(2.25), exact(2)});
  OnnxNode with = contrib("FastGelu"), without = contrib("FastGelu");
  with.input(f32_array({2}, {1, -2})).input(f32_array({2}, {0.5, 0.5}));
  without.input(f32_array({2}, {1, -2}));
  expect_near(with.run()[0], {2}, {fast(1.5), fast(-1.5)});
  expect_near(without.run()[0], {2}, {fast(1), fast(-2)});
  OnnxNode quick = contrib("QuickGelu");
  quick.input(f32_array({1}, {1.5}));
  expect_near(quick.run()[0], {1}, {1.5 / (1 + std::exp(-1.702 * 1.5))});
}

TEST(OnnxContrib, SkipLayerNormalizationAlsoGivesItsSum) {
  OnnxNode node = contrib("SkipLayerNormalization", 4);
  node.input(f32_array({1, 1, 4}, {1, 2, 3, 4})).input(f32_array({1, 1, 4}, {0, 0, 1, 1}));
  node.input(f32_array({4}, {1, 2, 1, 1})).input(f32_array({4}, {0, 0, 0.5, 0}));
  node.input(f32_array({4}, {1, 1, 1, 1})).set("epsilon", 0.0);
  // 2, 3, 5, 6: mean 4, variance 2.5.
  const double d = 1 / std::sqrt(2.5);
  const auto out = node.run();
  expect_near(out[0], {1, 1, 4}, {-2 * d, -2 * d, d + 0.5, 2 * d});
  expect_near(out[1], {1, 1, 1}, {4});
  expect_near(out[3], {1, 1, 4}, {2, 3, 5, 6});
  OnnxNode simple = contrib("SkipSimplifiedLayerNormalization");
  simple.input(f32_array({1, 2}, {1, 3})).input(f32_array({1, 2}, {2, 1})).input(f32_array({2}, {2, 1}));
  simple.set("epsilon", 0.0);
  expect_near(simple.run()[0], {1, 2}, {2 * 3 / std::sqrt(12.5), 4 / std::sqrt(12.5)});
}

TEST(OnnxContrib, FusedMatMulTakesTransposes) {
  OnnxNode node = contrib("FusedMatMul");
  node.input(f32_array({2, 1}, {1, 2})).input(f32_array({3, 2}, {1, 0, 0, 1, 1, 1}));
  node.set("transA", 1).set("transB", 1).set("alpha", 0.5);
  expect_near(node.run()[0], {1, 3}, {0.5, 1, 1.5});
  node.set("transBatchA", 1);
  EXPECT_NE(node.refusal().find("transBatchA"), std::string::npos) << node.refusal();
}

TEST(OnnxContrib, WeightsOfFourBitsAreTwoAByteAndScaledByBlocks) {
  // Rows of five numbers in blocks of four: the second block's last three are padding.
  OnnxNode node = contrib("MatMulNBits");
  node.input(f32_array({1, 5}, {1, 10, 100, 1000, 10000}));
  node.input(onnx_array(DType::kU8, {2, 2, 2}, {0x98, 0x7a, 0x0f, 0, 0x00, 0x00, 0x08, 0}));
  node.input(f32_array({4}, {1, 2, 0.5, 1}));
  node.set("K", 5).set("N", 2).set("block_size", 4).set("bits", 4);
  // (8 9 10 7 | 15) - 8 and (0 0 0 0 | 8) - 8
  expect_near(node.run()[0], {1, 2}, {10 + 200 - 1000 + 2 * 7 * 10000.0, -4 * 1111.0});
  OnnxNode zeros = contrib("MatMulNBits");
  zeros.input(f32_array({1, 2}, {1, 10})).input(onnx_array(DType::kU8, {1, 1, 1}, {0x53}));
  zeros.input(f32_array({1}, {2})).input(onnx_array(DType::kU8, {1}, {0x03}));
  zeros.set("K", 2).set("N", 1).set("block_size", 2);
  expect_near(zeros.run()[0], {1, 1}, {2 * (0 + 2 * 10)});
}

/// softmax(scores) of the first `count` keys times values, by hand.
double attended(const std::vector<double>& scores, const std::vector<double>& values) {
  double sum = 0, total = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    sum += std::exp(scores[i]) * values[i];
    total += std::exp(scores[i]);
  }
  return sum / total;
}

TEST(OnnxContrib, AttentionSplitsOneProductAndMasksKeys) {
  // One head of one element: queries are x, keys 2 x, values 3 x + 1.
  const auto attention = [](const Literal* mask, bool causal) {
    OnnxNode node = contrib("Attention");
    node.input(f32_array({1, 3, 1}, {1, -1, 0.5})).input(f32_array({1, 3}, {1, 2, 3}));
    node.input(f32_array({3}, {0, 0, 1})).set("num_heads", 1);
    if (mask != nullptr) node.input(*mask);
    if (causal) node.set("unidirectional", 1);
    return node.run()[0];
  };
  const std::vector<double> v = {4, -2, 2.5};
  expect_near(attention(nullptr, false), {1, 3, 1},
              {attended({2, -2, 1}, v), attended({-2, 2, -1}, v), attended({1, -1, 0.5}, v)});
  const Literal lengths = onnx_array(DType::kS32, {1}, {2}), raw = onnx_array(DType::kS32, {1, 3}, {1, 1, 0});
  for (const Literal* mask : {&lengths, &raw})
    expect_near(attention(mask, false), {1, 3, 1},
                {attended({2, -2}, {4, -2}), attended({-2, 2}, {4, -2}), attended({1, -1}, {4, -2})});
  expect_near(attention(nullptr, true), {1, 3, 1},
              {4, attended({-2, 2}, {4, -2}), attended({1, -1, 0.5}, v)});
}

TEST(OnnxContrib, MultiHeadAttentionHasHeadsSideBySide) {
  OnnxNode node = contrib("MultiHeadAttention");
  node.input(f32_array({1, 1, 2}, {1, 2})).input(f32_array({1, 2, 2}, {1, 0, -1, 1}));
  node.input(f32_array({1, 2, 2}, {5, 6, 7, 8})).input(f32_array({6}, {0, 0, 1, 0, 0, -1}));
  node.set("num_heads", 2).set("scale", 1.0);
  expect_near(node.run()[0], {1, 1, 2}, {attended({2, 0}, {5, 7}), attended({0, 2}, {5, 7})});
}

}  // namespace TEST_FILE
}  // namespace stitchwork
