// Resource-aware launch configuration (AStitch section 4.5): assume, relax, apply.
#pragma once

#include <optional>
#include <vector>

#include "analysis/stitching/memory.h"
#include "analysis/stitching/options.h"
#include "analysis/stitching/stitched.h"
#include "occupancy_model/device.h"

namespace stitchwork::astitch {

/// Fills the kernel's memory slots and launch from its groups and finalization.
void plan_launch(const Stitched& stitched, const Device& device, const Options& options,
                 const MappingLimits& limits, KernelPlan& kernel, Recorder& recorder);

/// Blocks an SM, blocks a wave and registers a thread, from the block and its shared memory.
void bound_launch(const Device& device, const Options& options, const MappingLimits& limits,
                  KernelLaunch& launch);

/// mapping=tuned: an SM that gets fewer blocks of the grid than it could hold gives them all its registers,
/// so that longer rows stay in them.
void settle_registers(const Device& device, const Options& options, KernelLaunch& launch);

/// Whether long rows stay in shared memory one by one, for which a block may ask for more of it.
bool stages_single_rows(const KernelPlan& kernel);

/// Whether a block's shared memory is within the device's limit and leaves the grid resident.
Verdict fits_device(const KernelPlan& kernel, const Device& device, const MappingLimits& limits);

}  // namespace stitchwork::astitch
