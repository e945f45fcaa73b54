// Which steps of a plan have to wait for which.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// By step the last step of the plan that may begin before it has ended; itself where all behind it in the
/// plan wait for it, as on one stream.
std::vector<std::size_t> last_steps_beside(const FusionPlan& plan);

/// Another order of the steps that streams and waits allow, drawn by `seed`; with one stream the plan's.
std::vector<int> shuffled_steps(const FusionPlan& plan, std::uint32_t seed);

}  // namespace stitchwork
