// Tiles of shared memory in which elements change their order (mapping::Patch; plan.h, Tile): how
// threads run through one, how its rows are padded, what its accesses touch; staged rows.
#pragma once

#include <optional>

#include "analysis/plan/plan.h"
#include "analysis/schedule/layout.h"
#include "core/index/index_map.h"

namespace stitchwork {

/// Elements of `bytes` each from one row of a tile of the mapping's tasks to the next in shared memory: at
/// least its cols, and so many more that the lanes of a warp fall into different banks in either order, as
/// far as rows begin with vectors of row_pack.
std::int64_t tile_stride(const Mapping& mapping, int bytes);
std::int64_t tile_bytes(const Mapping& mapping, int bytes);

/// The tile through which tasks of such a mapping take up what lies against their order, and put it: of
/// row_pack a task's whole rows, with their padding.
mapping::Patch tile_mapping(const Mapping& mapping);
/// Whether it can have one: its tasks are whole rows of one block, or tiles.
bool has_tiles(const Mapping& mapping);

/// 32-byte sectors that a warp's access of an array of `extents` under `map`, (row, col) -> index, touches:
/// the mean of a few warps of the tile in the middle of the domain.
double tile_sectors(const IndexMap& map, const std::vector<std::int64_t>& extents, const mapping::Patch& tile,
                    int bytes, TileOrder order);

/// Whether a staged task is one row, too long for others beside it: values a row are read where they lie.
bool stages_a_row(const Mapping& mapping);
/// Whether values a col go through tiles too: beside single rows only where a block fills theirs once, for
/// several tasks.
bool stages_cols(const Mapping& mapping, const Deal& deal);
/// Elements at whose multiples in memory the tiles of a staged task begin: the row of such a task lies in
/// them as many elements behind (its lead) as in memory behind the last of these, so that what is a vector
/// there is one in the tile, wherever the row begins. 1 where tasks begin with vectors.
int staged_alignment(const Mapping& mapping);
/// Cols of a staged row that a block has: of a cluster's blocks each a part, the last one's may be shorter.
std::int64_t staged_cols(const Mapping& mapping);

/// What of a staged domain a value in memory has: an element each, one value a row or one a col, in that
/// order; nothing where it lies otherwise (or where rows and cols are as many).
enum class StagedPart : std::uint8_t { kElements, kRows, kCols };
std::optional<StagedPart> staged_part(const Shape& shape, const IndexMap& map, const Mapping& mapping);
/// Of a value that has such a place: by its size.
StagedPart staged_part(const Shape& shape, const Mapping& mapping);
/// Elements of its tile, the most of a lead and whole vectors included.
std::int64_t staged_elements(StagedPart part, const Mapping& mapping);
/// How the threads of a block move the tasks of a staged mapping between memory and tiles: neighbouring
/// threads on neighbouring vectors, of 16 bytes of an element of `widest_bytes` where they divide a task or
/// it has a lead. Of the whole there may be a part of a vector at the end. The unroll is 1. Likewise a value
/// a row.
mapping::Elements staging_mapping(const Mapping& mapping, int widest_bytes,
                                  StagedPart part = StagedPart::kElements);
/// How the threads of a block take up the cols, a value each, in every task.
mapping::Elements staging_cols(const Mapping& mapping);

/// Devices from here on have asynchronous copies: of a thread (cp.async), in bulk (cp.async.bulk).
/// PTX ISA, cp.async and cp.async.bulk: target ISA notes.
constexpr int kCopiesArchitecture = 80, kBulkArchitecture = 90;
bool has_async_copies(const Device& device);
bool has_bulk_copies(const Device& device);
/// What addresses and sizes of bulk copies are multiples of.
/// PTX ISA, cp.async.bulk.
constexpr int kBulkUnit = 16;
/// Bytes of a thread's asynchronous copy of such a part, of elements of `bytes`: 16, or 8 or 4 where a task
/// begins only with these; of bulk copies kBulkUnit; 0 where it moves otherwise.
int copied_bytes(StagedPart part, const Mapping& mapping, int bytes);
/// Whether bulk copies bring results of such elements from their tiles to memory: not rows that begin
/// anywhere, whose ends others have units of copies with.
bool stored_in_bulk(const Mapping& mapping, int bytes);
/// Tasks that have tiles of such a part that the group reads.
int staged_tasks(StagedPart part, const Mapping& mapping, int bytes);
/// Of a tile of so many tasks. Behind the elements of each that are copied in bulk there is room for an
/// mbarrier.
std::int64_t staged_bytes(StagedPart part, const Mapping& mapping, int bytes, int tasks);

/// Accesses of shared memory, one after the other, in which a warp of a staged mapping reads an element each
/// of its rows.
int staged_wavefronts(const Mapping& mapping, int bytes);

/// Whether a staged tile that is `stored` may have the bytes of one that is `read`, those of the same task:
/// they are as large, no stage of a task takes up its elements behind that which stores, and in that a thread
/// takes up its element before it puts its result there.
bool takes_over(const Computation& computation, const KernelPlan& kernel, const Tile& stored,
                const Tile& read);

/// The tile through which the group reads or stores `op` in that phase, or null.
const Tile* find_tile(const KernelPlan& kernel, NodeId op, NodeId group, int level);

}  // namespace stitchwork
