#include "analysis/planners/xla/run_time.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/planners/xla/rules.h"
#include "core/base/sorted.h"
#include "core/index/window.h"
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

struct OpCost {
  Op op;
  double f32, f16, f64;  ///< clocks of an element
};

/// XLA's own profile of an H100 (hlo_op_profiles_data.h, sm_90); other cards have nearly the same.
/// erf is taken as exp, logistic as exp and a division, which XLA makes of them.
constexpr OpCost kOpCosts[] = {
    {Op::kAdd, 7, 7, 15},       {Op::kSubtract, 7, 7, 15},    {Op::kMultiply, 3, 7, 15},
    {Op::kDivide, 19, 43, 526}, {Op::kPower, 510, 526, 2205}, {Op::kAtan2, 431, 451, 930},
    {Op::kTanh, 467, 502, 431}, {Op::kExp, 79, 102, 376},     {Op::kExpm1, 190, 217, 712},
    {Op::kLog, 166, 182, 815},  {Op::kLog1p, 229, 245, 1259}, {Op::kSqrt, 75, 95, 332},
    {Op::kRsqrt, 75, 95, 277},  {Op::kSin, 958, 993, 554},    {Op::kCos, 978, 997, 558},
    {Op::kCbrt, 178, 201, 586}, {Op::kErf, 79, 102, 376},     {Op::kLogistic, 98, 145, 902},
};
/// Of every other element-wise op, of a concatenated element, and of one where a warp reads two operands:
/// XLA's kDefaultFlopsPerElement and HandleConcatenate.
constexpr double kOtherOp = 3, kConcatenated = 6, kDivergent = 400;
/// Of dividing integers: XLA's profile of s32; it has 122 for u32 and 356 for s8.
constexpr double kIntegerDivide = 297;

double elements(const Node& node) {
  return node.shape.is_tuple ? 0 : static_cast<double>(node.shape.elements_count());
}

double clocks(const Node& node) {
  const bool integral = is_integral(node.shape.dtype);
  if (integral) return node.op == Op::kDivide || node.op == Op::kRemainder ? kIntegerDivide : kOtherOp;
  const auto found = std::ranges::find(kOpCosts, node.op, &OpCost::op);
  if (found == std::end(kOpCosts)) return kOtherOp;
  switch (byte_size(node.shape.dtype)) {
    case 2:
      return found->f16;
    case 8:
      return found->f64;
    default:
      return found->f32;
  }
}

bool reduces(const Node& node) { return def(node.op).cls == OpClass::kReduce; }

bool concatenates_within_warps(const Computation& computation, const Node& node) {
  const auto dim = static_cast<std::size_t>(node.attrs.dimensions.at(0));
  return dim > 0 && std::ranges::any_of(node.operands, [&](NodeId operand) {
           return computation.node(operand).shape.dims.at(dim) % kWarp != 0;
         });
}

/// Of all its elements once.
double work(const Computation& computation, const Node& node) {
  if (reduces(node)) return clocks(node) * elements(computation.node(node.operands.at(0)));
  if (node.op == Op::kConcatenate)
    return elements(node) * (concatenates_within_warps(computation, node) ? kDivergent : kConcatenated);
  return is_elementwise(node.op) ? clocks(node) * elements(node) : 0;
}

/// Reads of an element of operand `i` when every element of `node` is computed once.
double reads(const Computation& computation, const Node& node, std::size_t i) {
  const double in = elements(computation.node(node.operands[i])), out = elements(node);
  if (in == 0) return 0;
  switch (node.op) {
    case Op::kBroadcast:
    case Op::kSlice:
      return out / in;
    case Op::kDynamicSlice:
    case Op::kGather:
      return i == 0 ? out / in : 1;
    case Op::kDynamicUpdateSlice:
      return i == 0 ? 0 : 1;  // written in place
    case Op::kReduceWindow: {
      double window = 1;
      for (const WindowDim& dim : window_of(node, static_cast<int>(node.shape.dims.size())))
        window *= static_cast<double>(dim.size);
      return i == 0 ? window * out / in : 1;
    }
    default:
      return 1;
  }
}

bool ends_reuse(Op op) {
  return op == Op::kConcatenate || op == Op::kDynamicUpdateSlice || op == Op::kPad || op == Op::kReduce ||
         op == Op::kReduceWindow;
}

/// How often ops and what they read are computed, users before operands. Element-wise users pass the places
/// on at which they are computed themselves; every other user is a place of its own.
class Utilization {
 public:
  struct Place {
    double uses = 0, emitted = 0;
  };

  Utilization(const Computation& computation, const std::vector<NodeId>& ops,
              const std::vector<NodeId>& roots)
      : computation_(computation) {
    for (const NodeId root : roots) {
      places_[root] = {1, 1};
      at_[root] = {root};
    }
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) pass_on(*op);
  }

  Place of(NodeId value) const {
    Place total;
    if (const auto found = at_.find(value); found != at_.end())
      for (const NodeId place : found->second) {
        total.uses += places_.at(place).uses;
        total.emitted += places_.at(place).emitted;
      }
    return total;
  }

 private:
  void pass_on(NodeId op) {
    const Node& node = computation_.node(op);
    const Place own = of(op);
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const NodeId operand = node.operands[i];
      if (is_scalar_constant(computation_.node(operand))) continue;
      if (is_elementwise(node.op)) {
        const std::vector<NodeId> places = at_[op];
        for (const NodeId place : places) insert_sorted(at_[operand], place);
        continue;
      }
      insert_sorted(at_[operand], operand);
      const double count = elements(computation_.node(operand));
      Place& place = places_[operand];
      if (count > 0) place.uses += std::ceil(own.uses * reads(computation_, node, i) * count) / count;
      place.emitted += own.emitted;
    }
  }

  const Computation& computation_;
  std::unordered_map<NodeId, Place> places_;
  std::unordered_map<NodeId, std::vector<NodeId>> at_;  ///< of a value, its places; ascending
};

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
bool is_transpose_kernel(const Computation& computation, const std::vector<NodeId>& ops,
                         const std::vector<NodeId>& roots) {
  return std::ranges::any_of(roots, [&](NodeId at) {
    while (contains_sorted(ops, at)) {
      const Node& node = computation.node(at);
      if (moves_minor_dimension(computation, node)) return true;
      if (node.operands.size() != 1 || !(is_elementwise(node.op) || plan_role(node) == PlanRole::kAlias))
        return false;
      at = node.operands[0];
    }
    return false;
  });
}

}  // namespace

bool moves_minor_dimension(const Computation& computation, const Node& node) {
  if (node.op != Op::kTranspose) return false;
  const std::vector<std::int64_t>& from = computation.node(node.operands[0]).shape.dims;
  std::int64_t last = -1;  // of the operand's dimensions longer than one, the last
  for (std::size_t d = 0; d < from.size(); ++d)
    if (from[d] > 1) last = static_cast<std::int64_t>(d);
  for (auto d = node.attrs.dimensions.rbegin(); d != node.attrs.dimensions.rend(); ++d)
    if (from[static_cast<std::size_t>(*d)] > 1) return *d != last;
  return false;
}

RunTime RunTimes::estimate(const std::vector<NodeId>& ops, const std::vector<NodeId>& roots,
                           bool tiles) const {
  const Computation& computation = graph_.computation();
  const Utilization utilization(computation, ops, roots);
  RunTime result;
  double flops = 0, read = 0, written = 0;
  const Launch launch = launch_of(computation, roots, tiles);
  const bool scattered =
      !tiles && !is_transpose_kernel(computation, ops, roots) && std::ranges::any_of(ops, [&](NodeId op) {
        return moves_minor_dimension(computation, computation.node(op));
      });
  std::vector<NodeId> outside;
  for (const NodeId op : ops) {
    const Node& node = computation.node(op);
    const Utilization::Place place = utilization.of(op);
    // A block of tiles computes every value of its rows once.
    flops += work(computation, node) * (tiles ? std::min(1.0, place.uses) : place.uses);
    result.emitted_ops += place.emitted;
    if (ends_reuse(node.op)) result.splits += place.emitted;
    for (const NodeId operand : node.operands)
      if (!contains_sorted(ops, operand) && !is_scalar_constant(computation.node(operand)))
        insert_sorted(outside, operand);
  }
  for (const NodeId value : outside) {
    const Node& node = computation.node(value);
    if (node.shape.is_tuple) continue;
    const double size = static_cast<double>(node.shape.byte_size());
    const double uses = tiles ? std::min(1.0, utilization.of(value).uses) : utilization.of(value).uses;
    read += read_us(device_, launch.blocks, size * uses, size,
                    scattered ? kTransactionBytes / static_cast<double>(byte_size(node.shape.dtype)) : 1);
  }
  for (const NodeId root : roots) {
    const Node& node = computation.node(root);
    // What is updated in place is not written whole.
    const Node& write = node.op == Op::kDynamicUpdateSlice ? computation.node(node.operands.at(1)) : node;
    if (!write.shape.is_tuple) written += static_cast<double>(write.shape.byte_size());
  }
  const double lanes = std::min(launch.blocks, static_cast<double>(device_.sms)) *
                       std::min(launch.threads, static_cast<double>(device_.fp32_lanes_per_sm));
  const double compute = flops / (device_.clock_ghz * 2e3 * lanes);
  const double memory = read + written / (device_.dram_gb_s * 1e3);
  result.us = compute + memory - std::min(compute, memory) * kOverlap;
  return result;
}

const RunTime& RunTimes::of(int i) {
  known_.resize(static_cast<std::size_t>(graph_.size()));
  std::optional<RunTime>& known = known_[static_cast<std::size_t>(i)];
  if (!known)
    known = estimate(graph_.sorted_ops(i), graph_[i].roots, graph_[i].kind == InstructionKind::kTiles);
  return *known;
}

RunTime RunTimes::fused(int producer, int consumer) const {
  std::vector<NodeId> ops;
  const std::vector<NodeId> a = graph_.sorted_ops(producer), b = graph_.sorted_ops(consumer);
  std::ranges::set_union(a, b, std::back_inserter(ops));
  return estimate(
      ops, graph_[consumer].roots,
      graph_[producer].kind == InstructionKind::kTiles || graph_[consumer].kind == InstructionKind::kTiles);
}

void RunTimes::forget(int i) {
  if (static_cast<std::size_t>(i) < known_.size()) known_[static_cast<std::size_t>(i)].reset();
}

}  // namespace stitchwork::xla
