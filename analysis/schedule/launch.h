// What launches need beyond the mapping: the shared memory a block reduces through, and its place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "analysis/plan/mapping.h"
#include "analysis/plan/plan.h"
#include "occupancy_model/hardware.h"

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
/// row_pack and row_split: two accumulators a warp, of all blocks of a cluster, where a row has more than one
/// warp (one reduction after another without a barrier between them); column: one accumulator a thread, where
/// a row has more than one; else none. A kernel has one workspace, as large as
/// its largest reduction needs; reductions use it one after the other.
std::int64_t reduction_workspace_bytes(const Mapping& mapping, int block, DType dtype);

/// Registers of a thread in which values may stay from step to step: half of its bound; the other half is for
/// the arithmetic.
std::int64_t registers_to_keep_in(const KernelLaunch& launch);

/// What it takes to keep a thread's elements of a value for all the tasks of a block: registers a thread, or
/// bytes of shared memory a block of `block` threads.
std::int64_t resident_registers(const Group& group, int block, DType dtype);
std::int64_t resident_shared_bytes(const Group& group, int block, DType dtype);

/// The largest `reduction_workspace_bytes` of the kernel's materialised reductions; where a block has several
/// rows of accumulators across them, or folds, an accumulator a thread.
std::int64_t reduction_workspace_bytes(const Computation& computation, const KernelPlan& kernel);

/// Bytes of scratch that the partials of a reduction across the rows of `mapping` (Group::across) take: an
/// accumulator a col of each block, or of each cluster, whose blocks have a part of the cols each.
std::int64_t across_bytes(const Mapping& mapping, const Deal& deal, DType dtype);

/// 32-bit registers of a thread in which it accumulates the group's reductions across the rows, and the share
/// of a thread's registers that they may take (as many again may hold elements, analysis/schedule/keep.h).
/// `bound` 0: none.
std::int64_t accumulator_registers(const Computation& computation, const Group& group, int block);
std::int64_t most_accumulator_registers(int bound);

/// How the partials of a reduction across the rows of `mapping` are folded into an output: a column reduction
/// of [cols, blocks or clusters], on as many of the group's blocks as it has tiles.
Dealt fold_mapping(const Mapping& mapping, const Deal& deal, int block);

/// Bytes of scratch that the partials of a split reduction of `dtype` take: rows * split accumulators.
std::int64_t partials_bytes(const Mapping& mapping, DType dtype);

/// Whether a reduce with this mapping is computed by the group's threads together over the domain's cols (and
/// not by one thread alone inside an element-wise domain).
bool reduces_domain(const Computation& computation, NodeId reduce, const Mapping& mapping);

/// The same of an op that the group materialises: not of those across its rows.
bool reduces_cols(const Computation& computation, NodeId reduce, const Group& group);
bool is_across(const Group& group, NodeId op);

/// Whether `op`, which the group materialises, is left in partials that its readers fold: a split reduction
/// that does not combine atomically, or one across the rows.
bool leaves_partials(const Computation& computation, const Group& group, NodeId op);
/// Accumulators that each element of `op` is folded from, where the kernel leaves it in partials; else 0.
std::int64_t partials_of(const Computation& computation, const KernelPlan& kernel, NodeId op);

}  // namespace stitchwork
