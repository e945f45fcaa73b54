// ElementwiseFusion (FusionStitching 2018, section 3.2): the element-wise instructions of a layer become
// multi-output computations, as in the accumulation layers of training, whose kernels take below 10 us.
#pragma once

#include <vector>

#include "analysis/plan/recorder.h"
#include "analysis/planners/fusionstitching/deep/tuning.h"

namespace stitchwork::fusionstitching::deep {

/// Joins units of one layer in `units`: single element-wise ops of one shape and type, in the order of their
/// ids, each where it fits first. Returns what is left to be roots, ascending: packs, named by their unit,
/// and all others of `layer` as they were.
std::vector<NodeId> pack_elementwise(Contraction& units, const std::vector<NodeId>& layer, Tuner& tuner,
                                     const Constraints& constraints, Recorder& recorder);

}  // namespace stitchwork::fusionstitching::deep
