#include "analysis/judge/cost_access.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/tiles.h"
#include "core/index/buffer.h"

namespace stitchwork::costs {
namespace {

/// Values of `at` (a function of the map's dims) for 32 lanes in the middle of the domain, so many rows
/// behind its middle. Lanes are `apart` places from each other.
std::array<std::int64_t, kWarp> of_lanes(const IndexExpr& at, const IndexMap& map, const Layout& layout,
                                         std::int64_t row, std::int64_t apart = 1) {
  const int lane = layout.lane_dim;
  std::vector<std::int64_t> point(map.dims.size());
  for (std::size_t d = 0; d < point.size(); ++d) point[d] = map.dims[d] / 2 / kWarp * kWarp;
  if (row > 0) point[0] += row;
  const std::vector<std::int64_t> symbols(map.symbols.size(), 0), runtime(map.runtime.size(), 0);
  std::array<std::int64_t, kWarp> values{};
  // Of columns those of a task, then again in the next col of them.
  const std::int64_t of_col =
      layout.slices > 1 ? std::max<std::int64_t>(1, layout.places / layout.width) : std::int64_t{kWarp};
  for (int i = 0; i < kWarp; ++i) {
    std::vector<std::int64_t> index = point;
    if (of_col < kWarp && lane == 0 && !index.empty()) {
      index[0] = std::min(index[0] + i % of_col * apart, std::max<std::int64_t>(0, map.dims[0] - 1));
      if (index.size() > 1)
        index[1] = std::min(index[1] + i / of_col, std::max<std::int64_t>(0, map.dims[1] - 1));
    } else if (lane < static_cast<int>(index.size())) {
      // Rows shorter than a warp: the lanes go on in the next row.
      const std::int64_t extent = std::max<std::int64_t>(1, map.dims[static_cast<std::size_t>(lane)]);
      const std::int64_t position = index[static_cast<std::size_t>(lane)] + i * apart;
      index[static_cast<std::size_t>(lane)] = position % extent;
      if (lane == 1 && position >= extent)
        index[0] = std::min(index[0] + position / extent, std::max<std::int64_t>(0, map.dims[0] - 1));
    }
    values[static_cast<std::size_t>(i)] = evaluate(at, index, symbols, runtime);
  }
  return values;
}

/// Of so many bytes each, what lanes touch that access these elements.
double touched_a_warp(std::array<std::int64_t, kWarp> elements, int element_bytes, int at_a_time) {
  for (std::int64_t& element : elements) element = element * element_bytes / at_a_time;
  std::sort(elements.begin(), elements.end());
  return static_cast<double>(std::unique(elements.begin(), elements.end()) - elements.begin());
}

/// Sectors one warp's access under `map` touches, counted on a sample.
double sectors_a_warp(const IndexMap& map, const std::vector<std::int64_t>& extents, const Layout& layout,
                      int element_bytes, std::int64_t row) {
  return touched_a_warp(of_lanes(linearize(map.results, extents), map, layout, row), element_bytes,
                        kSectorBytes);
}

/// Of long rows that begin within sectors the mean of as many as begin differently.
double sectors_a_warp(const IndexMap& map, const std::vector<std::int64_t>& extents, const Layout& layout,
                      int element_bytes) {
  // A choice, not measured: so many rows show how lengths that no sector divides begin.
  constexpr std::int64_t kRows = 8;
  const bool apart = layout.lane_dim == 1 && map.dims.size() == 2 && map.dims[1] > kWarp &&
                     map.dims[0] >= kRows * kWarp && layout.cols * element_bytes % kSectorBytes != 0;
  double sectors = 0;
  for (std::int64_t row = 0; row < (apart ? kRows : 1); ++row)
    sectors += sectors_a_warp(map, extents, layout, element_bytes, row);
  return sectors / static_cast<double>(apart ? kRows : 1);
}

}  // namespace

bool uses(const IndexMap& map, int dim) {
  return std::any_of(map.results.begin(), map.results.end(),
                     [dim](const IndexExpr& e) { return e.uses_dim(dim); });
}

double sectors(const IndexMap& map, const std::vector<std::int64_t>& extents, const Mapping& mapping,
               const Layout& layout, int bytes, bool through_tile, int at_once) {
  // A range in order, or a peeled row's vectors, which begin with sectors.
  if ((layout.in_tile && through_tile) || (layout.peeled && at_once > 1))
    return static_cast<double>(kWarp * bytes) / kSectorBytes;
  const bool tiles = (is<mapping::Patch>(mapping) || through_tile) && map.dims.size() == 2 &&
                     map.symbols.empty() && map.runtime.empty();
  if (!tiles) return sectors_a_warp(map, extents, layout, bytes);
  return tile_sectors(map, extents, tile_mapping(mapping), bytes,
                      through_tile ? TileOrder::kAlongRows : TileOrder::kAlongCols);
}

double touched_apart(const IndexMap& map, const std::vector<std::int64_t>& extents, const Layout& layout,
                     int bytes, int at_a_time) {
  return touched_a_warp(of_lanes(linearize(map.results, extents), map, layout, 0, layout.width), bytes,
                        at_a_time);
}

double wavefronts_a_warp(const IndexExpr& place, const IndexMap& map, const Layout& layout, int bytes) {
  std::map<std::int64_t, std::set<std::int64_t>> words;  // by bank
  for (const std::int64_t element : of_lanes(place, map, layout, 0))
    for (std::int64_t word = element * bytes / kBankBytes; word <= (element * bytes + bytes - 1) / kBankBytes;
         ++word)
      words[word % kBanks].insert(word);
  std::size_t most = 1;
  for (const auto& [bank, of_bank] : words) most = std::max(most, of_bank.size());
  return static_cast<double>(most);
}

double warp_accesses(const IndexMap& map, const Mapping& mapping, const Layout& layout) {
  double count = evaluation_count(map);
  const int lane = layout.lane_dim;
  // A value of the col alone is loaded again for every row.
  if (lane == 1 && map.dims.size() == 2 && uses(map, 1) && !depends_on(map, 0))
    count *= static_cast<double>(map.dims[0]);
  if (depends_on(map, lane) || map.dims.size() < 2) return count / kWarp;
  if (is<mapping::Patch>(mapping))
    return count * static_cast<double>(layout.segments) *
           std::max(1.0, static_cast<double>(layout.threads_a_row) / kWarp);
  if (lane == 1) return count * threads_a_row(mapping) / kWarp;
  return count * std::max(1.0, static_cast<double>(layout.rows) / kWarp);
}

/// Of so many lanes beside each other, those of all warps that have any of them, over these.
static double beyond_lanes(std::int64_t lanes) {
  lanes = std::max<std::int64_t>(1, lanes);
  return static_cast<double>(round_up(lanes, kWarp)) / static_cast<double>(lanes);
}

double unfilled_warps(const IndexMap& map, const Mapping& mapping, const Layout& layout) {
  if (is<mapping::OneThread>(mapping) || is<mapping::Lanes>(mapping)) {
    const std::int64_t threads = layout.threads_a_row, rest = layout.task_rows % layout.rows_a_turn;
    const std::int64_t whole = layout.task_rows - rest;
    // What is alike in all rows has been counted for a whole warp of them.
    const bool alike = layout.lane_dim == 0 && map.dims.size() >= 2 && !depends_on(map, 0);
    const double counted = alike ? std::min(1.0, static_cast<double>(layout.rows) / kWarp) : 1;
    return counted *
           (static_cast<double>(whole) * beyond_lanes(layout.rows_a_turn * threads) +
            static_cast<double>(rest) * beyond_lanes(rest * threads)) /
           static_cast<double>(layout.task_rows);
  }
  if (!is<mapping::Elements>(mapping) || !depends_on(map, layout.lane_dim)) return 1;
  return beyond_lanes(ceil_div(std::min(layout.task_rows, layout.rows), layout.width));
}

int moved_at_once(const IndexMap& map, const Node& node, const Mapping& mapping, const Layout& layout,
                  bool through_tile) {
  if (layout.in_tile && through_tile)
    return staging_mapping(mapping, byte_size(node.shape.dtype)).vectors.width;
  if (layout.width == 1 || !uses(map, layout.lane_dim) || !layout.holds(map)) return 1;
  const IndexExpr offset = simplify(buffer_offset(node, map.results), map);
  return layout.movement(offset, map) == Movement::kVector ? layout.width : 1;
}

}  // namespace stitchwork::costs
