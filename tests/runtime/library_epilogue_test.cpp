// Library calls that store their products transposed or add to them, run: in the simulator's runs by the
// reference, on a GPU by cuBLASLt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analysis/plan/assemble.h"
#include "analysis/plan/epilogue.h"
#include "core/evaluate/evaluator.h"
#include "runtime/cuda/backend.h"
#include "tests/runtime/fake_cublas.h"
#include "tests/runtime/on_fake_gpu.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::IsEmpty;

TEST(LibraryEpilogue, PlansOfDatasetsRunThroughCublasLt) {
  SKIP_WITHOUT_COMPILER();
  for (const char* name : {"fs19_cycle_tiny", "llama_layer_tiny", "efficientvit_tiny"}) {
    SCOPED_TRACE(name);
    testing::FakeGpu gpu{device("v100")};
    const testing::Ran ran = testing::run_on_fake_gpu(gpu, testing::dataset(name), {.repeats = 1},
                                                      {testing::fake_blas, {}}, "auto");
    testing::expect_right(ran);
    EXPECT_THAT(ran.result.host_calls, IsEmpty());
    EXPECT_GT(gpu.calls["lt_multiply"], 0);
    EXPECT_THAT(gpu.live, IsEmpty());
  }
}

/// A product of drawn sizes, layouts and type, with what a call may add to it.
std::string drawn(std::mt19937& random, bool transpose, bool bias, bool array) {
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  const int batch = draw(0, 2) == 0 ? draw(2, 3) : 0, k = draw(1, 7);
  // A transpose of a row or column is another name of it.
  const int m = draw(transpose ? 2 : 1, 9), n = draw(transpose ? 2 : 1, 9);
  const bool across_x = draw(0, 1) == 1, across_w = draw(0, 1) == 1;
  const std::string type = std::array{"f32", "f16", "bf16"}[static_cast<std::size_t>(draw(0, 2))];
  const std::string lead = batch > 0 ? fmt::format("{},", batch) : "";
  const int first = batch > 0 ? 1 : 0;
  std::string text = fmt::format(
      "x = {0}[{1}{2}] parameter(0)\nw = {0}[{1}{3}] parameter(1)\nb = {0}[{4}] parameter(2)\n"
      "c = {0}[{1}{5},{6}] parameter(3)\n",
      type, lead, across_x ? fmt::format("{},{}", k, m) : fmt::format("{},{}", m, k),
      across_w ? fmt::format("{},{}", n, k) : fmt::format("{},{}", k, n), transpose ? m : n,
      transpose ? n : m, transpose ? m : n);
  std::string of = fmt::format("{}[{}{},{}]", type, lead, m, n);
  text += fmt::format("d = {} dot(x, w), {}lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}\n", of,
                      batch > 0 ? "lhs_batch_dims={0}, rhs_batch_dims={0}, " : "", first + (across_x ? 0 : 1),
                      first + (across_w ? 1 : 0));
  std::string value = "d";
  if (transpose) {
    of = fmt::format("{}[{}{},{}]", type, lead, n, m);
    text += fmt::format("e = {} transpose(d), dimensions={{{}}}\n", of, batch > 0 ? "0,2,1" : "1,0");
    value = "e";
  }
  if (bias) {
    text +=
        fmt::format("v = {0} broadcast(b), dimensions={{{1}}}\ns = {0} add({2}, v)\n", of, first + 1, value);
    value = "s";
  }
  if (array) {
    text += fmt::format("t = {} add(c, {})\n", of, value);
    value = "t";
  }
  return text + fmt::format("ROOT r = {} tanh({})\n", of, value);
}

TEST(LibraryEpilogue, DrawnProductsAreRightTransposedAndWithWhatIsAdded) {
  SKIP_WITHOUT_COMPILER();
  std::mt19937 random(7);
  for (int i = 0; i < 42; ++i) {
    // Each alone and with the others.
    const int which = i % 7 + 1;
    const bool transpose = (which & 1) != 0, bias = (which & 2) != 0, array = (which & 4) != 0;
    const std::string text = drawn(random, transpose, bias, array);
    SCOPED_TRACE(text);
    const Graph graph = testing::graph_of(text);
    const Computation& computation = graph.entry_computation();
    const auto calls = calls_with_epilogue(computation, computation.users(), computation.find("d"));
    ASSERT_EQ(calls.size(), static_cast<std::size_t>(transpose + bias + array));
    testing::FakeGpu gpu{device("v100")};
    // The plan that has every sum in the call, whatever is faster.
    FusionPlan plan = make_plan(graph, gpu.device, "unfused");
    std::erase_if(plan.kernels, [&](const KernelPlan& kernel) {
      return std::ranges::count(calls.back(), kernel.ops.back()) > 0;
    });
    const FusionPlan with = assemble(graph, gpu.device, "auto", plan.kernels, {calls.back()});
    const Executable executable = compile(graph, gpu.device, with, testing::compile_options());
    const std::vector<Literal> inputs = generate_inputs(graph, static_cast<std::uint64_t>(i));
    cuda::CudaBackend backend(testing::fake_driver(gpu), gpu.device, {.repeats = 0},
                              {testing::fake_blas, {}});
    const RunResult result = run_on(backend, graph, gpu.device, executable, inputs);
    EXPECT_THAT(result.host_calls, IsEmpty());
    const CheckResult check = Judge(graph, inputs).check(result.outputs);
    ASSERT_TRUE(check.ok) << check.message;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
