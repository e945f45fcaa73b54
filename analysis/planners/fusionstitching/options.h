// The knobs that both FusionStitching planners have (docs/planners/fusionstitching-2018.md).
#pragma once

#include <cstdint>

#include "analysis/plan/constraints.h"
#include "analysis/planners/planner.h"

namespace stitchwork::fusionstitching {

struct Options {
  bool products = false;             ///< dots may be computed in kernels
  bool device_shared_limit = false;  ///< shared_limit=device; else the paper's
  bool shared_reuse = true;          ///< off: every request has bytes of its own
  bool tuned = false;                ///< mapping=tuned: vectors and unrolling; else elements one by one
  bool record_decisions = false;
  Constraints constraints;  ///< what overrides ask for
};

/// Of resolved knobs (planner.h resolve_knobs).
Options read_options(const Graph& graph, const Device& device, const PlanOptions& options);

/// Bytes that the values of a block may take: `paper_bytes`, or what the device gives without asking, less
/// what its reductions combine through.
std::int64_t shared_limit(const Options& options, const Device& device, std::int64_t paper_bytes);

}  // namespace stitchwork::fusionstitching
