// Runs something in a process of its own that has little memory left.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace stitchwork::testing {

/// With `more` bytes of address space left; its exit code, 1000 and the signal's number where one ended it.
template <typename Body>
int limited(std::int64_t more, Body body) {
  const pid_t child = fork();
  if (child == 0) {
    std::int64_t pages = 0;
    if (FILE* statm = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(statm, "%ld", &pages) != 1) _exit(90);
      std::fclose(statm);
    }
    const auto limit = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + more);
    const rlimit wanted{limit, limit};
    if (setrlimit(RLIMIT_AS, &wanted) != 0) _exit(91);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace stitchwork::testing
