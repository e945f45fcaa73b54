#include "analysis/schedule/tiles.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "analysis/schedule/stages.h"
#include "core/base/arithmetic.h"
#include "core/base/sorted.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {
namespace {

/// The warp's lanes, from element `first` of the tile on: (row, col) each.
using LanePlaces = std::array<std::pair<std::int64_t, std::int64_t>, kWarp>;
LanePlaces lanes_of(const mapping::Patch& tile, TileOrder order, std::int64_t first) {
  const std::int64_t rows = tile.height, cols = tile.width;
  LanePlaces lanes;
  for (int i = 0; i < kWarp; ++i) {
    const std::int64_t at = first + i;
    lanes[static_cast<std::size_t>(i)] =
        order == TileOrder::kAlongCols ? std::pair(at / cols, at % cols) : std::pair(at % rows, at / rows);
  }
  return lanes;
}

/// Accesses of shared memory, one after the other, that a warp's takes: the most words of one bank.
int wavefronts(const LanePlaces& lanes, std::int64_t stride, int bytes) {
  // Derived from accesses of 16 bytes and banks of 4 (CUDA Programming Guide).
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

std::int64_t tile_stride(const Mapping& mapping, int bytes) {
  // A choice, not measured: they bound planning time.
  constexpr int kWarpsTried = 3;  // lines may end within a warp
  const mapping::Patch tile = tile_mapping(mapping);
  const std::int64_t vector = vectors(mapping).width;
  std::vector<LanePlaces> warps;
  for (const TileOrder order : {TileOrder::kAlongCols, TileOrder::kAlongRows})
    for (int warp = 0; warp < kWarpsTried; ++warp)
      warps.push_back(lanes_of(tile, order, std::int64_t{warp} * kWarp));
  const int no_conflicts = static_cast<int>(warps.size()) * std::max(1, bytes / kBankBytes);
  const std::int64_t cols = round_up(std::int64_t{tile.width}, vector);
  std::int64_t best = cols;
  int least = std::numeric_limits<int>::max();
  for (std::int64_t stride = cols; stride < cols + kBanks && least > no_conflicts; stride += vector) {
    int accesses = 0;
    for (const LanePlaces& lanes : warps) accesses += wavefronts(lanes, stride, bytes);
    if (accesses >= least) continue;
    least = accesses;
    best = stride;
  }
  return best;
}

std::int64_t tile_bytes(const Mapping& mapping, int bytes) {
  return task_rows(mapping) * tile_stride(mapping, bytes) * bytes;
}

bool has_tiles(const Mapping& mapping) {
  const auto* lanes = as<mapping::Lanes>(mapping);
  return is<mapping::Patch>(mapping) || (lanes != nullptr && !lanes->tile);
}

mapping::Patch tile_mapping(const Mapping& mapping) {
  // A choice, not measured: eight loads of a thread are in flight.
  constexpr int kElementsInFlight = 8;
  if (const auto* patch = as<mapping::Patch>(mapping)) return *patch;
  const auto [rows, cols] = extents(mapping);
  return {rows, cols, task_rows(mapping), static_cast<int>(cols), kElementsInFlight};
}

double tile_sectors(const IndexMap& map, const std::vector<std::int64_t>& extents, const mapping::Patch& tile,
                    int bytes, TileOrder order) {
  // A choice, not measured: they bound planning time.
  constexpr int kWarpsTried = 4;
  const IndexExpr linear = linearize(map.results, extents);
  const std::int64_t rows = map.dims.at(0), cols = map.dims.at(1);
  const std::int64_t first_row = rows / 2 / tile.height * tile.height;
  const std::int64_t first_col = cols / 2 / tile.width * tile.width;
  const std::int64_t elements = tile.height * tile.width;
  double total = 0;
  int warps = 0;
  for (; warps < kWarpsTried && (warps == 0 || (warps + 1) * kWarp <= elements); ++warps) {
    std::vector<std::int64_t> sectors;
    for (const auto& [row, col] : lanes_of(tile, order, std::int64_t{warps} * kWarp)) {
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

bool stages_a_row(const Mapping& mapping) { return is_staged(mapping) && task_rows(mapping) == 1; }

bool stages_cols(const Mapping& mapping, const Deal& deal) {
  return is_staged(mapping) && (!stages_a_row(mapping) || (copy_depth(mapping) > 0 && deal.most_tasks() > 1));
}

int staged_alignment(const Mapping& mapping) {
  return stages_a_row(mapping) && extents(mapping).cols % kRowAlignment != 0 ? kRowAlignment : 1;
}

std::int64_t staged_cols(const Mapping& mapping) {
  const int blocks = cluster_blocks(mapping);
  const std::int64_t cols = extents(mapping).cols;
  return blocks == 1 ? cols : part_cols(cols, blocks);
}

namespace {

/// Of a task each block of a cluster moves what it has of its row.
std::optional<mapping::Elements::Parts> parts_of(const Mapping& mapping) {
  const int blocks = cluster_blocks(mapping);
  if (blocks == 1) return std::nullopt;
  return mapping::Elements::Parts{blocks, staged_cols(mapping)};
}

}  // namespace

mapping::Elements staging_mapping(const Mapping& mapping, int widest_bytes, StagedPart part) {
  const bool rows = part == StagedPart::kRows;
  const std::int64_t cols = rows ? 1 : extents(mapping).cols;
  const std::int64_t moved = task_rows(mapping) * (rows ? 1 : staged_cols(mapping));
  int width = std::max(1, kVectorBytes / widest_bytes);
  while (staged_alignment(mapping) == 1 && moved % width != 0) width /= 2;
  return {extents(mapping).rows * cols, task_rows(mapping) * cols, {width, 1}, parts_of(mapping)};
}

mapping::Elements staging_cols(const Mapping& mapping) {
  mapping::Vectors moved = vectors(mapping);
  const std::int64_t cols = extents(mapping).cols;
  if (cols % moved.width != 0) moved.width = 1;
  return {task_count(mapping) * cols, cols, moved, parts_of(mapping)};
}

std::optional<StagedPart> staged_part(const Shape& shape, const IndexMap& map, const Mapping& mapping) {
  if (!map.constraints.empty() || !map.runtime.empty() || !map.symbols.empty() || map.dims.size() != 2)
    return std::nullopt;
  const std::int64_t elements = shape.elements_count();
  const Extents domain = extents(mapping);
  if (elements != domain.elements() && domain.rows == domain.cols) return std::nullopt;
  IndexExpr place = IndexExpr::dim(0) * domain.cols + IndexExpr::dim(1);
  const StagedPart part = staged_part(shape, mapping);
  if (part != StagedPart::kElements) place = IndexExpr::dim(part == StagedPart::kRows ? 0 : 1);
  if (elements != std::array{domain.elements(), domain.rows, domain.cols}[static_cast<std::size_t>(part)] ||
      simplify(linearize(map.results, shape.dims), map) != simplify(place, map))
    return std::nullopt;
  return part;
}

StagedPart staged_part(const Shape& shape, const Mapping& mapping) {
  const std::int64_t elements = shape.elements_count();
  const Extents domain = extents(mapping);
  if (elements == domain.elements()) return StagedPart::kElements;
  return elements == domain.rows ? StagedPart::kRows : StagedPart::kCols;
}

std::int64_t staged_elements(StagedPart part, const Mapping& mapping) {
  if (part == StagedPart::kElements) {
    const std::int64_t alignment = staged_alignment(mapping);
    return round_up(task_rows(mapping) * staged_cols(mapping) + alignment - 1, alignment);
  }
  return part == StagedPart::kRows ? task_rows(mapping) : staged_cols(mapping);
}

bool has_async_copies(const Device& device) {
  return 10 * device.cc_major + device.cc_minor >= kCopiesArchitecture;
}

bool has_bulk_copies(const Device& device) {
  return 10 * device.cc_major + device.cc_minor >= kBulkArchitecture;
}

int copied_bytes(StagedPart part, const Mapping& mapping, int bytes) {
  // A choice, not measured: of fewer tasks the first copies, which nothing hides, are a third.
  constexpr int kLeast = 4;
  // What is the same in all tasks is there before the first.
  if (copy_depth(mapping) == 0 || part == StagedPart::kCols) return 0;
  int copied = kVectorBytes;
  if (copies_in_bulk(mapping)) return staged_elements(part, mapping) * bytes % kBulkUnit == 0 ? kBulkUnit : 0;
  while (copied >= kLeast && staged_elements(part, mapping) * bytes % copied != 0) copied /= 2;
  return copied >= std::max(kLeast, bytes) ? copied : 0;
}

bool stored_in_bulk(const Mapping& mapping, int bytes) {
  return copies_in_bulk(mapping) && staged_alignment(mapping) == 1 &&
         copied_bytes(StagedPart::kElements, mapping, bytes) > 0;
}

int staged_tasks(StagedPart part, const Mapping& mapping, int bytes) {
  return copied_bytes(part, mapping, bytes) > 0 ? copy_depth(mapping) : 1;
}

std::int64_t staged_bytes(StagedPart part, const Mapping& mapping, int bytes, int tasks) {
  const std::int64_t one = staged_elements(part, mapping) * bytes;
  if (copies_in_bulk(mapping) && copied_bytes(part, mapping, bytes) > 0) return (one + kBulkUnit) * tasks;
  return tasks > 1 ? round_up(one, std::int64_t{kVectorBytes}) * tasks : one;
}

int staged_wavefronts(const Mapping& mapping, int bytes) {
  LanePlaces lanes;
  const int threads = threads_a_row(mapping);
  for (int i = 0; i < kWarp; ++i) lanes[static_cast<std::size_t>(i)] = {i / threads, i % threads};
  return wavefronts(lanes, extents(mapping).cols, bytes);
}

bool takes_over(const Computation& computation, const KernelPlan& kernel, const Tile& stored,
                const Tile& read) {
  if (stored.group != read.group || stored.level != read.level) return false;
  const auto group = std::find_if(kernel.groups.begin(), kernel.groups.end(),
                                  [&](const Group& g) { return g.dominant == read.group; });
  if (group == kernel.groups.end() || !is_staged(group->mapping)) return false;
  const auto same_size = [&](const Shape& a, const Shape& b) {
    return byte_size(a.dtype) == byte_size(b.dtype) &&
           staged_part(a, group->mapping) == StagedPart::kElements &&
           staged_part(b, group->mapping) == StagedPart::kElements;
  };
  if (!same_size(computation.node(stored.op).shape, computation.node(read.op).shape)) return false;
  const auto makes = [&](NodeId op) {
    return op == group->dominant || contains_sorted(group->sub_dominants, op);
  };
  if (!makes(stored.op) || makes(read.op)) return false;
  Stages stages(computation, kernel, read.level);
  return std::all_of(group->ops.begin(), group->ops.end(), [&](NodeId op) {
    const bool here = makes(op) && kernel.levels.contains(op) && kernel.levels.at(op) == read.level;
    return !here || stages.of(op) <= stages.of(stored.op) || !stages.reads(op, read.op);
  });
}

const Tile* find_tile(const KernelPlan& kernel, NodeId op, NodeId group, int level) {
  const auto found = std::find_if(kernel.tiles.begin(), kernel.tiles.end(), [&](const Tile& tile) {
    return tile.op == op && tile.group == group && tile.level == level;
  });
  return found == kernel.tiles.end() ? nullptr : &*found;
}

}  // namespace stitchwork
