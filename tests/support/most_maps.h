// Under how many index maps kernels compute an op.
#pragma once

#include <algorithm>

#include "analysis/schedule/evaluations.h"

namespace stitchwork::testing {

/// The most index maps under which a group of the plan's kernels computes one op that takes instructions.
inline int most_maps(const Graph& graph, const FusionPlan& plan) {
  const Computation& computation = graph.entry_computation();
  int most = 0;
  for (const KernelEvaluations& kernel : evaluations(computation, plan))
    most = std::max(most, stitchwork::most_maps(computation, kernel));
  return most;
}

}  // namespace stitchwork::testing
