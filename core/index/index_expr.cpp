// Index expressions as values: order, construction, evaluation, text. Their arithmetic is in
// index_arithmetic.cpp.
#include <algorithm>

#include "core/base/error.h"
#include "core/index/index_ranges.h"

namespace stitchwork {

std::strong_ordering compare_atoms(const IndexTerm& a, const IndexTerm& b) {
  if (auto c = a.kind <=> b.kind; c != 0) return c;
  if (auto c = a.id <=> b.id; c != 0) return c;
  if (auto c = a.divisor <=> b.divisor; c != 0) return c;
  if (a.inner == b.inner) return std::strong_ordering::equal;
  if (!a.inner || !b.inner) return (a.inner != nullptr) <=> (b.inner != nullptr);
  return *a.inner <=> *b.inner;
}
IndexExpr leaf_atom(AtomKind kind, int id) {
  IndexExpr expr;
  expr.terms.push_back({.coefficient = 1, .kind = kind, .id = id, .divisor = 1, .inner = nullptr});
  return expr;
}

bool IndexTerm::operator==(const IndexTerm& other) const {
  return coefficient == other.coefficient && kind == other.kind && id == other.id &&
         divisor == other.divisor &&
         (inner == other.inner || (inner && other.inner && *inner == *other.inner));
}

std::strong_ordering IndexTerm::operator<=>(const IndexTerm& other) const {
  if (auto c = compare_atoms(*this, other); c != 0) return c;
  return coefficient <=> other.coefficient;
}

bool IndexExpr::operator==(const IndexExpr& other) const {
  return constant == other.constant && terms == other.terms;
}

std::strong_ordering IndexExpr::operator<=>(const IndexExpr& other) const {
  if (auto c = std::lexicographical_compare_three_way(terms.begin(), terms.end(), other.terms.begin(),
                                                      other.terms.end());
      c != 0)
    return c;
  return constant <=> other.constant;
}

IndexExpr IndexExpr::value(std::int64_t constant) {
  IndexExpr expr;
  expr.constant = constant;
  return expr;
}
IndexExpr IndexExpr::dim(int i) { return leaf_atom(AtomKind::kDim, i); }
IndexExpr IndexExpr::symbol(int i) { return leaf_atom(AtomKind::kSymbol, i); }
IndexExpr IndexExpr::runtime(int i) { return leaf_atom(AtomKind::kRuntime, i); }

std::optional<int> IndexExpr::as_dim() const {
  if (constant != 0 || terms.size() != 1) return std::nullopt;
  const IndexTerm& term = terms.front();
  if (term.kind != AtomKind::kDim || term.coefficient != 1) return std::nullopt;
  return term.id;
}

namespace {
template <typename Predicate>
bool any_leaf(const IndexExpr& expr, const Predicate& predicate) {
  return std::any_of(expr.terms.begin(), expr.terms.end(), [&](const IndexTerm& term) {
    return is_compound(term) ? any_leaf(*term.inner, predicate) : predicate(term);
  });
}
}  // namespace

bool IndexExpr::uses_dim(int i) const {
  return any_leaf(*this, [i](const IndexTerm& t) { return t.kind == AtomKind::kDim && t.id == i; });
}
bool IndexExpr::uses_symbols() const {
  return any_leaf(*this, [](const IndexTerm& t) { return t.kind == AtomKind::kSymbol; });
}
bool IndexExpr::uses_runtime() const {
  return any_leaf(*this, [](const IndexTerm& t) { return t.kind == AtomKind::kRuntime; });
}

std::int64_t evaluate(const IndexExpr& expr, std::span<const std::int64_t> dims,
                      std::span<const std::int64_t> symbols, std::span<const std::int64_t> runtime) {
  const auto leaf = [](std::span<const std::int64_t> list, int id) {
    SW_CHECK(id >= 0 && static_cast<std::size_t>(id) < list.size(), "atom {} of {}", id, list.size());
    return list[static_cast<std::size_t>(id)];
  };
  std::int64_t sum = expr.constant;
  for (const IndexTerm& term : expr.terms) {
    std::int64_t atom = 0;
    switch (term.kind) {
      case AtomKind::kDim:
        atom = leaf(dims, term.id);
        break;
      case AtomKind::kSymbol:
        atom = leaf(symbols, term.id);
        break;
      case AtomKind::kRuntime:
        atom = leaf(runtime, term.id);
        break;
      case AtomKind::kFloorDiv:
        atom = floor_quotient(evaluate(*term.inner, dims, symbols, runtime), term.divisor);
        break;
      case AtomKind::kMod:
        atom = floor_remainder(evaluate(*term.inner, dims, symbols, runtime), term.divisor);
        break;
    }
    sum += term.coefficient * atom;
  }
  return sum;
}

std::string to_text(const IndexExpr& expr) {
  std::string text;
  for (const IndexTerm& term : expr.terms) {
    std::int64_t magnitude = term.coefficient;
    if (text.empty()) {
      if (magnitude < 0) text += "-";
    } else {
      text += magnitude < 0 ? " - " : " + ";
    }
    magnitude = magnitude < 0 ? -magnitude : magnitude;
    std::string atom;
    switch (term.kind) {
      case AtomKind::kDim:
        atom = fmt::format("d{}", term.id);
        break;
      case AtomKind::kSymbol:
        atom = fmt::format("s{}", term.id);
        break;
      case AtomKind::kRuntime:
        atom = fmt::format("r{}", term.id);
        break;
      case AtomKind::kFloorDiv:
      case AtomKind::kMod: {
        const IndexExpr& inner = *term.inner;
        const bool bare = inner.constant == 0 && inner.terms.size() == 1 &&
                          inner.terms.front().coefficient == 1 && !is_compound(inner.terms.front());
        atom = fmt::format("{} {} {}", bare ? to_text(inner) : "(" + to_text(inner) + ")",
                           term.kind == AtomKind::kMod ? "mod" : "floordiv", term.divisor);
        if (magnitude != 1) atom = "(" + atom + ")";
        break;
      }
    }
    text += magnitude == 1 ? atom : fmt::format("{} * {}", atom, magnitude);
  }
  if (text.empty()) return fmt::format("{}", expr.constant);
  if (expr.constant > 0) text += fmt::format(" + {}", expr.constant);
  if (expr.constant < 0) text += fmt::format(" - {}", -expr.constant);
  return text;
}

}  // namespace stitchwork
