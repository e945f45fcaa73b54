// What launches need beyond the mapping: the shared memory a block reduces through, and its place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "analysis/plan.h"

namespace stitchwork {

/// With more buffers than this, none is an argument of the kernel: their addresses stand in a table in device
/// memory (codegen/table.h). Arguments take at most 4,096 bytes, 512 pointers (CUDA C++ Programming Guide,
/// "function parameters": 32,764 bytes only from CUDA 12.1 on and sm_70 on); scratch, barrier and table need
/// room, too.
constexpr std::size_t kMostPointerArguments = 400;

/// Bytes one partial result of a reduction of `dtype` takes: 16-bit floats accumulate in fp32, predicates and
/// short integers in 32 bits.
int accumulator_bytes(DType dtype);

/// Shared memory in which the threads of a block of `block` threads combine one reduction under `mapping`:
/// row_pack and row_split: one accumulator a warp, where a row has more than one warp; column: one
/// accumulator a thread, where a row has more than one; else none. A kernel has one workspace, as large as
/// its largest reduction needs; reductions use it one after the other.
std::int64_t reduction_workspace_bytes(const ThreadMapping& mapping, int block, DType dtype);

/// The largest `reduction_workspace_bytes` of the kernel's materialised reductions.
std::int64_t reduction_workspace_bytes(const Computation& computation, const KernelPlan& kernel);

/// Bytes of scratch that the partials of a split reduction of `dtype` take: rows * split accumulators.
std::int64_t partials_bytes(const ThreadMapping& mapping, DType dtype);

/// Whether a reduce with this mapping is computed by the group's threads together over the domain's cols (and
/// not by one thread alone inside an element-wise domain).
bool reduces_domain(const Computation& computation, NodeId reduce, const ThreadMapping& mapping);

}  // namespace stitchwork
