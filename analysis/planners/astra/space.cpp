#include "analysis/planners/astra/space.h"

#include "analysis/planners/astra/provenance.h"

namespace stitchwork::astra {

Space enumerate(const Graph& model, const FusionPlan& plan, const SpaceOptions& options) {
  const Graph& graph = planned_graph(model, plan);
  const Computation& computation = graph.entry_computation();
  const std::vector<std::vector<NodeId>> users = computation.users();
  Recorder recorder(true);
  Space space;
  space.options = options;
  space.products = products(computation, users, recorder);
  space.ladders = ladders(computation, users, space.products, recorder);
  space.provenance = provenance(computation, space.products, space.ladders, kMostDotsOfSets);
  space.groups = groups(computation, space.products, space.ladders, space.provenance, recorder);
  space.strategies = strategies(computation, space.products, space.ladders, space.groups, recorder);
  space.plan = plan.planner;
  space.streams = stream_space(graph, plan, options.super_epoch_us);
  space.decisions = recorder.take();
  return space;
}

}  // namespace stitchwork::astra
