// Commands on a profile: what they print, write and refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "experiments/results.h"
#include "tests/cli/run_command.h"
#include "tests/support/json_schema.h"
#include "tests/support/profile_files.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JsonSchema;
using testing::MadeLaunch;
using testing::run_command;

class ProfileCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("profile_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    write_file(path("trace.json"), testing::jax_trace(kProgram, 5, "fig7").dump());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  nlohmann::json document(std::vector<std::string> words, const std::string& schema) {
    words.emplace_back("--json");
    const CommandResult said = run_command(words);
    EXPECT_EQ(said.exit_code, 0) << said.out << said.err;
    const auto parsed = nlohmann::json::parse(said.out, nullptr, false);
    EXPECT_THAT(JsonSchema::read("docs/schema/" + schema + ".schema.json").problems(parsed), IsEmpty());
    return parsed;
  }

  const std::string model = std::string(STITCHWORK_SOURCE_DIR) + "/tests/data/dumps/fig7-a100/after.hlo";
  const std::vector<MadeLaunch> kProgram = {{"input_reduce_fusion", "input_reduce_fusion", 9},
                                            {"somebodys_kernel", "", 3},
                                            {"input_reduce_fusion_1", "input_reduce_fusion.1", 5},
                                            {"loop_multiply_fusion", "loop_multiply_fusion", 4}};
  std::filesystem::path folder_;
};

TEST_F(ProfileCommand, DocumentSaysWhatEachLaunchIs) {
  const auto said = document({"profile", model, path("trace.json"), "--events"}, "profile");
  EXPECT_EQ(said["planner"], "imported") << "of a compiled module";
  EXPECT_EQ(said["iterations"], 5);
  ASSERT_EQ(said["launches"].size(), 4U);
  EXPECT_EQ(said["launches"][0]["rule"], "instruction");
  EXPECT_EQ(said["launches"][1]["rule"], nullptr);
  EXPECT_EQ(said["events"].size(), 20U);
  int missing = 0;
  for (const auto& step : said["steps"]) {
    missing += step["missing"].get<bool>() ? 1 : 0;
    EXPECT_EQ(step["missing"], step["imported_us"].is_null());
  }
  EXPECT_EQ(missing, 1);
  EXPECT_EQ(document({"profile", model, path("trace.json"), "-p", "astitch"}, "profile")["planner"],
            "astitch");
  EXPECT_EQ(
      document({"profile", model, path("trace.json"), "--iterations", "1"}, "profile")["launches"].size(),
      20U);
}

TEST_F(ProfileCommand, TextHasTablesAndWhatIsLeft) {
  const CommandResult said = run_command({"profile", model, path("trace.json")});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("imported / modelled"));
  EXPECT_THAT(said.out,
              HasSubstr("of JAX: 5 iterations (the same 4 kernels in the same order), launches: 4"));
  EXPECT_THAT(said.out, HasSubstr("3 of 4 launches stand for ops of the model"));
  EXPECT_THAT(said.out, HasSubstr("somebodys_kernel: nothing of the model or plan is called so"));
  EXPECT_THAT(said.out, HasSubstr("steps of the plan that no launch stands for:"));
}

TEST_F(ProfileCommand, ADumpsKernelsAreSimulatedBesideTheImportedOnes) {
  const std::string dump = std::string(STITCHWORK_SOURCE_DIR) + "/tests/data/dumps/fig7-inductor-a100";
  const std::vector<MadeLaunch> program = {{"triton_per_fused_sum_0", "", 9},
                                           {"triton_red_fused_add_pow_1", "", 15}};
  write_file(path("torch.json"), testing::torch_trace(program, 4).dump());
  const std::vector<std::string> words{"profile", path("torch.json"), "--plan", dump};
  for (const auto& step : document(words, "profile")["steps"]) {
    EXPECT_GT(step["imported_us"], 0);
    EXPECT_GT(step["predicted_us"], 1) << "of a run in the simulator";
  }
  EXPECT_THAT(run_command(words).out, HasSubstr("imported / simulated"));
  std::vector<std::string> untimed = words;
  untimed.emplace_back("--untimed");
  for (const auto& step : document(untimed, "profile")["steps"]) EXPECT_EQ(step["predicted_us"], nullptr);
}

TEST_F(ProfileCommand, ImportStandsInTheModelsSectionOnlyOnce) {
  const std::vector<std::string> import{"experiment", "import", path("trace.json"), "--model",
                                        model,        "--db",   path("r.db")};
  const auto first = document(import, "import");
  EXPECT_EQ(first["new"], true);
  EXPECT_EQ(first["matched"], 3);
  EXPECT_EQ(first["iterations"], 5);
  EXPECT_EQ(document(import, "import")["new"], false);
  {
    const Store store = Store::open(path("r.db"));
    const ExperimentResults results = read_results(store, "profiles");
    ASSERT_EQ(results.trials.size(), 1U);
    EXPECT_EQ(results.trials[0].workload, model);
    EXPECT_EQ(results.trials[0].find("kernel_us")->method, "imported");
    EXPECT_DOUBLE_EQ(*results.trials[0].median("kernel_us"), 9 + 3 + 5 + 4 + 4 * 0.8);
    EXPECT_DOUBLE_EQ(*results.trials[0].median("total_us"), 9 + 3 + 5 + 4 + 4 * 1 + 3)
        << "the median iteration, gaps within";
    const auto kernels = read_kernels(store, results.trials[0]);
    ASSERT_EQ(kernels.size(), 4U);
    EXPECT_GT(kernels[0].ops.size(), 0U);
    EXPECT_EQ(kernels[1].ops.size(), 0U);
  }
  ASSERT_EQ(run_command({"run", model, "-p", "imported", "--db", path("r.db")}).exit_code, 0);
  ASSERT_EQ(run_command({"report", path("r.db"), "-o", path("r.md")}).exit_code, 0);
  const std::string report = read_file(path("r.md"));
  EXPECT_THAT(report, HasSubstr("imported"));
  EXPECT_THAT(report, HasSubstr("simulated"));
  EXPECT_THAT(run_command({"experiment", "import", path("trace.json")}).err,
              HasSubstr("neither --model nor --workload"));
}

TEST_F(ProfileCommand, ViewHasItsTimesBesideTheModelledOnes) {
  const CommandResult said = run_command({"view", model, "--planners", "imported,astitch", "--profile",
                                          path("trace.json"), "-o", path("v.html")});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(std::filesystem::exists(path("v.html")));
  write_file(path("other.json"), testing::jax_trace({kProgram[1]}, 2, "other").dump());
  const CommandResult other =
      run_command({"view", model, "--profile", path("other.json"), "-o", path("w.html")});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("none of its launches stands for an op of"));
  EXPECT_FALSE(std::filesystem::exists(path("w.html")));
}

TEST_F(ProfileCommand, WhatCannotBeReadIsOneLineAndNothingIsWritten) {
  write_file(path("cut.json"), read_file(path("trace.json")).substr(0, 900));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"profile", model, path("cut.json")},
        {"view", model, "--profile", path("cut.json"), "-o", path("v.html")},
        {"experiment", "import", path("cut.json"), "--model", model, "--db", path("r.db")}}) {
    const CommandResult said = run_command(words);
    EXPECT_EQ(said.exit_code, 1) << words[0];
    EXPECT_THAT(said.err, HasSubstr("cut.json:1: ends within the trace; the file is cut off")) << words[0];
    EXPECT_EQ(std::ranges::count(said.err, '\n'), 1) << said.err;
    EXPECT_EQ(said.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(path("v.html")));
  EXPECT_FALSE(std::filesystem::exists(path("r.db")));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
