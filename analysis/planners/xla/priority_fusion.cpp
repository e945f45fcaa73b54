// PriorityFusion: a producer goes into all its users at once, the one first by which the estimate says most
// is gained (docs/planners/xla-today.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/planners/xla/rules.h"
#include "analysis/planners/xla/run_time.h"
#include "core/base/interrupt.h"

namespace stitchwork::xla {
namespace {

/// Of a launch, us: XLA's kKernelLaunchOverhead.
constexpr double kLaunch = 1;
/// Elements of a reduction's row from which two of them share no kernel: XLA's CanFuse
/// of PriorityFusion.
constexpr std::int64_t kSignificant = 16;
/// Reductions of a kernel: XLA's kMaxUnnestedReductionOutputsPerFusion.
constexpr std::int64_t kMaxReductions = 8;
/// Operands and results of a kernel: XLA's MaxOperandsAndOutputsPerFusion.
constexpr std::int64_t kMaxOperands = 96;
/// Of a kernel's code: XLA's kMaxIRSize, kMaxBasicBlockSplitsPerFusion.
constexpr double kMaxEmittedOps = 10000, kMaxSplits = 10;
/// Elements of a row that Triton holds in a tile: its limit of a tensor, which is XLA's limit of a tile.
constexpr std::int64_t kMaxTile = std::int64_t{1} << 20;
constexpr double kNever = -std::numeric_limits<double>::infinity();

class PriorityFusion {
 public:
  PriorityFusion(FusionGraph& graph, const Device& device, Recorder& recorder)
      : graph_(graph), computation_(graph.computation()), times_(graph, device), recorder_(recorder) {}

  bool run() {
    priorities_.assign(static_cast<std::size_t>(graph_.size()), kNever);
    for (const int i : graph_.post_order()) rank(i);
    bool changed = false;
    while (!queue_.empty()) {
      interruption_point();
      const int producer = queue_.begin()->second;
      drop(producer);
      changed = fuse(producer) || changed;
    }
    return changed;
  }

 private:
  bool is_bitcast(int i) const {
    return i != graph_.result() && graph_[i].kind == InstructionKind::kPlain &&
           (graph_.op(i).op == Op::kReshape || graph_.op(i).op == Op::kBitcast);
  }

  bool is_fusible(int i) const {
    if (i == graph_.result()) return false;
    if (graph_[i].kind != InstructionKind::kPlain) return true;
    const Node& node = graph_.op(i);
    if (is_bitcast(i)) return true;
    if (plan_role(node) != PlanRole::kMemory || node.shape.is_tuple || node.op == Op::kConstant) return false;
    return is_loop_fusible(computation_, node) || tiled_reduction(computation_, node).has_value();
  }

  bool has_tiles(int i) const { return graph_[i].kind == InstructionKind::kTiles; }

  std::vector<int> consumers(int producer) const {
    std::vector<int> users = graph_.users(producer);
    std::erase_if(users, [&](int user) { return is_bitcast(user); });
    return users;
  }

  bool fuse(int producer) {
    std::vector<int> users = consumers(producer);
    if (is_bitcast(producer)) std::erase_if(users, [&](int user) { return !may_fuse(producer, user); });
    if (users.empty()) return false;
    const NodeId root = graph_[producer].roots.back();
    std::set<int> stale;
    for (const int user : users) {
      recorder_.record("priority-fusion", root, graph_[user].roots.back(), kAllowed, "xla-today.fused");
      const bool tiles = has_tiles(producer) || has_tiles(user);
      graph_.fuse(producer, user);
      if (tiles) graph_.give_tiles(user);
      times_.forget(user);
      stale.insert(user);
      for (const NodeId value : graph_[user].reads)
        if (const int operand = graph_.provider(value); operand >= 0) stale.insert(operand);
    }
    if (graph_[producer].alive) stale.insert(producer);
    for (const int i : stale) rank(i);
    return true;
  }

  void drop(int i) {
    double& priority = priorities_[static_cast<std::size_t>(i)];
    if (priority != kNever) queue_.erase({-priority, i});
    priority = kNever;
  }

  void rank(int i) {
    drop(i);
    if (i == graph_.result() || !graph_[i].alive) return;
    const double priority = gain(i);
    if (priority < 0) return;
    priorities_[static_cast<std::size_t>(i)] = priority;
    queue_.insert({-priority, i});
  }

  /// us that fusing it into all its users saves; kNever where one of them cannot have it.
  double gain(int producer) {
    if (!is_fusible(producer)) return kNever;
    // A name of the same bytes costs nothing anywhere.
    if (is_bitcast(producer)) return std::numeric_limits<double>::max();
    const std::vector<int> users = consumers(producer);
    // What the result reads is stored, so nothing is gained.
    if (users.empty() || users.back() == graph_.result()) return kNever;
    const NodeId root = graph_[producer].roots.back();
    double apart = kLaunch + times_.of(producer).us, together = 0;
    for (const int user : users) {
      RunTime fused;
      Ruling ruling = may_hold(producer, user);
      if (ruling) {
        fused = times_.fused(producer, user);
        ruling = fits_code(fused);
      }
      if (!ruling) {
        recorder_.record("priority-fusion", root, graph_[user].roots.back(), ruling, "");
        return kNever;
      }
      apart += times_.of(user).us;
      together += fused.us;
    }
    if (apart < together)
      recorder_.record("priority-fusion", root, graph_[users.front()].roots.back(),
                       {"xla-today.no-gain", "XLA's model gives {} ns for it within its users, {} ns apart",
                        static_cast<std::int64_t>(together * 1e3), static_cast<std::int64_t>(apart * 1e3)},
                       "");
    return apart - together;
  }

  std::int64_t reductions(int i, std::int64_t from) const {
    return std::ranges::count_if(graph_[i].ops, [&](NodeId op) {
      const Node& node = computation_.node(op);
      if (def(node.op).cls != OpClass::kReduce || node.shape.is_tuple) return false;
      const std::int64_t in = computation_.node(node.operands[0]).shape.elements_count(),
                         out = node.shape.elements_count();
      return out > 0 && in / out >= from && (from > 1 || tiled_reduction(computation_, node));
    });
  }

  Ruling may_fuse(int producer, int consumer) const {
    const Ruling ruling = may_hold(producer, consumer);
    return ruling ? fits_code(times_.fused(producer, consumer)) : ruling;
  }

  static Ruling fits_code(const RunTime& fused) {
    if (fused.splits > kMaxSplits || fused.emitted_ops * std::exp2(fused.splits) > kMaxEmittedOps)
      return {"xla-today.code-duplication", "the kernel's code would be {} ops",
              static_cast<std::int64_t>(fused.emitted_ops)};
    return kAllowed;
  }

  /// As far as the kernel's code is not asked about, which is estimated with its time.
  Ruling may_hold(int producer, int consumer) const {
    if (!is_fusible(producer) || !is_fusible(consumer) || is_bitcast(consumer))
      return {"xla.not-loop-fusible", "it cannot be emitted inside a kernel"};
    if (graph_[producer].roots.size() > 1) return {"xla-today.several-outputs", "it gives several values"};
    if (has_tiles(producer) || has_tiles(consumer)) {
      if (const Ruling ruling = fits_tiles(producer, consumer); !ruling) return ruling;
    } else {
      if (reductions(producer, kSignificant) > 0 && reductions(consumer, kSignificant) > 0)
        return {"xla-today.two-reductions", "both hold a reduction"};
      if (graph_.reduction_root(producer) != kNoNode && !ends_reduction(producer, consumer))
        return {"xla-today.reduction-epilogue", "its reduction would become a loop of each thread"};
    }
    return fits(producer, consumer);
  }

  /// Behind a reduction only ops of one operand stay in its kernel.
  bool ends_reduction(int producer, int consumer) const {
    if (graph_.users(producer).size() > 1) return false;
    return std::ranges::all_of(graph_[consumer].ops, [&](NodeId op) {
      const Node& node = computation_.node(op);
      if (node.shape.is_tuple ||
          node.shape.elements_count() != computation_.node(graph_[producer].roots[0]).shape.elements_count())
        return is_splat_constant(computation_, node);
      const auto real = std::ranges::count_if(node.operands, [&](NodeId operand) {
        return !is_splat_constant(computation_, computation_.node(operand));
      });
      return (is_elementwise(node.op) || plan_role(node) == PlanRole::kAlias) && real <= 1;
    });
  }

  Ruling fits(int producer, int consumer) const {
    if (!graph_.regions_allow(producer, consumer, false)) return {"xla.region", "they are planned apart"};
    if (graph_.keeps_apart(producer, consumer))
      return {"override.forbid_merge", "an override keeps ops of theirs apart"};
    if (const std::int64_t count = reductions(producer, 1) + reductions(consumer, 1);
        count > kMaxReductions && !has_tiles(producer) && !has_tiles(consumer))
      return {"xla-today.reductions", "the kernel would hold {} reductions, {} allowed", count,
              kMaxReductions};
    std::set<NodeId> values;
    for (const int i : {producer, consumer})
      for (const NodeId value : graph_[i].reads)
        if (!graph_.contains(producer, value) && !graph_.contains(consumer, value)) values.insert(value);
    const auto parameters = static_cast<std::int64_t>(values.size() + graph_[consumer].roots.size());
    if (parameters > kMaxOperands && values.size() > graph_[consumer].reads.size())
      return {"xla.too-many-parameters", "the kernel would have {} parameters, {} allowed", parameters,
              kMaxOperands};
    return kAllowed;
  }

  struct Rows {
    std::int64_t elements = 0, width = 0;
  };

  /// Of the rows that its tiles hold whole.
  Rows rows_of(int i) const {
    Rows rows;
    for (const NodeId op : graph_[i].ops) {
      const Node& node = computation_.node(op);
      if (def(node.op).cls != OpClass::kReduce) continue;
      const Shape& in = computation_.node(node.operands[0]).shape;
      if (in.elements_count() > rows.elements) rows = {in.elements_count(), in.dims.back()};
    }
    return rows;
  }

  Ruling fits_tiles(int producer, int consumer) const {
    const Rows rows = rows_of(has_tiles(producer) ? producer : consumer);
    if (has_tiles(producer) && has_tiles(consumer)) {
      const Rows other = rows_of(consumer);
      if (other.elements != rows.elements || other.width != rows.width)
        return {"xla-today.tiles", "their tiles have different rows"};
    }
    if (rows.width > kMaxTile) return {"xla-today.tiles", "a row of {} elements is no tile", rows.width};
    const int other = has_tiles(producer) ? consumer : producer;
    if (!has_tiles(other))
      for (const NodeId op : graph_[other].ops)
        if (!keeps_rows(computation_.node(op), rows))
          return {"xla-today.tiles", "no tile of whole rows gives it"};
    return kAllowed;
  }

  /// Whether a tile of rows has what the op gives, from tiles of what it reads.
  bool keeps_rows(const Node& node, const Rows& rows) const {
    if (node.shape.is_tuple) return false;
    const std::int64_t count = node.shape.elements_count();
    const auto width = [](const Shape& shape) { return shape.dims.empty() ? 1 : shape.dims.back(); };
    const bool whole = count == rows.elements && width(node.shape) == rows.width;
    const bool of_row = count * rows.width == rows.elements;
    const bool some = count <= rows.elements && (width(node.shape) == rows.width || width(node.shape) == 1);
    if (is_elementwise(node.op) || node.op == Op::kBroadcast || node.op == Op::kIota)
      return some || of_row || count <= rows.width;
    const Shape& in = computation_.node(node.operands.at(0)).shape;
    switch (node.op) {
      case Op::kReduce:
        if (in.elements_count() == count) return whole || of_row;  // of dimensions of one element
        return of_row && in.elements_count() == rows.elements && width(in) == rows.width &&
               node.attrs.dimensions.size() == 1 &&
               node.attrs.dimensions[0] + 1 == static_cast<std::int64_t>(in.dims.size());
      case Op::kReshape:
      case Op::kBitcast:
        return (some && width(in) == width(node.shape)) || of_row || count <= rows.width;
      case Op::kTranspose:
        return whole && !moves_minor_dimension(computation_, node);
      default:
        return false;
    }
  }

  FusionGraph& graph_;
  const Computation& computation_;
  RunTimes times_;
  Recorder& recorder_;
  std::vector<double> priorities_;          ///< of what is in the queue, else kNever
  std::set<std::pair<double, int>> queue_;  ///< most gain first, then in the order of the graph
};

}  // namespace

bool priority_fusion(FusionGraph& graph, const Device& device, Recorder& recorder) {
  return PriorityFusion(graph, device, recorder).run();
}

}  // namespace stitchwork::xla
