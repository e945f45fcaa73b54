// The kernel of a pattern: its components packed into one launch (F19 section 5.1, kernel packing), each by a
// template of its own.
#pragma once

#include <optional>

#include "analysis/plan/plan.h"
#include "analysis/planners/fusionstitching/ilp/options.h"

namespace stitchwork::fusionstitching {

struct PackedKernel {
  Verdict made;  ///< or why there is none
  std::optional<KernelPlan> kernel;
  double us = 0;
  bool one_block = false;  ///< see KernelEstimate
  int tried = 0;           ///< templates
};

/// The fastest kernel of the pattern by the estimate. It has no barriers of the grid.
PackedKernel pack(const Ops& ops, const std::vector<NodeId>& pattern, const IlpOptions& options);

}  // namespace stitchwork::fusionstitching
