// Pages of the manual are those of the commands as they are. That man reads them without warnings:
// tests/install.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <regex>

#include "core/base/file.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::CommandResult;
using ::testing::HasSubstr;
using testing::run_command;

std::string page(const std::string& command) {
  const CommandResult result = run_command("man " + command);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

TEST(Man, APageSaysWhatTheCommandTakesAndShowsItsExamples) {
  const std::string text = page("experiment run");
  EXPECT_THAT(text, HasSubstr(".TH STITCHWORK\\-EXPERIMENT\\-RUN 1 "));
  EXPECT_THAT(text, HasSubstr("\\fBstitchwork experiment run\\fR \\fISPEC\\fR [\\fIoptions\\fR]"));
  EXPECT_THAT(text, HasSubstr("\\fB\\-\\-dry\\-run\\fR"));
  EXPECT_THAT(text, HasSubstr(".SH EXAMPLES\n.nf\n  stitchwork experiment run "));
  EXPECT_THAT(text, HasSubstr(".SH SEE ALSO\n\\fBstitchwork\\-experiment\\fR(1)"));
  EXPECT_THAT(page(""), HasSubstr("STITCHWORK_DATASETS"));
}

TEST(Man, NoLineOfTextIsARequest) {
  // What begins with a dot is a request of man's own; texts that do are escaped.
  const std::regex request(R"(\.(TH|SH|TP|B|nf|fi)\b.*)");
  for (const char* command : {"", "plan", "ptx run", "experiment export", "completion"}) {
    std::istringstream lines(page(command));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(".") || line.starts_with("'")) {
        EXPECT_TRUE(std::regex_match(line, request)) << command << ": " << line;
      }
  }
}

TEST(Man, EveryOptionOfEveryCommandIsOnItsPage) {
  const fs::path folder = fs::path(::testing::TempDir()) / "man_test";
  fs::remove_all(folder);
  ASSERT_EQ(run_command("man -o " + folder.string()).exit_code, 0);
  const std::regex option(R"((^|\n)  (-\w,)?(--[\w-]+))");
  int options = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string text = read_file(entry.path().string());
    const std::string synopsis = text.substr(text.find(".SH SYNOPSIS\n\\fBstitchwork") + 27);
    const std::string command = synopsis.substr(0, synopsis.find("\\fR"));  // no command has a hyphen
    const std::string help = run_command(command + " --help").out;
    for (std::sregex_iterator at(help.begin(), help.end(), option), end; at != end; ++at, ++options)
      EXPECT_THAT(text,
                  HasSubstr("\\fB" + std::regex_replace((*at)[3].str(), std::regex("-"), "\\-") + "\\fR"))
          << command;
  }
  EXPECT_GT(options, 200);
  fs::remove_all(folder);
}

TEST(Man, EveryOptionOfEveryCommandIsInTheDocuments) {
  const fs::path folder = fs::path(::testing::TempDir()) / "man_documents_test",
                 docs = STITCHWORK_SOURCE_DIR "/docs";
  fs::remove_all(folder);
  ASSERT_EQ(run_command("man -o " + folder.string()).exit_code, 0);
  std::string all;
  for (const auto& entry : fs::recursive_directory_iterator(docs))
    if (entry.path().extension() == ".md") all += read_file(entry.path().string());
  const std::string command_line = read_file((docs / "cli.md").string());
  // An option ends where its name does: `--dim` is not in `--dimension`.
  const auto is_in = [](const std::string& text, const std::string& option) {
    for (std::size_t at = text.find(option); at != text.npos; at = text.find(option, at + 1)) {
      const char next = at + option.size() < text.size() ? text[at + option.size()] : ' ';
      if (next != '-' && std::isalnum(static_cast<unsigned char>(next)) == 0) return true;
    }
    return false;
  };
  const std::regex option(R"(\\fB(\\-\\-[\w\\-]+)\\fR)");
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string page = entry.path().stem().string(), text = read_file(entry.path().string());
    for (std::sregex_iterator at(text.begin(), text.end(), option), end; at != end; ++at) {
      const std::string name = std::regex_replace((*at)[1].str(), std::regex(R"(\\)"), "");
      EXPECT_TRUE(is_in(page == "stitchwork-run" ? command_line : all, name)) << page << ": " << name;
    }
  }
  fs::remove_all(folder);
}

TEST(Man, AnUnknownCommandHasNone) {
  const CommandResult result = run_command("man experiment rum");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no command 'experiment rum' has a page"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
