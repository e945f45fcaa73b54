#include "core/error.h"
#include "core/passes.h"

namespace stitchwork {
namespace {

/// Copies `callee`'s nodes into the builder, its parameters standing for `arguments`. Returns where its root
/// went.
NodeId splice(ComputationBuilder& builder, const Computation& callee, const std::vector<NodeId>& arguments) {
  std::vector<NodeId> place;
  place.reserve(callee.nodes.size());
  for (const Node& node : callee.nodes) {
    if (node.op == Op::kParameter) {
      place.push_back(arguments.at(static_cast<std::size_t>(node.attrs.parameter_number)));
      continue;
    }
    Node copy = node;
    for (NodeId& operand : copy.operands) operand = place[static_cast<std::size_t>(operand)];
    place.push_back(builder.add(std::move(copy)));
  }
  return place[static_cast<std::size_t>(callee.root)];
}

Computation inlined(const Graph& graph, const Computation& computation) {
  ComputationBuilder builder(computation.name);
  for (const Node& node : computation.nodes) {
    if (node.op != Op::kCall) builder.reserve(node.name);
  }
  std::vector<NodeId> place;
  place.reserve(computation.nodes.size());
  for (const Node& node : computation.nodes) {
    Node copy = node;
    for (NodeId& operand : copy.operands) operand = place[static_cast<std::size_t>(operand)];
    if (node.op == Op::kCall) {
      place.push_back(splice(builder, graph.computation(applied(node)), copy.operands));
    } else {
      place.push_back(builder.add_reserved(std::move(copy)));
    }
  }
  return std::move(builder).finish(place[static_cast<std::size_t>(computation.root)]);
}

}  // namespace

Graph inline_calls(const Graph& graph) {
  Graph result = graph;
  // Callees come first, so what is spliced in has no calls left.
  for (Computation& computation : result.computations) computation = inlined(result, computation);
  return result;
}

}  // namespace stitchwork
