#include "analysis/plan/traffic.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "core/base/sorted.h"

namespace stitchwork {

std::vector<NodeId> buffers_read(const Computation& computation, NodeId node) {
  std::unordered_set<NodeId> seen;
  std::vector<NodeId> open{node};
  while (!open.empty()) {
    const Node& owner = computation.node(buffer_of(computation, open.back()));
    open.pop_back();
    // A tuple, an element of one, or operands that lie beside each other.
    if (seen.insert(owner.id).second &&
        (plan_role(owner) == PlanRole::kAlias || owner.op == Op::kConcatInPlace))
      open.insert(open.end(), owner.operands.begin(), owner.operands.end());
  }
  std::vector<NodeId> buffers(seen.begin(), seen.end());
  sort_unique(buffers);
  return buffers;
}

std::vector<NodeId> call_operands(const Computation& computation, std::span<const NodeId> call) {
  std::vector<NodeId> operands;
  for (const NodeId op : call)
    for (const NodeId operand : computation.node(op).operands)
      if (std::ranges::find(call, operand) == call.end() &&
          (op == call.front() || !is_immediate(computation, operand)))
        operands.push_back(operand);
  return operands;
}

std::span<const NodeId> results_of(const FusionPlan& plan, const PlanStep& step) {
  const std::span<const NodeId> all = step.nodes;
  return plan.peer == nullptr && step.kind == StepKind::kLibrary && !all.empty() ? all.last(1) : all;
}

Traffic traffic(const Graph& model, const FusionPlan& plan, const PlanStep& step) {
  const Graph& graph = planned_graph(model, plan);
  const Computation& computation = graph.entry_computation();
  Traffic result;
  const auto read = [&](NodeId value) {
    for (const NodeId owner : buffers_read(computation, value))
      result.reads.push_back(storage_of(computation, owner));
  };
  if (step.kind == StepKind::kKernel) {
    if (step.kernel < 0 || step.kernel >= static_cast<int>(plan.kernels.size())) return result;
    const KernelPlan& kernel = plan.kernels[static_cast<std::size_t>(step.kernel)];
    for (const NodeId input : kernel_inputs(graph, kernel)) read(input);
    for (const NodeId output : kernel.outputs) {
      result.writes.push_back(storage_of(computation, output));
      if (result.writes.back() != buffer_of(computation, output))
        result.reads.push_back(result.writes.back());
    }
  } else {
    if (step.kind != StepKind::kMemset)
      for (const NodeId operand : call_operands(computation, step.nodes)) read(operand);
    for (const NodeId op : results_of(plan, step)) result.writes.push_back(buffer_of(computation, op));
  }
  sort_unique(result.reads);
  sort_unique(result.writes);
  return result;
}

}  // namespace stitchwork
