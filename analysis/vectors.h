// Loads and stores of several adjacent elements by one instruction (ThreadMapping::vector).
#pragma once

#include "analysis/plan.h"
#include "core/index_map.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {

/// The dimension of the domain (0: row, 1: col) whose neighbours a vector gathers.
int vector_dim(const ThreadMapping& mapping);

/// Rows that no vector divides begin anywhere: a thread's vectors then lie at multiples of mapping.vector in
/// memory, not in the row, and a row's first and last ones reach beyond it. Rows of row_pack, of which no
/// thread keeps columns from task to task.
bool is_peeled(const ThreadMapping& mapping);
/// Of a peeled row: elements at whose multiples in memory its first vector lies. Two vectors of 16 bytes: the
/// vectors of a warp then are whole sectors.
int peeled_alignment(const ThreadMapping& mapping);

/// How the vectors of a column mapping lie among its results (the domain's rows), which are neighbours in
/// memory.
enum class ColumnVectors : std::uint8_t {
  kNone,   ///< one result a thread
  kWhole,  ///< a vector divides the results, and a task's
  kFlat,   ///< it does not, and a task has all results: the elements of its segment are one range of vectors,
           ///< of which those that a thread has are whole multiples of the results apart
  kShifted,  ///< nor that: vectors begin `shift` results before those of the task, at multiples of
             ///< peeled_alignment() in memory; the slices are as many that a thread's shift is the same
             ///< throughout
};
ColumnVectors column_vectors(const ThreadMapping& mapping);
/// Threads of a block that share a result of a column mapping.
std::int64_t column_slices(const ThreadMapping& mapping, int block);
/// Places of results side by side in a slice: those of a task, and of a shifted one some more.
std::int64_t column_places(const ThreadMapping& mapping);

/// Elements a row's segment has; the last ones may be shorter, or empty.
std::int64_t segment_length(const ThreadMapping& mapping);

/// Whether the mapping.vector elements from a multiple of it on, along that dimension of `context` (row,
/// col), have adjacent offsets that begin at a multiple of mapping.vector. Buffers are aligned to 256 bytes.
/// Where rows are peeled, or columns flat or shifted: whether elements lie as they do in the domain.
bool moves_in_vectors(const IndexExpr& offset, const IndexMap& context, const ThreadMapping& mapping);

/// Whether what `context` asks of the index holds for all of those elements or for none, in every vector: a
/// half of a rotary embedding, a part of a concatenation. Such a vector moves whole or not at all.
bool holds_for_vectors(const IndexMap& context, const ThreadMapping& mapping);

/// Whether those elements all have one offset: what a row's neighbours share (a channel's scale).
bool is_same_in_vectors(const IndexExpr& offset, const IndexMap& context, const ThreadMapping& mapping);

/// Threads of a block of `block` that share a row of a task.
std::int64_t threads_sharing_a_row(const ThreadMapping& mapping, int block);

/// Vectors a thread moves in one task, at most; those of which it has only a part included.
std::int64_t vectors_a_thread(const ThreadMapping& mapping, int block);

/// Elements a thread handles in one task, at most.
std::int64_t elements_per_thread(const ThreadMapping& mapping, int block);

/// So many first ones of these (behind the first one, where rows are peeled) every thread has in every task.
/// They need no bounds check: mapping.unroll of them are in flight together, the others one by one.
std::int64_t unguarded_vectors(const ThreadMapping& mapping, int block);

/// Of an array, that are in flight together with a vector, on the average of a thread's vectors.
double vectors_loaded_together(const ThreadMapping& mapping, int block);

/// Vectors a thread has in flight at a time, on the average of its batches.
double vectors_in_flight(const ThreadMapping& mapping, int block);

}  // namespace stitchwork
