// The graph as TVM's fusion pass sees it (docs/planners/tvm.md): ops with a kind, edges to their readers with
// a kind of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork::tvm {

/// TVM's op patterns, in its order: what a kind may be fused with is asked by comparison.
enum class Kind : std::uint8_t {
  kElemwise = 0,
  kBroadcast = 1,
  kInjective = 2,
  kCommReduce = 3,
  kOutEwiseFusable = 4,  ///< dense, convolution, pooling: an element-wise epilogue may end their kernel
  kTuple = 7,
  kOpaque = 8,
};
std::string_view name(Kind kind);

/// The kind TVM registers for the op this one is imported as.
Kind kind_of(const Node& node);

/// Kind of the edge by which `reader` takes an operand of `operand`'s shape.
Kind edge_kind(const Node& reader, const Shape& operand);

struct Edge {
  int reader = -1;  ///< index into ForwardGraph::nodes
  Kind kind = Kind::kOpaque;
};

struct ForwardNode {
  NodeId op = kNoNode;  ///< a concatenate has two nodes: TVM's takes a tuple, which comes first
  Kind kind = Kind::kOpaque;
  bool external = false;  ///< used from outside: a parameter, the result, a tuple inside a tuple
  std::vector<Edge> readers;
};

/// What the result needs, in post-DFS order (operands before users). Scalar constants and their broadcasts
/// are immediates of every kernel and no nodes.
struct ForwardGraph {
  const Computation* computation = nullptr;
  std::vector<ForwardNode> nodes;

  const ForwardNode& operator[](int i) const { return nodes[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(nodes.size()); }
  const std::string& name(int i) const { return computation->node((*this)[i].op).name; }
};

/// `computation` must outlive the result.
ForwardGraph forward_graph(const Computation& computation);

/// Where all paths from a node meet first, and how they get there.
struct PostDominator {
  int node = -1;                ///< -1: none, they end in different places or outside
  Kind kind = Kind::kElemwise;  ///< the largest of the kinds on the way
  int depth = 1;                ///< in the tree
};

/// Immediate post-dominators by lowest common ancestors of the readers, in one pass from the result
/// backwards.
std::vector<PostDominator> post_dominators(const ForwardGraph& graph);

std::string to_text(const ForwardGraph& graph, const std::vector<PostDominator>& dominators);

}  // namespace stitchwork::tvm
