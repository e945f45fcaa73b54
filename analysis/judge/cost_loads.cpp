#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/facts/choices.h"
#include "analysis/facts/facts.h"
#include "analysis/judge/cost_access.h"
#include "analysis/judge/cost_internal.h"
#include "analysis/judge/read_again.h"
#include "analysis/judge/value.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/mapping.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/tiles.h"
#include "core/base/arithmetic.h"
#include "core/index/buffer.h"

namespace stitchwork::costs {
namespace {

/// Vectors of a staged range that a thread has in flight (analysis/schedule/tile_steps.cpp).
constexpr double kRangeVectors = 4;
/// Of a lane in a 128-byte request.
/// Derived from 128 bytes for the 32 lanes of a warp.
constexpr double kLaneBytes = 4;
/// Nor, beyond kMaxLoadsInFlight, of rows that sums across them keep in registers, which nothing reads twice:
/// so many vectors of 16 bytes fill half of the 128 registers that a thread of a block of 512 has. With 8,
/// gradients of RMS norms of 16384x1024 bf16 were 30.8 us on an H200, simulated 27.9.
constexpr double kMaxLoadsInFlightAcross = 16;

/// Of a 16-bit float that is loaded, beside the load: into f32, and out of its vector's word.
double unpacking_instructions(DType dtype, bool in_vector) {
  // As measured in the simulator, sums of rows of 8192x1024 on an H200.
  constexpr double kBf16 = 1, kF16 = 1, kF16InVector = 2.5;
  if (dtype == DType::kBF16) return kBf16;
  return dtype == DType::kF16 ? (in_vector ? kF16InVector : kF16) : 0;
}

/// Places of an array between which the task in the middle reads under `map`.
Interval places_of_task(const IndexMap& map, const Shape& shape, const Layout& layout) {
  IndexMap task;
  task.dims = {std::min(layout.task_rows, layout.rows), layout.cols};
  task.results = {IndexExpr::dim(0) + IndexExpr::value((layout.rows - task.dims[0]) / 2), IndexExpr::dim(1)};
  const IndexMap read = compose(task, map);
  return range_of(linearize(read.results, shape.dims), read);
}

}  // namespace

double KernelCounter::copied_in_flight(const Group& group, const Shape& shape, bool through_tile) const {
  const Mapping& m = group.mapping;
  if (!through_tile || !is_staged(m)) return 0;
  const StagedPart part = staged_part(shape, m);
  const int bytes = byte_size(shape.dtype);
  if (copied_bytes(part, m, bytes) == 0) return 0;
  return static_cast<double>(copy_depth(m) * staged_elements(part, m) * bytes) /
         (kernel_.launch.block * kLaneBytes);
}

void KernelCounter::count_load(const Group& group, const Evaluation& e, int v, const Choices& choices,
                               int again, ThreadLoads& loads) {
  const std::int64_t partials = std::max<std::int64_t>(1, partials_of(computation_, kernel_, e.op));
  const Layout layout = layout_of(group);
  const double filled = warp_accesses(e.map, group.mapping, layout);  // warps, all lanes of which load
  const double accesses = std::max(1.0, filled) * static_cast<double>(partials);
  const bool internal = inside_.contains(e.op);
  const Shape& shape = computation_.node(e.op).shape;
  const int bytes = byte_size(shape.dtype);
  if (e.resident) {
    if (kept_in_shared(group, e.op)) count_kept(accesses);
    return;
  }
  if (internal && reads_shared(kernel_, e.op, e.root)) {
    // As if it lay there in the order of its own elements.
    now().shared_wavefronts +=
        accesses * wavefronts_a_warp(linearize(e.map.results, shape.dims), e.map, layout, bytes);
    count_accesses(accesses);
    return;
  }
  if (e.tile && layout.in_tile && staged_part(shape, group.mapping) == StagedPart::kCols)
    return count_staged_cols(group, e, accesses);
  WarpLoads of{.accesses = accesses, .times = e.tile ? 1 : 1.0 + again};
  of.at_once = moved_at_once(e.map, computation_.node(e.op), group.mapping, layout, e.tile);
  const double warps = filled * divergence(e.map, layout) * unfilled_warps(e.map, group.mapping, layout);
  of.executed = of.times * std::max(1.0, warps) * static_cast<double>(partials) / of.at_once;
  of.copied = copied_in_flight(group, shape, e.tile);
  const bool in_bulk = of.copied > 0 && copies_in_bulk(group.mapping);  // asked for by one thread
  if (!in_bulk) count_load_instructions(group, e, v, choices, of);
  loads.accesses += of.executed;
  if (partials > 1) {  // a loop over them is unrolled
    loads.folds += accesses;
    loads.folded += accesses * std::min(static_cast<double>(partials), kMaxLoadsInFlight);
  }
  count_load_sectors(group, e, of);
  if (of.times > 1 && !rows_in_l1_) {
    const double all = static_cast<double>(extents(group.mapping).elements() * bytes);
    phases_[level_].bytes_again += again * all;
    phases_[level_].resident_bytes += all * resident_share(group);
  }
  if (e.tile) count_through_tile(accesses, 1 + again, of.copied > 0 ? 0 : of.at_once, layout.width, bytes);
  // Of vectors that are loaded ahead whoever comes to their use takes them apart.
  const double unpacked = choices.any() && of.at_once > 1 ? choices.warps(v) : accesses;
  now().warp_instructions += unpacked * unpacking_instructions(shape.dtype, of.at_once > 1);
  if (partials == 1 && of.copied == 0 && !e.tile && choices.waits_for_branch(v))
    count_in_block(choices, v, of.executed, std::max(1.0, of.at_once * bytes / kLaneBytes), loads);
  else
    count_together(group, e, of, loads);
  touch(group, e, e.count * bytes, static_cast<double>(shape.byte_size() * partials));
}

void KernelCounter::count_load_instructions(const Group& group, const Evaluation& e, int v,
                                            const Choices& choices, const WarpLoads& of) {
  const bool fixed = !uses(e.map, 0) && !uses(e.map, 1) && e.map.symbols.empty() && e.map.runtime.empty();
  const bool guarded = choices.is_guarded_load(v);
  count_accesses(of.executed, fixed || guarded ? kNoAddress : accesses_together(group));
  now().global_accesses += of.executed;
  if (!guarded) return;
  now() += choices.guard_work(v) * choices.warps(v);
  now() += choices.address_work(v) * of.executed;
}

void KernelCounter::count_load_sectors(const Group& group, const Evaluation& e, const WarpLoads& of) {
  const Shape& shape = computation_.node(e.op).shape;
  const Layout layout = layout_of(group);
  const int bytes = byte_size(shape.dtype);
  const double touched = of.accesses * sectors(e.map, buffer_extents(computation_.node(e.op)), group.mapping,
                                               layout, bytes, e.tile, of.at_once);
  double asked = touched, lines = touched / kSectorsPerWavefront;
  // Lanes with vectors that they load one element at a time touch as many sectors again for each. A wavefront
  // is of one line, however few of its sectors are asked for.
  if (of.at_once == 1 && !e.tile && !is<mapping::Patch>(group.mapping) && uses(e.map, layout.lane_dim)) {
    const auto apart = [&](int at_a_time) {
      return of.accesses *
             touched_apart(e.map, buffer_extents(computation_.node(e.op)), layout, bytes, at_a_time);
    };
    if (layout.width > 1) asked = std::max(touched, apart(kSectorBytes));
    lines = std::max(lines, apart(kSectorBytes * static_cast<int>(kSectorsPerWavefront)));
  }
  asked = std::max(asked, of.executed / of.times);  // of whatever lanes
  count_in_l1(of.executed, of.times * lines * kSectorsPerWavefront);
  const double from_l2 = e.tile ? touched : beyond_l1(group, e, touched);
  if (!e.tile) note_reads(group, e, from_l2);
  now().l2_sectors += from_l2 + (rows_in_l1_ ? 0 : of.times - 1) * touched;
  now().l1_hit_sectors += asked - from_l2 + (rows_in_l1_ ? of.times - 1 : 0) * touched;
}

void KernelCounter::count_together(const Group& group, const Evaluation& e, const WarpLoads& of,
                                   ThreadLoads& loads) const {
  const Layout layout = layout_of(group);
  const int bytes = byte_size(computation_.node(e.op).shape.dtype);
  if (of.copied > 0) {
    // By instructions that wait for nothing and stay in flight until the task's turn.
    loads.copies += of.accesses / of.at_once;
    loads.copied += of.copied;
  } else if (e.tile && layout.in_tile) {
    const mapping::Elements range = staging_mapping(group.mapping, bytes);
    const double vectors =
        std::min(kRangeVectors, static_cast<double>(Layout(range, kernel_.launch.block).vectors));
    loads.staged += vectors * of.at_once * bytes / kLaneBytes;
  } else if (e.tile && packs_rows(group.mapping)) {
    loads.staged += static_cast<double>(tile_mapping(group.mapping).unroll);
  } else if (uses(e.map, layout.lane_dim) && layout.holds(e.map) && e.map.runtime.empty()) {
    // What does not move in vectors is as many loads, one after the other without waiting. Of the pieces of a
    // concatenation an element has one.
    const int moves = layout.width / of.at_once;
    loads.vector += admitted_share(e.map) * moves * std::max(1.0, of.at_once * bytes / kLaneBytes);
  }
}

void KernelCounter::count_in_block(const Choices& choices, int v, double accesses, double requests,
                                   ThreadLoads& loads) {
  loads.guarded += accesses;
  const bool indexed = choices.is_indexed(v);
  ThreadLoads::Block& block = loads.blocks[{choices.branch(v), choices.open_constraints(v), indexed}];
  block.accesses += accesses;
  block.requests += requests;
}

double KernelCounter::loads_of_expressions(const Group& group, const GroupEvaluations& found,
                                           const Choices& choices, int level) const {
  struct Piece {
    double direct = 0, indexed = 0;  ///< by an index that is loaded; of pieces an element has one
    double loads = 0;                ///< as often as they are made
  };
  // Element-wise tasks make all roots in one loop; of rows and columns a root may have one of its own.
  const bool one_loop = is<mapping::Elements>(group.mapping);
  std::map<NodeId, Piece> pieces;
  for (std::size_t v = 0; v < found.values.size(); ++v) {
    const Evaluation& load = found.values[v];
    if (!load.load || level_of(load.root) != level) continue;
    const int value = static_cast<int>(v);
    if (choices.waits_for_branch(value)) continue;
    Piece& piece = pieces[one_loop ? kNoNode : load.root];
    (load.map.runtime.empty() ? piece.direct : piece.indexed) += admitted_share(load.map);
    piece.loads += load.count;
  }
  double loads = 0, together = 0;
  for (const auto& [at, piece] : pieces) {
    loads += piece.loads;
    together += piece.loads * std::max(piece.direct, piece.indexed);
  }
  return loads > 0 ? together / loads : 1;
}

void KernelCounter::count_in_flight(const Group& group, const ThreadLoads& loads) {
  const Layout layout = layout_of(group);
  double in_flight = loads.together;
  // Loops over a thread's vectors are unrolled: loads of the next ones go ahead of the arithmetic, too.
  in_flight = std::max(in_flight, loads.staged + loads.vector * layout.loaded_together());
  // Turns are unrolled: loads of a later row go ahead of the exchanges of an earlier one.
  in_flight *= static_cast<double>(layout.turns);
  const double most = group.across.empty() ? kMaxLoadsInFlight : kMaxLoadsInFlightAcross;
  loads_made_ += loads.accesses;
  double in_blocks = 0;
  for (const auto& [at, block] : loads.blocks)
    in_blocks += block.accesses * std::min(block.requests, kMaxLoadsInFlight);
  loads_in_flight_ +=
      (loads.accesses - loads.copies - loads.folds - loads.guarded) * std::clamp(in_flight, 1.0, most) +
      loads.copies * std::max(1.0, loads.copied) + loads.folded + in_blocks;
}

double KernelCounter::beyond_l1(const Group& group, const Evaluation& e, double touched) const {
  const Shape& shape = computation_.node(e.op).shape;
  const Layout layout = layout_of(group);
  const auto sectors_of = [](double bytes) { return std::ceil(bytes / kSectorBytes); };
  double first = touched;
  const int blocks = std::max(1, blocks_per_sm());
  if (shape.byte_size() * blocks <= l1_room(device_, kernel_, blocks))
    first = static_cast<double>(group.deal.blocks()) * sectors_of(static_cast<double>(shape.byte_size()));
  // A product reads each element of a task's operands many times, a thread on a row of its own each sector:
  // the L1 holds those that fit there.
  if ((multiplies_ || is<mapping::OneThread>(group.mapping)) && e.map.dims.size() == 2) {
    const double bytes =
        static_cast<double>(places_of_task(e.map, shape, layout).size()) * byte_size(shape.dtype);
    if (bytes * blocks <= static_cast<double>(l1_room(device_, kernel_, blocks)))
      first = std::min(first, static_cast<double>(group.deal.tasks) * sectors_of(bytes));
  }
  // All warps of a row load what the row has one of.
  const bool of_rows = layout.lane_dim == 1 && e.map.dims.size() == 2 && e.map.symbols.empty() &&
                       e.map.runtime.empty() && depends_on(e.map, 0) && !depends_on(e.map, 1);
  if (of_rows) {
    const double rows = static_cast<double>(std::min(layout.task_rows, layout.rows));
    first = std::min(
        first, static_cast<double>(group.deal.block_tasks()) * sectors_of(rows * byte_size(shape.dtype)));
  }
  return std::min(first, touched);
}

void KernelCounter::note_reads(const Group& group, const Evaluation& e, double sectors) {
  Reads& reads = reads_[{level_, e.op}];
  const bool again = reads.sectors > 0 || !e.map.symbols.empty();
  reads.sectors += sectors;
  reads.again = reads.again || again;
  const Layout layout = layout_of(group);
  if (e.map.dims.size() != 2 || !e.map.runtime.empty()) {
    reads.places = {0, computation_.node(e.op).shape.elements_count() - 1};
    return;
  }
  const Interval places = places_of_task(e.map, computation_.node(e.op).shape, layout);
  reads.places = reads.places.empty()
                     ? places
                     : Interval{std::min(reads.places.lo, places.lo), std::max(reads.places.hi, places.hi)};
}

void KernelCounter::count_reads_once(const Group& group) {
  const int blocks = std::max(1, blocks_per_sm());
  for (const auto& [at, reads] : reads_) {
    const auto& [level, op] = at;
    const double bytes =
        static_cast<double>(reads.places.size()) * byte_size(computation_.node(op).shape.dtype);
    if (!reads.again || bytes * blocks > static_cast<double>(l1_room(device_, kernel_, blocks))) continue;
    const double once = static_cast<double>(group.deal.tasks) * std::ceil(bytes / kSectorBytes);
    if (once >= reads.sectors) continue;
    level_ = level;
    now().l2_sectors -= reads.sectors - once;
    now().l1_hit_sectors += reads.sectors - once;
  }
  reads_.clear();
}

void KernelCounter::count_staged_cols(const Group& group, const Evaluation& e, double accesses) {
  const Shape& shape = computation_.node(e.op).shape;
  const double times =
      static_cast<double>(copy_depth(group.mapping) > 0 ? group.deal.blocks() : group.deal.tasks);
  const double elements = static_cast<double>(shape.elements_count());
  const double fills = times * std::ceil(elements / kWarp);
  now().l2_sectors += times * std::ceil(elements * byte_size(shape.dtype) / kSectorBytes);
  now().shared_wavefronts += accesses + fills;
  now().global_accesses += fills;
  count_in_l1(fills, 0);
  count_accesses(accesses + 2 * fills);
  touch(group, e, static_cast<double>(shape.byte_size()), static_cast<double>(shape.byte_size()));
}

bool KernelCounter::kept_in_shared(const Group& group, NodeId op) const {
  return std::any_of(kernel_.resident.begin(), kernel_.resident.end(),
                     [&](const Residence& r) { return r.op == op && r.group == group.dominant && r.shared; });
}

void KernelCounter::count_through_tile(double accesses, int times, int moved, int vector, int bytes) {
  const auto wavefronts = [&](double elements, int at_once) {
    now().shared_wavefronts +=
        elements / at_once * std::max(1.0, static_cast<double>(at_once * bytes) / kBankBytes);
  };
  wavefronts(accesses, std::max(1, moved));
  if (moved > 0) count_accesses(accesses / moved);
  wavefronts(accesses * times, vector);
  count_accesses(accesses * times / vector);
}

void KernelCounter::count_kept(double accesses) {
  now().shared_wavefronts += accesses;
  count_accesses(accesses);
}

void KernelCounter::count_accesses(double accesses, double together) {
  now() += work_of_access(together) * accesses;
}

void KernelCounter::count_in_l1(double requests, double sectors) {
  now().l1_wavefronts += std::max(requests, sectors / kSectorsPerWavefront);
}

double KernelCounter::accesses_together(const Group& group) const {
  return std::max(1.0, layout_of(group).in_flight());
}

double KernelCounter::store_accesses(const Group& group, NodeId op, const Placement& placed) const {
  const Mapping& mapping = group.mapping;
  const Layout layout = layout_of(group);
  if (layout.lane_dim == 1 && placed.coverage == Coverage::kRows) {
    const double tasks = static_cast<double>(group.deal.tasks);
    const double rows = static_cast<double>(std::min(layout.task_rows, layout.rows));
    if (!reduces_cols(computation_, op, group)) return tasks * std::ceil(rows / kWarp);
    return tasks * std::ceil(rows * std::min(1.0, static_cast<double>(threads_a_row(mapping)) / kWarp));
  }
  const bool split = reduces_domain(computation_, op, mapping);
  return std::max(1.0, evaluation_count(placed.map) / kWarp) * (split ? segments(mapping) : 1);
}

void KernelCounter::count_store(const Group& group, NodeId op, const Placement& placed) {
  if (is_across(group, op)) return;  // count_across
  const Node& node = computation_.node(op);
  const Scheme scheme = kernel_.schemes.at(op);
  const double accesses = store_accesses(group, op, placed);
  const bool shared = scheme_in_phase(kernel_, op) == Scheme::kRegional;
  const Layout layout = layout_of(group);
  const int bytes = byte_size(node.shape.dtype);
  if (shared) {
    const IndexExpr place = placed.coverage == Coverage::kRows
                                ? IndexExpr::dim(0)
                                : IndexExpr::dim(0) * extents(group.mapping).cols + IndexExpr::dim(1);
    now().shared_wavefronts += accesses * wavefronts_a_warp(place, placed.map, layout, bytes);
  }
  const bool output = outputs_.contains(op);
  const bool global = output || scheme == Scheme::kGlobal;
  if (shared) count_accesses(accesses);
  if (!global) return;
  const bool tile = find_tile(kernel_, op, group.dominant, level_of(op)) != nullptr;
  const int at_once = moved_at_once(placed.map, node, group.mapping, layout, tile);
  const bool in_bulk = tile && stored_in_bulk(group.mapping, bytes);  // by one thread
  if (!in_bulk) count_accesses(accesses / at_once, accesses_together(group));
  const double touched =
      accesses * sectors(placed.map, buffer_extents(node), group.mapping, layout, bytes, tile, at_once);
  now().l2_sectors += touched;
  if (!in_bulk) count_in_l1(accesses / at_once, touched);
  if (tile) count_through_tile(accesses, 1, in_bulk ? 0 : at_once, layout.width, bytes);
  if (combines_atomically(group.mapping) && reduces_cols(computation_, op, group)) {
    // Every segment of a row updates the row's result.
    double& updates = phases_[level_].same_address_atomics;
    updates = std::max(updates, static_cast<double>(segments(group.mapping)));
  }
  if (output) write(node.shape.byte_size());
  if (const std::int64_t partials = partials_of(computation_, kernel_, op); output && partials > 1)
    count_fold(node, partials);
}

void KernelCounter::count_fold(const Node& reduce, std::int64_t partials) {
  const int before = std::exchange(level_, level_ + 1);
  const std::optional<Deal> deal = deal_;
  if (deal_) {  // of a result's tasks the first one folds
    deal_->tasks = std::max<std::int64_t>(1, deal_->tasks / partials);
    deal_->takers = std::min(deal_->takers, deal_->tasks);
  }
  const double loads = std::max(1.0, static_cast<double>(reduce.shape.elements_count()) / kWarp) *
                       static_cast<double>(partials);
  const double sectors =
      static_cast<double>(reduce.shape.elements_count() * partials * accumulator_bytes(reduce.shape.dtype)) /
      kSectorBytes;
  now().l2_sectors += sectors;
  now().global_accesses += loads;
  count_in_l1(loads, sectors);
  count_accesses(loads, static_cast<double>(partials));
  arithmetic(reduce.shape.dtype) += loads;
  now().warp_instructions += loads * combining_instructions(reduce);
  loads_made_ += loads;
  loads_in_flight_ += loads * std::min(static_cast<double>(partials), kMaxLoadsInFlight);
  level_ = before;
  deal_ = deal;
}

}  // namespace stitchwork::costs
