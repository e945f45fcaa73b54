// What ops are that no kernel computes.
#include <fmt/format.h>

#include "analysis/explain/explain.h"
#include "analysis/facts/facts.h"
#include "analysis/judge/library_cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/traffic.h"

namespace stitchwork {

std::optional<MatrixProduct> called_product(const Computation& computation, const FusionPlan& plan,
                                            const PlanStep* step, const Node& node) {
  if (step != nullptr && results_of(plan, *step).size() < step->nodes.size())
    return matrix_product(computation, step->nodes, plan.tf32);
  return matrix_product(computation, node, plan.tf32);
}

std::unordered_map<NodeId, const PlanStep*> steps_outside_kernels(const FusionPlan& plan) {
  std::unordered_map<NodeId, const PlanStep*> result;
  for (const PlanStep& step : plan.steps)
    if (step.kind != StepKind::kKernel && step.kind != StepKind::kMemset)
      for (const NodeId op : step.nodes) result.emplace(op, &step);
  return result;
}

std::string step_text(const Computation& computation, const PlanStep* step, const Node& node) {
  if (step != nullptr)
    return fmt::format("{} {}", step->kind == StepKind::kLibrary ? "library call" : name(step->kind),
                       step->id);
  switch (plan_role(node)) {
    case PlanRole::kSource:
      return is_immediate(computation, node.id) ? "immediate in every kernel that reads it"
                                                : std::string(def(node.op).name);
    case PlanRole::kAlias: {
      const NodeId owner = buffer_of(computation, node.id);
      return owner == node.id ? "names the buffers of its operands"
                              : fmt::format("alias of {}", computation.node(owner).name);
    }
    default:
      return is_immediate(computation, node.id) ? "immediate in every kernel that reads it" : std::string();
  }
}

}  // namespace stitchwork
