// Thread-mapping propagation (AStitch section 4.2, Observation A), as index maps: from a group's domain (row,
// col) to the index of each of its ops. Planner, verify, cost model and code generator all use this one
// function.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "analysis/plan/plan.h"
#include "core/index/index_map.h"

namespace stitchwork {

/// How an op lies in a group's domain.
enum class Coverage : std::uint8_t {
  kFull,     ///< (row, col) <-> its elements, one to one
  kRows,     ///< row <-> its elements, one to one, whatever the col
  kPartial,  ///< read there, but not each element exactly once: can only be inlined
  kCols,     ///< col <-> its elements, one to one: a reduction of row_pack's rows (plan.h, Group::across)
};

struct Placement {
  IndexMap map;  ///< (d0 = row, d1 = col) -> the op's index
  Coverage coverage = Coverage::kPartial;
};
using Placements = std::map<NodeId, Placement>;

/// How an array of `extents` lies in the domain under `map` (two dims: row, col).
Coverage coverage(const IndexMap& map, const std::vector<std::int64_t>& extents);

/// Placement of every op reachable from the dominant through `ops` (and its sources),
/// dominant first, then producers before consumers, in a fixed order. Reduce ops get their *result's*
/// placement (kRows); the operand a reduce reads is placed kFull if the reduce fits the domain, those of a
/// product (is_product) where it reads them. Ops that cannot be placed are absent. The best placement wins
/// over an earlier worse one (full, rows, partial). Ops without data flow to or from the dominant take the
/// flat domain where they have its elements. The computation keeps what was found lately: a search asks for
/// the same ops in the same domain dozens of times, under other blocks, lanes and schemes.
std::shared_ptr<const Placements> propagate(const Computation& computation, NodeId dominant,
                                            const Mapping& mapping, const std::vector<NodeId>& ops);

/// The dominant's own domain map: (row, col) -> index of the dominant (of its reduced operand for a reduce).
IndexMap domain_map(const Computation& computation, NodeId dominant, const Mapping& mapping);

/// What a reduction over the domain's cols reads of an operand, given where its result lies (`result`, a
/// function of the row): the elements of that result, the col-th in row-major order of what is reduced.
IndexMap reduced_operand_map(const Computation& computation, NodeId reduce, int operand,
                             const IndexMap& result);

}  // namespace stitchwork
