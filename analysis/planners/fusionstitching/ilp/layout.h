// Which chunks the blocks of a kernel make of each op (F19 section 5.3, the layout constraint): a value of
// shared memory is read by its own block only.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "analysis/planners/fusionstitching/requests.h"
#include "analysis/planners/fusionstitching/schedule.h"

namespace stitchwork::fusionstitching {

/// Numbers of blocks that cut every root of the fusion, and every reduction and dot that it reads itself,
/// into chunks which are ranges of elements: descending, 1 last.
std::vector<std::int64_t> block_numbers(const Computation& computation, const Fusion& fusion,
                                        const std::vector<NodeId>& must_share);

struct ChunkLayout {
  /// Of ops that have chunks of their own: roots, and what could be shared. Elements of a chunk.
  std::map<NodeId, std::int64_t> chunks;
  std::set<NodeId> recomputed;  ///< roots whose readers need more than a chunk
  NodeId refused = kNoNode;     ///< an op that another block would have to read; then there are no chunks
};

/// From the roots back to what they read, by Table 1 (schedule_rules.h) and, where it has no rule, by
/// intervals of index maps (locality.h). An op that its readers need beyond one chunk is computed by each of
/// them; `must_share` may not be.
ChunkLayout chunk_layout(const Computation& computation, const Fusion& fusion,
                         const std::vector<NodeId>& must_share, std::int64_t blocks);

}  // namespace stitchwork::fusionstitching
