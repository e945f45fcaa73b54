#include "experiments/memory_need.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/plan/control_flow.h"
#include "analysis/plan/traffic.h"
#include "core/evaluate/inputs.h"

namespace stitchwork {
namespace {

double bytes_of(const Graph& graph, NodeId op) {
  return static_cast<double>(graph.entry_computation().node(op).shape.byte_size());
}

/// Beside the plan's buffers, while the step runs.
double during(const Graph& graph, const FusionPlan& plan, const PlanStep& step,
              const std::vector<ComputationPlan>& parts) {
  if (step.kind == StepKind::kKernel)
    return static_cast<double>(plan.kernels[static_cast<std::size_t>(step.kernel)].launch.scratch_bytes);
  if (step.kind != StepKind::kControl) return 0;
  double most = 0;
  const Node& node = graph.entry_computation().node(step.nodes.front());
  for (const ComputationPlan& part : parts)
    if (std::find(node.attrs.computations.begin(), node.attrs.computations.end(), part.computation) !=
        node.attrs.computations.end())
      most = std::max(most, peak_device_bytes(entered(graph, part.computation), part.plan));
  return most;
}

}  // namespace

double peak_device_bytes(const Graph& graph, const FusionPlan& plan) {
  std::map<NodeId, std::pair<std::size_t, std::size_t>> alive;  // first and last step
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Traffic touched = traffic(graph, plan, plan.steps[s]);
    for (const auto* list : {&touched.reads, &touched.writes})
      for (const NodeId op : *list) alive.try_emplace(op, s, s).first->second.second = s;
  }
  for (const NodeId op : buffers_read(graph.entry_computation(), graph.entry_computation().root))
    if (const auto at = alive.find(op); at != alive.end()) at->second.second = plan.steps.size();
  std::vector<double> change(plan.steps.size() + 1, 0);
  for (const auto& [op, steps] : alive) {
    change[steps.first] += bytes_of(graph, op);
    if (steps.second < plan.steps.size()) change[steps.second + 1] -= bytes_of(graph, op);
  }
  double now = 0, peak = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    now += change[s];
    peak = std::max(peak, now + during(graph, plan, plan.steps[s], plan.computations));
  }
  return peak;
}

double run_bytes(const Graph& graph, const FusionPlan& plan, bool simulated, bool check) {
  const Computation& entry = graph.entry_computation();
  const double inputs = input_bytes(graph);
  const auto results = static_cast<double>(entry.node(entry.root).shape.byte_size());
  return inputs + (simulated ? peak_device_bytes(graph, plan) : 0) + results + (check ? inputs + results : 0);
}

}  // namespace stitchwork
