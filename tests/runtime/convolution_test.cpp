// Convolutions as products over their patches, made on the host and on the simulator that stands for a GPU.
#include "runtime/convolution.h"

#include <gtest/gtest.h>

#include "core/evaluate/inputs.h"
#include "core/evaluate/judge.h"
#include "runtime/simulator_backend.h"
#include "tests/codegen/harness.h"
#include "tests/runtime/convolutions.h"
#include "tests/runtime/products.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::convolution;
using testing::random_convolution;

Literal gathered(const Gather& gather, const Literal& source) {
  Literal result = Literal::zeros(Shape::array(source.shape.dtype, {gather.elements()}));
  for (std::int64_t i = 0; i < gather.elements(); ++i)
    if (const std::int64_t from = gather.source_of(i); from >= 0)
      result.set_double(i, source.get_double(from));
  return result;
}

struct Made {
  ConvolutionProduct product;
  Graph graph;
  std::vector<Literal> inputs;
};

/// The HLO text's root convolution as a product, computed and compared with the reference.
Made expect_right(const std::string& body) {
  SCOPED_TRACE(body);
  Made made{{}, testing::graph_of(body), {}};
  made.inputs = generate_inputs(made.graph, 5);
  const Computation& entry = made.graph.entry_computation();
  const Node& node = entry.node(entry.root);
  const auto product =
      product_of(node, entry.node(node.operands[0]).shape, entry.node(node.operands[1]).shape);
  EXPECT_TRUE(product.has_value());
  if (!product) return made;
  made.product = *product;
  Literal a = gathered(product->patches, made.inputs[0]), b = gathered(product->weights, made.inputs[1]);
  if (!product->patches_first) std::swap(a, b);
  const CheckResult check =
      Judge(made.graph, made.inputs).check({{testing::multiplied(product->gemm, a, b, node.shape)}});
  EXPECT_TRUE(check.ok) << check.message;
  return made;
}

TEST(Convolution, OfAPointIsTheProductOfWhatLiesThere) {
  const Made made = expect_right(
      convolution("3,5,7,8", "1,1,8,6", "3,5,7,6", "window={size=1x1}, dim_labels=b01f_01io->b01f"));
  EXPECT_TRUE(made.product.patches.copies_nothing());
  EXPECT_TRUE(made.product.weights.copies_nothing());
  EXPECT_EQ(made.product.gemm.m, 3 * 5 * 7);
  EXPECT_TRUE(made.product.gemm.batch.empty());
}

TEST(Convolution, FeaturesMayStandAnywhere) {
  expect_right(convolution("2,9,8,3", "3,2,3,5", "2,7,7,5", "window={size=3x2}, dim_labels=b01f_01io->b01f"));
  expect_right(convolution("2,3,9,8", "5,3,3,2", "2,5,7,7", "window={size=3x2}, dim_labels=bf01_oi01->bf01"));
  expect_right(convolution("3,9,8,2", "3,5,3,2", "5,7,7,2", "window={size=3x2}, dim_labels=f01b_io01->f01b"));
  expect_right(convolution("9,2,3,8", "3,3,5,2", "7,5,2,7", "window={size=3x2}, dim_labels=0bf1_0io1->0fb1"));
}

TEST(Convolution, StridesPaddingDilationReversalAndGroups) {
  expect_right(convolution("2,9,10,3", "3,3,3,4", "2,5,5,4",
                           "window={size=3x3 stride=2x2 pad=1_1x0_1}, dim_labels=b01f_01io->b01f"));
  expect_right(convolution(
      "1,5,6,2", "3,3,2,4", "1,11,13,4",
      "window={size=3x3 pad=2_2x2_2 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f"));
  expect_right(convolution("1,9,9,2", "3,3,2,4", "1,5,4,4",
                           "window={size=3x3 pad=0_0x-1_0 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f"));
  expect_right(convolution("2,6,6,8", "3,3,2,12", "2,4,4,12",
                           "window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=4"));
  expect_right(convolution("2,8,6,6", "12,2,3,3", "2,12,4,4",
                           "window={size=3x3}, dim_labels=bf01_oi01->bf01, feature_group_count=4"));
  expect_right(convolution("6,6,6,4", "3,3,4,9", "2,4,4,9",
                           "window={size=3x3}, dim_labels=b01f_01io->b01f, batch_group_count=3"));
  expect_right(convolution("2,11,3", "5,3,4", "2,4,4", "window={size=5 stride=2}, dim_labels=b0f_0io->b0f"));
  expect_right(convolution("2,3", "3,4", "2,4", "dim_labels=bf_io->bf"));
}

TEST(Convolution, AnyOfThemIsAProduct) {
  for (unsigned seed = 0; seed < 300; ++seed) expect_right(random_convolution(seed));
}

TEST(Convolution, WithoutElementsIsNone) {
  const Graph graph = testing::graph_of(
      convolution("2,9,8,0", "3,2,0,5", "2,7,7,5", "window={size=3x2}, dim_labels=b01f_01io->b01f"));
  const Computation& entry = graph.entry_computation();
  const Node& node = entry.node(entry.root);
  EXPECT_FALSE(product_of(node, entry.node(node.operands[0]).shape, entry.node(node.operands[1]).shape));
}

TEST(Convolution, GatherKernelsGatherWhatTheHostDoes) {
  SKIP_WITHOUT_COMPILER();
  const Device& gpu = device("v100");
  for (unsigned seed = 0; seed < 12; ++seed) {
    const Made made = expect_right(random_convolution(seed));
    const Gather& gather = made.product.patches;
    for (const DType type : {DType::kF32, DType::kBF16}) {
      Literal source = Literal::zeros(Shape::array(type, made.inputs[0].shape.dims));
      for (std::int64_t i = 0; i < source.shape.elements_count(); ++i)
        source.set_double(i, static_cast<double>(i % 200 + 1));
      KernelLaunch launch;
      launch.block = kGatherBlock;
      launch.grid = 2;
      const CompiledKernel kernel = compile_kernel(
          gather_cuda(gather, source.shape.elements_count(), byte_size(type)), "gather", launch, gpu);
      SimulatorBackend backend(gpu, sim::CacheMode::kCold, {.race = true, .init = true}, 1);
      const DeviceAddress from = backend.allocate(source.bytes.size(), "source", MemoryUse::kSource);
      Literal result = Literal::zeros(Shape::array(type, {gather.elements()}));
      const DeviceAddress to = backend.allocate(result.bytes.size(), "gathered", MemoryUse::kValue);
      backend.write(from, source.bytes);
      const std::vector<DeviceAddress> arguments{from, to};
      const Launched launched = backend.launch(kernel, arguments);
      EXPECT_TRUE(launched.findings.empty());
      backend.read(to, result.bytes);
      EXPECT_EQ(result.bytes, gathered(gather, source).bytes) << seed;
    }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
