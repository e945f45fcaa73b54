#include "codegen/compile/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "core/base/error.h"

extern char** environ;

namespace stitchwork {
namespace fs = std::filesystem;

ProcessResult run_process(const std::vector<std::string>& arguments) {
  SW_CHECK(!arguments.empty());
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  std::array<int, 2> pipe_ends{};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    throw Error(fmt::format("cannot start {}: {}", arguments[0], std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  if (failed != 0) {
    ::close(pipe_ends[0]);
    return {127, std::strerror(failed)};
  }

  ProcessResult result;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t n = ::read(pipe_ends[0], chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    result.output.append(chunk.data(), static_cast<std::size_t>(n));
  }
  ::close(pipe_ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string find_program(const std::string& program, const std::vector<fs::path>& folders) {
  std::vector<fs::path> candidates = folders;
  const char* path = std::getenv("PATH");
  std::istringstream entries(path == nullptr ? "" : path);
  for (std::string entry; std::getline(entries, entry, ':');) candidates.emplace_back(entry);
  for (const fs::path& folder : candidates) {
    const fs::path file = folder / program;
    if (::access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file)) return file.string();
  }
  return {};
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "stitchwork-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw Error(fmt::format("cannot create a temporary folder {}: {}", pattern, std::strerror(errno)),
                "set TMPDIR to a writable folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace stitchwork
