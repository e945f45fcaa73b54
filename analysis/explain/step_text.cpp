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

std::string place_text(const Computation& computation, const Node& node) {
  const PlacedArray* placed = node.attrs.placed.get();
  if (placed == nullptr) return "";
  const std::int64_t pitch = placed->matrix.dims.back(), row = placed->offset / pitch,
                     col = placed->offset % pitch, rows = node.shape.elements_count() / placed->cols;
  return fmt::format("rows {} to {}, columns {} to {} of {}, the buffer of {}", row, row + rows - 1, col,
                     col + placed->cols - 1, to_text(placed->matrix), computation.node(placed->owner).name);
}

std::string step_text(const Computation& computation, const PlanStep* step, const Node& node) {
  if (node.op == Op::kConcatInPlace) return "nothing computes it: its operands lie beside each other";
  if (step != nullptr)
    return fmt::format("{} {}{}", step->kind == StepKind::kLibrary ? "library call" : name(step->kind),
                       step->id,
                       step->variant.empty() ? "" : fmt::format(", made by our kernel {}", step->variant));
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
