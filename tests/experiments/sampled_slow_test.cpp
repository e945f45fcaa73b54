// Sampled runs of the micro graphs at their published sizes, kernel by kernel against exact ones.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/hlo/hlo_text.h"
#include "experiments/model.h"
#include "experiments/trial.h"

namespace stitchwork {
namespace TEST_FILE {

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

/// Condition and body of each loop are run once in a sample; how often they would be, and for how long, is
/// what all their runs come to.
TEST(SampledLoops, StandForAllTheirTrips) {
  const Model model = load_model("speech_train_tiny");
  for (const char* planner : {"unfused", "astitch"}) {
    SCOPED_TRACE(planner);
    const TrialResult exact = ran(model, planner, false), sampled = ran(model, planner, true);
    EXPECT_NEAR(sampled.run.total_us, exact.run.total_us, kWithin * exact.run.total_us);
    ASSERT_EQ(exact.run.computations.size(), sampled.run.computations.size());
    ASSERT_FALSE(exact.run.computations.empty());
    for (std::size_t c = 0; c < exact.run.computations.size(); ++c) {
      const ComputationRun &e = exact.run.computations[c], &s = sampled.run.computations[c];
      EXPECT_EQ(s.runs, e.runs);
      ASSERT_EQ(s.kernels.size(), e.kernels.size());
      for (std::size_t k = 0; k < e.kernels.size(); ++k) {
        EXPECT_EQ(s.kernels[k].launches, e.kernels[k].launches);
        EXPECT_NEAR(s.kernels[k].time_us, e.kernels[k].time_us, kWithin * e.kernels[k].time_us);
      }
    }
  }
}

TEST(SampledTrialRefusals, ALoopThatEndsByAValueIsRefused) {
  Model model;
  model.graph = parse_hlo(R"(HloModule m
cond {
  s = f32[8] parameter(0)
  at = f32[1] slice(s), slice={[0:1]}
  first = f32[] reshape(at)
  limit = f32[] constant(100)
  ROOT less = pred[] compare(first, limit), direction=LT
}
body {
  s = f32[8] parameter(0)
  ROOT twice = f32[8] add(s, s)
}
ENTRY main {
  x = f32[8] parameter(0)
  ROOT w = f32[8] while(x), condition=cond, body=body
}
)",
                          "values.hlo");
  TrialSpec spec;
  spec.sampled = true;
  try {
    run_trial(model, spec);
    FAIL() << "ran";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("w runs until a value says so"), std::string::npos)
        << error.what();
  }
}

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

}  // namespace TEST_FILE
}  // namespace stitchwork
