#include "experiments/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "core/base/error.h"
#include "experiments/results.h"
#include "experiments/sqlite.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Runner : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = testing::test_folder(); }
  std::string db() const { return folder_ + "/runs.db"; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  static ExperimentSpec spec(const std::string& workloads, const std::string& rest = "") {
    return parse_experiment(R"({"schema":"stitchwork.experiment/1","name":"e","variants":[{"planner":"xla"},)"
                            R"({"planner":"astitch"}],"workloads":)" +
                                workloads + rest + "}",
                            "e.json");
  }
  ExperimentResults results() const { return read_results(Store::open(db()), "e"); }
  std::string folder_;
};

TEST_F(Runner, WhatIsOkIsNotRunAgain) {
  const ExperimentSpec first = spec(R"(["fig7"])", R"(,"backend":"model")");
  RunnerSummary summary = run_experiment(first, db(), {});
  EXPECT_EQ(summary.ok, 2u);
  summary = run_experiment(first, db(), {});
  EXPECT_EQ(summary.ok, 0u);
  EXPECT_EQ(summary.skipped, 2u);
  // Also where the experiment has grown.
  summary = run_experiment(spec(R"(["fig7","softmax"])", R"(,"backend":"model")"), db(), {});
  EXPECT_EQ(summary.ok, 2u);
  EXPECT_EQ(summary.skipped, 2u);
  EXPECT_EQ(results().trials.size(), 4u);
  RunnerOptions all;
  all.rerun = RunnerOptions::Rerun::kAll;
  EXPECT_EQ(run_experiment(first, db(), all).ok, 2u);
}

TEST_F(Runner, ASweepThatIsOverLeavesNoLock) {
  run_experiment(spec(R"(["fig7"])", R"(,"backend":"model")"), db(), {});
  EXPECT_FALSE(std::filesystem::exists(db() + ".lock"));
  std::ofstream(db() + ".lock") << "";  // of one that was killed
  EXPECT_EQ(run_experiment(spec(R"(["fig7"])", R"(,"backend":"model")"), db(), {}).skipped, 2u);
}

TEST_F(Runner, NumbersAreThoseOfTheTrial) {
  run_experiment(spec(R"(["softmax_tiny"])", R"(,"check":true)"), db(), {});
  const ExperimentResults found = results();
  ASSERT_EQ(found.trials.size(), 2u);
  for (const TrialResults& trial : found.trials) {
    EXPECT_EQ(trial.status, "ok") << trial.reason;
    EXPECT_EQ(trial.find("kernel_us")->method, "simulated");
    EXPECT_GT(*trial.median("kernel_us"), 0);
    EXPECT_LT(*trial.median("check_max_rel_error"), 1e-4);
  }
  EXPECT_GT(*found.trials[0].median("memory_kernels"), *found.trials[1].median("memory_kernels"));
}

TEST_F(Runner, AFailureIsRecordedAndTheOthersGoOn) {
  const std::string opaque = write("opaque.hlo",
                                   "HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n"
                                   "  ROOT c = f32[8] custom-call(p), custom_call_target=\"secret\"\n}\n");
  const RunnerSummary summary = run_experiment(spec("[\"" + opaque + "\",\"softmax_tiny\"]"), db(), {});
  EXPECT_EQ(summary.failed, 2u);
  EXPECT_EQ(summary.ok, 2u);
  ASSERT_EQ(summary.failures.size(), 2u);
  EXPECT_THAT(summary.failures[0], HasSubstr("cannot be executed"));
  EXPECT_EQ(results().trials[0].status, "failed");
  EXPECT_THAT(results().trials[0].reason, HasSubstr("opaque.hlo:4"));
  // Failures are tried again, unless asked not to.
  RunnerOptions nothing;
  nothing.rerun = RunnerOptions::Rerun::kNothing;
  EXPECT_EQ(run_experiment(spec("[\"" + opaque + "\"]"), db(), nothing).skipped, 2u);
  EXPECT_EQ(run_experiment(spec("[\"" + opaque + "\"]"), db(), {}).failed, 2u);
}

TEST_F(Runner, ATrialThatTakesTooLongIsEnded) {
  const RunnerSummary summary = run_experiment(spec(R"(["bert_tiny"])", R"(,"timeout_s":0.02)"), db(), {});
  EXPECT_EQ(summary.failed, 2u);
  EXPECT_EQ(results().trials[0].status, "timeout");
  EXPECT_THAT(results().trials[0].reason, HasSubstr("longer than 0.02 s"));
}

TEST_F(Runner, ShardsPartTheTrials) {
  const ExperimentSpec both = spec(R"(["fig7","softmax"])", R"(,"backend":"model")");
  RunnerOptions shard;
  shard.shards = 3;
  std::size_t trials = 0;
  for (shard.shard = 1; shard.shard <= 3; ++shard.shard) {
    EXPECT_EQ(trials_to_run(both, db(), shard).size(), shard.shard == 1 ? 2u : 1u);
    trials += run_experiment(both, db(), shard).ok;
  }
  EXPECT_EQ(trials, 4u);
  EXPECT_EQ(run_experiment(both, db(), {}).skipped, 4u);
}

TEST_F(Runner, RoundsTopUpWhatIsThere) {
  const ExperimentSpec both = spec(R"(["fig7"])", R"(,"backend":"model")");
  const auto attempts = [&] {
    std::vector<std::size_t> counts;
    for (const TrialResults& t : results().trials) counts.push_back(t.ok_attempts.size());
    return counts;
  };
  EXPECT_EQ(run_experiment(both, db(), {}).ok, 2u);
  RunnerOptions five;
  five.rounds = 5;
  RunnerSummary summary = run_experiment(both, db(), five);
  EXPECT_EQ(summary.ok, 8u);
  EXPECT_EQ(summary.skipped, 0u);
  EXPECT_THAT(attempts(), ElementsAre(5u, 5u));
  EXPECT_EQ(run_experiment(both, db(), five).skipped, 2u);
  five.rerun = RunnerOptions::Rerun::kNothing;
  five.rounds = 6;
  EXPECT_EQ(run_experiment(both, db(), five).ok, 2u);
  five.rerun = RunnerOptions::Rerun::kAll;
  five.rounds = 2;
  EXPECT_EQ(run_experiment(both, db(), five).ok, 4u);
  EXPECT_THAT(attempts(), ElementsAre(8u, 8u));
}

TEST_F(Runner, RoundsAreAttemptsInTurn) {
  RunnerOptions options;
  options.rounds = 3;
  options.interleave = true;
  std::vector<std::string> order;
  options.progress = [&](std::size_t, std::size_t of, double, const std::string& what) {
    if (of == 6 && what != "done") order.push_back(what.substr(6, 3));
  };
  EXPECT_EQ(run_experiment(spec(R"(["fig7"])", R"(,"backend":"model")"), db(), options).ok, 6u);
  EXPECT_THAT(order, ElementsAre("xla", "ast", "xla", "ast", "xla", "ast"));
  EXPECT_EQ(results().trials[0].find("total_us")->values.size(), 3u);
}

TEST_F(Runner, WhatAnotherVersionOfResultsMadeIsMadeAgainAndListed) {
  const ExperimentSpec both = spec(R"(["fig7","softmax"])", R"(,"backend":"model")");
  EXPECT_TRUE(run_experiment(both, db(), {}).again.empty());
  // One trial becomes what another version of the program recorded.
  {
    Store store = Store::open(db());
    execute(store.handle(),
            "UPDATE trial SET params_json = json_set(params_json, '$.results', '0123456789ab'), trial_key = "
            "'other' "
            "WHERE workload = 'fig7' AND variant = 'xla'");
  }
  const std::string why =
      fmt::format("its results are of version 0123456789ab, this program's are {}", results_version());
  EXPECT_THAT(trials_to_run(both, db(), {}), ElementsAre("fig7, xla, v100-sxm2: again, " + why));
  const RunnerSummary summary = run_experiment(both, db(), {});
  EXPECT_EQ(summary.ok, 1u);
  EXPECT_EQ(summary.skipped, 3u);
  EXPECT_THAT(summary.again, ElementsAre("fig7, xla, v100-sxm2: " + why));
  EXPECT_TRUE(run_experiment(both, db(), {}).again.empty());
  EXPECT_EQ(results().trials.size(), 5u) << "what was found before stays, in a row of its own";
}

TEST_F(Runner, AReasonOfAnyLengthIsRead) {
  // An error message of more than a pipe holds (64 KiB).
  const std::string name(200'000, 'x');
  const std::string opaque = write("opaque.hlo",
                                   "HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n"
                                   "  ROOT " +
                                       name + " = f32[8] custom-call(p), custom_call_target=\"secret\"\n}\n");
  const RunnerSummary summary = run_experiment(spec("[\"" + opaque + "\"]", R"(,"timeout_s":20)"), db(), {});
  ASSERT_EQ(summary.failures.size(), 2u);
  EXPECT_GT(summary.failures[0].size(), name.size());
  EXPECT_EQ(results().trials[0].status, "failed");
}

TEST_F(Runner, WhatATrialStartedEndsWithIt) {
  // A compiler that starts another program and takes for ever.
  const std::string pid = folder_ + "/pid";
  write("clang",
        "#!/bin/sh\n[ \"$1\" = --version ] && { echo clang version 14.0.6; exit 0; }\nsleep 1000 &\necho $! "
        "> " +
            pid + "\nwait\n");
  std::filesystem::permissions(folder_ + "/clang", std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH"), cache = folder_ + "/cache";
  ::setenv("PATH", (folder_ + ":" + path).c_str(), 1);
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const RunnerSummary summary =
      run_experiment(spec(R"(["softmax_tiny"])", R"(,"timeout_s":2,"compiler":"clang")"), db(), {});
  ::setenv("PATH", path.c_str(), 1);
  ::unsetenv("XDG_CACHE_HOME");
  if (!std::filesystem::exists(pid))
    GTEST_SKIP() << "another test of this process has looked for clang before";
  EXPECT_EQ(summary.failed, 2u);
  pid_t left = 0;
  std::ifstream(pid) >> left;
  ASSERT_GT(left, 0);
  const auto running = [&] {  // a zombie that nobody waits for is over, too
    std::ifstream stat(fmt::format("/proc/{}/stat", left));
    std::string number, name, state;
    return (stat >> number >> name >> state) && state != "Z";
  };
  for (int i = 0; i < 100 && running(); ++i) ::usleep(20'000);
  EXPECT_FALSE(running());
}

TEST_F(Runner, ADryRunMakesNothing) {
  EXPECT_THAT(trials_to_run(spec(R"(["fig7"])"), db(), {}),
              ElementsAre("fig7, xla, v100-sxm2", "fig7, astitch, v100-sxm2"));
  EXPECT_FALSE(std::filesystem::exists(db()));
}

TEST_F(Runner, TwoRunnersDoNotShareAStore) {
  const int held = ::open((db() + ".lock").c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  try {
    run_experiment(spec(R"(["fig7"])", R"(,"backend":"model")"), db(), {});
    ADD_FAILURE() << "the lock is held";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("another experiment is recording into this store"));
  }
  ::close(held);
  EXPECT_EQ(run_experiment(spec(R"(["fig7"])", R"(,"backend":"model")"), db(), {}).ok, 2u);
  EXPECT_FALSE(std::filesystem::exists(db() + ".lock"));
}

TEST_F(Runner, AnUnknownWorkloadIsFoundBeforeAnythingRuns) {
  EXPECT_THROW(run_experiment(spec(R"(["fig7","no-such-model"])", R"(,"backend":"model")"), db(), {}), Error);
  EXPECT_TRUE(list_experiments(Store::open(db())).empty());
}

}  // namespace TEST_FILE
}  // namespace stitchwork
