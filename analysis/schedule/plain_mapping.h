// The thread mappings of compilers that give every kernel one op's natural loop (unfused, XLA, TVM): one
// element a thread, one block a row, a 32 x 32 tile of columns. A task a block, no wave limit.
#pragma once

#include <cstdint>

#include "analysis/plan/plan.h"
#include "occupancy_model/device.h"

namespace stitchwork {

/// One element a thread, `threads` a block.
Dealt element_mapping(std::int64_t elements, int threads);

/// One block a row of min(1024, width rounded up to a warp) threads (Figure 6 of the AStitch paper); `width`
/// is the contiguous part of a row's cols.
Dealt block_a_row_mapping(std::int64_t rows, std::int64_t cols, std::int64_t width);

/// Tiles of 32 neighbouring rows (results), 32 threads sharing the cols of each; `split` tiles one after the
/// other in cols, combined by atomics.
Dealt column_tile_mapping(std::int64_t rows, std::int64_t cols, int split);

/// One thread a row, `threads` a block, each looping over cols.
Dealt thread_a_row_mapping(std::int64_t rows, std::int64_t cols, int threads);

/// The loop of a kernel that `node` ends, where nothing is known of the compiler's own choice: 256 threads on
/// neighbouring elements; a reduction a thread, a block or a column tile a row, by its shape
/// (docs/planners/unfused.md).
Dealt natural_mapping(const Computation& computation, const Node& node);

/// Likewise, but sums whose threads would have many elements, in fewer blocks than the device holds, are
/// split among blocks and added up by atomics, as eager frameworks split theirs (docs/planners/unfused.md).
Dealt eager_mapping(const Graph& graph, const Device& device, const Node& node);

/// Threads a block has under one of these mappings.
int block_threads(const Mapping& mapping);

/// Grid, block, workspace and shared bytes of a kernel whose groups' mappings are set and that has no grid
/// barrier.
void finish_plain_launch(const Computation& computation, KernelPlan& kernel);

}  // namespace stitchwork
