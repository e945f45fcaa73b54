#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <vector>

#include "analysis/plan/mapping.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/tiles.h"
#include "analysis/stitching/columns.h"
#include "analysis/stitching/mapping_offers.h"
#include "analysis/stitching/memory_order.h"
#include "core/base/arithmetic.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::astitch {

bool is_measured(const GroupDomain& domain, const RowWork& work) {
  return work.widest_bytes > 0 && work.elements == domain.rows * domain.cols;
}

namespace {

/// turned_tile_bytes, where tiles are allowed.
std::int64_t tiles_turned(const GroupDomain& domain, const Mapping& mapping, const MappingLimits& limits) {
  return limits.tiles ? turned_tile_bytes(*limits.tuned_for, domain, mapping, limits.row_work) : 0;
}

}  // namespace

Dealt deal(const Mapping& mapping, const MappingLimits& limits) {
  const std::int64_t slots = limits.blocks_per_wave / cluster_blocks(mapping);
  return {mapping, deal_to(mapping, limits.one_wave ? slots : task_count(mapping))};
}

Sketch sketch_of(const GroupDomain& domain, const Dealt& dealt, const MappingLimits& limits) {
  return {.domain = domain,
          .mapping = dealt.mapping,
          .deal = dealt.deal,
          .work = limits.row_work,
          .block = limits.block,
          .most_blocks_per_sm = limits.max_blocks_per_sm,
          .accumulators = limits.accumulators,
          .turned_bytes = tiles_turned(domain, dealt.mapping, limits)};
}

std::int64_t accumulator_room(const MappingLimits& limits) {
  return most_accumulator_registers(
      assume_relax_apply(*limits.tuned_for, limits.block, 0, limits.max_blocks_per_sm).register_bound);
}

namespace {

/// Loads in flight a thread, where nothing moves in vectors.
/// A choice, not measured: four loads are in flight for each that a warp waits for, in few registers.
constexpr int kColumnUnroll = 4, kMostUnrolled = 4;

/// By which vectors go: an element of the widest array that moves, or where that is not known of the
/// dominant's own operand. Of one that is half as wide a vector is 8 bytes.
int vector_bytes(const GroupDomain& domain, const MappingLimits& limits) {
  if (is_measured(domain, limits.row_work)) return limits.row_work.widest_bytes;
  return std::max(1, domain.widest_bytes > 0 ? domain.widest_bytes : domain.element_bytes);
}

/// Of which the lanes of a row should read whole sectors.
int sector_bytes(const GroupDomain& domain, const MappingLimits& limits) {
  return is_measured(domain, limits.row_work) ? limits.row_work.narrowest_bytes : domain.element_bytes;
}

/// Vectors of so many elements divide `length` and move at once, `bytes` of the widest array.
int widest_vector(std::int64_t length, const GroupDomain& domain, const MappingLimits& limits, int bytes) {
  int vector = std::max(1, bytes / vector_bytes(domain, limits));
  while (vector > 1 && (length == 0 || length % vector != 0)) vector /= 2;
  return vector;
}

/// Elements of a vector for rows that none divides (analysis/schedule/layout.h, peeled), or 0: short rows
/// would be all ends, accumulators across the rows want the same columns in each, and what is not laid out
/// like the domain would be read element by element, neighbouring lanes apart.
int peeled_vector(const GroupDomain& domain, const MappingLimits& limits) {
  const int vector = kVectorBytes / vector_bytes(domain, limits);
  const bool long_rows = domain.cols * domain.element_bytes > kShortRowBytes;
  const bool peels = long_rows && limits.accumulators == 0 && limits.row_work.in_order;
  return peels && vector > 1 && domain.cols % vector != 0 ? vector : 0;
}

Dealt elements(const GroupDomain& domain, const MappingLimits& limits) {
  Fastest fastest(domain, limits);
  const int widest = domain.guarded ? 1 : widest_vector(domain.rows, domain, limits, limits.vector_bytes);
  for (int vector = widest; vector >= 1; vector /= 2) {
    for (int unroll = 1; unroll <= (domain.guarded ? 1 : kMostUnrolled); unroll *= 2) {
      const std::int64_t whole = std::int64_t{limits.block} * vector * unroll;
      const std::int64_t per_task = std::clamp<std::int64_t>(domain.rows, 1, whole);
      fastest.offer(deal(mapping::Elements{domain.rows, per_task, {vector, unroll}, std::nullopt}, limits));
    }
  }
  return fastest.best();
}

/// The rows of a block in so many segments each.
Mapping split_rows(const mapping::Rows& whole, std::int64_t n, const GroupDomain& domain,
                   const MappingLimits& limits) {
  mapping::Segments segments{limits.block, vectors(whole), static_cast<int>(n), false};
  const std::int64_t length = ceil_div(whole.cols, n);
  if (whole.cols % n != 0)
    segments.vectors.width = 1;
  else if (length % segments.vectors.width != 0)
    segments.vectors.width = widest_vector(length, domain, limits, limits.vector_bytes);
  return mapping::Rows{whole.rows, whole.cols, segments};
}

/// Offers the mapping whole, and split over 2, 3, 4, 6, 8, 12, ... blocks of the wave: what lies between
/// differs little, and powers of two leave segments of whole vectors.
void offer_splits(const Mapping& whole, std::int64_t most, int wanted, const GroupDomain& domain,
                  const MappingLimits& limits, Fastest& fastest) {
  const auto* rows = as<mapping::Rows>(whole);
  const std::int64_t cols = extents(whole).cols;
  const auto split = [&](std::int64_t n) {
    Mapping mapping = rows != nullptr && n > 1 ? split_rows(*rows, n, domain, limits) : whole;
    if (auto* columns = as<mapping::Columns>(mapping)) columns->segments = static_cast<int>(n);
    fastest.offer(deal(mapping, limits));
  };
  if (wanted > 0) return split(wanted);
  split(1);
  std::int64_t even = 1;  // the most that divide the columns
  const auto offer = [&](std::int64_t n) {
    split(n);
    if (cols % n == 0) even = n;
  };
  for (std::int64_t n = 2; n < most; n *= 2) {
    offer(n);
    if (n * 3 / 2 < most) offer(n * 3 / 2);
  }
  // Segments that do not divide them end in masked steps. 16384x768 summed in 11 segments instead of 8 takes
  // a quarter more instructions for 4 % of simulated time (H200), or 3 % more time (A100).
  const bool masked = rows == nullptr && cols % std::max<std::int64_t>(most, 1) != 0;
  if (most > 1 && (!masked || 2 * even <= most)) split(most);
}

/// Candidates, the natural one first: for short rows as many threads as read the row at once, then fewer,
/// then more up to a warp; for longer ones more and more warps, from `least` threads on.
std::vector<std::int64_t> threads_to_offer(const GroupDomain& domain, int vector, int block,
                                           std::int64_t least) {
  std::vector<std::int64_t> result;
  if (domain.cols * domain.element_bytes > kShortRowBytes) {
    for (std::int64_t threads = least; threads <= block; threads *= 2) result.push_back(threads);
    return result;
  }
  const auto vectors = static_cast<std::uint64_t>(std::max<std::int64_t>(1, ceil_div(domain.cols, vector)));
  const std::int64_t natural =
      std::min<std::int64_t>(kWarp, static_cast<std::int64_t>(std::bit_ceil(vectors)));
  for (std::int64_t threads = natural; threads >= 1; threads /= 2) result.push_back(threads);
  for (std::int64_t threads = natural * 2; threads <= kWarp; threads *= 2) result.push_back(threads);
  return result;
}

/// Offers rows whose threads load `vector` elements at a time.
void offer_rows(const GroupDomain& domain, const MappingLimits& limits, int vector, int wanted,
                Fastest& fastest) {
  // Where rows lie side by side in memory, those of a task are whole sectors there, if their tile leaves room
  // for other blocks.
  const auto side_by_side = static_cast<std::int64_t>(std::bit_floor(
      static_cast<std::uint64_t>(std::max(1, limits.block * domain.element_bytes / kSectorBytes))));
  const auto mapping_of = [&](std::int64_t threads, std::int64_t rows, int unroll) {
    const mapping::Lanes lanes{static_cast<int>(threads), rows, {vector, unroll}, std::nullopt};
    return mapping::Rows{domain.rows, domain.cols, lanes};
  };
  const mapping::Rows turned = mapping_of(1, kSectorBytes / domain.element_bytes, 1);
  const std::int64_t tile = limits.accumulators == 0 ? tiles_turned(domain, turned, limits) : 0;
  const bool tiled = tile > 0 && tile <= limits.tuned_for->shared_bytes_per_block_default;
  const std::int64_t least = tiled ? std::min<std::int64_t>(kWarp, side_by_side) : kWarp;
  const std::vector<std::int64_t> offered = threads_to_offer(domain, vector, limits.block, least);
  const std::int64_t last = *std::max_element(offered.begin(), offered.end());
  for (const std::int64_t threads : offered) {
    if (tiled && threads > side_by_side) continue;
    // Lanes of a row read whole sectors, or all of it at once.
    const std::int64_t at_once = threads * vector;
    if (at_once < domain.cols && at_once * sector_bytes(domain, limits) < kSectorBytes) continue;
    // Accumulators across the rows stay in registers, or the row gets more threads; where none are left the
    // kernel may be refused for them (accumulators_fit), but other rows of it have none.
    const std::int64_t elements = ceil_div(domain.cols, at_once) * vector;
    if (threads < last && elements * limits.accumulators > accumulator_room(limits)) continue;
    const std::int64_t most = domain.rows < limits.blocks_per_wave && threads == limits.block
                                  ? std::min(limits.blocks_per_wave / std::max<std::int64_t>(1, domain.rows),
                                             ceil_div(domain.cols, std::int64_t{limits.block} * vector))
                                  : 1;
    const auto unroll = static_cast<int>(std::clamp<std::int64_t>(
        ceil_div(domain.cols, at_once), 1, vector > 1 ? kMostUnrolled / 2 : kMostUnrolled));
    offer_splits(mapping_of(threads, limits.block / threads, unroll), most, wanted, domain, limits, fastest);
  }
}

/// Offers rows that the blocks of a cluster share, where each of their threads has a vector.
void offer_clusters(const GroupDomain& domain, const MappingLimits& limits, int vector, Fastest& fastest) {
  const std::int64_t threads = std::int64_t{limits.block} * limits.cluster;
  if (limits.cluster == 1 || domain.cols < threads * vector) return;
  const std::int64_t vectors = ceil_div(domain.cols, threads * vector);
  if (vectors * vector * limits.accumulators > accumulator_room(limits)) return;
  const auto unroll =
      static_cast<int>(std::clamp<std::int64_t>(vectors, 1, vector > 1 ? kMostUnrolled / 2 : kMostUnrolled));
  const mapping::Cluster cluster{limits.cluster, static_cast<int>(threads), {vector, unroll}, std::nullopt};
  fastest.offer(deal(mapping::Rows{domain.rows, domain.cols, cluster}, limits));
}

Dealt rows(const GroupDomain& domain, const MappingLimits& limits, int wanted) {
  Fastest fastest(domain, limits);
  if (wanted == 0) offer_staged(domain, limits, fastest);
  const auto offer_rows_alone = [&] {
    offer_single_rows(domain, limits, 1, fastest);
    if (limits.cluster > 1) offer_single_rows(domain, limits, limits.cluster, fastest);
  };
  // What is summed across is planned without them too, and its cost knows what rows ask for beside theirs.
  if (wanted == 0 && limits.accumulators > 0) offer_rows_alone();
  if (limits.accumulators > 0 && fastest.found() && stages_a_row(fastest.best().mapping))
    return fastest.best();
  const int peeled = peeled_vector(domain, limits);
  const int widest = widest_vector(domain.cols, domain, limits, limits.vector_bytes);
  if (peeled > 0) offer_rows(domain, limits, peeled, wanted, fastest);
  offer_rows(domain, limits, widest, wanted, fastest);
  // A thread of a cluster has few peeled vectors of 16-bit elements, and those at the ends come one by one:
  // less is in flight than an SM wants (512x50257 on H200).
  if (wanted == 0 && (peeled == 0 || domain.element_bytes >= 4)) {
    if (peeled > 0) offer_clusters(domain, limits, peeled, fastest);
    offer_clusters(domain, limits, widest, fastest);
  }
  if (wanted == 0 && limits.accumulators == 0) offer_rows_alone();
  return fastest.best();
}

/// Offers tiles of `tile` results side by side, `vector` of them a thread.
void offer_columns(const GroupDomain& domain, const MappingLimits& limits, std::int64_t tile, int vector,
                   int wanted, Fastest& fastest) {
  const int unroll = vector > 1 ? kColumnUnroll / 2 : kColumnUnroll;
  const mapping::Columns mapping{.results = domain.rows,
                                 .length = domain.cols,
                                 .tile = tile,
                                 .threads = static_cast<int>(limits.block / tile),
                                 .vectors = {vector, unroll}};
  const Layout layout(mapping, limits.block);
  if (layout.slices * layout.places > std::int64_t{limits.block} * vector) return;
  const std::int64_t tiles = std::max<std::int64_t>(1, ceil_div(domain.rows, tile));
  const std::int64_t most =
      tiles < limits.blocks_per_wave
          ? std::min(limits.blocks_per_wave / tiles, ceil_div(domain.cols, layout.slices * unroll))
          : 1;
  offer_splits(mapping, most, wanted, domain, limits, fastest);
}

/// Offers columns that move in vectors (analysis/schedule/layout.h, ColumnVectors): of all results at once
/// where none divides them and a block has room, else of tiles as wide as a thread's shift allows.
void offer_column_vectors(const GroupDomain& domain, const MappingLimits& limits, std::int64_t tile,
                          int wanted, Fastest& fastest) {
  const int widest = std::max(1, kVectorBytes / vector_bytes(domain, limits));
  const int whole = widest_vector(domain.rows, domain, limits, kVectorBytes);
  if (!limits.column_vectors || domain.guarded || widest == 1 || domain.rows < 2) return;
  if (whole > 1 && tile % whole == 0) offer_columns(domain, limits, tile, whole, wanted, fastest);
  if (whole == widest) return;
  if (domain.rows <= limits.block) return offer_columns(domain, limits, domain.rows, widest, wanted, fastest);
  const std::int64_t alignment = 2 * widest, places = limits.block * widest / alignment;
  const std::int64_t most = places - alignment;
  if (most <= 0) return;
  offer_columns(domain, limits, most, widest, wanted, fastest);
  // As many tiles on every SM.
  const std::int64_t sms = limits.tuned_for->sms, tiles = round_up(ceil_div(domain.rows, most), sms);
  const std::int64_t even = round_up(ceil_div(domain.rows, tiles), alignment);
  if (2 * even > most) offer_columns(domain, limits, even, widest, wanted, fastest);
}

Dealt columns(const GroupDomain& domain, const MappingLimits& limits, int wanted) {
  Fastest fastest(domain, limits);
  const bool serial = wanted == 0 && domain.cols <= kSerialColumns &&
                      domain.rows >= kSerialRowsPerBlock * limits.blocks_per_wave;
  const std::int64_t tile =
      std::clamp<std::int64_t>(domain.rows, 1, std::min<std::int64_t>(kColumnTileRows, limits.block));
  if (!serial) offer_column_vectors(domain, limits, tile, wanted, fastest);
  offer_columns(domain, limits, serial ? limits.block : tile, 1, wanted, fastest);
  // 33 results side by side as one tile, whose warps read on where a row of memory ends, and not as two of
  // which one is of single elements.
  if (tile < domain.rows && domain.rows < 2 * kColumnTileRows && domain.rows <= limits.block)
    offer_columns(domain, limits, domain.rows, 1, wanted, fastest);
  return fastest.best();
}

}  // namespace

Dealt map_tuned(const GroupDomain& domain, const MappingLimits& limits, int split) {
  switch (domain.kind) {
    case GroupDomain::Kind::kElements:
      return elements(domain, limits);
    case GroupDomain::Kind::kRows:
      return rows(domain, limits, split);
    case GroupDomain::Kind::kColumns:
      return columns(domain, limits, split);
  }
  return {};
}

}  // namespace stitchwork::astitch
