#include <algorithm>
#include <bit>
#include <numeric>

#include "analysis/forms/mapping_tuned.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/mapping.h"
#include "analysis/schedule/tiles.h"
#include "core/base/arithmetic.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy.h"
#include "occupancy_model/timing.h"

namespace stitchwork::astitch {
namespace {

/// The share of a thread's registers in which elements of a row stay (analysis/schedule/keep.h); of a longer
/// row the rest is read again.
constexpr std::int64_t kResidentShare = 2;
/// Registers of a thread beside the elements it holds: indices, pointers, the arithmetic of a vector.
/// A choice, not measured: kernels that hold nothing take about so many.
constexpr std::int64_t kArithmeticRegisters = 32;
/// Tasks of a block whose elements stay in registers, at most (analysis/forms/residence.cpp).
constexpr std::int64_t kMostUnrolledTasks = 4;

/// Instructions (as analysis/judge/cost_instructions.cpp counts them): an element's arithmetic, an access
/// with its address, a shuffle step, and what a block adds to combine its warps.
constexpr double kElementInstructions = 4, kAccessInstructions = 5, kShuffleInstructions = 2,
                 kBlockReduceInstructions = 30;
/// Of a row of those that a block adds up behind its tasks, in the warp that does.
/// Derived from the code printed: a load from shared memory and an addition.
constexpr double kRowOfBlockInstructions = 2;
/// Of an element in a tile, at a place known but for the row's.
/// Derived from the code printed: the access and what is left of its address.
constexpr double kTileInstructions = 2;
/// Vectors of a range that a thread has in flight (analysis/schedule/tile_steps.cpp).
constexpr double kRangeVectors = 4;
/// Of a lane in a 128-byte request.
/// Derived from 128 bytes for the 32 lanes of a warp.
constexpr double kLaneBytes = 4;
/// Of a warp without elements: it comes to the guard and to the end.
/// A choice, not measured: about kIdleTaskInstructions of analysis/judge/cost_instructions.cpp.
constexpr double kIdleInstructions = 8;

/// Warps of a block that have elements in a task: fewer than it has where the domain is small.
double busy_warps(const Domain& domain, const Mapping& mapping, int block) {
  std::int64_t threads = block;
  const std::int64_t rows = std::clamp<std::int64_t>(domain.rows, 1, task_rows(mapping));
  if (is<mapping::Elements>(mapping))
    threads = ceil_div(rows, vectors(mapping).width);
  else if (packs_rows(mapping))
    threads = rows * threads_a_row(mapping);
  return static_cast<double>(ceil_div(std::clamp<std::int64_t>(threads, 1, block), kWarp));
}

/// Whether the elements that later steps and phases need again stay where they are (analysis/schedule/keep.h,
/// analysis/forms/residence.h): in a share of a thread's registers; those of all tasks of a block, which
/// split rows want, also in shared memory. Accumulators across the rows stand beside the inputs' elements,
/// and the compiler keeps both, or spills.
bool holds_rows(const Domain& domain, const Dealt& dealt, const Layout& layout, const MappingLimits& limits,
                const LaunchBound& bound) {
  if (!packs_rows(dealt.mapping) && !is<mapping::Segments>(dealt.mapping)) return true;
  const std::int64_t elements = layout.elements();
  // A staged row is in its tile.
  const std::int64_t held = elements * (limits.accumulators + (layout.in_tile ? 0 : limits.row_work.inputs));
  if (limits.accumulators > 0 && held + kArithmeticRegisters > bound.register_bound) return false;
  const std::int64_t tasks = layout.segments > 1 ? dealt.deal.most_tasks() : 1;
  if (tasks * elements <= bound.register_bound / kResidentShare && tasks <= kMostUnrolledTasks) return true;
  const Device& device = *limits.tuned_for;
  return tasks > 1 &&
         tasks * elements * limits.block * domain.element_bytes <= device.shared_bytes_per_block_default;
}

/// Of the domain, read once: tiles of columns whose edges lie within sectors read those on both sides.
double bytes_touched(const Domain& domain, const Mapping& mapping) {
  const std::int64_t of_task = task_rows(mapping);
  const double bytes = static_cast<double>(domain.rows * domain.cols) * domain.element_bytes;
  const bool whole = domain.rows * domain.element_bytes % kSectorBytes == 0 &&
                     of_task * domain.element_bytes % kSectorBytes == 0;
  if (!is<mapping::Columns>(mapping) || of_task >= domain.rows || whole) return bytes;
  const std::int64_t tiles = ceil_div(domain.rows, of_task);
  return bytes + static_cast<double>(tiles * domain.cols * (kSectorBytes - domain.element_bytes));
}

/// Sectors of the requests for the domain's rows, over those of its bytes: a row that begins within a sector
/// shares its ends with its neighbours, in every request for a part of it.
double request_spread(const Domain& domain, const Mapping& mapping, const Layout& layout) {
  const std::int64_t row = domain.cols * domain.element_bytes;
  if (domain.kind != Domain::Kind::kRows || !packs_rows(mapping) || layout.in_tile || layout.peeled ||
      row == 0 || row % kSectorBytes == 0)
    return 1;
  const std::int64_t lanes = std::min<std::int64_t>(layout.threads_a_row, kWarp);
  const std::int64_t request = lanes * layout.width * domain.element_bytes;
  const double ends = static_cast<double>(kSectorBytes - std::gcd(row, std::int64_t{kSectorBytes}));
  return 1 + static_cast<double>(ceil_div(row, request)) * ends / static_cast<double>(row);
}

/// Of arrays in whose memory the domain's rows lie side by side: the sectors that requests touch, over those
/// of their bytes, and what their tile takes of a block's shared memory; 0 where they have none.
struct Turned {
  double spread = 1;
  std::int64_t tile_bytes = 0;
};
Turned turned_of(const Domain& domain, const Mapping& mapping, const MappingLimits& limits) {
  const RowWork& work = limits.row_work;
  if (work.turned_bytes == 0 || domain.kind != Domain::Kind::kRows ||
      work.elements != domain.rows * domain.cols)
    return {};
  const auto spread = [&](std::int64_t rows) {
    const std::int64_t line = std::min(rows, domain.rows) * domain.element_bytes;
    return static_cast<double>(round_up(line, std::int64_t{kSectorBytes})) / static_cast<double>(line);
  };
  const std::int64_t tile = turned_tile_bytes(domain, mapping, limits);
  if (tile > 0) return {spread(task_rows(mapping)), tile};
  return {spread(std::max(1, kWarp / threads_a_row(mapping))), 0};
}

/// Whether rows that are gone through again still are in L2: those of the resident blocks, with room for what
/// is written meanwhile. The phases of split rows go through all rows.
bool stays_in_l2(const Domain& domain, const Dealt& dealt, const MappingLimits& limits, int blocks_per_sm) {
  // A choice, not measured: a quarter of L2 is left for what is written meanwhile.
  constexpr double kShare = 0.75;
  const Device& device = *limits.tuned_for;
  const std::int64_t blocks =
      std::min<std::int64_t>(dealt.deal.blocks(), std::int64_t{device.sms} * std::max(1, blocks_per_sm));
  const std::int64_t rows =
      segments(dealt.mapping) > 1
          ? domain.rows
          : std::min(domain.rows, ceil_div(blocks, dealt.deal.cluster) * task_rows(dealt.mapping));
  return static_cast<double>(rows * domain.cols * domain.element_bytes * limits.row_work.inputs) <=
         kShare * static_cast<double>(device.l2_bytes);
}

}  // namespace

std::int64_t turned_tile_bytes(const Domain& domain, const Mapping& mapping, const MappingLimits& limits) {
  // Beside them a few values a row, and the reductions' workspace.
  // A choice, not measured: 2 KB hold two values a row of 256 rows and the workspace of 32 warps.
  constexpr std::int64_t kPadding = kWarp, kSpare = 2048;
  const std::int64_t bytes = task_rows(mapping) * (domain.cols + kPadding) * limits.row_work.turned_bytes;
  const bool fits =
      limits.tiles && has_tiles(mapping) && bytes + kSpare <= limits.tuned_for->shared_bytes_per_block_optin;
  return fits ? bytes : 0;
}

int blocks_an_sm(const Device& device, std::int64_t grid) {
  return static_cast<int>(std::clamp<std::int64_t>(ceil_div(grid, device.sms), 1, device.max_blocks_per_sm));
}

double domain_us(const Domain& domain, const Dealt& dealt, const MappingLimits& limits) {
  const Device& device = *limits.tuned_for;
  const Mapping& mapping = dealt.mapping;
  const Layout layout(mapping, limits.block);
  const std::int64_t grid = dealt.deal.blocks();
  const int stages = copy_depth(mapping);
  const std::int64_t vectors = layout.vectors, threads = layout.threads_a_row;
  int blocks = blocks_an_sm(device, grid);
  if (limits.max_blocks_per_sm > 0) blocks = std::min(blocks, limits.max_blocks_per_sm);
  const RowWork& of = limits.row_work;
  const Turned turned = turned_of(domain, mapping, limits);
  const bool cols_in_tiles = stages_cols(mapping, dealt.deal);
  const std::int64_t tiles =
      layout.in_tile ? staged_elements(StagedPart::kElements, mapping) *
                               (of.staged_bytes + std::max(0, stages - 1) * of.staged_input_bytes) +
                           (stages_a_row(mapping) && cols_in_tiles
                                ? staged_elements(StagedPart::kCols, mapping) * of.staged_col_bytes
                                : 0)
                     : turned.tile_bytes;
  const LaunchBound bound = assume_relax_apply(device, limits.block, tiles, blocks);
  const bool again = of.passes > 1 && !holds_rows(domain, dealt, layout, limits, bound);
  const double passes = again ? of.passes : 1;
  double instructions = static_cast<double>(vectors) * passes *
                        ((layout.in_tile ? kTileInstructions : kAccessInstructions) +
                         std::max(kElementInstructions, of.instructions) * layout.width);
  const mapping::Elements range =
      layout.in_tile ? staging_mapping(mapping, of.widest_bytes) : mapping::Elements{};
  // A range is loaded and put into its tile, or copied there; taken from there and stored. In bulk a thread
  // does both for all, but a single row in its tile takes as many more than one in registers (softmax of
  // 8,192 columns bf16 on H200, simulated: 24.5 and 22.4 instructions an element).
  const auto elements = static_cast<double>(vectors * layout.width);
  if (layout.in_tile)
    instructions += (stages == 0 ? 4
                     : copies_in_bulk(mapping)
                         ? (stored_in_bulk(mapping, of.widest_bytes) && !stages_a_row(mapping) ? 0 : 2)
                         : 3) *
                    kAccessInstructions * elements / range.vectors.width;
  // Put into their tile and taken from there.
  if (turned.tile_bytes > 0) instructions += 2 * kAccessInstructions * elements;
  const ClusterExchange exchange = cluster_exchange(dealt.deal, limits.block);
  if (domain.kind != Domain::Kind::kElements) {
    const double reductions = std::max(1, of.reductions);
    instructions += reductions * kShuffleInstructions *
                    std::bit_width(static_cast<std::uint64_t>(std::min<std::int64_t>(threads, kWarp)));
    if (threads > kWarp || is<mapping::Columns>(mapping))
      instructions += reductions * kBlockReduceInstructions;
    instructions += reductions * exchange.warp_instructions;
  }
  const auto tasks = static_cast<double>(dealt.deal.block_tasks());
  const double warps = tasks * busy_warps(domain, mapping, limits.block);
  const double idle = tasks * limits.block / kWarp - warps;
  KernelWork work;
  work.grid_blocks = grid;
  work.threads_per_block = limits.block;
  work.blocks_per_sm = std::max(1, bound.blocks_per_sm);
  const double bytes = bytes_touched(domain, mapping);
  const double sectors = bytes / kSectorBytes, requested = sectors * request_spread(domain, mapping, layout);
  work.l2_sectors = layout.in_tile ? sectors : requested * passes;
  work.dram_sectors = again && !layout.in_tile && !stays_in_l2(domain, dealt, limits, work.blocks_per_sm)
                          ? sectors * passes
                          : sectors;
  work.l2_sectors += sectors * of.turned_bytes / domain.element_bytes * (turned.spread - 1) *
                     (turned.tile_bytes > 0 ? 1 : passes);
  work.warp_instructions = warps * instructions + idle * kIdleInstructions;
  work.ldst_warp_instructions = warps * static_cast<double>(vectors) * passes;
  work.global_accesses = work.ldst_warp_instructions;
  work.fp32_warp_instructions = warps * static_cast<double>(vectors) * layout.width;
  work.independent_loads = layout.in_flight() * layout.width * domain.element_bytes / kLaneBytes;
  if (turned.tile_bytes > 0) {
    const double together = std::min<double>(tile_mapping(mapping).unroll, elements);
    work.independent_loads = together * of.turned_bytes / kLaneBytes;
  }
  if (layout.in_tile) {
    work.ldst_warp_instructions = warps * elements / range.vectors.width;
    work.global_accesses = copies_in_bulk(mapping) ? 0 : work.ldst_warp_instructions;
    // Elements of each input are taken from its tile once, or by every pass, and the result is put there.
    // Of a vector; what an element wider than a bank takes is among its own.
    const double vector_wavefronts =
        std::max(1.0, layout.width * std::min<double>(domain.element_bytes, kLaneBytes) / kLaneBytes);
    work.shared_wavefronts = warps * static_cast<double>(vectors) * ((again ? of.passes : of.inputs) + 1) *
                             vector_wavefronts * staged_wavefronts(mapping, domain.element_bytes);
    work.independent_loads =
        stages > 0
            ? static_cast<double>(stages * layout.task_rows * staged_cols(mapping) * of.staged_input_bytes) /
                  (limits.block * kLaneBytes)
            : std::min(kRangeVectors, static_cast<double>(Layout(range, limits.block).vectors)) *
                  range.vectors.width * domain.element_bytes / kLaneBytes;
    // Beside a row's vectors the loads of values a column, one by one.
    if (!cols_in_tiles && !of.in_order) {
      const double of_rows = static_cast<double>(of.inputs) / range.vectors.width,
                   of_columns = 1.0 / layout.width;
      const double columns =
          std::max(1.0, layout.in_flight() * layout.width * domain.element_bytes / kLaneBytes);
      work.independent_loads =
          (of_rows * work.independent_loads + of_columns * columns) / (of_rows + of_columns);
    }
  }
  if (limits.accumulators > 0 && layout.in_tile) {
    // Behind its tasks a block adds up what its rows have, an accumulator of a thread at a time: many, of
    // many rows (lanes have few).
    const double accumulators = static_cast<double>(grid * vectors * layout.width) * limits.accumulators;
    work.warp_instructions +=
        accumulators * (static_cast<double>(limits.block) / kWarp * kBlockReduceInstructions +
                        static_cast<double>(layout.task_rows) * kRowOfBlockInstructions);
  }
  work.remote_accesses = warps * std::max(1, of.reductions) * exchange.remote_accesses;
  work.remote_sectors = warps * std::max(1, of.reductions) * exchange.remote_sectors;
  work.ldst_warp_instructions += work.remote_accesses;
  work.cluster_barriers =
      cluster_barriers(dealt.deal, std::max(1, of.reductions)) * static_cast<double>(grid);
  work.grid_barriers = layout.segments > 1 ? std::max(1, of.passes - 1) : 0;
  work.phases = work.grid_barriers + 1;
  return kernel_time(device, work).total_us;
}

}  // namespace stitchwork::astitch
