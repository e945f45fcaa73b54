#include "runtime/run_values.h"

#include <algorithm>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "core/base/error.h"
#include "core/passes/in_place.h"

namespace stitchwork {
namespace {

/// Whether the host fills the buffer, once, before the first step that reads it: of a parameter, a
/// constant, an element of a tuple.
bool is_source(const Node& owner) {
  const PlanRole role = plan_role(owner);
  return role == PlanRole::kSource || role == PlanRole::kAlias;
}

}  // namespace

bool RunValues::is_written_once(const Node& owner) const {
  return is_source(owner) || staying_.contains(owner.id);
}

DeviceAddress RunValues::address(NodeId op) {
  const NodeId owner = storage_of(computation_, op);
  const Node& node = computation_.node(owner);
  SW_CHECK(!ended_.contains(owner), "{} is used after the last step that touches its buffer", node.name);
  const auto known = buffers_.find(owner);
  if (known != buffers_.end()) return known->second.address();
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(1, node.shape.byte_size()));
  const MemoryUse use = is_written_once(node) ? MemoryUse::kSource : MemoryUse::kValue;
  return buffers_.try_emplace(owner, backend_, bytes, node.name, use).first->second.address();
}

void RunValues::end(NodeId owner) {
  ended_.insert(owner);
  if (!backend_.keeps_sources() || !is_written_once(computation_.node(owner))) buffers_.erase(owner);
}

Literal RunValues::download(NodeId op) {
  Literal literal = Literal::zeros(buffer_shape(computation_.node(op)));
  backend_.read(address(op), literal.bytes);
  return literal;
}

void RunValues::upload_source(NodeId owner) {
  const Node& node = computation_.node(owner);
  if (!is_source(node) || node.shape.is_tuple || !uploaded_.insert(owner).second) return;
  if (plan_role(node) == PlanRole::kSource)
    upload(owner, source_value(node));
  else
    upload(owner, element_value(node));
}

const Literal* RunValues::held_tuple(const Node& node) const {
  if (const auto made = tuples_.find(node.id); made != tuples_.end()) return &made->second;
  if (plan_role(node) == PlanRole::kSource) return &source_value(node);
  if (node.op != Op::kGetTupleElement) return nullptr;
  const Literal* from = held_tuple(computation_.node(node.operands[0]));
  return from == nullptr ? nullptr : &from->elements.at(static_cast<std::size_t>(node.attrs.tuple_index));
}

Literal RunValues::element_value(const Node& node) {
  SW_CHECK(!node.operands.empty(), "{} ({}) has no value", node.name, def(node.op).name);
  if (node.op != Op::kGetTupleElement) return value(node.operands[0]);
  const Node& from = computation_.node(node.operands[0]);
  const auto index = static_cast<std::size_t>(node.attrs.tuple_index);
  if (const Literal* held = held_tuple(from)) return held->elements.at(index);
  if (from.op == Op::kTuple) return value(from.operands.at(index));
  return std::move(value(from.id).elements.at(index));
}

Literal RunValues::tuple_value(const Node& node) {
  if (const Literal* held = held_tuple(node)) return *held;
  if (node.op != Op::kTuple) return element_value(node);
  Literal tuple;
  tuple.shape = node.shape;
  for (NodeId operand : node.operands) tuple.elements.push_back(value(operand));
  return tuple;
}

const Literal& RunValues::source_value(const Node& node) const {
  if (node.op == Op::kParameter) return inputs_[static_cast<std::size_t>(node.attrs.parameter_number)];
  SW_CHECK(node.attrs.literal != nullptr, "{} is not a parameter or constant", node.name);
  return *node.attrs.literal;
}

Literal RunValues::value(NodeId id) {
  if (computation_.node(id).shape.is_tuple) return tuple_value(computation_.node(id));
  upload_source(storage_of(computation_, id));
  return download(id);
}

void RunValues::keep(const Node& node, Literal result) {
  if (node.shape.is_tuple)
    tuples_.emplace(node.id, std::move(result));
  else
    upload(node.id, result);
}

}  // namespace stitchwork
