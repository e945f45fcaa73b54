// mapping=tuned: vectors, unrolling and staged rows for a pattern's kernel, by the search that all planners
// share.
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

}  // namespace stitchwork::fusionstitching
