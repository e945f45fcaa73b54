#include "analysis/planners/xla/kernel_work.h"

#include <algorithm>
#include <cmath>

#include "analysis/facts/facts.h"
#include "analysis/planners/xla/rules.h"
#include "core/base/sorted.h"
#include "core/graph/window.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::xla {
namespace {

/// Elements of a reduction's row from which two of them share no kernel: XLA's CanFuse of PriorityFusion.
constexpr std::int64_t kSignificant = 16;

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

double clocks_of_element(const Node& node) {
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
double clocks_of(const Computation& computation, const Node& node) {
  if (reduces(node)) return clocks_of_element(node) * elements(computation.node(node.operands.at(0)));
  if (node.op == Op::kConcatenate)
    return elements(node) * (concatenates_within_warps(computation, node) ? kDivergent : kConcatenated);
  return is_elementwise(node.op) ? clocks_of_element(node) * elements(node) : 0;
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
  return op == Op::kConcatenate || op == Op::kDynamicUpdateSlice || op == Op::kUpdateInPlace ||
         op == Op::kPad || op == Op::kReduce || op == Op::kReduceWindow;
}

auto order(const Use& use) { return std::pair(use.value, use.place); }

}  // namespace

double elements(const Node& node) {
  return node.shape.is_tuple ? 0 : static_cast<double>(node.shape.elements_count());
}

WorkCounter::WorkCounter(const Computation& computation)
    : computation_(computation), values_(static_cast<std::size_t>(computation.size())) {}

WorkCounter::Value& WorkCounter::value(NodeId id) {
  Value& value = values_[static_cast<std::size_t>(id)];
  if (!value.touched) {
    value.touched = true;
    touched_.push_back(id);
  }
  return value;
}

KernelWork WorkCounter::count(const std::vector<NodeId>& ops, const std::vector<Use>& roots) {
  KernelWork work;
  for (const Use& root : roots) {
    insert_sorted(value(root.value).at, root.place);
    value(root.place).total = {root.uses, root.emitted};
  }
  for (const NodeId op : ops) value(op).inside = true;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    add(computation_.node(*op), work);
    pass_on(computation_.node(*op), work);
  }
  std::ranges::sort(touched_);
  for (const NodeId id : touched_)
    if (const Value& outside = value(id); !outside.inside)
      for (const NodeId place : outside.at)
        work.uses.push_back({id, place, value(place).total.uses, value(place).total.emitted});
  for (const NodeId id : touched_) {
    Value& used = values_[static_cast<std::size_t>(id)];
    used.at.clear();
    used.total = {};
    used.inside = used.touched = false;
  }
  touched_.clear();
  return work;
}

WorkCounter::Place WorkCounter::total(NodeId id) {
  Place total;
  for (const NodeId at : value(id).at) {
    const Place& place = value(at).total;
    total.uses += place.uses;
    total.emitted += place.emitted;
  }
  return total;
}

void WorkCounter::add(const Node& node, KernelWork& work) {
  const Place place = total(node.id);
  const double clocks = clocks_of(computation_, node);
  work.clocks += std::rint(clocks * place.uses);
  work.clocks_once += std::rint(clocks * std::min(1.0, place.uses));
  work.emitted_ops += place.emitted;
  if (ends_reuse(node.op)) work.splits += place.emitted;
  work.moves_minor = work.moves_minor || moves_minor_dimension(computation_, node);
  if (!reduces(node) || node.shape.is_tuple) return;
  const std::int64_t in = computation_.node(node.operands[0]).shape.elements_count(),
                     out = node.shape.elements_count();
  if (out == 0) return;
  if (in / out >= kSignificant) ++work.significant_reductions;
  if (in >= out && tiled_reduction(computation_, node)) ++work.tiled_reductions;
}

void WorkCounter::pass_on(const Node& node, KernelWork& work) {
  const Place own = total(node.id);
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const NodeId operand = node.operands[i];
    if (is_scalar_constant(computation_.node(operand))) continue;
    Value& read = value(operand);
    if (is_elementwise(node.op)) {
      for (const NodeId place : value(node.id).at) insert_sorted(read.at, place);
      continue;
    }
    work.one_place = false;
    insert_sorted(read.at, operand);
    const double count = elements(computation_.node(operand));
    if (count > 0) read.total.uses += std::ceil(own.uses * reads(computation_, node, i) * count) / count;
    read.total.emitted += own.emitted;
  }
}

KernelWork placed(const KernelWork& work, NodeId root, std::span<const Use> at) {
  double uses = 0, emitted = 0;
  for (const Use& place : at) {
    uses += place.uses;
    emitted += place.emitted;
  }
  KernelWork result = work;
  result.clocks = std::rint(work.clocks * uses);
  result.clocks_once = std::rint(work.clocks_once * std::min(1.0, uses));
  result.emitted_ops = work.emitted_ops * emitted;
  result.uses.clear();
  for (const Use& use : work.uses)
    if (use.place == root)
      for (const Use& place : at) result.uses.push_back({use.value, place.place, place.uses, place.emitted});
    else
      result.uses.push_back(use);
  std::ranges::sort(result.uses, {}, order);
  return result;
}

KernelWork joined(const KernelWork& consumer, NodeId root, const KernelWork& producer) {
  KernelWork result = producer;
  result.clocks += consumer.clocks;
  result.clocks_once += consumer.clocks_once;
  result.emitted_ops += consumer.emitted_ops;
  result.splits += consumer.splits;
  result.significant_reductions += consumer.significant_reductions;
  result.tiled_reductions += consumer.tiled_reductions;
  result.moves_minor = result.moves_minor || consumer.moves_minor;
  result.one_place = result.one_place && consumer.one_place;
  result.uses.clear();
  auto next = producer.uses.begin();
  for (const Use& use : consumer.uses) {
    if (use.value == root) continue;
    while (next != producer.uses.end() && order(*next) < order(use)) result.uses.push_back(*next++);
    result.uses.push_back(use);
    if (next == producer.uses.end() || order(*next) != order(use)) continue;
    // A place of its own is used by both; one within the consumer is the same for both.
    if (use.place == use.value) {
      result.uses.back().uses += next->uses;
      result.uses.back().emitted += next->emitted;
    }
    ++next;
  }
  result.uses.insert(result.uses.end(), next, producer.uses.end());
  return result;
}

std::span<const Use> uses_of(const KernelWork& work, NodeId value) {
  return std::ranges::equal_range(work.uses, value, {}, &Use::value);
}

}  // namespace stitchwork::xla
