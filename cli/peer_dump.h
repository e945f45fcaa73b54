// Commands on what a real compiler made of a model (docs/peers.md): run, plan, compare.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "runtime/program/dump.h"

namespace stitchwork {

struct DumpRunArguments {
  std::string path, device;  ///< device "": the one that the dump is for
  std::string cache = "cold", mode = "exact", sanitize, inputs, outputs;
  std::uint64_t seed = 0;
  bool check = false;
};

/// stitchwork run DUMP
void run_dump(Cli& cli, const DumpRunArguments& arguments);

/// stitchwork plan DUMP
void plan_dump(Cli& cli, const std::string& path);

}  // namespace stitchwork
