// IndexMap: the one language of element dependencies. For op O and operand i, operand_map(O, i) says which
// operand element each element of O reads. From it alone come: one-to-one or one-to-many (AStitch Table 1),
// row or column reduction, coalescing, block locality, and the index expressions of generated code.
#pragma once

#include <boost/container/small_vector.hpp>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// Closed integer interval; empty if hi < lo.
struct Interval {
  std::int64_t lo = 0, hi = -1;
  bool empty() const { return hi < lo; }
  std::int64_t size() const { return empty() ? 0 : hi - lo + 1; }
  bool contains(std::int64_t v) const { return lo <= v && v <= hi; }
  bool contains(const Interval& o) const { return o.empty() || (lo <= o.lo && o.hi <= hi); }
  auto operator<=>(const Interval&) const = default;
};

struct IndexExpr;

enum class AtomKind : std::uint8_t { kDim, kSymbol, kRuntime, kFloorDiv, kMod };

struct IndexTerm {
  std::int64_t coefficient = 1;
  AtomKind kind = AtomKind::kDim;
  int id = 0;                ///< dim, symbol or runtime number
  std::int64_t divisor = 1;  ///< floordiv, mod
  std::shared_ptr<const IndexExpr>
      inner;  ///< of what floordiv and mod are, shared by copies of the term; null otherwise

  bool operator==(const IndexTerm&) const;
  std::strong_ordering operator<=>(const IndexTerm& other) const;
};

/// Canonical sum: constant + sum of coefficient * atom, atoms ordered and distinct. An atom is a dim, a
/// symbol (reduced index), a runtime variable, or floordiv/mod of an IndexExpr by a positive constant. Value
/// semantics; equality is structural, so canonical equal expressions compare equal. One term is stored in the
/// expression itself: most are a single dim.
struct IndexExpr {
  using Terms = boost::container::small_vector<IndexTerm, 1>;
  std::int64_t constant = 0;
  Terms terms;

  static IndexExpr value(std::int64_t constant);
  static IndexExpr dim(int i);
  static IndexExpr symbol(int i);
  static IndexExpr runtime(int i);

  bool is_constant() const { return terms.empty(); }
  /// The atom's id if this is exactly 1 * dim(i) (+ 0).
  std::optional<int> as_dim() const;
  bool uses_dim(int i) const;
  bool uses_symbols() const;
  bool uses_runtime() const;
  bool operator==(const IndexExpr& other) const;
  std::strong_ordering operator<=>(const IndexExpr& other) const;
};

IndexExpr operator+(const IndexExpr& a, const IndexExpr& b);
IndexExpr operator-(const IndexExpr& a, const IndexExpr& b);
IndexExpr operator*(const IndexExpr& a, std::int64_t k);
IndexExpr floordiv(const IndexExpr& a, std::int64_t divisor);
IndexExpr mod(const IndexExpr& a, std::int64_t divisor);

/// `expr` must lie in `range`; outside, the map does not apply (concatenate, pad: guarded pieces).
struct Constraint {
  IndexExpr expr;
  Interval range;
  auto operator<=>(const Constraint&) const = default;
};

/// A value read at run time: element `index` of integer op `op` (in the same computation), clamped to
/// `range`.
struct RuntimeVariable {
  NodeId op = kNoNode;
  std::vector<IndexExpr> index;  ///< over the map's dims and symbols (and earlier runtime variables)
  Interval range;
  auto operator<=>(const RuntimeVariable&) const = default;
};

/// From dims (with ranges [0, n)) and symbols to `results`, under `constraints`. In simplified form a dim of
/// extent 1 is the constant 0 wherever it is used.
struct IndexMap {
  std::vector<std::int64_t> dims;     ///< extents
  std::vector<std::int64_t> symbols;  ///< extents of reduced indices
  std::vector<RuntimeVariable> runtime;
  std::vector<IndexExpr> results;
  std::vector<Constraint> constraints;  ///< sorted

  static IndexMap identity(std::span<const std::int64_t> extents);
  auto operator<=>(const IndexMap&) const = default;

  bool is_identity() const;
  /// Known to be empty (a constraint can never hold) or over an empty domain.
  bool is_empty() const;
};

std::string to_text(const IndexExpr& expr);
/// "(d0, d1)[s0 in 0..255] -> (d0, s0) where d1 in 0..3"
std::string to_text(const IndexMap& map);

/// Bounds of `expr` over the dims, symbols and runtime ranges of `map`, narrowed by its constraints on single
/// atoms (exact for affine, hull for mod).
Interval range_of(const IndexExpr& expr, const IndexMap& map);
/// Bounds of a constraint's expression over `map`, which has it, as if it had not: narrowed by the others.
Interval range_without(const Constraint& constraint, const IndexMap& map);

/// Rewrites to the simplest equal map: mod/floordiv removed where ranges allow, (x floordiv a) floordiv b,
/// a*(x floordiv a) + x mod a = x, constraints implied by ranges dropped, unused symbols kept. "Equal" where
/// the constraints hold: a result may rely on them. Dividends are kept non-negative where ranges allow.
IndexMap simplify(IndexMap map);
IndexExpr simplify(const IndexExpr& expr, const IndexMap& context);

/// `outer` maps X to indices of Y; `inner` maps Y to indices of Z. The result maps X to Z: inner's dims are
/// replaced by outer's results, symbols and runtime variables are concatenated (outer's first), and
/// simplified (given simplified maps, as all functions here return them).
IndexMap compose(const IndexMap& outer, const IndexMap& inner);

/// Row-major linear index of the results within `extents`, and the reverse.
IndexExpr linearize(std::span<const IndexExpr> index, std::span<const std::int64_t> extents);
std::vector<IndexExpr> delinearize(const IndexExpr& linear, std::span<const std::int64_t> extents);

/// Inverse of a map that is a bijection between its dims' box and `extents` (the box its results range over):
/// element-wise, reshape, transpose, reverse. nullopt where not provably so.
std::optional<IndexMap> invert(const IndexMap& map, std::span<const std::int64_t> extents);

/// Result expression values at a point (tests, evaluator). Floor semantics.
std::int64_t evaluate(const IndexExpr& expr, std::span<const std::int64_t> dims,
                      std::span<const std::int64_t> symbols, std::span<const std::int64_t> runtime = {});

/// Which element of operand `operand` each element of `node` reads, simplified. Dims are node's output dims
/// (a multi-output reduce: those of one output); symbols the reduced, contracted or window ones, in ascending
/// operand dimension order (dot: in the order of its contracting dimensions).
///  - scalar operands (clamp bounds, a scalar predicate, pad value, reduce's initial value): no results
///  - concatenate, pad's data, reduce-window: constraints; outside, the element does not come from here
///  - gather, dynamic-slice: runtime variables, already clamped; none where only one start fits
///  - dynamic-update-slice: the value is operand 1's where its map's constraints hold, else operand 0's
///    (whose map is the identity); update-in-place: operand 0 is the update, with the identity
///  - index operands (gather's indices, vector start indices): the vector's components are a symbol
/// nullopt for ops that are not maps (scatter, sort, select-and-scatter, control, opaque, tuple-shaped).
/// The computation keeps its maps, and they live as long as it does.
const std::optional<IndexMap>& operand_map(const Computation& computation, NodeId node, int operand);

/// Where in the array that `node` updates in place each of its elements lies: its starts are runtime
/// variables, already clamped.
IndexMap updated_map(const Computation& computation, const Node& node);

/// AStitch Table 1 for one edge, from its map: one-to-one if no operand element is read twice and no symbol
/// takes more than one value; one-to-many if some element is read by several outputs; many-to-one if an
/// output reads several elements, none of them shared; else other (product, overlapping windows, runtime
/// index, or not told from the map).
enum class Dependency : std::uint8_t { kOneToOne, kOneToMany, kManyToOne, kOther };
Dependency dependency(const IndexMap& map, std::span<const std::int64_t> operand_dims);

}  // namespace stitchwork
