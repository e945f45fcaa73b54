#include <algorithm>

#include "core/base/error.h"
#include "core/graph/rewrite.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace {

/// How an asynchronous op is done in one: the op itself, and which element of the start's tuple its result is
/// (-1: the start gives the result as it is).
struct AsyncPair {
  Op start, done, op;
  int result;
};
constexpr AsyncPair kPairs[] = {
    {Op::kAsyncStart, Op::kAsyncDone, Op::kCall, 1},
    {Op::kCopyStart, Op::kCopyDone, Op::kCopy, 0},
    {Op::kAllReduceStart, Op::kAllReduceDone, Op::kAllReduce, -1},
    {Op::kAllGatherStart, Op::kAllGatherDone, Op::kAllGather, 1},
    {Op::kCollectivePermuteStart, Op::kCollectivePermuteDone, Op::kCollectivePermute, 1},
};

const AsyncPair* pair_of(Op op) {
  const auto found = std::ranges::find_if(
      kPairs, [&](const AsyncPair& pair) { return pair.start == op || pair.done == op; });
  return found == std::end(kPairs) ? nullptr : found;
}

bool starts(Op op) {
  const AsyncPair* pair = pair_of(op);
  return pair != nullptr && pair->start == op;
}

bool waits(Op op) {
  const AsyncPair* pair = pair_of(op);
  return op == Op::kAsyncUpdate || (pair != nullptr && pair->done == op);
}

/// joined[n]: n starts an op whose every use waits for it. A pair that a loop's state is between stays as it
/// is.
std::vector<bool> joinable(const Computation& computation) {
  std::vector<bool> result(computation.nodes.size(), false);
  const std::vector<std::vector<NodeId>> users = computation.users();
  for (auto node = computation.nodes.rbegin(); node != computation.nodes.rend(); ++node) {
    const auto i = static_cast<std::size_t>(node->id);
    const bool passes = starts(node->op) || node->op == Op::kAsyncUpdate;
    if (!passes || node->id == computation.root) continue;
    result[i] = std::ranges::all_of(users[i], [&](NodeId user) {
      const Op op = computation.node(user).op;
      return waits(op) && (op != Op::kAsyncUpdate || result[static_cast<std::size_t>(user)]);
    });
  }
  // What waits for a start that is not joined is not either.
  for (const Node& node : computation.nodes)
    if (node.op == Op::kAsyncUpdate && !result[static_cast<std::size_t>(node.operands[0])])
      result[static_cast<std::size_t>(node.id)] = false;
  return result;
}

Node in_one(const Node& start) {
  const AsyncPair& pair = *pair_of(start.op);
  Node op = start;
  op.op = pair.op;
  if (pair.result >= 0) {
    SW_CHECK(start.shape.is_tuple, "'{}' gives no tuple", start.name);
    op.shape = start.shape.elements.at(static_cast<std::size_t>(pair.result));
  }
  return op;
}

Computation joined(const Computation& computation, OpTrace* trace) {
  const std::vector<bool> joined = joinable(computation);
  if (std::ranges::find(joined, true) == joined.end()) return computation;
  std::vector<NodeId> replacement = no_replacement(computation);
  std::vector<bool> keep(computation.nodes.size(), true);
  Computation changed = computation;
  for (Node& node : changed.nodes) {
    const auto i = static_cast<std::size_t>(node.id);
    const auto operand = node.operands.empty() ? i : static_cast<std::size_t>(node.operands[0]);
    if (starts(node.op) && joined[i]) {
      node = in_one(node);
    } else if (waits(computation.nodes[i].op) && joined[operand]) {
      replacement[i] = replacement[operand];
      keep[i] = false;
    }
  }
  if (trace != nullptr) trace->add_rewritten(OpChange::kJoined, computation, replacement, keep);
  return rewritten(changed, replacement, keep);
}

}  // namespace

Graph join_async(const Graph& graph, OpTrace* trace) {
  Graph result = head_of(graph);
  for (const Computation& computation : graph.computations)
    result.computations.push_back(joined(computation, trace));
  return result;
}

}  // namespace stitchwork
