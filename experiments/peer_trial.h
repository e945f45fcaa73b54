// A compiler's dump as a plan that can be run, and its run as a trial (docs/peers.md).
#pragma once

#include <functional>
#include <span>
#include <string>

#include "experiments/trial.h"
#include "runtime/program/dump.h"
#include "runtime/program/run_script.h"

namespace stitchwork {

/// A dump with its plan for a model.
struct Peer {
  Dump dump;
  FusionPlan plan;  ///< times of kernels are there once it was run
};

/// The model that a dump was made of.
Model model_of(const Dump& dump);
/// Reads a dump and plans it (runtime/program/dump_plan.h) for `model`. Throws Error where it is none of it.
Peer load_peer(const std::string& path, const Model& model);
/// The same of a dump that was read.
Peer peer_of(Dump dump, const Model& model);

/// How exactly a dump's kernels may compute: products in them may round f32 operands to TF32 where the device
/// has it, the compilers' default.
Arithmetic arithmetic_of(const Dump& dump, const Device& device);

struct PeerRun {
  ScriptResult result;
  std::vector<Literal> outputs;  ///< none after a finding, or of a sample
};

/// (number of the step, its name) before each step.
using PeerProgress = std::function<void(std::size_t, const std::string&)>;

/// Runs the dump's own steps in the simulator and puts the times into its plan, unless there are findings.
/// Its buffers are used up: it runs once.
PeerRun run_peer(Peer& peer, std::span<const Literal> inputs, const Device& device,
                 const sim::Options& options, const PeerProgress& progress = {});
/// On the model's inputs by seed 0, on the dump's device; throws Error where there are findings.
void time_peer(Peer& peer, const Model& model, const PeerProgress& progress = {});

/// A run in the form of a trial's result, for the store and for what shows runs.
TrialResult trial_of(const Peer& peer, const Model& model, const Device& device, PeerRun run,
                     std::optional<CheckResult> check);
/// A whole trial of TrialSpec::dump in the simulator: run_trial's, with no plan of ours.
TrialResult run_dump(const Model& model, const TrialSpec& spec, const TrialProgress& progress);
/// What stands for its settings: planner, plan, device, seed, cache.
TrialSpec spec_of(const Peer& peer, const Device& device);

}  // namespace stitchwork
