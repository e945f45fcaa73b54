// What reductions accumulate: elements, products of elements, serial loops in a thread.
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/facts/operand_index.h"
#include "analysis/schedule/values.h"

namespace stitchwork {
namespace {

/// Where the elements of a product lie: the result's index, then what is contracted.
IndexMap with_contracted(IndexMap result, const std::vector<IndexExpr>& contracted) {
  result.results.insert(result.results.end(), contracted.begin(), contracted.end());
  return simplify(std::move(result));
}

}  // namespace

int ValueBuilder::reduced_value(const Node& node, const IndexMap& result) {
  Pending element;
  for (int i = 0; i < reduced_operands(node); ++i)
    element.needs.push_back({node.operands[static_cast<std::size_t>(i)],
                             reduced_operand_map(context_.computation, node, i, result), -1});
  element.finish = [&](Pending& p) {
    if (!is_product(node)) return p.had[0];
    const IndexMap read = read_map(context_.computation, node, 0, result);
    return multiply(node, with_contracted(result, delinearize(IndexExpr::dim(1), read.symbols)), p.had, -1);
  };
  return settle(std::move(element));
}

int ValueBuilder::initial(const Node& node, const IndexMap& map) {
  std::vector<Wanted> from = initial_values(node, map, -1);
  return from.empty() ? -1 : value(from[0].op, std::move(from[0].map), -1);
}

int ValueBuilder::multiply(const Node& product, IndexMap at, std::vector<int> factors, int scope) {
  Value v;
  v.kind = ValueKind::kApply;
  v.op = product.id;
  v.at.map = std::move(at);
  v.arguments = std::move(factors);
  return add(std::move(v), scope);
}

std::vector<ValueBuilder::Wanted> ValueBuilder::initial_values(const Node& node, const IndexMap& map,
                                                               int scope) const {
  const NodeId from = initial_value(node);
  if (from == kNoNode) return {};
  return {{from, read_map(context_.computation, node, 1, map), scope}};
}

ValueBuilder::Pending ValueBuilder::inner_reduce(const Node& node, const IndexMap& map, int scope) {
  Value v;
  v.kind = ValueKind::kInnerReduce;
  v.op = node.id;
  v.at.map = map;
  std::vector<IndexMap> reads;
  std::vector<IndexExpr> indices;
  for (int i = 0; i < reduced_operands(node); ++i) {
    IndexMap& read = reads.emplace_back(read_map(context_.computation, node, i, map));
    if (i == 0) {
      v.extents = read.symbols;
      for (std::size_t d = 0; d < v.extents.size(); ++d)
        indices.push_back(IndexExpr::dim(static_cast<int>(map.dims.size() + d)));
    }
    read.dims.insert(read.dims.end(), v.extents.begin(), v.extents.end());
    read = replace_symbols(std::move(read), indices);
  }
  IndexMap body = reads[0];
  if (is_product(node)) {
    body = map;
    body.dims = reads[0].dims;
    body = with_contracted(std::move(body), indices);
  }

  // What the loop's body needs belongs to the loop, which is there before it.
  std::vector<Wanted> needs = initial_values(node, map, scope);
  auto finish = [this, &node, made = std::move(v), reads = std::move(reads), body = std::move(body), scope,
                 initial = needs.size(), id = -1](Pending& p) mutable -> std::optional<int> {
    if (id < 0) {
      id = add(std::move(made), scope);
      std::vector<Wanted> guard = runtime_values(body, id);
      std::move(guard.begin(), guard.end(), std::back_inserter(p.needs));
      for (std::size_t i = 0; i < reads.size(); ++i)
        p.needs.push_back({node.operands[i], std::move(reads[i]), id});
      return std::nullopt;
    }
    const auto elements = p.had.end() - static_cast<std::ptrdiff_t>(reads.size());
    const auto guards = p.had.begin() + static_cast<std::ptrdiff_t>(initial);
    const int element = is_product(node) ? multiply(node, body, {elements, p.had.end()}, id) : *elements;
    Value& loop = step_.values[static_cast<std::size_t>(id)];
    loop.arguments = {element};
    loop.arguments.insert(loop.arguments.end(), p.had.begin(), guards);
    loop.guards = {{std::move(body), {guards, elements}}};
    return id;
  };
  return {{}, std::move(needs), {}, std::move(finish)};
}

}  // namespace stitchwork
