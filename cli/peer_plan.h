// A dump where a plan is taken (docs/peers.md).
#pragma once

#include <string>

#include "cli/cli.h"
#include "experiments/peer_trial.h"

namespace stitchwork {

/// The dump's plan of the model that the arguments name, or of its own if they name none (or name the dump
/// itself as MODEL). Throws Error for options that a compiler's plan cannot heed.
Planned load_planned_dump(const PlanArguments& arguments, const std::string& dump, OpTrace* trace,
                          Graph* as_read);

/// The dump that the arguments name in place of a plan: by --plan or as MODEL; "": none.
std::string dump_of(const PlanArguments& arguments);

/// Throws Error where a dump stands for what is `for` planners' kernels alone: "compiled here".
void refuse_dump(const std::string& dump, std::string_view what);

/// Its plan of the model; with the times of a run in the simulator, on the model's inputs of seed 0 and the
/// dump's own device, if asked for.
Peer shown_peer(const Cli& cli, const std::string& dump, const Model& model, bool timed);

/// --untimed of commands that run dumps.
void add_untimed(CLI::App& command, bool& untimed);

}  // namespace stitchwork
