// Mini-batches that train: what one makes of the parameters is the next one's.
#include "experiments/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "experiments/explore.h"
#include "tests/codegen/harness.h"
#include "tests/experiments/sample_trial.h"
#include "tests/runtime/fake_cublas.h"
#include "tests/runtime/fake_cuda.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::message_of;

using ::testing::HasSubstr;

Model scrnn() { return load_model("scrnn_tiny"); }

ExploreOptions options_of(const Model& model, const std::string& planner) {
  ExploreOptions options;
  options.trial.planner = planner;
  options.trial.device = "v100-sxm2";
  options.trial.backend = "sim";
  options.trial.check = true;
  options.train = training_state(model.graph);
  return options;
}

/// Of the model itself, step after step, by the CPU reference.
std::vector<double> losses_of_reference(const Model& model, std::size_t count) {
  Training training(model, 0, training_state(model.graph));
  std::vector<double> losses;
  for (std::size_t n = 0; n < count; ++n) {
    const std::vector<Literal> outputs = evaluate(model.graph, training.inputs(n));
    losses.push_back(training.loss(outputs).value());
    training.step(outputs);
  }
  return losses;
}

TEST(Training, ParametersAreFedBackAndOthersDrawnAnew) {
  const Model model = scrnn();
  Training training(model, 3, training_state(model.graph));
  const std::vector<Literal> first = training.inputs(0), second = training.inputs(1);
  const Computation& computation = model.graph.entry_computation();
  std::size_t same = 0;
  for (std::size_t p = 0; p < first.size(); ++p) {
    const bool variable = computation.node(computation.parameters[p]).name.starts_with("variables");
    EXPECT_EQ(first[p].bytes == second[p].bytes, variable)
        << computation.node(computation.parameters[p]).name;
    same += variable ? 1 : 0;
  }
  EXPECT_EQ(same, 6u);
  EXPECT_EQ(first[0].bytes, generate_inputs(model.graph, 3, model.inputs)[0].bytes);
  const std::vector<Literal> outputs = evaluate(model.graph, first);
  training.step(outputs);
  for (const FedBack& one : training_state(model.graph))
    EXPECT_EQ(training.inputs(1)[one.parameter].bytes, outputs[one.result].bytes);
}

TEST(Training, MiniBatchesThatExploreAreProgress) {
  SKIP_WITHOUT_COMPILER();
  const Model model = scrnn();
  ExploreOptions options = options_of(model, "astra-fk");
  options.batches = 12;
  const Exploration e = explore(model, options);
  const std::vector<double> reference = losses_of_reference(model, 12);
  ASSERT_EQ(e.minibatches.size(), 12u);
  for (std::size_t n = 0; n < 12; ++n) {
    ASSERT_TRUE(e.minibatches[n].loss);
    EXPECT_NEAR(*e.minibatches[n].loss, reference[n], 1e-5 * reference[n]) << n;
    EXPECT_TRUE(n == 0 || *e.minibatches[n].loss != *e.minibatches[n - 1].loss);
  }
  // What is tried does not depend on what is trained.
  options.train.reset();
  const Exploration fixed = explore(model, options);
  for (std::size_t n = 0; n < 12; ++n) {
    EXPECT_EQ(e.minibatches[n].bindings, fixed.minibatches[n].bindings) << n;
    EXPECT_EQ(e.minibatches[n].us, fixed.minibatches[n].us) << n;
    EXPECT_FALSE(fixed.minibatches[n].loss);
  }
}

TEST(Training, GoesOnFromTheStateThatItWasStoppedIn) {
  SKIP_WITHOUT_COMPILER();
  const Model model = scrnn();
  ExploreOptions options = options_of(model, "astra-fk");
  options.trial.check = false;
  options.batches = 6;
  const Exploration whole = explore(model, options);
  options.history = testing::test_folder() + "/history.db";
  options.resume = true;
  for (const std::size_t some : {1, 3, 2}) {
    options.batches = some;
    explore(model, options);
  }
  options.batches = 0;
  const Exploration resumed = explore(model, options);
  EXPECT_EQ(resumed.minibatches, whole.minibatches);
  options.train.reset();
  EXPECT_THAT(message_of([&] { explore(model, options); }), HasSubstr("is an exploration of training"));
}

TEST(Training, AGpuTrainsLikewise) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{.device = device("v100")};
  const Model model = scrnn();
  ExploreOptions options = options_of(model, "astra-fks");
  options.trial.backend = "cuda";
  options.trial.repeats = 2;
  options.batches = 8;
  options.driver = testing::fake_driver(gpu);
  options.libraries = {testing::fake_blas, {}};
  const Exploration e = explore(model, options);
  const std::vector<double> reference = losses_of_reference(model, 8);
  for (std::size_t n = 0; n < 8; ++n)
    EXPECT_NEAR(e.minibatches[n].loss.value(), reference[n], 1e-5 * reference[n]) << n;
}

TEST(Training, WhatCannotBeFedBackIsOneLine) {
  const Model model = scrnn();
  const auto refused = [&](const std::string& text) {
    return message_of([&] { Training(model, 0, {parse_fed_back(model, text)}); });
  };
  EXPECT_EQ(refused("1=variables.a"), "nothing was thrown");
  EXPECT_THAT(refused("1"), HasSubstr("--state 1 is no RESULT=PARAMETER"));
  EXPECT_THAT(refused("7=variables.a"), HasSubstr("results are numbered 0 to 6"));
  EXPECT_THAT(refused("x=variables.a"), HasSubstr("--state x=variables.a: there is no such result"));
  EXPECT_THAT(refused("1=variables.z"), HasSubstr("there is no parameter variables.z"));
  EXPECT_THAT(refused("2=variables.a"), HasSubstr("result 2 is f32[5,2]"));
  EXPECT_THAT(
      message_of([&] {
        Training(model, 0, {parse_fed_back(model, "1=variables.a"), parse_fed_back(model, "1=variables.a")});
      }),
      HasSubstr("is fed back twice"));
  EXPECT_THAT(message_of([&] { Training(model, 0, {}); }), HasSubstr("--state RESULT=PARAMETER"));
  ExploreOptions options = options_of(model, "astra-f");
  options.trial.backend = "model";
  EXPECT_THAT(message_of([&] { explore(model, options); }), HasSubstr("modelled mini-batches train nothing"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
