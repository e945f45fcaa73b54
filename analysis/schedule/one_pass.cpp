#include "analysis/schedule/one_pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/stages.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace {

/// A broadcast of what has no place along the reduced dimensions.
bool spreads_rows(const Node& node, const std::vector<std::int64_t>& reduced) {
  if (node.op != Op::kBroadcast) return false;
  return std::none_of(node.attrs.dimensions.begin(), node.attrs.dimensions.end(), [&](std::int64_t d) {
    return std::find(reduced.begin(), reduced.end(), d) != reduced.end();
  });
}

/// Whether `id` is the sum of `x`, times or over constants.
bool is_scaled_sum(const Graph& graph, NodeId id, NodeId x) {
  const Computation& computation = graph.entry_computation();
  for (;;) {
    const Node& node = computation.node(id);
    switch (node.op) {
      case Op::kReduce:
        return node.operands.size() == 2 && node.operands[0] == x &&
               simple_reducer(graph, applied(node)) == Op::kAdd;
      case Op::kReshape:
      case Op::kBitcast:
        id = node.operands[0];
        break;
      case Op::kMultiply:
        if (is_immediate(computation, node.operands[0]) == is_immediate(computation, node.operands[1]))
          return false;
        id = node.operands[is_immediate(computation, node.operands[0]) ? 1 : 0];
        break;
      case Op::kDivide:
        if (!is_immediate(computation, node.operands[1])) return false;
        id = node.operands[0];
        break;
      default:
        return false;
    }
  }
}

}  // namespace

std::optional<OnePassForm> one_pass_form(const Graph& graph, NodeId reduce) {
  const Computation& computation = graph.entry_computation();
  const Node& node = computation.node(reduce);
  if (node.op != Op::kReduce || node.operands.size() != 2) return std::nullopt;
  const DType dtype = node.shape.dtype;
  if ((dtype != DType::kF32 && dtype != DType::kF64) || simple_reducer(graph, applied(node)) != Op::kAdd)
    return std::nullopt;
  const Node& term = computation.node(node.operands[0]);
  const bool exponentials = term.op == Op::kExp;
  const bool squares = term.op == Op::kMultiply && term.operands[0] == term.operands[1];
  if (!exponentials && !squares) return std::nullopt;
  const Node& difference = computation.node(term.operands[0]);
  if (difference.op != Op::kSubtract) return std::nullopt;
  const auto form = [&](std::size_t x, std::size_t c) -> std::optional<OnePassForm> {
    const Node& of_row = computation.node(difference.operands[c]);
    if (!spreads_rows(of_row, node.attrs.dimensions)) return std::nullopt;
    if (squares && !is_scaled_sum(graph, of_row.operands[0], difference.operands[x])) return std::nullopt;
    return OnePassForm{exponentials ? OnePassKind::kExponentials : OnePassKind::kSquares,
                       difference.operands[x], of_row.id};
  };
  if (auto found = form(0, 1)) return found;
  return squares ? form(1, 0) : std::nullopt;
}

Verdict can_gather(const Graph& graph, const KernelPlan& kernel, const Group& group, NodeId reduce) {
  const Computation& computation = graph.entry_computation();
  const auto no = [&](std::string_view why) {
    return Verdict::no("one-pass", fmt::format("{} {}", computation.node(reduce).name, why));
  };
  if (!packs_rows(group.mapping)) return no("is not reduced by rows of a block each");
  const std::vector<NodeId> made = materialised(group);
  if (!std::binary_search(made.begin(), made.end(), reduce) || !reduces_cols(computation, reduce, group))
    return no("is no reduction of the group's rows");
  const auto form = one_pass_form(graph, reduce);
  if (!form) return no("is no sum of exp(x - c) or (x - c)^2");
  const Stages stages(computation, kernel, kernel.levels.at(reduce));
  if (!stages.shared_reads(form->x).empty()) return no("sums what is known only behind another reduction");
  std::vector<NodeId> open = stages.shared_reads(form->c);
  while (!open.empty()) {
    const NodeId value = open.back();
    open.pop_back();
    if (!std::binary_search(made.begin(), made.end(), value)) continue;
    if (reduces_cols(computation, value, group)) {
      if (!contains_sorted(group.one_pass, value)) return Verdict::yes();
      continue;
    }
    for (const NodeId operand : computation.node(value).operands)
      for (const NodeId read : stages.shared_reads(operand)) open.push_back(read);
  }
  return no("waits for no reduction of the group's rows");
}

}  // namespace stitchwork
