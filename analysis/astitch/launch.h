// Resource-aware launch configuration (AStitch section 4.5): assume, relax, apply.
#pragma once

#include "analysis/astitch/memory.h"
#include "analysis/astitch/options.h"
#include "occupancy_model/device.h"

namespace stitchwork::astitch {

/// What mappings may assume before anything is planned: the largest block the device allows, and the wave it
/// has at the assumed 32 registers a thread.
MappingLimits mapping_limits(const Device& device, const Options& options);

/// Fills the kernel's memory slots and launch from its groups and finalization.
void plan_launch(const Body& body, const std::vector<OpGroup>& groups, const Finalization& finalization,
                 const Device& device, const Options& options, const MappingLimits& limits,
                 KernelPlan& kernel);

/// Whether a block's shared memory is within the device's limit and leaves the grid resident.
Verdict fits_device(const KernelPlan& kernel, const Device& device, const MappingLimits& limits);

}  // namespace stitchwork::astitch
