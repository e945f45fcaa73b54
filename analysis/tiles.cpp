#include "analysis/tiles.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/arithmetic.h"

namespace stitchwork {
namespace {

constexpr int kWarp = 32, kBanks = 32, kBankBytes = 4, kSectorBytes = 32;

/// The warp's lanes, from element `first` of the tile on: (row, col) each.
using Lanes = std::array<std::pair<std::int64_t, std::int64_t>, kWarp>;
Lanes lanes_of(const ThreadMapping& mapping, TileOrder order, std::int64_t first) {
  const std::int64_t rows = mapping.rows_per_block, cols = mapping.threads_per_row;
  Lanes lanes;
  for (int i = 0; i < kWarp; ++i) {
    const std::int64_t at = first + i;
    lanes[static_cast<std::size_t>(i)] =
        order == TileOrder::kAlongCols ? std::pair(at / cols, at % cols) : std::pair(at % rows, at / rows);
  }
  return lanes;
}

/// Accesses of shared memory, one after the other, that a warp's takes: the most words of one bank.
int wavefronts(const Lanes& lanes, std::int64_t stride, int bytes) {
  constexpr int kWordsALane = 4;  // 16 bytes
  std::array<std::int64_t, kWarp * kWordsALane> words;
  std::size_t count = 0;
  for (const auto& [row, col] : lanes)
    for (int part = 0; part < std::max(1, bytes / kBankBytes); ++part)
      words[count++] = (row * stride + col) * bytes / kBankBytes + part;
  std::sort(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
  std::array<int, kBanks> met{};
  for (std::size_t i = 0; i < count; ++i)
    if (i == 0 || words[i] != words[i - 1]) ++met[static_cast<std::size_t>(words[i] % kBanks)];
  return *std::max_element(met.begin(), met.end());
}

}  // namespace

std::int64_t tile_lines_at_once(const ThreadMapping& mapping, int block, TileOrder order) {
  const std::int64_t line = order == TileOrder::kAlongCols ? mapping.threads_per_row : mapping.rows_per_block;
  return std::max<std::int64_t>(1, block / line);
}

std::int64_t tile_elements_a_thread(const ThreadMapping& mapping, int block, TileOrder order) {
  const std::int64_t lines =
      order == TileOrder::kAlongCols ? mapping.rows_per_block : std::int64_t{mapping.threads_per_row};
  return ceil_div(lines, tile_lines_at_once(mapping, block, order));
}

std::int64_t tile_stride(const ThreadMapping& mapping, int bytes) {
  constexpr int kWarpsTried = 3;  // lines may end within a warp
  std::vector<Lanes> warps;
  for (const TileOrder order : {TileOrder::kAlongCols, TileOrder::kAlongRows})
    for (int warp = 0; warp < kWarpsTried; ++warp)
      warps.push_back(lanes_of(mapping, order, std::int64_t{warp} * kWarp));
  const int no_conflicts = static_cast<int>(warps.size()) * std::max(1, bytes / kBankBytes);
  const std::int64_t cols = mapping.threads_per_row;
  std::int64_t best = cols;
  int least = std::numeric_limits<int>::max();
  for (std::int64_t stride = cols; stride < cols + kBanks && least > no_conflicts; ++stride) {
    int accesses = 0;
    for (const Lanes& lanes : warps) accesses += wavefronts(lanes, stride, bytes);
    if (accesses >= least) continue;
    least = accesses;
    best = stride;
  }
  return best;
}

std::int64_t tile_bytes(const ThreadMapping& mapping, int bytes) {
  return mapping.rows_per_block * tile_stride(mapping, bytes) * bytes;
}

double tile_sectors(const IndexMap& map, const std::vector<std::int64_t>& extents,
                    const ThreadMapping& mapping, int bytes, TileOrder order) {
  constexpr int kWarpsTried = 4;
  const IndexExpr linear = linearize(map.results, extents);
  const std::int64_t rows = map.dims.at(0), cols = map.dims.at(1);
  const std::int64_t first_row = rows / 2 / mapping.rows_per_block * mapping.rows_per_block;
  const std::int64_t first_col = cols / 2 / mapping.threads_per_row * mapping.threads_per_row;
  const std::int64_t tile = mapping.rows_per_block * mapping.threads_per_row;
  double total = 0;
  int warps = 0;
  for (; warps < kWarpsTried && (warps == 0 || (warps + 1) * kWarp <= tile); ++warps) {
    std::vector<std::int64_t> sectors;
    for (const auto& [row, col] : lanes_of(mapping, order, std::int64_t{warps} * kWarp)) {
      const std::int64_t at[] = {first_row + row, first_col + col};
      if (at[0] >= rows || at[1] >= cols) continue;
      sectors.push_back(evaluate(linear, std::vector<std::int64_t>(at, at + 2), {}, {}) * bytes /
                        kSectorBytes);
    }
    std::sort(sectors.begin(), sectors.end());
    total += static_cast<double>(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
  }
  return total / warps;
}

const Tile* find_tile(const KernelPlan& kernel, NodeId op, NodeId group, int level) {
  const auto found = std::find_if(kernel.tiles.begin(), kernel.tiles.end(), [&](const Tile& tile) {
    return tile.op == op && tile.group == group && tile.level == level;
  });
  return found == kernel.tiles.end() ? nullptr : &*found;
}

}  // namespace stitchwork
