// What `merge` and `template` overrides ask of patterns: sets of ops that one kernel must compute.
#pragma once

#include "analysis/planners/fusionstitching/ilp/solver.h"

namespace stitchwork::fusionstitching {

/// The ops of each merge, and of each template, with all that lies on paths between them; overlapping ones
/// are one. Throws Error where an op of them is in no kernel with others, or another override keeps two of
/// them apart.
Required required_sets(const Ops& ops, const Constraints& constraints);

/// Patterns that meet a set hold all of it: they take in the rest, or are left out where that would make a
/// cycle or bring together what is kept apart. Each set alone is a pattern.
void extend_to(const Required& required, const Ops& ops, const Constraints& constraints,
               std::vector<Pattern>& patterns);

}  // namespace stitchwork::fusionstitching
