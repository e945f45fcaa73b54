// stitchwork run DUMP: what a real compiler made of a model, run as it is (docs/peers.md).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "cli/cli.h"

namespace stitchwork {

struct DumpRunArguments {
  std::string path, device;  ///< device "": the one that the dump is for
  std::string model;         ///< that it is a dump of; "": as the dump has it
  std::string db;            ///< store; "": default_store_path
  std::string cache = "cold", mode = "exact", sanitize, inputs, outputs;
  std::uint64_t seed = 0;
  bool check = false;
};

/// Throws Error naming the first of these options that was given: a dump has a plan and kernels of its own.
void refuse_options(const CLI::App& command, const std::string& dump,
                    std::initializer_list<const char*> options);

/// Recorded in the store, as a trial of the planner that the compiler and its version name.
void run_dump(Cli& cli, const DumpRunArguments& arguments);

}  // namespace stitchwork
