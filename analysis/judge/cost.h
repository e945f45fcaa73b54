// Cost from the plan alone (method "modelled"): what compare prints and planners weigh.
#pragma once

#include <cstdint>
#include <functional>

#include "analysis/plan/plan.h"
#include "analysis/schedule/evaluations.h"
#include "occupancy_model/not_modelled.h"

namespace stitchwork {

struct KernelCost {
  KernelWork work;
  std::int64_t dram_read_bytes = 0, dram_write_bytes = 0;
  std::int64_t recomputed_elements =
      0;  ///< evaluations beyond the first of each element; index maps are free
  double predicted_us = 0;
  TimedKernel timed;  ///< what predicted_us is made of, and what it leaves out
};

KernelCost kernel_cost(const Graph& graph, const Device& device, const KernelPlan& kernel);
/// The same, given what the kernel's groups evaluate.
KernelCost kernel_cost(const Graph& graph, const Device& device, const KernelPlan& kernel,
                       const KernelEvaluations& found);

/// Time of one task of a kernel of one group while each of so many blocks, a wave of them, runs one: what its
/// block takes of the device, launch and barriers left out. Of the launch, block and grid alone are asked;
/// what the group reads of other groups of its kernel is among the ops.
double wave_us(const Graph& graph, const Device& device, const KernelPlan& alone, std::int64_t blocks);

struct PlanCost {
  double predicted_us = 0;
  double once_us = 0;  ///< of steps that are done once, which nothing else here counts
  std::int64_t dram_bytes = 0, recomputed_elements = 0;
  int grid_barriers = 0;
};

/// Also of library calls (analysis/judge/library_cost.h; a copy's time where they are no products), copies
/// and memsets, with a launch gap between steps.
PlanCost plan_cost(const Graph& graph, const Device& device, const FusionPlan& plan);

/// The same time with that of each kernel as `kernel_us` has it, of the graph that its computation is the
/// entry of; called from several threads.
double plan_us_by(const Graph& graph, const Device& device, const FusionPlan& plan,
                  const std::function<double(const Graph&, const KernelPlan&)>& kernel_us);

/// Fills predicted_us of kernels, steps and plan; `found` is what the plan's kernels evaluate.
void predict(const Graph& graph, const Device& device, FusionPlan& plan, const PlanEvaluations& found);

/// Sets tf32 of a complete plan that was made without it, and its predicted times again. Throws Error where
/// the device has no such units.
void allow_tf32(const Graph& graph, const Device& device, FusionPlan& plan);

}  // namespace stitchwork
