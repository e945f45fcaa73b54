// Wrong usage and unwritable output are told as everything else is: one line, or a document.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <streambuf>

#include "tests/cli/run_command.h"

namespace stitchwork {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using testing::run_command;

void expect_usage(const std::string& line, const ::testing::Matcher<std::string>& message) {
  const CommandResult result = run_command(line);
  EXPECT_EQ(result.exit_code, 2) << line;
  EXPECT_EQ(result.out, "") << line;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_THAT(result.err, AllOf(::testing::StartsWith("stitchwork: "), message)) << line;
  const CommandResult document = run_command(line + " --json");
  EXPECT_EQ(document.exit_code, 2) << line;
  const auto json = nlohmann::json::parse(document.out);
  EXPECT_THAT(json.at("error").at("message").get<std::string>() + "; " +
                  json.at("error").at("hint").get<std::string>(),
              message)
      << line;
}

TEST(Usage, AMistypedCommandIsNamedWithTheNearest) {
  expect_usage("pln fig7", AllOf(HasSubstr("no command 'pln'"), HasSubstr("did you mean plan?")));
  expect_usage("ptx rn", AllOf(HasSubstr("ptx has no command 'rn'"), HasSubstr("did you mean run?")));
}

TEST(Usage, NoCommandAtAllListsThem) {
  expect_usage("", AllOf(HasSubstr("which command?"), HasSubstr("explain")));
}

TEST(Usage, AMistypedOptionIsNamedWithTheNearest) {
  expect_usage("plan fig7 --plannr xla",
               AllOf(HasSubstr("stitchwork plan has no option --plannr"), HasSubstr("--planner?")));
}

TEST(Usage, WhatIsMissingIsNamed) {
  expect_usage("explain fig7", HasSubstr("OP is required"));
  expect_usage("compare", HasSubstr("MODEL is required"));
  expect_usage("run fig7 --backend gpu", HasSubstr("gpu"));
}

TEST(Usage, SeedsThatWrapAroundAreRefused) {
  for (const char* seed : {"-1", "99999999999999999999", "1.5", "1e3"})
    expect_usage(std::string("inputs fig7 -o unused --seed=") + seed, HasSubstr("no whole number"));
  expect_usage("inputs fig7 -o unused --seed=", HasSubstr("--seed"));
}

/// Takes nothing, as /dev/full.
struct Full : std::streambuf {
  int overflow(int) override { return traits_type::eof(); }
  std::streamsize xsputn(const char*, std::streamsize) override { return 0; }
};

TEST(Usage, OutputThatDoesNotArriveIsAnError) {
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{"stitchwork", "plan", "fig7"},
                                             {"stitchwork", "plan", "fig7", "--json"},
                                             {"stitchwork", "--help"},
                                             {"stitchwork", "plan", "--help"},
                                             {"stitchwork", "--version"},
                                             {"stitchwork", "completion", "bash"}}) {
    Full full;
    std::ostream out(&full);
    std::ostringstream err;
    EXPECT_EQ(run_cli(static_cast<int>(words.size()), words.data(), out, err), 1) << words.back();
    EXPECT_THAT(err.str(), HasSubstr("stdout: cannot be written"));
  }
}

}  // namespace
}  // namespace stitchwork
