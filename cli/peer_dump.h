// Commands on what a real compiler made of a model (docs/peers.md): run, plan, compare.
#pragma once

#include <cstdint>
#include <initializer_list>
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

/// Throws Error naming the first of these options that was given: a dump has a plan and kernels of its own.
void refuse_options(const CLI::App& command, const std::string& dump,
                    std::initializer_list<const char*> options);

/// stitchwork run DUMP
void run_dump(Cli& cli, const DumpRunArguments& arguments);

/// stitchwork plan DUMP
void plan_dump(Cli& cli, const std::string& path);

/// A dump beside planners' plans of the same model.
struct DumpRow {
  std::string folder, title, device;
  DumpCounts counts;
  double time_us = 0;           ///< simulated, of all steps and gaps; library calls modelled
  double memory_us = 0;         ///< of its memory-intensive kernels alone
  std::int64_t dram_bytes = 0;  ///< that its kernels read and write
};

/// Runs each dump on inputs of the model, on `device` or, where that is "", on the one that it is for. Throws
/// Error where it is no dump of the model.
std::vector<DumpRow> dump_rows(Cli& cli, const Model& model, const std::vector<std::string>& dumps,
                               const std::string& device);
nlohmann::ordered_json dump_rows_json(const std::vector<DumpRow>& rows);
std::string dump_rows_text(const std::vector<DumpRow>& rows);

}  // namespace stitchwork
