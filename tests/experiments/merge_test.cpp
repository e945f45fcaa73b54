#include "experiments/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/base/error.h"
#include "experiments/comparison.h"
#include "experiments/runner.h"
#include "experiments/sqlite.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

std::int64_t count(const Store& store, const std::string& what) {
  Statement query(store.handle(), what);
  query.step();
  return query.integer(0);
}

TEST(Merge, ShardsComeToWhatOneStoreHolds) {
  const std::string folder = testing::test_folder();
  const ExperimentSpec spec = parse_experiment(
      R"({"schema":"stitchwork.experiment/1","name":"e","workloads":["softmax_tiny","gelu_tiny"],)"
      R"("variants":[{"planner":"xla"},{"planner":"astitch"},{"planner":"tvm"}]})",
      "e.json");
  run_experiment(spec, folder + "/whole.db", {});
  RunnerOptions shard;
  shard.shards = 2;
  for (shard.shard = 1; shard.shard <= 2; ++shard.shard)
    run_experiment(spec, fmt::format("{}/{}.db", folder, shard.shard), shard);
  Store store = Store::open(folder + "/1.db");
  const Merged merged = merge_store(store, folder + "/2.db");
  EXPECT_EQ(merged.attempts, 3);
  EXPECT_EQ(merged.known, 0);
  const Store whole = Store::open(folder + "/whole.db");
  for (const char* table : {"trial", "attempt", "sample", "kernel", "counter", "experiment", "metric_def"})
    EXPECT_EQ(count(store, fmt::format("SELECT COUNT(*) FROM {}", table)),
              count(whole, fmt::format("SELECT COUNT(*) FROM {}", table)))
        << table;
  const ExperimentResults expected = read_results(whole, "e"), found = read_results(store, "e");
  for (const char* metric : {"kernel_us", "dram_read_transactions"})
    for (const Change& change : compare_results(expected, found, metric, 1.0, 0.05, false))
      EXPECT_EQ(change.mark, '~') << change.workload << ", " << change.variant << ", " << metric;
  // The runner finds all of them done.
  EXPECT_EQ(run_experiment(spec, folder + "/1.db", {}).skipped, 6u);
}

TEST(Merge, WhatIsThereAlreadyIsNotAddedTwice) {
  const std::string folder = testing::test_folder();
  const Model model = testing::sample_model(4);
  TrialSpec spec;
  Store a = Store::open(folder + "/a.db"), b = Store::open(folder + "/b.db");
  b.record("e", model, spec, testing::sample_result(model, spec, 2));
  b.record_failure("e", model, spec, "timeout", "late", 5);
  EXPECT_EQ(merge_store(a, folder + "/b.db").attempts, 2);
  const Merged again = merge_store(a, folder + "/b.db");
  EXPECT_EQ(again.attempts, 0);
  EXPECT_EQ(again.known, 2);
  EXPECT_EQ(count(a, "SELECT COUNT(*) FROM attempt"), 2);
  EXPECT_EQ(count(a, "SELECT MAX(n) FROM attempt"), 2);
  EXPECT_EQ(count(a, "SELECT COUNT(*) FROM kernel"), 2);
}

TEST(Merge, OtherFilesAreRefused) {
  const std::string folder = testing::test_folder();
  Store store = Store::open(folder + "/a.db");
  EXPECT_THROW(merge_store(store, folder + "/none.db"), Error);
  EXPECT_THROW(merge_store(store, folder + "/a.db"), Error);
  std::ofstream(folder + "/text.db") << "no database";
  EXPECT_THROW(merge_store(store, folder + "/text.db"), Error);
  EXPECT_EQ(count(store, "SELECT COUNT(*) FROM attempt"), 0);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
