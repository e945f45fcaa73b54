// Plans of `eager` compute what the model says: views read through, library functions in one kernel.
#include <gtest/gtest.h>

#include "tests/codegen/planned.h"
#include "tests/support/graphs.h"
#include "tests/support/scoped_graph.h"

namespace stitchwork {
namespace TEST_FILE {

FusionPlan expect_eager_correct(const Graph& graph, const Device& target) {
  FusionPlan plan = make_plan(graph, target, "eager");
  testing::expect_correct(graph, plan);
  return plan;
}

TEST(EagerKernels, OfRandomGraphsComputeThem) {
  int fewer = 0;
  const testing::FuzzRange range = testing::fuzz_range(0, 12);
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    SCOPED_TRACE(seed);
    std::string text = testing::executed_hlo(seed);
    if (seed % 3 != 0) text = testing::with_scopes(text, seed);
    const Graph graph = testing::graph_of(text);
    const Device& target = device(testing::kFuzzDevices[seed % std::size(testing::kFuzzDevices)]);
    const FusionPlan plan = expect_eager_correct(graph, target);
    fewer += plan.kernels.size() < make_plan(graph, target, "unfused").kernels.size() ? 1 : 0;
  }
  EXPECT_GE(2 * fewer, static_cast<int>(range.end - range.first));
}

/// Ops of the function `name`, forward; x: f32[rows,cols], strided by a transpose.
std::string in_function(const std::string& name, const std::string& body) {
  const std::string metadata = ", metadata={op_name=\"jit(f)/jit(main)/jvp(jit(" + name + "))/op\"}\n";
  std::string result = "p = f32[40,6] parameter(0)\n x = f32[6,40] transpose(p), dimensions={1,0}\n";
  for (std::size_t from = 0, to; (to = body.find('\n', from)) != std::string::npos; from = to + 1)
    result += body.substr(from, to - from) + metadata;
  return result;
}

TEST(EagerKernels, OfASoftmaxWhoseExponentialIsReadElsewhereComputeIt) {
  const Graph graph = testing::graph_of(
      "o = f32[] constant(0)\n i = f32[] constant(-inf)\n" +
      in_function("softmax",
                  "m = f32[6] reduce(x, i), dimensions={1}, to_apply=max\n"
                  "mb = f32[6,40] broadcast(m), dimensions={0}\n d = f32[6,40] subtract(x, mb)\n"
                  "e = f32[6,40] exponential(d)\n r = f32[6] reduce(e, o), dimensions={1}, to_apply=sum\n"
                  "rb = f32[6,40] broadcast(r), dimensions={0}\n y = f32[6,40] divide(e, rb)\n") +
      "n = f32[6,40] negate(e)\n ROOT z = (f32[6,40], f32[6,40]) tuple(y, n)");
  EXPECT_EQ(expect_eager_correct(graph, device("v100")).kernels.size(), 2u);
}

TEST(EagerKernels, OfAFunctionOfTwoResultsComputeIt) {
  const Graph graph = testing::graph_of(
      "o = f32[] constant(1)\n b = f32[6,40] broadcast(o), dimensions={}\n" +
      in_function("silu",
                  "n = f32[6,40] negate(x)\n e = f32[6,40] exponential(n)\n a = f32[6,40] add(b, e)\n"
                  "s = f32[6,40] divide(b, a)\n y = f32[6,40] multiply(x, s)\n") +
      "ROOT z = (f32[6,40], f32[6,40]) tuple(y, s)");
  EXPECT_EQ(expect_eager_correct(graph, device("v100")).kernels.size(), 1u);
}

TEST(EagerKernels, OfAFunctionThatReadsItsOwnResultReversedComputeIt) {
  const Graph graph =
      testing::graph_of(in_function("gelu",
                                    "s = f32[6,40] sine(x)\n r = f32[6,40] reverse(s), dimensions={1}\n"
                                    "a = f32[6,40] add(r, x)\n") +
                        "ROOT z = (f32[6,40], f32[6,40]) tuple(a, s)");
  expect_eager_correct(graph, device("v100"));
}

TEST(EagerKernels, OfViewsThatAreAlsoWrittenOutComputeThem) {
  const Graph graph = testing::graph_of(
      "p = f32[8,6] parameter(0)\n q = f32[5] parameter(1)\n t = f32[6,8] transpose(p), dimensions={1,0}\n"
      "s = f32[3,8] slice(t), slice={[0:6:2], [0:8]}\n r = f32[24] reshape(s)\n n = f32[24] negate(r)\n"
      "b = f32[6,8,5] broadcast(q), dimensions={2}\n u = f32[6,8,5] broadcast(t), dimensions={0,1}\n"
      "a = f32[6,8,5] add(b, u)\n c = f32[6,8] copy(t)\n"
      "ROOT z = (f32[24], f32[6,8,5], f32[6,8], f32[6,8], f32[6,8,5]) tuple(n, a, t, c, b)");
  expect_eager_correct(graph, device("v100"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
