#include "analysis/planners/fusionstitching/kernel.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/forms/vectors.h"
#include "analysis/judge/cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/check.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/schedule.h"
#include "core/base/arithmetic.h"
#include "core/base/sorted.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::fusionstitching {
namespace {

/// Contracted elements up to which a thread computes an element of a product: FusionStitching 2019, section
/// 5.2, "either thread or block compositions, depending on the reduction dimension size", names no size.
/// A choice, not measured: then a warp's lanes have four each of a longer one.
constexpr std::int64_t kSerialProduct = 128;

class Builder {
 public:
  Builder(const Computation& computation, const Stitched& stitched)
      : computation_(computation), stitched_(stitched) {
    for (const Slot& slot : stitched.slots.slots) regional_.insert(slot.op);
  }

  EvaluatedKernel run() {
    for (const Loop& loop : stitched_.loops) add_group(loop);
    for (const Group& group : kernel_.groups)
      kernel_.ops.insert(kernel_.ops.end(), group.ops.begin(), group.ops.end());
    sort_unique(kernel_.ops);
    set_schemes();
    kernel_.outputs = stitched_.fusion.roots;
    kernel_.shrunk = stitched_.shrunk;
    set_launch();
    return {std::move(kernel_), std::move(found_)};
  }

 private:
  void add_group(const Loop& loop) {
    Group group;
    group.dominant = loop.dominant;
    group.sub_dominants = loop.sub_dominants;
    group.mapping = loop.dealt.mapping;
    group.deal = loop.dealt.deal;
    group.lane = loop.lane;
    std::vector<NodeId> roots = loop.sub_dominants;
    roots.push_back(loop.dominant);
    group.ops = closure(roots);
    kernel_.groups.push_back(std::move(group));
  }

  /// What a loop evaluates: its ops, and what they read of the fusion that is not in shared memory.
  std::vector<NodeId> closure(const std::vector<NodeId>& roots) const {
    std::set<NodeId> ops(roots.begin(), roots.end());
    std::vector<NodeId> open = roots;
    while (!open.empty()) {
      const NodeId op = open.back();
      open.pop_back();
      for (const NodeId operand : computation_.node(op).operands) {
        if (regional_.contains(operand) || is_immediate(computation_, operand)) continue;
        if (contains_sorted(stitched_.fusion.ops, operand) && ops.insert(operand).second)
          open.push_back(operand);
      }
    }
    return {ops.begin(), ops.end()};
  }

  void set_schemes() {
    const std::vector<NodeId> made = materialised(kernel_);
    std::map<NodeId, int> evaluated_by;
    for (const Group& group : kernel_.groups)
      for (const NodeId op : group.ops) ++evaluated_by[op];
    for (const NodeId op : kernel_.ops) {
      kernel_.levels[op] = 0;
      const bool repeated = evaluated_by[op] > 1 && def(computation_.node(op).op).instructions > 0;
      Scheme& scheme = kernel_.schemes[op];
      scheme = repeated ? Scheme::kRecomputed : Scheme::kLocal;
      if (!contains_sorted(made, op)) continue;
      scheme = regional_.contains(op) ? Scheme::kRegional : Scheme::kIndependent;
    }
    for (const NodeId op : kernel_.ops)
      for (const NodeId operand : computation_.node(op).operands)
        if (const auto read = kernel_.schemes.find(operand);
            read != kernel_.schemes.end() && read->second == Scheme::kIndependent)
          read->second = Scheme::kLocal;
    // What one loop needs at several indices is computed several times, too.
    found_ = evaluations(computation_, kernel_);
    for (const GroupEvaluations& found : found_) {
      std::map<NodeId, int> maps;
      for (const Evaluation& e : found.values) {
        if (e.load || contains_sorted(made, e.op)) continue;
        const Node& node = computation_.node(e.op);
        const bool often = evaluation_count(e.map) > static_cast<double>(node.shape.elements_count());
        if ((++maps[e.op] > 1 || often) && def(node.op).instructions > 0)
          kernel_.schemes[e.op] = Scheme::kRecomputed;
      }
    }
  }

  void set_launch() {
    KernelLaunch& launch = kernel_.launch;
    launch.block = stitched_.block;
    for (const Group& group : kernel_.groups) launch.grid = std::max(launch.grid, group.deal.end_block());
    for (const Slot& slot : stitched_.slots.slots)
      kernel_.shared.push_back({slot.op, slot.offset, slot.bytes});
    launch.shared_bytes = stitched_.slots.bytes;
    const std::int64_t workspace = reduction_workspace_bytes(computation_, kernel_);
    if (workspace == 0) return;
    const std::int64_t offset = round_up(launch.shared_bytes, kSharedAlignment);
    kernel_.shared.push_back({kNoNode, offset, workspace});
    launch.shared_bytes = offset + workspace;
  }

  const Computation& computation_;
  const Stitched& stitched_;
  std::set<NodeId> regional_;
  KernelPlan kernel_;
  KernelEvaluations found_;
};

}  // namespace

bool is_reduced(const Node& node) { return def(node.op).cls == OpClass::kReduce || node.op == Op::kDot; }

bool shares_rows(const Computation& computation, const Node& node) {
  if (!is_reduced(node)) return false;
  const ReductionSize size = reduction_size(computation, node.id);
  if (node.op == Op::kDot) return size.cols > kSerialProduct;
  return size.row_reduce && size.cols >= kSerialColumns;
}

KernelPlan stitched_kernel(const Computation& computation, const Stitched& stitched) {
  return evaluated_kernel(computation, stitched).kernel;
}

EvaluatedKernel evaluated_kernel(const Computation& computation, const Stitched& stitched) {
  return Builder(computation, stitched).run();
}

bool is_sound(const Graph& graph, const KernelPlan& kernel) {
  std::set<std::int64_t> taken;
  const bool alone = std::all_of(kernel.shared.begin(), kernel.shared.end(),
                                 [&](const MemorySlot& slot) { return taken.insert(slot.offset).second; });
  return alone || schedule_problems(graph, build_schedule(graph, kernel)).empty();
}

std::optional<KernelPlan> with_vectors(const Graph& graph, const Device& device, const KernelPlan& kernel,
                                       const KernelEvaluations& found) {
  KernelPlan settled = kernel;
  astitch::settle_vectors(graph.entry_computation(), device, settled);
  const bool same = std::ranges::equal(kernel.groups, settled.groups, {}, &Group::mapping, &Group::mapping);
  if (same) return std::nullopt;
  // Vectors change what a thread reads at once, not which values its group evaluates.
  const double us = kernel_cost(graph, device, kernel, found).predicted_us;
  if (kernel_cost(graph, device, settled, found).predicted_us >= us || !is_sound(graph, settled))
    return std::nullopt;
  return settled;
}

Dealt chunk_mapping(const Computation& computation, const Node& node, std::int64_t chunk, int threads,
                    int warps) {
  Mapping mapping = mapping::Elements{.count = node.shape.elements_count(), .per_task = chunk};
  if (is_reduced(node)) {
    const ReductionSize size = reduction_size(computation, node.id);
    const int lanes =
        std::min(warps * kWarp, static_cast<int>(std::bit_floor(static_cast<unsigned>(threads))));
    const std::int64_t sharing =
        std::min<std::int64_t>(threads / std::max<std::int64_t>(1, chunk), size.cols);
    if (shares_rows(computation, node))
      mapping = mapping::Rows{size.rows, size.cols, mapping::Lanes{.threads = lanes, .rows = chunk}};
    else if (node.op != Op::kDot && !size.row_reduce && sharing > 1)
      mapping = mapping::Columns{
          .results = size.rows, .length = size.cols, .tile = chunk, .threads = static_cast<int>(sharing)};
    else
      mapping = mapping::Rows{size.rows, size.cols, mapping::OneThread{chunk}};
  }
  return {mapping, deal_to(mapping, task_count(mapping))};
}

std::vector<int> row_warps(const Computation& computation, const Node& node, int threads) {
  std::vector<int> warps{1};
  if (!shares_rows(computation, node)) return warps;
  for (int w = 2; w * kWarp <= threads; w *= 2) warps.push_back(w);
  return warps;
}

}  // namespace stitchwork::fusionstitching
