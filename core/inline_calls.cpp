#include "core/error.h"
#include "core/passes.h"
#include "core/rewrite.h"

namespace stitchwork {
namespace {

/// Newer exporters name a callee's scopes from the call on ("max"), older ones from the module on
/// ("jit(f)/jit(relu)/max"): only the former lack the call's own.
std::string scoped(const std::string& call, const std::string& inner) {
  if (call.empty() || inner.empty() || inner.substr(0, inner.find('/')) == call.substr(0, call.find('/'))) {
    return inner;
  }
  return call + "/" + inner;
}

/// Copies `callee`'s nodes into the builder, its parameters standing for `arguments`. Returns where its root
/// went.
NodeId splice(ComputationBuilder& builder, const Computation& callee, const Node& call,
              const std::vector<NodeId>& arguments) {
  std::vector<NodeId> place;
  place.reserve(callee.nodes.size());
  for (const Node& node : callee.nodes) {
    if (node.op == Op::kParameter) {
      place.push_back(arguments.at(static_cast<std::size_t>(node.attrs.parameter_number)));
      continue;
    }
    Node copy = node;
    copy.metadata.op_name = scoped(call.metadata.op_name, node.metadata.op_name);
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
      place.push_back(splice(builder, graph.computation(applied(node)), node, copy.operands));
    } else {
      place.push_back(builder.add_reserved(std::move(copy)));
    }
  }
  return std::move(builder).finish(place[static_cast<std::size_t>(computation.root)]);
}

}  // namespace

Graph inline_calls(const Graph& graph) {
  Graph result = head_of(graph);
  // Callees come first, so what is spliced in has no calls left.
  for (const Computation& computation : graph.computations) {
    result.computations.push_back(inlined(result, computation));
  }
  return result;
}

}  // namespace stitchwork
