// Remote stitching (AStitch section 4.1): stitch ops that do not reach each other may share a kernel, which
// saves a launch, and the bytes of the inputs they share.
#pragma once

#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/plan/recorder.h"
#include "analysis/stitching/options.h"
#include "analysis/stitching/scope.h"

namespace stitchwork::astitch {

/// Plans the stitch ops of a vertical scope; with `remote_stitching`, those together that gain from it. Pairs
/// are tried in two rounds: those that share inputs, most bytes first, then neighbours by level. A pair is
/// joined if the limits of a kernel, the levels, the order, memory and predicted time admit it
/// (docs/planners/astitch.md). What is joined is planned as one; if that plan is slower than those it
/// replaces, the halves are tried.
std::vector<KernelPlan> plan_scope(const Nodes& nodes, const Scope& scope, const Device& device,
                                   const Options& options, Recorder& recorder);

}  // namespace stitchwork::astitch
