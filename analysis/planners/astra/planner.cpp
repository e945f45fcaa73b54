// Kernels between the products, and their streams.
#include "analysis/planners/astra/planner.h"

#include <string>

#include "analysis/judge/cost.h"
#include "analysis/schedule/evaluations.h"

namespace stitchwork {
namespace astra {

FusionPlan plan_elementwise(const Graph& graph, const Device& device, const PlanOptions& options) {
  const Planner& row = planner(options.knobs.at("elementwise"));
  PlanOptions own = options;
  own.knobs.clear();
  own.knobs = resolve_knobs(row, own);
  FusionPlan plan = row.plan(graph, device, own);
  plan.tf32 = options.tf32;
  predict(graph, device, plan, evaluations(graph.entry_computation(), plan));
  return plan;
}

}  // namespace astra

FusionPlan plan_astra(const Graph& graph, const Device& device, const PlanOptions& options) {
  FusionPlan plan = astra::plan_elementwise(graph, device, options);
  const int streams = std::stoi(options.knobs.at("streams"));
  if (streams == 1) return plan;
  Recorder recorder(options.record_decisions);
  recorder.append(std::move(plan.decisions));
  astra::put_on_streams(graph, device, plan, streams, recorder);
  plan.decisions = recorder.take();
  return plan;
}

}  // namespace stitchwork
