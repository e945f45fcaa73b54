#include "analysis/schedule/launch.h"

#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/mapping.h"
#include "analysis/schedule/layout.h"
#include "core/base/arithmetic.h"
#include "core/base/sorted.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {

namespace {

/// Kernels are launched with whole warps.
int whole_warps(int block) { return static_cast<int>(round_up(block, kWarp)); }

}  // namespace

std::int64_t registers_to_keep_in(const KernelLaunch& launch) {
  return (launch.register_bound > 0 ? launch.register_bound : kUnboundRegisters) / 2;
}

std::int64_t resident_registers(const Group& group, int block, DType dtype) {
  return group.deal.most_tasks() * Layout(group.mapping, whole_warps(block)).elements() *
         ((byte_size(dtype) + kRegisterBytes - 1) / kRegisterBytes);
}

std::int64_t resident_shared_bytes(const Group& group, int block, DType dtype) {
  return group.deal.most_tasks() * Layout(group.mapping, whole_warps(block)).elements() * whole_warps(block) *
         byte_size(dtype);
}

int accumulator_bytes(DType dtype) { return std::max(4, byte_size(dtype)); }

std::int64_t reduction_workspace_bytes(const Mapping& mapping, int block, DType dtype) {
  const Layout layout(mapping, whole_warps(block));
  if (is<mapping::Rows>(mapping))
    return layout.threads_a_row > kWarp
               ? 2 * ceil_div(block, kWarp) * layout.blocks * accumulator_bytes(dtype)
               : 0;
  if (!is<mapping::Columns>(mapping)) return 0;
  if (layout.width > 1) return layout.slices * layout.task_rows * accumulator_bytes(dtype);
  return block > layout.task_rows ? std::int64_t{block} * accumulator_bytes(dtype) : 0;
}

std::int64_t reduction_workspace_bytes(const Computation& computation, const KernelPlan& kernel) {
  std::int64_t bytes = 0;
  for (const Group& group : kernel.groups)
    for (NodeId op : materialised(group)) {
      const DType dtype = computation.node(op).shape.dtype;
      if (reduces_cols(computation, op, group))
        bytes = std::max(bytes, reduction_workspace_bytes(group.mapping, kernel.launch.block, dtype));
      if (is_across(group, op))
        bytes = std::max(bytes, std::int64_t{kernel.launch.block} * accumulator_bytes(dtype));
    }
  return bytes;
}

std::int64_t across_bytes(const Mapping& mapping, const Deal& deal, DType dtype) {
  return deal.takers * extents(mapping).cols * accumulator_bytes(dtype);
}

std::int64_t accumulator_registers(const Computation& computation, const Group& group, int block) {
  std::int64_t registers = 0;
  for (NodeId op : group.across)
    registers +=
        Layout(group.mapping, block).elements() * (accumulator_bytes(computation.node(op).shape.dtype) / 4);
  return registers;
}

std::int64_t most_accumulator_registers(int bound) {
  // A choice, not measured: half is left for addresses, arithmetic and loads in flight.
  constexpr int kShare = 2;
  return (bound > 0 ? bound : kUnboundRegisters) / kShare;
}

Dealt fold_mapping(const Mapping& mapping, const Deal& deal, int block) {
  // A warp reads a 128-byte line of 4-byte partials; where there are blocks for more tiles whole sectors of
  // several rows, so that more threads of more blocks share a column and each has fewer of its partials.
  constexpr std::int64_t kTileCols = 32, kFewestCols = 8;
  constexpr std::int64_t kMostUnrolled = 4;
  const std::int64_t cols = extents(mapping).cols;
  mapping::Columns fold{.results = cols, .length = deal.takers};
  fold.tile = std::clamp<std::int64_t>(cols, 1, std::min<std::int64_t>(kTileCols, block));
  while (fold.tile / 2 >= kFewestCols && block / fold.tile < fold.length &&
         ceil_div(cols, fold.tile / 2) <= deal.blocks())
    fold.tile /= 2;
  fold.threads = static_cast<int>(block / fold.tile);
  // Partials come from the L2: several are in flight.
  fold.vectors.unroll =
      static_cast<int>(std::clamp<std::int64_t>(fold.length / std::max(1, fold.threads), 1, kMostUnrolled));
  return {fold, deal_to(fold, deal.blocks())};
}

std::int64_t partials_bytes(const Mapping& mapping, DType dtype) {
  return extents(mapping).rows * segments(mapping) * accumulator_bytes(dtype);
}

bool reduces_domain(const Computation& computation, NodeId reduce, const Mapping& mapping) {
  if (!is_reduction(computation.node(reduce))) return false;
  if (is<mapping::Elements>(mapping) || is<mapping::Patch>(mapping)) return false;
  const ReductionSize shape = reduction_size(computation, reduce);
  return Extents{shape.rows, shape.cols} == extents(mapping);
}

bool is_across(const Group& group, NodeId op) { return contains_sorted(group.across, op); }

bool leaves_partials(const Computation& computation, const Group& group, NodeId op) {
  return is_across(group, op) ||
         (combines_partials(group.mapping) && reduces_domain(computation, op, group.mapping));
}

std::int64_t partials_of(const Computation& computation, const KernelPlan& kernel, NodeId op) {
  if (!is_reduction(computation.node(op))) return 0;
  for (const Group& group : kernel.groups) {
    const bool made =
        is_across(group, op) || op == group.dominant || contains_sorted(group.sub_dominants, op);
    if (made && leaves_partials(computation, group, op))
      return is_across(group, op) ? group.deal.takers : segments(group.mapping);
  }
  return 0;
}

bool reduces_cols(const Computation& computation, NodeId reduce, const Group& group) {
  return !is_across(group, reduce) && reduces_domain(computation, reduce, group.mapping);
}

}  // namespace stitchwork
