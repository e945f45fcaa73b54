// The AStitch planner (docs/planners/astitch.md): vertical scope, then stitch ops, remote ones together.
#include "analysis/assemble.h"
#include "analysis/astitch/options.h"
#include "analysis/astitch/remote.h"

namespace stitchwork {

FusionPlan plan_astitch(const Graph& graph, const Device& device, const PlanOptions& options) {
  astitch::Options knobs = astitch::read_options(options);
  knobs.constraints = constraints(graph, device, options.edits);
  const astitch::Nodes nodes = astitch::node_facts(graph);
  astitch::Recorder recorder(options.record_decisions);
  const astitch::Scope scope = astitch::find_scope(nodes, knobs.max_ops, recorder, knobs.constraints);
  std::vector<KernelPlan> kernels = astitch::plan_scope(nodes, scope, device, knobs, recorder);
  FusionPlan plan = assemble(graph, device, "astitch", std::move(kernels));
  plan.options = options.knobs;
  plan.options.try_emplace("mapping", "paper");
  plan.decisions = recorder.take();
  return plan;
}

}  // namespace stitchwork
