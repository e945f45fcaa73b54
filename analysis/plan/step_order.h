// Which steps of a plan have to wait for which.
#pragma once

#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork {

/// Whether steps are on another stream than the first.
bool uses_streams(const FusionPlan& plan);

/// By step of the entry computation's plan: the steps before it that write what it reads or writes, or read
/// what it writes; ascending.
std::vector<std::vector<int>> step_dependences(const Graph& graph, const FusionPlan& plan);

/// By step those of its dependences that neither the order on its stream nor waits, its own and those of
/// steps before, put before it; ascending.
std::vector<std::vector<int>> unordered_dependences(const FusionPlan& plan,
                                                    const std::vector<std::vector<int>>& dependences);

}  // namespace stitchwork
