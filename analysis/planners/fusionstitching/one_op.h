// The kernel of one op under one schedule, as the performance library times it: FusionStitching 2018, section
// 4.4, on a miss "a CUDA kernel is built from the key".
#pragma once

#include "analysis/plan/plan.h"
#include "analysis/planners/fusionstitching/library_key.h"
#include "occupancy_model/device.h"

namespace stitchwork::fusionstitching {

/// A graph whose result is the op, its operands parameters, and the plan of its one kernel; times are
/// predicted.
struct OneOp {
  Graph graph;
  FusionPlan plan;
};

/// The chunks, loop and threads that the planner gives the op under the key's schedule; the plan verifies.
/// Deterministic.
/// Throws Error naming the key where its shapes are none that the op takes.
OneOp one_op(const Device& device, const LibraryKey& key);

}  // namespace stitchwork::fusionstitching
