#include "analysis/planners/fusionstitching/locality.h"

#include <algorithm>

namespace stitchwork::fusionstitching {
namespace {

/// (block, row of its chunk, column of it) -> index of the array.
IndexMap of_chunks(const Dims& dims, const Chunking& chunks) {
  IndexMap map;
  map.dims = {chunks.blocks, chunks.left, chunks.part};
  map.results = delinearize(
      IndexExpr::dim(1) * chunks.columns + IndexExpr::dim(0) * chunks.part + IndexExpr::dim(2), dims);
  return simplify(std::move(map));
}

}  // namespace

bool is_local(const IndexMap& map, const Chunking& reads, const Dims& operand, const Chunking& has) {
  if (reads.blocks != has.blocks) return false;
  if (has.blocks == 1) return true;
  const IndexMap need = compose(of_chunks(map.dims, reads), map);
  if (need.is_empty()) return true;
  IndexExpr column = linearize(need.results, operand);
  if (!has.one_range()) column = mod(column, has.columns);
  column = simplify(column - IndexExpr::dim(0) * has.part, need);
  const Interval range = range_of(column, need);
  return range.lo >= 0 && range.hi < has.part;
}

bool is_local(const Computation& computation, const Node& node, int operand, const Schedule& reads,
              const Schedule& has) {
  const auto& map = operand_map(computation, node.id, operand);
  const Dims& in = computation.node(node.operands[static_cast<std::size_t>(operand)]).shape.dims;
  const auto from = chunking(reads, node.shape.dims), to = chunking(has, in);
  return map && from && to && is_local(*map, *from, in, *to);
}

std::optional<Schedule> covering_schedule(const Computation& computation, const Node& node, int operand,
                                          const Schedule& schedule) {
  const Dims& in = computation.node(node.operands[static_cast<std::size_t>(operand)]).shape.dims;
  const std::int64_t blocks = blocks_of(schedule, node.shape.dims);
  if (blocks == 1) return Schedule{};
  for (const auto& offered : {row_schedule(in, blocks), column_schedule(in, blocks)})
    if (offered && is_local(computation, node, operand, schedule, *offered)) return offered;
  return std::nullopt;
}

}  // namespace stitchwork::fusionstitching
