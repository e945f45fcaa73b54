// Arithmetic of index expressions: canonical sums, floordiv, mod, ranges, substitution.
#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/index/index_ranges.h"

namespace stitchwork {
namespace {

IndexExpr compound_atom(AtomKind kind, IndexExpr inner, std::int64_t divisor) {
  IndexExpr expr;
  expr.terms.push_back({.coefficient = 1,
                        .kind = kind,
                        .id = 0,
                        .divisor = divisor,
                        .inner = std::make_shared<const IndexExpr>(std::move(inner))});
  return expr;
}

void sort_and_merge(IndexExpr::Terms& terms) {
  if (!std::is_sorted(terms.begin(), terms.end(),
                      [](const auto& a, const auto& b) { return compare_atoms(a, b) < 0; }))
    std::sort(terms.begin(), terms.end(),
              [](const auto& a, const auto& b) { return compare_atoms(a, b) < 0; });
  std::size_t out = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (out > 0 && same_atom(terms[out - 1], terms[i])) {
      terms[out - 1].coefficient += terms[i].coefficient;
    } else {
      if (out != i) terms[out] = std::move(terms[i]);
      ++out;
    }
  }
  terms.resize(out);
  terms.erase(
      std::remove_if(terms.begin(), terms.end(), [](const IndexTerm& t) { return t.coefficient == 0; }),
      terms.end());
}

void append_scaled(IndexExpr& sum, const IndexExpr& a, std::int64_t k) {
  sum.constant += a.constant * k;
  for (const IndexTerm& term : a.terms) {
    sum.terms.push_back(term);
    sum.terms.back().coefficient *= k;
  }
}

void erase_two(IndexExpr::Terms& terms, std::size_t i, std::size_t j) {
  terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
  terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
}

/// One step of joining a quotient with its remainder:
///   c*m*(x floordiv m) + c*(x mod m)              = c*x
///   c*m*((x floordiv m) mod n) + c*(x mod m)      = c*(x mod (m*n))
bool join_digits_once(IndexExpr& sum, const AtomRanges* ranges) {
  for (std::size_t i = 0; i < sum.terms.size(); ++i) {
    if (!is_compound(sum.terms[i])) continue;
    const std::int64_t c = sum.terms[i].coefficient, m = sum.terms[i].divisor;
    if (sum.terms[i].kind == AtomKind::kMod) {
      const std::shared_ptr<const IndexExpr> x = sum.terms[i].inner;  // which outlives its term
      const IndexExpr quotient = floordiv_within(*x, m, ranges);
      for (std::size_t j = 0; j < sum.terms.size(); ++j) {
        if (j == i) continue;
        const IndexTerm& other = sum.terms[j];
        if (quotient.terms.size() == 1 && same_atom(quotient.terms.front(), other) &&
            other.coefficient == c * m * quotient.terms.front().coefficient) {
          erase_two(sum.terms, i, j);
          append_scaled(sum, *x, c);
          sum.constant -= c * m * quotient.constant;
          return true;
        }
        if (other.kind == AtomKind::kMod && other.coefficient == c * m) {
          const IndexExpr digit = mod_within(quotient, other.divisor, ranges);
          if (digit.constant == 0 && digit.terms.size() == 1 && digit.terms.front().coefficient == 1 &&
              same_atom(digit.terms.front(), other)) {
            const std::int64_t period = m * other.divisor;
            erase_two(sum.terms, i, j);
            append_scaled(sum, mod_within(*x, period, ranges), c);
            return true;
          }
        }
      }
    } else if (c % m == 0) {
      // The remainder may have a simpler spelling than (x mod m): (y mod 12) mod 4 is y mod 4.
      const std::shared_ptr<const IndexExpr> x = sum.terms[i].inner;
      const IndexExpr remainder = mod_within(*x, m, ranges);
      if (remainder.terms.size() != 1) continue;
      for (std::size_t j = 0; j < sum.terms.size(); ++j) {
        if (j == i || !same_atom(remainder.terms.front(), sum.terms[j]) ||
            sum.terms[j].coefficient != c / m * remainder.terms.front().coefficient)
          continue;
        erase_two(sum.terms, i, j);
        append_scaled(sum, *x, c / m);
        sum.constant -= c / m * remainder.constant;
        return true;
      }
    }
  }
  return false;
}

/// Brings a sum with terms in any order, possibly repeated, to canonical form.
void canonicalize_sum(IndexExpr& sum, const AtomRanges* ranges) {
  sort_and_merge(sum.terms);
  while (std::any_of(sum.terms.begin(), sum.terms.end(), is_compound) && join_digits_once(sum, ranges))
    sort_and_merge(sum.terms);
}

/// Takes whole multiples of `divisor` out of `sum.constant` and returns how many. The constant left is the
/// smallest with which the sum is never negative (as far as the ranges tell; else the smallest in [0,
/// divisor)), so that generated code divides non-negative numbers where it can.
std::int64_t take_out_multiples(IndexExpr& sum, std::int64_t divisor, const AtomRanges* ranges) {
  const std::int64_t constant = sum.constant;
  sum.constant = floor_remainder(constant, divisor);
  if (ranges != nullptr && !sum.terms.empty()) {
    const std::int64_t low = range_within(sum, *ranges).lo;
    if (low < 0) sum.constant -= floor_quotient(low, divisor) * divisor;
  }
  return (constant - sum.constant) / divisor;
}

/// sum = stride * quotient + rest with 0 <= rest < stride proved.
struct Split {
  std::int64_t stride = 1;
  IndexExpr quotient, rest;
};

/// The largest stride that divides `divisor` and splits `sum`; stride 1 if there is none above it.
Split split_by_stride(const IndexExpr& sum, std::int64_t divisor, const AtomRanges* ranges) {
  std::vector<std::int64_t> strides{divisor};
  for (const IndexTerm& term : sum.terms) strides.push_back(std::gcd(term.coefficient, divisor));
  std::sort(strides.begin(), strides.end(), std::greater<>());
  strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
  for (const std::int64_t stride : strides) {
    if (stride == 1) break;
    Split split{stride, {}, {}};
    for (const IndexTerm& term : sum.terms) {
      if (term.coefficient % stride == 0) {
        split.quotient.terms.push_back(term);
        split.quotient.terms.back().coefficient /= stride;
      } else {
        split.rest.terms.push_back(term);
      }
    }
    if (!split.rest.terms.empty() && ranges == nullptr) continue;
    Interval range{0, 0};
    if (!split.rest.terms.empty()) range = range_within(split.rest, *ranges);
    const std::int64_t q = floor_quotient(range.lo + sum.constant, stride);
    if (floor_quotient(range.hi + sum.constant, stride) != q) continue;
    split.quotient.constant = q;
    split.rest.constant = sum.constant - q * stride;
    return split;
  }
  return {};
}

}  // namespace

IndexExpr operator+(const IndexExpr& a, const IndexExpr& b) {
  IndexExpr sum = a;
  append_scaled(sum, b, 1);
  canonicalize_sum(sum, nullptr);
  return sum;
}

IndexExpr operator-(const IndexExpr& a, const IndexExpr& b) {
  IndexExpr sum = a;
  append_scaled(sum, b, -1);
  canonicalize_sum(sum, nullptr);
  return sum;
}

IndexExpr operator*(const IndexExpr& a, std::int64_t k) {
  if (k == 0) return {};
  IndexExpr product = a;
  product.constant *= k;
  for (IndexTerm& term : product.terms) term.coefficient *= k;
  return product;
}

IndexExpr floordiv(const IndexExpr& a, std::int64_t divisor) { return floordiv_within(a, divisor, nullptr); }
IndexExpr mod(const IndexExpr& a, std::int64_t divisor) { return mod_within(a, divisor, nullptr); }

IndexExpr floordiv_within(const IndexExpr& a, std::int64_t divisor, const AtomRanges* ranges) {
  SW_CHECK(divisor > 0, "floordiv by {}", divisor);
  if (divisor == 1) return a;
  // Multiples of the divisor come out exactly, whatever the rest.
  IndexExpr whole, rest;
  rest.constant = a.constant;
  for (const IndexTerm& term : a.terms) {
    if (term.coefficient % divisor == 0) {
      whole.terms.push_back(term);
      whole.terms.back().coefficient /= divisor;
    } else {
      rest.terms.push_back(term);
    }
  }
  whole.constant = take_out_multiples(rest, divisor, ranges);
  if (!rest.terms.empty()) {
    const IndexTerm& first = rest.terms.front();
    const bool single = rest.terms.size() == 1 && first.coefficient == 1;
    std::int64_t both = 0, shift = 0;
    if (single && first.kind == AtomKind::kFloorDiv &&
        !__builtin_mul_overflow(first.divisor, divisor, &both) &&
        !__builtin_mul_overflow(rest.constant, first.divisor, &shift)) {
      // ((x floordiv a) + k) floordiv b = (x + k*a) floordiv (a*b)
      IndexExpr x = *first.inner;
      x.constant += shift;
      append_scaled(whole, floordiv_within(x, both, ranges), 1);
    } else if (single && first.kind == AtomKind::kMod && rest.constant == 0 && first.divisor % divisor == 0) {
      // (x mod (a*b)) floordiv a = (x floordiv a) mod b
      append_scaled(
          whole, mod_within(floordiv_within(*first.inner, divisor, ranges), first.divisor / divisor, ranges),
          1);
    } else if (Split split = split_by_stride(rest, divisor, ranges); split.stride > 1) {
      append_scaled(whole, floordiv_within(split.quotient, divisor / split.stride, ranges), 1);
    } else {
      append_scaled(whole, compound_atom(AtomKind::kFloorDiv, std::move(rest), divisor), 1);
    }
  }
  canonicalize_sum(whole, ranges);
  return whole;
}

IndexExpr mod_within(const IndexExpr& a, std::int64_t divisor, const AtomRanges* ranges) {
  SW_CHECK(divisor > 0, "mod by {}", divisor);
  if (divisor == 1) return {};
  IndexExpr rest;
  rest.constant = a.constant;
  for (const IndexTerm& term : a.terms)
    if (term.coefficient % divisor != 0) rest.terms.push_back(term);
  take_out_multiples(rest, divisor, ranges);
  if (rest.terms.size() == 1) {
    // c*(x mod m) differs from c*x by multiples of c*m. Not done inside longer sums: there the quotient and
    // the remainder of one sum must keep the same inside to be recognised as a pair.
    const IndexTerm term = rest.terms.front();
    if (term.kind == AtomKind::kMod && term.coefficient * term.divisor % divisor == 0)
      return mod_within(*term.inner * term.coefficient + IndexExpr::value(rest.constant), divisor, ranges);
  }
  if (rest.terms.empty()) return rest;
  if (Split split = split_by_stride(rest, divisor, ranges); split.stride > 1) {
    IndexExpr sum = std::move(split.rest);
    append_scaled(sum, mod_within(split.quotient, divisor / split.stride, ranges), split.stride);
    canonicalize_sum(sum, ranges);
    return sum;
  }
  return compound_atom(AtomKind::kMod, std::move(rest), divisor);
}

Interval range_within(const IndexExpr& expr, const AtomRanges& ranges) {
  const auto leaf = [](const std::vector<Interval>& list, int id) {
    SW_CHECK(id >= 0 && static_cast<std::size_t>(id) < list.size(), "atom {} of {}", id, list.size());
    return list[static_cast<std::size_t>(id)];
  };
  Interval sum{expr.constant, expr.constant};
  for (const IndexTerm& term : expr.terms) {
    Interval atom;
    switch (term.kind) {
      case AtomKind::kDim:
        atom = leaf(ranges.dims, term.id);
        break;
      case AtomKind::kSymbol:
        atom = leaf(ranges.symbols, term.id);
        break;
      case AtomKind::kRuntime:
        atom = leaf(ranges.runtime, term.id);
        break;
      case AtomKind::kFloorDiv: {
        const Interval inner = range_within(*term.inner, ranges);
        atom = {floor_quotient(inner.lo, term.divisor), floor_quotient(inner.hi, term.divisor)};
        break;
      }
      case AtomKind::kMod: {
        const Interval inner = range_within(*term.inner, ranges);
        const std::int64_t period = floor_quotient(inner.lo, term.divisor);
        atom = {0, term.divisor - 1};
        if (floor_quotient(inner.hi, term.divisor) == period)
          atom = {inner.lo - period * term.divisor, inner.hi - period * term.divisor};
        break;
      }
    }
    const std::int64_t a = term.coefficient * atom.lo, b = term.coefficient * atom.hi;
    sum.lo += std::min(a, b);
    sum.hi += std::max(a, b);
  }
  return sum;
}

IndexExpr substitute(const IndexExpr& expr, const LeafSubstitution& leaf, const AtomRanges* ranges) {
  if (const auto& terms = expr.terms;
      expr.constant == 0 && terms.size() == 1 && terms[0].coefficient == 1 && !is_compound(terms[0])) {
    IndexExpr alone = leaf(terms[0].kind, terms[0].id);
    if (alone.terms.size() > 1) canonicalize_sum(alone, ranges);
    return alone;
  }
  IndexExpr sum = IndexExpr::value(expr.constant);
  for (const IndexTerm& term : expr.terms) {
    if (!is_compound(term)) {
      append_scaled(sum, leaf(term.kind, term.id), term.coefficient);
      continue;
    }
    const IndexExpr inner = substitute(*term.inner, leaf, ranges);
    append_scaled(sum,
                  term.kind == AtomKind::kFloorDiv ? floordiv_within(inner, term.divisor, ranges)
                                                   : mod_within(inner, term.divisor, ranges),
                  term.coefficient);
  }
  canonicalize_sum(sum, ranges);
  return sum;
}

IndexExpr simplify_within(const IndexExpr& expr, const AtomRanges& ranges) {
  return substitute(
      expr,
      [&ranges](AtomKind kind, int id) {
        const std::vector<Interval>& list = kind == AtomKind::kDim      ? ranges.dims
                                            : kind == AtomKind::kSymbol ? ranges.symbols
                                                                        : ranges.runtime;
        SW_CHECK(id >= 0 && static_cast<std::size_t>(id) < list.size(), "atom {} of {}", id, list.size());
        const Interval range = list[static_cast<std::size_t>(id)];
        return range.lo == range.hi ? IndexExpr::value(range.lo) : leaf_atom(kind, id);
      },
      &ranges);
}

IndexExpr linearize(std::span<const IndexExpr> index, std::span<const std::int64_t> extents) {
  SW_CHECK(index.size() == extents.size(), "{} indices, {} extents", index.size(), extents.size());
  IndexExpr sum;
  std::int64_t stride = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    append_scaled(sum, index[i], stride);
    stride *= extents[i];
  }
  canonicalize_sum(sum, nullptr);
  return sum;
}

std::vector<IndexExpr> delinearize(const IndexExpr& linear, std::span<const std::int64_t> extents) {
  std::vector<IndexExpr> index(extents.size());
  std::int64_t stride = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    if (extents[i] > 1) {
      // The leading index needs no mod: the linear index is in bounds.
      const bool leading = std::all_of(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(i),
                                       [](std::int64_t n) { return n <= 1; });
      const IndexExpr quotient = floordiv(linear, stride);
      index[i] = leading ? quotient : mod(quotient, extents[i]);
      stride *= extents[i];
    }
  }
  return index;
}

}  // namespace stitchwork
