#include "analysis/launch.h"

#include <algorithm>

#include "analysis/assemble.h"
#include "analysis/facts.h"
#include "analysis/vectors.h"

namespace stitchwork {

namespace {

/// Without a bound a thread is taken to have this many registers: full occupancy of 1,024 threads an SM.
constexpr int kUnboundRegisters = 64;

/// Kernels are launched with whole warps.
int whole_warps(int block) { return (block + 31) / 32 * 32; }

}  // namespace

std::int64_t registers_to_keep_in(const KernelLaunch& launch) {
  return (launch.register_bound > 0 ? launch.register_bound : kUnboundRegisters) / 2;
}

std::int64_t resident_registers(const ThreadMapping& mapping, int block, DType dtype) {
  return mapping.tasks_per_block * elements_per_thread(mapping, whole_warps(block)) *
         ((byte_size(dtype) + kRegisterBytes - 1) / kRegisterBytes);
}

std::int64_t resident_shared_bytes(const ThreadMapping& mapping, int block, DType dtype) {
  return mapping.tasks_per_block * elements_per_thread(mapping, whole_warps(block)) * whole_warps(block) *
         byte_size(dtype);
}

int accumulator_bytes(DType dtype) { return std::max(4, byte_size(dtype)); }

std::int64_t reduction_workspace_bytes(const ThreadMapping& mapping, int block, DType dtype) {
  switch (mapping.kind) {
    case MappingKind::kRowPack:
    case MappingKind::kRowSplit:
      return mapping.threads_per_row > 32 ? std::int64_t{(block + 31) / 32} * accumulator_bytes(dtype) : 0;
    case MappingKind::kColumn:
      return block > mapping.rows_per_block ? std::int64_t{block} * accumulator_bytes(dtype) : 0;
    case MappingKind::kElementwise:
    case MappingKind::kRowSerial:
      return 0;
  }
  return 0;
}

std::int64_t reduction_workspace_bytes(const Computation& computation, const KernelPlan& kernel) {
  std::int64_t bytes = 0;
  for (const Group& group : kernel.groups)
    for (NodeId op : materialised(group))
      if (reduces_domain(computation, op, group.mapping))
        bytes = std::max(bytes, reduction_workspace_bytes(group.mapping, kernel.launch.block,
                                                          computation.node(op).shape.dtype));
  return bytes;
}

std::int64_t partials_bytes(const ThreadMapping& mapping, DType dtype) {
  return mapping.rows * mapping.split * accumulator_bytes(dtype);
}

bool reduces_domain(const Computation& computation, NodeId reduce, const ThreadMapping& mapping) {
  if (def(computation.node(reduce).op).cls != OpClass::kReduce) return false;
  if (mapping.kind == MappingKind::kElementwise) return false;
  const ReductionShape shape = reduction_shape(computation, reduce);
  return shape.rows == mapping.rows && shape.cols == mapping.cols;
}

}  // namespace stitchwork
