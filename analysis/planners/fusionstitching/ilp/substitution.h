// Substitution fusion (F19 section 4.2.1, Algorithm 1): all ops between adjacent partition ops are a pattern.
#pragma once

#include <vector>

#include "analysis/planners/fusionstitching/ilp/partition.h"
#include "analysis/planners/fusionstitching/ilp/pattern.h"

namespace stitchwork::fusionstitching {

struct SubstitutionOptions {
  bool packing = true;  ///< off: a pattern each weakly connected component
  /// Limits of a kernel, as AStitch's (docs/planners/astitch.md): ops by the code they need.
  int max_ops = 512;
};

/// The segments of all partition steps that have two ops or more, each once, in the order of the steps. Ones
/// above the limits of a kernel, or that hold what overrides keep apart, are cut in the partition's order.
std::vector<Pattern> substitution_patterns(const Ops& ops, const Partition& partition,
                                           const SubstitutionOptions& options, const Constraints& constraints,
                                           Recorder& recorder);

}  // namespace stitchwork::fusionstitching
