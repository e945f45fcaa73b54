#include "analysis/forms/across.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/plan/mapping.h"
#include "analysis/schedule/launch.h"

namespace stitchwork::astitch {

std::set<NodeId> reductions_across(const Nodes& nodes, const StitchOp& op, const Options& options) {
  std::set<NodeId> result;
  if (!options.across_rows || !options.data_reuse || !options.exhaustive_stitching ||
      !options.dominant_merging)
    return result;
  const Constraints& wanted = options.constraints;
  if (Constraints::find(wanted.schemes, op.members) != nullptr ||
      Constraints::find(wanted.split_factor, op.members) != nullptr)
    return result;
  for (const NodeId id : op.members) {
    if (!nodes[id].reduction) continue;
    const ReductionShape& shape = *nodes[id].reduction;
    if (shape.row_reduce || shape.rows < 2 || shape.cols < 2 || is_product(nodes.node(id))) continue;
    if (!nodes[nodes.node(id).operands[1]].immediate) continue;
    const bool crossed = std::any_of(op.members.begin(), op.members.end(), [&](NodeId other) {
      if (!nodes[other].reduction) return false;
      const ReductionShape& rows = *nodes[other].reduction;
      return rows.row_reduce && rows.rows == shape.cols && rows.cols == shape.rows;
    });
    if (crossed) result.insert(id);
  }
  return result;
}

int accumulators_of(const Nodes& nodes, const std::set<NodeId>& across) {
  int registers = 0;
  for (const NodeId id : across) registers += accumulator_bytes(nodes.node(id).shape.dtype) / 4;
  return registers;
}

Verdict accumulators_fit(const Nodes& nodes, const KernelPlan& kernel) {
  for (const Group& group : kernel.groups) {
    const std::int64_t needed = accumulator_registers(*nodes.computation, group, kernel.launch.block);
    const std::int64_t most = most_accumulator_registers(kernel.launch.register_bound);
    if (needed > most)
      return Verdict::no("astitch.across-rows",
                         fmt::format("{} registers of accumulators a thread, at most {} of {}", needed, most,
                                     kernel.launch.register_bound));
  }
  return Verdict::yes();
}

std::string across_numbers(const Nodes& nodes, const KernelPlan& kernel, double with_us, double without_us) {
  std::int64_t reductions = 0, takers = 0, bytes = 0;
  for (const Group& group : kernel.groups)
    for (const NodeId id : group.across) {
      ++reductions;
      takers = group.deal.takers;
      bytes += across_bytes(group.mapping, group.deal, nodes.node(id).shape.dtype);
    }
  return fmt::format(
      "{} reductions across the rows in {} partials each, {} bytes: {:.2f} us; in groups of their own {:.2f} "
      "us",
      reductions, takers, bytes, with_us, without_us);
}

}  // namespace stitchwork::astitch
