#include "analysis/planners/eager/spelled.h"

#include "core/base/sorted.h"

namespace stitchwork::eager {
namespace {

using rewriting::View;

/// The operand of a commutative op beside the one numbered `side`.
const Node& beside(const View& view, const Node& node, std::size_t side) {
  return view.operand(node, 1 - side);
}

bool is_one_minus(const View& view, const Node& node, NodeId value) {
  return node.op == Op::kSubtract && view.is_number(node.operands[0], 1) && node.operands[1] == value;
}

Spelled sigmoid(const View& view, const Node& divide) {
  if (divide.op != Op::kDivide || !view.is_number(divide.operands[0], 1)) return {};
  const Node& add = view.operand(divide, 1);
  if (add.op != Op::kAdd || !view.only_read_by(add.id, divide.id)) return {};
  const std::size_t one = view.is_number(add.operands[0], 1) ? 0 : 1;
  if (!view.is_number(add.operands[one], 1)) return {};
  const Node& exp = beside(view, add, one);
  if (exp.op != Op::kExp || !view.only_read_by(exp.id, add.id)) return {};
  const Node& negate = view.operand(exp, 0);
  if (negate.op != Op::kNegate || !view.only_read_by(negate.id, exp.id)) return {};
  return {"sigmoid", {negate.id, exp.id, add.id, divide.id}};
}

bool is_sigmoid(const View& view, const Node& node) {
  return node.op == Op::kLogistic || !sigmoid(view, node).ops.empty();
}

Spelled sigmoid_backward(const View& view, const Node& last) {
  if (last.op != Op::kMultiply) return {};
  for (const std::size_t side : {0, 1}) {
    const Node& slope = view.operand(last, side);
    if (slope.op != Op::kMultiply || !view.only_read_by(slope.id, last.id)) continue;
    for (const std::size_t of : {0, 1}) {
      const Node& value = view.operand(slope, of);
      const Node& rest = beside(view, slope, of);
      if (is_one_minus(view, rest, value.id) && view.only_read_by(rest.id, slope.id) &&
          is_sigmoid(view, value))
        return {"sigmoid backward", {rest.id, slope.id, last.id}};
    }
  }
  return {};
}

Spelled tanh_backward(const View& view, const Node& last) {
  if (last.op != Op::kAdd) return {};
  for (const std::size_t side : {0, 1}) {
    const Node& scaled = view.operand(last, side);  // u
    const Node& times = beside(view, last, side);   // u * t
    if (scaled.op != Op::kMultiply || times.op != Op::kMultiply || scaled.id == times.id) continue;
    if (!view.only_read_by(times.id, last.id) || view.readers(scaled.id).size() != 2 ||
        view.computation().root == scaled.id)
      continue;
    const std::size_t first = times.operands[0] == scaled.id ? 0 : 1;
    const Node& value = beside(view, times, first);  // t
    if (times.operands[first] != scaled.id || value.op != Op::kTanh) continue;
    for (const std::size_t of : {0, 1})
      if (const Node& rest = view.operand(scaled, of);
          is_one_minus(view, rest, value.id) && view.only_read_by(rest.id, scaled.id))
        return {"tanh backward", {rest.id, scaled.id, times.id, last.id}};
  }
  return {};
}

/// The reduction by `reducer` of `value` that the operand repeats, and between them a maximum with -inf,
/// which JAX has there; empty: it is none.
std::vector<NodeId> reduced(const View& view, NodeId operand, Op reducer, NodeId value) {
  for (const rewriting::Spread& spread : view.spreads(operand)) {
    std::vector<NodeId> ops{spread.source};
    const Node* node = &view.node(spread.source);
    if (reducer == Op::kMaximum && node->op == Op::kMaximum) {
      const std::size_t bound = rewriting::is_identity_of(view, Op::kMaximum, node->operands[0]) ? 0 : 1;
      if (!rewriting::is_identity_of(view, Op::kMaximum, node->operands[bound])) continue;
      node = &beside(view, *node, bound);
      ops.insert(ops.begin(), node->id);
    }
    if (node->op == Op::kReduce && rewriting::plain_reducer(view, *node) == reducer &&
        node->operands[0] == value)
      return ops;
  }
  return {};
}

Spelled softmax(const View& view, const Node& divide) {
  if (divide.op != Op::kDivide) return {};
  const Node& exp = view.operand(divide, 0);
  const std::vector<NodeId> sum = reduced(view, divide.operands[1], Op::kAdd, exp.id);
  if (exp.op != Op::kExp || sum.empty()) return {};
  std::vector<NodeId> ops{sum.front(), exp.id, divide.id};
  const Node& shifted = view.operand(exp, 0);
  if (shifted.op == Op::kSubtract) {
    const std::vector<NodeId> max = reduced(view, shifted.operands[1], Op::kMaximum, shifted.operands[0]);
    if (!max.empty() && view.node(max.front()).attrs.dimensions == view.node(sum.front()).attrs.dimensions) {
      ops.push_back(shifted.id);
      ops.insert(ops.end(), max.begin(), max.end());
    }
  }
  sort_unique(ops);
  return {"softmax", ops};
}

}  // namespace

Spelled spelled_function(const View& view, const Node& last) {
  for (const auto& form : {sigmoid, softmax, sigmoid_backward, tanh_backward})
    if (Spelled found = form(view, last); !found.ops.empty()) return found;
  return {};
}

}  // namespace stitchwork::eager
