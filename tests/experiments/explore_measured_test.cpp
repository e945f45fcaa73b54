// Mini-batches run as a whole on a GPU, which is the simulator here: kernels take the time they are simulated
// to take, what a library does takes none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"
#include "experiments/explore.h"
#include "experiments/minibatch_runner.h"
#include "tests/codegen/harness.h"
#include "tests/experiments/sample_trial.h"
#include "tests/runtime/fake_cublas.h"
#include "tests/runtime/fake_cuda.h"
#include "tests/runtime/fake_cudnn.h"
#include "tests/support/astra_graphs.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::message_of;
using testing::model_of;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ExploreOptions options_of(testing::FakeGpu& gpu, const std::string& planner) {
  ExploreOptions options;
  options.trial.planner = planner;
  options.trial.device = gpu.device.id;
  options.trial.backend = "cuda";
  options.trial.repeats = 1;
  options.trial.check = true;
  options.driver = testing::fake_driver(gpu);
  options.libraries = {testing::fake_blas, testing::fake_dnn};
  return options;
}

TEST(ExploreMeasured, KeepsWhatIsFastestOnTheGpu) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{.device = device("v100")};
  const Model model = model_of(testing::astra_lstm_cell());
  ExploreOptions options = options_of(gpu, "astra");
  options.trial.options.knobs["gemm_kernels"] = "off";
  const Exploration e = explore(model, options);
  EXPECT_TRUE(e.done);
  EXPECT_EQ(e.times, "measured");
  EXPECT_THAT(e.method, HasSubstr("measured on "));
  ASSERT_TRUE(e.gpu);
  EXPECT_EQ(e.kernels, std::vector<std::string>{"library"});
  for (const char* dimension : {"fusion", "streams"}) EXPECT_GT(e.by_dimension.count(dimension), 0u);
  EXPECT_LE(e.minibatches[e.best].us, e.minibatches[0].us);
  for (const MiniBatch& one : e.minibatches) EXPECT_GE(one.us, e.minibatches[e.best].us * 0.99);
  EXPECT_TRUE(verify(model.graph, gpu.device, e.plan).empty());
  ASSERT_TRUE(e.points_overhead);
  EXPECT_NEAR(*e.points_overhead, 0, 1e-6) << "events take no time here";
  EXPECT_THAT(gpu.live, IsEmpty());
  EXPECT_EQ(gpu.calls["blas_create"], 2) << "a handle a stream, whatever mini-batches there are";
}

/// The time of each step is its own, and all of them are the whole.
TEST(ExploreMeasured, StepsAreTimedWhereTheyStand) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{.device = device("v100")};
  const Model model = model_of(testing::dataset("scrnn_tiny"));
  TrialSpec trial = options_of(gpu, "xla").trial;
  trial.repeats = 3;
  MiniBatchRunner runner(model, trial, testing::fake_driver(gpu), {testing::fake_blas, {}});
  const FusionPlan plan = make_plan(model.graph, gpu.device, "xla");
  const std::vector<Literal> inputs = trial_inputs(model, trial);
  const RunResult run = runner.run(plan, inputs);
  const astra::Pass pass = measured_pass(model, run);
  ASSERT_EQ(pass.ends_us.size(), plan.steps.size());
  double before = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    EXPECT_NEAR(pass.ends_us[s] - before, run.steps[s].time_us, 2e-3 * (1 + before)) << plan.steps[s].id;
    before = pass.ends_us[s];
  }
  EXPECT_NEAR(before, pass.whole_us, 1e-3 * before);
  EXPECT_NEAR(run.repeated->points_us, pass.whole_us, 1e-3 * before);
}

/// Plans of several planners in turn on one backend give what each gives on one of its own.
TEST(ExploreMeasured, OneBackendRunsPlanAfterPlan) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{.device = device("v100")};
  const Model model = model_of(testing::dataset("scrnn_tiny"));
  const TrialSpec trial = options_of(gpu, "xla").trial;
  const std::vector<Literal> inputs = trial_inputs(model, trial);
  Judge judge(model.graph, inputs);
  const std::vector<const char*> planners = {"astra-fks", "xla", "astra+astitch", "unfused"};
  const auto runner = [&] {
    return std::make_unique<MiniBatchRunner>(model, trial, testing::fake_driver(gpu),
                                             cuda::CudaLibraries{testing::fake_blas, {}});
  };
  std::vector<RunResult> alone;
  for (const char* planner : planners)
    alone.push_back(runner()->run(make_plan(model.graph, gpu.device, planner), inputs));
  const auto one = runner();
  for (int round = 0; round < 2; ++round)
    for (std::size_t p = 0; p < planners.size(); ++p) {
      SCOPED_TRACE(planners[p]);
      const RunResult here = one->run(make_plan(model.graph, gpu.device, planners[p]), inputs);
      EXPECT_TRUE(judge.check(here.outputs).ok);
      EXPECT_EQ(here.repeated->ends_us.size(), alone[p].repeated->ends_us.size());
      EXPECT_NEAR(here.repeated->stream_us, alone[p].repeated->stream_us, 1e-2);
      for (std::size_t i = 0; i < here.outputs.size(); ++i)
        EXPECT_EQ(here.outputs[i].bytes, alone[p].outputs[i].bytes) << i;
    }
}

/// Products are tried by the library and by kernels of ours, and the plan that is kept names those.
TEST(ExploreMeasured, APlanNamesTheKernelsOfItsProducts) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{.device = device("v100")};
  const Model model = model_of(testing::astra_one_tensor());
  ExploreOptions options = options_of(gpu, "astra-fk");
  options.libraries = {};  // no cuBLAS: ours make all
  const Exploration e = explore(model, options);
  EXPECT_EQ(e.kernels.size(), 16u);
  EXPECT_EQ(e.kernels[0], "tiled-64x64");
  int named = 0;
  for (const PlanStep& step : e.plan.steps) {
    EXPECT_EQ(step.variant.empty(), step.kind != StepKind::kLibrary);
    named += step.variant.empty() ? 0 : 1;
  }
  EXPECT_EQ(named, e.plan.counts.library_calls);
  options = options_of(gpu, "astra-fk");
  options.batches = 20;
  const Exploration both = explore(model, options);
  EXPECT_EQ(both.kernels.size(), 17u);
  EXPECT_EQ(both.kernels[0], "library");
  std::set<std::string> bound, in_plan;
  for (const auto& [name, option] : both.minibatches[both.best].bindings)
    if (option.starts_with("tiled-")) bound.insert(option);
  for (const PlanStep& step : both.plan.steps)
    if (!step.variant.empty()) in_plan.insert(step.variant);
  EXPECT_EQ(in_plan, bound);
}

TEST(ExploreMeasured, GoesOnWhereItWasStopped) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{.device = device("v100")};
  const Model model = model_of(testing::astra_conflict());
  ExploreOptions options = options_of(gpu, "astra-fks");
  options.trial.options.knobs["gemm_kernels"] = "off";
  const Exploration whole = explore(model, options);
  options.history = testing::test_folder() + "/history.db";
  options.resume = true;
  options.batches = 2;
  EXPECT_FALSE(explore(model, options).done);
  options.batches.reset();
  const Exploration resumed = explore(model, options);
  EXPECT_EQ(resumed.resumed, 2u);
  ASSERT_EQ(resumed.minibatches.size(), whole.minibatches.size());
  for (std::size_t i = 0; i < whole.minibatches.size(); ++i)
    EXPECT_EQ(resumed.minibatches[i].bindings, whole.minibatches[i].bindings) << i;
  options.trial.repeats = 2;
  EXPECT_THAT(message_of([&] { explore(model, options); }),
              HasSubstr("is an exploration of repeats 1, not 2"));
}

TEST(ExploreMeasured, WhatCannotBeMeasuredIsOneLine) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{.device = device("v100")};
  const Model model = model_of(testing::graph_of(R"(HloModule m
ENTRY main {
  a = f64[4,8] parameter(0)
  b = f64[8,8] parameter(1)
  ROOT d = f64[4,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})"));
  ExploreOptions options = options_of(gpu, "astra-f");
  options.libraries = {};
  EXPECT_THAT(message_of([&] { explore(model, options); }),
              AllOf(HasSubstr("the host computes d, so that a mini-batch has no time on the GPU"),
                    HasSubstr("explore modelled or simulated times")));
  options.trial.device = "a100-sxm-80";
  EXPECT_THAT(message_of([&] { explore(model, options); }), HasSubstr("the plan is for a100-sxm-80"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
