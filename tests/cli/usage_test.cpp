// Wrong usage and unwritable output are told as everything else is: one line, or a document.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <streambuf>
#include <thread>

#include "experiments/model.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace TEST_FILE {

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
  expect_usage("", AllOf(HasSubstr("no command given; one of "), HasSubstr("explain")));
}

TEST(Usage, AnOptionInFrontOfItsCommandIsNamedWithThoseThatHaveIt) {
  for (const char* line : {"--seed", "--seed 3", "--seed=3", "--seed 3 run fig7"})
    expect_usage(line,
                 AllOf(HasSubstr("stitchwork has no option --seed"), HasSubstr("one of inputs, rewrite, ")));
  expect_usage("ptx --kernel k", AllOf(HasSubstr("stitchwork ptx has no option --kernel"), HasSubstr("run")));
  expect_usage("--versoin", HasSubstr("did you mean --version?"));
}

TEST(Usage, AMistypedOptionIsNamedWithTheNearest) {
  expect_usage("plan fig7 --plannr xla",
               AllOf(HasSubstr("stitchwork plan has no option --plannr"), HasSubstr("--planner?")));
}

TEST(Usage, WhatIsMissingIsNamed) {
  expect_usage("explain fig7", HasSubstr("OP is required"));
  expect_usage("compare", HasSubstr("MODEL is required"));
  expect_usage("run fig7 --backend gpu", HasSubstr("gpu"));
  expect_usage("plan", HasSubstr("no model given; name a file or dataset"));
  expect_usage("run", HasSubstr("no model given; name a file or dataset"));
  const CommandResult no_value = run_command("plan fig7 --planner");  // "--json" behind it would be one
  EXPECT_EQ(no_value.exit_code, 2);
  EXPECT_EQ(no_value.err,
            "stitchwork: stitchwork plan: --planner needs a value; `stitchwork plan --help` shows how\n");
  expect_usage("plan fig7 -p xla -p tvm", HasSubstr("plan: --planner is given more than once"));
  expect_usage("plan fig7 further", HasSubstr("plan takes no 'further' there"));
}

TEST(Usage, SeedsThatWrapAroundAreRefused) {
  for (const char* seed : {"-1", "99999999999999999999", "1.5", "1e3"})
    expect_usage(std::string("inputs fig7 -o unused --seed=") + seed, HasSubstr("no whole number"));
  expect_usage("inputs fig7 -o unused --seed=", HasSubstr("--seed"));
  expect_usage("advise fig7 --count=-1", HasSubstr("--count"));
}

TEST(Usage, AdviceNamesNoOverrideThatIsRefused) {
  // dot.143 lies between the two: no kernel can hold both.
  const CommandResult result = run_command("advise bert_layer --planner astitch --count 1");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("no override joins them: "));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("stitchwork.override/1")));
}

TEST(Usage, ADumpOfOneKernelIsOfThatKernelAlone) {
  const std::string all = run_command("plan bert_layer --dump=cuda").out;
  const CommandResult one = run_command("plan bert_layer --dump=cuda --kernel k1");
  EXPECT_EQ(one.exit_code, 0) << one.err;
  const auto kernels = [](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find("__global__"); at != text.npos; at = text.find("__global__", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(kernels(one.out), 1u);
  EXPECT_GT(kernels(all), 1u);
  EXPECT_THAT(all, HasSubstr(one.out));
  EXPECT_THAT(run_command("plan bert_layer --dump=cuda --kernel k99").err, HasSubstr("no such kernel"));
}

TEST(Usage, TablesOfListsFitATerminal) {
  for (const char* line : {"planners", "compare bert_tiny", "datasets", "devices"}) {
    std::istringstream lines(run_command(line).out);
    for (std::string text; std::getline(lines, text);) EXPECT_LE(text.size(), 120u) << text;
  }
}

TEST(Usage, InfoOfAModelFitsATerminal) {
  for (const Dataset& dataset : datasets()) {
    if (dataset.large) continue;
    std::istringstream lines(run_command("info " + dataset.name).out);
    for (std::string text; std::getline(lines, text);) EXPECT_LE(text.size(), 120u) << text;
  }
}

TEST(Usage, HelpFitsATerminal) {
  for (const char* command :
       {"", "plan", "run", "compile", "view", "ptx run", "report", "experiment", "info"}) {
    std::istringstream lines(run_command(std::string(command) + " --help").out);
    for (std::string text; std::getline(lines, text);)
      EXPECT_TRUE(text.size() <= 120u || text.starts_with("  stitchwork ")) << text;  // but examples
  }
}

TEST(Usage, HelpKeepsItsLines) {
  EXPECT_THAT(run_command("plan --help").out,
              HasSubstr("\n                              graph = the canonical"));
}

TEST(Usage, TablesOfPlansAndRunsFitATerminal) {
  const std::string db = " --db " + ::testing::TempDir() + "/tables.db";
  std::filesystem::remove(::testing::TempDir() + "/tables.db");
  for (const std::string& line :
       {"run bert_tiny" + db, "run rnn_tiny --mode sampled" + db, "experiment limits adhoc" + db,
        std::string("compare fig7 --devices v100-sxm2,h100-sxm,a100-pcie-40")}) {
    const CommandResult said = run_command(line);
    EXPECT_EQ(said.exit_code, 0) << said.err;
    std::istringstream lines(said.out);
    for (std::string text; std::getline(lines, text) && !text.starts_with("kernels limited by ");)
      EXPECT_TRUE(text.size() <= 120u || text.starts_with("astitch: ")) << text;  // a sentence
  }
}

TEST(Usage, InfoCountsTheOpsThatDatasetsCounts) {
  for (const char* name : {"bert_tiny", "bi_rnn_tiny", "vit_b16_tiny"}) {
    const std::string said = run_command(std::string("datasets --json ") + name).out;
    const auto counted = nlohmann::json::parse(said).at("datasets").at(0).at("ops").get<int>();
    EXPECT_EQ(nlohmann::json::parse(run_command(std::string("info --json ") + name).out).at("ops_read"),
              counted)
        << name;
  }
}

TEST(Usage, AMetricThatNoTrialHasIsRefused) {
  const std::string db = ::testing::TempDir() + "/metrics.db";
  ASSERT_EQ(run_command("run softmax_tiny --db " + db).exit_code, 0);
  const std::string name = nlohmann::json::parse(run_command("experiment list --json --db " + db).out)
                               .at("experiments")
                               .at(0)
                               .at("name")
                               .get<std::string>();
  EXPECT_EQ(run_command("experiment show " + name + " --metric total_us --db " + db).exit_code, 0);
  const CommandResult wrong = run_command("experiment show " + name + " --metric foo --db " + db);
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("has a metric called 'foo'; close names: "));
}

TEST(Usage, RowsOfARunAddUpToItsTime) {
  const CommandResult result = run_command("run bert_tiny --db " + (::testing::TempDir() + "/rows.db"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr(" library call"), HasSubstr(" between steps")));
  std::istringstream lines(result.out);
  std::string line;
  std::getline(lines, line);
  const std::string head = "us (simulated)";
  const std::size_t end = line.find(head) + head.size();
  std::getline(lines, line);  // the rule below the heads
  double sum = 0, total = -1;
  while (std::getline(lines, line)) {
    if (const std::size_t at = line.find("memsets; "); at != line.npos) {
      total = std::stod(line.substr(at + std::string("memsets; ").size()));
      break;
    }
    const std::string until = line.substr(0, end);
    sum += std::stod(until.substr(until.find_last_of(' ')));
  }
  EXPECT_NEAR(sum, total, 0.1);  // of one and two digits
}

TEST(Usage, ModelsComeFromPipesAndFoldersAreNamed) {
  const std::string pipe = ::testing::TempDir() + "/model.fifo";
  ::unlink(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream(pipe) << "HloModule m\nENTRY e { p = f32[8] parameter(0)  ROOT r = f32[8] tanh(p) }\n";
  });
  const CommandResult result = run_command("plan " + pipe);
  writer.join();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("1 memory kernel"));
  EXPECT_THAT(run_command("plan " + ::testing::TempDir()).err, HasSubstr("is a folder"));
}

TEST(Usage, AModelComesFromStandardInput) {
  const std::string file = ::testing::TempDir() + "/stdin.hlo";
  std::ofstream(file) << "HloModule m\nENTRY e { p = f32[8] parameter(0)  ROOT r = f32[8] tanh(p) }\n";
  const int before = ::dup(STDIN_FILENO), model = ::open(file.c_str(), O_RDONLY);
  ::dup2(model, STDIN_FILENO);
  const CommandResult result = run_command("plan -");
  ::dup2(before, STDIN_FILENO);
  ::close(before);
  ::close(model);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("1 memory kernel"));
}

/// Takes nothing, as /dev/full.
struct Full : std::streambuf {
  int overflow(int) override { return errno = ENOSPC, traits_type::eof(); }
  std::streamsize xsputn(const char*, std::streamsize) override { return errno = ENOSPC, 0; }
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
    EXPECT_EQ(err.str(), "stitchwork: stdout: cannot be written: No space left on device\n");
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
