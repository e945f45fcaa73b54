// Steps that depend on weights alone: done once, outside what is timed and repeated.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/runtime/fake_cublas.h"
#include "tests/runtime/fake_cudnn.h"
#include "tests/runtime/on_fake_gpu.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

/// Weights that are appended before a call reads them.
Graph model() {
  return testing::graph_of(R"(
  x = f32[8,64] parameter(0)
  w = f32[64,16] parameter(1)
  v = f32[64,16] parameter(2)
  c = f32[64,32] concatenate(w, v), dimensions={1}
  s = f32[64,32] tanh(c)
  d = f32[8,32] dot(x, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[8,32] exponential(d))");
}

struct Ready {
  Graph graph = model();
  FusionPlan plan = make_plan(graph, device("v100"), "auto",
                              {.knobs = {{"weights", "stable"}, {"products", "off"}}, .weights = {"w", "v"}});
  Executable executable = compile(graph, device("v100"), plan, {.ptxas = false});
  std::vector<Literal> inputs = generate_inputs(graph, 0);
};

TEST(Weights, TheSimulatorTellsTheirTimeApart) {
  SKIP_WITHOUT_COMPILER();
  const Ready r;
  ASSERT_EQ(r.plan.steps.size(), 3U);
  ASSERT_TRUE(r.plan.steps[0].once);
  const RunResult run = run_simulated(r.graph, device("v100"), r.executable, r.inputs);
  Judge judge(r.graph, r.inputs);
  EXPECT_TRUE(judge.check(run.outputs).ok);
  EXPECT_DOUBLE_EQ(run.once_us, run.steps[0].time_us);
  EXPECT_DOUBLE_EQ(run.total_us, run.steps[1].time_us + run.steps[2].time_us + device("v100").launch_gap_us);
}

TEST(Weights, AGpuRepeatsARunWithoutThem) {
  SKIP_WITHOUT_COMPILER();
  const Ready r;
  testing::FakeGpu gpu{.device = device("v100")};
  constexpr int kRepeats = 5;
  RunResult run;
  {
    testing::cu::CudaBackend backend(fake_driver(gpu), gpu.device,
                                     {.repeats = kRepeats, .cache = sim::CacheMode::kWarm},
                                     {testing::fake_blas, testing::fake_dnn});
    run = run_on(backend, r.graph, gpu.device, r.executable, r.inputs);
  }
  Judge judge(r.graph, r.inputs);
  EXPECT_TRUE(judge.check(run.outputs).ok);
  ASSERT_TRUE(run.repeated);
  const auto launches = [&](const KernelPlan& kernel) {
    const std::string shape = fmt::format(" {}x{}", kernel.launch.grid, kernel.launch.block);
    return std::ranges::count_if(gpu.launched, [&](const std::string& how) { return how.ends_with(shape); });
  };
  ASSERT_NE(r.plan.kernels[0].launch.grid, r.plan.kernels[1].launch.grid);
  // Each is first done, repeated alone for its own time, and once more behind that; passes have one of them.
  EXPECT_GE(launches(r.plan.kernels[1]) - launches(r.plan.kernels[0]), kRepeats);
  EXPECT_THAT(gpu.live, ::testing::IsEmpty());
}

}  // namespace TEST_FILE
}  // namespace stitchwork
