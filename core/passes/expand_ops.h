// How `expand` (core/passes/passes.h) writes an op by others: the families, one file each.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// Adds nodes in the place of `source`: they have its metadata and line, and names of their own.
class Emitter {
 public:
  Emitter(ComputationBuilder& builder, const Node& source) : builder_(builder), source_(source) {}

  /// A copy: adding nodes moves them.
  Shape shape(NodeId id) const { return builder_.peek().node(id).shape; }

  const Node& node(NodeId id) const { return builder_.peek().node(id); }

  NodeId add(Op op, Shape shape, std::vector<NodeId> operands, Attributes attributes = {});
  /// The node that gives the source's value keeps its name.
  NodeId add_as_source(Op op, Shape shape, std::vector<NodeId> operands, Attributes attributes = {});
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
  /// Of one dimension.
  NodeId slice(NodeId a, std::size_t dim, SliceSpec part, bool as_source = false);
  NodeId pad(NodeId a, NodeId value, std::size_t dim, PadSpec by);
  /// `value` everywhere in an array of this shape.
  NodeId fill(const Shape& shape, double value);
  NodeId scalar(DType type, double value);

 private:
  Node made(Op op, Shape shape, std::vector<NodeId> operands, Attributes attributes) const;

  ComputationBuilder& builder_;
  const Node& source_;
};

/// expand_bits.cpp. The operands are those in the new computation; their shapes keep their layouts.
NodeId expand_bitcast(Emitter& emit, const Node& node, NodeId operand, const Shape& from);
bool expands_bitcast(const Node& node, const Shape& operand);
NodeId expand_bitcast_convert(Emitter& emit, const Node& node, NodeId operand);
bool expands_bitcast_convert(const Node& node, const Shape& operand);

/// expand_small.cpp: conversions of floats of 8 bits and integers of fewer, and arithmetic with them, as
/// arithmetic on their bits. nullopt where nothing of that is there, or only moved.
std::optional<NodeId> expand_small(Emitter& emit, const Node& node, const std::vector<NodeId>& operands);

/// expand_functions.cpp: functions by other functions, in f32 for narrower types. nullopt: no such op.
std::optional<NodeId> expand_function(Emitter& emit, const Node& node, const std::vector<NodeId>& operands);

/// expand_batch_norm.cpp: `add` is a reducer that sums this element type.
NodeId expand_batch_norm(Emitter& emit, const Node& node, const std::vector<NodeId>& operands,
                         ComputationId add);

/// expand_reducers.cpp: all nodes are element-wise on scalars, so that the computation may be applied to
/// whole arrays.
bool is_elementwise_on_scalars(const Computation& body);
/// `body` on arrays of these dims; `as_source`: its root takes the source's name.
NodeId apply_to_arrays(Emitter& emit, const Computation& body, const std::vector<std::int64_t>& dims,
                       const std::vector<NodeId>& arguments, bool as_source = false);

/// A reducer of two scalars of one type, applied to whole arrays.
class Combiner {
 public:
  /// nullopt: of several arrays, of several types, not element-wise, or not associative.
  static std::optional<Combiner> of(const Graph& graph, const Node& node);
  std::optional<Op> op() const { return op_; }  ///< if it is one (simple_reducer)
  DType type() const { return type_; }
  NodeId operator()(Emitter& emit, NodeId a, NodeId b, bool as_source = false) const;

 private:
  Combiner(const Computation& body, std::optional<Op> op, DType type) : body_(&body), op_(op), type_(type) {}

  const Computation* body_;
  std::optional<Op> op_;
  DType type_;
};

/// nullopt where generated code reduces by itself, or nothing here does.
std::optional<NodeId> expand_reduce(Emitter& emit, const Graph& graph, const Node& node,
                                    const std::vector<NodeId>& operands);
/// expand_windows.cpp: cumulative windows as a tree, and those of reducers of several operations.
std::optional<NodeId> expand_reduce_window(Emitter& emit, const Graph& graph, const Node& node,
                                           const std::vector<NodeId>& operands);

/// expand_collectives.cpp: what passes values between devices, among one device alone.
std::optional<NodeId> expand_collective(Emitter& emit, const Graph& graph, const Node& node,
                                        const std::vector<NodeId>& operands);

}  // namespace stitchwork
