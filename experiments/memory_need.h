// What a run will take of the host's memory, before anything is allocated.
#pragma once

#include "analysis/plan/plan.h"

namespace stitchwork {

/// At least what a run takes: the parameters' values, with `simulated` the device's memory
/// (analysis/plan/plan_memory.h) at its peak, which is this machine's, the results, and with `check` the
/// reference's copies of parameters and results and what it holds on the way.
double run_bytes(const Graph& graph, const FusionPlan& plan, bool simulated, bool check);

}  // namespace stitchwork
