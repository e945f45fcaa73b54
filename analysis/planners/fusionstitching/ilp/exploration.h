// Exploratory fusion (F19 section 4.2.2, Algorithm 2): from large ops, producers and consumers are fused one
// by one; every set on the way is a pattern.
#pragma once

#include <vector>

#include "analysis/plan/recorder.h"
#include "analysis/planners/fusionstitching/ilp/pattern.h"

namespace stitchwork::fusionstitching {

struct ExplorationLimits {
  /// "Ops with large (> 10, for instance) number of operands are excluded."
  std::size_t most_operands = 10;
  // "If ... the exploration still takes long time, we simply give up further exploration." A choice, not
  // measured: where we give up. All patterns together are what the integer program is still fast with
  // (36,413 took CBC 4 s).
  std::size_t most_ops = 16, most_patterns_a_seed = 48, most_patterns = 20000;
  /// Time of a launch: a tensor is large if moving it takes longer.
  double launch_us = 0;
};

/// Each sum that several blocks add up, with the element-wise ops that it alone reads, directly or through
/// each other: no template of other patterns has it. Two ops or more each.
std::vector<Pattern> split_sums(const Ops& ops, const ExplorationLimits& limits,
                                const Constraints& constraints);

/// Seeds are element-wise ops, batched gemms and reductions, those of the largest tensors first; each is
/// explored breadth first, by NodeId. No pattern holds what overrides keep apart, and each alone can be one
/// kernel: no path between its ops leads through others.
std::vector<Pattern> exploratory_patterns(const Ops& ops, const ExplorationLimits& limits,
                                          const Constraints& constraints, Recorder& recorder);

}  // namespace stitchwork::fusionstitching
