// How `expand` (core/passes.h) writes an op by others: the families, one file each.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/graph.h"

namespace stitchwork {

/// Adds nodes in the place of `source`: they have its metadata and line, and names of their own.
class Emitter {
 public:
  Emitter(ComputationBuilder& builder, const Node& source) : builder_(builder), source_(source) {}

  /// A copy: adding nodes moves them.
  Shape shape(NodeId id) const { return builder_.peek().node(id).shape; }

  NodeId add(Op op, Shape shape, std::vector<NodeId> operands, Attributes attributes = {});
  /// Element-wise ops of operands of one shape.
  NodeId unary(Op op, NodeId a) { return add(op, shape(a), {a}); }
  NodeId binary(Op op, NodeId a, NodeId b) { return add(op, shape(a), {a, b}); }
  NodeId compare(Comparison how, NodeId a, NodeId b);
  NodeId select(NodeId condition, NodeId yes, NodeId no) {
    return add(Op::kSelect, shape(yes), {condition, yes, no});
  }
  NodeId convert(NodeId a, DType type);
  NodeId reshape(NodeId a, std::vector<std::int64_t> dims);
  NodeId broadcast(NodeId a, std::vector<std::int64_t> dims, std::vector<std::int64_t> at);
  /// `value` everywhere in an array of this shape.
  NodeId fill(const Shape& shape, double value);
  NodeId scalar(DType type, double value);

 private:
  ComputationBuilder& builder_;
  const Node& source_;
};

/// expand_bits.cpp. The operands are those in the new computation; their shapes keep their layouts.
NodeId expand_bitcast(Emitter& emit, const Node& node, NodeId operand);
bool expands_bitcast(const Node& node, const Shape& operand);
NodeId expand_bitcast_convert(Emitter& emit, const Node& node, NodeId operand);
bool expands_bitcast_convert(const Node& node, const Shape& operand);

/// expand_functions.cpp: functions by other functions, in f32 for narrower types. nullopt: no such op.
std::optional<NodeId> expand_function(Emitter& emit, const Node& node, const std::vector<NodeId>& operands);

/// expand_batch_norm.cpp: `add` is a reducer that sums this element type.
NodeId expand_batch_norm(Emitter& emit, const Node& node, const std::vector<NodeId>& operands,
                         ComputationId add);

}  // namespace stitchwork
