// Rows that do not fit the registers of their threads: reductions that follow another of the same row are
// gathered in its pass where the estimate says so (analysis/schedule/one_pass.h).
#pragma once

#include "analysis/plan/plan.h"
#include "analysis/plan/recorder.h"
#include "analysis/stitching/options.h"
#include "occupancy_model/device.h"

namespace stitchwork::astitch {

/// Fills Group::one_pass; each reduction that could be gathered is a decision.
void gather_in_one_pass(const Graph& graph, const Device& device, const Options& options, KernelPlan& kernel,
                        Recorder& recorder);

}  // namespace stitchwork::astitch
