// Convolutions in cuDNN's terms, made by a library that computes what its descriptors say; and what becomes
// of those it does not make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/evaluate/judge.h"
#include "tests/runtime/convolutions.h"
#include "tests/runtime/fake_cudnn.h"
#include "tests/runtime/on_fake_gpu.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::Contains;
using testing::convolution;
using testing::expect_right;
using testing::FakeGpu;
using ::testing::HasSubstr;
using testing::random_convolution;
using testing::refusal;
using ::testing::StartsWith;

/// The HLO text's root convolution by the fake cuDNN, if its terms allow it, compared with the reference; why
/// not otherwise.
std::string convolved(const std::string& text, bool features_last, bool tf32 = false) {
  SCOPED_TRACE(text);
  const Graph graph = testing::graph_of(text);
  const std::vector<Literal> inputs = generate_inputs(graph, 5);
  const Computation& entry = graph.entry_computation();
  const Node& node = entry.node(entry.root);
  const auto [verdict, terms] = cuda::dnn_terms(node, inputs[0].shape, inputs[1].shape, features_last);
  if (!verdict) return verdict.why;
  FakeGpu gpu{device("h200")};
  testing::fake_driver(gpu);
  const auto dnn = testing::fake_dnn();
  const cuda::Dnn::Prepared prepared = dnn->prepare(terms, tf32);
  EXPECT_TRUE(prepared.verdict) << prepared.verdict.why;
  if (!prepared.verdict) return prepared.verdict.why;
  EXPECT_EQ(prepared.plan->algorithm(), "implicit precomp gemm");
  Literal weights = Literal::zeros(inputs[1].shape), result = Literal::zeros(node.shape);
  for (std::int64_t i = 0; i < terms.weights.elements(); ++i)
    weights.set_double(i, inputs[1].get_double(terms.weights.source_of(i)));
  const auto on_gpu = [&](const Literal& values) {
    const auto address = gpu.memory.allocate(values.bytes.size(), "array");
    gpu.memory.write(address, values.bytes);
    return address;
  };
  const auto to = on_gpu(result);
  const auto workspace = gpu.memory.allocate(prepared.plan->workspace_bytes(), "workspace");
  dnn->convolve(nullptr, *prepared.plan, {on_gpu(inputs[0]), on_gpu(weights), to, workspace, {}}, node.name);
  gpu.memory.read(to, result.bytes);
  const CheckResult check = Judge(graph, inputs).check({{result}});
  EXPECT_TRUE(check.ok) << check.message;
  return gpu.launched.at(0);
}

TEST(Cudnn, ItsTermsSayWhatTheConvolutionIs) {
  int last = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::string text = random_convolution(seed, true);
    EXPECT_THAT(convolved(text, false), StartsWith("convolution of type 0, filter format 0")) << text;
    last += convolved(text, true).rfind("convolution", 0) == 0;
  }
  EXPECT_GT(last, 10);
}

TEST(Cudnn, OfThoseThatAreNotPlainItTakesWhatItCanAndThatIsRight) {
  int taken = 0;
  for (unsigned seed = 0; seed < 600; ++seed)
    taken += convolved(random_convolution(seed), false).rfind("convolution", 0) == 0;
  EXPECT_GT(taken, 20);
  EXPECT_LT(taken, 580);
}

TEST(Cudnn, EveryTypeIsConvolvedInItsOwnWay) {
  for (const auto& [type, number, math] :
       {std::tuple{"f64", 1, 3}, {"f32", 0, 3}, {"f16", 2, 1}, {"bf16", 9, 1}})
    for (unsigned seed = 0; seed < 20; ++seed)
      EXPECT_THAT(convolved(random_convolution(seed, true, type), false),
                  AllOf(StartsWith(fmt::format("convolution of type {},", number)),
                        HasSubstr(fmt::format("math {},", math))));
  EXPECT_THAT(convolved(random_convolution(1, true), false, true), HasSubstr("math 0,"));
}

constexpr const char* kLast = "dim_labels=b01f_01io->b01f";

TEST(Cudnn, WhatItCannotDoIsRefusedWithTheNumbers) {
  const auto why = [](const std::string& input, const std::string& kernel, const std::string& output,
                      const std::string& window, const std::string& more = "") {
    return convolved(
        convolution(input, kernel, output, fmt::format("window={{{}}}, {}{}", window, kLast, more)), false);
  };
  EXPECT_THAT(why("2,8,8,3", "3,3,3,4", "2,9,9,4", "size=3x3 pad=1_2x1_2"), HasSubstr("here by 1 and 2"));
  EXPECT_THAT(why("2,8,8,3", "3,3,3,4", "2,4,4,4", "size=3x3 pad=-1_-1x-1_-1"),
              HasSubstr("here by -1 and -1"));
  EXPECT_THAT(why("2,8,8,3", "3,3,3,4", "2,13,13,4", "size=3x3 lhs_dilate=2x2"),
              HasSubstr("spread the input, here by 2"));
  EXPECT_THAT(why("2,8,8,3", "3,3,3,4", "2,6,6,4", "size=3x3 rhs_reversal=1x0"),
              HasSubstr("in all dimensions or in none"));
  EXPECT_THAT(why("4,8,8,3", "3,3,3,4", "2,6,6,4", "size=3x3", ", batch_group_count=2"),
              HasSubstr("groups of the batch, here 2"));
  EXPECT_THAT(convolved(convolution("2,4,4,4,4,3", "1,1,1,1,3,4", "2,4,4,4,4,4",
                                    "window={size=1x1x1x1}, dim_labels=b0123f_0123io->b0123f"),
                        false),
              HasSubstr("at most 3 dimensions, not 4"));
}

TEST(Cudnn, PaddingThatNoWindowReadsMayDiffer) {
  EXPECT_THAT(convolved(convolution("2,8,8,3", "3,3,3,4", "2,4,4,4",
                                    fmt::format("window={{size=3x3 stride=2x2 pad=1_0x1_0}}, {}", kLast)),
                        true),
              StartsWith("convolution of type 0, filter format 1"));
}

constexpr const char* kModel =
    "HloModule m\nENTRY main {\n  x = f32[2,8,8,3] parameter(0)\n  w = f32[3,3,3,4] parameter(1)\n"
    "  c = f32[2,8,8,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n"
    "  ROOT t = f32[2,8,8,4] tanh(c)\n}\n";

/// Of which planner auto leaves all but the hyperbolic tangent to the call.
constexpr const char* kWithEpilogue =
    "HloModule m\nENTRY main {\n  x = f32[2,8,8,3] parameter(0)\n  w = f32[3,3,3,4] parameter(1)\n"
    "  b = f32[4] parameter(2)\n  s = f32[2,8,8,4] parameter(3)\n  z = f32[] constant(0)\n"
    "  c = f32[2,8,8,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n"
    "  v = f32[2,8,8,4] broadcast(b), dimensions={3}\n  d = f32[2,8,8,4] add(c, v)\n"
    "  e = f32[2,8,8,4] add(d, s)\n  zeros = f32[2,8,8,4] broadcast(z), dimensions={}\n"
    "  ROOT m = f32[2,8,8,4] maximum(e, zeros)\n}\n";

testing::Ran run(FakeGpu& gpu, const Graph& graph, cuda::CudaOptions options,
                 const char* planner = "astitch") {
  options.compile = testing::compile_options();
  return testing::run_on_fake_gpu(gpu, graph, options, {testing::fake_blas, testing::fake_dnn}, planner);
}

TEST(Cudnn, ModelsRunWithItAndAreRepeatedWithIt) {
  SKIP_WITHOUT_COMPILER();
  for (const char* name : {"crnn_tiny", "segformer_b0_tiny", "unet_block_tiny"}) {
    SCOPED_TRACE(name);
    FakeGpu gpu{device("v100")};
    const testing::Ran ran = run(gpu, testing::dataset(name), {.repeats = 1});
    expect_right(ran);
    EXPECT_THAT(ran.result.host_calls, ::testing::IsEmpty());
    EXPECT_TRUE(ran.result.repeated.has_value());
    EXPECT_THAT(ran.result.library_calls,
                Contains(::testing::Pair(::testing::_, std::string("cuDNN, implicit precomp gemm"))));
    EXPECT_EQ(gpu.calls["dnn_create"], 1);
    EXPECT_EQ(gpu.calls["dnn_destroy"], 1);
    EXPECT_EQ(gpu.allocated, 0u);
  }
}

TEST(Cudnn, CanBeForcedAndLeftOut) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(kModel);
  FakeGpu without{device("v100")};
  const testing::Ran patches =
      run(without, graph, {.repeats = 0, .convolutions = cuda::Convolutions::kPatches});
  expect_right(patches);
  EXPECT_EQ(patches.result.library_calls.at("c"), "cuBLAS over patches");
  EXPECT_EQ(without.calls["dnn_create"], 0);
  FakeGpu with{device("v100")};
  expect_right(run(with, graph, {.repeats = 0, .convolutions = cuda::Convolutions::kDnn}));
  EXPECT_EQ(with.calls["gemm"], 0);
}

TEST(Cudnn, WhatItDoesNotMakeIsMadeOverPatchesWithTheReason) {
  SKIP_WITHOUT_COMPILER();
  std::string text = kModel;
  text.replace(text.find("3x3 pad=1_1x1_1"), 15, "3x3 pad=0_2x1_1");
  const Graph graph = testing::graph_of(text);
  FakeGpu gpu{device("v100")};
  const testing::Ran ran = run(gpu, graph, {.repeats = 0});
  expect_right(ran);
  EXPECT_EQ(ran.result.library_calls.at("c"),
            "cuBLAS over patches: cuDNN pads both sides alike and by no less than 0, here by 0 and 2");
  FakeGpu forced{device("v100")};
  EXPECT_THAT(refusal([&] { run(forced, graph, {.repeats = 0, .convolutions = cuda::Convolutions::kDnn}); }),
              AllOf(StartsWith("lib:c (planner astitch for v100-sxm2): c: cuDNN does not make it: "),
                    HasSubstr("here by 0 and 2"), HasSubstr("--convolutions")));
}

TEST(Cudnn, WhereItIsNotThereThatIsTheReason) {
  SKIP_WITHOUT_COMPILER();
  FakeGpu gpu{device("v100")};
  const Graph graph = testing::graph_of(kModel);
  const testing::Ran ran = testing::run_on_fake_gpu(
      gpu, graph, {.repeats = 0, .compile = testing::compile_options()}, {testing::fake_blas, {}});
  expect_right(ran);
  EXPECT_EQ(ran.result.library_calls.at("c"), "cuBLAS over patches: there is no cuDNN");
}

TEST(Cudnn, OneCallAddsABiasAndAnArrayAndTakesTheLargerOfThatAndZero) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(kWithEpilogue);
  FakeGpu gpu{device("v100")};
  const testing::Ran ran = run(gpu, graph, {.repeats = 1}, "auto");
  expect_right(ran);
  EXPECT_THAT(ran.result.kernels, ::testing::IsEmpty());
  EXPECT_THAT(ran.result.host_calls, ::testing::IsEmpty());
  EXPECT_THAT(gpu.launched, Contains(HasSubstr("activation 1")));
  FakeGpu without{device("v100")};
  const testing::Ran patches =
      run(without, graph, {.repeats = 1, .convolutions = cuda::Convolutions::kPatches}, "auto");
  expect_right(patches);
  EXPECT_EQ(patches.result.library_calls.at("c"), "cuBLAS over patches");
  EXPECT_THAT(without.launched, Contains("plain 2x256"));
}

TEST(Cudnn, WithoutAnActivationOneOfItsAlgorithmsAdds) {
  const Graph graph = testing::graph_of(kModel);
  const Node& node = graph.entry_computation().node(graph.entry_computation().find("c"));
  const auto terms = cuda::dnn_terms(node, graph.entry_computation().node(node.operands[0]).shape,
                                     graph.entry_computation().node(node.operands[1]).shape, false);
  FakeGpu gpu{device("v100")};
  testing::fake_driver(gpu);
  gpu.dnn_algorithm = 0;
  const auto dnn = testing::fake_dnn();
  EXPECT_TRUE(dnn->prepare(terms.convolution, false).verdict);
  EXPECT_TRUE(dnn->prepare(terms.convolution, false, cuda::DnnEpilogue::kAddsRelu).verdict);
  EXPECT_EQ(dnn->prepare(terms.convolution, false, cuda::DnnEpilogue::kAdds).verdict.why,
            "cuDNN's implicit gemm adds nothing without an activation");
}

/// Every call of cuDNN, failing the first time it is made: what prepares is done without it or, where it is
/// forced, said in one line; what convolves is an error.
TEST(Cudnn, EveryFailureIsOneLineOrDoneWithoutIt) {
  SKIP_WITHOUT_COMPILER();
  const Graph plain = testing::graph_of(kModel), adding = testing::graph_of(kWithEpilogue);
  for (const char* call :
       {"create", "tensor_create", "tensor_set", "filter_create", "filter_set", "convolution_create",
        "convolution_set", "convolution_groups", "convolution_math", "algorithms", "workspace", "set_stream",
        "forward", "activation_create", "activation_set", "forward_adding"}) {
    SCOPED_TRACE(call);
    const std::string word = call;
    const bool adds = word == "forward_adding" || word.starts_with("activation");
    const bool convolves = word == "set_stream" || word.starts_with("forward");
    const Graph& graph = adds ? adding : plain;
    const char* const planner = adds ? "auto" : "astitch";
    for (const auto convolutions : {cuda::Convolutions::kAuto, cuda::Convolutions::kDnn}) {
      FakeGpu gpu{device("v100")};
      gpu.fail_at["dnn_" + word] = 1;
      const cuda::CudaOptions options{.repeats = 0, .convolutions = convolutions};
      if (convolves || convolutions == cuda::Convolutions::kDnn) {
        const std::string said = refusal([&] { run(gpu, graph, options, planner); });
        EXPECT_THAT(said, AllOf(StartsWith(fmt::format("lib:c (planner {} for v100-sxm2): c: ", planner)),
                                HasSubstr("CUDNN_STATUS_FAKE"), HasSubstr("--convolutions")));
        EXPECT_EQ(said.find('\n'), std::string::npos) << said;
      } else {
        const testing::Ran ran = run(gpu, graph, options, planner);
        expect_right(ran);
        EXPECT_THAT(ran.result.library_calls.at("c"),
                    AllOf(StartsWith("cuBLAS over patches: "), HasSubstr(" says CUDNN_STATUS_FAKE")));
      }
      EXPECT_EQ(gpu.allocated, 0u);
      EXPECT_THAT(gpu.live, ::testing::IsEmpty()) << word;
    }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
