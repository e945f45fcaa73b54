#include <algorithm>
#include <limits>
#include <vector>

#include "analysis/schedule/clusters.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/tiles.h"
#include "analysis/stitching/mapping_offers.h"
#include "core/base/arithmetic.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::astitch {
namespace {

/// Rows that are summed across and are no longer than this stay in registers: block barriers take more time
/// than copies ahead save (16384x768 on H200: 46.5 us simulated for 40.9).
constexpr std::int64_t kShortSummedRowBytes = 8 * 1024;
/// Of copies such rows have in flight an SM, and tasks that have tiles at a time, at most.
/// A choice, not measured: about twice what an SM of an H200 takes in during a round trip to memory.
constexpr std::int64_t kSummedBytesInFlight = 48 * 1024;
constexpr int kMostStages = 4;
/// Of a block's shared memory beside tiles: what the device takes, values of rows, the reduction workspace.
/// A choice, not measured: 1 KB is the device's (CUDA Programming Guide), the other for rows and workspace.
constexpr std::int64_t kSharedSpare = 2048;
/// Tasks of a block that asks for some ahead, at least: its first ones nothing hides, and shares that differ
/// by a task are then nearly even.
/// A choice, not measured: the shares of 8 and 9 tasks differ by an eighth.
constexpr std::int64_t kLeastTasksAhead = 8;
/// Tasks of copies an SM has at least: with few of them nothing is under way while the last ones are
/// computed.
/// A choice, not measured: a quarter of the copies is then exposed at the end.
constexpr std::int64_t kLeastTasksAnSm = 4;
/// Of the accumulators' room those of staged single rows, whose loops are unrolled over all that a thread has
/// of a row: with more of them kernels spill (layer norm's gradient, 16384x8192 in bf16, at 64 of 128).
/// A choice, not measured: a fifth of the room is left for addresses.
constexpr double kStagedAccumulators = 0.8;
/// Loads in flight a thread, where nothing moves in vectors.
/// As many as the estimate counts in flight (kMaxLoadsInFlight), because more gain nothing by it.
constexpr int kSingleRowUnroll = 8;

/// Tasks that have tiles at a time. Of those that take as long, first what overlaps a block's copies with its
/// own arithmetic, which the model leaves to the other blocks.
const std::vector<int>& stages_to_offer(bool copied) {
  static const std::vector<int> kCopied = {2, 1, 3, kMostStages}, kThroughRegisters = {0};
  return copied ? kCopied : kThroughRegisters;
}

/// Offers a staged mapping with tiles for so many tasks of a block (0: its rows go through registers), if
/// they fit; returns whether it did. Blocks that ask for tasks ahead share out the tasks of a wave.
bool offer_stages(mapping::Lanes lanes, int stages, const GroupDomain& domain, const MappingLimits& limits,
                  Fastest& fastest) {
  const RowWork& work = limits.row_work;
  const Device& device = *limits.tuned_for;
  lanes.tile = copy_of(stages, limits.bulk_copies);
  const std::int64_t tiles =
      lanes.rows * domain.cols * (work.staged_bytes + std::max(0, stages - 1) * work.staged_input_bytes) +
      kSharedSpare;
  if (tiles > device.shared_bytes_per_block_default) return false;
  MappingLimits beside = limits;
  beside.blocks_per_wave =
      std::min(limits.blocks_per_wave,
               assume_relax_apply(device, limits.block, tiles, limits.max_blocks_per_sm).blocks_per_wave);
  beside.one_wave = limits.one_wave || stages > 1;
  if (beside.blocks_per_wave == 0) return false;
  const Dealt dealt = deal(mapping::Rows{domain.rows, domain.cols, lanes}, beside);
  // Of fewer tasks than SMs each takes what its latencies are, and staging has more of them.
  if (dealt.deal.tasks < device.sms * (stages > 0 ? kLeastTasksAnSm : 1)) return false;
  if (stages > 1 && dealt.deal.most_tasks() < kLeastTasksAhead) return false;
  fastest.offer(dealt);
  return true;
}

/// Of the tiles of a row, for those of all tasks asked for ahead.
std::int64_t single_row_bytes(const Mapping& mapping, const Deal& deal, const RowWork& work) {
  const std::int64_t rows =
      work.staged_bytes + std::max(0, copy_depth(mapping) - 1) * work.staged_input_bytes;
  const std::int64_t cols = stages_cols(mapping, deal) ? work.staged_col_bytes : 0;
  return staged_elements(StagedPart::kElements, mapping) * rows +
         staged_elements(StagedPart::kCols, mapping) * cols;
}

/// A row a task, of all threads of a block or of a cluster's.
Mapping single_row(const GroupDomain& domain, int block, int cluster, const mapping::Vectors& vectors,
                   const mapping::Copy& copy) {
  using namespace mapping;
  if (cluster == 1) return Rows{domain.rows, domain.cols, Lanes{block, 1, vectors, copy}};
  const auto* ahead = std::get_if<Async>(&copy);
  const PartCopy part = ahead == nullptr ? PartCopy(ByLoads{}) : PartCopy(*ahead);
  return Rows{domain.rows, domain.cols, mapping::Cluster{cluster, cluster * block, vectors, part}};
}

}  // namespace

void offer_staged(const GroupDomain& domain, const MappingLimits& limits, Fastest& fastest) {
  const RowWork& work = limits.row_work;
  if (!limits.staging || !is_measured(domain, work) || !work.arrays_in_order || work.staged_bytes == 0 ||
      domain.cols * work.narrowest_bytes % kSectorBytes == 0)
    return;
  int least_conflicts = std::numeric_limits<int>::max();
  for (std::int64_t threads = 1; threads <= std::min<std::int64_t>(limits.block, domain.cols); threads *= 2) {
    const mapping::Lanes lanes{static_cast<int>(threads), limits.block / threads, {}, mapping::ByLoads{}};
    const std::int64_t elements = ceil_div(domain.cols, threads);
    if (lanes.rows * domain.cols * work.narrowest_bytes % kSectorBytes != 0) continue;
    if (elements * limits.accumulators > accumulator_room(limits)) continue;
    // More threads a row hold longer rows, but not at the price of bank conflicts that fewer do not have.
    const int conflicts =
        staged_wavefronts(mapping::Rows{domain.rows, domain.cols, lanes}, domain.element_bytes);
    if (conflicts > least_conflicts) continue;
    for (const int stages : stages_to_offer(limits.async_copies))
      if (offer_stages(lanes, stages, domain, limits, fastest)) least_conflicts = conflicts;
  }
}

void offer_single_rows(const GroupDomain& domain, const MappingLimits& limits, int cluster,
                       Fastest& fastest) {
  const RowWork& work = limits.row_work;
  if (!limits.single_rows || !is_measured(domain, work) || !work.arrays_in_order || work.staged_bytes == 0 ||
      domain.cols * domain.element_bytes <= (limits.accumulators > 0 ? kShortSummedRowBytes : kShortRowBytes))
    return;
  const Device& device = *limits.tuned_for;
  // By vectors where all that has a place in the row is in its tile, or begins with vectors too. Else values
  // a column come one by one, as many in flight as would be with vectors.
  const int widest = std::max(1, kVectorBytes / work.widest_bytes);
  const bool whole = domain.cols % widest == 0;
  const bool peels = work.in_order && limits.accumulators == 0;
  const int width = whole || peels ? widest : 1;
  const Mapping by_loads = single_row(domain, limits.block, cluster, {width, 1}, mapping::ByLoads{});
  const std::int64_t elements = Layout(by_loads, limits.block).elements();
  if ((cluster - 1) * staged_cols(by_loads) >= domain.cols ||
      elements * limits.accumulators > kStagedAccumulators * static_cast<double>(accumulator_room(limits)))
    return;
  // Beside values a column that come through registers in every task, copies of the rows alone are no
  // faster (norms of 8,192 and 50,257 columns on H200 and A100, simulated), and less is in flight.
  const bool copied = limits.async_copies && (work.in_order || limits.accumulators > 0);
  for (const int stages : stages_to_offer(copied)) {
    Mapping mapping = single_row(domain, limits.block, cluster, {width, 1},
                                 copy_of(stages, cluster == 1 && limits.bulk_copies));
    const std::int64_t tasks_a_block =
        limits.one_wave ? ceil_div(domain.rows, limits.blocks_per_wave / cluster) : 1;
    const Deal assumed{.tasks = stages > 1 ? std::max(kLeastTasksAhead, tasks_a_block) : tasks_a_block};
    const bool cols_in_tiles = work.in_order || stages_cols(mapping, assumed);
    set_vectors(mapping, {width, cols_in_tiles ? 1 : std::max(1, kSingleRowUnroll / width)});
    const std::int64_t tiles = single_row_bytes(mapping, assumed, work) + kSharedSpare;
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
    const Dealt dealt = deal(mapping, beside);
    if (stages <= 1 || dealt.deal.most_tasks() >= kLeastTasksAhead) fastest.offer(dealt);
  }
}

}  // namespace stitchwork::astitch
