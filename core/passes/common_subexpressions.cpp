#include <string>
#include <unordered_map>

#include "core/base/interrupt.h"
#include "core/graph/rewrite.h"
#include "core/hlo/hlo_attributes.h"
#include "core/passes/lay_beside.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace {

/// Two such ops of equal operands and attributes give equal values, and it does not matter how often they
/// run.
bool is_pure(const Node& node) {
  switch (node.op) {
    case Op::kConstant:
      return node.attrs.literal != nullptr;  // values left out of the text may be any
    case Op::kParameter:
    case Op::kRng:
    case Op::kRngGetAndUpdateState:
    case Op::kOptimizationBarrier:
    case Op::kCall:
    case Op::kFusion:
    case Op::kWhile:
    case Op::kConditional:
    case Op::kCustomCall:
    case Op::kAfterAll:
    case Op::kAddDependency:
    case Op::kAllReduce:
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kAllToAll:
    case Op::kCollectivePermute:
    case Op::kCollectiveBroadcast:
    case Op::kRaggedAllToAll:
    case Op::kInfeed:
    case Op::kOutfeed:
    case Op::kSend:
    case Op::kSendDone:
    case Op::kRecv:
    case Op::kRecvDone:
    case Op::kAsyncStart:
    case Op::kAsyncUpdate:
    case Op::kAsyncDone:
    case Op::kCopyStart:
    case Op::kCopyDone:
    case Op::kAllReduceStart:
    case Op::kAllReduceDone:
    case Op::kAllGatherStart:
    case Op::kAllGatherDone:
    case Op::kCollectivePermuteStart:
    case Op::kCollectivePermuteDone:
      return false;
    default:
      return true;
  }
}

void add_number(std::string& key, std::int64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void add_literal(std::string& key, const Literal& literal) {
  key.append(reinterpret_cast<const char*>(literal.bytes.data()), literal.bytes.size());
  for (const Literal& element : literal.elements) add_literal(key, element);
}

/// Everything that decides a node's value, operands given by `stands_for`. Names and metadata do not.
void add_key(std::string& key, const Node& node, std::span<const NodeId> stands_for,
             const std::vector<ComputationId>& same_computation) {
  add_number(key, static_cast<std::int64_t>(node.op));
  add_number(key, node.attrs.parameter_number);
  for (const NodeId operand : node.operands) add_number(key, stands_for[static_cast<std::size_t>(operand)]);
  add_number(key, -1);
  for (const ComputationId callee : node.attrs.computations) {
    add_number(key, same_computation[static_cast<std::size_t>(callee)]);
  }
  add_number(key, -1);
  key += to_text(node.shape);
  key += plain_attributes_text(node);
  key += '\0';
  if (node.attrs.literal) add_literal(key, *node.attrs.literal);
}

Computation merged(const Computation& computation, const std::vector<ComputationId>& same_computation,
                   OpTrace* trace) {
  std::vector<NodeId> replacement = no_replacement(computation);
  std::vector<bool> keep(computation.nodes.size(), true);
  std::unordered_map<std::string, NodeId> first;
  for (const Node& node : computation.nodes) {
    interruption_point();
    if (!is_pure(node) || has_own_place(node)) continue;
    std::string key;
    add_key(key, node, replacement, same_computation);
    const auto [found, fresh] = first.emplace(std::move(key), node.id);
    if (fresh) continue;
    replacement[static_cast<std::size_t>(node.id)] = found->second;
    keep[static_cast<std::size_t>(node.id)] = false;
  }
  if (trace != nullptr) trace->add_rewritten(OpChange::kMerged, computation, replacement, keep);
  return rewritten(computation, replacement, keep);
}

}  // namespace

Graph eliminate_common_subexpressions(const Graph& graph, OpTrace* trace) {
  Graph result = head_of(graph);
  // same_computation[c]: the first computation that does the same as c. Exporters print a reducer anew for
  // every reduce.
  std::vector<ComputationId> same_computation;
  std::unordered_map<std::string, ComputationId> first;
  for (std::size_t c = 0; c < graph.computations.size(); ++c) {
    const Computation& computation =
        result.computations.emplace_back(merged(graph.computations[c], same_computation, trace));
    // Nobody calls the entry, so nobody asks what it equals.
    if (static_cast<ComputationId>(c) == result.entry) {
      same_computation.push_back(result.entry);
      continue;
    }
    std::string key;
    add_number(key, computation.root);
    const std::vector<NodeId> identity = no_replacement(computation);
    for (const Node& node : computation.nodes) {
      std::string node_key;
      add_key(node_key, node, identity, same_computation);
      add_number(key, static_cast<std::int64_t>(node_key.size()));
      key += node_key;
    }
    same_computation.push_back(first.emplace(std::move(key), static_cast<ComputationId>(c)).first->second);
    const Computation& same = result.computation(same_computation.back());
    if (trace != nullptr && same_computation.back() != static_cast<ComputationId>(c))
      for (const Node& node : computation.nodes)
        trace->add(OpChange::kMerged, {computation.name, node.name}, {{same.name, same.node(node.id).name}});
  }
  return result;
}

}  // namespace stitchwork
