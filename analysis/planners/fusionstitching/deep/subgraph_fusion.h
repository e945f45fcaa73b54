// Deep fusion (FusionStitching 2018, section 3.2, Algorithm 1): from every layer's roots downwards, as many
// producers as can be scheduled together, until a round fuses nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/plan/recorder.h"
#include "analysis/planners/fusionstitching/deep/tuning.h"

namespace stitchwork::fusionstitching::deep {

/// Contracts `units` and returns what is known of each fusion, by its unit: of those of several ops, and of
/// every single op that some kernel has to compute.
std::map<NodeId, Tuned> fuse(Contraction& units, Tuner& tuner, const Options& options, Recorder& recorder);

/// A line a fusion: its ops, ascending.
std::string to_text(const Contraction& units, const std::map<NodeId, Tuned>& fusions);

}  // namespace stitchwork::fusionstitching::deep
