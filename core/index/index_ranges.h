// Arithmetic of index expressions where the ranges of their atoms are known: what core/index/index_map.h's
// operators do, plus the rules that hold only within ranges. Used by the index map's own sources.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/index/index_map.h"

namespace stitchwork {

/// Non-empty ranges of the atoms an expression may use.
struct AtomRanges {
  std::vector<Interval> dims, symbols, runtime;
};

/// Ranges of a map's atoms, narrowed by its constraints on single atoms unless `narrow` is false. Never
/// empty: an empty extent counts as [0, 0] (see IndexMap::is_empty).
AtomRanges atom_ranges(const IndexMap& map, bool narrow = true);

/// `ranges` may be null: then only the rules that hold everywhere are used.
IndexExpr floordiv_within(const IndexExpr& a, std::int64_t divisor, const AtomRanges* ranges);
IndexExpr mod_within(const IndexExpr& a, std::int64_t divisor, const AtomRanges* ranges);
Interval range_within(const IndexExpr& expr, const AtomRanges& ranges);

/// What a leaf atom (dim, symbol, runtime variable) becomes.
using LeafSubstitution = std::function<IndexExpr(AtomKind kind, int id)>;

/// Rebuilds `expr` bottom-up with its leaves replaced, using every rule that holds within `ranges`.
IndexExpr substitute(const IndexExpr& expr, const LeafSubstitution& leaf, const AtomRanges* ranges);

/// Rebuilds `expr` with the same leaves; a leaf whose range is one value becomes that constant.
IndexExpr simplify_within(const IndexExpr& expr, const AtomRanges& ranges);

/// Order of two terms' atoms, whatever their coefficients.
std::strong_ordering compare_atoms(const IndexTerm& a, const IndexTerm& b);
inline bool same_atom(const IndexTerm& a, const IndexTerm& b) { return compare_atoms(a, b) == 0; }

/// A floordiv or mod of an expression, as opposed to a leaf (dim, symbol, runtime variable).
inline bool is_compound(const IndexTerm& term) {
  return term.kind == AtomKind::kFloorDiv || term.kind == AtomKind::kMod;
}

/// 1 * the leaf.
IndexExpr leaf_atom(AtomKind kind, int id);

/// Floor quotient and its remainder in [0, b), b > 0.
constexpr std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && a < 0 ? 1 : 0);
}
constexpr std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  return a - floor_quotient(a, b) * b;
}

}  // namespace stitchwork
