// Which part of a paper's experiment is reproduced: tiny models, exports, dumps, workloads, devices.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "experiments/reproduce.h"

namespace stitchwork {

inline constexpr const char* kQuickSuffix = "-quick";

/// The experiment on the tiny variants of its workloads, simulated and checked; workloads without one are
/// left out. What is modelled stays so.
ExperimentSpec on_tiny_models(ExperimentSpec spec);

/// The rows' workloads, `exports`, that the folder of exports has, by their files.
void take_exports(const ReproduceOptions& options, const std::set<std::string>& exports,
                  ExperimentSpec& spec);

/// Where the variants that are peers have their dumps. What is missing there fails as a trial, by name;
/// variants without any are left out, which `failures` says.
void take_dumps(const ReproduceOptions& options, ExperimentSpec& spec, std::vector<std::string>& failures);

/// Leaves those that were asked for; some of them, where `some`.
void choose_workloads(const ReproduceOptions& options, bool some, ExperimentSpec& spec);

/// Leaves the devices that were asked for.
void choose_devices(const ReproduceOptions& options, ExperimentSpec& spec);

/// With folders and choices as they were given, in words of the shell.
std::string reproduce_command(const ReproduceOptions& options, const std::string& paper);

}  // namespace stitchwork
