// A dump as a plan: what a compiler made of a model, in the form in which planners give theirs, so that all
// that shows, compares and explains plans does so with it (docs/peers.md).
#pragma once

#include <cstddef>
#include <vector>

#include "analysis/plan/plan.h"
#include "runtime/program/dump.h"
#include "runtime/program/run_script.h"

namespace stitchwork {

/// Every step of the dump a step of the plan, in its order, and every loop a control step whose body is
/// planned once, as its first trip has it (FusionPlan::computations). Kernels have the compiler's code in
/// place of groups (KernelCode); their ops are those of the optimised module, with what library calls compute
/// in place of the calls, linked to the model's (dump_link.h, FusionPlan::rewritten, PeerPlan::gone). A dump
/// without such a module is planned on the model itself: its kernels have the ops that its steps name.
/// Library calls, copies and memsets have modelled times, kernels and loops none before `add_times`.
/// `given`: Dump::model, `model`: the user's, both canonical (core/passes/passes.h). Throws Error where they
/// do not compute the same.
FusionPlan plan_of(const Dump& dump, const Graph& given, const Graph& model);

/// Where a step of the dump is in its plan.
struct StepPlace {
  int part = -1;         ///< index of FusionPlan::computations; -1: the plan itself
  std::size_t step = 0;  ///< of that plan
};
/// By step of the dump: those of a loop are met in every trip.
std::vector<StepPlace> step_places(const FusionPlan& plan);

/// The times and DRAM traffic of a run of the dump's own steps, all of them; of steps in loops the means over
/// their runs.
void add_times(FusionPlan& plan, const Dump& dump, const ScriptResult& result, const Device& device);

}  // namespace stitchwork
