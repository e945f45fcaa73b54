// What a run will take of the host's memory, before anything is allocated.
#pragma once

#include "analysis/plan/plan.h"

namespace stitchwork {

/// Bytes of the plan's buffers alive at once at most, each from the first step that touches it to the last
/// (results to the end), scratch of kernels and of what loops and branches run included: what runtime/run.h
/// allocates on the device, which for a simulated run is this machine. Parameters that a step reads count.
double peak_device_bytes(const Graph& graph, const FusionPlan& plan);

/// At least what a run takes: the parameters' values, with `simulated` the device's memory, the results, and
/// with `check` the reference's copies of parameters and results.
double run_bytes(const Graph& graph, const FusionPlan& plan, bool simulated, bool check);

}  // namespace stitchwork
