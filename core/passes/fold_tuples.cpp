#include "core/graph/rewrite.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace {

Computation folded(const Computation& computation, OpTrace* trace) {
  std::vector<NodeId> replacement = no_replacement(computation);
  std::vector<bool> keep(computation.nodes.size(), true);
  std::vector<bool> taken_apart(computation.nodes.size(), false);
  const auto stands_for = [&](NodeId id) { return replacement[static_cast<std::size_t>(id)]; };
  for (const Node& node : computation.nodes) {
    if (node.op != Op::kGetTupleElement) continue;
    const Node& tuple = computation.node(stands_for(node.operands[0]));
    if (tuple.op != Op::kTuple) continue;
    const auto i = static_cast<std::size_t>(node.id);
    replacement[i] = stands_for(tuple.operands[static_cast<std::size_t>(node.attrs.tuple_index)]);
    keep[i] = false;
    taken_apart[static_cast<std::size_t>(tuple.id)] = true;
  }
  // A tuple all of whose uses were folded goes too; users come after it, so backwards one pass is enough.
  std::vector<bool> used(computation.nodes.size(), false);
  used[static_cast<std::size_t>(stands_for(computation.root))] = true;
  for (auto node = computation.nodes.rbegin(); node != computation.nodes.rend(); ++node) {
    const auto i = static_cast<std::size_t>(node->id);
    if (taken_apart[i] && !used[i]) keep[i] = false;
    if (!keep[i]) continue;
    for (const NodeId operand : node->operands) used[static_cast<std::size_t>(stands_for(operand))] = true;
  }
  if (trace != nullptr) trace->add_rewritten(OpChange::kFolded, computation, replacement, keep);
  return rewritten(computation, replacement, keep);
}

}  // namespace

Graph fold_tuples(const Graph& graph, OpTrace* trace) {
  Graph result = head_of(graph);
  for (const Computation& computation : graph.computations)
    result.computations.push_back(folded(computation, trace));
  return result;
}

}  // namespace stitchwork
