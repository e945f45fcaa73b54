// What shells offer: the scripts that `stitchwork completion` prints, asked by the shells themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cli/run_command.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::CommandResult;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using Words = std::vector<std::string>;

/// Lines that a command of the shell prints.
Words lines_of(const std::string& command) {
  std::string printed;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {"popen failed"};
  char piece[4096];
  while (std::fgets(piece, sizeof piece, pipe) != nullptr) printed += piece;
  ::pclose(pipe);
  Words lines;
  std::istringstream in(printed);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class Completion : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / "completion_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (const char* shell : {"bash", "fish"})
      std::ofstream(folder_ / shell) << testing::run_command(std::string("completion ") + shell).out;
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// What bash offers for the last word; in a folder without files.
  Words bash(const std::string& line) const {
    return lines_of(
        "cd " + folder_.string() +
        " && mkdir -p none && cd none && bash --norc -c 'source ../bash; COMP_WORDS=(" + line +
        "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _stitchwork; printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
  }
  Words fish(const std::string& line) const {
    Words found =
        lines_of("cd " + folder_.string() + " && mkdir -p none && cd none && HOME=" + folder_.string() +
                 " fish -c 'source ../fish; complete -C \"" + line + "\"'");
    for (std::string& word : found)
      word.resize(word.find('\t') == std::string::npos ? word.size() : word.find('\t'));
    return found;
  }

  fs::path folder_;
};

TEST_F(Completion, BashOffersCommandsOfCommandsAndTheirOptions) {
  EXPECT_THAT(bash("stitchwork expla"), ElementsAre("explain"));
  EXPECT_THAT(bash("stitchwork experiment im"), ElementsAre("import"));
  EXPECT_THAT(bash("stitchwork library \"\""), UnorderedElementsAre("collect", "show", "merge"));
  EXPECT_THAT(bash("stitchwork experiment run --dry"), ElementsAre("--dry-run"));
  EXPECT_THAT(bash("stitchwork experiment show --dry"), ElementsAre(""));
  EXPECT_THAT(bash("stitchwork ptx run --k"), ElementsAre("--kernel"));
  EXPECT_THAT(bash("stitchwork run --ch"), ElementsAre("--check"));
  EXPECT_THAT(bash("stitchwork library collect fig"), Contains("fig7"));
  EXPECT_THAT(bash("stitchwork library collect fig7 --planner fusionstitching-2"),
              ElementsAre("fusionstitching-2018"));
  EXPECT_THAT(bash("stitchwork plan fig"), Contains("fig7"));
}

TEST_F(Completion, BashOffersTheValuesOfOptionsAndTheOpsOfAModel) {
  EXPECT_THAT(bash("stitchwork plan fig7 --planner tvm"),
              UnorderedElementsAre("tvm", "tvm-duplicating", "tvm+fission"));
  EXPECT_THAT(bash("stitchwork plan fig7 -p korc"), ElementsAre("korch"));
  EXPECT_THAT(bash("stitchwork run fig7 --device a100-pcie-"),
              UnorderedElementsAre("a100-pcie-40", "a100-pcie-80"));
  EXPECT_THAT(bash("stitchwork compare fig7 --planners unf"), ElementsAre("unfused"));
  EXPECT_THAT(bash("stitchwork plan fig7 --set mapping="),
              UnorderedElementsAre("mapping=paper", "mapping=tuned"));
  const CommandResult ops = testing::run_command("completion --ops fig7");
  EXPECT_THAT(ops.out, ::testing::HasSubstr("\n"));
  EXPECT_NE(ops.out.find("reduce.2"), std::string::npos) << ops.out;
}

TEST_F(Completion, FishOffersCommandsOfCommandsAndTheirOptions) {
  if (std::system("command -v fish >/dev/null") != 0) GTEST_SKIP() << "fish is not installed";
  EXPECT_THAT(fish("stitchwork expla"), ElementsAre("explain"));
  EXPECT_THAT(fish("stitchwork experiment im"), ElementsAre("import"));
  EXPECT_THAT(fish("stitchwork library "), UnorderedElementsAre("collect", "show", "merge"));
  EXPECT_THAT(fish("stitchwork experiment run --dry"), ElementsAre("--dry-run"));
  EXPECT_THAT(fish("stitchwork run --dry"), IsEmpty());
  EXPECT_THAT(fish("stitchwork run --ch"), Contains("--check"));
  EXPECT_THAT(fish("stitchwork experiment run --ch"), Not(Contains("--check")));
  EXPECT_THAT(fish("stitchwork plan --planner fusionstitching-2"), ElementsAre("fusionstitching-2018"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
