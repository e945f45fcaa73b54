// Patterns that are alike have kernels that are alike: "only dozens of unique fusion patterns" (F19 section
// 2), so kernels are made once each.
#pragma once

#include <string>
#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/planners/fusionstitching/ilp/ops.h"

namespace stitchwork::fusionstitching {

/// Equal for patterns whose kernels differ in names alone: the ops that they evaluate (evaluated_ops), how
/// these read each other and what is outside, which leave the kernel.
std::string pattern_key(const astitch::Nodes& nodes, const std::vector<NodeId>& evaluated,
                        const std::vector<NodeId>& outputs);

/// The kernel of the ops `from` as one of the ops `to`, whose keys are equal.
KernelPlan renamed(const Computation& computation, const KernelPlan& kernel, const std::vector<NodeId>& from,
                   const std::vector<NodeId>& to);

}  // namespace stitchwork::fusionstitching
