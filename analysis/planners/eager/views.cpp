#include "analysis/planners/eager/views.h"

#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "core/base/sorted.h"
#include "core/index/index_map.h"
#include "core/index/strided.h"

namespace stitchwork::eager {
namespace {

bool moves_by_strides(Op op) { return op == Op::kTranspose || op == Op::kBroadcast || op == Op::kSlice; }

}  // namespace

std::optional<std::vector<std::int64_t>> reshaped_strides(const std::vector<std::int64_t>& from,
                                                          const std::vector<std::int64_t>& strides,
                                                          const std::vector<std::int64_t>& to) {
  if (from.empty() || std::ranges::count(from, 0) != 0) return strides_of(to);
  std::vector<std::int64_t> result(to.size(), 1);
  std::size_t left = to.size();  // of `to`, those without a stride yet
  std::int64_t innermost = strides.back(), have = 1, given = 1;
  for (std::size_t d = from.size(); d-- > 0;) {
    have *= from[d];
    // A run of dimensions that one stride goes through ends here.
    if (d > 0 && (from[d - 1] == 1 || strides[d - 1] == have * innermost)) continue;
    while (left > 0 && (given < have || to[left - 1] == 1)) {
      result[--left] = given * innermost;
      given *= to[left];
    }
    if (given != have) return std::nullopt;
    if (d > 0) innermost = strides[d - 1];
    have = given = 1;
  }
  return left == 0 ? std::optional(result) : std::nullopt;
}

Views::Views(const Graph& graph)
    : computation_(graph.entry_computation()), facts_(computation_.nodes.size()) {
  for (const Node& node : computation_.nodes) find_strides(node);
  for (const Node& node : computation_.nodes) find_dense(node);
  for (const NodeId value : values_read(computation_, computation_.root)) want(value, computation_.root);
}

void Views::find_strides(const Node& node) {
  Facts& facts = at(node.id);
  if (node.shape.is_tuple) return;
  const bool immediate = is_immediate(computation_, node.id);
  const PlanRole role = plan_role(node);
  facts.view = role == PlanRole::kMemory && (immediate || moves_by_strides(node.op));
  facts.strides = strides_of(node.shape.dims);
  if (immediate || node.operands.empty() || buffer_of(computation_, node.id) == node.id) {
    if (!facts.view || immediate) return;
    const Node& operand = computation_.node(node.operands[0]);
    const std::vector<std::int64_t>& from = at(operand.id).strides;
    const std::vector<std::int64_t>& dims = node.attrs.dimensions;
    for (std::size_t d = 0; d < facts.strides.size(); ++d) {
      if (node.op == Op::kTranspose) {
        facts.strides[d] = from[static_cast<std::size_t>(dims[d])];
      } else if (node.op == Op::kSlice) {
        facts.strides[d] = from[d] * node.attrs.slice[d].stride;
      } else {
        const auto axis = std::ranges::find(dims, static_cast<std::int64_t>(d));
        facts.strides[d] = axis == dims.end() ? 0 : from[static_cast<std::size_t>(axis - dims.begin())];
      }
    }
    return;
  }
  // Another name. Where no strides give it its shape the framework copies what it names.
  const Node& operand = computation_.node(node.operands[0]);
  if (auto strides = reshaped_strides(operand.shape.dims, at(operand.id).strides, node.shape.dims)) {
    facts.strides = std::move(*strides);
    return;
  }
  const NodeId owner = buffer_of(computation_, operand.id);
  want(owner, node.id);
  at(owner).reshaped = true;
}

void Views::want(NodeId value, NodeId reader) {
  Facts& facts = at(value);
  if (facts.view && facts.dense_for == kNoNode) facts.dense_for = reader;
}

void Views::find_dense(const Node& node) {
  const PlanRole role = plan_role(node);
  if (role == PlanRole::kLibrary || role == PlanRole::kOpaque) {
    for (const NodeId value : library_inputs(computation_, node)) want(value, node.id);
    return;
  }
  if (role != PlanRole::kMemory) return;
  const bool maps = reads_by_maps(node);
  for (const NodeId operand : node.operands) {
    const NodeId owner = buffer_of(computation_, operand);
    if (is_immediate(computation_, operand)) continue;
    if (!maps) {
      want(owner, node.id);
      at(owner).reshaped = true;
    }
    // An element of a tuple is read from its buffer.
    if (plan_role(computation_.node(owner)) == PlanRole::kAlias)
      for (const NodeId value : values_read(computation_, owner)) want(value, node.id);
  }
}

/// Whether generated code reads the op's operands by index maps, which go through views.
bool Views::reads_by_maps(const Node& node) const {
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    if (is_read_through(buffer_of(computation_, node.operands[i])) &&
        !operand_map(computation_, node.id, static_cast<int>(i)))
      return false;
  return true;
}

bool Views::is_copy_step(const Node& node) const {
  return node.op == Op::kCopy && !is_read_through(buffer_of(computation_, node.operands[0]));
}

std::vector<NodeId> Views::with_views(std::span<const NodeId> ops) const {
  std::vector<NodeId> result(ops.begin(), ops.end()), open = result;
  while (!open.empty()) {
    const NodeId op = open.back();
    open.pop_back();
    for (const NodeId operand : computation_.node(op).operands) {
      const NodeId owner = buffer_of(computation_, operand);
      if (is_immediate(computation_, operand) || !is_read_through(owner) || contains_sorted(result, owner))
        continue;
      insert_sorted(result, owner);
      open.push_back(owner);
    }
  }
  return result;
}

}  // namespace stitchwork::eager
