// What the AStitch passes ask of every node, computed once per planning.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/facts/facts.h"
#include "core/graph/graph.h"
#include "core/index/index_map.h"

namespace stitchwork::astitch {

/// One operand edge of a node.
struct Edge {
  std::optional<IndexMap> map;  ///< nullopt: not a map ("needs all")
  /// How often each element of the operand is read through this edge; 1 where at most once.
  std::int64_t replication = 1;
};

/// Facts of one node.
struct NodeFacts {
  PlanRole role = PlanRole::kSource;
  bool immediate = false;
  /// Pure index maps that cost nothing to repeat (shape-only reshape, bitcast, broadcast, slice, iota): not
  /// stitched but re-evaluated in every kernel that reads them, unless something outside kernels reads them.
  bool transparent = false;
  bool buffer_needed = false;  ///< read by a library call, control flow, an opaque op, or a result
  bool member = false;         ///< some kernel must compute it
  std::optional<ReductionShape> reduction;  ///< of an op that combines several elements, by generated code
  bool isolated = false;                    ///< generated, but not an index map: a kernel of its own
  std::int64_t elements = 0;
  int code = -1;            ///< ops of the same number need code once (equal_ops.h); -1: it is equal to none
  std::vector<Edge> edges;  ///< by operand
  std::vector<NodeId> users;
};

struct Nodes {
  const Graph* graph = nullptr;
  const Computation* computation = nullptr;
  std::vector<NodeFacts> facts;  ///< by node

  const NodeFacts& operator[](NodeId id) const { return facts[static_cast<std::size_t>(id)]; }
  const Node& node(NodeId id) const { return computation->node(id); }
  const std::string& name(NodeId id) const { return computation->node(id).name; }
  std::int64_t bytes(NodeId id) const { return computation->node(id).shape.byte_size(); }
};

/// Dots (is_product) that kernels compute; the others are library calls.
struct Products {
  std::vector<NodeId> ops;  ///< ascending
  /// Contracted elements up to which a thread computes an element of a product by itself; the threads that
  /// share a row, or the columns of a tile, sum longer ones, as they do reductions.
  std::int64_t most_serial = 0;
};

/// `graph` must outlive the result.
Nodes node_facts(const Graph& graph, const Products& products = {});

/// Whether the node orders others: it is computed by some kernel or call, or renames buffers that must be
/// there (tuples and their elements, optimization barriers).
bool is_step(const NodeFacts& facts);

/// Steps that `id` depends on directly, through transparent nodes; ascending, distinct.
std::vector<NodeId> producers(const Nodes& nodes, NodeId id);

/// Instructions one element of the op costs on the device (core/graph/op.h); maps cost nothing.
std::int64_t instructions(const Nodes& nodes, NodeId id);

}  // namespace stitchwork::astitch
