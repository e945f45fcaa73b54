// Runs one command line in this process, as a shell would split it.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cli/cli.h"

namespace stitchwork::testing {

struct CommandResult {
  int exit_code = 0;
  std::string out, err;
};

inline CommandResult run_command(const std::vector<std::string>& words) {
  std::vector<const char*> argv{"stitchwork"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  CommandResult result;
  result.exit_code = run_cli(static_cast<int>(argv.size()), argv.data(), out, err);
  result.out = out.str();
  result.err = err.str();
  return result;
}

/// Splits at spaces; no quoting (the commands shown in the README need none).
inline CommandResult run_command(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return run_command(words);
}

}  // namespace stitchwork::testing
