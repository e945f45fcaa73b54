// Wrong usage, told as everything else: one line, what is near, what to do.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace stitchwork {

/// Wrong usage that shows only once the command runs: the exit code is that of any other.
struct UsageError : Error {
  using Error::Error;
};

/// Neither MODEL nor --plan.
UsageError no_model();

/// "stitchwork", "stitchwork experiment run".
std::string full_name(const CLI::App& command);

/// What the command line of `words` got wrong, with the nearest command or option where one is mistyped.
Error usage_error(const CLI::App& app, std::vector<std::string> words, const CLI::ParseError& error);

/// Adds --seed: a whole number of up to 64 bits, and nothing that only wraps around to one.
void add_seed(CLI::App& command, std::uint64_t& seed, const std::string& help);

}  // namespace stitchwork
