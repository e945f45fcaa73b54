#include "analysis/planners/xla/uses.h"

#include <algorithm>

#include "analysis/planners/xla/rules.h"

namespace stitchwork::xla {
namespace {

/// Copies of a producer's code a fusion may hold (XLA's FusionNodeIndexingEvaluation).
constexpr std::int64_t kMaxEmissions = 15;

}  // namespace

Uses::Uses(const FusionGraph& graph, int instruction, std::int64_t emissions)
    : computation_(graph.computation()),
      roots_(graph[instruction].roots.size()),
      roots_emissions_(emissions),
      most_(emissions) {
  for (const NodeId root : graph[instruction].roots) uses_[root] = {false, false, {kNoNode}, emissions};
  const std::vector<NodeId> ops = graph.sorted_ops(instruction);
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) add(*op);  // users first
}

const Uses::Use& Uses::of(NodeId value) const {
  static const Use kNone;
  const auto found = uses_.find(value);
  return found == uses_.end() ? kNone : found->second;
}

void Uses::add(NodeId op) {
  ++ops_;
  const Node& node = computation_.node(op);
  const Use own = uses_[op];
  const OpClass cls = def(node.op).cls;
  const bool loops = cls == OpClass::kReduce || cls == OpClass::kWindow;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    Use& use = uses_[node.operands[i]];
    use.reused = use.reused || own.reused || reuses_operand(computation_, node, static_cast<int>(i));
    use.in_loop = use.in_loop || own.in_loop || loops;
    // Element-wise users pass their own indices on; every other user makes a new one of each of its own.
    if (!is_elementwise(node.op)) {
      index(use, op);
    } else {
      for (const NodeId user : own.indexed_by) index(use, user);
    }
  }
}

void Uses::index(Use& use, NodeId by) {
  if (std::find(use.indexed_by.begin(), use.indexed_by.end(), by) != use.indexed_by.end()) return;
  use.indexed_by.push_back(by);
  use.emissions += by == kNoNode ? roots_emissions_ : uses_[by].emissions;
  most_ = std::max(most_, use.emissions);
}

const Uses& UsesByInstruction::of(int instruction) {
  const auto known = uses_.find(instruction);
  if (known != uses_.end() && known->second.is_of(graph_[instruction])) return known->second;
  uses_.erase(instruction);
  return uses_.emplace(instruction, Uses(graph_, instruction)).first->second;
}

void UsesByInstruction::fuse(const std::vector<NodeId>& ops, int consumer) {
  const auto known = uses_.find(consumer);
  if (known == uses_.end()) return;
  // Of ops that are in already more is known now: then all is found anew when it is asked for.
  const auto is_in = [&](NodeId op) { return graph_.contains(consumer, op); };
  const bool anew = std::any_of(ops.begin(), ops.end(), [&](NodeId op) {
    const std::vector<NodeId>& operands = graph_.computation().node(op).operands;
    return is_in(op) || std::any_of(operands.begin(), operands.end(), is_in);
  });
  if (anew) {
    uses_.erase(known);
    return;
  }
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) known->second.add(*op);
}

Ruling emitted_rarely(std::int64_t emissions) {
  if (emissions > kMaxEmissions)
    return {"xla.emitted-too-often", "its code would be emitted {} times in the kernel, {} allowed",
            emissions, kMaxEmissions};
  return kAllowed;
}

Ruling merged_rarely(const FusionGraph& graph, int fusion, const Uses& user) {
  std::int64_t emissions = 0;
  for (const NodeId root : graph[fusion].roots) emissions = std::max(emissions, user.of(root).emissions);
  return emitted_rarely(Uses(graph, fusion, emissions).most_emissions());
}

}  // namespace stitchwork::xla
