// Every command the README shows is run, and what it shows as output is what comes out.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/file.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace TEST_FILE {

struct Shown {
  std::string command, output;
  int line = 0;
  bool in_prose = false;  ///< only has to succeed
};

/// The `$ stitchwork ...` lines of ```console blocks, each with the lines below it up to the next one; and
/// commands in backquotes in the prose.
std::vector<Shown> shown_commands(const std::string& text) {
  std::vector<Shown> commands;
  std::istringstream in(text);
  bool console = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::size_t inline_command = line.find("`stitchwork ");
    if (!console && inline_command != std::string::npos)
      for (std::size_t at = inline_command; at != std::string::npos; at = line.find("`stitchwork ", at + 1))
        commands.push_back({line.substr(at + 1, line.find('`', at + 1) - at - 1), "", number, true});
    if (line.rfind("```", 0) == 0) {
      console = line == "```console";
    } else if (console && line.rfind("$ ", 0) == 0) {
      commands.push_back({line.substr(2), "", number});
    } else if (console && !commands.empty() && !commands.back().in_prose) {
      commands.back().output += line + "\n";
    }
  }
  return commands;
}

/// The words of `text`, line by line; those that stand where `pattern` has a "~" (wall times) become "~".
std::string words(const std::string& text, const std::string& pattern) {
  std::istringstream lines(text), shown(pattern);
  std::string out;
  for (std::string line, like; std::getline(lines, line);) {
    std::getline(shown, like);
    std::istringstream in(line), expected(like);
    for (std::string word, wanted; in >> word; out += " ") {
      expected >> wanted;
      out += wanted == "~" ? "~" : word;
    }
    out += "\n";
  }
  return out;
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
    SCOPED_TRACE("README.md:" + std::to_string(shown.line) + ": " + shown.command);
    ASSERT_EQ(shown.command.rfind("stitchwork ", 0), 0u);
    const testing::CommandResult result = testing::run_command(shown.command.substr(11));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    if (!shown.in_prose) {
      EXPECT_EQ(words(result.out, shown.output), words(shown.output, shown.output));
    }
    ++run;
  }
  std::filesystem::current_path(before);
  EXPECT_GE(run, 3);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
