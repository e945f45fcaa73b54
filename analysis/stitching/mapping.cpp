#include "analysis/stitching/mapping.h"

#include <algorithm>

#include "analysis/stitching/columns.h"
#include "analysis/stitching/mapping_tuned.h"
#include "analysis/stitching/memory_order.h"
#include "analysis/stitching/row_work.h"
#include "core/base/arithmetic.h"
#include "core/base/error.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::astitch {
namespace {

/// Rows longer than this may be split over blocks (section 4.3, "larger than 1024").
constexpr std::int64_t kSplitColumns = 1024;

/// Vertical packing (Figure 8-a).
Dealt pack(const Mapping& mapping, const MappingLimits& limits) {
  const std::int64_t tasks = task_count(mapping);
  return {mapping,
          deal_to(mapping, ceil_div(tasks, limits.one_wave ? ceil_div(tasks, limits.blocks_per_wave) : 1))};
}

/// Segments of each of so many rows, or tiles of results, where they alone do not fill a wave.
int split_by_rule(std::int64_t rows, std::int64_t cols, const MappingLimits& limits) {
  if (!limits.adaptive || rows >= limits.blocks_per_wave || cols <= kSplitColumns) return 1;
  return static_cast<int>(
      std::min(limits.blocks_per_wave / std::max<std::int64_t>(1, rows), ceil_div(cols, kSplitColumns)));
}

}  // namespace

Dealt map_elementwise(std::int64_t elements, const MappingLimits& limits) {
  return pack(
      mapping::Elements{.count = elements, .per_task = std::clamp<std::int64_t>(elements, 1, limits.block)},
      limits);
}

Dealt map_row_reduction(std::int64_t rows, std::int64_t cols, const MappingLimits& limits, int split) {
  mapping::Rows mapping{rows, cols, mapping::OneThread{limits.block}};
  if (split == 0 && limits.adaptive && cols <= kSerialColumns &&
      rows >= kSerialRowsPerBlock * limits.blocks_per_wave)
    return pack(mapping, limits);
  const auto threads =
      static_cast<int>(std::clamp<std::int64_t>(round_up(cols, std::int64_t{kWarp}), kWarp, limits.block));
  if (split == 0) split = split_by_rule(rows, cols, limits);
  if (split > 1)
    mapping.sharing = mapping::Segments{.threads = threads, .count = split};
  else
    mapping.sharing =
        mapping::Lanes{.threads = threads, .rows = limits.adaptive ? std::max(1, limits.block / threads) : 1};
  return pack(mapping, limits);
}

Dealt map_column_reduction(std::int64_t rows, std::int64_t cols, const MappingLimits& limits, int split) {
  mapping::Columns mapping{.results = rows, .length = cols};
  // A short reduction with many results needs no cooperation: every thread a row of its own.
  const bool serial =
      split == 0 && cols <= kSerialColumns && rows >= kSerialRowsPerBlock * limits.blocks_per_wave;
  mapping.tile = serial ? limits.block : std::min<std::int64_t>(kColumnTileRows, limits.block);
  mapping.threads = static_cast<int>(limits.block / mapping.tile);
  const std::int64_t tiles = std::max<std::int64_t>(1, ceil_div(rows, mapping.tile));
  mapping.segments = split > 0 ? split : split_by_rule(tiles, cols, limits);
  return pack(mapping, limits);
}

int wanted_split(const MappingLimits& limits, NodeId reduction) {
  if (limits.wanted_splits == nullptr) return 0;
  const auto wanted = limits.wanted_splits->find(reduction);
  return wanted == limits.wanted_splits->end() ? 0 : wanted->second;
}

namespace {

/// As wanted; rows of products, which are two arrays' at once, stay whole: nothing of them can be staged.
int split_of(const Nodes& nodes, NodeId dominant, const MappingLimits& limits) {
  const bool rows = is_product(nodes.node(dominant)) && lies_along_cols(nodes, dominant);
  return rows ? 1 : wanted_split(limits, dominant);
}

}  // namespace

Dealt map_dominant(const Nodes& nodes, NodeId dominant, const MappingLimits& limits) {
  if (limits.tuned_for != nullptr) {
    const GroupDomain domain = domain_of(nodes, dominant);
    const int split = split_of(nodes, dominant, limits);
    if (limits.members == nullptr || domain.kind != GroupDomain::Kind::kElements)
      return map_tuned(domain, limits, split);
    MappingLimits own = limits;
    own.row_work.instructions = group_instructions(nodes, *limits.members, dominant);
    return map_tuned(domain, own, split);
  }
  if (!nodes[dominant].reduction) {
    return map_elementwise(nodes[dominant].elements, limits);
  }
  const ReductionShape& shape = *nodes[dominant].reduction;
  const int split = split_of(nodes, dominant, limits);
  return shape.row_reduce ? map_row_reduction(shape.rows, shape.cols, limits, split)
                          : map_column_reduction(shape.rows, shape.cols, limits, split);
}

Dealt map_alongside(std::int64_t elements, const Mapping& other, const Deal& deal) {
  const std::int64_t rows = extents(other).rows;
  SW_CHECK(segments(other) == 1 && deal.cluster == 1 && rows > 0 && elements % rows == 0);
  return {mapping::Elements{.count = elements, .per_task = task_rows(other) * (elements / rows)}, deal};
}

}  // namespace stitchwork::astitch
