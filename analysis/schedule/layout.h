// How a task's elements lie with the threads of a block: what follows from (Mapping, block) alone, for
// whoever counts, checks or prints it.
//
// A thread has `vectors` vectors of `width` elements, neighbours along `lane_dim`, each `stride` behind the
// one before. The first ones every thread has in every task; the others are guarded.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/plan/mapping.h"
#include "core/index/index_map.h"

namespace stitchwork {

/// The order in which consecutive threads take the elements of a tile.
enum class TileOrder : std::uint8_t {
  kAlongCols,  ///< as the group computes them
  kAlongRows,  ///< as they lie in memory
};

/// How the vectors of a column mapping lie among its results (the domain's rows), which are neighbours in
/// memory.
enum class ColumnVectors : std::uint8_t {
  kNone,   ///< one result a thread
  kWhole,  ///< a vector divides the results, and a task's
  kFlat,   ///< it does not, and a task has all results: the elements of its segment are one range of vectors,
           ///< of which those that a thread has are whole multiples of the results apart
  kShifted,  ///< nor that: vectors begin `shift` results before those of the task, at multiples of
             ///< `alignment` in memory; the slices are as many that a thread's shift is the same throughout
};

/// How a value moves between memory and a thread's vector.
enum class Movement : std::uint8_t {
  kVector,     ///< by one instruction
  kOneForAll,  ///< one element, which all of the vector have: what a row's neighbours share
  kOneByOne,   ///< element by element
};

/// Vectors of a thread, one batch after the other, each of `at_once` in flight together.
struct Run {
  std::int64_t first = 0, end = 0;  ///< of the thread's vectors
  std::int64_t at_once = 1;
  bool guarded = false;  ///< they may not be there
};

struct Layout {
  Layout() = default;
  Layout(const Mapping& mapping, int block, TileOrder order = TileOrder::kAlongCols);

  std::int64_t rows = 1, cols = 1;  ///< of the domain
  std::int64_t task_rows = 1;       ///< rows of a task; by parts a block's
  std::int64_t segments = 1;        ///< tasks that the cols are cut into
  int blocks = 1;                   ///< of a cluster, that share a task
  bool by_parts = false;            ///< each of them has neighbours of its own, `length` of them
  bool in_tile = false;             ///< a task's rows are in a tile of shared memory
  int width = 1, unroll = 1;
  int lane_dim = 0;                ///< 0: row, 1: col: along which vectors and consecutive threads lie
  std::int64_t threads_a_row = 1;  ///< that share a row of a task
  /// Rows of a task that a block's threads take at a time, and how often they do so for all of them.
  std::int64_t rows_a_turn = 1, turns = 1;
  std::int64_t length = 1;  ///< of a task along a thread's vectors; a segment, a block's part of a row
  std::int64_t stride = 1;
  std::int64_t vectors = 1;  ///< of a thread in a task, at most; those of which it has only a part included
  /// So many first ones, behind `head`, every thread has in every task.
  std::int64_t unguarded = 0;
  /// Rows that no vector divides begin anywhere: a thread's vectors then lie at multiples of width in memory,
  /// not in the row, and a row's first and last ones reach beyond it.
  bool peeled = false;
  bool head = false;             ///< the first vector is guarded, too
  bool partial_vectors = false;  ///< a guarded vector may be there in part
  bool together = false;         ///< guarded ones are in flight together: who has no element loads another's
  /// Elements of memory from the first of a task to that of the next one, if it is a range or a row.
  std::int64_t apart = 1;
  /// Elements at whose multiples in memory the first vector lies. Of a row that is peeled, or of columns that
  /// are shifted, two vectors of 16 bytes: those of a warp then are whole sectors.
  int alignment = 1;
  ColumnVectors columns = ColumnVectors::kNone;
  /// Of columns: threads that share a result, and the places of results side by side in one of their slices:
  /// those of a task, and of a shifted one some more.
  std::int64_t slices = 1, places = 1;

  std::int64_t elements() const { return vectors * width; }
  /// One after the other: the head, unguarded vectors `unroll` at a time, then the others one by one, or
  /// likewise where they go together.
  std::vector<Run> runs() const;
  /// Of an array, vectors whose loads the compiled code has together with one's, on the average of a
  /// thread's: loops over them are unrolled.
  double loaded_together() const;
  /// Vectors a thread has in flight at a time, on the average of its batches.
  double in_flight() const;

  /// The same for a task that begins up to `lead` - 1 elements behind a vector. Of one that `stores`, what
  /// lies before the task is left alone.
  Layout behind(int lead, bool stores) const;

  /// How the element at `offset` of an array moves, read at `context` (row, col). Buffers are aligned to 256
  /// bytes.
  Movement movement(const IndexExpr& offset, const IndexMap& context) const;
  /// Whether what `context` asks of the index holds for all elements of a vector or for none, in every
  /// vector: a half of a rotary embedding, a part of a concatenation. Such a vector moves whole or not at
  /// all.
  bool holds(const IndexMap& context) const;

 private:
  void set(const mapping::Elements& elements, int block);
  void set(const mapping::Rows& of, int block);
  void set(const mapping::Columns& of, int block);
  void set(const mapping::Patch& patch, int block, TileOrder order);
  void set_turns(int block);
  void set_row(std::int64_t threads, const mapping::Vectors& vectors, std::int64_t shortest, bool may_peel);
  bool is_in_order(const IndexExpr& offset) const;

  bool flat_ = false;  ///< of elements, whatever their shape
};

}  // namespace stitchwork
