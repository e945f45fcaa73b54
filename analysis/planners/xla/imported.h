// Kernels of ours for fusions that are decided already, as XLA decided them or would.
#pragma once

#include <string>
#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/planners/planner.h"
#include "core/graph/graph.h"

namespace stitchwork {

/// Who decided.
struct FusionSource {
  std::string planner;  ///< the row, and the step of its decisions
  std::string said;     ///< in decisions, before what they are of: "imported from the dump"
};

/// A kernel for each fusion where one can be (docs/planners/imported.md), and for each op outside them and
/// outside `calls` (analysis/plan/epilogue.h).
FusionPlan plan_fusions(const Graph& graph, const Device& device, const FusionSource& source,
                        const std::vector<ImportedKernel>& fusions, bool record_decisions,
                        std::vector<std::vector<NodeId>> calls = {});

}  // namespace stitchwork
