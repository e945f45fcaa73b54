// Index maps as C++ expressions.
#include <optional>

#include "codegen/print/print_text.h"
#include "core/base/arithmetic.h"
#include "core/base/error.h"

namespace stitchwork {

namespace {

std::string number_text(std::int64_t value, bool wide) {
  return wide ? fmt::format("{}LL", value) : fmt::format("{}", value);
}

/// task * `tasks` + `rest`, which is less than `bound`.
struct InTask {
  std::int64_t tasks = 0, bound = 1;
  std::string rest;
};

/// Of the term's atom; nothing of what is not dimension 0, divided again and again by what leaves tasks
/// apart.
std::optional<InTask> in_task(const IndexTerm& term, const IndexNames& names) {
  if (names.task_rows <= 1) return std::nullopt;
  if (term.kind == AtomKind::kDim)
    return term.id == 0 ? std::optional(InTask{names.task_rows, names.task_rows, "local_row"}) : std::nullopt;
  if (term.kind != AtomKind::kFloorDiv && term.kind != AtomKind::kMod) return std::nullopt;
  const IndexExpr& of = *term.inner;
  if (of.constant != 0 || of.terms.size() != 1 || of.terms[0].coefficient != 1) return std::nullopt;
  std::optional<InTask> inner = in_task(of.terms[0], names);
  if (!inner || inner->tasks % term.divisor != 0) return std::nullopt;
  if (term.kind == AtomKind::kFloorDiv) {
    inner->tasks /= term.divisor;
    inner->rest =
        inner->bound <= term.divisor ? "0" : fmt::format("sw_quotient({}, {})", inner->rest, term.divisor);
    inner->bound = ceil_div(inner->bound, term.divisor);
    return inner;
  }
  inner->tasks = 0;
  if (inner->bound > term.divisor)
    inner->rest = fmt::format("sw_remainder({}, {})", inner->rest, term.divisor);
  inner->bound = std::min(inner->bound, term.divisor);
  return inner;
}

std::string in_task_text(const InTask& at, bool wide) {
  if (at.tasks == 0) return at.rest;
  const std::string tasks =
      at.tasks == 1 ? (wide ? "(long long)task" : "task") : "task * " + number_text(at.tasks, wide);
  return at.bound == 1 ? (at.tasks == 1 ? tasks : "(" + tasks + ")")
                       : fmt::format("({} + {})", tasks, at.rest);
}

std::string atom_text(const IndexTerm& term, const IndexMap& context, const IndexNames& names) {
  switch (term.kind) {
    case AtomKind::kDim:
      return names.dims.at(static_cast<std::size_t>(term.id));
    case AtomKind::kRuntime:
      return names.runtime.at(static_cast<std::size_t>(term.id));
    case AtomKind::kFloorDiv:
    case AtomKind::kMod: {
      if (const auto at = in_task(term, names)) return in_task_text(*at, names.wide);
      const IndexExpr& inner = *term.inner;
      const bool plain = range_of(inner, context).lo >= 0;  // then unsigned division does
      const char* function = term.kind == AtomKind::kFloorDiv
                                 ? (plain ? "sw_quotient" : "sw_floor_quotient")
                                 : (plain ? "sw_remainder" : "sw_floor_remainder");
      return fmt::format("{}({}, {})", function, index_text(inner, context, names),
                         number_text(term.divisor, names.wide));
    }
    case AtomKind::kSymbol:
      break;
  }
  SW_CHECK(false, "a symbol in generated code");
}

}  // namespace

std::string index_text(const IndexExpr& expr, const IndexMap& context, const IndexNames& names) {
  std::string text;
  for (const IndexTerm& term : expr.terms) {
    const bool negative = term.coefficient < 0;
    const std::int64_t size = negative ? -term.coefficient : term.coefficient;
    if (text.empty())
      text = negative ? "-" : "";
    else
      text += negative ? " - " : " + ";
    text += atom_text(term, context, names);
    if (size != 1) text += " * " + number_text(size, names.wide);
  }
  if (text.empty()) return number_text(expr.constant, names.wide);
  if (expr.constant > 0) text += " + " + number_text(expr.constant, names.wide);
  if (expr.constant < 0) text += " - " + number_text(-expr.constant, names.wide);
  return text;
}

std::string condition_text(const IndexMap& map, const IndexNames& names) {
  // Each test stands outside the others: only the ranges of the atoms hold there.
  IndexMap context = map;
  context.constraints.clear();
  std::string text;
  const auto both = [&](const std::string& test) { text += (text.empty() ? "" : " && ") + test; };
  for (const Constraint& constraint : map.constraints) {
    const Interval possible = range_of(constraint.expr, context);
    const std::string value = index_text(constraint.expr, context, names);
    if (constraint.range.lo == constraint.range.hi) {
      both(fmt::format("{} == {}", value, number_text(constraint.range.lo, names.wide)));
      continue;
    }
    if (possible.lo < constraint.range.lo)
      both(fmt::format("{} >= {}", value, number_text(constraint.range.lo, names.wide)));
    if (possible.hi > constraint.range.hi)
      both(fmt::format("{} <= {}", value, number_text(constraint.range.hi, names.wide)));
  }
  return text;
}

}  // namespace stitchwork
