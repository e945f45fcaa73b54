// Groups that read or store values against their order in memory (a transpose, wherever it sits among their
// ops): element-wise tasks become tiles of shared memory, tasks of rows take up such values through one, so
// that both sides move in whole sectors.
#pragma once

#include "analysis/plan/plan.h"
#include "analysis/plan/recorder.h"
#include "analysis/stitching/options.h"
#include "occupancy_model/device.h"

namespace stitchwork::astitch {

/// Gives such element-wise groups, where no other group is tied to their tasks, the tile mapping that takes
/// least time by the estimate, and groups of whole rows tiles beside their rows, if that is less than their
/// own takes; every try is a decision.
void turn_through_tiles(const Graph& graph, const Device& device, const Options& options, KernelPlan& kernel,
                        Recorder& recorder);

}  // namespace stitchwork::astitch
