#include "core/graph/rewrite.h"

#include <numeric>

#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork {

Computation rewritten(const Computation& computation, std::span<const NodeId> replacement,
                      const std::vector<bool>& keep) {
  Computation result;
  result.name = computation.name;
  result.attributes = computation.attributes;
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
  const auto kept = [&](const std::vector<NodeId>& ids) {
    std::vector<NodeId> left;
    for (const NodeId id : ids)
      if (const NodeId target = place[static_cast<std::size_t>(replacement[static_cast<std::size_t>(id)])];
          target != kNoNode)
        left.push_back(target);
    sort_unique(left);
    return left;
  };
  for (const ImportedKernel& kernel : computation.imported) {
    ImportedKernel copy{kernel.name, kernel.kind, kept(kernel.ops), kept(kernel.roots)};
    if (!copy.ops.empty() && !copy.roots.empty()) result.imported.push_back(std::move(copy));
  }
  return result;
}

std::vector<ImportedKernel> moved(const std::vector<ImportedKernel>& kernels, std::span<const NodeId> first,
                                  std::span<const NodeId> place) {
  std::vector<ImportedKernel> result;
  for (const ImportedKernel& kernel : kernels) {
    ImportedKernel copy{kernel.name, kernel.kind, {}, {}};
    for (const NodeId op : kernel.ops) {
      const auto i = static_cast<std::size_t>(op);
      for (NodeId id = first[i]; id < first[i + 1]; ++id) copy.ops.push_back(id);
    }
    for (const NodeId root : kernel.roots) copy.roots.push_back(place[static_cast<std::size_t>(root)]);
    sort_unique(copy.roots);
    if (!copy.ops.empty()) result.push_back(std::move(copy));
  }
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
