#include "analysis/astitch/mapping.h"

#include <algorithm>

#include "analysis/astitch/mapping_tuned.h"
#include "core/arithmetic.h"
#include "core/error.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::astitch {
namespace {

/// Rows longer than this may be split over blocks (section 4.3, "larger than 1024").
constexpr std::int64_t kSplitColumns = 1024;
/// A thread reduces a row alone only if the row is this short (docs/planners/astitch.md) ...
constexpr std::int64_t kSerialColumns = 16;
/// ... and there are this many rows for each block of a wave.
constexpr std::int64_t kSerialRowsPerBlock = 32;
/// Rows side by side in a column tile: one warp reads a 128-byte line of 4-byte elements.
constexpr std::int64_t kColumnTileRows = 32;

/// Fills tasks, blocks and tasks_per_block: vertical packing (Figure 8-a).
ThreadMapping pack(ThreadMapping mapping, const MappingLimits& limits) {
  mapping.tasks = std::max<std::int64_t>(1, ceil_div(mapping.rows, mapping.rows_per_block)) * mapping.split;
  mapping.tasks_per_block = limits.one_wave ? ceil_div(mapping.tasks, limits.blocks_per_wave) : 1;
  mapping.blocks = ceil_div(mapping.tasks, mapping.tasks_per_block);
  return mapping;
}

}  // namespace

ThreadMapping map_elementwise(std::int64_t elements, const MappingLimits& limits) {
  ThreadMapping mapping;
  mapping.kind = MappingKind::kElementwise;
  mapping.rows = elements;
  mapping.rows_per_block = std::clamp<std::int64_t>(elements, 1, limits.block);
  return pack(mapping, limits);
}

ThreadMapping map_row_reduction(std::int64_t rows, std::int64_t cols, const MappingLimits& limits,
                                int split) {
  ThreadMapping mapping;
  mapping.rows = rows;
  mapping.cols = cols;
  if (split == 0 && limits.adaptive && cols <= kSerialColumns &&
      rows >= kSerialRowsPerBlock * limits.blocks_per_wave) {
    mapping.kind = MappingKind::kRowSerial;
    mapping.rows_per_block = limits.block;
    return pack(mapping, limits);
  }
  const std::int64_t row_threads =
      std::clamp<std::int64_t>(round_up(cols, std::int64_t{kWarp}), kWarp, limits.block);
  mapping.threads_per_row = static_cast<int>(row_threads);
  if (split > 0) {
    mapping.split = split;
  } else if (limits.adaptive && rows < limits.blocks_per_wave && cols > kSplitColumns) {
    mapping.split = static_cast<int>(
        std::min(limits.blocks_per_wave / std::max<std::int64_t>(1, rows), ceil_div(cols, kSplitColumns)));
  }
  if (mapping.split > 1) {
    mapping.kind = MappingKind::kRowSplit;
    mapping.combine = Combine::kPartials;
    return pack(mapping, limits);
  }
  mapping.kind = MappingKind::kRowPack;
  mapping.rows_per_block = limits.adaptive ? std::max<std::int64_t>(1, limits.block / row_threads) : 1;
  return pack(mapping, limits);
}

ThreadMapping map_column_reduction(std::int64_t rows, std::int64_t cols, const MappingLimits& limits,
                                   int split) {
  ThreadMapping mapping;
  mapping.kind = MappingKind::kColumn;
  mapping.rows = rows;
  mapping.cols = cols;
  // A short reduction with many results needs no cooperation: every thread a row of its own.
  const bool serial =
      split == 0 && cols <= kSerialColumns && rows >= kSerialRowsPerBlock * limits.blocks_per_wave;
  mapping.rows_per_block = serial ? limits.block : std::min<std::int64_t>(kColumnTileRows, limits.block);
  mapping.threads_per_row = static_cast<int>(limits.block / mapping.rows_per_block);
  const std::int64_t tiles = std::max<std::int64_t>(1, ceil_div(rows, mapping.rows_per_block));
  if (split > 0) {
    mapping.split = split;
  } else if (limits.adaptive && tiles < limits.blocks_per_wave && cols > kSplitColumns) {
    mapping.split = static_cast<int>(std::min(limits.blocks_per_wave / tiles, ceil_div(cols, kSplitColumns)));
  }
  if (mapping.split > 1) mapping.combine = Combine::kPartials;
  return pack(mapping, limits);
}

int wanted_split(const MappingLimits& limits, NodeId reduction) {
  if (limits.wanted_splits == nullptr) return 0;
  const auto wanted = limits.wanted_splits->find(reduction);
  return wanted == limits.wanted_splits->end() ? 0 : wanted->second;
}

ThreadMapping map_dominant(const Nodes& nodes, NodeId dominant, const MappingLimits& limits) {
  if (limits.tuned_for != nullptr)
    return map_tuned(domain_of(nodes, dominant), limits, wanted_split(limits, dominant));
  if (!nodes[dominant].reduction) {
    return map_elementwise(nodes[dominant].elements, limits);
  }
  const ReductionShape& shape = *nodes[dominant].reduction;
  const int split = wanted_split(limits, dominant);
  return shape.row_reduce ? map_row_reduction(shape.rows, shape.cols, limits, split)
                          : map_column_reduction(shape.rows, shape.cols, limits, split);
}

ThreadMapping map_alongside(std::int64_t elements, const ThreadMapping& other) {
  SW_CHECK(other.split == 1 && other.cluster == 1 && other.rows > 0 && elements % other.rows == 0);
  ThreadMapping mapping;
  mapping.kind = MappingKind::kElementwise;
  mapping.rows = elements;
  mapping.rows_per_block = other.rows_per_block * (elements / other.rows);
  mapping.tasks = other.tasks;
  mapping.tasks_per_block = other.tasks_per_block;
  mapping.blocks = other.blocks;
  return mapping;
}

}  // namespace stitchwork::astitch
