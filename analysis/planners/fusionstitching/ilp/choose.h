// The patterns that become kernels: by the program, and by further ones over what its optimum leaves.
#pragma once

#include <vector>

#include "analysis/planners/fusionstitching/ilp/find_patterns.h"
#include "analysis/planners/fusionstitching/ilp/score.h"
#include "analysis/planners/fusionstitching/ilp/solver.h"

namespace stitchwork::fusionstitching {

/// The patterns that are taken; new ones join `patterns` and `scores`. What an optimum leaves may be worth
/// less than what a greedy choice leaves: of both the one that saves more.
Choice choose(const Ops& ops, const Partitions& partitions, const IlpOptions& options,
              const Required& required, std::vector<Pattern>& patterns, Scorer& scorer, Scores& scores);

}  // namespace stitchwork::fusionstitching
