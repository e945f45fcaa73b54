// exhaustive_stitching=off: adaptive thread mapping alone, on the kernels that XLA forms ("ATM" of
// section 6.1.3).
#pragma once

#include "analysis/plan/recorder.h"
#include "analysis/stitching/nodes.h"
#include "analysis/stitching/options.h"
#include "occupancy_model/device.h"

namespace stitchwork::astitch {

/// XLA's fusions under the mappings of section 3.3: small rows packed, long ones split. Split rows are
/// combined by cross-block atomics (Figure 8-b), for a kernel of XLA's has no phase in which to fold
/// partials; reductions that atomics cannot add up stay whole.
std::vector<KernelPlan> map_xla_kernels(const Nodes& nodes, const Device& device, const Options& options,
                                        Recorder& recorder);

}  // namespace stitchwork::astitch
