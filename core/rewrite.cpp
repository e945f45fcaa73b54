#include "core/rewrite.h"

#include <numeric>

#include "core/error.h"

namespace stitchwork {

Computation rewritten(const Computation& computation, std::span<const NodeId> replacement,
                      const std::vector<bool>& keep) {
  Computation result;
  result.name = computation.name;
  result.parameters = computation.parameters;
  std::vector<NodeId> place(computation.nodes.size(), kNoNode);
  const auto moved = [&](NodeId id) {
    const NodeId target = place[static_cast<std::size_t>(replacement[static_cast<std::size_t>(id)])];
    SW_CHECK(target != kNoNode, "'{}' is used but not kept", computation.node(id).name);
    return target;
  };
  for (const Node& node : computation.nodes) {
    if (!keep[static_cast<std::size_t>(node.id)]) continue;
    Node copy = node;
    copy.id = result.size();
    for (NodeId& operand : copy.operands) operand = moved(operand);
    place[static_cast<std::size_t>(node.id)] = copy.id;
    result.nodes.push_back(std::move(copy));
  }
  for (NodeId& parameter : result.parameters) parameter = moved(parameter);
  result.root = moved(computation.root);
  return result;
}

Graph head_of(const Graph& graph) {
  Graph head;
  head.name = graph.name;
  head.entry = graph.entry;
  head.attributes = graph.attributes;
  head.source = graph.source;
  head.source_sha256 = graph.source_sha256;
  head.computations.reserve(graph.computations.size());
  return head;
}

std::vector<NodeId> no_replacement(const Computation& computation) {
  std::vector<NodeId> identity(computation.nodes.size());
  std::iota(identity.begin(), identity.end(), 0);
  return identity;
}

}  // namespace stitchwork
