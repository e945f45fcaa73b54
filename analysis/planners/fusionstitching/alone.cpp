#include "analysis/planners/fusionstitching/alone.h"

#include <algorithm>

#include "analysis/schedule/inlined_kernel.h"
#include "analysis/schedule/plain_mapping.h"
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

KernelPlan kernel_alone(const astitch::Nodes& nodes, const Device& device, NodeId op) {
  const Computation& computation = *nodes.computation;
  const Dealt dealt = eager_mapping(*nodes.graph, device, nodes.node(op));
  std::vector<NodeId> ops = nodes[op].isolated ? std::vector{op} : evaluated_ops(nodes, {op});
  KernelPlan kernel = inlined_kernel(computation, std::move(ops), {op}, op, dealt);
  kernel.schemes[op] = Scheme::kIndependent;
  kernel.outputs = {op};  // estimates count what it stores
  return kernel;
}

bool is_empty(const astitch::Nodes& nodes, NodeId op) {
  const auto none = [&](NodeId of) {
    const Shape& shape = nodes.node(of).shape;
    return !shape.is_tuple && shape.elements_count() == 0;
  };
  const auto& operands = nodes.node(op).operands;
  return none(op) || std::any_of(operands.begin(), operands.end(), none);
}

}  // namespace stitchwork::fusionstitching
