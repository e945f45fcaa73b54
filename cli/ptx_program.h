// ptx run of a program (docs/ptx_programs.md), and what its documents share with those of one launch.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/cli.h"
#include "runtime/program/run_script.h"

namespace stitchwork {

/// Options of ptx run that a program takes; empty ones are left to the script.
struct ProgramArguments {
  std::string file, device, sanitize, cache, mode, outputs;
};

void ptx_run_program(Cli& cli, const ProgramArguments& arguments);

/// Adds what a launch was and gave to a document: grid, block, cluster, counters, time and its parts, method.
void add_launch_json(nlohmann::ordered_json& document, const sim::Launch& launch,
                     const sim::LaunchResult& result, const Device& device);

/// By step that ran: kind, name, what it was of and for, time, and of kernels the launch.
nlohmann::ordered_json script_steps_json(const Script& script, const sim::ProgramResult& result,
                                         const Device& device);
/// The same as a table, a row a step.
std::string script_steps_text(const Script& script, const sim::ProgramResult& result);

/// "6 kernels, 1 call; 41.2 us on a100-sxm-40 (kernels simulated, calls modelled)".
std::string script_summary(const Script& script, const sim::ProgramResult& result, const Device& device);

}  // namespace stitchwork
