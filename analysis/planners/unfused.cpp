// The unfused planner: every generated op a kernel of its own (docs/planners/unfused.md).
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/planner.h"
#include "analysis/schedule/plain_mapping.h"

namespace stitchwork {
namespace {

KernelPlan kernel_of(const Graph& graph, const Device& device, const Node& node) {
  KernelPlan kernel;
  kernel.ops = {node.id};
  kernel.schemes[node.id] = Scheme::kIndependent;
  kernel.levels[node.id] = 0;
  Group group;
  group.dominant = node.id;
  group.ops = {node.id};
  const Dealt dealt = eager_mapping(graph, device, node);
  group.mapping = dealt.mapping;
  group.deal = dealt.deal;
  kernel.groups.push_back(std::move(group));
  finish_plain_launch(graph.entry_computation(), kernel);
  return kernel;
}

}  // namespace

FusionPlan plan_unfused(const Graph& graph, const Device& device, const PlanOptions& options) {
  const Computation& computation = graph.entry_computation();
  std::vector<KernelPlan> kernels;
  std::vector<Decision> decisions;
  for (const Node& node : computation.nodes) {
    // A copy alone is a device-to-device copy, not a kernel.
    if (plan_role(node) != PlanRole::kMemory || node.op == Op::kCopy) continue;
    kernels.push_back(kernel_of(graph, device, node));
    if (options.record_decisions)
      decisions.push_back(
          {"scope", node.name, "", Verdict::yes("unfused.one-op-a-kernel", "every op is a kernel")});
  }
  FusionPlan plan = assemble(graph, device, "unfused", std::move(kernels));
  plan.decisions = std::move(decisions);
  return plan;
}

}  // namespace stitchwork
