// What a plan's kernels do with shared memory, and how often its steps run: metrics of FusionStitching's
// tables (2018, Table 3; 2019, Tables 2 and 4), of every planner's plans.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork {

/// A metric of experiments/metrics.h, from the plan alone.
struct PlanMetric {
  std::string_view name;
  double value = 0;
};

/// Of the kernels of the entry and of every computation that it runs, each once; dynamic_kernels as often as
/// they run.
std::vector<PlanMetric> plan_metrics(const Graph& graph, const FusionPlan& plan);

}  // namespace stitchwork
