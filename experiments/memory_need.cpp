#include "experiments/memory_need.h"

#include "analysis/plan/plan_memory.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"

namespace stitchwork {

double run_bytes(const Graph& model, const FusionPlan& plan, bool simulated, bool check) {
  const Graph& graph = planned_graph(model, plan);
  const Computation& entry = graph.entry_computation();
  const double inputs = input_bytes(graph);
  const auto results = static_cast<double>(entry.node(entry.root).shape.byte_size());
  return inputs + (simulated ? static_cast<double>(plan_memory(graph, plan, true).peak_bytes) : 0) + results +
         (check ? inputs + results + evaluation_bytes(model) : 0);
}

}  // namespace stitchwork
