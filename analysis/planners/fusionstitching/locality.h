// Which chunks of an operand a chunk of an op needs, by the intervals of its index map: for ops that Table 1
// does not have (slices, concatenations, small transposes) or refuses, and as the table's proof.
#pragma once

#include <optional>

#include "analysis/planners/fusionstitching/schedule.h"
#include "core/graph/graph.h"
#include "core/index/index_map.h"

namespace stitchwork::fusionstitching {

/// Whether block b of `reads`, chunks of the array of `map`'s dims, needs elements of chunk b of `has` alone,
/// chunks of the array of `operand` dims. What is not proven from the map counts as no.
bool is_local(const IndexMap& map, const Chunking& reads, const Dims& operand, const Chunking& has);

/// The same of an op's operand under two schedules.
bool is_local(const Computation& computation, const Node& node, int operand, const Schedule& reads,
              const Schedule& has);

/// The operand's schedule of as many blocks whose chunks have what the op's chunks read: Row if possible,
/// else Column; none if neither is known to.
std::optional<Schedule> covering_schedule(const Computation& computation, const Node& node, int operand,
                                          const Schedule& schedule);

}  // namespace stitchwork::fusionstitching
