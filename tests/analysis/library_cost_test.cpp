#include "analysis/judge/library_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain/explain.h"
#include "analysis/planners/planner.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

MatrixProduct product_of(const std::string& parameters, const std::string& call) {
  const Graph graph = testing::graph_of(parameters + "  ROOT r = " + call);
  const Computation& computation = graph.entry_computation();
  return matrix_product(computation, computation.node(computation.find("r"))).value();
}

void expect_product(const MatrixProduct& p, double batch, double m, double n, double k) {
  EXPECT_EQ(p.batch, batch);
  EXPECT_EQ(p.m, m);
  EXPECT_EQ(p.n, n);
  EXPECT_EQ(p.k, k);
}

TEST(MatrixProduct, OfADotHasItsBatchFreeAndContractedDimensions) {
  const MatrixProduct p =
      product_of("  a = f16[4,7,32] parameter(0)\n  b = f16[4,32,9] parameter(1)\n",
                 "f32[4,7,9] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                 "rhs_contracting_dims={1}");
  expect_product(p, 4, 7, 9, 32);
  EXPECT_EQ(p.operands, DType::kF16);
  EXPECT_EQ(p.bytes, 2 * 4 * 7 * 32 + 2 * 4 * 32 * 9 + 4 * 4 * 7 * 9);
}

/// As JAX lowers products in half precision for the CPU.
TEST(MatrixProduct, OfWidenedOperandsHasTheirNarrowValues) {
  const auto values = [](const std::string& a, const std::string& b) {
    return product_of("  p = " + a + "[8,8] parameter(0)\n  q = " + b +
                          "[8,8] parameter(1)\n  x = f32[8,8] convert(p)\n  y = f32[8,8] convert(q)\n"
                          "  z = f32[8,8] transpose(y), dimensions={1,0}\n",
                      "f16[8,8] dot(x, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
        .values;
  };
  EXPECT_EQ(values("f16", "f16"), DType::kF16);
  EXPECT_EQ(values("bf16", "bf16"), DType::kBF16);
  EXPECT_EQ(values("f16", "bf16"), std::nullopt);
  EXPECT_EQ(values("f16", "s32"), std::nullopt);
  EXPECT_EQ(values("f16", "f64"), std::nullopt);
}

TEST(MatrixProduct, OfAnEmptyDotIsEmpty) {
  const MatrixProduct p =
      product_of("  a = f32[7,0] parameter(0)\n  b = f32[0,9] parameter(1)\n",
                 "f32[7,9] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  EXPECT_EQ(p.m * p.n * p.k, 0);
}

TEST(MatrixProduct, OfAConvolutionIsThatOfPositionsAndFeatures) {
  expect_product(
      product_of("  a = f32[2,16,16,3] parameter(0)\n  b = f32[3,3,3,8] parameter(1)\n",
                 "f32[2,14,14,8] convolution(a, b), window={size=3x3}, dim_labels=b01f_01io->b01f"),
      1, 2 * 14 * 14, 8, 3 * 3 * 3);
}

TEST(MatrixProduct, OfAGroupedConvolutionIsOneForEachGroup) {
  expect_product(
      product_of("  a = f32[2,16,16,6] parameter(0)\n  b = f32[3,3,2,12] parameter(1)\n",
                 "f32[2,14,14,12] convolution(a, b), window={size=3x3}, dim_labels=b01f_01io->b01f, "
                 "feature_group_count=3"),
      3, 2 * 14 * 14, 4, 3 * 3 * 2);
}

double products_us(const std::string& model, const Device& device) {
  const Graph graph = canonicalize(read_graph(STITCHWORK_SOURCE_DIR "/datasets/" + model + ".hlo.gz"));
  const Computation& computation = graph.entry_computation();
  double us = 0;
  for (const Node& node : computation.nodes)
    if (const auto product = matrix_product(computation, node)) us += library_time(device, *product).total_us;
  return us;
}

/// BERT's products do 4.47 tera-operations. V100: 15.7 TFLOPS x 0.80 in fp32, 125 x 0.66 on tensor cores.
TEST(LibraryCost, BertsProductsInHalfPrecisionTakeAboutASixth) {
  for (const char* id : {"v100", "a100"}) {
    const double single = products_us("bert", device(id)), half = products_us("bert_fp16", device(id));
    EXPECT_LT(half, 0.35 * single) << id;
    EXPECT_GT(half, 0.05 * single) << id;
  }
}

// A loop's body is given a tuple: a product in it reads the elements it names, and each buffer once.
TEST(LibraryCost, CallsReadWhatTheyNameOfATuple) {
  const Graph graph = testing::graph_of(R"(
    p = (f32[8,64], f32[64,64], f32[1000000]) parameter(0)
    x = f32[8,64] get-tuple-element(p), index=0
    w = f32[64,64] get-tuple-element(p), index=1
    v = f32[64,64] bitcast(w)
    d = f32[8,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    s = f32[64,64] dot(w, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT t = (f32[8,64], f32[64,64]) tuple(d, s))");
  const Computation& computation = graph.entry_computation();
  const auto bytes = [&](const char* op) {
    return matrix_product(computation, computation.node(testing::op(graph, op)))->bytes;
  };
  EXPECT_EQ(bytes("d"), 4 * (8 * 64 + 64 * 64 + 8 * 64));
  EXPECT_EQ(bytes("s"), 4 * (64 * 64 + 64 * 64));
}

TEST(LibraryCost, IsExplainedWithItsArithmetic) {
  const Graph graph = testing::graph_of(
      "  a = f16[512,512] parameter(0)\n  b = f16[512,512] parameter(1)\n"
      "  ROOT r = f16[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  const FusionPlan plan = make_plan(graph, device("v100"), "xla");
  const Explanation found = explain(graph, plan, "r");
  EXPECT_THAT(found.library_time, ::testing::HasSubstr("fp16 tensor cores of 125 T/s x 0.66"));
  EXPECT_THAT(to_text(found), ::testing::HasSubstr(found.library_time));
  EXPECT_EQ(
      plan.steps.at(0).predicted_us,
      library_time(device("v100"),
                   matrix_product(graph.entry_computation(), graph.entry_computation().nodes.back()).value())
          .total_us);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
