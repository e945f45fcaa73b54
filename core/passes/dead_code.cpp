#include <algorithm>

#include "core/graph/rewrite.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace {

/// Does something besides giving a value, so that it stays even if nobody uses that value.
bool acts(const Node& node, const std::vector<bool>& computation_acts) {
  switch (node.op) {
    case Op::kInfeed:
    case Op::kOutfeed:
    case Op::kSend:
    case Op::kSendDone:
    case Op::kRecv:
    case Op::kRecvDone:
    case Op::kRngGetAndUpdateState:
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

Graph eliminate_dead_code(const Graph& graph, OpTrace* trace) {
  const std::size_t count = graph.computations.size();
  std::vector<bool> computation_acts(count, false);
  for (std::size_t c = 0; c < count; ++c) {
    computation_acts[c] = std::ranges::any_of(graph.computations[c].nodes,
                                              [&](const Node& node) { return acts(node, computation_acts); });
  }
  // Callers come after their callees: backwards, a computation's users are known before it.
  std::vector<bool> used(count, false);
  used[static_cast<std::size_t>(graph.entry)] = true;
  std::vector<std::vector<bool>> live(count);
  for (std::size_t c = count; c-- > 0;) {
    if (!used[c]) continue;
    live[c] = live_nodes(graph.computations[c], computation_acts);
    for (const Node& node : graph.computations[c].nodes) {
      if (!live[c][static_cast<std::size_t>(node.id)]) continue;
      for (const ComputationId callee : node.attrs.computations)
        used[static_cast<std::size_t>(callee)] = true;
    }
  }
  Graph result = head_of(graph);
  std::vector<ComputationId> place(count, -1);
  for (std::size_t c = 0; c < count; ++c) {
    if (!used[c]) {
      if (trace != nullptr)
        for (const Node& node : graph.computations[c].nodes)
          trace->add(OpChange::kUncalled, {graph.computations[c].name, node.name}, {});
      continue;
    }
    place[c] = static_cast<ComputationId>(result.computations.size());
    const Computation& computation = graph.computations[c];
    if (trace != nullptr)
      trace->add_rewritten(OpChange::kLeftOut, computation, no_replacement(computation), live[c]);
    Computation& kept =
        result.computations.emplace_back(rewritten(computation, no_replacement(computation), live[c]));
    for (Node& node : kept.nodes) {
      for (ComputationId& callee : node.attrs.computations) callee = place[static_cast<std::size_t>(callee)];
    }
  }
  result.entry = place[static_cast<std::size_t>(graph.entry)];
  return result;
}

}  // namespace stitchwork
