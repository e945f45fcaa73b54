#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "experiments/comparison.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TrialResults trial(const std::string& workload, const std::string& variant, std::vector<double> us,
                   const std::string& method = "simulated") {
  TrialResults t;
  t.workload = workload;
  t.device = "v100-sxm2";
  t.variant = variant;
  t.status = us.empty() ? "failed" : "ok";
  if (!us.empty()) t.series["total_us"] = {{method, "", std::move(us)}};
  return t;
}

std::string refusal(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Results, AreReadWithTheirMethodsAndFailures) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = testing::sample_model(6);
  TrialSpec spec;
  spec.variant = "ours";
  const ExperimentId id("sweep", R"({"a":1})");
  store.record(id, model, spec, testing::sample_result(model, spec, 2));
  spec.variant = "theirs";
  spec.planner = "xla";
  store.record_failure(id, model, spec, "timeout", "ran longer than 5 s", 5000);
  const ExperimentResults results = read_results(store, "sweep");
  EXPECT_THAT(results.variants, ElementsAre("ours", "theirs"));
  ASSERT_EQ(results.trials.size(), 2u);
  EXPECT_EQ(results.trials[0].median("memory_kernels"), 2);
  EXPECT_EQ(results.trials[0].find("memory_kernels")->method, "modelled");
  EXPECT_EQ(results.trials[0].find("kernel_us")->method, "simulated");
  EXPECT_EQ(results.trials[1].status, "timeout");
  EXPECT_EQ(results.trials[1].reason, "ran longer than 5 s");
  EXPECT_EQ(results.trials[1].median("total_us"), std::nullopt);
  EXPECT_THAT(refusal([&] { read_results(store, "swoop"); }), HasSubstr("it has: sweep"));
}

TEST(Results, ExperimentsAreCountedByTheLastAttemptOfEachTrial) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = testing::sample_model(4);
  TrialSpec spec;
  store.record_failure({"sweep", ""}, model, spec, "killed", "ended by signal 9", 1);
  store.record({"sweep", ""}, model, spec, testing::sample_result(model, spec, 1));
  spec.seed = 1;
  store.record_failure({"sweep", ""}, model, spec, "failed", "no", 1);
  const std::vector<ExperimentEntry> entries = list_experiments(store);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].trials, 2);
  EXPECT_EQ(entries[0].ok, 1);
  EXPECT_EQ(entries[0].failed, 1);
}

TEST(Results, AblationDividesByTheBaseAndAveragesWholeRows) {
  ExperimentResults results;
  results.variants = {"a", "b", "c"};
  results.trials = {trial("x", "a", {8}),       trial("x", "b", {4}), trial("x", "c", {2}),  //
                    trial("y", "a", {9}),       trial("y", "b", {9}), trial("y", "c", {}),   //
                    trial("z", "a", {1, 3, 2}), trial("z", "b", {1}), trial("z", "c", {8})};
  const Ablation ablation = ablate(results, "a", "total_us");
  EXPECT_THAT(ablation.variants, ElementsAre("a", "b", "c"));
  ASSERT_EQ(ablation.rows.size(), 3u);
  EXPECT_THAT(ablation.rows[0].ratios, ElementsAre(1.0, 2.0, 4.0));
  EXPECT_THAT(ablation.rows[1].ratios, ElementsAre(1.0, 1.0, std::nullopt));
  EXPECT_THAT(ablation.rows[2].ratios, ElementsAre(1.0, 2.0, 0.25));
  EXPECT_DOUBLE_EQ(*ablation.geometric_means[1], 2) << "of x and z: y lacks a variant";
  EXPECT_DOUBLE_EQ(*ablation.geometric_means[2], 1);
  EXPECT_THAT(ablation.methods, ElementsAre("simulated"));
  EXPECT_THAT(refusal([&] { ablate(results, "d", "total_us"); }), HasSubstr("it has: a, b, c"));
  EXPECT_THAT(refusal([&] { ablate(results, "a", "speed"); }), HasSubstr("no metric is called 'speed'"));
}

TEST(Results, ComparisonMarksWhatIsBetterAndWorse) {
  ExperimentResults before, after;
  before.trials = {trial("w", "a", {100}), trial("x", "a", {100}), trial("y", "a", {100}),
                   trial("old", "a", {1})};
  after.trials = {trial("w", "a", {104}), trial("x", "a", {110}), trial("y", "a", {80}),
                  trial("new", "a", {1})};
  const std::vector<Change> changes = compare_results(before, after, "total_us", 1.05, 0.05, false);
  std::string marks;
  for (const Change& change : changes) marks += change.mark;
  EXPECT_EQ(marks, "~-+??");
  EXPECT_FALSE(changes[3].after.has_value());
  EXPECT_FALSE(changes[4].before.has_value());
  EXPECT_FALSE(changes[1].interval || changes[1].p) << "of one value a side nothing is known";
}

TEST(Results, MeasuredChangesNeedSamples) {
  const std::vector<double> slow{10, 11, 10.5, 10.2, 10.8, 10.1, 10.9, 10.4, 10.6},
      noisy{9, 13, 8, 14, 10, 12, 7, 15, 11};
  std::vector<double> fast = slow;
  for (double& x : fast) x -= 2;
  const auto mark = [](std::vector<double> a, std::vector<double> b) {
    ExperimentResults before, after;
    before.trials = {trial("w", "a", std::move(a), "measured")};
    after.trials = {trial("w", "a", std::move(b), "measured")};
    return compare_results(before, after, "total_us", 1.01, 0.05, false).at(0).mark;
  };
  EXPECT_EQ(mark(slow, fast), '+');
  EXPECT_EQ(mark(fast, slow), '-');
  EXPECT_EQ(mark(slow, noisy), '?') << "their medians differ, but not more than the noise";
  EXPECT_EQ(mark({10}, {5}), '?');
}

TEST(Results, ChangesOfRepeatedSamplesHaveAnIntervalAndP) {
  ExperimentResults before, after;
  before.trials = {trial("w", "a", {10, 11, 12})};
  after.trials = {trial("w", "a", {20, 22, 24})};
  const Change change = compare_results(before, after, "total_us", 1.05, 0.05, false).at(0);
  ASSERT_TRUE(change.interval && change.p);
  EXPECT_LE(change.interval->low, *change.ratio);
  EXPECT_GE(change.interval->high, *change.ratio);
  EXPECT_DOUBLE_EQ(*change.p, mann_whitney_p({10, 11, 12}, {20, 22, 24}));
}

TEST(Results, NumbersOfDifferentMethodsAreComparedOnlyWhenForced) {
  ExperimentResults before, after;
  before.trials = {trial("w", "a", {1}, "modelled")};
  after.trials = {trial("w", "a", {2}, "simulated")};
  EXPECT_THAT(refusal([&] { compare_results(before, after, "total_us", 1.05, 0.05, false); }),
              HasSubstr("modelled in one and simulated in the other"));
  EXPECT_EQ(compare_results(before, after, "total_us", 1.05, 0.05, true)[0].mark, '-');
}

}  // namespace TEST_FILE
}  // namespace stitchwork
