#include "analysis/planners/fusionstitching/kernel.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

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

/// Whether a scheme says that its op is computed again: what costs no instruction never is.
bool costs(const Node& node) { return def(node.op).instructions > 0; }

class Builder {
 public:
  /// `bounded`: no op under more than kMostMaps maps in a loop.
  Builder(const Computation& computation, const Stitched& stitched, bool bounded)
      : computation_(computation),
        stitched_(stitched),
        bounded_(bounded),
        first_(stitched.fusion.ops.front()) {
    const auto span = static_cast<std::size_t>(stitched.fusion.ops.back() - first_) + 1;
    follows_.assign(span, false);
    seen_.assign(span, 0);
    for (const NodeId op : stitched.fusion.ops) follows_[place(op)] = !is_immediate(computation, op);
    for (const Slot& slot : stitched.slots.slots) follows_[place(slot.op)] = false;
  }

  std::variant<EvaluatedKernel, NodeId> run() {
    for (const Loop& loop : stitched_.loops) add_group(loop);
    for (const Group& group : kernel_.groups)
      kernel_.ops.insert(kernel_.ops.end(), group.ops.begin(), group.ops.end());
    sort_unique(kernel_.ops);
    set_schemes();
    if (const NodeId too_often = evaluate(); too_often != kNoNode) return too_often;
    kernel_.outputs = stitched_.fusion.roots;
    kernel_.shrunk = stitched_.shrunk;
    set_launch();
    return EvaluatedKernel{std::move(kernel_), std::move(found_)};
  }

 private:
  /// Of an op of the fusion in what is known by op.
  std::size_t place(NodeId op) const { return static_cast<std::size_t>(op - first_); }
  bool follows(NodeId op) const { return op >= first_ && place(op) < follows_.size() && follows_[place(op)]; }

  void add_group(const Loop& loop) {
    Group group;
    group.dominant = loop.dominant;
    group.sub_dominants = loop.sub_dominants;
    group.mapping = loop.dealt.mapping;
    group.deal = loop.dealt.deal;
    group.lane = loop.lane;
    std::vector<NodeId> roots = loop.sub_dominants;
    roots.push_back(loop.dominant);
    group.ops = closure(std::move(roots));
    kernel_.groups.push_back(std::move(group));
  }

  /// What a loop evaluates: its ops, and what they read of the fusion that is not in shared memory.
  std::vector<NodeId> closure(std::vector<NodeId> ops) {
    ++walk_;
    sort_unique(ops);
    for (const NodeId op : ops) seen_[place(op)] = walk_;
    for (std::size_t i = 0; i < ops.size(); ++i)
      for (const NodeId operand : computation_.node(ops[i]).operands)
        if (follows(operand) && std::exchange(seen_[place(operand)], walk_) != walk_) ops.push_back(operand);
    std::sort(ops.begin(), ops.end());
    return ops;
  }

  void set_schemes() {
    std::vector<int> evaluated_by(follows_.size(), 0);
    for (const Group& group : kernel_.groups)
      for (const NodeId op : group.ops) ++evaluated_by[place(op)];
    std::vector<Scheme> schemes(follows_.size(), Scheme::kLocal);
    for (const NodeId op : kernel_.ops)
      if (evaluated_by[place(op)] > 1 && costs(computation_.node(op)))
        schemes[place(op)] = Scheme::kRecomputed;
    const std::vector<NodeId> made = materialised(kernel_);
    for (const NodeId op : made) schemes[place(op)] = Scheme::kIndependent;
    for (const Slot& slot : stitched_.slots.slots) schemes[place(slot.op)] = Scheme::kRegional;
    for (const NodeId op : kernel_.ops)
      for (const NodeId operand : computation_.node(op).operands)
        if (operand >= first_ && place(operand) < schemes.size() &&
            schemes[place(operand)] == Scheme::kIndependent)
          schemes[place(operand)] = Scheme::kLocal;
    for (const NodeId op : kernel_.ops) {
      kernel_.levels.emplace_hint(kernel_.levels.end(), op, 0);
      kernel_.schemes.emplace_hint(kernel_.schemes.end(), op, schemes[place(op)]);
    }
  }

  /// What the groups compute, and which of it several times; or the op under too many maps.
  NodeId evaluate() {
    if (bounded_) {
      auto found = evaluations_within_maps(computation_, kernel_);
      if (const auto* too_often = std::get_if<NodeId>(&found)) return *too_often;
      found_ = std::get<KernelEvaluations>(std::move(found));
    } else {
      found_ = evaluations(computation_, kernel_);
    }
    mark_recomputed(materialised(kernel_));
    return kNoNode;
  }

  /// What one loop needs at several indices is computed several times, too.
  void mark_recomputed(const std::vector<NodeId>& made) {
    std::vector<bool> kept(follows_.size(), false);
    for (const NodeId op : made) kept[place(op)] = true;
    for (const GroupEvaluations& found : found_) {
      ++walk_;
      for (const Evaluation& e : found.values) {
        if (e.load || kept[place(e.op)]) continue;
        const bool again = std::exchange(seen_[place(e.op)], walk_) == walk_;
        const Node& node = computation_.node(e.op);
        if (!again && e.count <= static_cast<double>(node.shape.elements_count())) continue;
        if (!costs(node)) continue;
        kernel_.schemes.at(e.op) = Scheme::kRecomputed;
        kept[place(e.op)] = true;
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
  const bool bounded_;
  const NodeId first_;
  std::vector<bool> follows_;  ///< whether a loop that reads it computes it
  std::vector<int> seen_;      ///< by place: the walk that came by last
  int walk_ = 0;
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
  return std::get<EvaluatedKernel>(Builder(computation, stitched, false).run());
}

std::variant<EvaluatedKernel, NodeId> evaluated_within_maps(const Computation& computation,
                                                            const Stitched& stitched) {
  return Builder(computation, stitched, true).run();
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
