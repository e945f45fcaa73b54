// mapping=tuned: vectors, unrolling and staged rows for a pattern's kernel, by the search that all planners
// share; sums that several blocks add up.
#pragma once

#include <optional>

#include "analysis/plan/plan.h"
#include "analysis/planners/fusionstitching/ilp/options.h"

namespace stitchwork::fusionstitching {

/// The kernel that the search finds for the pattern, if it is one of this planner's kind: no barriers of the
/// grid, atomics, scratch memory or bound of registers, and no more shared memory than the knobs allow. None
/// of patterns with products.
std::optional<KernelPlan> tuned_kernel(const Ops& ops, const std::vector<NodeId>& pattern,
                                       const IlpOptions& options);

/// Of a pattern whose one reduction is its one result: the loop of that reduction, split among blocks as it
/// is where the op is a kernel alone, with all else computed in it (thread composition as XLA has it, section
/// 5.1). None where it is not split.
std::optional<KernelPlan> summed_kernel(const Ops& ops, const std::vector<NodeId>& pattern);

/// Modelled microseconds of a kernel, its launch and the memsets of its atomics.
double modelled_us(const Ops& ops, const KernelPlan& kernel);

}  // namespace stitchwork::fusionstitching
