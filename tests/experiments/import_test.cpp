#include "experiments/profile/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "experiments/metrics.h"
#include "experiments/results.h"
#include "runtime/cuda/profile.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

constexpr const char* kRaw =
    "==PROF== Connected to process 1\n"
    "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"dram__sectors_read.sum\","
    "\"gpu__time_duration.sum\",\"sm__warps_active.avg.pct_of_peak_sustained_active\",\"other\"\n"
    "\"\",\"\",\"\",\"\",\"\",\"sector\",\"nsecond\",\"%\",\"\"\n"
    "\"0\",\"fusion_1(float*, int)\",\"(256, 1, 1)\",\"(80, 1, "
    "1)\",\"V100\",\"1,234\",\"2500\",\"62.5\",\"7\"\n"
    "\"1\",\"reduce\",\"(1024, 1, 1)\",\"(160, 1, 1)\",\"V100\",\"10\",\"3,000\",\"90\",\"n/a\"\n";

constexpr const char* kLong =
    "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
    "\"0\",\"a\",\"dram__bytes_read.sum\",\"Kbyte\",\"3.2\"\n"
    "\"0\",\"a\",\"gpu__time_duration.sum\",\"usecond\",\"4.5\"\n"
    "\"1\",\"a\",\"dram__bytes_read.sum\",\"byte\",\"64\"\n";

std::string problem(const std::string& text) {
  try {
    parse_ncu_csv(text, "ncu.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NcuCsv, ARowAKernel) {
  const Profile profile = parse_ncu_csv(kRaw, "ncu.csv");
  ASSERT_EQ(profile.events.size(), 2u);
  EXPECT_EQ(profile.device, "V100");
  EXPECT_EQ(profile.events[0].kernel, "fusion_1(float*, int)");
  EXPECT_EQ(profile.events[0].grid, "[80,1,1]");
  EXPECT_DOUBLE_EQ(profile.events[0].counters.at("dram_read_transactions"), 1234);
  EXPECT_DOUBLE_EQ(*profile.events[0].us, 2.5);
  EXPECT_DOUBLE_EQ(profile.events[0].counters.at("achieved_occupancy"), 0.625);
}

TEST(NcuCsv, ARowAMetricInAnyUnit) {
  const Profile profile = parse_ncu_csv(kLong, "ncu.csv");
  ASSERT_EQ(profile.events.size(), 2u);
  EXPECT_DOUBLE_EQ(profile.events[0].counters.at("dram_read_transactions"), 100);
  EXPECT_DOUBLE_EQ(*profile.events[0].us, 4.5);
  EXPECT_DOUBLE_EQ(profile.events[1].counters.at("dram_read_transactions"), 2);
  EXPECT_FALSE(profile.events[1].us.has_value());
}

TEST(NcuCsv, OtherFilesAreRefusedWithTheirPlace) {
  EXPECT_THAT(problem("a,b\n1,2\n"), HasSubstr("ncu.csv: has no column \"Kernel Name\""));
  EXPECT_THAT(problem(""), HasSubstr("Kernel Name"));
  EXPECT_THAT(problem("ID,Kernel Name,dram__sectors_read.sum\n0,k,many\n"), HasSubstr("ncu.csv:2"));
  EXPECT_THAT(problem("ID,Kernel Name\n0,k,3\n"), HasSubstr("3 fields, the heads are 2"));
  EXPECT_THAT(problem("ID,Kernel Name\n"), HasSubstr("holds no kernels"));
}

TEST(NcuCsv, EveryNameOfOursIsAMetric) {
  std::set<std::string_view> known;
  for (const Metric& metric : metrics()) known.insert(metric.name);
  for (const cuda::ProfiledMetric& metric : cuda::profiled_metrics())
    EXPECT_TRUE(known.contains(metric.counter)) << metric.counter;
}

TEST(Import, ProfilesStandInTablesAsImportedAndOnlyOnce) {
  Store store = Store::open(testing::test_folder() + "/runs.db");
  const ImportOptions options{"profiled", "bert", "XLA", "v100-sxm2", ""};
  const Profile profile = parse_ncu_csv(kRaw, "ncu.csv");
  EXPECT_TRUE(import_profile(store, profile, unmatched_iteration(profile), options, "sha"));
  EXPECT_FALSE(import_profile(store, profile, unmatched_iteration(profile), options, "sha"));
  const ExperimentResults results = read_results(store, "profiled");
  ASSERT_EQ(results.trials.size(), 1u);
  EXPECT_EQ(results.trials[0].find("kernel_us")->method, "imported");
  EXPECT_DOUBLE_EQ(*results.trials[0].median("kernel_us"), 5.5);
  EXPECT_DOUBLE_EQ(*results.trials[0].median("dram_read_transactions"), 1244);
  const auto kernels = longest_first(read_kernels(store, results.trials[0]));
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "reduce") << "longest first";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
