// How close a planner's count of memory kernels comes to the fewest possible, and which rules keep it away
// (docs/planners/quality.md).
#pragma once

#include <map>
#include <string>

#include "analysis/facts/bound.h"
#include "analysis/planners/planner.h"

namespace stitchwork {

struct Quality {
  KernelBound bound;
  std::map<std::string, int> kernels;   ///< memory kernels by planner: unfused, xla, astitch
  std::map<std::string, int> refusals;  ///< of astitch's scope, by rule: what kept stitch ops apart
  double ratio = 1;                     ///< astitch to the bound
  double reduction = 0;                 ///< part of XLA's kernels that astitch saves
};

/// `options` holds knobs of astitch.
Quality quality(const Graph& graph, const Device& device, const PlanOptions& options = {});

/// Table 3 of the AStitch paper: memory-intensive kernels a model calls. The datasets are public models of
/// those kinds (their JSON says what replaces what), so reductions compare better than counts.
struct PaperCount {
  std::string_view dataset, model;
  int xla, astitch;
  double reduction() const { return 1.0 - static_cast<double>(astitch) / xla; }
};
std::span<const PaperCount> paper_counts();

}  // namespace stitchwork
