// The one check of a plan, whoever made it: a planner, a hand, a file.
#pragma once

#include <limits>
#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/schedule/evaluations.h"

namespace stitchwork {

/// Everything wrong with `plan` for `graph` on `device`; empty if it can be compiled and run. Rules
/// (docs/planners/verify.md): coverage (every kMemory node computed, every output materialised in exactly one
/// kernel), acyclic and ordered steps, schemes consistent with groups, levels and placements (Regional within
/// a block, same phase, same iteration), shared memory, scratch and register limits of the device, grid
/// resident if it has grid barriers, mapping arithmetic. `known`: what the plan's kernels evaluate, where
/// that has been found out before.
std::vector<Verdict> verify(const Graph& graph, const Device& device, const FusionPlan& plan,
                            const PlanEvaluations* known = nullptr);

/// Of one kernel, before it is part of a plan, what its mappings and values alone tell: domains, placements,
/// schemes, and that values of shared memory are read by their own block. `found`: what it evaluates.
std::vector<Verdict> verify_values(const Graph& graph, const Device& device, const KernelPlan& kernel,
                                   const KernelEvaluations& found);

/// Blocks of a grid along x, at most (CUDA C++ Programming Guide, technical specifications).
inline constexpr std::int64_t kMaxGrid = std::numeric_limits<std::int32_t>::max();

/// Throws Error where a planner's mapping of an array takes more blocks than a grid has: of huge arrays.
void require_grids(const Graph& graph, const FusionPlan& plan);

/// Throws Error(file) with the first problem and how many more there are.
void require_valid(const Graph& graph, const Device& device, const FusionPlan& plan, const std::string& file);

}  // namespace stitchwork
