#include "core/substitute/single_op.h"

#include <algorithm>

namespace stitchwork::rewriting {
namespace {

using Extents = std::vector<std::int64_t>;

/// Result dimension of every operand dimension; those of extent 1 take what is left, in order. nullopt where
/// something else than a whole dimension is read, or none is left.
std::optional<Extents> dimensions_read(const IndexMap& map, const Extents& from, bool ascending) {
  Extents result(from.size(), -1);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) continue;
    const std::optional<int> dim = map.results[i].as_dim();
    if (!dim || map.dims[static_cast<std::size_t>(*dim)] != from[i] || std::ranges::count(result, *dim) != 0)
      return std::nullopt;
    result[i] = *dim;
  }
  std::int64_t last = -1;
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::int64_t d = result[i];
    if (d < 0) {
      for (d = ascending ? last + 1 : 0; d < static_cast<std::int64_t>(map.dims.size()); ++d)
        if (map.dims[static_cast<std::size_t>(d)] == 1 && std::ranges::count(result, d) == 0) break;
      if (d == static_cast<std::int64_t>(map.dims.size())) return std::nullopt;
      result[i] = d;
    }
    if (ascending && d <= last) return std::nullopt;
    last = d;
  }
  return result;
}

std::optional<SingleOp> as_transpose(const IndexMap& map, const Extents& from) {
  if (from.size() != map.dims.size()) return std::nullopt;
  const std::optional<Extents> read = dimensions_read(map, from, false);
  if (!read) return std::nullopt;
  SingleOp result{Op::kTranspose, {}};
  result.attrs.dimensions.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    result.attrs.dimensions[static_cast<std::size_t>((*read)[i])] = static_cast<std::int64_t>(i);
  return result;
}

std::optional<SingleOp> as_broadcast(const IndexMap& map, const Extents& from) {
  const std::optional<Extents> read = dimensions_read(map, from, true);
  if (!read) return std::nullopt;
  SingleOp result{Op::kBroadcast, {}};
  result.attrs.dimensions = *read;
  return result;
}

/// A slice, or a reversal of some dimensions.
std::optional<SingleOp> as_strided(const IndexMap& map, const Extents& from) {
  if (from.size() != map.dims.size()) return std::nullopt;
  SingleOp slice{Op::kSlice, {}}, reverse{Op::kReverse, {}};
  for (std::size_t i = 0; i < from.size(); ++i) {
    const IndexExpr& at = map.results[i];
    std::int64_t step = 1;
    if (!at.is_constant()) {
      const IndexTerm& term = at.terms.front();
      if (at.terms.size() != 1 || term.kind != AtomKind::kDim || term.id != static_cast<int>(i))
        return std::nullopt;
      step = term.coefficient;
    }
    if (step == -1 && at.constant == from[i] - 1 && map.dims[i] == from[i])
      reverse.attrs.dimensions.push_back(static_cast<std::int64_t>(i));
    slice.attrs.slice.push_back({at.constant, at.constant + step * (map.dims[i] - 1) + 1, step});
  }
  if (!reverse.attrs.dimensions.empty()) return from == map.dims ? std::optional(reverse) : std::nullopt;
  const bool ahead = std::ranges::all_of(slice.attrs.slice, [](const SliceSpec& s) { return s.stride > 0; });
  return ahead ? std::optional(slice) : std::nullopt;
}

/// Whether the op reads as `map` says.
bool reads_as(const SingleOp& single, const IndexMap& map, const Shape& from, const Shape& to) {
  Computation both;
  Node operand;
  operand.id = 0;
  operand.shape = Shape::array(from.dtype, from.dims);
  Node node;
  node.id = 1;
  node.op = single.op;
  node.attrs = single.attrs;
  node.shape = Shape::array(to.dtype, to.dims);
  node.operands = {0};
  both.nodes = {operand, node};
  const std::optional<IndexMap> read = operand_map(both, 1, 0);
  return read && simplify(*read) == map;
}

}  // namespace

std::optional<SingleOp> single_op(const IndexMap& map, const Shape& from, const Shape& to) {
  if (!map.constraints.empty() || !map.symbols.empty() || !map.runtime.empty() || to.elements_count() == 0)
    return std::nullopt;
  const bool all = from.elements_count() == to.elements_count();
  if (const SingleOp reshape{Op::kReshape, {}}; all && reads_as(reshape, map, from, to)) return reshape;
  for (const auto make : {as_transpose, as_broadcast, as_strided})
    if (const std::optional<SingleOp> made = make(map, from.dims); made && reads_as(*made, map, from, to))
      return made;
  return std::nullopt;
}

}  // namespace stitchwork::rewriting
