// The kernel that a `template` override asks for.
#pragma once

#include <string>
#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/planners/fusionstitching/ilp/options.h"

namespace stitchwork::fusionstitching {

/// Of the pattern (ascending), by the template `text`, in the block size in which it is fastest by the
/// estimate. A reduction that others read and that is not shared has its result in registers: what lies in
/// its rows is computed in one loop with it. Throws Error with line and column for what is no template of the
/// pattern.
KernelPlan template_kernel(const Ops& ops, const std::vector<NodeId>& pattern, const std::string& text,
                           const IlpOptions& options);

}  // namespace stitchwork::fusionstitching
