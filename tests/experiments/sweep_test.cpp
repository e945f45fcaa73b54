// Design-space sweeps: limits of a device, blocks and split factors as axes of an experiment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "experiments/results.h"
#include "experiments/runner.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ExperimentSpec spec(const std::string& rest) {
  return parse_experiment(R"({"schema":"stitchwork.experiment/1","name":"e","backend":"model",)"
                          R"("variants":[{"name":"A","planner":"astitch","set":{"mapping":"paper"}}],)" +
                              rest + "}",
                          "e.json");
}

std::string problem(const std::string& rest) {
  try {
    spec(rest);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Sweep, MultipliesVariantsByEveryCombination) {
  const ExperimentSpec found =
      spec(R"("workloads":["fig7"],"sweep":[{"limit":"threads_per_block","values":[256,512]},)"
           R"({"split_factor_of":"reduce.2","values":[2,4]}])");
  std::vector<std::string> names;
  for (const Variant& variant : found.variants) names.push_back(variant.name);
  EXPECT_THAT(names, ElementsAre("A, threads_per_block 256, split 2", "A, threads_per_block 256, split 4",
                                 "A, threads_per_block 512, split 2", "A, threads_per_block 512, split 4"));
  EXPECT_EQ(found.variants[3].limits.at("threads_per_block"), 512);
  EXPECT_EQ(found.variants[3].edits.at(0).n, 4);
}

TEST(Sweep, LimitsAndEditsReachThePlan) {
  const ExperimentSpec found =
      spec(R"("workloads":["fig7"],"sweep":[{"limit":"threads_per_block","values":[256,1024]}])");
  const Model model = load_model("fig7");
  for (const Cell& cell : cells(found)) {
    const TrialSpec trial = trial_of(found, cell);
    const TrialResult result = run_trial(model, trial);
    for (const KernelPlan& kernel : result.executable.plan.kernels)
      EXPECT_LE(kernel.launch.block, trial.limits.at("threads_per_block"));
  }
  EXPECT_NE(trial_key(model, trial_of(found, {0, 0, 0, 0})), trial_key(model, trial_of(found, {0, 1, 0, 0})));
}

TEST(Sweep, ABlockOfAnOpIsThatOfItsKernel) {
  const ExperimentSpec found =
      spec(R"("workloads":["fig7"],"sweep":[{"block_of":"reduce.1","values":[128,512]}])");
  for (const Cell& cell : cells(found)) {
    const TrialResult result = run_trial(load_model("fig7"), trial_of(found, cell));
    EXPECT_EQ(result.executable.plan.kernels.at(0).launch.block, cell.variant == 0 ? 128 : 512);
  }
}

TEST(Sweep, FewerRegistersAndLessSharedMemoryAreKeptTo) {
  const ExperimentSpec found =
      spec(R"("workloads":["layer_norm_grad"],"sweep":[{"limit":"registers_per_thread","values":[32]},)"
           R"({"limit":"shared_bytes_per_block","values":[8192]}])");
  const TrialResult result = run_trial(load_model("layer_norm_grad"), trial_of(found, {0, 0, 0, 0}));
  for (const KernelPlan& kernel : result.executable.plan.kernels) {
    EXPECT_LE(kernel.launch.register_bound, 32);
    EXPECT_LE(kernel.launch.shared_bytes, 8192);
  }
}

TEST(Sweep, WhatCannotBeIsRefusedWithItsPlace) {
  EXPECT_THAT(problem(R"("workloads":["fig7"],"sweep":[{"limit":"warps","values":[1]}])"),
              HasSubstr("sweep[0].values[0]: no limit of a device is called 'warps'"));
  EXPECT_THAT(problem(R"("workloads":["fig7"],"sweep":[{"limit":"threads_per_block","values":[1]}])"),
              HasSubstr("no kernel keeps to it"));
  EXPECT_THAT(problem(R"("workloads":["fig7"],"sweep":[{"limit":"threads_per_block","values":[]}])"),
              HasSubstr("the list is empty"));
  EXPECT_THAT(problem(R"("workloads":["fig7"],"sweep":[{"values":[1]}])"), HasSubstr("an axis has one of"));
}

TEST(Sweep, LimitsOfTheDeviceAreNeverMoreThanItHas) {
  const Device& v100 = device("v100-sxm2");
  EXPECT_EQ(limited(v100, {{"threads_per_block", 1 << 20}}).max_threads_per_block, 1024);
  EXPECT_EQ(limited(v100, {{"registers_per_thread", 64}}).max_registers_per_thread, 64);
  EXPECT_EQ(to_text(DeviceLimits{{"threads_per_block", 256}, {"registers_per_thread", 64}}),
            "registers_per_thread 64, threads_per_block 256");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
