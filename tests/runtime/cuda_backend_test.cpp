// The CUDA backend against a driver whose GPU is the simulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "runtime/cuda/backend.h"
#include "runtime/run.h"
#include "tests/codegen/workloads.h"
#include "tests/runtime/fake_cublas.h"
#include "tests/runtime/on_fake_gpu.h"
#include "tests/support/clustered.h"
#include "tests/support/fuzz.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using testing::compile_options;
using testing::expect_right;
using testing::Ran;
using testing::refusal;

Ran run(testing::FakeGpu& gpu, const Graph& graph, const cuda::CudaOptions& options = {}, bool blas = true,
        const char* planner = "astitch") {
  cuda::CudaLibraries libraries;
  if (blas) libraries.blas = testing::fake_blas;
  return testing::run_on_fake_gpu(gpu, graph, options, libraries, planner);
}

TEST(CudaBackend, KernelsWithAGridBarrierAreLaunchedCooperatively) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  expect_right(run(gpu, testing::dataset("rotary_tiny"), {.repeats = 0}));
  EXPECT_THAT(gpu.launched, Contains(StartsWith("cooperative ")));
  EXPECT_EQ(gpu.calls["launch"], 0);
}

TEST(CudaBackend, OthersAreLaunchedPlainly) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  expect_right(run(gpu, testing::dataset("softmax_tiny"), {.repeats = 0}));
  EXPECT_THAT(gpu.launched, ::testing::Each(StartsWith("plain ")));
}

TEST(CudaBackend, ConvolutionsAreProductsOverTheirPatches) {
  SKIP_WITHOUT_COMPILER();
  for (const char* name : {"crnn_tiny", "segformer_b0_tiny", "unet_block_tiny"}) {
    SCOPED_TRACE(name);
    testing::FakeGpu gpu{device("v100")};
    const Ran ran = run(gpu, testing::dataset(name), {.repeats = 1, .compile = compile_options()});
    expect_right(ran);
    EXPECT_THAT(ran.result.host_calls, ::testing::IsEmpty());
    EXPECT_GT(gpu.calls["gemm"], 0);
    EXPECT_TRUE(ran.result.repeated.has_value());
  }
}

TEST(CudaBackend, RepetitionLeavesTheResultsOfOnePass) {
  SKIP_WITHOUT_COMPILER();
  for (const auto cache : {sim::CacheMode::kCold, sim::CacheMode::kWarm}) {
    testing::FakeGpu gpu{device("v100")};
    const Ran ran = run(gpu, testing::dataset("attention_tiny"), {.repeats = 3, .cache = cache});
    expect_right(ran);
    EXPECT_TRUE(ran.result.host_calls.empty());
    ASSERT_TRUE(ran.result.repeated.has_value());
    EXPECT_EQ(ran.result.repeated->times, 3);
    EXPECT_GT(ran.result.repeated->stream_us, 0);
    ASSERT_TRUE(ran.result.repeated->graph_us.has_value());
    for (const KernelRun& kernel : ran.result.kernels) {
      EXPECT_EQ(kernel.method, Method::kMeasured);
      EXPECT_GT(kernel.time_us, 0);
    }
    for (const StepRun& step : ran.result.steps) EXPECT_EQ(step.method, Method::kMeasured);
  }
}

TEST(CudaBackend, TablesBarriersAndWeightsKeepTheirPlaceForRepetition) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  expect_right(run(gpu, testing::dataset("adam_tiny"), {.repeats = 2}));
}

TEST(CudaBackend, ProductsWithoutCublasAreComputedByTheHostAndSayingSo) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  const Ran ran = run(gpu, testing::dataset("attention_tiny"), {.repeats = 3}, false);
  expect_right(ran);
  EXPECT_EQ(ran.result.host_calls.size(), 2u);
  EXPECT_FALSE(ran.result.repeated.has_value());
  EXPECT_THAT(ran.result.steps, Contains(::testing::Field(&StepRun::method, Method::kModelled)));
}

TEST(CudaBackend, LoopsRunAndAreNotRepeated) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(
      "HloModule m\nbody { s = (s32[], f32[64]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
      " v = f32[64] get-tuple-element(s), index=1\n one = s32[] constant(1)\n j = s32[] add(i, one)\n"
      " w = f32[64] tanh(v)\n ROOT t = (s32[], f32[64]) tuple(j, w) }\n"
      "cond { s = (s32[], f32[64]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
      " n = s32[] constant(3)\n ROOT c = pred[] compare(i, n), direction=LT }\n"
      "ENTRY main { z = s32[] constant(0)\n p = f32[64] parameter(0)\n t = (s32[], f32[64]) tuple(z, p)\n"
      " w = (s32[], f32[64]) while(t), condition=cond, body=body\n ROOT r = f32[64] get-tuple-element(w), "
      "index=1 }");
  testing::FakeGpu gpu{device("v100")};
  const Ran ran = run(gpu, graph, {.repeats = 3});
  expect_right(ran);
  EXPECT_THAT(ran.result.host_calls, Contains("w"));
  EXPECT_FALSE(ran.result.repeated.has_value());
}

TEST(CudaBackend, EverythingIsGivenBack) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  run(gpu, testing::dataset("attention_tiny"), {.repeats = 1});
  EXPECT_EQ(gpu.allocated, 0u);
  EXPECT_THAT(gpu.live, ::testing::IsEmpty());
  EXPECT_GT(gpu.calls["module_unload"], 0);
  EXPECT_EQ(gpu.calls["graph_exec_destroy"], 1);
}

TEST(CudaBackend, TheGpusOwnNameUuidAndClocksAreAskedFor) {
  testing::FakeGpu gpu{device("v100")};
  const cuda::Gpu found = cuda::gpu(*testing::fake_driver(gpu), 0);
  EXPECT_EQ(found.name, gpu.device.name);
  EXPECT_EQ(found.uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_EQ(found.clock_kilohertz, static_cast<int>(1e6 * gpu.device.clock_ghz));
  EXPECT_EQ(found.memory_clock_kilohertz, 877'000);
  EXPECT_EQ(found.driver_version, 13000);
}

TEST(CudaBackend, AnotherGpuThanThePlansIsRefused) {
  testing::FakeGpu gpu{device("h200")};
  EXPECT_THAT(
      refusal([&] { cuda::CudaBackend(testing::fake_driver(gpu), device("v100"), {}, {}); }),
      ::testing::AllOf(HasSubstr("sm_90, 132 SMs"), HasSubstr("plan is for v100-sxm2 (sm_70, 80 SMs)")));
}

TEST(CudaBackend, AGridThatCannotBeResidentIsRefusedWithTheNumbers) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  const auto driver = std::make_shared<cuda::Driver>(*testing::fake_driver(gpu));
  driver->resident_blocks = [](int* blocks, cuda::Function, int, std::size_t) -> cuda::Result {
    return *blocks = 0, cuda::kSuccess;
  };
  const Graph graph = testing::dataset("rotary_tiny");
  const Executable executable =
      compile(graph, gpu.device, make_plan(graph, gpu.device, "astitch"), compile_options());
  cuda::CudaBackend backend(driver, gpu.device, {}, {});
  EXPECT_THAT(refusal([&] { run_on(backend, graph, gpu.device, executable, generate_inputs(graph, 0)); }),
              ::testing::AllOf(StartsWith("kernel k0 "), HasSubstr("(planner astitch for v100-sxm2; "),
                               HasSubstr("blocks wait for each other at grid barriers"),
                               HasSubstr("holds 0 (0 an SM")));
  EXPECT_EQ(gpu.calls["launch_cooperative"], 0);
}

TEST(CudaBackend, ClustersThatWaitForEachOtherAreCountedByTheDriver) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("h200")};
  gpu.device.sms = 16;
  gpu.device.gpcs = 1;
  const Graph graph = testing::graph_of(testing::workload("layer_norm_grad").hlo({32, 4096, "f32"}));
  FusionPlan plan =
      make_plan(graph, gpu.device, "astitch", {.knobs = {{"clusters", "off"}, {"tiles", "off"}}});
  ASSERT_EQ(plan.kernels.size(), 1u);
  ASSERT_GT(plan.kernels[0].launch.grid_barriers, 0);
  ASSERT_TRUE(testing::share_rows(graph, gpu.device, plan, 0, 4, 4)) << to_text(graph, plan);
  const Executable executable = compile(graph, gpu.device, plan, compile_options());
  testing::Reference reference(graph, generate_inputs(graph, 0));
  const auto driver = std::make_shared<cuda::Driver>(*testing::fake_driver(gpu));
  const auto run = [&] {
    cuda::CudaBackend backend(driver, gpu.device, {}, {});
    return run_on(backend, graph, gpu.device, executable, reference.inputs());
  };
  EXPECT_EQ(reference.problem(run().outputs), "");
  EXPECT_THAT(gpu.launched,
              Contains(StartsWith(fmt::format("cooperative {}x", plan.kernels[0].launch.grid))));
  EXPECT_GT(gpu.calls["resident_clusters"], 0);
  driver->resident_clusters = [](int* clusters, cuda::Function, const cuda::LaunchConfig*) -> cuda::Result {
    return *clusters = 3, cuda::kSuccess;
  };
  EXPECT_THAT(refusal([&] { run(); }),
              ::testing::AllOf(HasSubstr("blocks wait for each other at grid barriers"),
                               HasSubstr("holds 12 ("), HasSubstr("in clusters of 4")));
}

/// The driver counts as it launches: registers too bound what is resident.
TEST(CudaBackend, ACooperativeLaunchLargerThanWhatIsResidentIsRefusedByTheDriver) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  const auto driver = std::make_shared<cuda::Driver>(*testing::fake_driver(gpu));
  driver->resident_blocks = [](int* blocks, cuda::Function, int, std::size_t) -> cuda::Result {
    return *blocks = 1 << 10, cuda::kSuccess;  // so that the backend asks for more than there is
  };
  const Graph graph = testing::dataset("rotary_tiny");
  Executable executable =
      compile(graph, gpu.device, make_plan(graph, gpu.device, "astitch"), compile_options());
  for (CompiledKernel& kernel : executable.kernels)
    kernel.launch.grid = std::int64_t{gpu.device.sms} * gpu.device.max_blocks_per_sm + 1;
  cuda::CudaBackend backend(driver, gpu.device, {.repeats = 0}, {});
  EXPECT_THAT(refusal([&] { run_on(backend, graph, gpu.device, executable, generate_inputs(graph, 0)); }),
              HasSubstr("cuLaunchCooperativeKernel failed: CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"));
}

TEST(CudaBackend, WhatAKernelTakesBoundsHowManyBlocksAreResident) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  const Graph graph = testing::dataset("softmax_tiny");
  const Executable executable =
      compile(graph, gpu.device, make_plan(graph, gpu.device, "astitch"), compile_options());
  testing::FakeGpu::Kernel kernel{ptx::parse(executable.kernels.at(0).ptx, "k.ptx"),
                                  executable.kernels.at(0).entry};
  testing::fake_driver(gpu);
  const int registers = testing::registers_of(kernel);
  EXPECT_GE(registers, 8);
  gpu.device.registers_per_sm = 32 * registers;  // one warp's, about
  EXPECT_LE(testing::blocks_of_sm(kernel, 32, 0), 1);
}

/// As a GPU does: the error is told at the next call, and the context is of no use after it.
TEST(CudaBackend, AKernelThatWritesOutOfBoundsFailsTheRun) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{.device = device("v100"), .memory_bytes = 1 << 16};
  const Graph graph = testing::graph_of(
      "HloModule m\nENTRY main {\n  p = f32[1000] parameter(0)\n  ROOT a = f32[1000] tanh(p)\n}\n");
  const Graph larger = testing::graph_of(
      "HloModule m\nENTRY main {\n  p = f32[9000] parameter(0)\n  ROOT a = f32[9000] tanh(p)\n}\n");
  Executable executable =
      compile(graph, gpu.device, make_plan(graph, gpu.device, "unfused"), compile_options());
  executable.kernels =
      compile(larger, gpu.device, make_plan(larger, gpu.device, "unfused"), compile_options()).kernels;
  {
    cuda::CudaBackend backend(testing::fake_driver(gpu), gpu.device, {.repeats = 2}, {});
    EXPECT_THAT(refusal([&] { run_on(backend, graph, gpu.device, executable, generate_inputs(graph, 0)); }),
                HasSubstr("cuEventRecord failed: CUDA_ERROR_ILLEGAL_ADDRESS (found by the simulator)"));
  }
  EXPECT_EQ(gpu.findings.size(), 1u);
  EXPECT_THAT(gpu.live, ::testing::IsEmpty());
}

TEST(CudaBackend, ProductsOfNarrowTypesAreOfTheTypesTheyAre) {
  SKIP_WITHOUT_COMPILER();
  for (const auto& [operands, result] : std::vector<std::pair<const char*, const char*>>{
           {"f16", "f16"}, {"bf16", "bf16"}, {"f16", "f32"}, {"bf16", "f32"}, {"f64", "f64"}}) {
    SCOPED_TRACE(fmt::format("{} to {}", operands, result));
    testing::FakeGpu gpu{device("v100")};
    const Ran ran =
        run(gpu,
            testing::graph_of(fmt::format("HloModule m\nENTRY main {{\n  a = {0}[5,7] parameter(0)\n"
                                          "  b = {0}[7,3] parameter(1)\n"
                                          "  d = {1}[5,3] dot(a, b), lhs_contracting_dims={{1}}, "
                                          "rhs_contracting_dims={{0}}\n  ROOT n = {1}[5,3] negate(d)\n}}\n",
                                          operands, result)),
            {.repeats = 1});
    expect_right(ran);
    EXPECT_EQ(ran.result.library_calls.at("d"), "cuBLAS");
  }
}

TEST(CudaBackend, OutOfMemoryNamesTheBufferAndWhatIsThere) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  gpu.memory_bytes = 3000;
  EXPECT_THAT(refusal([&] { run(gpu, testing::dataset("attention_tiny"), {.repeats = 0}); }),
              ::testing::AllOf(::testing::ContainsRegex("^(kernel k[0-9]|lib:)"),
                               HasSubstr("(planner astitch for v100-sxm2"),
                               HasSubstr("bytes of device memory cannot be had"),
                               HasSubstr("of 3000 bytes are free")));
  EXPECT_EQ(gpu.allocated, 0u);
}

/// Ten kernels, each of 1 MB to 1 MB.
std::string chain() {
  std::string text = "HloModule m\nENTRY main {\n  v0 = f32[262144] parameter(0)\n";
  for (int i = 1; i <= 10; ++i)
    text += fmt::format("  {}v{} = f32[262144] tanh(v{})\n", i == 10 ? "ROOT " : "", i, i - 1);
  return text + "}\n";
}

TEST(CudaBackend, BuffersWhoseLifetimesDoNotMeetShareBytes) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  gpu.memory_bytes = std::size_t{7} << 19;  // the input and two others are 3 MB, all eleven would be 11
  const Ran ran = run(gpu, testing::graph_of(chain()), {.repeats = 0}, true, "unfused");
  expect_right(ran);
  EXPECT_EQ(ran.result.kernels.size(), 10u);
}

TEST(CudaBackend, AnAliasIsTheBufferOfWhatItNames) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  const Ran ran = run(gpu,
                      testing::graph_of("HloModule m\nENTRY main {\n  p = f32[64,32] parameter(0)\n"
                                        "  a = f32[64,32] tanh(p)\n  r = f32[2048] bitcast(a)\n"
                                        "  b = f32[2048] negate(r)\n"
                                        "  ROOT t = (f32[2048], f32[2048]) tuple(r, b)\n}\n"),
                      {.repeats = 1}, true, "unfused");
  expect_right(ran);
  EXPECT_EQ(gpu.calls["copy"], 0);
}

CompileOptions dependent() {
  CompileOptions options = compile_options();
  options.dependent_launch = true;
  return options;
}

TEST(CudaBackend, DependentLaunchesAreThoseOfKernelsWithoutGridBarriers) {
  if (!find_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  for (const char* name : {"layer_norm_grad_tiny", "bert_tiny"}) {
    SCOPED_TRACE(name);
    testing::FakeGpu gpu{device("h200")};
    const Ran ran = testing::run_on_fake_gpu(gpu, testing::dataset(name), {.repeats = 1},
                                             {testing::fake_blas, {}}, "astitch", dependent());
    expect_right(ran);
    EXPECT_EQ(gpu.calls["launch"], 0);
    EXPECT_GT(gpu.calls["launch_cooperative"] + gpu.calls["launch_with"], 0);
    EXPECT_THAT(gpu.launched,
                ::testing::Each(::testing::AnyOf(StartsWith("cooperative "), StartsWith("dependent "))));
    ASSERT_TRUE(ran.result.repeated.has_value());
    EXPECT_TRUE(ran.result.repeated->graph_us.has_value());
  }
}

TEST(CudaBackend, ADependentLaunchThatFailsOrThatTheDriverHasNotIsOneLine) {
  if (!find_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  const Graph graph = testing::dataset("softmax_tiny");
  testing::FakeGpu failing{device("h200")};
  failing.fail_at["launch_with"] = 1;
  EXPECT_THAT(
      refusal([&] { testing::run_on_fake_gpu(failing, graph, {}, {}, "astitch", dependent()); }),
      ::testing::AllOf(StartsWith("kernel k0 "), HasSubstr("cuLaunchKernelEx failed: CUDA_ERROR_FAKE")));
  testing::FakeGpu old{device("h200")};
  const auto driver = std::make_shared<cuda::Driver>(*testing::fake_driver(old));
  driver->launch_with = nullptr;
  const Executable executable =
      compile(graph, old.device, make_plan(graph, old.device, "astitch"), dependent());
  cuda::CudaBackend backend(driver, old.device, {}, {});
  EXPECT_THAT(refusal([&] { run_on(backend, graph, old.device, executable, generate_inputs(graph, 0)); }),
              HasSubstr("driver of CUDA 11.8 or later"));
}

TEST(CudaBackend, AFailedLaunchNamesKernelAndGrid) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  gpu.fail_at["launch"] = 1;
  EXPECT_THAT(refusal([&] { run(gpu, testing::dataset("softmax_tiny")); }),
              ::testing::AllOf(StartsWith("kernel k0 "), HasSubstr("(planner astitch for v100-sxm2; "),
                               HasSubstr("blocks of"), HasSubstr("cuLaunchKernel failed")));
}

TEST(CudaBackend, TheJitsComplaintIsPassedOn) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  gpu.fail_at["module_load"] = 1;
  EXPECT_THAT(refusal([&] { run(gpu, testing::dataset("softmax_tiny")); }),
              HasSubstr("ptxas fatal : as asked for"));
}

TEST(CudaBackend, MachineCodeIsLoadedFirstAndPtxWhereItIsOfAnotherGpu) {
  if (!find_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  testing::FakeGpu gpu{device("h200")};
  const Graph graph = testing::dataset("softmax_tiny");
  CompileOptions options = compile_options();
  options.cubin = true;
  const Executable executable = compile(graph, gpu.device, make_plan(graph, gpu.device, "astitch"), options);
  ASSERT_FALSE(executable.kernels.at(0).cubin.empty());
  const std::vector<Literal> inputs = generate_inputs(graph, 0);
  cuda::CudaBackend backend(testing::fake_driver(gpu), gpu.device, {.repeats = 0}, {testing::fake_blas, {}});
  RunResult result = run_on(backend, graph, gpu.device, executable, inputs);
  const CheckResult check = Judge(graph, inputs).check(result.outputs);
  expect_right({std::move(result), check});
  EXPECT_EQ(gpu.calls["machine_code"], 1);
}

TEST(CudaBackend, AGraphThatCannotBeCapturedIsOnlyLeftOut) {
  SKIP_WITHOUT_COMPILER();
  for (const char* call : {"capture_begin", "capture_end", "graph_instantiate"}) {
    testing::FakeGpu gpu{device("v100")};
    gpu.fail_at[call] = 1;
    const Ran ran = run(gpu, testing::dataset("softmax_tiny"), {.repeats = 2});
    expect_right(ran);
    ASSERT_TRUE(ran.result.repeated.has_value()) << call;
    EXPECT_FALSE(ran.result.repeated->graph_us.has_value()) << call;
  }
}

TEST(CudaDriver, WithoutADriverThereIsOneLine) {
  EXPECT_THAT(refusal([] { cuda::load_driver("libno-such-driver.so.1"); }),
              ::testing::AllOf(HasSubstr("no CUDA driver"), HasSubstr("--backend sim")));
  EXPECT_THAT(refusal([] { cuda::load_driver("libm.so.6"); }), HasSubstr("has no cuInit"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
