// A sweep killed again and again comes to what an undisturbed one does.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include "experiments/comparison.h"
#include "experiments/runner.h"
#include "experiments/sqlite.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(RunnerSlow, ASweepKilledAtAHundredRandomMomentsLosesAndRepeatsNothing) {
  const std::string folder = testing::test_folder();
  std::string workloads;
  for (const char* name : {"softmax_tiny", "layer_norm_tiny", "gelu_tiny", "row_tiny", "rotary_tiny",
                           "attention_tiny", "layer_norm_grad_tiny", "column_sum_tiny"})
    workloads += (workloads.empty() ? "\"" : ",\"") + std::string(name) + "\"";
  const ExperimentSpec spec = parse_experiment(
      R"({"schema":"stitchwork.experiment/1","name":"e","workloads":[)" + workloads +
          R"(],"variants":[{"planner":"unfused"},{"planner":"xla"},{"planner":"tvm"},{"planner":"astitch"}],"seeds":[0,1,2,3]})",
      "e.json");
  const std::string whole = folder + "/whole.db", killed = folder + "/killed.db";
  const auto begin = std::chrono::steady_clock::now();
  const RunnerSummary undisturbed = run_experiment(spec, whole, {});
  const auto all =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  ASSERT_EQ(undisturbed.ok, 128u);
  std::mt19937 random(1);
  int kills = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        run_experiment(spec, killed, {});
      } catch (const std::exception&) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    // On average a fortieth of the whole, however fast the machine is.
    ::usleep(static_cast<useconds_t>(random() % static_cast<unsigned>(all.count() / 20)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    kills += WIFSIGNALED(status) ? 1 : 0;
  }
  EXPECT_GT(kills, 20) << "hardly any moment was in the middle";
  RunnerSummary rest = run_experiment(spec, killed, {});
  EXPECT_EQ(rest.failed, 0u);
  EXPECT_EQ(rest.ok + rest.skipped, 128u);

  const Store store = Store::open(killed);
  Statement integrity(store.handle(), "PRAGMA integrity_check");
  ASSERT_TRUE(integrity.step());
  EXPECT_EQ(integrity.text(0), "ok");
  Statement twice(store.handle(),
                  "SELECT COUNT(*) FROM (SELECT trial_id FROM attempt WHERE status = 'ok' GROUP BY trial_id "
                  "HAVING COUNT(*) > 1)");
  ASSERT_TRUE(twice.step());
  EXPECT_EQ(twice.integer(0), 0);
  const ExperimentResults expected = read_results(Store::open(whole), "e"), found = read_results(store, "e");
  ASSERT_EQ(found.trials.size(), expected.trials.size());
  for (const Change& change : compare_results(expected, found, "kernel_us", 1.0, 0.05, false))
    EXPECT_EQ(change.mark, '~') << change.workload << ", " << change.variant;
}

}  // namespace TEST_FILE
}  // namespace stitchwork
