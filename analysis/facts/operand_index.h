// Index maps of operands, and what they depend on.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/graph.h"
#include "core/index/index_map.h"

namespace stitchwork {

/// `map` composed with the map of `operand`; the operand's own index where both have the same dims.
IndexMap read_map(const Computation& computation, const Node& node, int operand, const IndexMap& map);

/// 0, 1 or 2: whether `map` depends on nothing, on the row, on the col (results, constraints, runtime
/// indices).
int depth_of(const IndexMap& map);

/// (row, col) -> the index of an operand of a reduction over the domain's cols, for its result at `result`.
IndexMap reduced_operand_map(const Computation& computation, const Node& reduce, int operand,
                             const IndexMap& result);

/// Whether `map` uses a dim from `first` on.
bool uses_dims_from(const IndexMap& map, std::size_t first);

/// The largest runtime variable `expr` uses, -1 if none.
int last_runtime(const IndexExpr& expr);

/// Replaces symbol i by `with[i]` everywhere; the result has no symbols.
IndexMap replace_symbols(IndexMap map, const std::vector<IndexExpr>& with);

}  // namespace stitchwork
