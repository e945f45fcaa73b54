#include "core/passes/training_state.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/graph/op.h"

namespace stitchwork {
namespace {

/// By op the numbers of the parameters of its shape that reach it through element-wise ops alone.
std::vector<std::set<std::size_t>> reached_by(const Computation& computation) {
  std::vector<std::set<std::size_t>> reached(computation.nodes.size());
  for (const Node& node : computation.nodes) {
    std::set<std::size_t>& own = reached[static_cast<std::size_t>(node.id)];
    if (node.op == Op::kParameter) own.insert(static_cast<std::size_t>(node.attrs.parameter_number));
    if (!is_elementwise(node.op)) continue;
    for (const NodeId operand : node.operands)
      if (computation.node(operand).shape.dims == node.shape.dims)
        own.insert(reached[static_cast<std::size_t>(operand)].begin(),
                   reached[static_cast<std::size_t>(operand)].end());
  }
  return reached;
}

}  // namespace

std::vector<FedBack> training_state(const Graph& graph) {
  const Computation& computation = graph.entry_computation();
  const Node& root = computation.node(computation.root);
  const std::vector<NodeId> results =
      root.op == Op::kTuple ? root.operands : std::vector<NodeId>{computation.root};
  const std::vector<std::set<std::size_t>> reached = reached_by(computation);
  std::map<std::size_t, std::set<std::size_t>> becomes;  // results, by parameter
  for (std::size_t r = 0; r < results.size(); ++r) {
    const Node& result = computation.node(results[r]);
    if (result.op == Op::kParameter) continue;  // handed through
    for (const std::size_t p : reached[static_cast<std::size_t>(result.id)])
      if (computation.node(computation.parameters[p]).shape.compatible(result.shape)) becomes[p].insert(r);
  }
  std::vector<FedBack> state;
  for (bool found = true; found;) {
    std::map<std::size_t, std::set<std::size_t>> alone;  // parameters that reach no other result, by result
    for (const auto& [parameter, reaches] : becomes)
      if (reaches.size() == 1) alone[*reaches.begin()].insert(parameter);
    found = false;
    for (const auto& [result, parameters] : alone) {
      if (parameters.size() > 1) continue;
      found = true;
      state.push_back({result, *parameters.begin()});
      becomes.erase(*parameters.begin());
      for (auto& [parameter, reaches] : becomes) reaches.erase(result);
    }
  }
  std::sort(state.begin(), state.end(),
            [](const FedBack& a, const FedBack& b) { return a.result < b.result; });
  return state;
}

}  // namespace stitchwork
