// What rules ask of a graph. They match by index maps, not by spelling: JAX writes one broadcast as reshape,
// broadcast, reshape, broadcast, and it is one all the same.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/graph/graph.h"
#include "core/index/index_map.h"

namespace stitchwork::rewriting {

/// A value behind ops that only move elements. `map`: from the elements of the value asked about to its own.
struct Source {
  NodeId node = kNoNode;
  IndexMap map;
};

/// A value that another one repeats: dimension i of `source` is dimension axes[i] of the other, all of it, or
/// -1 where it has extent 1; the other's remaining dimensions do not matter.
struct Spread {
  NodeId source = kNoNode;
  std::vector<int> axes;
};

/// The dimensions of a dot by number: those of the result 0, 1, ..., then the contracted ones in the order of
/// the attribute. One number a dimension of each operand, so that equal numbers are one dimension.
struct DotLabels {
  std::vector<int> lhs, rhs, out, contracted;
  int batch = 0;  ///< how many of `out`, its first, are batch dimensions

  const std::vector<int>& operand(std::size_t side) const { return side == 0 ? lhs : rhs; }
  bool is_contracted(int label) const { return label >= static_cast<int>(out.size()); }
  bool is_batch(int label) const { return label < batch; }
};

class View {
 public:
  /// The graph must outlive the view.
  View(const Graph& graph, ComputationId computation);

  const Graph& graph() const { return *graph_; }
  const Computation& computation() const { return *computation_; }
  ComputationId id() const { return id_; }
  const Node& node(NodeId id) const { return computation_->node(id); }
  const Node& operand(const Node& node, std::size_t i) const { return this->node(node.operands[i]); }

  /// Each reader once, ascending.
  const std::vector<NodeId>& readers(NodeId id) const { return readers_[static_cast<std::size_t>(id)]; }
  /// Nothing but `reader` reads the value, as one operand, and it is no result.
  bool only_read_by(NodeId value, NodeId reader) const;
  /// `node` is `from`, or computed from it.
  bool descends(NodeId node, NodeId from) const;

  /// The value itself, then what it moves elements of, and so on through broadcast, reshape, transpose,
  /// slice, reverse and copy.
  std::vector<Source> sources(NodeId value) const;
  /// Those of the sources that the value repeats whole; the value itself first.
  std::vector<Spread> spreads(NodeId value) const;
  /// The one element that fills the value, if it is a constant; else nullptr.
  const Literal* uniform(NodeId value) const;
  bool is_number(NodeId value, double number) const;

  DotLabels labels(const Node& dot) const;

 private:
  const Graph* graph_;
  const Computation* computation_;
  ComputationId id_;
  std::vector<std::vector<NodeId>> readers_;
};

/// An op that only moves elements of its one array operand.
bool only_moves(const Node& node, const Shape& operand);

/// The dimensions a map spreads, if it does that alone; nullopt otherwise.
std::optional<std::vector<int>> spread_axes(const IndexMap& map, const std::vector<std::int64_t>& from);

/// Same element type, extents and order in memory: one may stand in the other's place.
bool same_array(const Shape& a, const Shape& b);

/// f16, bf16, f32 or f64.
bool is_real(DType type);
/// A reduction of one array by addition from 0, of a type of is_real, in that type.
bool is_sum(const View& view, const Node& node);
/// The simple reducer of a reduction of one array in its own type; nullopt for others.
std::optional<Op> plain_reducer(const View& view, const Node& node);
/// `value` changes nothing when `op` combines it with any other; whatever the reduction.
bool is_identity_of(const View& view, Op op, NodeId value);

}  // namespace stitchwork::rewriting
