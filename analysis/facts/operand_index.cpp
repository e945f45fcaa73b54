#include "analysis/facts/operand_index.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/graph/op.h"
#include "core/index/index_ranges.h"

namespace stitchwork {
namespace {

/// Calls `visit` with every expression of the map.
template <typename F>
void for_each_expr(const IndexMap& map, F visit) {
  for (const IndexExpr& e : map.results) visit(e);
  for (const Constraint& c : map.constraints) visit(c.expr);
  for (const RuntimeVariable& r : map.runtime)
    for (const IndexExpr& e : r.index) visit(e);
}

}  // namespace

bool uses_dims_from(const IndexMap& map, std::size_t first) {
  bool used = false;
  for_each_expr(map, [&](const IndexExpr& e) {
    for (std::size_t d = first; d < map.dims.size(); ++d) used = used || e.uses_dim(static_cast<int>(d));
  });
  return used;
}

int last_runtime(const IndexExpr& expr) {
  int last = -1;
  for (const IndexTerm& term : expr.terms) {
    if (term.kind == AtomKind::kRuntime) last = std::max(last, term.id);
    if (term.inner) last = std::max(last, last_runtime(*term.inner));
  }
  return last;
}

IndexMap replace_symbols(IndexMap map, const std::vector<IndexExpr>& with) {
  const auto leaf = [&](AtomKind kind, int id) -> IndexExpr {
    if (kind == AtomKind::kSymbol) return with.at(static_cast<std::size_t>(id));
    return kind == AtomKind::kDim ? IndexExpr::dim(id) : IndexExpr::runtime(id);
  };
  const auto apply = [&](IndexExpr& e) { e = substitute(e, leaf, nullptr); };
  for (IndexExpr& e : map.results) apply(e);
  for (Constraint& c : map.constraints) apply(c.expr);
  for (RuntimeVariable& r : map.runtime)
    for (IndexExpr& e : r.index) apply(e);
  map.symbols.clear();
  return simplify(std::move(map));
}

IndexMap read_map(const Computation& computation, const Node& node, int operand, const IndexMap& map) {
  const auto& read = operand_map(computation, node.id, operand);
  SW_CHECK(read.has_value(), "{} ({}) has no index map: it cannot be generated", node.name,
           def(node.op).name);
  return read->is_identity() ? map : compose(map, *read);
}

int depth_of(const IndexMap& map) {
  int depth = 0;
  for_each_expr(map, [&](const IndexExpr& e) {
    if (e.uses_dim(1)) depth = 2;
    if (e.uses_dim(0)) depth = std::max(depth, 1);
  });
  return depth;
}

IndexMap reduced_operand_map(const Computation& computation, const Node& reduce, int operand,
                             const IndexMap& result) {
  const IndexMap map = read_map(computation, reduce, operand, result);
  return replace_symbols(map, delinearize(IndexExpr::dim(1), map.symbols));
}

}  // namespace stitchwork
