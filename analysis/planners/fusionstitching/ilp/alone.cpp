#include "analysis/planners/fusionstitching/ilp/alone.h"

#include <algorithm>

#include "analysis/judge/cost.h"
#include "analysis/judge/library_cost.h"
#include "analysis/plan/inlined_kernel.h"
#include "analysis/plan/plain_mapping.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {

std::vector<NodeId> evaluated_ops(const astitch::Nodes& nodes, const std::vector<NodeId>& pattern) {
  std::vector<NodeId> result = pattern, open = pattern;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (const NodeId operand : nodes.node(id).operands) {
      if (!nodes[operand].transparent || nodes[operand].immediate || contains_sorted(result, operand))
        continue;
      insert_sorted(result, operand);
      open.push_back(operand);
    }
  }
  return result;
}

KernelPlan kernel_alone(const astitch::Nodes& nodes, NodeId op) {
  const Computation& computation = *nodes.computation;
  const Dealt dealt = natural_mapping(computation, nodes.node(op));
  std::vector<NodeId> ops = nodes[op].isolated ? std::vector{op} : evaluated_ops(nodes, {op});
  KernelPlan kernel = inlined_kernel(computation, std::move(ops), {op}, op, dealt);
  kernel.schemes[op] = Scheme::kIndependent;
  return kernel;
}

double alone_us(const Ops& ops, NodeId op) {
  const astitch::Nodes& nodes = *ops.nodes;
  const Node& node = nodes.node(op);
  if (node.op == Op::kCopy) return transfer_us(*ops.device, call_bytes(*nodes.computation, node, true));
  if (const auto product = matrix_product(*nodes.computation, node))
    return library_time(*ops.device, *product).total_us - ops.device->launch_us;
  return kernel_cost(*nodes.graph, *ops.device, kernel_alone(nodes, op)).predicted_us;
}

}  // namespace stitchwork::fusionstitching
