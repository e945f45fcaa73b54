#include "analysis/judge/sketch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "analysis/judge/cost_access.h"
#include "analysis/judge/read_again.h"
#include "analysis/judge/value.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/tiles.h"
#include "core/base/arithmetic.h"
#include "occupancy_model/barrier.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy.h"
#include "occupancy_model/units.h"

namespace stitchwork {
using costs::kMaxLoadsInFlight;
namespace {

/// The share of a thread's registers in which elements of a row stay (analysis/schedule/keep.h); of a longer
/// row the rest is read again.
constexpr std::int64_t kResidentShare = 2;
/// Registers of a thread beside the elements it holds: indices, pointers, the arithmetic of a vector.
/// A choice, not measured: kernels that hold nothing take about so many.
constexpr std::int64_t kArithmeticRegisters = 32;

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

/// Of arrays in whose memory the domain's rows lie side by side: the sectors that requests touch, over those
/// of their bytes, and what their tile takes of a block's shared memory; 0 where they have none.
struct Turned {
  double spread = 1;
  std::int64_t tile_bytes = 0;
};

class SketchCounter {
 public:
  SketchCounter(const Device& device, const Sketch& sketch)
      : device_(device),
        domain_(sketch.domain),
        mapping_(sketch.mapping),
        deal_(sketch.deal),
        of_(sketch.work),
        sketch_(sketch),
        layout_(mapping_, sketch.block),
        turned_(turned()),
        exchange_(cluster_exchange(deal_, sketch.block)) {
    int blocks = blocks_an_sm(device, deal_.blocks());
    if (sketch.most_blocks_per_sm > 0) blocks = std::min(blocks, sketch.most_blocks_per_sm);
    bound_ = assume_relax_apply(device, sketch.block, tile_bytes(), blocks);
    again_ = of_.passes > 1 && !holds_rows();
    passes_ = again_ ? of_.passes : 1;
    if (layout_.in_tile) range_ = staging_mapping(mapping_, of_.widest_bytes);
    elements_ = static_cast<double>(layout_.vectors * layout_.width);
    const auto tasks = static_cast<double>(deal_.block_tasks());
    warps_ = tasks * busy_warps();
    idle_warps_ = tasks * sketch.block / kWarp - warps_;
  }

  double us() {
    work_.grid_blocks = deal_.blocks();
    work_.threads_per_block = sketch_.block;
    work_.blocks_per_sm = std::max(1, bound_.blocks_per_sm);
    count_memory();
    count_instructions();
    if (layout_.in_tile) count_tiles();
    count_exchange();
    work_.grid_barriers = layout_.segments > 1 ? std::max(1, of_.passes - 1) : 0;
    work_.phases = work_.grid_barriers + 1;
    work_.busiest_sm = unevenness();
    double us = sketch_us(device_, work_);
    const auto partials =
        static_cast<double>(deal_.takers * extents(mapping_).cols * sketch_.accumulators * kRegisterBytes);
    us += share_us(device_, {}, 0, 2 * partials) + fold_us();
    if (sketch_.waits) us += grid_barrier_us(device_, deal_.blocks()) - grid_barrier_us(device_, 0);
    return us;
  }

 private:
  /// Warps of a block that have elements in a task: fewer than it has where the domain is small.
  double busy_warps() const {
    std::int64_t threads = sketch_.block;
    const std::int64_t rows = std::clamp<std::int64_t>(domain_.rows, 1, task_rows(mapping_));
    if (is<mapping::Elements>(mapping_))
      threads = ceil_div(rows, vectors(mapping_).width);
    else if (packs_rows(mapping_))
      threads = rows * threads_a_row(mapping_);
    return static_cast<double>(ceil_div(std::clamp<std::int64_t>(threads, 1, sketch_.block), kWarp));
  }

  /// Whether the elements that later steps and phases need again stay where they are
  /// (analysis/schedule/keep.h, analysis/forms/residence.h): in a share of a thread's registers; those of all
  /// tasks of a block, which split rows want, also in shared memory. Accumulators across the rows stand
  /// beside the inputs' elements, and the compiler keeps both, or spills.
  bool holds_rows() const {
    if (!packs_rows(mapping_) && !is<mapping::Segments>(mapping_)) return true;
    const std::int64_t elements = layout_.elements();
    // A staged row is in its tile.
    const std::int64_t held = elements * (sketch_.accumulators + (layout_.in_tile ? 0 : of_.inputs));
    if (sketch_.accumulators > 0 && held + kArithmeticRegisters > bound_.register_bound) return false;
    const std::int64_t tasks = layout_.segments > 1 ? deal_.most_tasks() : 1;
    if (tasks * elements <= bound_.register_bound / kResidentShare && tasks <= kMostUnrolledTasks)
      return true;
    return tasks > 1 &&
           tasks * elements * sketch_.block * domain_.element_bytes <= device_.shared_bytes_per_block_default;
  }

  /// Of the domain, read once: tiles of columns whose edges lie within sectors read those on both sides.
  double bytes_touched() const {
    const std::int64_t of_task = task_rows(mapping_);
    const double bytes = static_cast<double>(domain_.rows * domain_.cols) * domain_.element_bytes;
    const bool whole = domain_.rows * domain_.element_bytes % kSectorBytes == 0 &&
                       of_task * domain_.element_bytes % kSectorBytes == 0;
    if (!is<mapping::Columns>(mapping_) || of_task >= domain_.rows || whole) return bytes;
    const std::int64_t tiles = ceil_div(domain_.rows, of_task);
    return bytes + static_cast<double>(tiles * domain_.cols * (kSectorBytes - domain_.element_bytes));
  }

  /// Sectors of the requests for the domain's rows, over those of its bytes: a row that begins within a
  /// sector shares its ends with its neighbours, in every request for a part of it.
  double request_spread() const {
    const std::int64_t row = domain_.cols * domain_.element_bytes;
    if (domain_.kind != GroupDomain::Kind::kRows || !packs_rows(mapping_) || layout_.in_tile ||
        layout_.peeled || row == 0 || row % kSectorBytes == 0)
      return 1;
    const std::int64_t lanes = std::min<std::int64_t>(layout_.threads_a_row, kWarp);
    const std::int64_t request = lanes * layout_.width * domain_.element_bytes;
    const double ends = static_cast<double>(kSectorBytes - std::gcd(row, std::int64_t{kSectorBytes}));
    return 1 + static_cast<double>(ceil_div(row, request)) * ends / static_cast<double>(row);
  }

  Turned turned() const {
    if (of_.turned_bytes == 0 || domain_.kind != GroupDomain::Kind::kRows ||
        of_.elements != domain_.rows * domain_.cols)
      return {};
    const auto spread = [&](std::int64_t rows) {
      const std::int64_t line = std::min(rows, domain_.rows) * domain_.element_bytes;
      return static_cast<double>(round_up(line, std::int64_t{kSectorBytes})) / static_cast<double>(line);
    };
    if (sketch_.turned_bytes > 0) return {spread(task_rows(mapping_)), sketch_.turned_bytes};
    return {spread(std::max(1, kWarp / threads_a_row(mapping_))), 0};
  }

  /// Of a block's shared memory, rows asked for ahead and values a column included.
  std::int64_t tile_bytes() const {
    if (!layout_.in_tile) return turned_.tile_bytes;
    const std::int64_t of_element =
        of_.staged_bytes + std::max(0, copy_depth(mapping_) - 1) * of_.staged_input_bytes;
    const bool cols = stages_a_row(mapping_) && stages_cols(mapping_, deal_);
    return staged_elements(StagedPart::kElements, mapping_) * of_element +
           (cols ? staged_elements(StagedPart::kCols, mapping_) * of_.staged_col_bytes : 0);
  }

  /// Whether rows that are gone through again still are in L2: those of the resident blocks, with room for
  /// what is written meanwhile. The phases of split rows go through all rows.
  double beyond_l2() const {
    const std::int64_t blocks =
        std::min<std::int64_t>(deal_.blocks(), std::int64_t{device_.sms} * work_.blocks_per_sm);
    const std::int64_t rows =
        segments(mapping_) > 1
            ? domain_.rows
            : std::min(domain_.rows, ceil_div(blocks, deal_.cluster) * task_rows(mapping_));
    return share_beyond_l2(device_,
                           static_cast<double>(rows * domain_.cols * domain_.element_bytes * of_.inputs));
  }

  void count_memory() {
    const double sectors = bytes_touched() / kSectorBytes;
    work_.l2_sectors = layout_.in_tile ? sectors : sectors * request_spread() * passes_;
    work_.dram_sectors = sectors;
    if (again_ && !layout_.in_tile) work_.dram_sectors += sectors * (passes_ - 1) * beyond_l2();
    work_.l2_sectors += sectors * of_.turned_bytes / domain_.element_bytes * (turned_.spread - 1) *
                        (turned_.tile_bytes > 0 ? 1 : passes_);
    work_.ldst_warp_instructions = warps_ * static_cast<double>(layout_.vectors) * passes_;
    work_.global_accesses = work_.ldst_warp_instructions;
    work_.independent_loads = loads_in_flight();
    if (turned_.tile_bytes > 0) {
      const double together = std::min<double>(tile_mapping(mapping_).unroll, elements_);
      work_.independent_loads = together * of_.turned_bytes / kLaneBytes;
    }
  }

  /// Work of the busiest SM over that of the average one, where none has two blocks: the last tile of columns
  /// may have few results.
  double unevenness() const {
    if (!is<mapping::Columns>(mapping_) || deal_.blocks() > device_.sms) return 1;
    return costs::whole_tile_share(domain_.rows, task_rows(mapping_));
  }

  /// Of columns as the estimate counts them. Of rows those of a batch: with all that NVRTC unrolls, rows that
  /// registers hold are taken for rows in tiles, for the reason that kMaxLoadsInFlight gives.
  double loads_in_flight() const {
    const double requests = layout_.width * domain_.element_bytes / kLaneBytes;
    if (!is<mapping::Columns>(mapping_)) return layout_.in_flight() * requests;
    return std::min(kMaxLoadsInFlight, layout_.loaded_together() * std::max(1.0, requests));
  }

  /// Behind the barrier a thread takes a result's partials from L2, so many at a time.
  double fold_us() const {
    if (layout_.segments == 1 || combines_atomically(mapping_)) return 0;
    const double round_trips = std::ceil(static_cast<double>(layout_.segments) / kMaxLoadsInFlight);
    return round_trips * device_.sm.l2_latency_clocks / device_.clock_ghz / kNanosecondsPerMicrosecond;
  }

  void count_instructions() {
    const auto vectors = static_cast<double>(layout_.vectors);
    double instructions = vectors * passes_ *
                          ((layout_.in_tile ? kTileInstructions : kAccessInstructions) +
                           std::max(kElementInstructions, of_.instructions) * layout_.width);
    // A range is loaded and put into its tile, or copied there; taken from there and stored. In bulk a thread
    // does both for all, but a single row in its tile takes as many more than one in registers (softmax of
    // 8,192 columns bf16 on H200, simulated: 24.5 and 22.4 instructions an element).
    if (layout_.in_tile)
      instructions += (copy_depth(mapping_) == 0 ? 4
                       : copies_in_bulk(mapping_)
                           ? (stored_in_bulk(mapping_, of_.widest_bytes) && !stages_a_row(mapping_) ? 0 : 2)
                           : 3) *
                      kAccessInstructions * elements_ / range_.vectors.width;
    // Put into their tile and taken from there.
    if (turned_.tile_bytes > 0) instructions += 2 * kAccessInstructions * elements_;
    if (domain_.kind != GroupDomain::Kind::kElements) instructions += combining_instructions();
    work_.warp_instructions = warps_ * instructions + idle_warps_ * kIdleInstructions;
    work_.fp32_warp_instructions = warps_ * vectors * layout_.width;
    if (sketch_.accumulators == 0 || !layout_.in_tile) return;
    // Behind its tasks a block adds up what its rows have, an accumulator of a thread at a time: many, of
    // many rows (lanes have few).
    const double accumulators = static_cast<double>(deal_.blocks()) * elements_ * sketch_.accumulators;
    work_.warp_instructions +=
        accumulators * (static_cast<double>(sketch_.block) / kWarp * kBlockReduceInstructions +
                        static_cast<double>(layout_.task_rows) * kRowOfBlockInstructions);
  }

  /// The threads of a row add up what each of them has.
  double combining_instructions() const {
    const std::int64_t threads = layout_.threads_a_row;
    const double reductions = std::max(1, of_.reductions);
    const int steps = std::bit_width(static_cast<std::uint64_t>(std::min<std::int64_t>(threads, kWarp)));
    const bool block = threads > kWarp || is<mapping::Columns>(mapping_);
    return reductions * (kShuffleInstructions * steps + (block ? kBlockReduceInstructions : 0) +
                         exchange_.warp_instructions);
  }

  void count_tiles() {
    const int stages = copy_depth(mapping_);
    work_.ldst_warp_instructions = warps_ * elements_ / range_.vectors.width;
    work_.global_accesses = copies_in_bulk(mapping_) ? 0 : work_.ldst_warp_instructions;
    // Elements of each input are taken from its tile once, or by every pass, and the result is put there.
    // Of a vector; what an element wider than a bank takes is among its own.
    const double vector_wavefronts =
        std::max(1.0, layout_.width * std::min<double>(domain_.element_bytes, kLaneBytes) / kLaneBytes);
    work_.shared_wavefronts = warps_ * static_cast<double>(layout_.vectors) *
                              ((again_ ? of_.passes : of_.inputs) + 1) * vector_wavefronts *
                              staged_wavefronts(mapping_, domain_.element_bytes);
    work_.independent_loads =
        stages > 0 ? static_cast<double>(stages * layout_.task_rows * staged_cols(mapping_) *
                                         of_.staged_input_bytes) /
                         (sketch_.block * kLaneBytes)
                   : std::min(kRangeVectors, static_cast<double>(Layout(range_, sketch_.block).vectors)) *
                         range_.vectors.width * domain_.element_bytes / kLaneBytes;
    if (stages_cols(mapping_, deal_) || of_.in_order) return;
    // Beside a row's vectors the loads of values a column, one by one.
    const double of_rows = static_cast<double>(of_.inputs) / range_.vectors.width,
                 of_columns = 1.0 / layout_.width;
    const double columns = std::max(1.0, loads_in_flight());
    work_.independent_loads =
        (of_rows * work_.independent_loads + of_columns * columns) / (of_rows + of_columns);
  }

  void count_exchange() {
    const int reductions = std::max(1, of_.reductions);
    work_.remote_accesses = warps_ * reductions * exchange_.remote_accesses;
    work_.remote_sectors = warps_ * reductions * exchange_.remote_sectors;
    work_.ldst_warp_instructions += work_.remote_accesses;
    work_.cluster_barriers = cluster_barriers(deal_, reductions) * static_cast<double>(deal_.blocks());
  }

  const Device& device_;
  const GroupDomain& domain_;
  const Mapping& mapping_;
  const Deal& deal_;
  const RowWork& of_;
  const Sketch& sketch_;
  Layout layout_;
  Turned turned_;
  ClusterExchange exchange_;
  LaunchBound bound_;
  bool again_ = false;  ///< rows are gone through again
  double passes_ = 1;
  mapping::Elements range_;  ///< of rows in tiles
  double elements_ = 0;      ///< of a thread in a task
  double warps_ = 0, idle_warps_ = 0;
  KernelWork work_;
};

}  // namespace

std::int64_t turned_tile_bytes(const Device& device, const GroupDomain& domain, const Mapping& mapping,
                               const RowWork& work) {
  // Beside them a few values a row, and the reductions' workspace.
  // A choice, not measured: 2 KB hold two values a row of 256 rows and the workspace of 32 warps.
  constexpr std::int64_t kPadding = kWarp, kSpare = 2048;
  const std::int64_t bytes = task_rows(mapping) * (domain.cols + kPadding) * work.turned_bytes;
  return has_tiles(mapping) && bytes + kSpare <= device.shared_bytes_per_block_optin ? bytes : 0;
}

int blocks_an_sm(const Device& device, std::int64_t grid) {
  return static_cast<int>(std::clamp<std::int64_t>(ceil_div(grid, device.sms), 1, device.max_blocks_per_sm));
}

double sketch_us(const Device& device, const Sketch& sketch) { return SketchCounter(device, sketch).us(); }

double sketch_us(const Device& device, const KernelWork& counted) {
  return kernel_time(device, counted).total_us;
}

}  // namespace stitchwork
