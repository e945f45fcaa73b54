#include "analysis/planners/xla/run_time.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/planners/xla/rules.h"
#include "core/base/sorted.h"
#include "core/graph/window.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::xla {
namespace {

/// Of the shorter of computing and memory accesses, what the longer hides: XLA's kMemoryComputeParallelism.
constexpr double kOverlap = 0.95;
/// How much faster than DRAM the caches are taken to be: XLA's kL2CacheSpeedup and
/// kL1CacheSpeedup.
constexpr double kL2Speedup = 2.5, kL1Speedup = 8;
/// Bytes that a block can ask for in a clock, and those of a DRAM transaction: of XLA's device descriptions.
constexpr double kBytesPerClock = 32, kTransactionBytes = 64;
/// A thread block of XLA's loops, and the elements of a thread: its loop emitter.
constexpr double kLoopThreads = 128, kLoopUnroll = 4;
/// Columns of a tile of XLA's column reductions; the threads of its row reductions.
constexpr double kColumns = 32, kRowThreads = 256;
/// The longest row that is reduced at once, of 1,024 threads with 16 elements each: XLA's
/// TreeReductionRewriter.
constexpr double kLongestRow = 16 * 1024;

struct Launch {
  double blocks = 1, threads = 1;
};

Launch launch_of(const Computation& computation, const std::vector<NodeId>& roots, bool tiles) {
  const Node& leader = computation.node(leading_root(computation, roots));
  if (const auto tiled = tiled_reduction(computation, leader)) {
    double rows = static_cast<double>(tiled->height), width = static_cast<double>(tiled->width);
    if (!tiled->row)
      return {static_cast<double>(tiled->depth) * std::ceil(width / kColumns), kColumns * kColumns};
    if (width > kLongestRow) {  // cut in two, into as many rows as these are long; the second part is small
      rows *= std::sqrt(width);
      width = std::sqrt(width);
    }
    return {std::ceil(rows * std::min(1.0, width / (2 * kRowThreads))), kRowThreads};
  }
  const double count = std::max(1.0, elements(leader));
  if (tiles)
    return {std::ceil(count / static_cast<double>(std::max<std::int64_t>(
                                  1, leader.shape.dims.empty() ? 1 : leader.shape.dims.back()))),
            kLoopThreads};
  return {std::ceil(count / (kLoopThreads * kLoopUnroll)), std::min(count, kLoopThreads)};
}

double read_us(const Device& device, double blocks, double bytes, double distinct, double waste) {
  const double most = blocks * device.clock_ghz * kBytesPerClock * 1e3;  // bytes a us
  const double dram = device.dram_gb_s * 1e3;
  double again = dram;
  if (distinct < static_cast<double>(device.l2_bytes)) {
    again *= kL2Speedup;
    if (distinct < static_cast<double>(device.shared_bytes_per_sm) * device.sms) again *= kL1Speedup;
  } else {
    again /= waste;
  }
  distinct = std::min(distinct, bytes);
  return distinct / std::min(dram / waste, most) + (bytes - distinct) / std::min(again, most);
}

/// Whether the kernel is a tiled transpose: a root is one, but for ops of one operand behind it.
template <typename Contains>
bool is_transpose_kernel(const Computation& computation, const std::vector<NodeId>& roots,
                         const Contains& contains) {
  return std::ranges::any_of(roots, [&](NodeId at) {
    while (contains(at)) {
      const Node& node = computation.node(at);
      if (moves_minor_dimension(computation, node)) return true;
      if (node.operands.size() != 1 || !(is_elementwise(node.op) || plan_role(node) == PlanRole::kAlias))
        return false;
      at = node.operands[0];
    }
    return false;
  });
}

template <typename Contains>
RunTime estimate(const Computation& computation, const Device& device, const KernelWork& work,
                 const std::vector<NodeId>& roots, bool tiles, const Contains& contains) {
  const Launch launch = launch_of(computation, roots, tiles);
  const bool scattered = !tiles && work.moves_minor && !is_transpose_kernel(computation, roots, contains);
  double read = 0, written = 0;
  for (auto use = work.uses.begin(); use != work.uses.end();) {
    const NodeId value = use->value;
    double uses = 0;
    for (; use != work.uses.end() && use->value == value; ++use) uses += use->uses;
    const Node& node = computation.node(value);
    if (node.shape.is_tuple) continue;
    // A block of tiles has every value of its rows once.
    if (tiles) uses = std::min(1.0, uses);
    const double size = static_cast<double>(node.shape.byte_size());
    read += read_us(device, launch.blocks, size * uses, size,
                    scattered ? kTransactionBytes / static_cast<double>(byte_size(node.shape.dtype)) : 1);
  }
  for (const NodeId root : roots) {
    const Node& node = computation.node(root);
    // What is updated in place is not written whole.
    const Node& write = node.op == Op::kDynamicUpdateSlice ? computation.node(node.operands.at(1)) : node;
    if (!write.shape.is_tuple) written += static_cast<double>(write.shape.byte_size());
  }
  const double lanes = std::min(launch.blocks, static_cast<double>(device.sms)) *
                       std::min(launch.threads, static_cast<double>(device.fp32_lanes_per_sm));
  const double compute = (tiles ? work.clocks_once : work.clocks) / (device.clock_ghz * 2e3 * lanes);
  const double memory = read + written / (device.dram_gb_s * 1e3);
  return {compute + memory - std::min(compute, memory) * kOverlap, work.emitted_ops, work.splits};
}

bool has_tiles(const Instruction& instruction) { return instruction.kind == InstructionKind::kTiles; }

/// Whether `b` holds an op of `a`, or what it reads.
bool overlap(const FusionGraph& graph, int a, int b) {
  const bool more = graph[a].ops.size() > graph[b].ops.size();
  const int few = more ? b : a, many = more ? a : b;
  const auto held = [&](int i) { return [&graph, i](NodeId value) { return graph.contains(i, value); }; };
  return std::ranges::any_of(graph[few].ops, held(many)) || std::ranges::any_of(graph[a].reads, held(b)) ||
         std::ranges::any_of(graph[b].reads, [&](NodeId value) {
           return value != graph[a].roots[0] && graph.contains(a, value);
         });
}

}  // namespace

const KernelWork& RunTimes::work(int i) {
  Known& known = this->known(i);
  if (!known.work) {
    std::vector<Use> roots;
    for (const NodeId root : graph_[i].roots) roots.push_back({root, root, 1, 1});
    known.work = counter_.count(graph_.sorted_ops(i), roots);
    known.work->one_place = known.work->one_place && roots.size() == 1;
  }
  return *known.work;
}

const RunTime& RunTimes::of(int i) {
  const KernelWork& work = this->work(i);
  Known& known = this->known(i);
  if (!known.time)
    known.time = estimate(graph_.computation(), device_, work, graph_[i].roots, has_tiles(graph_[i]),
                          [&](NodeId op) { return graph_.contains(i, op); });
  return *known.time;
}

KernelWork RunTimes::fused_work(int producer, int consumer) {
  const Instruction &from = graph_[producer], &into = graph_[consumer];
  if (from.roots.size() > 1 || overlap(graph_, producer, consumer)) {
    std::vector<NodeId> ops = from.ops;
    ops.insert(ops.end(), into.ops.begin(), into.ops.end());
    sort_unique(ops);
    std::vector<Use> roots;
    for (const NodeId root : into.roots) roots.push_back({root, root, 1, 1});
    KernelWork work = counter_.count(ops, roots);
    work.one_place = work.one_place && roots.size() == 1;
    return work;
  }
  const NodeId root = from.roots[0];
  work(producer);  // first: it may move what is known
  const KernelWork &behind = work(consumer), &before = work(producer);
  const std::span<const Use> at = uses_of(behind, root);
  if (before.one_place || (at.size() == 1 && at[0].uses == 1 && at[0].emitted == 1))
    return joined(behind, root, placed(before, root, at));
  return joined(behind, root, counter_.count(graph_.sorted_ops(producer), {at.begin(), at.end()}));
}

RunTime RunTimes::fused(int producer, int consumer) {
  return estimate(graph_.computation(), device_, fused_work(producer, consumer), graph_[consumer].roots,
                  has_tiles(graph_[producer]) || has_tiles(graph_[consumer]),
                  [&](NodeId op) { return graph_.contains(producer, op) || graph_.contains(consumer, op); });
}

void RunTimes::fuse(int producer, int consumer) {
  KernelWork work = fused_work(producer, consumer);
  known(consumer) = {std::move(work), std::nullopt};
}

}  // namespace stitchwork::xla
