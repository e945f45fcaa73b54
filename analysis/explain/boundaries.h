// Where the steps of a plan meet in device memory, and why each ends there.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/explain/boundary.h"

namespace stitchwork {

/// A value that one step stores and another reads, or that is a result.
struct StepBoundary {
  NodeId value = kNoNode;
  NodeId reader = kNoNode;  ///< the first op of `to` that reads it, through names; kNoNode: a result
  int from = -1, to = -1;   ///< indices into FusionPlan::steps; `to` -1: a result
};

/// Every boundary of the entry computation, by reading step, results last. Parameters and constants make
/// none: no step stores them.
std::vector<StepBoundary> boundaries(const Graph& graph, const FusionPlan& plan);

/// The op of `step` that stands for it: a kernel's last stored one, a call's own.
NodeId op_of(const FusionPlan& plan, const PlanStep& step);

/// Why the step that stores the value ends there: a library call, a copy, a loop or a result does by what it
/// is; between two kernels the decision that kept them apart: the last one about the value and its reader,
/// else about the value and another op of the reading kernel, else about ops of both. Refusals that leave the
/// answer to a later pass stand only where no other does. Rule "boundary.not-recorded" where the plan has no
/// such decision (somebody edited it). `view` is of the same graph and plan.
Decision why_apart(const PlanView& view, const FusionPlan& plan, const StepBoundary& boundary);

/// The decision that brought two ops of one kernel together, if one names them or ops of their kernels.
std::optional<Decision> why_together(const PlanView& view, NodeId producer, NodeId consumer);

/// Whether decision `d` of the view was the last word: no later pass decided about the same ops, none that it
/// left the answer to, and it refused none that share a kernel all the same.
bool decided(const PlanView& view, std::size_t d);

/// Whether decisions of this step are about which ops share a kernel, not about what happens in one.
bool decides_kernels(std::string_view step);
/// Whether the rule is about kernels of which neither reads the other.
bool is_about_siblings(std::string_view rule);

}  // namespace stitchwork
