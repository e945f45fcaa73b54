// How a kernel's work is dealt out: a Mapping says how the elements of a task lie with the threads of a
// block, a Deal which block has which tasks. What excludes one another cannot be written down.
//
// Domains are [rows, cols]; of a reduction rows are the kept elements and cols the reduced ones, both flat
// and row-major. Sizes are elements, threads are those of a block unless said otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/base/verdict.h"

namespace stitchwork {

/// Which blocks run the tasks of a loop: takers (blocks, or the clusters they form) [0, takers), of which
/// taker t has tasks [t * tasks / takers, (t + 1) * tasks / takers), rounded down: shares that differ by one
/// task at most.
struct Deal {
  std::int64_t tasks = 1;
  std::int64_t takers = 1;
  std::int64_t first_block = 0;  ///< of the grid
  int cluster = 1;               ///< blocks of a taker

  std::int64_t blocks() const { return takers * cluster; }
  std::int64_t end_block() const { return first_block + blocks(); }
  /// The most any taker has (AStitch's vertical packing).
  std::int64_t most_tasks() const { return (tasks + takers - 1) / takers; }
  /// Blocks that run a task, summed over the tasks.
  std::int64_t block_tasks() const { return tasks * cluster; }

  bool operator==(const Deal&) const = default;
};
/// "7 tasks, 2 a block, blocks 0..3", "..., blocks 0..7 in clusters of 2"
std::string to_text(const Deal& deal);

namespace mapping {

/// What a thread loads and stores by one instruction, and how many of these it has in flight.
struct Vectors {
  int width = 1;
  int unroll = 1;
  bool operator==(const Vectors&) const = default;
};

/// How a tile of shared memory is filled: by every thread through its registers; by cp.async of every thread
/// (sm_80), or by cp.async.bulk of one with an mbarrier a stage (sm_90), with tiles for `depth` tasks in
/// turn.
struct ByLoads {
  bool operator==(const ByLoads&) const = default;
};
struct Async {
  int depth = 1;
  bool operator==(const Async&) const = default;
};
struct Bulk {
  int depth = 1;
  bool operator==(const Bulk&) const = default;
};
using Copy = std::variant<ByLoads, Async, Bulk>;
/// A block's part of a row begins and ends anywhere: never in bulk.
using PartCopy = std::variant<ByLoads, Async>;

/// Consecutive threads on consecutive elements (vectors of them), whatever their shape.
struct Elements {
  std::int64_t count = 1, per_task = 1;
  Vectors vectors;
  /// Of a task each block of a cluster has `part` elements, the last one's may be fewer. Of steps that fill
  /// and empty tiles alone.
  struct Parts {
    int blocks = 2;
    std::int64_t part = 1;
    bool operator==(const Parts&) const = default;
  };
  std::optional<Parts> parts;
  bool operator==(const Elements&) const = default;
};

/// A row a thread, which loops over its cols.
struct OneThread {
  std::int64_t rows = 1;  ///< of a task
  bool operator==(const OneThread&) const = default;
};
/// `threads` threads a row: a power of two or a multiple of 32 (AStitch Figure 8-a). With a tile the task's
/// rows, which lie one behind the other in memory, move as one range, whoever computes them.
struct Lanes {
  int threads = 32;
  std::int64_t rows = 1;  ///< of a task
  Vectors vectors;
  std::optional<Copy> tile;
  bool operator==(const Lanes&) const = default;
};
/// A segment of a row a task, of all threads (Figure 8-b): task = row * segments + segment.
struct Segments {
  int threads = 32;
  Vectors vectors;
  int count = 2;
  bool atomic = false;  ///< else left as partials in scratch, which readers fold behind a grid barrier
  bool operator==(const Segments&) const = default;
};
/// A row a task, of the threads of a thread block cluster (sm_90); with a tile each block has a part of the
/// row in its own, else each of all threads has vectors of the row in registers.
struct Cluster {
  int blocks = 2;
  int threads = 64;  ///< of all its blocks
  Vectors vectors;
  std::optional<PartCopy> tile;
  bool operator==(const Cluster&) const = default;
};
struct Rows {
  std::int64_t rows = 1, cols = 1;
  std::variant<OneThread, Lanes, Segments, Cluster> sharing;
  bool operator==(const Rows&) const = default;
};

/// Sums of columns: consecutive threads on consecutive results (the domain's rows), `tile` of them a task;
/// the threads beyond share a result's cols and combine through shared memory. Task = tile * segments +
/// segment.
struct Columns {
  std::int64_t results = 1, length = 1;
  std::int64_t tile = 1;
  int threads = 1;  ///< that share a result, where none has vectors
  Vectors vectors;
  int segments = 1;
  bool atomic = false;  ///< of several segments: see Segments
  bool operator==(const Columns&) const = default;
};

/// Tiles of height x width elements, stored or read in either order of theirs; no reduction. Task = tile of
/// rows * (tiles a row) + tile of the row.
struct Patch {
  std::int64_t rows = 1, cols = 1;
  std::int64_t height = 1;
  int width = 1;
  int unroll = 1;
  bool operator==(const Patch&) const = default;
};

}  // namespace mapping

using Mapping = std::variant<mapping::Elements, mapping::Rows, mapping::Columns, mapping::Patch>;

/// A mapping and who has its tasks.
struct Dealt {
  Mapping mapping;
  Deal deal;
  bool operator==(const Dealt&) const = default;
};

/// The mapping, or how it shares rows, if it is of that form; else null.
template <typename Form>
const Form* as(const Mapping& mapping) {
  if constexpr (std::is_constructible_v<decltype(mapping::Rows::sharing), Form>) {
    const auto* rows = std::get_if<mapping::Rows>(&mapping);
    return rows == nullptr ? nullptr : std::get_if<Form>(&rows->sharing);
  } else {
    return std::get_if<Form>(&mapping);
  }
}
template <typename Form>
Form* as(Mapping& mapping) {
  return const_cast<Form*>(as<Form>(std::as_const(mapping)));
}
template <typename Form>
bool is(const Mapping& mapping) {
  return as<Form>(mapping) != nullptr;
}
/// Threads beside each other share whole rows.
inline bool packs_rows(const Mapping& mapping) {
  return is<mapping::Lanes>(mapping) || is<mapping::Cluster>(mapping);
}

/// Of the domain.
struct Extents {
  std::int64_t rows = 1, cols = 1;
  std::int64_t elements() const { return rows * cols; }
  bool operator==(const Extents&) const = default;
};
Extents extents(const Mapping& mapping);
/// Rows of a task (elements, results); where each block of a cluster has a part, of that.
std::int64_t task_rows(const Mapping& mapping);
/// Neither of patches.
void set_rows(Mapping& mapping, std::int64_t rows, std::int64_t task_rows);
/// Tasks that the cols are cut into.
int segments(const Mapping& mapping);
/// That share a row as the mapping says it; 1 where each has rows of its own. Of patches their width.
int threads_a_row(const Mapping& mapping);
/// Blocks that share a task.
int cluster_blocks(const Mapping& mapping);
/// Width 1 where nothing moves in vectors.
mapping::Vectors vectors(const Mapping& mapping);
/// Of patches the unroll alone; nothing where a thread has a row.
void set_vectors(Mapping& mapping, const mapping::Vectors& vectors);

/// For so many tasks in turn; 0: by loads.
mapping::Copy copy_of(int depth, bool bulk);
/// How the tile of a task's rows is filled; none: they are in registers.
std::optional<mapping::Copy> tile_copy(const Mapping& mapping);
inline bool is_staged(const Mapping& mapping) { return tile_copy(mapping).has_value(); }
/// Tasks whose tiles are filled by asynchronous copies at a time; 0: by loads, or there is no tile.
int copy_depth(const Mapping& mapping);
inline bool copies_in_bulk(const Mapping& mapping) {
  const auto copy = tile_copy(mapping);
  return copy && std::get_if<mapping::Bulk>(&*copy) != nullptr;
}

/// How several segments of a reduction combine: by atomics on the result, initialised by a memset step (XLA)
/// or an earlier phase, or as partials, a segment each, in scratch, which every reader folds in fixed order
/// behind a grid barrier.
bool combines_atomically(const Mapping& mapping);
bool combines_partials(const Mapping& mapping);

/// Elements that begin whole sectors and whole vectors, whatever their size.
/// Derived from sectors of 32 bytes and elements of one byte.
constexpr int kRowAlignment = 32;
/// Cols of a row that each block of a cluster has in its tile; the last one's may be fewer.
std::int64_t part_cols(std::int64_t cols, int blocks);

/// Tasks of the whole domain, segments included.
std::int64_t task_count(const Mapping& mapping);
/// To so many takers, but no more than it has tasks.
Deal deal_to(const Mapping& mapping, std::int64_t takers);

/// Tells them apart by their names, as an order.
int form_number(const Mapping& mapping);
/// "elementwise", "row_pack", "row_split", "column", "row_serial", "tile"
std::string_view name(const Mapping& mapping);
/// "none", "partials", "atomic"
std::string_view combine_name(const Mapping& mapping);
/// "row_pack 64x256: 16 tasks of 4 rows, 2 a block, 8 blocks, 32 threads a row, vectors of 4"
std::string to_text(const Mapping& mapping, const Deal& deal);

/// Whether numbers that any mapping can have agree with each other, and the tasks are those of its domain,
/// dealt to blocks; else one of the rules of docs/planners/verify.md, "mapping.tasks", and one line with the
/// numbers. What a block, a device and the group's ops allow is verify's.
Verdict legal(const Mapping& mapping, const Deal& deal);

}  // namespace stitchwork
