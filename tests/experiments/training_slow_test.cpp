// A training job explored for as long as the paper says it takes: every mini-batch is progress.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/explore.h"
#include "experiments/minibatch_runner.h"
#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

/// 200 mini-batches of all that `astra` tries have the losses of the model op by op.
TEST(TrainingForLong, LossesAreThoseOfTheModelOpByOp) {
  SKIP_WITHOUT_COMPILER();
  constexpr std::size_t kMiniBatches = 200;
  const Model model = load_model("scrnn_tiny");
  ExploreOptions options;
  options.trial.planner = "astra";
  options.trial.backend = "sim";
  options.trial.check = true;
  options.train = training_state(model.graph);
  options.batches = kMiniBatches;
  const Exploration e = explore(model, options);
  ASSERT_EQ(e.minibatches.size(), kMiniBatches);
  std::set<std::string> dimensions;
  for (const MiniBatch& one : e.minibatches) dimensions.insert(one.dimension);
  EXPECT_GE(dimensions.size(), 4u) << "products, kernels and streams were tried";

  MiniBatchRunner runner(model, options.trial);
  const FusionPlan unfused = make_plan(model.graph, device(options.trial.device), "unfused");
  Training training(model, options.trial.seed, *options.train);
  double worst = 0;
  for (std::size_t n = 0; n < kMiniBatches; ++n) {
    const RunResult run = runner.run(unfused, training.inputs(n));
    const double loss = training.loss(run.outputs).value();
    worst = std::max(worst, std::abs(e.minibatches[n].loss.value() / loss - 1));
    training.step(run.outputs);
  }
  RecordProperty("worst_relative_difference", fmt::format("{:.3g}", worst));
  // The check's tolerance of f32 results (docs/inputs.md).
  EXPECT_LT(worst, 1e-4);
  EXPECT_NE(e.minibatches.back().loss, e.minibatches.front().loss);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
