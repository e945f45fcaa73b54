#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "analysis/facts/choices.h"
#include "analysis/facts/facts.h"
#include "analysis/judge/cost_internal.h"
#include "analysis/judge/value.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/mapping.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/one_pass.h"
#include "core/base/sorted.h"

namespace stitchwork::costs {
namespace {

// What generated code executes beside the ops, in machine instructions: fitted to the simulator's issue slots
// of 404 kernels (scripts/bench/estimates, docs/timing.md).
/// A warp's thread indices and bounds, once a block; the guards of each group it runs, and the choice of each
/// loop over tasks that it does not.
constexpr double kBlockInstructions = 2.2, kGroupInstructions = 2.4;
/// So many loops that are alike share one body (analysis/schedule/share.h), for which a warp takes its
/// pointers from a table.
constexpr std::size_t kFewestShared = 4;
constexpr double kTableInstructions = 30;
/// A warp's loops and index arithmetic: in a task of elements, in a task of rows, and in each further pass
/// over its rows. A warp without rows comes to the guards of the task, and goes through its reductions.
constexpr double kElementTaskInstructions = 7.5, kRowTaskInstructions = 10, kPassInstructions = 2.8,
                 kIdleTaskInstructions = 7;
/// At most five steps of a warp's reduction, fewer of short rows: a shuffle beside the combining op.
constexpr double kWarpSteps = 5, kShuffleInstructions = 1;
/// Where a row has several warps: their results through shared memory, a block barrier on either side, and
/// the warp's steps once more.
constexpr double kBlockReduceInstructions = 12.8, kBlockReduceAccesses = 2;
/// Columns in vectors (codegen/print/print_columns.cpp), measured in the simulator over eight shapes of f32,
/// bf16 and f16 on an H200. A warp's places before its first vector: where a vector may begin in one col and
/// end in the next; where it begins before the task's results, also of each of its elements. Of a guarded
/// vector the loop and the guard, and of each of its elements; of a shifted vector's element the guard of its
/// result.
constexpr double kFlatTaskInstructions = 20, kShiftedTaskInstructions = 20, kShiftedElementInstructions = 8,
                 kGuardedVectorInstructions = 13, kGuardedElementInstructions = 2,
                 kShiftedGuardInstructions = 1.2;
/// Through shared memory: a warp's store of four neighbours, or of one of a shifted vector with its guard; of
/// a warp of results the guards, and of each further slice a load and the combining op beside a share of the
/// loop.
constexpr double kShiftedStoreInstructions = 2.5, kSliceSumInstructions = 14, kSliceInstructions = 1.3;
constexpr int kStoredTogether = 4;
/// Of an element that a thread takes into a later reduction (codegen/prelude/prelude_common.cpp, sw_gather):
/// issue slots, and those of them of the units that compute in its type. Measured in the simulator, a kernel
/// that gathers less one that does not (docs/timing.md, "Gathered elements").
struct Gather {
  double instructions, arithmetic, mufu;
};
/// Measured in the simulator: docs/timing.md.
constexpr Gather kExponentialsF32{17.1, 13, 1}, kExponentialsF64{27.3, 20, 0}, kSquaresF32{6.2, 5, 1},
    kSquaresF64{17.5, 6, 0};

const Gather& gather_of(OnePassKind kind, DType dtype) {
  const bool wide = dtype == DType::kF64;
  if (kind == OnePassKind::kExponentials) return wide ? kExponentialsF64 : kExponentialsF32;
  return wide ? kSquaresF64 : kSquaresF32;
}

}  // namespace

double KernelCounter::warp_tasks(const Deal& deal) const {
  return static_cast<double>(deal.block_tasks()) *
         std::ceil(static_cast<double>(kernel_.launch.block) / kWarp);
}

double KernelCounter::task_instructions(const Group& group, double passes) const {
  const Mapping& mapping = group.mapping;
  const auto rows = static_cast<double>(extents(mapping).rows);
  const int threads = threads_a_row(mapping);
  if (threads > 1 || is<mapping::Columns>(mapping) || is<mapping::Patch>(mapping)) {
    const auto turns = static_cast<double>(layout_of(group).turns);
    double busy = 1;
    if (packs_rows(mapping) && threads < kernel_.launch.block)
      busy = std::min(1.0, std::ceil(rows * threads / kWarp) / (turns * warp_tasks(group.deal)));
    return turns * (busy * (kRowTaskInstructions + kPassInstructions * (passes - 1)) +
                    (1 - busy) * kIdleTaskInstructions);
  }
  const double busy = std::ceil(rows / (kWarp * vectors(mapping).width));
  return kElementTaskInstructions * passes * std::min(1.0, busy / warp_tasks(group.deal));
}

void KernelCounter::count_value(const Group& group, const GroupEvaluations& found, int v,
                                const Choices& choices, int steps) {
  const Evaluation& e = found.values[static_cast<std::size_t>(v)];
  const Node& node = computation_.node(e.op);
  double count = steps * e.count;
  if (def(node.op).instructions > 0) evaluated_[e.op] += count;  // maps cost nothing again
  if (!is_reduction(node) || (!is_across(group, e.op) && !reduces_domain(computation_, e.op, group.mapping)))
    return count_op(group, found, v, choices, steps);
  // Accumulating is once an element of the operand, and of a product one instruction with multiplying.
  const bool gathered = contains_sorted(group.one_pass, e.op);
  count *= static_cast<double>(reduction_size(computation_, e.op).cols);
  if (gathered) {
    count_gathering(e.op, count);
  } else {
    arithmetic(node.shape.dtype) += count / kWarp;
    now().warp_instructions += count * combining_instructions(node) / kWarp;
  }
  if (is_across(group, e.op))
    count_across(group, node);
  else if (threads_a_row(group.mapping) > 1)
    layout_of(group).columns == ColumnVectors::kNone ? count_combining(group, node)
                                                     : count_column_vectors(group, node);
}

void KernelCounter::count_op(const Group& group, const GroupEvaluations& found, int v, const Choices& choices,
                             int steps) {
  const Evaluation& e = found.values[static_cast<std::size_t>(v)];
  const Node& node = computation_.node(e.op);
  // A warp executes it for whatever part of its lanes.
  const Layout layout = layout_of(group);
  double warps = choices.any() ? choices.warps(v)
                               : warp_accesses(e.map, group.mapping, layout) *
                                     unfilled_warps(e.map, group.mapping, layout);
  if (warps > 0) warps = steps * std::max(1.0, warps);
  if (reduces(node)) {
    const double elements = warps * reduced_elements(computation_, node);
    arithmetic(node.shape.dtype) += elements;
    now().warp_instructions += elements * combining_instructions(node);
    now() += choices.guard_work(v) * elements;
  } else if (chooses_operand(node.op)) {
    now() += choices.guard_work(v) * warps;
  } else if (const ThreadWork of_op = work_of_op(computation_, node); of_op.warp_instructions > 0) {
    now() += of_op * warps;
  }
}

double& KernelCounter::arithmetic(DType dtype) { return stitchwork::arithmetic(now(), dtype); }

double KernelCounter::combining_instructions(const Node& reduce) const {
  const auto op = reducer_of(graph_, reduce);
  return op ? def(*op).instructions : def(reduce.op).instructions;
}

void KernelCounter::count_combining(const Group& group, const Node& reduce) {
  const int threads = threads_a_row(group.mapping);
  const double steps = std::min(kWarpSteps, std::ceil(std::log2(threads)));
  const double stage = steps * (kShuffleInstructions + combining_instructions(reduce));
  const double warps = warp_tasks(group.deal) * static_cast<double>(layout_of(group).turns);
  const bool block = threads > kWarp || is<mapping::Columns>(group.mapping);
  now().warp_instructions += warps * (block ? 2 * stage + kBlockReduceInstructions : stage);
  count_exchange(group.deal, warps);
  arithmetic(reduce.shape.dtype) += warps * steps * (block ? 2 : 1);
  if (!block) return;
  now().ldst_warp_instructions += warps * kBlockReduceAccesses;
  now().shared_wavefronts += warps * kBlockReduceAccesses;
}

void KernelCounter::count_column_vectors(const Group& group, const Node& reduce) {
  const Layout layout = layout_of(group);
  const double tasks = static_cast<double>(group.deal.block_tasks()), width = layout.width;
  const bool flat = layout.columns == ColumnVectors::kFlat,
             shifted = layout.columns == ColumnVectors::kShifted;
  const double slices = static_cast<double>(layout.slices);
  const double busy = tasks * std::ceil(slices * static_cast<double>(layout.places) / (width * kWarp));
  double vectors = 0, guarded = 0;
  for (const Run& run : layout.runs())
    (run.guarded ? guarded : vectors) += static_cast<double>(run.end - run.first);
  double each = flat      ? kFlatTaskInstructions
                : shifted ? kShiftedTaskInstructions + width * kShiftedElementInstructions
                          : 0;
  each += guarded * (kGuardedVectorInstructions + (flat ? width * kGuardedElementInstructions : 0));
  if (shifted) each += (vectors + guarded) * width * kShiftedGuardInstructions;
  const double stores = shifted ? width : std::ceil(width / kStoredTogether);
  each += stores * (shifted ? kShiftedStoreInstructions : 1);
  const double results = tasks * std::ceil(static_cast<double>(layout.task_rows) / kWarp);
  now().warp_instructions += busy * each + warp_tasks(group.deal) * kBlockReduceInstructions +
                             results * (kSliceSumInstructions +
                                        (slices - 1) * (kSliceInstructions + combining_instructions(reduce)));
  arithmetic(reduce.shape.dtype) += results * (slices - 1);
  now().ldst_warp_instructions += busy * stores + results * slices;
  // Neighbours of a shifted vector are stored one by one, with a lane's vector between two lanes.
  now().shared_wavefronts += busy * width * (shifted ? width : 1) + results * slices;
}

void KernelCounter::count_exchange(const Deal& deal, double warps) {
  const ClusterExchange exchange = cluster_exchange(deal, kernel_.launch.block);
  now().warp_instructions += warps * exchange.warp_instructions;
  now().ldst_warp_instructions += warps * exchange.remote_accesses;
  now().remote_accesses += warps * exchange.remote_accesses;
  now().remote_sectors += warps * exchange.remote_sectors;
}

void KernelCounter::count_across(const Group& group, const Node& reduce) {
  const Mapping& mapping = group.mapping;
  const double blocks = static_cast<double>(group.deal.blocks());
  const double warps = warps_per_block();
  const double accumulators = static_cast<double>(Layout(mapping, kernel_.launch.block).elements());
  const double rows = static_cast<double>(task_rows(mapping));
  const double writers = std::ceil(std::min<double>(threads_a_row(mapping), kernel_.launch.block) / kWarp);
  if (rows > 1) {
    now().warp_instructions +=
        blocks * accumulators * (warps * kBlockReduceInstructions + writers * rows * 2);
    now().shared_wavefronts += blocks * accumulators * (warps + writers * rows);
    now().ldst_warp_instructions += blocks * accumulators * (warps + writers * rows);
  }
  // codegen/print/print_across.cpp
  const int at_once = std::min(vectors(mapping).width, kVectorBytes / accumulator_bytes(reduce.shape.dtype));
  const int together = rows > 1 ? 1 : at_once;
  count_accesses(blocks * accumulators * writers / together);
  const double sectors =
      static_cast<double>(across_bytes(mapping, group.deal, reduce.shape.dtype)) / kSectorBytes;
  now().l2_sectors += sectors;
  if (outputs_.contains(reduce.id)) count_fold_across(group, reduce);
}

void KernelCounter::count_fold_across(const Group& group, const Node& reduce) {
  const Dealt fold = fold_mapping(group.mapping, group.deal, kernel_.launch.block);
  const int level = std::exchange(level_, level_ + 1);
  const std::optional<Deal> deal = std::exchange(deal_, fold.deal);
  const double loads = static_cast<double>(extents(fold.mapping).elements()) / kWarp;
  const double sectors =
      static_cast<double>(across_bytes(group.mapping, group.deal, reduce.shape.dtype)) / kSectorBytes;
  now().l2_sectors += sectors;
  count_accesses(loads);
  now().global_accesses += loads;
  count_in_l1(loads, sectors);
  loads_made_ += loads;
  // Those of all sums that the loop folds go together.
  const auto folded = std::ranges::count_if(group.across, [&](NodeId op) { return outputs_.contains(op); });
  loads_in_flight_ += loads * static_cast<double>(vectors(fold.mapping).unroll * folded);
  arithmetic(reduce.shape.dtype) += loads;
  now().warp_instructions +=
      static_cast<double>(fold.deal.tasks) * warps_per_block() * kBlockReduceInstructions;
  write(reduce.shape.byte_size());
  level_ = level;
  deal_ = deal;
}

void KernelCounter::count_gathering(NodeId reduce, double elements) {
  const auto form = one_pass_form(graph_, reduce);
  if (!form) return;  // verify refuses it
  const DType dtype = computation_.node(reduce).shape.dtype;
  const Gather& each = gather_of(form->kind, dtype);
  const double warps = elements / kWarp;
  now().warp_instructions += warps * each.instructions;
  now().mufu_warp_instructions += warps * each.mufu;
  arithmetic(dtype) += warps * each.arithmetic;
}

double KernelCounter::warps_per_block() const {
  return std::ceil(kernel_.launch.block / static_cast<double>(kWarp));
}

void KernelCounter::count_step(const Group& group) {
  const Mapping& m = group.mapping;
  const std::int64_t blocks = group.deal.blocks();
  now().warp_instructions += kGroupInstructions * static_cast<double>(blocks) * warps_per_block();
  phases_[level_].loops[{form_number(m), extents(m).cols, vectors(m).width, group.ops.size()}].insert(
      {group.deal.first_block, blocks});
}

void KernelCounter::count_blocks() {
  const auto grid = static_cast<double>(kernel_.launch.grid);
  const double warps = warps_per_block();
  level_ = phases_.begin()->first;
  now().warp_instructions += kBlockInstructions * grid * warps;
  for (const auto& [level, phase] : phases_) {
    double chosen = 0;
    for (const auto& [kind, loops] : phase.loops) {
      double blocks = 0;
      for (const auto& [first, of_loop] : loops) blocks += static_cast<double>(of_loop);
      const bool shared = loops.size() >= kFewestShared;
      chosen += shared ? kTableInstructions * blocks + kGroupInstructions * grid
                       : kGroupInstructions * (grid * static_cast<double>(loops.size()) - blocks);
    }
    level_ = level;
    now().warp_instructions += chosen * warps;
  }
}

}  // namespace stitchwork::costs
