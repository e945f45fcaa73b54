#include "experiments/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/report.h"
#include "experiments/roofline.h"
#include "experiments/runner.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

TrialResults trial(std::map<std::string, double> metrics) {
  TrialResults result;
  for (const auto& [metric, value] : metrics) result.series[metric] = {{"modelled", "", {value}}};
  return result;
}

/// The workload under two planners, modelled.
Store modelled_store(const std::string& workload) {
  const std::string db = testing::test_folder() + "/runs.db";
  run_experiment(parse_experiment(R"({"schema":"stitchwork.experiment/1","name":"e","variants":[)"
                                  R"({"planner":"xla"},{"planner":"astitch"}],"backend":"model",)"
                                  R"("workloads":[")" +
                                      workload + "\"]}",
                                  "e.json"),
                 db, {});
  return Store::open(db);
}

ExperimentResults modelled(const std::string& workload) {
  return read_results(modelled_store(workload), "e");
}

TEST(Limits, PartsOfATrialAddUpToItsTime) {
  for (const TrialResults& one : modelled("bert_tiny").trials) {
    double sum = 0;
    for (const TimePart& part : time_parts(one)) sum += part.us;
    EXPECT_NEAR(sum, *one.median("total_us"), 1e-6 * sum) << one.variant;
  }
}

TEST(Limits, ALargeStreamIsLimitedByMemoryAndASmallOneByItsLaunch) {
  EXPECT_EQ(time_parts(modelled("gelu").trials[0]).at(0).name, "kernels limited by DRAM");
  EXPECT_EQ(time_parts(modelled("softmax_tiny").trials[0]).at(0).name, "kernels limited by launch");
}

TEST(Limits, TheCauseIsThePartAndTheKernelThatGrewMost) {
  const auto kernel = [](const std::string& name, double us, std::int64_t grid) {
    KernelResult result;
    result.name = name;
    result.time_us = {us, "simulated"};
    result.grid = grid;
    result.block = 1024;
    return result;
  };
  const std::string cause =
      cause_of(trial({{"kernel_us", 35}, {"overhead_us", 2}}), trial({{"kernel_us", 15}, {"overhead_us", 3}}),
               {kernel("k0 divide_3", 30, 1), kernel("k1 add", 5, 80), kernel("k2 new", 9, 2)},
               {kernel("k4 divide_3", 10, 16), kernel("k5 add", 4.5, 80)});
  EXPECT_EQ(
      cause,
      "kernels +20.00 us, between kernels -1.00 us; 2 kernels grew, most divide_3: 30.00 us (1 blocks of "
      "1024 threads, 0 grid barriers) instead of 10.00 us (16 blocks of 1024 threads, 0 grid barriers)");
}

TEST(Limits, ASimulatedKernelsPartsAreTheSimulators) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const Model model = load_model("softmax_tiny");
  TrialSpec spec;
  const TrialResult result = run_trial(model, spec);
  store.record("e", model, spec, result);
  const TrialResults trial = read_results(store, "e").trials.at(0);
  const std::vector<KernelResult> kernels = read_kernels(store, trial);
  ASSERT_EQ(kernels.size(), result.run.kernels.size());
  double limited_us = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const KernelTime &parts = result.run.kernels[i].parts, &modelled = result.costs[i].timed.time;
    EXPECT_EQ(parts.total_us, result.run.kernels[i].time_us);
    EXPECT_NE(parts.issue_us, modelled.issue_us) << "counted, not estimated";
    const ResultValue& issue = kernels[i].counters.at("time_issue_us");
    EXPECT_EQ(issue.value, parts.issue_us);
    EXPECT_EQ(issue.method, "simulated");
    ASSERT_FALSE(time_parts(kernels[i]).empty());
    EXPECT_EQ(time_parts(kernels[i])[0].method, "simulated");
    const std::vector<UnitUse> uses = unit_uses(kernels[i]);
    ASSERT_FALSE(uses.empty());
    for (const UnitUse& use : uses) {
      EXPECT_EQ(use.share, unit_share(parts, use.unit)) << kUnits[use.unit].name;
      EXPECT_LE(use.share, uses[0].share);
      EXPECT_EQ(use.method, "simulated");
    }
  }
  // The report shows them, and where they put the kernels under the device's peaks.
  const std::string page = report_html(store);
  EXPECT_THAT(page, HasSubstr("<summary>speed of light</summary>"));
  EXPECT_THAT(page, HasSubstr(std::string(kRooflineCaption)));
  EXPECT_THAT(report_bytes(store, {}, "report.md"), HasSubstr("limited by; busiest unit (simulated)"));
  for (const Limit& limit : kLimits) {
    limited_us += *trial.median(std::string(limit.metric));
    EXPECT_EQ(trial.find(std::string(limit.metric))->method, "simulated");
  }
  EXPECT_NEAR(limited_us, *trial.median("kernel_us"), 1e-9) << "each kernel is limited by one part";
}

TEST(Limits, UnitsThatDoNearlyNothingAreNotNamed) {
  const std::vector<UnitUse> uses = {
      {kDramUnit, 0.834, "simulated"}, {kL2Unit, 0.31, "simulated"}, {kIssueUnit, 0.004, "simulated"}};
  EXPECT_EQ(busiest_text(uses, 1), "DRAM 83 %");
  EXPECT_EQ(busiest_text(uses, 9), "DRAM 83 %, L2 31 %");
  EXPECT_EQ(busiest_text({uses[2]}, 9), "");
}

TEST(Limits, NothingRecordedIsSaid) {
  EXPECT_TRUE(time_parts(TrialResults{}).empty());
  EXPECT_EQ(cause_of({}, {}, {}, {}), "less than a hundredth of a microsecond in any part");
}

TEST(Limits, ModelledKernelsSayHowManySMsTheyFill) {
  const Store store = modelled_store("row_750000x32");
  const auto kernels = read_kernels(store, read_results(store, "e").trials.at(0));
  ASSERT_FALSE(kernels.empty());
  const double busy = kernels[0].counters.at("sm_efficiency").value;
  EXPECT_GT(busy, 0.9);
  EXPECT_LE(busy, 1);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
