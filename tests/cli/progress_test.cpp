// What a command that takes long says meanwhile: on a terminal, and only there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <iostream>

#include "figures/data/renderer.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_command;
using ::testing::StartsWith;

/// The command with a terminal for what it prints; both streams are in `out`.
CommandResult on_a_terminal(const std::vector<std::string>& words) {
  std::vector<const char*> argv{"stitchwork"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    const int code = run_cli(static_cast<int>(argv.size()), argv.data(), std::cout, std::cerr);
    std::cout.flush();
    ::_exit(code);
  }
  CommandResult result;
  std::array<char, 4096> bytes;
  for (ssize_t n; (n = ::read(terminal, bytes.data(), bytes.size())) > 0;)
    result.out.append(bytes.data(), static_cast<std::size_t>(n));
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

class Progress : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / "progress_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Says `what` while it works, takes it away again, and says nothing of it where nobody looks.
  static void expect_progress(const std::vector<std::string>& words, const std::string& what) {
    const CommandResult shown = on_a_terminal(words);
    EXPECT_EQ(shown.exit_code, 0) << shown.out;
    EXPECT_THAT(shown.out, HasSubstr("\r\033[K" + what));
    EXPECT_THAT(shown.out.substr(shown.out.rfind("\r\033[K") + 4), Not(StartsWith(what))) << "it stays";
    const CommandResult piped = run_command(words);
    EXPECT_EQ(piped.exit_code, 0) << piped.err;
    EXPECT_THAT(piped.err, Not(HasSubstr("\r")));
    EXPECT_THAT(piped.err, Not(HasSubstr(what)));
  }

  fs::path folder_;
};

TEST_F(Progress, OfReportsInEveryForm) {
  ASSERT_EQ(run_command({"run", "fig7", "--db", path("runs.db")}).exit_code, 0);
  for (const std::string ending : {".html", ".md", ".pdf"}) {
    if (ending == ".pdf" && !can_render()) continue;
    const std::string file = path("report" + ending);
    expect_progress({"report", path("runs.db"), "-o", file}, "writing " + file);
  }
}

TEST_F(Progress, OfRunsAndPages) {
  expect_progress({"run", "fig7", "--db", path("runs.db")}, "[100%] done");
  expect_progress({"view", "fig7", "-o", path("fig7.html"), "--planners", "astitch"},
                  "planning with astitch");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
