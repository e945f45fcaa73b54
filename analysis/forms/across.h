// Reductions over different dimensions of one input in one pass: in the group of a row reduction, a reduction
// over the rows leaves per-block partials (plan.h, Group::across).
#pragma once

#include <set>

#include "analysis/stitching/dominants.h"
#include "analysis/stitching/options.h"

namespace stitchwork::astitch {

/// The reductions among a stitch op's members that keep what another reduces along adjacent elements, and
/// reduce what it keeps, and that no override asks anything of: layer normalisation's gradients of scale and
/// offset beside its row sums.
std::set<NodeId> reductions_across(const Nodes& nodes, const StitchOp& op, const Options& options);

/// Registers that one element of each of these takes.
int accumulators_of(const Nodes& nodes, const std::set<NodeId>& across);

/// Whether the kernel's accumulators across rows fit a thread's registers.
Verdict accumulators_fit(const Nodes& nodes, const KernelPlan& kernel);

/// Partials, their bytes, and the predicted times with them and with groups of their own.
std::string across_numbers(const Nodes& nodes, const KernelPlan& kernel, double with_us, double without_us);

}  // namespace stitchwork::astitch
