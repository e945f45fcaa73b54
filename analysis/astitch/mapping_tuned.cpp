#include "analysis/astitch/mapping_tuned.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <vector>

#include "analysis/astitch/memory_order.h"
#include "analysis/clusters.h"
#include "analysis/launch.h"
#include "analysis/tiles.h"
#include "analysis/vectors.h"
#include "core/arithmetic.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::astitch {
namespace {

constexpr int kWarp = 32, kSectorBytes = 32;
/// Rows up to this long take a warp or less: shuffles end their reductions, no block barrier.
constexpr std::int64_t kShortRowBytes = 1024;
/// Rows that are summed across and are no longer than this stay in registers: block barriers take more time
/// than copies ahead save (16384x768 on H200: 46.5 us simulated for 40.9).
constexpr std::int64_t kShortSummedRowBytes = 8 * 1024;
/// Of copies such rows have in flight an SM, and tasks that have tiles at a time, at most.
constexpr std::int64_t kSummedBytesInFlight = 48 * 1024;
constexpr int kMostStages = 4;
/// One thread an output: the reduction is this short and there are so many outputs for each block of a wave.
constexpr std::int64_t kSerialColumns = 16, kSerialRowsPerBlock = 32;
/// Rows side by side in a column tile: a warp reads a 128-byte line of 4-byte elements.
constexpr std::int64_t kColumnTileRows = 32;
/// Of a block's shared memory beside tiles: what the device takes, values of rows, the reduction workspace.
constexpr std::int64_t kSharedSpare = 2048;
/// Tasks of a block that asks for some ahead, at least: its first ones nothing hides, and shares that differ
/// by a task are then nearly even.
constexpr std::int64_t kLeastTasksAhead = 8;
/// Tasks of copies an SM has at least: with few of them nothing is under way while the last ones are
/// computed.
constexpr std::int64_t kLeastTasksAnSm = 4;
/// Of the accumulators' room those of staged single rows, whose loops are unrolled over all that a thread has
/// of a row: with more of them kernels spill (layer norm's gradient, 16384x8192 in bf16, at 64 of 128).
constexpr double kStagedAccumulators = 0.8;
/// Loads in flight a thread, where nothing moves in vectors.
constexpr int kColumnUnroll = 4, kMostUnrolled = 4, kSingleRowUnroll = 8;

bool is_measured(const Domain& domain, const RowWork& work) {
  return work.widest_bytes > 0 && work.elements == domain.rows * domain.cols;
}

/// By which vectors go: an element of the widest array that moves, or where that is not known of the
/// dominant's own operand. Of one that is half as wide a vector is 8 bytes.
int vector_bytes(const Domain& domain, const MappingLimits& limits) {
  if (is_measured(domain, limits.row_work)) return limits.row_work.widest_bytes;
  return std::max(1, domain.widest_bytes > 0 ? domain.widest_bytes : domain.element_bytes);
}

/// Of which the lanes of a row should read whole sectors.
int sector_bytes(const Domain& domain, const MappingLimits& limits) {
  return is_measured(domain, limits.row_work) ? limits.row_work.narrowest_bytes : domain.element_bytes;
}

/// Vectors of so many elements divide `length` and move at once.
int widest_vector(std::int64_t length, const Domain& domain, const MappingLimits& limits) {
  int vector = std::max(1, kVectorBytes / vector_bytes(domain, limits));
  while (vector > 1 && (length == 0 || length % vector != 0)) vector /= 2;
  return vector;
}

/// Elements of a vector for rows that none divides (analysis/vectors.h, is_peeled), or 0: short rows would be
/// all ends, accumulators across the rows want the same columns in each, and what is not laid out like the
/// domain would be read element by element, neighbouring lanes apart.
int peeled_vector(const Domain& domain, const MappingLimits& limits) {
  const int vector = kVectorBytes / vector_bytes(domain, limits);
  const bool long_rows = domain.cols * domain.element_bytes > kShortRowBytes;
  const bool peels = long_rows && limits.accumulators == 0 && limits.row_work.in_order;
  return peels && vector > 1 && domain.cols % vector != 0 ? vector : 0;
}

/// Fills tasks, blocks and tasks_per_block: as many blocks as there are slots or tasks.
ThreadMapping deal(ThreadMapping mapping, const MappingLimits& limits) {
  mapping.tasks = std::max<std::int64_t>(1, ceil_div(mapping.rows, mapping.rows_per_block)) * mapping.split;
  mapping.blocks = mapping.tasks * mapping.cluster;
  if (limits.one_wave)
    mapping.blocks = std::min(mapping.blocks, limits.blocks_per_wave / mapping.cluster * mapping.cluster);
  mapping.tasks_per_block = ceil_div(mapping.tasks, task_takers(mapping));
  return mapping;
}

/// The fastest of the mappings so far; of those that the model hardly tells apart the first.
class Fastest {
 public:
  Fastest(const Domain& domain, const MappingLimits& limits) : domain_(domain), limits_(limits) {}

  void offer(const ThreadMapping& mapping) {
    const double us = domain_us(domain_, mapping, limits_);
    if (found_ && us >= us_ * (1 - kIndifference)) return;
    found_ = true;
    us_ = us;
    best_ = mapping;
  }
  bool found() const { return found_; }
  const ThreadMapping& best() const { return best_; }

 private:
  const Domain& domain_;
  const MappingLimits& limits_;
  bool found_ = false;
  double us_ = 0;
  ThreadMapping best_;
};

ThreadMapping elements(const Domain& domain, const MappingLimits& limits) {
  Fastest fastest(domain, limits);
  const int widest = domain.guarded ? 1 : widest_vector(domain.rows, domain, limits);
  for (int vector = widest; vector >= 1; vector /= 2) {
    for (int unroll = 1; unroll <= (domain.guarded ? 1 : kMostUnrolled); unroll *= 2) {
      ThreadMapping mapping;
      mapping.kind = MappingKind::kElementwise;
      mapping.rows = domain.rows;
      mapping.vector = vector;
      mapping.unroll = unroll;
      const std::int64_t whole = std::int64_t{limits.block} * vector * unroll;
      mapping.rows_per_block = std::clamp<std::int64_t>(domain.rows, 1, whole);
      fastest.offer(deal(mapping, limits));
    }
  }
  return fastest.best();
}

/// Offers the mapping whole, and split over 2, 3, 4, 6, 8, 12, ... blocks of the wave: what lies between
/// differs little, and powers of two leave segments of whole vectors.
void offer_splits(const ThreadMapping& whole, std::int64_t most, int wanted, const Domain& domain,
                  const MappingLimits& limits, Fastest& fastest) {
  const auto split = [&](std::int64_t n) {
    ThreadMapping mapping = whole;
    mapping.split = static_cast<int>(n);
    mapping.combine = n > 1 ? Combine::kPartials : Combine::kNone;
    if (mapping.kind == MappingKind::kRowPack && n > 1) {
      mapping.kind = MappingKind::kRowSplit;
      mapping.rows_per_block = 1;
      mapping.threads_per_row = limits.block;
    }
    const std::int64_t length = ceil_div(mapping.cols, n);
    if (mapping.kind == MappingKind::kRowSplit && (mapping.cols % n != 0 || length % mapping.vector != 0))
      mapping.vector = mapping.cols % n == 0 ? widest_vector(length, domain, limits) : 1;
    fastest.offer(deal(mapping, limits));
  };
  if (wanted > 0) return split(wanted);
  split(1);
  std::int64_t even = 1;  // the most that divide the columns
  const auto offer = [&](std::int64_t n) {
    split(n);
    if (whole.cols % n == 0) even = n;
  };
  for (std::int64_t n = 2; n < most; n *= 2) {
    offer(n);
    if (n * 3 / 2 < most) offer(n * 3 / 2);
  }
  // Segments that do not divide them end in masked steps. 16384x768 summed in 11 segments instead of 8 takes
  // a quarter more instructions for 4 % of simulated time (H200), or 3 % more time (A100).
  const bool masked = whole.kind == MappingKind::kColumn && whole.cols % std::max<std::int64_t>(most, 1) != 0;
  if (most > 1 && (!masked || 2 * even <= most)) split(most);
}

/// Candidates, the natural one first: for short rows as many threads as read the row at once, then fewer,
/// then more up to a warp; for longer ones more and more warps, from `least` threads on.
std::vector<std::int64_t> threads_a_row(const Domain& domain, int vector, int block, std::int64_t least) {
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

std::int64_t accumulator_room(const MappingLimits& limits) {
  return most_accumulator_registers(
      assume_relax_apply(*limits.tuned_for, limits.block, 0, limits.max_blocks_per_sm).register_bound);
}

/// Offers rows whose threads load `vector` elements at a time.
void offer_rows(const Domain& domain, const MappingLimits& limits, int vector, int wanted, Fastest& fastest) {
  ThreadMapping mapping;
  mapping.kind = MappingKind::kRowPack;
  mapping.rows = domain.rows;
  mapping.cols = domain.cols;
  mapping.vector = vector;
  // Where rows lie side by side in memory, those of a task are whole sectors there, if their tile leaves room
  // for other blocks.
  const auto side_by_side = static_cast<std::int64_t>(std::bit_floor(
      static_cast<std::uint64_t>(std::max(1, limits.block * domain.element_bytes / kSectorBytes))));
  ThreadMapping turned = mapping;
  turned.rows_per_block = kSectorBytes / domain.element_bytes;
  const std::int64_t tile = limits.accumulators == 0 ? turned_tile_bytes(domain, turned, limits) : 0;
  const bool tiled = tile > 0 && tile <= limits.tuned_for->shared_bytes_per_block_default;
  const std::int64_t least = tiled ? std::min<std::int64_t>(kWarp, side_by_side) : kWarp;
  for (const std::int64_t threads : threads_a_row(domain, mapping.vector, limits.block, least)) {
    if (tiled && threads > side_by_side) continue;
    // Lanes of a row read whole sectors, or all of it at once.
    const std::int64_t at_once = threads * mapping.vector;
    if (at_once < domain.cols && at_once * sector_bytes(domain, limits) < kSectorBytes) continue;
    // Accumulators across the rows stay in registers, or the row gets more threads.
    const std::int64_t elements = ceil_div(domain.cols, at_once) * mapping.vector;
    if (threads < limits.block && elements * limits.accumulators > accumulator_room(limits)) continue;
    mapping.threads_per_row = static_cast<int>(threads);
    mapping.rows_per_block = limits.block / threads;
    const std::int64_t most =
        domain.rows < limits.blocks_per_wave && threads == limits.block
            ? std::min(limits.blocks_per_wave / std::max<std::int64_t>(1, domain.rows),
                       ceil_div(domain.cols, std::int64_t{limits.block} * mapping.vector))
            : 1;
    mapping.unroll = static_cast<int>(std::clamp<std::int64_t>(
        ceil_div(domain.cols, at_once), 1, mapping.vector > 1 ? kMostUnrolled / 2 : kMostUnrolled));
    offer_splits(mapping, most, wanted, domain, limits, fastest);
  }
}

/// Offers rows that the blocks of a cluster share, where each of their threads has a vector.
void offer_clusters(const Domain& domain, const MappingLimits& limits, int vector, Fastest& fastest) {
  const std::int64_t threads = std::int64_t{limits.block} * limits.cluster;
  if (limits.cluster == 1 || domain.cols < threads * vector) return;
  ThreadMapping mapping;
  mapping.kind = MappingKind::kRowPack;
  mapping.rows = domain.rows;
  mapping.cols = domain.cols;
  mapping.vector = vector;
  mapping.cluster = limits.cluster;
  mapping.threads_per_row = static_cast<int>(threads);
  const std::int64_t vectors = ceil_div(domain.cols, threads * vector);
  if (vectors * vector * limits.accumulators > accumulator_room(limits)) return;
  mapping.unroll =
      static_cast<int>(std::clamp<std::int64_t>(vectors, 1, vector > 1 ? kMostUnrolled / 2 : kMostUnrolled));
  fastest.offer(deal(mapping, limits));
}

/// Tasks that have tiles at a time. Of those that take as long, first what overlaps a block's copies with its
/// own arithmetic, which the model leaves to the other blocks.
const std::vector<int>& stages_to_offer(bool copied) {
  static const std::vector<int> kCopied = {2, 1, 3, kMostStages}, kThroughRegisters = {0};
  return copied ? kCopied : kThroughRegisters;
}

/// Offers a staged mapping with tiles for so many tasks of a block (0: its rows go through registers), if
/// they fit; returns whether it did. Blocks that ask for tasks ahead share out the tasks of a wave.
bool offer_stages(ThreadMapping mapping, int stages, const Domain& domain, const MappingLimits& limits,
                  Fastest& fastest) {
  const RowWork& work = limits.row_work;
  const Device& device = *limits.tuned_for;
  mapping.stages = stages;
  mapping.bulk = stages > 0 && limits.bulk_copies;
  const std::int64_t tiles = mapping.rows_per_block * domain.cols *
                                 (work.staged_bytes + std::max(0, stages - 1) * work.staged_input_bytes) +
                             kSharedSpare;
  if (tiles > device.shared_bytes_per_block_default) return false;
  MappingLimits beside = limits;
  beside.blocks_per_wave =
      std::min(limits.blocks_per_wave,
               assume_relax_apply(device, limits.block, tiles, limits.max_blocks_per_sm).blocks_per_wave);
  beside.one_wave = limits.one_wave || stages > 1;
  if (beside.blocks_per_wave == 0) return false;
  const ThreadMapping dealt = deal(mapping, beside);
  // Of fewer tasks than SMs each takes what its latencies are, and staging has more of them.
  if (dealt.tasks < device.sms * (stages > 0 ? kLeastTasksAnSm : 1)) return false;
  if (stages > 1 && dealt.tasks_per_block < kLeastTasksAhead) return false;
  fastest.offer(dealt);
  return true;
}

/// Offers rows that move through tiles, where they begin within sectors: as many lanes a row as leave tasks
/// of whole sectors.
void offer_staged(const Domain& domain, const MappingLimits& limits, Fastest& fastest) {
  const RowWork& work = limits.row_work;
  if (!limits.staging || !is_measured(domain, work) || !work.arrays_in_order || work.staged_bytes == 0 ||
      domain.cols * work.narrowest_bytes % kSectorBytes == 0)
    return;
  ThreadMapping mapping;
  mapping.kind = MappingKind::kRowPack;
  mapping.rows = domain.rows;
  mapping.cols = domain.cols;
  mapping.staged = true;
  int least_conflicts = std::numeric_limits<int>::max();
  for (std::int64_t threads = 1; threads <= std::min<std::int64_t>(limits.block, domain.cols); threads *= 2) {
    mapping.threads_per_row = static_cast<int>(threads);
    mapping.rows_per_block = limits.block / threads;
    const std::int64_t elements = ceil_div(domain.cols, threads);
    if (mapping.rows_per_block * domain.cols * work.narrowest_bytes % kSectorBytes != 0) continue;
    if (elements * limits.accumulators > accumulator_room(limits)) continue;
    // More threads a row hold longer rows, but not at the price of bank conflicts that fewer do not have.
    const int conflicts = staged_wavefronts(mapping, domain.element_bytes);
    if (conflicts > least_conflicts) continue;
    for (const int stages : stages_to_offer(limits.async_copies))
      if (offer_stages(mapping, stages, domain, limits, fastest)) least_conflicts = conflicts;
  }
}

/// Of the tiles of a row, for those of all tasks asked for ahead.
std::int64_t single_row_bytes(const ThreadMapping& mapping, const RowWork& work) {
  const std::int64_t rows = work.staged_bytes + std::max(0, mapping.stages - 1) * work.staged_input_bytes;
  const std::int64_t cols = stages_cols(mapping) ? work.staged_col_bytes : 0;
  return staged_elements(StagedPart::kElements, mapping) * rows +
         staged_elements(StagedPart::kCols, mapping) * cols;
}

/// Offers long rows one a task, by all threads of a block or of a cluster's, in as much shared memory as a
/// block may ask for: each is read once, in whole sectors wherever it begins, and values a column are read
/// beside it in theirs.
void offer_single_rows(const Domain& domain, const MappingLimits& limits, int cluster, Fastest& fastest) {
  const RowWork& work = limits.row_work;
  if (!limits.single_rows || !is_measured(domain, work) || !work.arrays_in_order || work.staged_bytes == 0 ||
      domain.cols * domain.element_bytes <= (limits.accumulators > 0 ? kShortSummedRowBytes : kShortRowBytes))
    return;
  const Device& device = *limits.tuned_for;
  ThreadMapping mapping;
  mapping.kind = MappingKind::kRowPack;
  mapping.rows = domain.rows;
  mapping.cols = domain.cols;
  mapping.staged = true;
  mapping.cluster = cluster;
  mapping.threads_per_row = cluster * limits.block;
  // By vectors where all that has a place in the row is in its tile, or begins with vectors too. Else values
  // a column come one by one, as many in flight as would be with vectors.
  const int widest = std::max(1, kVectorBytes / work.widest_bytes);
  const bool whole = domain.cols % widest == 0;
  const bool peels = work.in_order && limits.accumulators == 0;
  mapping.vector = whole || peels ? widest : 1;
  const std::int64_t elements = vectors_a_thread(mapping, limits.block) * mapping.vector;
  if ((cluster - 1) * staged_cols(mapping) >= domain.cols ||
      elements * limits.accumulators > kStagedAccumulators * static_cast<double>(accumulator_room(limits)))
    return;
  // Beside values a column that come through registers in every task, copies of the rows alone are no
  // faster (norms of 8,192 and 50,257 columns on H200 and A100, simulated), and less is in flight.
  const bool copied = limits.async_copies && (work.in_order || limits.accumulators > 0);
  for (const int stages : stages_to_offer(copied)) {
    mapping.stages = stages;
    mapping.bulk = stages > 0 && cluster == 1 && limits.bulk_copies;
    const std::int64_t tasks_a_block =
        limits.one_wave ? ceil_div(domain.rows, limits.blocks_per_wave / cluster) : 1;
    mapping.tasks_per_block = stages > 1 ? std::max(kLeastTasksAhead, tasks_a_block) : tasks_a_block;
    const bool cols_in_tiles = work.in_order || stages_cols(mapping);
    mapping.unroll = cols_in_tiles ? 1 : std::max(1, kSingleRowUnroll / mapping.vector);
    const std::int64_t tiles = single_row_bytes(mapping, work) + kSharedSpare;
    if (tiles > device.shared_bytes_per_block_optin) continue;
    const int blocks =
        assume_relax_apply(device, limits.block, tiles, limits.max_blocks_per_sm).blocks_per_sm;
    // As many tasks of small parts as keep an SM's loads in flight, those of partials at the end included.
    const std::int64_t ahead = blocks * stages * staged_elements(StagedPart::kElements, mapping) *
                               std::int64_t{work.staged_input_bytes};
    if (limits.accumulators > 0 && stages > 1 && stages < kMostStages && ahead < kSummedBytesInFlight)
      continue;
    const std::int64_t wave = resident_blocks(device, blocks, cluster);
    // Within one wave other groups' blocks would not find room beside the tiles.
    if (wave == 0 || (limits.one_wave && wave < limits.blocks_per_wave)) continue;
    MappingLimits beside = limits;
    if (stages > 1) {
      beside.blocks_per_wave = std::min(limits.blocks_per_wave, wave);
      beside.one_wave = true;
    }
    const ThreadMapping dealt = deal(mapping, beside);
    if (stages <= 1 || dealt.tasks_per_block >= kLeastTasksAhead) fastest.offer(dealt);
  }
}

ThreadMapping rows(const Domain& domain, const MappingLimits& limits, int wanted) {
  Fastest fastest(domain, limits);
  if (wanted == 0) offer_staged(domain, limits, fastest);
  const auto offer_rows_alone = [&] {
    offer_single_rows(domain, limits, 1, fastest);
    if (limits.cluster > 1) offer_single_rows(domain, limits, limits.cluster, fastest);
  };
  // What is summed across is planned without them too, and its cost knows what rows ask for beside theirs.
  if (wanted == 0 && limits.accumulators > 0) offer_rows_alone();
  if (limits.accumulators > 0 && fastest.found() && stages_a_row(fastest.best())) return fastest.best();
  const int peeled = peeled_vector(domain, limits), widest = widest_vector(domain.cols, domain, limits);
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
void offer_columns(const Domain& domain, const MappingLimits& limits, std::int64_t tile, int vector,
                   int wanted, Fastest& fastest) {
  ThreadMapping mapping;
  mapping.kind = MappingKind::kColumn;
  mapping.rows = domain.rows;
  mapping.cols = domain.cols;
  mapping.rows_per_block = tile;
  mapping.threads_per_row = static_cast<int>(limits.block / mapping.rows_per_block);
  mapping.vector = vector;
  mapping.unroll = vector > 1 ? kColumnUnroll / 2 : kColumnUnroll;
  const std::int64_t slices = column_slices(mapping, limits.block);
  if (slices * column_places(mapping) > std::int64_t{limits.block} * vector) return;
  const std::int64_t tiles = std::max<std::int64_t>(1, ceil_div(mapping.rows, mapping.rows_per_block));
  const std::int64_t most =
      tiles < limits.blocks_per_wave
          ? std::min(limits.blocks_per_wave / tiles, ceil_div(domain.cols, slices * mapping.unroll))
          : 1;
  offer_splits(mapping, most, wanted, domain, limits, fastest);
}

/// Offers columns that move in vectors (analysis/vectors.h, ColumnVectors): of all results at once where none
/// divides them and a block has room, else of tiles as wide as a thread's shift allows.
void offer_column_vectors(const Domain& domain, const MappingLimits& limits, std::int64_t tile, int wanted,
                          Fastest& fastest) {
  const int widest = std::max(1, kVectorBytes / vector_bytes(domain, limits));
  const int whole = widest_vector(domain.rows, domain, limits);
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

ThreadMapping columns(const Domain& domain, const MappingLimits& limits, int wanted) {
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

/// Of an element of what `op` is computed from, element by element: the widest of these arrays. A bf16 row
/// that is converted and reduced in fp32 moves as bf16.
int bytes_in_memory(const Nodes& nodes, NodeId op) {
  constexpr std::size_t kMostOps = 64;
  const std::int64_t elements = nodes[op].elements;
  std::set<NodeId> seen{op};
  std::vector<NodeId> open{op};
  int bytes = 0;
  while (!open.empty() && seen.size() < kMostOps) {
    const NodeId id = open.back();
    open.pop_back();
    const Node& node = nodes.node(id);
    bool walked = false;
    if (nodes[id].member && !nodes[id].reduction)
      for (const NodeId operand : node.operands) {
        if (nodes[operand].elements != elements || nodes.node(operand).shape.is_tuple) continue;
        walked = true;
        if (seen.insert(operand).second) open.push_back(operand);
      }
    if (!walked && !nodes[id].transparent && !nodes[id].immediate)
      bytes = std::max(bytes, byte_size(node.shape.dtype));
  }
  return bytes > 0 ? bytes : byte_size(nodes.node(op).shape.dtype);
}

}  // namespace

Domain domain_of(const Nodes& nodes, NodeId dominant) {
  Domain domain;
  NodeId moved = dominant;
  domain.rows = nodes[dominant].elements;
  if (nodes[dominant].reduction) {
    const ReductionShape& shape = *nodes[dominant].reduction;
    domain.kind = lies_along_cols(nodes, dominant) ? Domain::Kind::kRows : Domain::Kind::kColumns;
    domain.rows = shape.rows;
    domain.cols = shape.cols;
    moved = nodes.node(dominant).operands[0];
  }
  domain.element_bytes = domain.widest_bytes = byte_size(nodes.node(moved).shape.dtype);
  if (nodes[dominant].reduction) domain.element_bytes = bytes_in_memory(nodes, moved);
  const auto& edges = nodes[dominant].edges;
  domain.guarded = std::any_of(edges.begin(), edges.end(), [](const Edge& edge) {
    return !edge.map || !edge.map->constraints.empty() || !edge.map->runtime.empty();
  });
  return domain;
}

ThreadMapping map_tuned(const Domain& domain, const MappingLimits& limits, int split) {
  switch (domain.kind) {
    case Domain::Kind::kElements:
      return elements(domain, limits);
    case Domain::Kind::kRows:
      return rows(domain, limits, split);
    case Domain::Kind::kColumns:
      return columns(domain, limits, split);
  }
  return {};
}

}  // namespace stitchwork::astitch
