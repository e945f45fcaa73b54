// Larger graphs out of real ones: copies of a graph one after the other, as unrolling a loop around it gives.
#pragma once

#include <utility>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork::testing {

/// Which parameter each output of the entry (an element of the root's tuple, or the root) is carried on to:
/// the first parameter of its shape that no earlier output took; kNoNode where there is none.
inline std::vector<NodeId> carried(const Computation& entry, const std::vector<NodeId>& outputs) {
  std::vector<bool> taken(entry.parameters.size(), false);
  std::vector<NodeId> result;
  for (const NodeId output : outputs) {
    NodeId to = kNoNode;
    for (std::size_t p = 0; p < entry.parameters.size() && to == kNoNode; ++p) {
      if (taken[p] || entry.node(entry.parameters[p]).shape != entry.node(output).shape) continue;
      taken[p] = true;
      to = entry.parameters[p];
    }
    result.push_back(to);
  }
  return result;
}

/// The entry computation `copies` times: what a copy gives goes into the next one's parameters (`carried`),
/// the other parameters are shared by all. The result is the last copy's.
inline Graph chain(const Graph& graph, int copies) {
  const Computation& entry = graph.entry_computation();
  const Node& root = entry.node(entry.root);
  const std::vector<NodeId> outputs = root.op == Op::kTuple ? root.operands : std::vector<NodeId>{entry.root};
  const std::vector<NodeId> carry = carried(entry, outputs);

  ComputationBuilder builder(entry.name);
  std::vector<NodeId> made(entry.nodes.size(), kNoNode);  // of the current copy
  for (const NodeId parameter : entry.parameters) {
    made[static_cast<std::size_t>(parameter)] = builder.add(entry.node(parameter));
  }
  for (int copy = 0; copy < copies; ++copy) {
    if (copy > 0) {
      const std::vector<NodeId> before = made;
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if (carry[o] == kNoNode) continue;
        made[static_cast<std::size_t>(carry[o])] = before[static_cast<std::size_t>(outputs[o])];
      }
    }
    for (const Node& node : entry.nodes) {
      if (node.op == Op::kParameter || (node.id == entry.root && copy + 1 < copies)) continue;
      Node copied = node;
      for (NodeId& operand : copied.operands) operand = made[static_cast<std::size_t>(operand)];
      made[static_cast<std::size_t>(node.id)] = builder.add(std::move(copied));
    }
  }
  Graph result = graph;
  result.computations[static_cast<std::size_t>(graph.entry)] =
      std::move(builder).finish(made[static_cast<std::size_t>(entry.root)]);
  return result;
}

}  // namespace stitchwork::testing
