#include "core/index/index_map.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/index/index_ranges.h"

namespace stitchwork {
namespace {

/// Rewriting settles in two or three rounds; many more mean two rules undo each other.
constexpr int kMaxRounds = 32;

/// The one constraint of a map known to be empty.
Constraint never() { return {IndexExpr{}, Interval{0, -1}}; }

/// True if the constraint only bounds one atom; its range is then in that atom's units once normalised.
bool bounds_leaf(const Constraint& constraint) {
  return constraint.expr.terms.size() == 1 && !is_compound(constraint.expr.terms.front());
}

/// Constant moved into the range, common factor divided out, leading coefficient positive.
Constraint normalized(Constraint c) {
  c.range.lo -= c.expr.constant;
  c.range.hi -= c.expr.constant;
  c.expr.constant = 0;
  if (c.expr.terms.empty()) return c.range.contains(0) ? Constraint{{}, {0, 0}} : never();
  std::int64_t factor = 0;
  for (const IndexTerm& term : c.expr.terms) factor = std::gcd(factor, term.coefficient);
  if (c.expr.terms.front().coefficient < 0) {
    c.range = {-c.range.hi, -c.range.lo};
    c.expr = c.expr * -1;
  }
  for (IndexTerm& term : c.expr.terms) term.coefficient /= factor;
  c.range = {-floor_quotient(-c.range.lo, factor), floor_quotient(c.range.hi, factor)};
  return c;
}

/// Normalises, clips to what the atoms allow, drops what is implied, merges bounds of one expression.
void simplify_constraints(IndexMap& map) {
  if (map.constraints.empty()) return;
  const AtomRanges whole = atom_ranges(map, false), narrowed = atom_ranges(map);
  std::vector<Constraint> kept;
  for (Constraint& constraint : map.constraints) {
    Constraint c = std::move(constraint);
    if (!bounds_leaf(c)) c.expr = simplify_within(c.expr, narrowed);
    c = normalized(std::move(c));
    const Interval possible = range_within(c.expr, bounds_leaf(c) ? whole : narrowed);
    if (c.range.contains(possible)) continue;
    c.range = {std::max(c.range.lo, possible.lo), std::min(c.range.hi, possible.hi)};
    kept.push_back(std::move(c));
  }
  std::sort(kept.begin(), kept.end());
  std::vector<Constraint> merged;
  for (Constraint& c : kept) {
    if (!merged.empty() && merged.back().expr == c.expr) {
      Interval& range = merged.back().range;
      range = {std::max(range.lo, c.range.lo), std::min(range.hi, c.range.hi)};
    } else {
      merged.push_back(std::move(c));
    }
  }
  if (std::any_of(merged.begin(), merged.end(), [](const Constraint& c) { return c.range.empty(); }))
    merged = {never()};
  map.constraints = std::move(merged);
}

}  // namespace

AtomRanges atom_ranges(const IndexMap& map, bool narrow) {
  const auto box = [](std::int64_t extent) { return Interval{0, std::max<std::int64_t>(extent, 1) - 1}; };
  AtomRanges ranges;
  ranges.dims.reserve(map.dims.size());
  for (const std::int64_t extent : map.dims) ranges.dims.push_back(box(extent));
  ranges.symbols.reserve(map.symbols.size());
  for (const std::int64_t extent : map.symbols) ranges.symbols.push_back(box(extent));
  for (const RuntimeVariable& variable : map.runtime)
    ranges.runtime.push_back({variable.range.lo, std::max(variable.range.lo, variable.range.hi)});
  if (!narrow) return ranges;
  for (const Constraint& original : map.constraints) {
    if (!bounds_leaf(original)) continue;
    const Constraint c = normalized(original);
    const IndexTerm& term = c.expr.terms.front();
    std::vector<Interval>& list = term.kind == AtomKind::kDim      ? ranges.dims
                                  : term.kind == AtomKind::kSymbol ? ranges.symbols
                                                                   : ranges.runtime;
    SW_CHECK(static_cast<std::size_t>(term.id) < list.size(), "atom {} of {}", term.id, list.size());
    Interval& range = list[static_cast<std::size_t>(term.id)];
    const Interval both{std::max(range.lo, c.range.lo), std::min(range.hi, c.range.hi)};
    if (!both.empty()) range = both;
  }
  return ranges;
}

IndexMap IndexMap::identity(std::span<const std::int64_t> extents) {
  IndexMap map;
  map.dims.assign(extents.begin(), extents.end());
  for (std::size_t i = 0; i < extents.size(); ++i)
    map.results.push_back(extents[i] == 1 ? IndexExpr::value(0) : IndexExpr::dim(static_cast<int>(i)));
  return map;
}

bool IndexMap::is_identity() const {
  if (results.size() != dims.size() || !symbols.empty() || !constraints.empty()) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool only_zero = dims[i] == 1 && results[i].is_constant() && results[i].constant == 0;
    if (!only_zero && results[i].as_dim() != static_cast<int>(i)) return false;
  }
  return true;
}

bool IndexMap::is_empty() const {
  const auto none = [](std::int64_t extent) { return extent <= 0; };
  if (std::any_of(dims.begin(), dims.end(), none) || std::any_of(symbols.begin(), symbols.end(), none))
    return true;
  if (constraints.empty()) return false;
  const AtomRanges whole = atom_ranges(*this, false), narrowed = atom_ranges(*this);
  return std::any_of(constraints.begin(), constraints.end(), [&](const Constraint& c) {
    const Interval possible = range_within(c.expr, bounds_leaf(c) ? whole : narrowed);
    return c.range.empty() || possible.hi < c.range.lo || c.range.hi < possible.lo;
  });
}

std::string to_text(const IndexMap& map) {
  const auto list = [](const auto& items, const auto& print) {
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : ", ") + print(items[i], i);
    return text;
  };
  const auto print_expr = [](const IndexExpr& e, std::size_t) { return to_text(e); };
  const auto print_range = [](const Interval& r) { return fmt::format("{}..{}", r.lo, r.hi); };
  std::string text =
      "(" + list(map.dims, [](std::int64_t, std::size_t i) { return fmt::format("d{}", i); }) + ")";
  if (!map.symbols.empty())
    text += "[" +
            list(map.symbols,
                 [](std::int64_t n, std::size_t i) { return fmt::format("s{} in 0..{}", i, n - 1); }) +
            "]";
  if (!map.runtime.empty())
    text += "{" +
            list(map.runtime,
                 [&](const RuntimeVariable& v, std::size_t i) {
                   return fmt::format("r{} = node {}[{}] in {}", i, v.op, list(v.index, print_expr),
                                      print_range(v.range));
                 }) +
            "}";
  text += " -> (" + list(map.results, print_expr) + ")";
  if (!map.constraints.empty())
    text += " where " + list(map.constraints, [&](const Constraint& c, std::size_t) {
              return fmt::format("{} in {}", to_text(c.expr), print_range(c.range));
            });
  return text;
}

Interval range_of(const IndexExpr& expr, const IndexMap& map) { return range_within(expr, atom_ranges(map)); }

Interval range_without(const Constraint& constraint, const IndexMap& map) {
  return range_within(constraint.expr, atom_ranges(map, !bounds_leaf(constraint)));
}

IndexExpr simplify(const IndexExpr& expr, const IndexMap& context) {
  const AtomRanges ranges = atom_ranges(context);
  IndexExpr current = expr;
  for (int round = 0;; ++round) {
    SW_CHECK(round < kMaxRounds, "{} does not settle", to_text(expr));
    IndexExpr next = simplify_within(current, ranges);
    if (next == current) return current;
    current = std::move(next);
  }
}

IndexMap simplify(IndexMap map) {
  for (int round = 0;; ++round) {
    SW_CHECK(round < kMaxRounds, "{} does not settle", to_text(map));
    IndexMap next = map;
    simplify_constraints(next);
    const AtomRanges ranges = atom_ranges(next);
    for (RuntimeVariable& variable : next.runtime)
      for (IndexExpr& index : variable.index) index = simplify_within(index, ranges);
    for (IndexExpr& result : next.results) result = simplify_within(result, ranges);
    if (next == map) return map;
    map = std::move(next);
  }
}

IndexMap compose(const IndexMap& outer, const IndexMap& inner) {
  SW_CHECK(outer.results.size() == inner.dims.size(), "{} into {}", to_text(outer), to_text(inner));
  if (outer.runtime.empty() && outer.is_identity() && outer.dims == inner.dims) return inner;
  if (inner.runtime.empty() && inner.is_identity()) return outer;
  IndexMap map;
  map.dims = outer.dims;
  map.symbols = outer.symbols;
  map.symbols.insert(map.symbols.end(), inner.symbols.begin(), inner.symbols.end());
  map.runtime = outer.runtime;
  map.constraints = outer.constraints;
  const int symbols = static_cast<int>(outer.symbols.size()),
            runtime = static_cast<int>(outer.runtime.size());
  const LeafSubstitution leaf = [&outer, symbols, runtime](AtomKind kind, int id) {
    if (kind == AtomKind::kDim) return outer.results[static_cast<std::size_t>(id)];
    if (kind == AtomKind::kSymbol) return IndexExpr::symbol(symbols + id);
    return IndexExpr::runtime(runtime + id);
  };
  for (const RuntimeVariable& variable : inner.runtime) {
    const AtomRanges ranges = atom_ranges(map);
    RuntimeVariable& copy = map.runtime.emplace_back(RuntimeVariable{variable.op, {}, variable.range});
    for (const IndexExpr& index : variable.index) copy.index.push_back(substitute(index, leaf, &ranges));
  }
  if (!inner.constraints.empty()) {
    const AtomRanges ranges = atom_ranges(map);
    for (const Constraint& c : inner.constraints)
      map.constraints.push_back({substitute(c.expr, leaf, &ranges), c.range});
    simplify_constraints(map);
  }
  const AtomRanges ranges = atom_ranges(map);
  map.results.reserve(inner.results.size());
  for (const IndexExpr& result : inner.results) map.results.push_back(substitute(result, leaf, &ranges));
  return map.constraints.empty() ? map : simplify(std::move(map));
}

}  // namespace stitchwork
