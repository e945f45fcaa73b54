#include "analysis/cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analysis/assemble.h"
#include "analysis/clusters.h"
#include "analysis/evaluations.h"
#include "analysis/facts.h"
#include "analysis/launch.h"
#include "analysis/read_again.h"
#include "analysis/tiles.h"
#include "analysis/vectors.h"
#include "core/arithmetic.h"
#include "core/error.h"
#include "core/sorted.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork {
namespace {

constexpr int kWarp = 32;
constexpr int kSectorBytes = 32;
/// Vectors of a staged range that a thread has in flight (codegen/lower.cpp).
constexpr double kRangeVectors = 4;
/// Of a lane in a 128-byte request.
constexpr double kLaneBytes = 4;
// What generated code executes beside the ops, in machine instructions: fitted to the simulator's issue slots
// of 404 kernels (scripts/bench/estimates, docs/timing.md).
/// Computes the address of the first of the loads or stores of one array that a thread has in flight
/// together; the others are at constant distances.
constexpr double kAddressInstructions = 1;
/// A warp's thread indices and bounds, and the choice of its group, once a block.
constexpr double kBlockInstructions = 4.6, kGroupInstructions = 2.4;
/// A warp's loops and index arithmetic: in a task of elements, in a task of rows, and in each further pass
/// over its rows.
constexpr double kElementTaskInstructions = 7.5, kRowTaskInstructions = 10, kPassInstructions = 2.8;
/// At most five steps of a warp's reduction, fewer of short rows: a shuffle beside the combining op.
constexpr double kWarpSteps = 5, kShuffleInstructions = 1;
/// Where a row has several warps: their results through shared memory, a block barrier on either side, and
/// the warp's steps once more.
constexpr double kBlockReduceInstructions = 12.8, kBlockReduceAccesses = 2;
/// Of the instructions of an op that takes several, those of the fp32 units; the others compare, select,
/// convert and take apart. 0.50 (erf, maximum) to 0.80 (exponential) of issue slots, power 0.72, divide 0.55.
constexpr double kFp32Share = 0.66;
/// Loads before the first use: an expression needs two operands at a time ...
constexpr double kOperandsInFlight = 2;
/// ... and a thread keeps no more requests than this in flight: the scoreboard and the registers end it.
constexpr double kMaxLoadsInFlight = 8;
/// Of an element that is taken into a later reduction in the pass of an earlier one: compared or averaged,
/// and added (analysis/astitch/one_pass.cpp).
constexpr double kGatherInstructions = 9;

/// Does lane 0..31 of a warp lie along the rows of the domain, or along its cols?
int lane_dim(const ThreadMapping& mapping) {
  return mapping.kind == MappingKind::kRowPack || mapping.kind == MappingKind::kRowSplit ||
                 mapping.kind == MappingKind::kTile
             ? 1
             : 0;
}

/// Sectors one warp's access under `map` touches, counted on a sample of 32 lanes in the middle of the
/// domain, so many rows behind its middle.
double sectors_a_warp(const IndexMap& map, const std::vector<std::int64_t>& extents,
                      const ThreadMapping& mapping, int element_bytes, std::int64_t row) {
  const IndexExpr linear = linearize(map.results, extents);
  const int lane = lane_dim(mapping);
  std::vector<std::int64_t> point(map.dims.size());
  for (std::size_t d = 0; d < point.size(); ++d) point[d] = map.dims[d] / 2 / kWarp * kWarp;
  if (row > 0) point[0] += row;
  const std::vector<std::int64_t> symbols(map.symbols.size(), 0), runtime(map.runtime.size(), 0);
  std::array<std::int64_t, kWarp> sectors{};
  for (int i = 0; i < kWarp; ++i) {
    std::vector<std::int64_t> at = point;
    if (lane < static_cast<int>(at.size())) {
      // Rows shorter than a warp: the lanes go on in the next row.
      const std::int64_t extent = std::max<std::int64_t>(1, map.dims[static_cast<std::size_t>(lane)]);
      const std::int64_t position = at[static_cast<std::size_t>(lane)] + i;
      at[static_cast<std::size_t>(lane)] = position % extent;
      if (lane == 1 && position >= extent)
        at[0] = std::min(at[0] + position / extent, std::max<std::int64_t>(0, map.dims[0] - 1));
    }
    sectors[static_cast<std::size_t>(i)] =
        evaluate(linear, at, symbols, runtime) * element_bytes / kSectorBytes;
  }
  std::sort(sectors.begin(), sectors.end());
  return static_cast<double>(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
}

/// Of long rows that begin within sectors the mean of as many as begin differently.
double sectors_a_warp(const IndexMap& map, const std::vector<std::int64_t>& extents,
                      const ThreadMapping& mapping, int element_bytes) {
  constexpr std::int64_t kRows = 8;
  const bool apart = lane_dim(mapping) == 1 && map.dims.size() == 2 && map.dims[1] > kWarp &&
                     map.dims[0] >= kRows * kWarp && mapping.cols * element_bytes % kSectorBytes != 0;
  double sectors = 0;
  for (std::int64_t row = 0; row < (apart ? kRows : 1); ++row)
    sectors += sectors_a_warp(map, extents, mapping, element_bytes, row);
  return sectors / static_cast<double>(apart ? kRows : 1);
}

bool uses(const IndexMap& map, int dim) {
  return std::any_of(map.results.begin(), map.results.end(),
                     [dim](const IndexExpr& e) { return e.uses_dim(dim); });
}

/// Warps that issue one access each for a value under `map`. A value that does not vary along the lanes is
/// still loaded by every warp that works on it.
double warp_accesses(const IndexMap& map, const ThreadMapping& mapping) {
  double count = evaluation_count(map);
  const int lane = lane_dim(mapping);
  // A value of the col alone is loaded again for every row.
  if (lane == 1 && map.dims.size() == 2 && uses(map, 1) && !depends_on(map, 0))
    count *= static_cast<double>(map.dims[0]);
  if (depends_on(map, lane) || map.dims.size() < 2) return count / kWarp;
  if (mapping.kind == MappingKind::kTile)
    return count * static_cast<double>(mapping.split) *
           std::max(1.0, mapping.threads_per_row / double{kWarp});
  if (lane == 1) return count * mapping.threads_per_row / kWarp;
  return count * std::max(1.0, static_cast<double>(mapping.rows) / kWarp);
}

/// Elements that one access of a thread moves.
int moved_at_once(const IndexMap& map, const Shape& shape, const ThreadMapping& mapping, bool through_tile) {
  if (mapping.staged && through_tile) return staging_mapping(mapping, byte_size(shape.dtype)).vector;
  if (mapping.vector == 1 || !uses(map, lane_dim(mapping)) || !map.constraints.empty() ||
      !map.runtime.empty() || !map.symbols.empty())
    return 1;
  const IndexExpr offset = simplify(linearize(map.results, shape.dims), map);
  return moves_in_vectors(offset, map, mapping) ? mapping.vector : 1;
}

class KernelCounter {
 public:
  KernelCounter(const Graph& graph, const Device& device, const KernelPlan& kernel)
      : graph_(graph), computation_(graph.entry_computation()), device_(device), kernel_(kernel) {
    inside_.insert(kernel.ops.begin(), kernel.ops.end());
    outputs_.insert(kernel.outputs.begin(), kernel.outputs.end());
  }

  KernelCost run(const KernelEvaluations& found) {
    SW_CHECK(found.size() == kernel_.groups.size());
    for (std::size_t g = 0; g < found.size(); ++g) count_group(kernel_.groups[g], found[g]);
    count_dram();
    for (const auto& [op, evaluated] : evaluated_) {
      const std::int64_t elements = computation_.node(op).shape.elements_count();
      cost_.recomputed_elements += std::max<std::int64_t>(0, static_cast<std::int64_t>(evaluated) - elements);
    }
    finish();
    return cost_;
  }

 private:
  /// Requests of a thread for one element or vector; those behind a guard do not go ahead of the arithmetic.
  struct ThreadLoads {
    double all = 0, unguarded = 0;
    double staged = 0;    ///< of a range, all of which are in flight together
    double accesses = 0;  ///< of all warps
    /// Of `accesses` those that are asynchronous copies; requests of a warp for all these, of all tasks that
    /// it has asked for.
    double copies = 0, copied = 0;
  };

  /// What the groups of one level do between two grid barriers.
  struct Phase {
    ThreadWork work;
    double dram_bytes = 0;
    /// Of rows that registers do not hold: what is loaded of them behind the first step, and what of them the
    /// blocks that are resident at a time go through.
    double bytes_again = 0, resident_bytes = 0;
    std::vector<std::pair<const Group*, double>> groups;  ///< and the warp instructions of each
  };
  /// Of the group being counted.
  ThreadWork& now() { return phases_[level_].work; }

  int level_of(NodeId op) const {
    const auto it = kernel_.levels.find(op);
    return it == kernel_.levels.end() ? 0 : it->second;
  }

  /// Warps that run through a group's tasks: all of the block, also those that have nothing to do.
  double warp_tasks(const ThreadMapping& mapping) const {
    return static_cast<double>(block_tasks(mapping)) *
           std::ceil(static_cast<double>(kernel_.launch.block) / kWarp);
  }

  /// Of a warp in a task that goes over its elements so many times, averaged over those that have nothing to
  /// do.
  double task_instructions(const ThreadMapping& mapping, double passes) const {
    if (mapping.threads_per_row > 1 || mapping.kind == MappingKind::kColumn ||
        mapping.kind == MappingKind::kTile)
      return kRowTaskInstructions + kPassInstructions * (passes - 1);
    const double busy = std::ceil(static_cast<double>(mapping.rows) / (kWarp * mapping.vector));
    return kElementTaskInstructions * passes * std::min(1.0, busy / warp_tasks(mapping));
  }

  void count_group(const Group& group, const GroupEvaluations& found) {
    level_ = level_of(group.sub_dominants.empty() ? group.dominant
                                                  : std::min(group.dominant, group.sub_dominants[0]));
    const double before = now().warp_instructions;
    const double all_tasks = warp_tasks(group.mapping);
    double passes = 1;  // over a task; a value in shared memory ends one
    std::int64_t reductions = 0;
    ThreadLoads loads;
    const std::vector<int> again = loads_again(computation_, kernel_, group, found);
    rows_in_l1_ = l1_holds(computation_, device_, kernel_, group, found, again, blocks_per_sm());
    for (std::size_t v = 0; v < found.values.size(); ++v) {
      const Evaluation& e = found.values[v];
      if (e.load)
        count_load(group, e, again[v], loads);
      else
        count_value(group, e);
    }
    for (NodeId op : materialised(group)) {
      const auto placed = found.placements.find(op);
      if (placed == found.placements.end()) continue;
      count_store(group, op, placed->second);
      reductions += reduces_cols(computation_, op, group);
      if (contains_sorted(group.one_pass, op))
        now().warp_instructions += kGatherInstructions * static_cast<double>(group.mapping.rows) *
                                   static_cast<double>(group.mapping.cols) / kWarp;
      if (scheme_in_phase(kernel_, op) != Scheme::kRegional) continue;
      if (placed->second.coverage == Coverage::kFull || reduces_cols(computation_, op, group))
        passes += 1;  // that of a value of the row is a single warp's
      if (placed->second.coverage != Coverage::kRows) continue;
      // Every warp of the row reads it back.
      now().ldst_warp_instructions += all_tasks;
      now().shared_wavefronts += all_tasks;
    }
    for (const Residence& r : kernel_.resident) {
      if (!r.shared || r.group != group.dominant) continue;
      const auto placed = found.placements.find(r.op);
      if (placed != found.placements.end()) count_kept(warp_accesses(placed->second.map, group.mapping));
    }
    now().warp_instructions += task_instructions(group.mapping, passes) * all_tasks;
    now().cluster_barriers +=
        cluster_barriers(group.mapping, reductions) * static_cast<double>(group.mapping.blocks);
    phases_[level_].groups.push_back({&group, now().warp_instructions - before});
    // Where vectors or unrolling ask for it, loads go ahead of the arithmetic; else an expression's operands.
    const bool ahead = group.mapping.vector > 1 || group.mapping.unroll > 1 || group.mapping.staged;
    const double operands = std::min(loads.all, kOperandsInFlight);
    const double in_flight =
        ahead ? std::max(operands, loads.staged + loads.unguarded *
                                                      vectors_in_flight(group.mapping, kernel_.launch.block))
              : operands;
    loads_made_ += loads.accesses;
    loads_in_flight_ += (loads.accesses - loads.copies) * std::clamp(in_flight, 1.0, kMaxLoadsInFlight) +
                        loads.copies * std::max(1.0, loads.copied);
  }

  /// Requests of a warp for a value whose tiles are filled by asynchronous copies, mapping.stages tasks at a
  /// time; 0 where it moves otherwise.
  double copied_in_flight(const Group& group, const Shape& shape, bool through_tile) const {
    const ThreadMapping& m = group.mapping;
    if (!through_tile || !m.staged) return 0;
    const StagedPart part = staged_part(shape, m);
    const int bytes = byte_size(shape.dtype);
    if (copied_bytes(part, m, bytes) == 0) return 0;
    return static_cast<double>(m.stages * staged_elements(part, m) * bytes) /
           (kernel_.launch.block * kLaneBytes);
  }

  void count_value(const Group& group, const Evaluation& e) {
    const Node& node = computation_.node(e.op);
    const OpDef& row = def(node.op);
    double count = evaluation_count(e.map), instructions = instructions_of(node);
    if (row.instructions > 0) evaluated_[e.op] += count;  // maps cost nothing again
    if (row.cls == OpClass::kReduce) {
      // Accumulating is once an element of the operand.
      const Node& operand = computation_.node(node.operands[0]);
      const double reduced = static_cast<double>(operand.shape.elements_count()) /
                             static_cast<double>(std::max<std::int64_t>(1, node.shape.elements_count()));
      now().fp32_warp_instructions += count * reduced / kWarp;
      count *= reduced;
      instructions = combining_instructions(node);
      if (is_across(group, e.op))
        count_across(group.mapping, node);
      else if (reduces_domain(computation_, e.op, group.mapping) && group.mapping.threads_per_row > 1)
        count_combining(group.mapping, node);
      now().warp_instructions += count * instructions / kWarp;
      return;
    }
    // A warp executes it for whatever part of its lanes.
    const double warps = instructions > 0 ? std::max(1.0, warp_accesses(e.map, group.mapping)) : 0;
    if (is_elementwise(node.op) && is_floating(node.shape.dtype)) {
      now().fp32_warp_instructions += warps * (instructions > 1 ? kFp32Share * instructions : instructions);
      if (row.cls == OpClass::kHeavyElementwise) now().mufu_warp_instructions += warps;
    }
    now().warp_instructions += warps * instructions;
  }

  /// For one element. Dividing by a constant power of two is multiplying.
  double instructions_of(const Node& node) const {
    if (node.op == Op::kDivide && is_floating(node.shape.dtype)) {
      const Node* by = &computation_.node(node.operands[1]);
      while (by->op == Op::kBroadcast) by = &computation_.node(by->operands[0]);
      int exponent = 0;
      if (by->op == Op::kConstant && by->shape.elements_count() == 1 &&
          std::abs(std::frexp(by->attrs.literal->get_double(0), &exponent)) == 0.5)
        return def(Op::kMultiply).instructions;
    }
    return def(node.op).instructions;
  }

  /// Of accumulating one element.
  double combining_instructions(const Node& reduce) const {
    const auto op = simple_reducer(graph_, applied(reduce));
    return op ? def(*op).instructions : def(reduce.op).instructions;
  }

  /// The threads of a row add up what each of them has.
  void count_combining(const ThreadMapping& mapping, const Node& reduce) {
    const double steps = std::min(kWarpSteps, std::ceil(std::log2(mapping.threads_per_row)));
    const double stage = steps * (kShuffleInstructions + combining_instructions(reduce));
    const double warps = warp_tasks(mapping);
    const bool block = mapping.threads_per_row > kWarp || mapping.kind == MappingKind::kColumn;
    now().warp_instructions += warps * (block ? 2 * stage + kBlockReduceInstructions : stage);
    count_exchange(mapping, warps);
    now().fp32_warp_instructions += warps * steps * (block ? 2 : 1);
    if (!block) return;
    now().ldst_warp_instructions += warps * kBlockReduceAccesses;
    now().shared_wavefronts += warps * kBlockReduceAccesses;
  }

  /// And, in a cluster, the blocks.
  void count_exchange(const ThreadMapping& mapping, double warps) {
    const ClusterExchange exchange = cluster_exchange(mapping, kernel_.launch.block);
    now().warp_instructions += warps * exchange.warp_instructions;
    now().ldst_warp_instructions += warps * exchange.remote_accesses;
    now().remote_accesses += warps * exchange.remote_accesses;
    now().remote_sectors += warps * exchange.remote_sectors;
  }

  /// Behind its tasks every block adds up, an accumulator a thread at a time, what the rows of its last task
  /// have, and writes the partials; where the result is an output, tiles of columns fold them.
  void count_across(const ThreadMapping& mapping, const Node& reduce) {
    const double blocks = static_cast<double>(mapping.blocks);
    const double warps = std::ceil(static_cast<double>(kernel_.launch.block) / kWarp);
    const double accumulators =
        static_cast<double>(vectors_a_thread(mapping, kernel_.launch.block) * mapping.vector);
    const double rows = static_cast<double>(mapping.rows_per_block);
    const double writers = std::ceil(std::min<double>(mapping.threads_per_row, kernel_.launch.block) / kWarp);
    if (rows > 1) {
      now().warp_instructions +=
          blocks * accumulators * (warps * kBlockReduceInstructions + writers * rows * 2);
      now().shared_wavefronts += blocks * accumulators * (warps + writers * rows);
      now().ldst_warp_instructions += blocks * accumulators * (warps + writers * rows);
    }
    // codegen/print_across.cpp
    const int at_once = std::min(mapping.vector, kVectorBytes / accumulator_bytes(reduce.shape.dtype));
    const int together = rows > 1 ? 1 : at_once;
    count_accesses(blocks * accumulators * writers / together);
    const double sectors = static_cast<double>(across_bytes(mapping, reduce.shape.dtype)) / kSectorBytes;
    now().l2_sectors += sectors;
    if (!outputs_.contains(reduce.id)) return;
    const double loads = static_cast<double>(task_takers(mapping) * mapping.cols) / kWarp;
    now().l2_sectors += sectors;
    count_accesses(loads);
    now().fp32_warp_instructions += loads;
    const ThreadMapping fold = fold_mapping(mapping, kernel_.launch.block);
    now().warp_instructions += static_cast<double>(fold.tasks) * warps * kBlockReduceInstructions;
    write(reduce.shape.byte_size());
  }

  /// Accumulators that each element of a value read from partials is folded from.
  std::int64_t partials_of(NodeId op) const {
    for (const Group& group : kernel_.groups)
      if (is_across(group, op)) return task_takers(group.mapping);
    return 1;
  }

  /// `again`: in so many steps more.
  void count_load(const Group& group, const Evaluation& e, int again, ThreadLoads& loads) {
    const std::int64_t partials = partials_of(e.op);
    const double accesses =
        std::max(1.0, warp_accesses(e.map, group.mapping)) * static_cast<double>(partials);
    const bool internal = inside_.contains(e.op);
    if (e.resident) {
      if (kept_in_shared(group, e.op)) count_kept(accesses);
      return;
    }
    if (internal && reads_shared(kernel_, e.op, e.root)) {
      now().shared_wavefronts += accesses;
      count_accesses(accesses);
      return;
    }
    const Shape& shape = computation_.node(e.op).shape;
    const int bytes = byte_size(shape.dtype);
    if (e.tile && group.mapping.staged && staged_part(shape, group.mapping) == StagedPart::kCols)
      return count_staged_cols(group, e, accesses);
    const int at_once = moved_at_once(e.map, shape, group.mapping, e.tile);
    const bool fixed = !uses(e.map, 0) && !uses(e.map, 1) && e.map.symbols.empty() && e.map.runtime.empty();
    const double times = e.tile ? 1 : 1.0 + again;  // from memory
    const double touched_sectors =
        accesses * sectors(e.map, shape.dims, group.mapping, bytes, e.tile, at_once);
    count_accesses(times * accesses / at_once, fixed ? kNoAddress : together(group));
    loads.accesses += times * accesses / at_once;
    now().l2_sectors += (rows_in_l1_ ? 1 : times) * touched_sectors;
    now().l1_hit_sectors += (rows_in_l1_ ? times - 1 : 0) * touched_sectors;
    if (times > 1 && !rows_in_l1_) {
      const double all = static_cast<double>(group.mapping.rows * group.mapping.cols * bytes);
      phases_[level_].bytes_again += again * all;
      phases_[level_].resident_bytes += all * resident_share(group.mapping);
    }
    const double copied = copied_in_flight(group, shape, e.tile);
    if (e.tile)
      count_through_tile(accesses, 1 + again, copied > 0 ? 0 : at_once, group.mapping.vector, bytes);
    if (copied > 0) {
      // By instructions that wait for nothing and stay in flight until the task's turn.
      loads.copies += accesses / at_once;
      loads.copied += copied;
    } else if (e.tile && group.mapping.staged) {
      const ThreadMapping range = staging_mapping(group.mapping, bytes);
      const double vectors =
          std::min(kRangeVectors, static_cast<double>(vectors_a_thread(range, kernel_.launch.block)));
      loads.all += vectors * at_once * bytes / kLaneBytes;
      loads.staged += vectors * at_once * bytes / kLaneBytes;
    } else if (uses(e.map, lane_dim(group.mapping))) {
      // What does not move in vectors is as many loads, one after the other without waiting.
      const int moves = group.mapping.vector / at_once;
      const double requests = moves * std::max(1.0, at_once * bytes / kLaneBytes);
      const bool guarded = !e.map.constraints.empty() || !e.map.runtime.empty();
      loads.all += requests;
      if (!guarded) loads.unguarded += requests;
    }
    const NodeId buffer = internal ? e.op : buffer_of(computation_, e.op);
    double& touched = touched_[buffer][{level_of(e.root), pass_of(group)}];
    touched = std::min(touched + evaluation_count(e.map) * bytes,
                       static_cast<double>(shape.byte_size() * partials));
  }

  /// A value a col, which a block has in a tile: filled in every task, or before the first.
  void count_staged_cols(const Group& group, const Evaluation& e, double accesses) {
    const Shape& shape = computation_.node(e.op).shape;
    const ThreadMapping& m = group.mapping;
    const double times = static_cast<double>(m.stages > 0 ? m.blocks : m.tasks);
    const double elements = static_cast<double>(shape.elements_count());
    const double fills = times * std::ceil(elements / kWarp);
    now().l2_sectors += times * std::ceil(elements * byte_size(shape.dtype) / kSectorBytes);
    now().shared_wavefronts += accesses + fills;
    count_accesses(accesses + 2 * fills);
    double& touched = touched_[inside_.contains(e.op) ? e.op : buffer_of(computation_, e.op)]
                              [{level_of(e.root), pass_of(group)}];
    touched = static_cast<double>(shape.byte_size());
  }

  /// Groups of a lane that go through the same rows in the same tasks read together; others come by at
  /// another time.
  std::size_t pass_of(const Group& group) {
    const ThreadMapping& m = group.mapping;
    const Pass pass{group.lane, m.tasks, m.blocks, m.rows_per_block * m.cols};
    const auto known = std::find(passes_.begin(), passes_.end(), pass);
    if (known == passes_.end()) passes_.push_back(pass);
    return static_cast<std::size_t>(std::find(passes_.begin(), passes_.end(), pass) - passes_.begin());
  }

  bool kept_in_shared(const Group& group, NodeId op) const {
    return std::any_of(kernel_.resident.begin(), kernel_.resident.end(), [&](const Residence& r) {
      return r.op == op && r.group == group.dominant && r.shared;
    });
  }

  /// Sectors one warp's access of global memory touches.
  static double sectors(const IndexMap& map, const std::vector<std::int64_t>& extents,
                        const ThreadMapping& mapping, int bytes, bool through_tile, int at_once) {
    // A range in order, or a peeled row's vectors, which begin with sectors.
    if ((mapping.staged && through_tile) || (is_peeled(mapping) && at_once > 1))
      return static_cast<double>(kWarp * bytes) / kSectorBytes;
    const bool tiles = mapping.kind == MappingKind::kTile && map.dims.size() == 2 && map.symbols.empty() &&
                       map.runtime.empty();
    if (!tiles) return sectors_a_warp(map, extents, mapping, bytes);
    return tile_sectors(map, extents, mapping, bytes,
                        through_tile ? TileOrder::kAlongRows : TileOrder::kAlongCols);
  }

  /// Into the tile, `moved` elements at once (0: copied there, which takes no instruction more), and out of
  /// it: no two lanes share a bank.
  void count_through_tile(double accesses, int times, int moved, int vector, int bytes) {
    constexpr int kBankBytes = 4;
    const auto wavefronts = [&](double elements, int at_once) {
      now().shared_wavefronts +=
          elements / at_once * std::max(1.0, static_cast<double>(at_once * bytes) / kBankBytes);
    };
    wavefronts(accesses, std::max(1, moved));
    if (moved > 0) count_accesses(accesses / moved);
    wavefronts(accesses * times, vector);
    count_accesses(accesses * times / vector);
  }

  /// Stores or loads of kept elements in shared memory: a lane a bank.
  void count_kept(double accesses) {
    now().shared_wavefronts += accesses;
    count_accesses(accesses);
  }

  /// What is at one place of an array: the address is a constant.
  static constexpr double kNoAddress = std::numeric_limits<double>::infinity();
  /// `together`: so many of an array have one address computed.
  void count_accesses(double accesses, double together = 1) {
    now().ldst_warp_instructions += accesses;
    now().warp_instructions += accesses * (1 + kAddressInstructions / together);
  }
  double together(const Group& group) const {
    return std::max(1.0, vectors_in_flight(group.mapping, kernel_.launch.block));
  }

  /// Stores of one warp each. A value of the row is stored by one lane of those that reduced it, or by as
  /// many lanes as a task has rows.
  double store_accesses(const Group& group, NodeId op, const Placement& placed) const {
    const ThreadMapping& mapping = group.mapping;
    if (lane_dim(mapping) == 1 && placed.coverage == Coverage::kRows) {
      const double tasks = static_cast<double>(mapping.tasks);
      const double rows = static_cast<double>(mapping.rows_per_block);
      if (!reduces_cols(computation_, op, group)) return tasks * std::ceil(rows / kWarp);
      return tasks * std::ceil(rows * std::min(1.0, static_cast<double>(mapping.threads_per_row) / kWarp));
    }
    const bool split = mapping.combine != Combine::kNone && reduces_domain(computation_, op, mapping);
    return std::max(1.0, evaluation_count(placed.map) / kWarp) * (split ? mapping.split : 1);
  }

  void count_store(const Group& group, NodeId op, const Placement& placed) {
    if (is_across(group, op)) return;  // count_across
    const Node& node = computation_.node(op);
    const Scheme scheme = kernel_.schemes.at(op);
    const double accesses = store_accesses(group, op, placed);
    const bool shared = scheme_in_phase(kernel_, op) == Scheme::kRegional;
    if (shared) now().shared_wavefronts += accesses;
    const bool output = outputs_.contains(op);
    const bool global = output || scheme == Scheme::kGlobal;
    if (shared) count_accesses(accesses);
    if (!global) return;
    const bool tile = find_tile(kernel_, op, group.dominant, level_of(op)) != nullptr;
    const int at_once = moved_at_once(placed.map, node.shape, group.mapping, tile);
    count_accesses(accesses / at_once, together(group));
    const int bytes = byte_size(node.shape.dtype);
    now().l2_sectors += accesses * sectors(placed.map, node.shape.dims, group.mapping, bytes, tile, at_once);
    if (tile) count_through_tile(accesses, 1, at_once, group.mapping.vector, bytes);
    if (output) write(node.shape.byte_size());
  }

  void write(std::int64_t bytes) {
    cost_.dram_write_bytes += bytes;
    phases_[level_].dram_bytes += static_cast<double>(bytes);
  }

  /// Of the rows those that resident blocks have at a time.
  double resident_share(const ThreadMapping& mapping) const {
    const std::int64_t places = std::int64_t{device_.sms} * std::max(1, blocks_per_sm());
    const std::int64_t takers = ceil_div(std::min(mapping.blocks, places), std::int64_t{mapping.cluster});
    return std::min(1.0, static_cast<double>(takers * mapping.rows_per_block) /
                             static_cast<double>(std::max<std::int64_t>(1, mapping.rows)));
  }

  int blocks_per_sm() const {
    const KernelLaunch& launch = kernel_.launch;
    const int registers = launch.register_bound > 0 ? launch.register_bound : kAssumedRegisters;
    return occupancy(device_, launch.block, registers, launch.shared_bytes).blocks_per_sm;
  }

  /// Every input byte comes from DRAM once; again in a later phase, and for groups that read it at another
  /// time, if what the kernel touches exceeds the L2.
  /// Scratch is written to DRAM in the end; it is read from the L2 unless it, with the inputs, does not fit.
  /// Rows that registers do not hold are read again from L2 as far as those of the resident blocks leave room
  /// there for what is written.
  void count_dram() {
    double footprint = static_cast<double>(kernel_.launch.scratch_bytes + cost_.dram_write_bytes);
    for (const auto& [buffer, levels] : touched_) {
      double most = 0;
      for (const auto& [when, bytes] : levels) most = std::max(most, bytes);
      footprint += most;
    }
    const bool spills = footprint > static_cast<double>(device_.l2_bytes);
    double read = 0;
    const auto fetch = [&](int level, double bytes) {
      read += bytes;
      phases_[level].dram_bytes += bytes;
    };
    for (const auto& [buffer, levels] : touched_) {
      const bool scratch = inside_.contains(buffer);
      double so_far = 0;
      for (const auto& [when, bytes] : levels) {
        if (spills)
          fetch(when.first, bytes);
        else if (!scratch && bytes > so_far)
          fetch(when.first, bytes - so_far);
        so_far = std::max(so_far, bytes);
      }
    }
    for (auto& [level, phase] : phases_)
      fetch(level, phase.bytes_again * share_beyond_l2(device_, phase.resident_bytes));
    level_ = phases_.begin()->first;  // scratch is written first, as are tables of addresses
    write(kernel_.launch.scratch_bytes);
    cost_.dram_read_bytes = static_cast<std::int64_t>(read);
    count_table();
  }

  /// Addresses that do not fit the arguments come from memory once, and each block reads those of a group.
  void count_table() {
    constexpr double kPointerBytes = 8;
    std::size_t pointers = outputs_.size();
    for (const auto& [buffer, levels] : touched_) pointers += !inside_.contains(buffer);
    if (pointers <= kMostPointerArguments) return;
    const double bytes = kPointerBytes * static_cast<double>(pointers);
    cost_.dram_read_bytes += static_cast<std::int64_t>(bytes);
    phases_[level_].dram_bytes += bytes;
    const double of_a_group = bytes / static_cast<double>(kernel_.groups.size());
    now().l2_sectors += static_cast<double>(kernel_.launch.grid) * std::ceil(of_a_group / kSectorBytes);
  }

  /// Instructions of the busiest SM over those of the average one: groups of a phase may run on few of the
  /// blocks (lanes). Blocks are dealt to SMs in turn.
  double busiest(const Phase& phase, std::int64_t resident) const {
    const std::int64_t grid = kernel_.launch.grid;
    if (grid > resident) return 1;  // what one wave leaves idle the next fills
    std::vector<double> sms(static_cast<std::size_t>(std::min<std::int64_t>(grid, device_.sms)));
    double total = 0;
    for (const auto& [group, instructions] : phase.groups) {
      const double each = instructions / static_cast<double>(group->mapping.blocks);
      for (std::int64_t b = 0; b < group->mapping.blocks; ++b)
        sms[static_cast<std::size_t>(group->first_block + b) % sms.size()] += each;
      total += instructions;
    }
    // The average SM of a grid whose blocks are alike has as many blocks as any, or one less.
    const double even =
        total / static_cast<double>(grid) * std::ceil(static_cast<double>(grid) / device_.sms);
    return even > 0 ? std::max(1.0, *std::max_element(sms.begin(), sms.end()) / even) : 1;
  }

  void finish() {
    const KernelLaunch& launch = kernel_.launch;
    level_ = phases_.begin()->first;
    const auto further_groups = static_cast<double>(kernel_.groups.size() - 1);
    now().warp_instructions += (kBlockInstructions + kGroupInstructions * further_groups) *
                               static_cast<double>(launch.grid) *
                               std::ceil(launch.block / static_cast<double>(kWarp));
    work_.grid_blocks = launch.grid;
    work_.threads_per_block = launch.block;
    work_.blocks_per_sm = std::max(1, blocks_per_sm());
    if (loads_made_ > 0) work_.independent_loads = loads_in_flight_ / loads_made_;
    work_.grid_barriers = launch.grid_barriers;
    work_.phases = launch.grid_barriers + 1;
    LaunchWork timed{.threads_per_block = work_.threads_per_block,
                     .blocks_per_sm = work_.blocks_per_sm,
                     .grid_blocks = work_.grid_blocks,
                     .grid_barriers = work_.grid_barriers,
                     .independent_loads = work_.independent_loads};
    double of_busiest = 0;
    for (auto& [level, phase] : phases_) of_busiest += add_phase(phase, timed);
    if (work_.warp_instructions > 0) work_.busiest_sm = of_busiest / work_.warp_instructions;
    // Barriers within a phase: behind each, partial results come from the L2.
    for (int p = static_cast<int>(phases_.size()); p < work_.phases; ++p) {
      const ThreadWork fetch{.l2_sectors = static_cast<double>(launch.grid)};
      for (const Stretch& s : stretches(device_, launch.grid, work_.blocks_per_sm, fetch, 0, 1))
        timed.stretches.push_back(s);
    }
    cost_.work = work_;
    cost_.predicted_us = kernel_time(device_, timed).total_us;
  }

  /// Adds a phase to the kernel's totals and to what is timed; returns its instructions, were all SMs as busy
  /// as the busiest.
  double add_phase(Phase& phase, LaunchWork& timed) {
    ThreadWork& w = phase.work;
    const double dram_sectors = phase.dram_bytes / kSectorBytes;
    w.l2_sectors = std::max(w.l2_sectors, dram_sectors);
    w.global_accesses = std::max(0.0, w.ldst_warp_instructions - w.shared_wavefronts - w.remote_accesses);
    work_.dram_sectors += dram_sectors;
    work_.l2_sectors += w.l2_sectors;
    work_.warp_instructions += w.warp_instructions;
    work_.fp32_warp_instructions += w.fp32_warp_instructions;
    work_.mufu_warp_instructions += w.mufu_warp_instructions;
    work_.ldst_warp_instructions += w.ldst_warp_instructions;
    work_.shared_wavefronts += w.shared_wavefronts;
    work_.remote_accesses += w.remote_accesses;
    work_.remote_sectors += w.remote_sectors;
    work_.cluster_barriers += w.cluster_barriers / static_cast<double>(work_.grid_blocks);
    const double busiest_sm = busiest(phase, static_cast<std::int64_t>(device_.sms) * work_.blocks_per_sm);
    for (const Stretch& s :
         stretches(device_, work_.grid_blocks, work_.blocks_per_sm, w, dram_sectors, busiest_sm))
      timed.stretches.push_back(s);
    return busiest_sm * w.warp_instructions;
  }

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  const KernelPlan& kernel_;
  std::unordered_set<NodeId> inside_, outputs_;
  std::map<NodeId, double> evaluated_;
  using Pass = std::tuple<int, std::int64_t, std::int64_t, std::int64_t>;  ///< lane, tasks, blocks, elements
  std::vector<Pass> passes_;
  std::map<NodeId, std::map<std::pair<int, std::size_t>, double>>
      touched_;  ///< buffer -> level, pass -> bytes
  std::map<int, Phase> phases_;
  int level_ = 0;
  bool rows_in_l1_ = false;                      ///< of the group being counted: what is loaded again
  double loads_made_ = 0, loads_in_flight_ = 0;  ///< accesses, and times those in flight at once
  KernelWork work_;
  KernelCost cost_;
};

}  // namespace

KernelCost kernel_cost(const Graph& graph, const Device& device, const KernelPlan& kernel) {
  return kernel_cost(graph, device, kernel, evaluations(graph.entry_computation(), kernel));
}

KernelCost kernel_cost(const Graph& graph, const Device& device, const KernelPlan& kernel,
                       const KernelEvaluations& found) {
  return KernelCounter(graph, device, kernel).run(found);
}

}  // namespace stitchwork
