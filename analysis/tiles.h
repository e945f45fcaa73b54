// Tiles of shared memory in which elements change their order (plan.h, MappingKind::kTile and Tile): how
// threads run through one, how its rows are padded, what its accesses touch.
#pragma once

#include "analysis/plan.h"
#include "core/index_map.h"

namespace stitchwork {

/// The order in which consecutive threads take the elements of a tile.
enum class TileOrder : std::uint8_t {
  kAlongCols,  ///< as the group computes them
  kAlongRows,  ///< as they lie in memory
};

/// Rows (cols) that the threads of a block take at a time, each its own place along the other dimension;
/// threads beyond a whole number of rows (cols) are idle.
std::int64_t tile_lines_at_once(const ThreadMapping& mapping, int block, TileOrder order);
/// Elements a thread takes, at most.
std::int64_t tile_elements_a_thread(const ThreadMapping& mapping, int block, TileOrder order);

/// Elements of `bytes` each from one row of a tile to the next in shared memory: at least its cols, and so
/// many more that the lanes of a warp fall into different banks in either order.
std::int64_t tile_stride(const ThreadMapping& mapping, int bytes);
std::int64_t tile_bytes(const ThreadMapping& mapping, int bytes);

/// 32-byte sectors that a warp's access of an array of `extents` under `map`, (row, col) -> index, touches:
/// the mean of a few warps of the tile in the middle of the domain.
double tile_sectors(const IndexMap& map, const std::vector<std::int64_t>& extents,
                    const ThreadMapping& mapping, int bytes, TileOrder order);

/// The tile through which the group reads or stores `op` in that phase, or null.
const Tile* find_tile(const KernelPlan& kernel, NodeId op, NodeId group, int level);

}  // namespace stitchwork
