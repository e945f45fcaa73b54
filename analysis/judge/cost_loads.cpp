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

/// What a thread loads for one element or row, in the order of the expressions.
class Expressions {
 public:
  Expressions(const Computation& computation, const GroupEvaluations& found)
      : computation_(computation), found_(found), operands_(found.values.size()) {
    for (std::size_t v = 0; v < found.values.size(); ++v)
      if (found.values[v].by >= 0)
        operands_[static_cast<std::size_t>(found.values[v].by)].push_back(static_cast<int>(v));
    pieces_.reserve(found.values.size());
    for (int v = 0; v < static_cast<int>(found.values.size()); ++v) {  // what needs a value stands before it
      const int user = at(v).by;
      const bool of_its_own = user >= 0 && chooses(user) && is_guarded(user, v);
      pieces_.push_back(of_its_own  ? std::pair(user, v)
                        : user >= 0 ? pieces_[static_cast<std::size_t>(user)]
                                    : std::pair(-1, -1));
    }
  }

  /// The piece of a concatenation, padding or update that the value is computed in, by what chooses between
  /// the pieces and the piece's value; {-1, -1} outside of all. Each is a branch of its own: no load of one
  /// is in flight with a load of another.
  std::pair<int, int> piece_of(int v) const { return pieces_[static_cast<std::size_t>(v)]; }

 private:
  const Evaluation& at(int v) const { return found_.values[static_cast<std::size_t>(v)]; }
  Op op_of(int v) const { return computation_.node(at(v).op).op; }
  bool chooses(int v) const { return chooses_operand(op_of(v)); }
  /// Whether a branch is between the two: the piece is read under a condition, or another one is.
  bool is_guarded(int choice, int piece) const {
    return at(piece).map.constraints.size() > at(choice).map.constraints.size() ||
           operands_[static_cast<std::size_t>(choice)].size() > 1;
  }
  const Computation& computation_;
  const GroupEvaluations& found_;
  std::vector<std::vector<int>> operands_;
  std::vector<std::pair<int, int>> pieces_;  ///< of each value: piece_of()
};

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

void KernelCounter::count_load(const Group& group, const Evaluation& e, int again, ThreadLoads& loads) {
  const std::int64_t partials = std::max<std::int64_t>(1, partials_of(computation_, kernel_, e.op));
  const Layout layout = layout_of(group);
  const double accesses =
      std::max(1.0, warp_accesses(e.map, group.mapping, layout)) * static_cast<double>(partials);
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
  const int at_once = moved_at_once(e.map, shape, group.mapping, layout, e.tile);
  now().warp_instructions += accesses * unpacking_instructions(shape.dtype, at_once > 1);
  const bool fixed = !uses(e.map, 0) && !uses(e.map, 1) && e.map.symbols.empty() && e.map.runtime.empty();
  const double times = e.tile ? 1 : 1.0 + again;  // from memory
  const double touched_sectors =
      accesses * sectors(e.map, shape.dims, group.mapping, layout, bytes, e.tile, at_once);
  const double copied = copied_in_flight(group, shape, e.tile);
  const bool in_bulk = copied > 0 && copies_in_bulk(group.mapping);  // asked for by one thread
  if (!in_bulk)
    count_accesses(times * accesses * divergence(e.map, layout) / at_once,
                   fixed ? kNoAddress : accesses_together(group));
  loads.accesses += times * accesses / at_once;
  if (partials > 1) {  // a loop over them is unrolled
    loads.folds += accesses;
    loads.folded += accesses * std::min(static_cast<double>(partials), kMaxLoadsInFlight);
  }
  if (!in_bulk) now().global_accesses += times * accesses / at_once;
  count_in_l1(times * accesses / at_once, times * touched_sectors);
  const double from_l2 = e.tile ? touched_sectors : beyond_l1(group, e, touched_sectors);
  now().l2_sectors += from_l2 + (rows_in_l1_ ? 0 : times - 1) * touched_sectors;
  now().l1_hit_sectors += touched_sectors - from_l2 + (rows_in_l1_ ? times - 1 : 0) * touched_sectors;
  if (times > 1 && !rows_in_l1_) {
    const double all = static_cast<double>(extents(group.mapping).elements() * bytes);
    phases_[level_].bytes_again += again * all;
    phases_[level_].resident_bytes += all * resident_share(group);
  }
  if (e.tile) count_through_tile(accesses, 1 + again, copied > 0 ? 0 : at_once, layout.width, bytes);
  if (copied > 0) {
    // By instructions that wait for nothing and stay in flight until the task's turn.
    loads.copies += accesses / at_once;
    loads.copied += copied;
  } else if (e.tile && layout.in_tile) {
    const mapping::Elements range = staging_mapping(group.mapping, bytes);
    const double vectors =
        std::min(kRangeVectors, static_cast<double>(Layout(range, kernel_.launch.block).vectors));
    loads.staged += vectors * at_once * bytes / kLaneBytes;
  } else if (e.tile && packs_rows(group.mapping)) {
    const double together = tile_mapping(group.mapping).unroll;
    loads.staged += together;
  } else if (uses(e.map, layout.lane_dim)) {
    // What does not move in vectors is as many loads, one after the other without waiting.
    const int moves = layout.width / at_once;
    const double requests = moves * std::max(1.0, at_once * bytes / kLaneBytes);
    // A scalar's condition is a branch.
    const bool branch = layout.width == 1 && !e.map.constraints.empty();
    const bool guarded = branch || !layout.holds(e.map) || !e.map.runtime.empty();
    if (!guarded) loads.vector += requests;
  }
  double& touched = touched_by(group, e);
  touched = std::min(touched + e.count * bytes, static_cast<double>(shape.byte_size() * partials));
}

double KernelCounter::loads_of_expressions(const Group& group, const GroupEvaluations& found,
                                           int level) const {
  const Expressions values(computation_, found);
  struct Piece {
    int direct = 0, indexed = 0;  ///< by an index that is loaded
    double loads = 0;             ///< as often as they are made
  };
  // Element-wise tasks make all roots in one loop; of rows and columns a root may have one of its own.
  const bool one_loop = is<mapping::Elements>(group.mapping);
  std::map<std::pair<std::pair<int, int>, NodeId>, Piece> pieces;
  for (std::size_t v = 0; v < found.values.size(); ++v) {
    const Evaluation& load = found.values[v];
    if (!load.load || level_of(load.root) != level) continue;
    Piece& piece = pieces[{values.piece_of(static_cast<int>(v)), one_loop ? kNoNode : load.root}];
    ++(load.map.runtime.empty() ? piece.direct : piece.indexed);
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
  loads_in_flight_ += (loads.accesses - loads.copies - loads.folds) * std::clamp(in_flight, 1.0, most) +
                      loads.copies * std::max(1.0, loads.copied) + loads.folded;
}

double KernelCounter::beyond_l1(const Group& group, const Evaluation& e, double touched) const {
  const Shape& shape = computation_.node(e.op).shape;
  const Layout layout = layout_of(group);
  const auto sectors_of = [](double bytes) { return std::ceil(bytes / kSectorBytes); };
  double first = touched;
  const int blocks = std::max(1, blocks_per_sm());
  if (shape.byte_size() * blocks <= l1_room(device_, kernel_, blocks))
    first = static_cast<double>(group.deal.blocks()) * sectors_of(static_cast<double>(shape.byte_size()));
  // A product reads each element of a task's operands many times: the L1 holds those that fit there.
  if (multiplies_ && e.map.dims.size() == 2) {
    IndexMap task;  // of the middle
    task.dims = {std::min(layout.task_rows, layout.rows), layout.cols};
    task.results = {IndexExpr::dim(0) + IndexExpr::value((layout.rows - task.dims[0]) / 2),
                    IndexExpr::dim(1)};
    const IndexMap read = compose(task, e.map);
    const double bytes = static_cast<double>(range_of(linearize(read.results, shape.dims), read).size()) *
                         byte_size(shape.dtype);
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
  touched_by(group, e) = static_cast<double>(shape.byte_size());
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
  const int at_once = moved_at_once(placed.map, node.shape, group.mapping, layout, tile);
  const bool in_bulk = tile && stored_in_bulk(group.mapping, bytes);  // by one thread
  if (!in_bulk) count_accesses(accesses / at_once, accesses_together(group));
  const double touched =
      accesses * sectors(placed.map, node.shape.dims, group.mapping, layout, bytes, tile, at_once);
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
