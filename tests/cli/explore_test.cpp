// stitchwork explore.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "figures/data/renderer.h"
#include "tests/cli/run_command.h"
#include "tests/support/json_schema.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JsonSchema;
using testing::run_command;

class ExploreCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(::testing::TempDir()) /
        ("explore_command_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("XDG_DATA_HOME", folder_.c_str(), 1);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  nlohmann::json document(std::vector<std::string> words) const {
    words.emplace_back("--json");
    const testing::CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(result.err, "");
    const auto parsed = nlohmann::json::parse(result.out, nullptr, false);
    EXPECT_THAT(JsonSchema::read("docs/schema/exploration.schema.json").problems(parsed), IsEmpty());
    return parsed;
  }
  void expect_error(const std::vector<std::string>& words, const ::testing::Matcher<std::string>& message,
                    int exit_code = 1) const {
    const testing::CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, exit_code) << result.out << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, message);
  }
  fs::path folder_;
};

TEST_F(ExploreCommand, GoesOnAndWritesAPlanThatIsRunAndExplained) {
  const std::vector<std::string> explore = {"explore", "scrnn_tiny", "-p",        "astra-fk",
                                            "-d",      "p100",       "--history", path("history.db")};
  std::vector<std::string> some = explore, rest = explore;
  some.insert(some.end(), {"--batches", "3"});
  rest.insert(rest.end(), {"--resume", "-o", path("plan.json")});
  const auto first = document(some);
  EXPECT_EQ(first["minibatches"].size(), 3u);
  EXPECT_FALSE(first["done"].get<bool>());
  const auto all = document(rest);
  EXPECT_TRUE(all["done"].get<bool>());
  EXPECT_EQ(all["resumed"], 3);
  EXPECT_LE(all["best_us"], all["first_us"]);
  const auto run = run_command({"run", "--plan", path("plan.json"), "--check", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(nlohmann::json::parse(run.out)["check"]["ok"].get<bool>());
  EXPECT_EQ(run_command({"verify", path("plan.json")}).exit_code, 0);
  const std::string text = run_command({"explore", "scrnn_tiny", "-p", "astra-f"}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("first "), HasSubstr("(modelled)"), HasSubstr("nothing is left to try")));
}

TEST_F(ExploreCommand, DrawsTheTrajectory) {
  if (!can_render()) GTEST_SKIP() << why_not_rendered();
  const auto result =
      run_command({"explore", "scrnn_tiny", "-p", "astra-f", "--figure", path("trajectory.svg")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_file(path("trajectory.svg")), HasSubstr("<svg"));
}

TEST_F(ExploreCommand, WhatCannotBeExploredIsOneLine) {
  expect_error({"explore", "scrnn_tiny", "-p", "xla"}, HasSubstr("planner xla has nothing to explore"));
  expect_error({"explore", "scrnn_tiny", "--resume"}, HasSubstr("--history"));
  expect_error({"explore", "scrnn_tiny", "--check"}, HasSubstr("--times simulated"));
  expect_error({"explore", "scrnn_tiny", "--figure", path("a.gif")}, HasSubstr("known: .svg, .pdf, .png"));
  expect_error({"explore", "scrnn_tiny", "--set", "streams=9"}, HasSubstr("streams"));
  expect_error({"explore", "scrnn_tiny", "--times", "guessed"}, HasSubstr("guessed"), 2);
  expect_error({"explore"}, HasSubstr("MODEL is required"), 2);
  expect_error({"explore", "scrnn_tiny", "--buckets", "3=scrnn_tiny"}, HasSubstr("excludes"), 2);
  expect_error({"explore", "scrnn_tiny", "--lengths", "l.txt"}, HasSubstr("--lengths requires --buckets"), 2);
  expect_error({"explore", "--buckets", "5=scrnn_tiny,3=scrnn_tiny"}, HasSubstr("--buckets: 3 behind 5"));
  expect_error({"explore", "scrnn_tiny", "--train"}, HasSubstr("modelled mini-batches train nothing"));
  expect_error({"explore", "scrnn_tiny", "--times", "simulated", "--state", "9=variables.a"},
               HasSubstr("--state 9=variables.a: there is no such result; results are numbered 0 to 6"));
  expect_error({"explore", "scrnn_tiny", "--times", "simulated", "--mode", "sampled", "--train"},
               HasSubstr("leave out --train, or --mode"));
  expect_error({"explore", "nothing_of_this_name"}, HasSubstr("nothing_of_this_name"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
