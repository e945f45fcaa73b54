#include "experiments/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

class Slurm : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::test_folder() + "/it's";
    options_ = {"/opt/stitchwork",  "/data/spec.json", folder_, folder_ + "/all.db", 3, 2,
                {"--partition=gpu"}};
    spec_ = parse_experiment(R"({"schema":"stitchwork.experiment/1","name":"a sweep","workloads":["fig7"],)"
                             R"("variants":[{"planner":"xla"}],"backend":"model"})",
                             "e.json");
  }
  /// A program in place of sbatch, first in the search path.
  void put_sbatch(const std::string& script) {
    bin_ = testing::test_folder() + "/bin";
    std::filesystem::create_directories(bin_);
    write_file(bin_ + "/sbatch", "#!/bin/sh\n" + script);
    std::filesystem::permissions(bin_ + "/sbatch", std::filesystem::perms::owner_all);
    ::setenv("PATH", (bin_ + ":" + std::getenv("PATH")).c_str(), 1);
  }
  std::string folder_, bin_;
  SlurmOptions options_;
  ExperimentSpec spec_;
};

TEST_F(Slurm, AnArrayHasATaskAShardAndTheJobsOptions) {
  const std::string script = slurm_array_script(spec_, options_);
  EXPECT_THAT(script, HasSubstr("#SBATCH --array=1-3\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --partition=gpu\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --job-name=stitchwork-a-sweep\n"));
  EXPECT_THAT(script, HasSubstr("--shard \"$SLURM_ARRAY_TASK_ID/3\""));
}

/// A runner that is killed the first time and then ends well.
TEST_F(Slurm, AKilledRunnerIsStartedAgainAndAFailedTrialIsNot) {
  std::filesystem::create_directories(folder_);
  options_.program = folder_ + "/runner";
  write_file(options_.program,
             "#!/bin/sh\ncd \"$(dirname \"$0\")\"\necho run >> log\n"
             "[ $(wc -l < log) -gt 1 ] || kill -9 $$\nexit 1\n");
  std::filesystem::permissions(options_.program, std::filesystem::perms::owner_all);
  const auto scripts = write_slurm_scripts(spec_, options_);
  const std::string command = "SLURM_ARRAY_TASK_ID=2 bash \"" + scripts.at(0) + "\" 2>/dev/null";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(read_file(folder_ + "/log"), "run\nrun\n");
}

TEST_F(Slurm, JoiningWaitsForTheArrayHoweverItEnds) {
  put_sbatch("echo \"$@\" >> \"$(dirname \"$0\")/said\"; echo '77;cluster'\n");
  const Submitted jobs = submit_to_slurm({"array.sh", "merge.sh"});
  EXPECT_EQ(jobs.array_job, "77");
  EXPECT_EQ(jobs.merge_job, "77");
  EXPECT_THAT(read_file(bin_ + "/said"), HasSubstr("--dependency=afterany:77 merge.sh"));
}

TEST_F(Slurm, WhatSbatchSaysIsTheError) {
  put_sbatch("echo 'sbatch: error: invalid partition'; exit 1\n");
  try {
    submit_to_slurm({"array.sh", "merge.sh"});
    FAIL() << "submitted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("invalid partition"));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
