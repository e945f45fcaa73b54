// Running a compiler as a child process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stitchwork {

struct ProcessResult {
  int exit_code = 0;   ///< 127 if the program could not be started, 128 + signal if it was killed
  std::string output;  ///< stdout and stderr, in order
};

/// Runs `arguments` (the first is the program, searched in PATH) without a shell and waits for it.
ProcessResult run_process(const std::vector<std::string>& arguments);

/// The path of `program` in PATH or in one of `folders` (looked at first), or "".
std::string find_program(const std::string& program, const std::vector<std::filesystem::path>& folders = {});

/// A private folder that disappears with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace stitchwork
