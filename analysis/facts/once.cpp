#include "analysis/facts/once.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "analysis/facts/facts.h"
#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork {

std::vector<std::string> weights_named(const Graph& graph, const std::vector<std::string>& patterns) {
  const Computation& entry = graph.entry_computation();
  std::vector<std::string> names;
  for (const std::string& pattern : patterns) {
    const std::size_t before = names.size();
    for (const NodeId id : entry.parameters)
      if (const std::string& name = entry.node(id).name;
          name == pattern || fnmatch(pattern.c_str(), name.c_str(), 0) == 0)
        names.push_back(name);
    if (names.size() == before)
      throw Error(graph.source, 0, 0,
                  fmt::format("no parameter is called '{}', which is to be a weight", pattern),
                  "`stitchwork inputs MODEL` lists the parameters");
  }
  sort_unique(names);
  return names;
}

Graph with_weights(const Graph& graph, const std::vector<std::string>& names) {
  Graph result = graph;
  Computation& entry = result.computations[static_cast<std::size_t>(result.entry)];
  for (const NodeId id : entry.parameters) {
    Node& node = entry.nodes[static_cast<std::size_t>(id)];
    node.attrs.weight = std::ranges::binary_search(names, node.name);
  }
  return result;
}

std::vector<bool> once_values(const Computation& computation) { return once_values(computation, {}); }

std::vector<bool> once_values(const Computation& computation, const std::vector<std::string>& weights) {
  const auto weight = [&](NodeId id) {
    const Node& node = computation.node(id);
    return node.attrs.weight || std::ranges::binary_search(weights, node.name);
  };
  if (std::ranges::none_of(computation.parameters, weight)) return {};
  std::vector<bool> once(computation.nodes.size());
  for (const Node& node : computation.nodes) {
    const PlanRole role = plan_role(node);
    const bool computed = role == PlanRole::kMemory || role == PlanRole::kLibrary || role == PlanRole::kAlias;
    once[static_cast<std::size_t>(node.id)] =
        node.op == Op::kParameter   ? weight(node.id)
        : role == PlanRole::kSource ? true
                                    : computed && std::ranges::all_of(node.operands, [&](NodeId operand) {
                                        return once[static_cast<std::size_t>(operand)];
                                      });
  }
  return once;
}

}  // namespace stitchwork
