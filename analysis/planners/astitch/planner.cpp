// The AStitch planner (docs/planners/astitch.md): vertical scope, then stitch ops, remote ones together.
#include "analysis/plan/assemble.h"
#include "analysis/planners/astitch/remote.h"
#include "analysis/planners/astitch/xla_scope.h"
#include "analysis/stitching/options.h"

namespace stitchwork {

FusionPlan plan_astitch(const Graph& graph, const Device& device, const PlanOptions& options) {
  const astitch::Options knobs = astitch::read_options(graph, device, options);
  const astitch::Nodes nodes = astitch::node_facts(graph);
  Recorder recorder(options.record_decisions);
  std::vector<KernelPlan> kernels;
  if (knobs.exhaustive_stitching) {
    const astitch::Scope scope = astitch::find_scope(nodes, knobs.max_ops, recorder, knobs.constraints);
    kernels = astitch::plan_scope(nodes, scope, device, knobs, recorder);
  } else {
    kernels = astitch::map_xla_kernels(nodes, device, knobs, recorder);
  }
  FusionPlan plan = assemble(graph, device, "astitch", std::move(kernels));
  plan.options = options.knobs;
  plan.options.try_emplace("mapping", "paper");
  plan.decisions = recorder.take();
  return plan;
}

}  // namespace stitchwork
