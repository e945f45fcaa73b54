#include "analysis/stitching/memory_order.h"

#include <algorithm>
#include <set>
#include <utility>

namespace stitchwork::astitch {
namespace {

/// Ops walked through: what stands between a reduction and its inputs is rarely more.
/// A choice, not measured: it bounds the walk on contrived graphs.
constexpr std::size_t kMostOps = 64;

/// Whether `id` passes elements on, one by one.
bool passes_on(const Nodes& nodes, NodeId id) {
  return (nodes[id].member || nodes[id].transparent) && !nodes[id].reduction && !nodes[id].immediate;
}

/// Whether elements on the way to `reduce` are read by others, too: those store them in their own order.
bool leads_elsewhere(const Nodes& nodes, const std::set<NodeId>& way, NodeId reduce) {
  return std::any_of(way.begin(), way.end(), [&](NodeId id) {
    const std::vector<NodeId>& users = nodes[id].users;
    return passes_on(nodes, id) && std::any_of(users.begin(), users.end(), [&](NodeId user) {
             return user != reduce && !way.contains(user);
           });
  });
}

bool is_transposed(const Nodes& nodes, NodeId operand) {
  std::set<NodeId> seen{operand};
  std::vector<NodeId> open{operand};
  while (!open.empty() && seen.size() < kMostOps) {
    const NodeId id = open.back();
    open.pop_back();
    if (!passes_on(nodes, id)) continue;
    if (nodes.node(id).op == Op::kTranspose) return true;
    for (const NodeId next : nodes.node(id).operands)
      if (seen.insert(next).second) open.push_back(next);
  }
  return false;
}

/// Elements of memory from one index of the dimension to the next, in the middle of the domain.
std::int64_t step_along(const IndexMap& map, const std::vector<std::int64_t>& extents, std::size_t dim) {
  const IndexExpr offset = linearize(map.results, extents);
  std::vector<std::int64_t> at{map.dims.at(0) / 2, map.dims.at(1) / 2};
  if (at[dim] + 1 >= map.dims[dim]) return 0;
  const std::int64_t here = evaluate(offset, at, {}, {});
  ++at[dim];
  return evaluate(offset, at, {}, {}) - here;
}

}  // namespace

bool lies_along_cols(const Nodes& nodes, NodeId reduce) {
  const ReductionShape& shape = *nodes[reduce].reduction;
  if (is_product(nodes.node(reduce))) return shape.row_reduce;
  const NodeId operand = nodes.node(reduce).operands[0];
  if (!is_transposed(nodes, operand)) return shape.row_reduce;
  const std::int64_t elements = shape.rows * shape.cols;
  std::int64_t along_cols = 0, along_rows = 0;  // bytes
  std::set<NodeId> seen;
  std::vector<std::pair<NodeId, IndexMap>> open{{operand, shape.input_map}};
  while (!open.empty() && seen.size() < kMostOps) {
    const auto [id, map] = std::move(open.back());
    open.pop_back();
    if (nodes[id].elements != elements || nodes.node(id).shape.is_tuple || !seen.insert(id).second) continue;
    if (passes_on(nodes, id)) {
      for (std::size_t i = 0; i < nodes.node(id).operands.size(); ++i)
        if (const Edge& edge = nodes[id].edges[i]; edge.map && edge.map->runtime.empty())
          open.emplace_back(nodes.node(id).operands[i], compose(map, *edge.map));
      continue;
    }
    if (!map.symbols.empty() || !map.runtime.empty()) continue;
    const std::vector<std::int64_t>& extents = nodes.node(id).shape.dims;
    if (step_along(map, extents, 1) == 1) along_cols += nodes.bytes(id);
    if (step_along(map, extents, 0) == 1) along_rows += nodes.bytes(id);
  }
  if (leads_elsewhere(nodes, seen, reduce)) return shape.row_reduce;
  return along_cols == along_rows ? shape.row_reduce : along_cols > along_rows;
}

}  // namespace stitchwork::astitch
