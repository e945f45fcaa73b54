// Every command the README shows is run, and what it shows as output is what comes out.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/file.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace {

struct Shown {
  std::string command, output;
  int line = 0;
};

/// The `$ stitchwork ...` lines of ```console blocks, each with the lines below it up to the next one. A
/// shown output that ends in a line "..." is a beginning.
std::vector<Shown> shown_commands(const std::string& text) {
  std::vector<Shown> commands;
  std::istringstream in(text);
  bool console = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.rfind("```", 0) == 0) {
      console = line == "```console";
    } else if (console && line.rfind("$ ", 0) == 0) {
      commands.push_back({line.substr(2), "", number});
    } else if (console && !commands.empty()) {
      commands.back().output += line + "\n";
    }
  }
  return commands;
}

TEST(Readme, EveryCommandShownPrintsWhatIsShown) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "readme";
  std::filesystem::create_directories(folder);
  setenv("XDG_DATA_HOME", folder.c_str(), 1);
  const std::string text = read_file(STITCHWORK_SOURCE_DIR "/README.md");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  int run = 0;
  for (const Shown& shown : shown_commands(text)) {
    if (shown.command.rfind("./scripts/", 0) == 0) continue;  // set-up itself: CI runs these
    SCOPED_TRACE("README.md:" + std::to_string(shown.line) + ": " + shown.command);
    ASSERT_EQ(shown.command.rfind("stitchwork ", 0), 0u);
    const testing::CommandResult result = testing::run_command(shown.command.substr(11));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    if (shown.output.size() >= 4 && shown.output.compare(shown.output.size() - 4, 4, "...\n") == 0) {
      const std::string begin = shown.output.substr(0, shown.output.size() - 4);
      EXPECT_EQ(result.out.substr(0, begin.size()), begin);
    } else {
      EXPECT_EQ(result.out, shown.output);
    }
    ++run;
  }
  std::filesystem::current_path(before);
  EXPECT_GE(run, 3);
}

}  // namespace
}  // namespace stitchwork
