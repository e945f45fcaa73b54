// Inverting a map, and the dependency class of an edge: both read the results as numbers written in mixed
// radix, whose digits are dims or pieces (floordiv, mod) of linear expressions.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/index/index_map.h"
#include "core/index/index_ranges.h"

namespace stitchwork {
namespace {

/// `expr` is known to have `value` (an expression over the inverse's dims).
struct Equation {
  IndexExpr expr, value;
};

/// coefficient * ((variable floordiv low) mod (high / low)); high 0: no mod.
struct Piece {
  std::int64_t coefficient = 1;
  IndexExpr variable;
  std::int64_t low = 1, high = 0;
};

Piece piece_of(const IndexTerm& term) {
  IndexTerm unit = term;
  unit.coefficient = 1;
  Piece piece{term.coefficient, {}, 1, 0};
  if (term.kind == AtomKind::kFloorDiv) {
    piece.variable = *term.inner;
    piece.low = term.divisor;
  } else if (term.kind == AtomKind::kMod) {
    const IndexExpr& inner = *term.inner;
    const bool quotient = inner.constant == 0 && inner.terms.size() == 1 &&
                          inner.terms.front().coefficient == 1 &&
                          inner.terms.front().kind == AtomKind::kFloorDiv;
    piece.variable = quotient ? *inner.terms.front().inner : inner;
    piece.low = quotient ? inner.terms.front().divisor : 1;
    piece.high = piece.low * term.divisor;
  } else {
    piece.variable.terms.push_back(std::move(unit));
  }
  return piece;
}

/// A variable cut into digits: digit k is (variable floordiv cuts[k]) mod (cuts[k+1] / cuts[k]); the last
/// digit has no mod.
struct Variable {
  Interval range;
  std::vector<std::int64_t> cuts{1};
  std::vector<int> uses;               ///< of each digit
  std::vector<std::int64_t> extents;   ///< of each digit: how many values it takes
  std::vector<IndexExpr> digit_value;  ///< once solved

  bool is_leaf = false;
};

struct DigitRef {
  std::int64_t coefficient = 1;
  Variable* variable = nullptr;
  std::size_t digit = 0;
  std::int64_t extent() const { return variable->extents[digit]; }
};

using Variables = std::map<IndexExpr, Variable>;

/// The variables of one level of equations with their cuts; nullopt where the cuts of one do not nest.
std::optional<Variables> cut_variables(const std::vector<Equation>& equations, const AtomRanges& ranges) {
  std::map<IndexExpr, std::set<std::int64_t>> cuts;
  for (const Equation& equation : equations)
    for (const IndexTerm& term : equation.expr.terms) {
      const Piece piece = piece_of(term);
      std::set<std::int64_t>& set = cuts[piece.variable];
      set.insert({1, piece.low});
      if (piece.high != 0) set.insert(piece.high);
    }
  Variables variables;
  for (const auto& [expr, set] : cuts) {
    Variable variable;
    variable.range = range_within(expr, ranges);
    variable.is_leaf = expr.constant == 0 && expr.terms.size() == 1 && expr.terms.front().coefficient == 1 &&
                       !is_compound(expr.terms.front());
    variable.cuts.assign(set.begin(), set.end());
    const std::size_t n = variable.cuts.size();
    for (std::size_t k = 0; k < n; ++k) {
      const std::int64_t cut = variable.cuts[k];
      if (k + 1 < n && variable.cuts[k + 1] % cut != 0) return std::nullopt;
      const std::int64_t top =
          floor_quotient(variable.range.hi, cut) - floor_quotient(variable.range.lo, cut) + 1;
      variable.extents.push_back(k + 1 < n ? std::min(variable.cuts[k + 1] / cut, top) : top);
    }
    variable.uses.assign(n, 0);
    variable.digit_value.resize(n);
    variables.emplace(expr, std::move(variable));
  }
  return variables;
}

/// The digits (of more than one value) that `expr` is a weighted sum of, by ascending weight.
std::vector<DigitRef> digits_of(const IndexExpr& expr, Variables& variables) {
  std::vector<DigitRef> digits;
  for (const IndexTerm& term : expr.terms) {
    const Piece piece = piece_of(term);
    Variable& variable = variables.at(piece.variable);
    for (std::size_t k = 0; k < variable.cuts.size(); ++k) {
      const std::int64_t cut = variable.cuts[k];
      if (cut < piece.low || (piece.high != 0 && cut >= piece.high) || variable.extents[k] == 1) continue;
      ++variable.uses[k];
      digits.push_back({piece.coefficient * (cut / piece.low), &variable, k});
    }
  }
  std::sort(digits.begin(), digits.end(), [](const DigitRef& a, const DigitRef& b) {
    return std::abs(a.coefficient) < std::abs(b.coefficient);
  });
  return digits;
}

/// One level of inversion: from equations to the equations of the variables inside.
std::optional<std::vector<Equation>> solve_level(const std::vector<Equation>& equations,
                                                 const AtomRanges& ranges, const AtomRanges& value_ranges) {
  std::optional<Variables> variables = cut_variables(equations, ranges);
  if (!variables) return std::nullopt;
  for (const Equation& equation : equations) {
    const std::vector<DigitRef> digits = digits_of(equation.expr, *variables);
    std::int64_t weight = 1, offset = 0;
    for (const DigitRef& digit : digits) {
      if (std::abs(digit.coefficient) != weight) return std::nullopt;
      const std::int64_t extent = digit.extent();
      IndexExpr value = floordiv_within(equation.value, weight, &value_ranges);
      value = mod_within(value, extent, &value_ranges);
      if (digit.coefficient < 0) {
        offset += weight * (extent - 1);
        value = IndexExpr::value(extent - 1) - value;
      }
      digit.variable->digit_value[digit.digit] = std::move(value);
      weight *= extent;
    }
    const Interval value_range = range_within(equation.value, value_ranges);
    if (offset != equation.expr.constant || value_range.lo != 0 || value_range.hi != weight - 1)
      return std::nullopt;
  }
  std::vector<Equation> solved;
  for (const auto& [expr, variable] : *variables) {
    if (variable.range.lo != 0) return std::nullopt;
    IndexExpr value;
    std::int64_t covered = 1;
    for (std::size_t k = 0; k < variable.cuts.size(); ++k) {
      if (variable.extents[k] == 1) continue;
      if (variable.uses[k] != 1 || covered != variable.cuts[k]) return std::nullopt;
      value = value + variable.digit_value[k] * variable.cuts[k];
      covered = variable.cuts[k] * variable.extents[k];
    }
    if (covered != variable.range.hi + 1) return std::nullopt;
    solved.push_back({expr, simplify_within(value, value_ranges)});
  }
  return solved;
}

/// Whether the row-major position of the results is that of the dims.
bool is_reshape(const IndexMap& map, std::span<const std::int64_t> extents) {
  const auto count = [](std::span<const std::int64_t> list) {
    return std::accumulate(list.begin(), list.end(), std::int64_t{1}, std::multiplies<>());
  };
  return count(map.dims) == count(extents) && simplify(linearize(map.results, extents), map) ==
                                                  linearize(IndexMap::identity(map.dims).results, map.dims);
}

/// Whether some operand element is certainly read by several outputs: a dim plays no part, or there are more
/// outputs than elements.
bool repeats(const IndexMap& map, const AtomRanges& ranges, std::span<const std::int64_t> operand_dims) {
  std::int64_t outputs = 1, elements = 1;
  for (const std::int64_t n : operand_dims) elements *= n;
  for (std::size_t i = 0; i < ranges.dims.size(); ++i) {
    outputs *= ranges.dims[i].size();
    const auto uses = [i](const IndexExpr& e) { return e.uses_dim(static_cast<int>(i)); };
    // A constraint on the dim alone is in its range already.
    const auto constrains = [&uses](const Constraint& c) {
      const bool alone = c.expr.terms.size() == 1 && !is_compound(c.expr.terms.front());
      return !alone && uses(c.expr);
    };
    if (ranges.dims[i].size() > 1 && std::ranges::none_of(map.results, uses) &&
        std::ranges::none_of(map.constraints, constrains))
      return true;
  }
  return map.constraints.empty() && outputs > elements;
}

/// Whether the values of `exprs` determine every dim and symbol that takes more than one value. False also
/// where that cannot be told.
bool determines_all(std::vector<IndexExpr> exprs, const AtomRanges& ranges) {
  std::set<IndexExpr> known;
  while (!exprs.empty()) {
    std::vector<Equation> equations;
    for (IndexExpr& expr : exprs) equations.push_back({std::move(expr), {}});
    std::optional<Variables> variables = cut_variables(equations, ranges);
    if (!variables) return false;
    for (const Equation& equation : equations) {
      std::int64_t reach = 0;  // the largest difference the lighter digits can make
      for (const DigitRef& digit : digits_of(equation.expr, *variables)) {
        if (std::abs(digit.coefficient) <= reach) return false;
        reach += std::abs(digit.coefficient) * (digit.extent() - 1);
      }
    }
    exprs.clear();
    for (const auto& [expr, variable] : *variables) {
      for (std::size_t k = 0; k < variable.cuts.size(); ++k)
        if (variable.extents[k] > 1 && variable.uses[k] == 0) return false;
      if (variable.is_leaf)
        known.insert(expr);
      else
        exprs.push_back(expr);
    }
  }
  const auto all_known = [&known](const std::vector<Interval>& atoms, IndexExpr (*atom)(int)) {
    for (std::size_t i = 0; i < atoms.size(); ++i)
      if (atoms[i].size() > 1 && !known.contains(atom(static_cast<int>(i)))) return false;
    return true;
  };
  return all_known(ranges.dims, IndexExpr::dim) && all_known(ranges.symbols, IndexExpr::symbol);
}

}  // namespace

std::optional<IndexMap> invert(const IndexMap& original, std::span<const std::int64_t> extents) {
  SW_CHECK(original.results.size() == extents.size(), "{} for {} extents", to_text(original), extents.size());
  const IndexMap map = simplify(original);
  if (!map.runtime.empty() || !map.symbols.empty() || !map.constraints.empty() || map.is_empty())
    return std::nullopt;
  IndexMap inverse;
  inverse.dims.assign(extents.begin(), extents.end());
  if (is_reshape(map, extents)) {
    inverse.results = delinearize(linearize(IndexMap::identity(extents).results, extents), map.dims);
    return simplify(std::move(inverse));
  }
  const AtomRanges ranges = atom_ranges(map), value_ranges = atom_ranges(inverse);
  std::vector<Equation> equations;
  for (std::size_t i = 0; i < extents.size(); ++i)
    equations.push_back(
        {map.results[i], extents[i] == 1 ? IndexExpr::value(0) : IndexExpr::dim(static_cast<int>(i))});
  inverse.results.resize(map.dims.size());
  std::vector<bool> found(map.dims.size());
  for (std::size_t i = 0; i < map.dims.size(); ++i) found[i] = map.dims[i] == 1;
  while (!equations.empty()) {
    std::optional<std::vector<Equation>> solved = solve_level(equations, ranges, value_ranges);
    if (!solved) return std::nullopt;
    equations.clear();
    for (Equation& equation : *solved) {
      const std::optional<int> dim = equation.expr.as_dim();
      if (!dim) {
        equations.push_back(std::move(equation));
        continue;
      }
      const auto i = static_cast<std::size_t>(*dim);
      if (found[i]) return std::nullopt;  // reached on two levels: not a plain chain of reshapes
      found[i] = true;
      inverse.results[i] = std::move(equation.value);
    }
  }
  if (std::find(found.begin(), found.end(), false) != found.end()) return std::nullopt;
  return inverse;
}

Dependency dependency(const IndexMap& original, std::span<const std::int64_t> operand_dims) {
  const IndexMap map = simplify(original);
  SW_CHECK(map.results.size() == operand_dims.size(), "{} for {} dims", to_text(map), operand_dims.size());
  if (std::any_of(map.results.begin(), map.results.end(), [](const auto& r) { return r.uses_runtime(); }))
    return Dependency::kOther;
  const AtomRanges ranges = atom_ranges(map);
  const bool reduces = std::any_of(ranges.symbols.begin(), ranges.symbols.end(),
                                   [](const Interval& range) { return range.size() > 1; });
  if (is_reshape(map, operand_dims)) return Dependency::kOneToOne;
  if (determines_all(map.results, ranges)) return reduces ? Dependency::kManyToOne : Dependency::kOneToOne;
  return !reduces && repeats(map, ranges, operand_dims) ? Dependency::kOneToMany : Dependency::kOther;
}

}  // namespace stitchwork
