// What has to be done where Ctrl-C ends the program at once.
#pragma once

#include <sys/types.h>

#include <string>

namespace stitchwork {

/// From now on SIGINT says so in one line, does what is registered below, and exits with 130 (128 and the
/// signal's number, as shells have it). Of programs, not of libraries: call it first in main. Files are
/// written beside their names and renamed, stores are journalled: nothing else has to be undone.
void exit_on_interrupt();

/// While it lives, an interrupt removes the file.
class RemovedOnInterrupt {
 public:
  explicit RemovedOnInterrupt(std::string path);
  ~RemovedOnInterrupt();
  RemovedOnInterrupt(const RemovedOnInterrupt&) = delete;
  RemovedOnInterrupt& operator=(const RemovedOnInterrupt&) = delete;

 private:
  std::string path_;
  int slot_;
};

/// While it lives, an interrupt ends the group of processes that this child leads, before files are removed.
class EndedOnInterrupt {
 public:
  explicit EndedOnInterrupt(pid_t child);
  ~EndedOnInterrupt();
  EndedOnInterrupt(const EndedOnInterrupt&) = delete;
  EndedOnInterrupt& operator=(const EndedOnInterrupt&) = delete;

 private:
  int slot_;
};

}  // namespace stitchwork
