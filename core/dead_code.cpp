#include <algorithm>

#include "core/passes.h"
#include "core/rewrite.h"

namespace stitchwork {
namespace {

/// Does something besides giving a value, so that it stays even if nobody uses that value.
bool acts(const Node& node, const std::vector<bool>& computation_acts) {
  switch (node.op) {
    case Op::kInfeed:
    case Op::kOutfeed:
    case Op::kSend:
    case Op::kRecv:
      return true;
    case Op::kCustomCall:
      return std::ranges::find(node.attrs.other,
                               std::pair<std::string, std::string>("custom_call_has_side_effect", "true")) !=
             node.attrs.other.end();
    default:
      return std::ranges::any_of(node.attrs.computations, [&](ComputationId id) {
        return computation_acts[static_cast<std::size_t>(id)];
      });
  }
}

std::vector<bool> live_nodes(const Computation& computation, const std::vector<bool>& computation_acts) {
  std::vector<bool> live(computation.nodes.size(), false);
  live[static_cast<std::size_t>(computation.root)] = true;
  for (auto node = computation.nodes.rbegin(); node != computation.nodes.rend(); ++node) {
    const auto i = static_cast<std::size_t>(node->id);
    if (node->op == Op::kParameter || acts(*node, computation_acts)) live[i] = true;
    if (!live[i]) continue;
    for (const NodeId operand : node->operands) live[static_cast<std::size_t>(operand)] = true;
  }
  return live;
}

}  // namespace

Graph eliminate_dead_code(const Graph& graph) {
  const std::size_t count = graph.computations.size();
  std::vector<bool> computation_acts(count, false);
  for (std::size_t c = 0; c < count; ++c) {
    computation_acts[c] = std::ranges::any_of(graph.computations[c].nodes,
                                              [&](const Node& node) { return acts(node, computation_acts); });
  }
  // Callers come after their callees: backwards, a computation's users are known before it.
  std::vector<bool> used(count, false);
  used[static_cast<std::size_t>(graph.entry)] = true;
  Graph result = graph;
  for (std::size_t c = count; c-- > 0;) {
    if (!used[c]) continue;
    Computation& computation = result.computations[c];
    computation =
        rewritten(computation, no_replacement(computation), live_nodes(computation, computation_acts));
    for (const Node& node : computation.nodes) {
      for (const ComputationId callee : node.attrs.computations)
        used[static_cast<std::size_t>(callee)] = true;
    }
  }
  std::vector<ComputationId> place(count, -1);
  std::vector<Computation> kept;
  for (std::size_t c = 0; c < count; ++c) {
    if (!used[c]) continue;
    place[c] = static_cast<ComputationId>(kept.size());
    kept.push_back(std::move(result.computations[c]));
    for (Node& node : kept.back().nodes) {
      for (ComputationId& callee : node.attrs.computations) callee = place[static_cast<std::size_t>(callee)];
    }
  }
  result.computations = std::move(kept);
  result.entry = place[static_cast<std::size_t>(graph.entry)];
  return result;
}

}  // namespace stitchwork
