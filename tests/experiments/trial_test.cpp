#include "experiments/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/evaluate/inputs.h"
#include "core/hlo/npy.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Trial, RunsAndChecksASmallModelUnderEveryPlanner) {
  const Model model = load_model("softmax_tiny");
  for (const Planner& planner : planners_for(model.graph)) {
    TrialSpec spec;
    spec.planner = planner.name;
    spec.check = true;
    const TrialResult result = run_trial(model, spec);
    ASSERT_TRUE(result.check) << planner.name;
    EXPECT_TRUE(result.ok()) << planner.name << ": " << result.check->message;
    EXPECT_EQ(result.run.kernels.size(), result.executable.plan.kernels.size());
    EXPECT_GT(result.run.total_us, 0);
  }
}

TEST(Trial, ProgressGoesFromPlanningToDone) {
  std::vector<double> fractions;
  run_trial(load_model("fig5"), {}, [&](double done, const std::string&) { fractions.push_back(done); });
  ASSERT_FALSE(fractions.empty());
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  EXPECT_EQ(fractions.front(), 0);
  EXPECT_EQ(fractions.back(), 1);
}

TEST(Trial, AnotherReferenceFailsTheCheckWhichSaysWhere) {
  const Model model = load_model("fig5");
  TrialSpec spec;
  spec.check = true;
  Judge judge(model.graph, generate_inputs(model.graph, 1));  // of other inputs than the trial's
  const TrialResult result = run_trial(model, spec, {}, &judge);
  EXPECT_FALSE(result.ok());
  EXPECT_THAT(result.check->message, HasSubstr("element ["));
}

TEST(Trial, InputsComeFromFilesByNameOrNumber) {
  const Model model = load_model("fig5");
  const Computation& entry = model.graph.entry_computation();
  TrialSpec spec;
  const std::vector<Literal> seeded = trial_inputs(model, spec);
  spec.inputs_dir = testing::test_folder();
  for (std::size_t i = 0; i < seeded.size(); ++i)
    write_npy(fmt::format("{}/{}.npy", spec.inputs_dir,
                          i == 0 ? entry.node(entry.parameters[0]).name : fmt::to_string(i)),
              seeded[i]);
  EXPECT_EQ(trial_inputs(model, spec), seeded);
  std::filesystem::remove(spec.inputs_dir + "/1.npy");
  try {
    trial_inputs(model, spec);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr(entry.node(entry.parameters[1]).name), HasSubstr("1.npy")));
  }
  write_npy(spec.inputs_dir + "/1.npy", Literal::zeros(Shape::array(DType::kF32, {7})));
  EXPECT_THROW(trial_inputs(model, spec), Error);
}

/// What is modelled counts loops by their trips, what is simulated by what ran: they agree.
TEST(Trial, KernelsOfLoopsCountAsOftenAsTheyRun) {
  const Model model = load_model("speech_train_tiny");
  TrialSpec spec;
  spec.backend = "model";
  const auto launches = [&] {
    const TrialResult result = run_trial(model, spec);
    std::vector<std::int64_t> counts;
    std::int64_t all = static_cast<std::int64_t>(result.run.kernels.size());
    for (const ComputationRun& part : result.run.computations) {
      counts.push_back(part.runs);
      for (const KernelRun& kernel : part.kernels) all += kernel.launches;
    }
    EXPECT_EQ(all, result.executable.plan.counts.dynamic_memory_kernels);
    return counts;
  };
  const std::vector<std::int64_t> modelled = launches();
  spec.backend = "sim";
  EXPECT_EQ(modelled, launches());
  EXPECT_GT(modelled.size(), 2u);
}

TEST(Trial, UnknownBackendIsRefused) {
  TrialSpec spec;
  spec.backend = "tpu";
  EXPECT_THROW(run_trial(load_model("fig5"), spec), Error);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
