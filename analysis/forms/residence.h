// Resident values (AStitch section 4.4): what a group's threads keep across grid barriers although their
// blocks have several tasks.
#pragma once

#include <map>

#include "analysis/plan/plan.h"
#include "analysis/plan/recorder.h"
#include "analysis/stitching/options.h"

namespace stitchwork::astitch {

/// Fills in `kernel.resident`. A value (of the kernel, or read from its inputs) that a thread has in one
/// phase and needs again in a later one, for the same elements of the same tasks, is kept: in registers if
/// the loop over the tasks is short enough to unroll and they last, else in shared memory that costs no
/// resident block, else nowhere (it is loaded or computed again) -- and only where the timing model finds
/// that faster. Values the kernel stored in scratch for such readers alone are Resident and lose their
/// scratch. `wanted`: schemes by override; what is to be Resident goes first, whatever the timing model says,
/// and what is to be otherwise is left alone.
/// Returns why each value that was looked at is Resident or not. `kernel` is complete otherwise.
std::map<NodeId, Verdict> keep_residents(const Graph& graph, const Device& device, const Options& options,
                                         const std::map<NodeId, Scheme>& wanted, KernelPlan& kernel,
                                         Recorder& recorder);

}  // namespace stitchwork::astitch
