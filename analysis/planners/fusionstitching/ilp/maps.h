// Patterns that hold too many ways from an op to what is stored (docs/planners/fusionstitching.md,
// "fs19.maps").
#pragma once

#include <vector>

#include "analysis/planners/fusionstitching/ilp/ops.h"
#include "analysis/planners/fusionstitching/ilp/options.h"

namespace stitchwork::fusionstitching {

/// Whether some template of each component computes no op under more than kMostMaps index maps in a loop, or
/// has none for another reason.
bool is_within_maps(const Ops& ops, const std::vector<NodeId>& pattern, const IlpOptions& options);

/// The pattern in pieces that are, the longest first ones of what is left: ops follow each other as in the
/// computation, so that no piece reads a later one.
std::vector<std::vector<NodeId>> cut_within_maps(const Ops& ops, const std::vector<NodeId>& pattern,
                                                 const IlpOptions& options);

}  // namespace stitchwork::fusionstitching
