// Plans one stitch op: of its forms, with or without rows in shared memory and sums across rows, the fastest
// by the estimate.
#pragma once

#include <vector>

#include "analysis/astitch/memory.h"
#include "analysis/astitch/options.h"

namespace stitchwork::astitch {

/// One kernel, or several where the limits of a kernel make the stitch op too large.
std::vector<KernelPlan> plan_stitch_op(const Nodes& nodes, const StitchOp& op, const Device& device,
                                       const Options& options, Recorder& recorder);

}  // namespace stitchwork::astitch
