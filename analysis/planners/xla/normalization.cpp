// Normalisations that XLA of today gives to Triton before it fuses anything else (SoftmaxRewriterTriton): an
// element-wise op of two operands of which one is a row's reduction, broadcast back over the row.
#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/planners/xla/rules.h"
#include "core/base/sorted.h"

namespace stitchwork::xla {
namespace {

class Normalizations {
 public:
  Normalizations(FusionGraph& graph, Recorder& recorder)
      : graph_(graph), computation_(graph.computation()), recorder_(recorder) {}

  bool run() {
    std::vector<std::pair<NodeId, NodeId>> found;  // root, producer; ascending
    for (const Node& node : computation_.nodes)
      if (const std::optional<NodeId> producer = producer_of(node); producer)
        found.emplace_back(node.id, *producer);
    // The last first: the root of one may be the producer of the next.
    for (auto at = found.rbegin(); at != found.rend(); ++at) fuse(at->first, at->second);
    return !found.empty();
  }

 private:
  const Node& node(NodeId id) const { return computation_.node(id); }
  std::size_t users(NodeId id) const { return graph_.readers(id).size(); }
  bool is_live(NodeId id) const { return graph_.provider(id) >= 0; }

  bool is_splat(NodeId id) const {
    const Node& n = node(id);
    return is_splat_constant(computation_, n) ||
           (n.op == Op::kBroadcast && node(n.operands[0]).op == Op::kParameter);
  }

  /// Another name of the same elements in the same order: XLA makes bitcasts of these.
  bool renames(const Node& n) const {
    if (n.op == Op::kReshape || n.op == Op::kBitcast) return true;
    if (n.shape.is_tuple || n.operands.empty() ||
        n.shape.elements_count() != node(n.operands[0]).shape.elements_count())
      return false;
    return n.op == Op::kReduce || (n.op == Op::kBroadcast && std::ranges::is_sorted(n.attrs.dimensions));
  }

  /// Neither reads nor writes more when it is fused, and any tiling does.
  bool is_trivial(const Node& n) const {
    if (n.shape.is_tuple || users(n.id) > 1) return false;
    if (renames(n)) return true;
    if (!is_elementwise(n.op)) return false;
    if (n.operands.size() == 1) return true;
    return n.operands.size() == 2 &&
           (n.operands[0] == n.operands[1] || is_splat(n.operands[0]) != is_splat(n.operands[1]));
  }

  NodeId followed(const Node& n) const {
    return n.operands.size() > 1 && is_splat(n.operands[0]) ? n.operands[1] : n.operands[0];
  }

  /// The first op of this kind behind trivial ones; kNoNode if another kind comes first.
  NodeId behind_trivial(NodeId at, Op op) const {
    while (node(at).op != op || renames(node(at))) {
      if (!is_trivial(node(at))) return kNoNode;
      at = followed(node(at));
    }
    return at;
  }

  bool reduces_rows(const Node& n) const {
    if (n.shape.is_tuple || n.operands.size() != 2 || n.attrs.dimensions.size() != 1) return false;
    const auto rank = static_cast<std::int64_t>(node(n.operands[0]).shape.dims.size());
    return n.attrs.dimensions[0] == rank - 1 && is_scalar_constant(node(n.operands[1]));
  }

  std::optional<NodeId> producer_of(const Node& root) const {
    if (!is_live(root.id) || !is_elementwise(root.op) || root.operands.size() != 2) return std::nullopt;
    const NodeId broadcast = behind_trivial(root.operands[1], Op::kBroadcast);
    if (broadcast == kNoNode || users(broadcast) != 1) return std::nullopt;
    const NodeId reduce = behind_trivial(node(broadcast).operands[0], Op::kReduce);
    if (reduce == kNoNode || users(reduce) != 1 || !reduces_rows(node(reduce))) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(node(broadcast).shape.dims.size());
    if (std::ranges::count(node(broadcast).attrs.dimensions, rank - 1) > 0) return std::nullopt;
    NodeId producer = node(reduce).operands[0];
    while (is_trivial(node(producer))) producer = followed(node(producer));
    NodeId at = root.operands[0];
    if (at != producer && users(at) != 1) return std::nullopt;
    while (at != producer && is_trivial(node(at))) at = followed(node(at));
    return at == producer ? std::optional(producer) : std::nullopt;
  }

  void fuse(NodeId root, NodeId producer) {
    std::vector<NodeId> inside, open = node(root).operands;
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      if (at == producer || node(at).op == Op::kParameter || is_scalar_constant(node(at)) ||
          contains_sorted(inside, at))
        continue;
      insert_sorted(inside, at);
      open.insert(open.end(), node(at).operands.begin(), node(at).operands.end());
    }
    const int into = graph_.provider(root);
    std::vector<int> parts{into};
    for (auto op = inside.rbegin(); op != inside.rend(); ++op)
      if (const int from = graph_.provider(*op); from >= 0 && std::ranges::count(parts, from) == 0)
        parts.push_back(from);
    for (const int a : parts)
      for (const int b : parts)
        if (a != b && graph_.keeps_apart(a, b)) return;
    for (const int from : parts)
      if (from != into) graph_.fuse(from, into);
    graph_.give_tiles(into);
    recorder_.record("normalization", root, producer == root ? kNoNode : producer, kAllowed,
                     "xla-today.normalization");
  }

  FusionGraph& graph_;
  const Computation& computation_;
  Recorder& recorder_;
};

}  // namespace

bool fuse_normalizations(FusionGraph& graph, Recorder& recorder) {
  return Normalizations(graph, recorder).run();
}

}  // namespace stitchwork::xla
