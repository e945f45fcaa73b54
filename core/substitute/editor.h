// New ops beside old ones: how rules write. The old ops stay as they are until `finish`, so a rule may name
// any of them, and several matches of one graph may be written by one editor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/passes/expand_ops.h"
#include "core/substitute/rewritten_graph.h"
#include "core/substitute/rule.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {

using Dims = std::vector<std::int64_t>;

/// An array and a number for each of its dimensions.
struct Labelled {
  NodeId id = kNoNode;
  std::vector<int> labels;
};

class Editor {
 public:
  /// `from` must outlive the editor.
  Editor(const RewrittenGraph& from, ComputationId computation);
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  /// The graph as it was found.
  const View& view() const { return view_; }

  /// What is added from here on stands for the ops of `match` and has the metadata of its place.
  void begin(const Match& match);
  Emitter& emit() { return *emitter_; }
  Shape shape(NodeId id) const { return builder_.peek().node(id).shape; }
  Dims dims(NodeId id) const { return shape(id).dims; }

  /// `old` has the value of `by` from here on: a new op, or an old one of the same element type, extents and
  /// order in memory.
  void replace(NodeId old, NodeId by);

  /// The same op of other operands, its result of these extents.
  NodeId like(const Node& node, std::vector<NodeId> operands, Dims dims);
  NodeId transpose(NodeId a, const Dims& permutation);
  NodeId concatenate(const std::vector<NodeId>& parts, std::size_t dim);
  NodeId slice(NodeId a, std::size_t dim, std::int64_t start, std::int64_t limit);
  NodeId multiply(NodeId a, NodeId b) { return add(Op::kMultiply, shape(a).dtype, dims(a), {a, b}); }
  NodeId add(Op op, DType type, Dims dims, std::vector<NodeId> operands, Attributes attributes = {});
  /// `source` repeated: its dimension i is dimension axes[i] of the result; -1: it has extent 1 and goes.
  NodeId spread(const Spread& spread, const Dims& dims);
  /// The value of `old` in an array that nothing else of that value is merged with (lay_beside settles
  /// where): a number that fills it, or a copy.
  NodeId with_own_place(NodeId old);
  /// The operand's elements by `spread`, all of a number.
  NodeId filled(DType type, double value, const Dims& dims);
  /// By the reducer `reducer` from `init`, over `reduced`, ascending.
  NodeId reduce(NodeId x, NodeId init, const Dims& reduced, ComputationId reducer);
  NodeId sum(NodeId x, const Dims& reduced);
  /// A dot of these operands; type and attributes but the dimensions are those of `like`.
  NodeId dot(NodeId lhs, NodeId rhs, DotDims dims, const Node& like);
  /// The product with dimensions `out`, by number: numbers of both operands that are in `out` are batch
  /// dimensions, the others of both are contracted, in ascending order. Operands change sides where that
  /// saves the transpose behind.
  NodeId product(const Labelled& lhs, const Labelled& rhs, const std::vector<int>& out, const Node& like);

  /// False: what is written would compute an op from itself.
  bool has_order() const { return order().has_value(); }

  RewrittenGraph finish() &&;

 private:
  ComputationId reducer(Op op, DType type);
  NodeId resolved(NodeId id) const;
  std::optional<std::vector<NodeId>> order() const;
  Computation ordered(const std::vector<NodeId>& order, RewrittenGraph& result) const;
  const Match& match_of(NodeId made) const;
  std::string base_name(NodeId made) const;
  std::vector<NodeId> origins_of(NodeId id) const;

  const RewrittenGraph& from_;
  View view_;
  const Computation* model_;  ///< the model's computation of this name; nullptr: it has none
  ComputationBuilder builder_;
  std::optional<Emitter> emitter_;
  std::vector<Computation> added_;   ///< reducers the module lacks; their ids follow the module's
  std::vector<NodeId> replaced_by_;  ///< by old op; itself where it stays
  std::vector<Dims> layouts_;        ///< by new op: what the op it replaces had
  std::vector<Match> matches_;
  std::vector<NodeId> first_made_;  ///< by match: the first new op that stands for it
};

/// The dimensions a product of these has by itself: batch in the order of `out`, then each operand's own.
std::vector<int> natural_order(const Labelled& lhs, const Labelled& rhs, const std::vector<int>& out);

}  // namespace stitchwork::rewriting
