// A trial's key is its identity: trials that differ in one setting stand in rows of their own, wherever they
// are shown, and each number keeps how it was obtained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/hlo/npy.h"
#include "experiments/comparison.h"
#include "experiments/experiment_figure.h"
#include "experiments/report.h"
#include "experiments/report_data.h"
#include "experiments/runner.h"
#include "experiments/sqlite.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// One trial, and others that differ from it in one setting each. The i-th takes 10 i + 10 us more.
std::vector<TrialSpec> one_setting_each() {
  std::vector<TrialSpec> specs(17);
  specs[1].backend = "cuda";
  specs[2].backend = "cuda";
  specs[2].options.tf32 = true;
  specs[3].device = "t4";
  specs[4].seed = 1;
  specs[5].options.knobs["mapping"] = "paper";
  specs[6].results = "0123456789ab";
  specs[7].results = "ba9876543210";
  specs[8].compile.fast_math = true;
  specs[9].compile.dependent_launch = true;
  specs[10].cache = sim::CacheMode::kWarm;
  specs[11].sampled = true;
  specs[12].backend = "model";
  specs[13].limits["threads_per_block"] = 256;
  specs[14].backend = "cuda";
  specs[14].repeats = 5;
  specs[15].backend = "cuda";
  specs[15].convolutions = "patches";
  specs[16].products = "tiled-64x64";
  return specs;
}

double us_of(std::size_t trial) { return 100 + 10.0 * static_cast<double>(trial); }

Store filled(const std::string& path) {
  Store store = Store::open(path);
  const Model model = testing::sample_model(4);
  const std::vector<TrialSpec> specs = one_setting_each();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    TrialResult result = testing::sample_result(model, specs[i], 1);
    result.run.kernels[0].time_us = us_of(i);
    result.run.total_us = us_of(i);
    store.record("sweep", model, specs[i], result);
  }
  return store;
}

class Identity : public ::testing::Test {
 protected:
  Identity() : store_(filled(testing::test_folder() + "/runs.db")) {}
  std::vector<double> expected() const {
    std::vector<double> all;
    for (std::size_t i = 0; i < one_setting_each().size(); ++i) all.push_back(us_of(i));
    return all;
  }
  Store store_;
};

TEST_F(Identity, EveryTrialHasItsRowInTheExperimentsTable) {
  const ExperimentResults results = read_results(store_, "sweep");
  std::vector<double> found;
  for (const TrialResults& trial : results.trials) {
    ASSERT_EQ(trial.find("total_us")->values.size(), 1u) << "nothing is pooled";
    found.push_back(*trial.median("total_us"));
  }
  EXPECT_EQ(found, expected());
  const std::vector<std::string> rows = row_names(results.trials);
  EXPECT_EQ(std::set<std::string>(rows.begin(), rows.end()).size(), rows.size());
  EXPECT_THAT(rows[5], HasSubstr("mapping=paper"));
  EXPECT_THAT(rows[6], HasSubstr("results 0123456789ab"));
  EXPECT_THAT(rows[2], HasSubstr("tf32"));
  EXPECT_THAT(rows[3], HasSubstr("on t4"));
}

TEST_F(Identity, EveryTrialIsComparedWithItself) {
  const ExperimentResults results = read_results(store_, "sweep");
  const std::vector<Change> changes = compare_results(results, results, "total_us", 1.05, 0.05, false);
  ASSERT_EQ(changes.size(), expected().size());
  std::set<std::string> rows;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EXPECT_EQ(changes[i].before->median(), us_of(i)) << changes[i].name;
    EXPECT_EQ(changes[i].ratio, 1) << changes[i].name;
    EXPECT_EQ(changes[i].differences, "");
    rows.insert(changes[i].name + changes[i].device + std::to_string(changes[i].seed));
  }
  EXPECT_EQ(rows.size(), changes.size());
}

TEST_F(Identity, EveryTrialHasItsRowInTheReportAndTheWorkbench) {
  std::vector<double> found;
  for (const ReportSection& section : read_report(store_, "").sections) {
    std::set<std::string> labels;
    for (const ReportTrial& trial : section.trials) {
      labels.insert(trial.label);
      found.push_back(trial.sample("total_us")->value);
    }
    EXPECT_EQ(labels.size(), section.trials.size()) << section.device;
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(expected()));
  for (const double us : expected()) EXPECT_THAT(report_html(store_), HasSubstr(fmt::format("{:.1f}", us)));
}

TEST_F(Identity, EveryTrialHasItsRowInTheViews) {
  for (const char* query :
       {"SELECT value FROM results WHERE metric = 'total_us'", "SELECT time_us FROM kernels"}) {
    std::vector<double> found;
    Statement rows(store_.handle(), query);
    while (rows.step()) found.push_back(rows.real(0));
    EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(expected())) << query;
  }
}

TEST_F(Identity, EveryTrialHasItsBarInTheFigure) {
  const Figure figure = experiment_figure(read_results(store_, "sweep"), "total_us");
  std::vector<double> found;
  for (const FigureSeries& series : figure.series)
    for (const auto& y : series.y)
      if (y) found.push_back(*y);
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(expected()));
}

TEST_F(Identity, EveryTrialHasItsRatioInTheAblation) {
  EXPECT_EQ(ablate(read_results(store_, "sweep"), "astitch", "total_us").rows.size(), expected().size());
}

TEST(IdentityOf, AnAttemptMoreIsAValueMoreOfTheSameSeries) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = testing::sample_model(4);
  const TrialSpec spec;
  TrialResult result = testing::sample_result(model, spec, 1);
  for (const double us : {10.0, 30.0, 20.0}) {
    result.run.total_us = us;
    store.record("e", model, spec, result);
  }
  store.record_failure("e", model, spec, "timeout", "late", 1);
  const TrialResults trial = read_results(store, "e").trials.at(0);
  EXPECT_THAT(trial.find("total_us")->values, ElementsAre(10, 30, 20));
  EXPECT_EQ(trial.status, "timeout");
  EXPECT_EQ(trial.attempts, 4);
  Statement view(store.handle(), "SELECT value, samples FROM results WHERE metric = 'total_us'");
  ASSERT_TRUE(view.step());
  EXPECT_EQ(view.real(0), 20);
  EXPECT_EQ(view.integer(1), 3);
  EXPECT_FALSE(view.step());
  EXPECT_EQ(read_report(store, "").sections.at(0).trials.at(0).sample("total_us")->value, 20);
}

TEST(IdentityOf, VariantsOfEqualContentAreTrialsOfTheirOwn) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = testing::sample_model(4);
  for (const char* variant : {"one", "two"}) {
    TrialSpec spec;
    spec.variant = variant;
    EXPECT_EQ(store.last_status("e", trial_key(model, spec)), "");
    store.record("e", model, spec, testing::sample_result(model, spec, 1));
  }
  EXPECT_THAT(read_results(store, "e").variants, ElementsAre("one", "two"));
}

TEST(IdentityOf, NumbersOfAnotherCompilerOrGpuAreAnotherSeries) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = testing::sample_model(4);
  TrialSpec spec;
  TrialResult result = testing::sample_result(model, spec, 1);
  for (const char* compiler : {"clang 14", "NVRTC 13.0"}) {
    result.executable.compiler = compiler;
    store.record("e", model, spec, result);
  }
  const TrialResults simulated = read_results(store, "e").trials.at(0);
  EXPECT_EQ(simulated.series.at("kernel_us").size(), 2u);
  EXPECT_EQ(simulated.find("kernel_us")->source, "NVRTC 13.0") << "the latest";
  EXPECT_EQ(simulated.find("predicted_us")->values.size(), 2u) << "no kernel was compiled for it";
  spec.backend = "cuda";
  result = testing::sample_result(model, spec, 1);
  for (const char* uuid : {"GPU-1", "GPU-2"}) {
    result.gpu = cuda::Gpu{.name = "NVIDIA H200", .driver_version = 13000, .uuid = uuid};
    store.record("e", model, spec, result);
  }
  const TrialResults measured = read_results(store, "e").trials.at(1);
  ASSERT_EQ(measured.series.at("kernel_us").size(), 2u);
  EXPECT_THAT(measured.find("kernel_us")->source, HasSubstr("NVIDIA H200, GPU-2, driver"));
  EXPECT_THAT(environments(store).back(), HasSubstr("CUDA 13.0"));
}

TEST(IdentityOf, EverySettingThatChangesANumberIsInTheParameters) {
  const Model model = testing::sample_model(4);
  std::set<std::string> keys, params;
  const std::vector<TrialSpec> specs = one_setting_each();
  for (const TrialSpec& spec : specs) {
    keys.insert(trial_key(model, spec));
    params.insert(trial_params(model, spec).dump());
  }
  EXPECT_EQ(keys.size(), specs.size());
  EXPECT_EQ(params.size(), specs.size()) << "the key has nothing that the parameters do not tell";
  const auto cuda = trial_params(model, specs[2]);
  for (const char* name :
       {"tf32", "repeats", "convolutions", "fast_math", "dependent_launch", "compiler", "seed"})
    EXPECT_TRUE(cuda.contains(name)) << name;
}

TEST(IdentityOf, ContentsOfInputsAreAndTheirFolderIsNot) {
  const Model model = testing::sample_model(4);
  const std::string folder = testing::test_folder();
  const auto key_with = [&](const std::string& name, double value) {
    TrialSpec spec;
    spec.backend = "sim";
    spec.inputs_dir = folder + "/" + name;
    std::filesystem::create_directories(spec.inputs_dir);
    const Computation& entry = model.graph.entry_computation();
    for (const NodeId id : entry.parameters) {
      Literal array = Literal::zeros(entry.node(id).shape);
      array.set_double(0, value);
      write_npy(fmt::format("{}/{}.npy", spec.inputs_dir, entry.node(id).attrs.parameter_number), array);
    }
    return trial_key(model, spec);
  };
  const std::string key = key_with("a", 1);
  EXPECT_EQ(key_with("b", 1), key);
  EXPECT_NE(key_with("a", 2), key);

  Model drawn = model;
  TrialSpec spec;
  spec.backend = "sim";
  const std::string before = trial_key(drawn, spec);
  drawn.inputs["0"].mean = 3;
  EXPECT_NE(trial_key(drawn, spec), before);
}

TEST(IdentityOf, AComparisonOfOtherSettingsSaysSo) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = testing::sample_model(4);
  TrialSpec spec;
  store.record("a", model, spec, testing::sample_result(model, spec, 1));
  spec.compile.fast_math = true;
  spec.results = "0123456789ab";
  store.record("b", model, spec, testing::sample_result(model, spec, 1));
  const auto changes =
      compare_results(read_results(store, "a"), read_results(store, "b"), "total_us", 1.05, 0.05, false);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].differences,
            fmt::format("fast_math false -> true, results {} -> 0123456789ab", results_version()));
}

/// Of an attempt's metric.
std::string method(const TrialResults& trial, const std::string& metric) {
  return trial.find(metric)->method;
}

TEST(Methods, AModelledLibraryCallInASimulatedRunIsModelled) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = load_model("bert_tiny");
  for (const char* backend : {"sim", "model"}) {
    TrialSpec spec;
    spec.backend = backend;
    store.record(backend, model, spec, run_trial(model, spec));
  }
  const TrialResults simulated = read_results(store, "sim").trials.at(0);
  EXPECT_EQ(method(simulated, "kernel_us"), "simulated");
  EXPECT_EQ(method(simulated, "library_us"), "modelled");
  EXPECT_EQ(method(simulated, "overhead_us"), "modelled");
  EXPECT_EQ(method(simulated, "total_us"), "simulated + modelled");
  EXPECT_EQ(method(simulated, "plan_ms"), "measured");
  EXPECT_GT(*simulated.median("library_us"), 0);
  double parts = 0;
  for (const char* part : {"kernel_us", "library_us", "control_us", "overhead_us"})
    parts += *simulated.median(part);
  EXPECT_NEAR(parts, *simulated.median("total_us"), 1e-6 * parts);
  EXPECT_EQ(method(read_results(store, "model").trials.at(0), "total_us"), "modelled");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
