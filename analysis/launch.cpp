#include "analysis/launch.h"

#include <algorithm>

#include "analysis/assemble.h"
#include "analysis/facts.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/mapping.h"
#include "core/arithmetic.h"
#include "core/sorted.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {

namespace {

/// Kernels are launched with whole warps.
int whole_warps(int block) { return static_cast<int>(round_up(block, kWarp)); }

}  // namespace

std::int64_t registers_to_keep_in(const KernelLaunch& launch) {
  return (launch.register_bound > 0 ? launch.register_bound : kUnboundRegisters) / 2;
}

std::int64_t resident_registers(const ThreadMapping& mapping, int block, DType dtype) {
  return mapping.tasks_per_block * Layout(mapping, whole_warps(block)).elements() *
         ((byte_size(dtype) + kRegisterBytes - 1) / kRegisterBytes);
}

std::int64_t resident_shared_bytes(const ThreadMapping& mapping, int block, DType dtype) {
  return mapping.tasks_per_block * Layout(mapping, whole_warps(block)).elements() * whole_warps(block) *
         byte_size(dtype);
}

int accumulator_bytes(DType dtype) { return std::max(4, byte_size(dtype)); }

std::int64_t reduction_workspace_bytes(const Mapping& mapping, int block, DType dtype) {
  const Layout layout(mapping, whole_warps(block));
  if (std::holds_alternative<mapping::Rows>(mapping))
    return layout.threads_a_row > kWarp
               ? 2 * ceil_div(block, kWarp) * layout.blocks * accumulator_bytes(dtype)
               : 0;
  if (!std::holds_alternative<mapping::Columns>(mapping)) return 0;
  if (layout.width > 1) return layout.slices * layout.task_rows * accumulator_bytes(dtype);
  return block > layout.task_rows ? std::int64_t{block} * accumulator_bytes(dtype) : 0;
}

std::int64_t reduction_workspace_bytes(const Computation& computation, const KernelPlan& kernel) {
  std::int64_t bytes = 0;
  for (const Group& group : kernel.groups)
    for (NodeId op : materialised(group)) {
      const DType dtype = computation.node(op).shape.dtype;
      if (reduces_cols(computation, op, group))
        bytes =
            std::max(bytes, reduction_workspace_bytes(to_mapping(group.mapping), kernel.launch.block, dtype));
      if (is_across(group, op))
        bytes = std::max(bytes, std::int64_t{kernel.launch.block} * accumulator_bytes(dtype));
    }
  return bytes;
}

std::int64_t across_bytes(const ThreadMapping& mapping, DType dtype) {
  return to_deal(mapping).takers * mapping.cols * accumulator_bytes(dtype);
}

std::int64_t accumulator_registers(const Computation& computation, const Group& group, int block) {
  std::int64_t registers = 0;
  for (NodeId op : group.across)
    registers +=
        Layout(group.mapping, block).elements() * (accumulator_bytes(computation.node(op).shape.dtype) / 4);
  return registers;
}

std::int64_t most_accumulator_registers(int bound) {
  constexpr int kShare = 2;
  return (bound > 0 ? bound : kUnboundRegisters) / kShare;
}

ThreadMapping fold_mapping(const ThreadMapping& mapping, int block) {
  // A warp reads a 128-byte line of 4-byte partials; where there are blocks for more tiles whole sectors of
  // several rows, so that more threads of more blocks share a column and each has fewer of its partials.
  constexpr std::int64_t kTileCols = 32, kFewestCols = 8;
  constexpr std::int64_t kMostUnrolled = 4;
  ThreadMapping fold;
  fold.kind = MappingKind::kColumn;
  fold.rows = mapping.cols;
  fold.cols = to_deal(mapping).takers;
  fold.rows_per_block = std::clamp<std::int64_t>(mapping.cols, 1, std::min<std::int64_t>(kTileCols, block));
  while (fold.rows_per_block / 2 >= kFewestCols && block / fold.rows_per_block < fold.cols &&
         ceil_div(mapping.cols, fold.rows_per_block / 2) <= mapping.blocks)
    fold.rows_per_block /= 2;
  fold.threads_per_row = static_cast<int>(block / fold.rows_per_block);
  // Partials come from the L2: several are in flight.
  fold.unroll = static_cast<int>(
      std::clamp<std::int64_t>(fold.cols / std::max(1, fold.threads_per_row), 1, kMostUnrolled));
  fold.tasks = (fold.rows + fold.rows_per_block - 1) / fold.rows_per_block;
  fold.blocks = std::min(fold.tasks, mapping.blocks);
  fold.tasks_per_block = (fold.tasks + fold.blocks - 1) / fold.blocks;
  return fold;
}

std::int64_t partials_bytes(const ThreadMapping& mapping, DType dtype) {
  return mapping.rows * mapping.split * accumulator_bytes(dtype);
}

bool reduces_domain(const Computation& computation, NodeId reduce, const ThreadMapping& mapping) {
  if (def(computation.node(reduce).op).cls != OpClass::kReduce) return false;
  if (mapping.kind == MappingKind::kElementwise || mapping.kind == MappingKind::kTile) return false;
  const ReductionSize shape = reduction_size(computation, reduce);
  return shape.rows == mapping.rows && shape.cols == mapping.cols;
}

bool is_across(const Group& group, NodeId op) { return contains_sorted(group.across, op); }

bool leaves_partials(const Computation& computation, const Group& group, NodeId op) {
  const ThreadMapping& m = group.mapping;
  return is_across(group, op) ||
         (m.combine == Combine::kPartials && m.split > 1 && reduces_domain(computation, op, m));
}

std::int64_t partials_of(const Computation& computation, const KernelPlan& kernel, NodeId op) {
  for (const Group& group : kernel.groups) {
    const bool made =
        is_across(group, op) || op == group.dominant || contains_sorted(group.sub_dominants, op);
    if (made && leaves_partials(computation, group, op))
      return is_across(group, op) ? to_deal(group.mapping).takers : group.mapping.split;
  }
  return 0;
}

bool reduces_cols(const Computation& computation, NodeId reduce, const Group& group) {
  return !is_across(group, reduce) && reduces_domain(computation, reduce, group.mapping);
}

}  // namespace stitchwork
