// The simulator judges planner auto (scripts/bench/auto prints the whole table).
#include <gtest/gtest.h>

#include <algorithm>

#include "experiments/model.h"
#include "experiments/trial.h"
#include "tests/support/graphs.h"
#include "tests/support/rotation.h"

namespace stitchwork {
namespace TEST_FILE {

/// What the estimate may be wrong by.
constexpr double kLimit = 1.03;

double simulated_us(const Model& model, const char* planner, const char* device) {
  TrialSpec spec;
  spec.planner = planner;
  spec.device = device;
  return run_trial(model, spec).run.total_us;
}

class AutoJudged : public ::testing::TestWithParam<const char*> {};

TEST_P(AutoJudged, IsNoSlowerThanTheBetterOfXlaAndAstitch) {
  const Model model = load_model(GetParam());
  for (const char* device : {"v100", "h200"}) {
    SCOPED_TRACE(device);
    const double best = std::min(simulated_us(model, "xla", device), simulated_us(model, "astitch", device));
    EXPECT_LE(simulated_us(model, "auto", device), kLimit * best);
  }
}

INSTANTIATE_TEST_SUITE_P(Datasets, AutoJudged,
                         ::testing::Values("fig5", "fig7", "softmax_tiny", "layer_norm_tiny", "gelu_tiny",
                                           "gelu_tanh_tiny", "column_sum_tiny", "row_tiny", "softmax",
                                           "layer_norm", "gelu", "gelu_tanh", "column_sum", "row_64x30000",
                                           "row_750000x32", "bert_tiny", "bert_layer", "rotary",
                                           "rotary_interleaved", "adam_step_tiny"),
                         [](const auto& info) { return std::string(info.param); });

/// Values that several concatenated parts share: TVM computes them in one loop.
class AutoJudgedOnRotations : public ::testing::TestWithParam<const char*> {};

TEST_P(AutoJudgedOnRotations, IsNoSlowerThanTvm) {
  const Model model = load_model(GetParam());
  for (const char* device : {"v100", "a100", "h200"})
    EXPECT_LE(simulated_us(model, "auto", device), kLimit * simulated_us(model, "tvm", device)) << device;
}

TEST(AutoJudgedRotation, OfOneTableIsNoSlowerThanTvmWhereAStitchIs) {
  const Model model{testing::graph_of(testing::kOneRotation), {}, {}};
  for (const char* device : {"v100", "a100", "h200"}) {
    const double tvm = simulated_us(model, "tvm", device);
    EXPECT_LE(simulated_us(model, "auto", device), kLimit * tvm) << device;
    EXPECT_GT(simulated_us(model, "astitch", device), kLimit * tvm) << device;
  }
}

INSTANTIATE_TEST_SUITE_P(Datasets, AutoJudgedOnRotations,
                         ::testing::Values("rotary", "rotary_interleaved", "rotary_tiny",
                                           "rotary_interleaved_tiny"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace TEST_FILE
}  // namespace stitchwork
