#include "core/index/index_hash.h"

namespace stitchwork {
namespace {

/// FNV-1a, a number at a time (Fowler, Noll and Vo).
void add(std::uint64_t& hash, std::int64_t number) {
  hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x100000001b3u;
}

void add(std::uint64_t& hash, const IndexExpr& expr) {
  add(hash, expr.constant);
  for (const IndexTerm& term : expr.terms) {
    add(hash, term.coefficient);
    add(hash, term.divisor);
    add(hash, static_cast<std::int64_t>(term.kind));
    add(hash, term.id);
    if (term.inner) add(hash, *term.inner);
  }
}

}  // namespace

std::uint64_t hash_of(const IndexMap& map) {
  std::uint64_t hash = map.results.size();
  for (const IndexExpr& result : map.results) add(hash, result);
  for (const Constraint& constraint : map.constraints) {
    add(hash, constraint.expr);
    add(hash, constraint.range.lo);
    add(hash, constraint.range.hi);
  }
  return hash;
}

}  // namespace stitchwork
