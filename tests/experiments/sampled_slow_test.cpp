// Sampled runs of the micro graphs at their published sizes, kernel by kernel against exact ones.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
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

/// `large`: has kernels of more waves than are run of a sample; kernels of fewer are run whole.
struct MicroGraph {
  const char* name;
  bool large;
};

class SampledTrial : public ::testing::TestWithParam<MicroGraph> {};

TEST_P(SampledTrial, CountsAndTimesOfEveryKernelAreNearExactOnes) {
  const Model model = load_model(GetParam().name);
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
      const auto dram =
          static_cast<double>(e.counters.dram_read_transactions + e.counters.dram_write_transactions);
      for (std::size_t c = 0; c < of_exact.size(); ++c) {
        // Of DRAM's traffic, not of its rarer direction: which few sectors L2 has room for is chance.
        const double scale = of_exact[c].first.starts_with("dram_") ? dram : std::abs(of_exact[c].second);
        EXPECT_NEAR(of_sample[c].second, of_exact[c].second, kWithin * scale) << of_exact[c].first;
      }
    }
    EXPECT_NEAR(sampled.run.total_us, exact.run.total_us, kWithin * exact.run.total_us);
  }
  EXPECT_EQ(sampled_kernels > 0, GetParam().large);
}

INSTANTIATE_TEST_SUITE_P(MicroGraphs, SampledTrial,
                         ::testing::Values(MicroGraph{"softmax", true}, MicroGraph{"layer_norm", true},
                                           MicroGraph{"gelu", false}, MicroGraph{"gelu_tanh", false},
                                           MicroGraph{"column_sum", true}, MicroGraph{"row_64x30000", false},
                                           MicroGraph{"row_750000x32", true}),
                         [](const auto& info) { return std::string(info.param.name); });

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
