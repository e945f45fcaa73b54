#include "core/passes/fold_transposes.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/graph/rewrite.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

std::int64_t wide_dims(const Shape& shape) {
  return std::ranges::count_if(shape.dims, [](std::int64_t dim) { return dim != 1; });
}

/// Whether the dimensions that are left to the product keep their order without the transpose.
bool keeps_order(const Node& transpose, const Dims& contracting) {
  std::int64_t last = -1;
  for (std::size_t d = 0; d < transpose.shape.dims.size(); ++d) {
    if (transpose.shape.dims[d] == 1 || std::ranges::count(contracting, static_cast<std::int64_t>(d)) > 0)
      continue;
    if (transpose.attrs.dimensions[d] < last) return false;
    last = transpose.attrs.dimensions[d];
  }
  return true;
}

/// The dimensions that are left, of what is transposed, each by its extent: what the product's shape has.
Dims left_extents(const Shape& shape, const Dims& contracting) {
  Dims extents;
  for (std::size_t d = 0; d < shape.dims.size(); ++d)
    if (std::ranges::count(contracting, static_cast<std::int64_t>(d)) == 0) extents.push_back(shape.dims[d]);
  return extents;
}

/// Reads what a transpose reads in its place, as often as one stands before the operand.
void read_source(const Computation& computation, Node& dot, std::size_t side, Dims& contracting) {
  for (;;) {
    const Node& transpose = computation.node(dot.operands[side]);
    if (transpose.op != Op::kTranspose || wide_dims(transpose.shape) > 2) return;
    const Shape& source = computation.node(transpose.operands[0]).shape;
    Dims moved;
    for (const std::int64_t dim : contracting)
      moved.push_back(transpose.attrs.dimensions[static_cast<std::size_t>(dim)]);
    if (!keeps_order(transpose, contracting) ||
        left_extents(transpose.shape, contracting) != left_extents(source, moved))
      return;
    dot.operands[side] = transpose.operands[0];
    contracting = std::move(moved);
  }
}

Computation without_transposes(const Computation& given, OpTrace* trace) {
  Computation computation = given;
  std::vector<NodeId> reader(given.nodes.size(), kNoNode);  // the product that reads in a transpose's place
  for (Node& node : computation.nodes) {
    if (node.op != Op::kDot || !node.attrs.dot || !node.attrs.dot->lhs_batch.empty()) continue;
    read_source(given, node, 0, node.attrs.dot->lhs_contracting);
    read_source(given, node, 1, node.attrs.dot->rhs_contracting);
    for (const NodeId operand : given.node(node.id).operands)
      if (std::ranges::count(node.operands, operand) == 0) reader[at(operand)] = node.id;
  }
  std::vector<bool> keep(given.nodes.size(), true);
  const auto users = computation.users();
  for (auto node = computation.nodes.rbegin(); node != computation.nodes.rend(); ++node) {
    if (reader[at(node->id)] == kNoNode || node->id == computation.root) continue;
    keep[at(node->id)] =
        std::ranges::any_of(users[at(node->id)], [&](NodeId user) { return keep[at(user)]; });
    if (!keep[at(node->id)] && trace != nullptr)
      trace->add(OpChange::kRewritten, {given.name, node->name},
                 {{given.name, given.node(reader[at(node->id)]).name}});
  }
  return rewritten(computation, no_replacement(computation), keep);
}

}  // namespace

Graph fold_transposes(const Graph& graph, OpTrace* trace) {
  Graph result = head_of(graph);
  for (const Computation& computation : graph.computations)
    result.computations.push_back(without_transposes(computation, trace));
  return result;
}

}  // namespace stitchwork
