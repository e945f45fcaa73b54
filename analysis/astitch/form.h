// One form of a stitch op's kernels: the passes in order, until nothing is left to amend.
#pragma once

#include <set>
#include <vector>

#include "analysis/astitch/launch.h"
#include "analysis/astitch/memory.h"
#include "analysis/astitch/options.h"

namespace stitchwork::astitch {

/// The stitch op planned with these reductions left in partials wherever they cross a group's rows: one
/// kernel, or several where the limits of a kernel make the stitch op too large.
std::vector<KernelPlan> plan_form(const Nodes& nodes, const StitchOp& op, const Device& device,
                                  const Options& options, const std::set<NodeId>& across, Recorder& recorder,
                                  WideForms forms = {});

}  // namespace stitchwork::astitch
