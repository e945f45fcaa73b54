// Planners side by side on one graph and device, from plans alone (method "modelled"), and compilers' plans
// as they ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/planners/planner.h"

namespace stitchwork {

struct CompareRow {
  std::string planner;
  std::string device;  ///< id
  int memory_kernels = 0, library_calls = 0, copies = 0, grid_barriers = 0;
  double predicted_us = 0;
  std::int64_t dram_bytes = 0, recomputed_elements = 0;
  double plan_ms = 0;               ///< wall time of planning
  std::int64_t launched = 0;        ///< memory kernels as often as they run: in loops times the trips
  int product_kernels = 0;          ///< a compiler's own
  double memory_us = 0;             ///< of memory kernels alone, as often as they run
  double once_us = 0;               ///< of steps that are done once, which nothing else counts
  std::string method = "modelled";  ///< of times and bytes; "simulated": of a compiler's kernels
  std::string dump;                 ///< folder of a compiler's plan; "": a planner's
};

/// Of a plan that is there.
CompareRow row_of(const Graph& graph, const FusionPlan& plan, double plan_ms);

/// Throws Error where none of the planners has one of the knobs, honours the overrides or takes the library;
/// what some do is left out for the others.
void require_honoured(const std::vector<std::string>& planners, const PlanOptions& options);

/// What of `options` a planner honours: its knobs, and the overrides if it honours all of them.
PlanOptions options_for(const Planner& row, const PlanOptions& options);

/// One row a planner, in the order given. `options` holds knobs and overrides; each planner gets
/// the knobs it honours, the overrides if it honours all of them, and the library if it takes one.
std::vector<CompareRow> compare(const Graph& graph, const Device& device,
                                const std::vector<std::string>& planners, const PlanOptions& options = {});

}  // namespace stitchwork
