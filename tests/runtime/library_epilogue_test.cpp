// Library calls that store their products transposed or add to them, or to convolutions, run: in the
// simulator's runs by the reference, on a GPU by cuBLASLt and cuDNN, without cuDNN by a kernel of ours behind
// cuBLAS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analysis/facts/cudnn.h"
#include "analysis/judge/library_cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/epilogue.h"
#include "core/evaluate/evaluator.h"
#include "runtime/cuda/backend.h"
#include "runtime/program/run_script.h"
#include "tests/runtime/convolutions.h"
#include "tests/runtime/fake_cublas.h"
#include "tests/runtime/fake_cudnn.h"
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
    const testing::Ran ran =
        testing::run_on_fake_gpu(gpu, testing::dataset(name), {.repeats = 1}, {testing::fake_blas, {}},
                                 "auto", testing::compile_options(), {.knobs = {{"products", "off"}}});
    testing::expect_right(ran);
    EXPECT_THAT(ran.result.host_calls, IsEmpty());
    EXPECT_GT(gpu.calls["lt_multiply"], 0);
    EXPECT_THAT(gpu.live, IsEmpty());
  }
}

/// A product of drawn sizes, layouts and type, with what a call may add to it.
std::string drawn(std::mt19937& random, bool transpose, bool bias, bool array, bool relu) {
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
  if (relu) {
    text += fmt::format(
        "zero = {0}[] constant(0)\nz = {1} broadcast(zero), dimensions={{}}\n"
        "m = {1} maximum({2}, z)\n",
        type, of, value);
    value = "m";
  }
  return text + fmt::format("ROOT r = {} tanh({})\n", of, value);
}

/// The plan that has all of it in the call, whatever is faster.
FusionPlan with_call(const Graph& graph, const Device& device, const std::vector<NodeId>& call) {
  FusionPlan plan = make_plan(graph, device, "unfused");
  std::erase_if(plan.kernels,
                [&](const KernelPlan& kernel) { return std::ranges::count(call, kernel.ops.back()) > 0; });
  return assemble(graph, device, "auto", plan.kernels, {call});
}

/// Heads of sequences, [b, s, h, d] as they lie behind their projections, with the product's transpose back.
std::string drawn_heads(std::mt19937& random, const std::string& type) {
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  const int b = draw(2, 3), q = draw(2, 5), k = draw(2, 5), h = draw(2, 3), d = draw(2, 6);
  const bool scores = draw(0, 1) == 1;
  if (scores)  // [b,h,q,k] of queries and keys, stored [b,q,h,k]
    return fmt::format(
        "x = {0}[{1},{2},{4},{5}] parameter(0)\nw = {0}[{1},{3},{4},{5}] parameter(1)\n"
        "d = {0}[{1},{4},{2},{3}] dot(x, w), lhs_batch_dims={{0,2}}, rhs_batch_dims={{0,2}}, "
        "lhs_contracting_dims={{3}}, rhs_contracting_dims={{3}}\n"
        "e = {0}[{1},{2},{4},{3}] transpose(d), dimensions={{0,2,1,3}}\n"
        "ROOT r = {0}[{1},{2},{4},{3}] tanh(e)\n",
        type, b, q, k, h, d);
  return fmt::format(  // [b,h,d,q] of values and weights, stored [b,q,h,d]
      "x = {0}[{1},{3},{4},{5}] parameter(0)\nw = {0}[{1},{4},{2},{3}] parameter(1)\n"
      "d = {0}[{1},{4},{5},{2}] dot(x, w), lhs_batch_dims={{0,2}}, rhs_batch_dims={{0,1}}, "
      "lhs_contracting_dims={{1}}, rhs_contracting_dims={{3}}\n"
      "e = {0}[{1},{2},{4},{5}] transpose(d), dimensions={{0,3,1,2}}\n"
      "ROOT r = {0}[{1},{2},{4},{5}] tanh(e)\n",
      type, b, q, k, h, d);
}

TEST(LibraryEpilogue, HeadsOfSequencesAreOneCallThatListsThem) {
  SKIP_WITHOUT_COMPILER();
  std::mt19937 random(11);
  for (const char* type : {"f32", "f16", "bf16", "f32", "f16", "f32"}) {
    const std::string text = drawn_heads(random, type);
    SCOPED_TRACE(text);
    const Graph graph = testing::graph_of(text);
    const Computation& computation = graph.entry_computation();
    const auto calls = calls_with_epilogue(computation, computation.users(), computation.find("d"));
    ASSERT_EQ(calls.size(), 1u);
    testing::FakeGpu gpu{device("v100")};
    const FusionPlan with = with_call(graph, gpu.device, calls.back());
    const Executable executable = compile(graph, gpu.device, with, testing::compile_options());
    const std::vector<Literal> inputs = generate_inputs(graph, 3);
    cuda::CudaBackend backend(testing::fake_driver(gpu), gpu.device, {.repeats = 1},
                              {testing::fake_blas, {}});
    const RunResult result = run_on(backend, graph, gpu.device, executable, inputs);
    EXPECT_THAT(result.host_calls, IsEmpty());
    EXPECT_GT(gpu.calls["gemm_by_pointers"], 0);
    EXPECT_EQ(gpu.calls["gemm"], 0);
    const CheckResult check = Judge(graph, inputs).check(result.outputs);
    ASSERT_TRUE(check.ok) << check.message;
  }
}

TEST(LibraryEpilogue, DrawnProductsAreRightTransposedAndWithWhatIsAdded) {
  SKIP_WITHOUT_COMPILER();
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    // Each alone and with the others.
    const int which = i % 15 + 1;
    const bool transpose = (which & 1) != 0, bias = (which & 2) != 0, array = (which & 4) != 0,
               relu = (which & 8) != 0;
    const std::string text = drawn(random, transpose, bias, array, relu);
    SCOPED_TRACE(text);
    const Graph graph = testing::graph_of(text);
    const Computation& computation = graph.entry_computation();
    const auto calls = calls_with_epilogue(computation, computation.users(), computation.find("d"));
    ASSERT_EQ(calls.size(), static_cast<std::size_t>(transpose + bias + array + relu));
    testing::FakeGpu gpu{device("v100")};
    const FusionPlan with = with_call(graph, gpu.device, calls.back());
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

/// A drawn convolution `d` (groups, strides, dilations, every order of dimensions) with what a call may do to
/// it.
std::string drawn_convolution(unsigned seed, bool bias, bool array, bool relu) {
  const std::string type = std::array{"f32", "f16", "bf16"}[seed % 3];
  std::string text = testing::random_convolution(seed, true, type);
  const std::string root = "ROOT y = ";
  const auto at = text.find(root), open = text.find('[', at), close = text.find(']', at);
  const std::string of = text.substr(at + root.size(), close + 1 - at - root.size());
  const std::string dims = text.substr(open + 1, close - open - 1);
  const auto labels = text.find("->", at) + 2;
  const auto feature = static_cast<std::ptrdiff_t>(text.find('f', labels) - labels);
  std::string features = dims;
  for (std::ptrdiff_t d = 0; d < feature; ++d) features.erase(0, features.find(',') + 1);
  features = features.substr(0, features.find(','));
  text.replace(at, root.size(), "d = ");
  text.erase(text.rfind('}'));
  text += fmt::format("b = {}[{}] parameter(2)\nc = {} parameter(3)\n", type, features, of);
  std::string value = "d";
  if (bias) {
    text += fmt::format("v = {0} broadcast(b), dimensions={{{1}}}\ns = {0} add(v, d)\n", of, feature);
    value = "s";
  }
  if (array) {
    text += fmt::format("t = {} add({}, c)\n", of, value);
    value = "t";
  }
  if (relu) {
    text += fmt::format("z = {0}[] constant(0)\nzeros = {1} broadcast(z), dimensions={{}}\n", type, of);
    text += fmt::format("m = {} maximum(zeros, {})\n", of, value);
    value = "m";
  }
  return text + fmt::format("ROOT r = {} tanh({})\n}}\n", of, value);
}

TEST(LibraryEpilogue, DrawnConvolutionsAreRightWithWhatIsAddedAndWithoutCudnn) {
  SKIP_WITHOUT_COMPILER();
  int depthwise = 0;
  for (unsigned seed = 0; seed < 42; ++seed) {
    // Each alone and with the others.
    const unsigned which = seed % 7 + 1;
    const bool bias = (which & 1) != 0, array = (which & 2) != 0, relu = (which & 4) != 0;
    const std::string text = drawn_convolution(seed, bias, array, relu);
    SCOPED_TRACE(text);
    const Graph graph = testing::graph_of(text);
    const Computation& computation = graph.entry_computation();
    const Node& node = computation.node(computation.find("d"));
    const auto calls = calls_with_epilogue(computation, computation.users(), node.id);
    if (!cudnn_adds(node, computation.node(node.operands[0]).shape,
                    computation.node(node.operands[1]).shape)) {
      EXPECT_THAT(calls, IsEmpty());
      ++depthwise;
      continue;
    }
    ASSERT_EQ(calls.size(), static_cast<std::size_t>(bias + array + relu));
    const std::vector<Literal> inputs = generate_inputs(graph, seed);
    const auto run = [&](const cuda::CudaLibraries& libraries, const std::string& by) {
      testing::FakeGpu gpu{device("v100")};
      const Executable executable =
          compile(graph, gpu.device, with_call(graph, gpu.device, calls.back()), testing::compile_options());
      cuda::CudaBackend backend(testing::fake_driver(gpu), gpu.device,
                                {.repeats = 0, .compile = testing::compile_options()}, libraries);
      const RunResult result = run_on(backend, graph, gpu.device, executable, inputs);
      const CheckResult check = Judge(graph, inputs).check(result.outputs);
      EXPECT_TRUE(check.ok) << check.message;
      if (by.empty())
        EXPECT_THAT(result.host_calls, ::testing::ElementsAre("d"));
      else
        EXPECT_EQ(result.library_calls.at("d"), by);
    };
    run({testing::fake_blas, testing::fake_dnn}, "cuDNN, implicit precomp gemm");
    run({testing::fake_blas, {}}, "cuBLAS over patches: there is no cuDNN");
    run({}, "");
  }
  EXPECT_GT(depthwise, 0);
  EXPECT_LT(depthwise, 10);
}

TEST(LibraryEpilogue, ACompilersCallTakesAsLongAsOursOfTheSame) {
  const auto graph = std::make_shared<Graph>(testing::graph_of(R"(
    x = f32[8,16,64,64] parameter(0)
    w = f32[16,16,3,3] parameter(1)
    b = f32[16] parameter(2)
    c = f32[8,16,64,64] parameter(3)
    d = f32[8,16,64,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
    s = f32[8,16,64,64] add(d, c)
    v = f32[8,16,64,64] broadcast(b), dimensions={1}
    t = f32[8,16,64,64] add(s, v)
    zero = f32[] constant(0)
    z = f32[8,16,64,64] broadcast(zero), dimensions={}
    ROOT m = f32[8,16,64,64] maximum(t, z))"));
  const Computation& computation = graph->entry_computation();
  const auto calls = calls_with_epilogue(computation, computation.users(), computation.find("d"));
  ASSERT_EQ(calls.size(), 3U);
  const auto ours = matrix_product(computation, calls.back());
  ScriptStep step;
  step.kind = ScriptStepKind::kCall;
  step.bytes = 4 * (3 * std::int64_t{8 * 16 * 64 * 64} + 16 * 16 * 9 + 16);
  step.computes = graph;
  EXPECT_EQ(ours->bytes, static_cast<double>(step.bytes));
  const Device v100 = device("v100");
  EXPECT_DOUBLE_EQ(modelled_us(step, v100), library_time(v100, *ours).total_us);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
