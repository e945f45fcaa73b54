// The knobs of the planner fusionstitching-2018 (docs/planners/fusionstitching-2018.md).
#pragma once

#include "analysis/planners/fusionstitching/options.h"

namespace stitchwork::fusionstitching::deep {

/// How deep a layer's ops may fuse: up to the next layer that holds a library call, as the paper says, or up
/// to the calls themselves, wherever they are.
enum class Roof : std::uint8_t { kPath, kLayer };

struct Options : fusionstitching::Options {
  Roof roof = Roof::kPath;
  bool elementwise_fusion = true;
  bool size_shrinking = true;
  std::int64_t shared_bytes = 0;  ///< of a block's values, at most
  /// Ops of a kernel, as AStitch's (docs/planners/astitch.md): assembling one grows faster than linearly.
  int max_ops = 512;
};

/// Of resolved knobs (planner.h resolve_knobs).
Options read_options(const Graph& graph, const Device& device, const PlanOptions& options);

}  // namespace stitchwork::fusionstitching::deep
