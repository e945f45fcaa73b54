// Sampled runs of the micro graphs at their published sizes, kernel by kernel against exact ones.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "experiments/model.h"
#include "experiments/trial.h"

namespace stitchwork {
namespace {

constexpr double kWithin = 0.02;

TrialResult ran(const Model& model, const std::string& planner, bool sampled) {
  TrialSpec spec;
  spec.planner = planner;
  spec.sampled = sampled;
  return run_trial(model, spec);
}

class SampledTrial : public ::testing::TestWithParam<const char*> {};

TEST_P(SampledTrial, CountsAndTimesOfEveryKernelAreNearExactOnes) {
  const Model model = load_model(GetParam());
  int sampled_kernels = 0;
  for (const char* planner : {"unfused", "xla", "tvm", "astitch"}) {
    SCOPED_TRACE(planner);
    const TrialResult exact = ran(model, planner, false), sampled = ran(model, planner, true);
    EXPECT_TRUE(sampled.run.outputs.empty());
    ASSERT_EQ(exact.run.kernels.size(), sampled.run.kernels.size());
    for (std::size_t k = 0; k < exact.run.kernels.size(); ++k) {
      const KernelRun &e = exact.run.kernels[k], &s = sampled.run.kernels[k];
      SCOPED_TRACE(exact.executable.plan.kernels[k].name);
      EXPECT_EQ(e.method, Method::kSimulated);
      sampled_kernels += s.method == Method::kSampled;
      EXPECT_NEAR(s.time_us, e.time_us, kWithin * e.time_us);
      const auto of_exact = sim::counter_list(e.counters), of_sample = sim::counter_list(s.counters);
      for (std::size_t c = 0; c < of_exact.size(); ++c)
        EXPECT_NEAR(of_sample[c].second, of_exact[c].second, kWithin * std::abs(of_exact[c].second))
            << of_exact[c].first;
    }
    EXPECT_NEAR(sampled.run.total_us, exact.run.total_us, kWithin * exact.run.total_us);
  }
  EXPECT_GT(sampled_kernels, 0);
}

INSTANTIATE_TEST_SUITE_P(MicroGraphs, SampledTrial,
                         ::testing::Values("softmax", "layer_norm", "gelu", "gelu_tanh", "column_sum",
                                           "row_64x30000", "row_750000x32"),
                         [](const auto& info) { return std::string(info.param); });

TEST(SampledTrialRefusals, WhatNeedsResultsIsRefused) {
  const Model model = load_model("softmax_tiny");
  TrialSpec spec;
  spec.sampled = spec.check = true;
  EXPECT_THROW(run_trial(model, spec), Error);
  spec.check = false;
  spec.sanitize.race = true;
  EXPECT_THROW(run_trial(model, spec), Error);
  spec.sanitize.race = false;
  spec.cache = sim::CacheMode::kWarm;
  EXPECT_THROW(run_trial(model, spec), Error);
}

}  // namespace
}  // namespace stitchwork
