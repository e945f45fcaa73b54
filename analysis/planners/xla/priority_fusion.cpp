// PriorityFusion: a producer goes into all its users at once, the one first by which the estimate says most
// is gained (docs/planners/xla-today.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/planners/xla/rules.h"
#include "analysis/planners/xla/run_time.h"
#include "core/base/interrupt.h"
#include "core/base/sorted.h"

namespace stitchwork::xla {
namespace {

/// Of a launch, us: XLA's kKernelLaunchOverhead.
constexpr double kLaunch = 1;
/// Reductions of a kernel: XLA's kMaxUnnestedReductionOutputsPerFusion.
constexpr std::int64_t kMaxReductions = 8;
/// Operands and results of a kernel: XLA's MaxOperandsAndOutputsPerFusion.
constexpr std::int64_t kMaxOperands = 96;
/// Of a kernel's code: XLA's kMaxIRSize, kMaxBasicBlockSplitsPerFusion.
constexpr double kMaxEmittedOps = 10000, kMaxSplits = 10;
/// Elements of a row that Triton holds in a tile: its limit of a tensor, which is XLA's limit of a tile.
constexpr std::int64_t kMaxTile = std::int64_t{1} << 20;
constexpr double kNever = -std::numeric_limits<double>::infinity();

/// What is known of fusing a producer into each of its users.
class Pairs {
 public:
  bool empty() const { return known_.empty() && open_.empty(); }
  const std::set<int>& open() const { return open_; }
  const std::map<int, Ruling>& refused() const { return refused_; }
  int first() const { return known_.front().user; }

  /// To be estimated, if `reads`: it or the producer has changed.
  void open(int user, bool reads) {
    const auto at = std::ranges::lower_bound(known_, user, {}, &Known::user);
    if (at != known_.end() && at->user == user) {
      add(-at->apart, -at->together);
      known_.erase(at);
    }
    refused_.erase(user);
    if (reads)
      open_.insert(user);
    else
      open_.erase(user);
  }

  void open_all() {
    for (const Known& known : known_) open_.insert(known.user);
    known_.clear();
    refused_.clear();
    gain_ = volume_ = largest_ = 0;
    changes_ = 0;
  }

  void estimated(int user, const Ruling& ruling, double apart, double together) {
    open_.erase(user);
    if (!ruling) refused_.emplace(user, ruling);
    add(apart, together);
    known_.insert(std::ranges::lower_bound(known_, user, {}, &Known::user), {user, apart, together});
  }

  /// us of the producer, which takes `apart`, and its users, and of the users with it inside. Summed in the
  /// order of the graph, so that alike producers gain the same to the last bit.
  std::pair<double, double> sums(double apart) const {
    double together = 0;
    for (const Known& known : known_) {
      apart += known.apart;
      together += known.together;
    }
    return {apart, together};
  }

  /// At least the difference of the sums, without adding them up.
  double most_gain(double apart) const {
    const double roundings = static_cast<double>(changes_ + known_.size() + 2);
    // Each of additions in whatever order is wrong by at most half an epsilon of what they come to.
    const double slack = 4 * std::numeric_limits<double>::epsilon() * roundings * (largest_ + apart);
    return apart + gain_ + slack;
  }

 private:
  struct Known {
    int user;
    double apart, together;
  };
  void add(double apart, double together) {
    gain_ += apart - together;
    volume_ += apart + together;
    largest_ = std::max(largest_, volume_);
    ++changes_;
  }
  double gain_ = 0;     ///< of `known_`, added up as they came and went
  double volume_ = 0;   ///< of apart and together
  double largest_ = 0;  ///< volume_ at its most
  std::size_t changes_ = 0;
  std::vector<Known> known_;  ///< by user
  std::map<int, Ruling> refused_;
  std::set<int> open_;
};

class PriorityFusion {
 public:
  PriorityFusion(FusionGraph& graph, const Device& device, Recorder& recorder)
      : graph_(graph),
        computation_(graph.computation()),
        times_(graph, device),
        recorder_(recorder),
        producers_(static_cast<std::size_t>(graph.size())) {}

  bool run() {
    for (int i = 0; i < graph_.size(); ++i)
      if (graph_[i].alive)
        for (const int user : consumers(i)) known(i).pairs.open(user, true);
    graph_.watch_readers(&changed_);
    for (const int i : graph_.post_order()) rank(i);
    bool changed = false;
    while (!queue_.empty()) {
      interruption_point();
      const int producer = queue_.begin()->second;
      if (!known(producer).settled) {
        settle(producer);
        continue;
      }
      drop(producer);
      changed = fuse(producer) || changed;
    }
    graph_.watch_readers(nullptr);
    return changed;
  }

 private:
  struct Producer {
    Pairs pairs;
    bool several_users = false;
    double priority = kNever;  ///< in the queue, else kNever
    bool settled = true;       ///< else its gain is at most `priority`
  };

  Producer& known(int i) { return producers_[static_cast<std::size_t>(i)]; }

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
      times_.fuse(producer, user);
      graph_.fuse(producer, user);
      if (tiles) graph_.give_tiles(user);
      known(user).pairs.open_all();
      stale.insert(user);
      for (const NodeId value : graph_[user].reads)
        if (const int operand = graph_.provider(value); operand >= 0) {
          stale.insert(operand);
          reopen(operand, user);
        }
    }
    for (const auto& [value, reader] : changed_)
      if (const int operand = graph_.provider(value); operand >= 0) {
        if (!stale.contains(operand)) settle(operand);  // ranked when it comes by again
        reopen(operand, reader);
      }
    changed_.clear();
    if (graph_[producer].alive) stale.insert(producer);
    for (const int i : stale) rank(i);
    return true;
  }

  /// The pair is to be estimated anew, if it is still one.
  void reopen(int i, int user) {
    const bool reads = std::ranges::any_of(
        graph_[i].roots, [&](NodeId root) { return contains_sorted(graph_.readers(root), user); });
    known(i).pairs.open(user, reads && !is_bitcast(user));
  }

  void drop(int i) {
    double& priority = known(i).priority;
    if (priority != kNever) queue_.erase({-priority, i});
    priority = kNever;
  }

  void rank(int i) {
    drop(i);
    known(i).settled = true;
    if (i == graph_.result() || !graph_[i].alive) return;
    enter(i, gain(i));
  }

  void enter(int i, double priority) {
    if (priority < 0) return;
    known(i).priority = priority;
    queue_.insert({-priority, i});
  }

  /// What it gains where only a bound of that is known, of the pairs as they are.
  void settle(int i) {
    if (known(i).settled) return;
    drop(i);
    known(i).settled = true;
    const auto [apart, together] = known(i).pairs.sums(kLaunch + times_.of(i).us);
    enter(i, apart - together);
  }

  /// us that fusing it into all its users saves; kNever where one of them cannot have it. A bound of it, and
  /// not settled, where nobody asks why: who has thousands of readers seldom comes to the head of the queue.
  double gain(int i) {
    if (!is_fusible(i)) return kNever;
    // A name of the same bytes costs nothing anywhere.
    if (is_bitcast(i)) return std::numeric_limits<double>::max();
    Pairs& pairs = known(i).pairs;
    // What the result reads is stored, so nothing is gained.
    if (pairs.empty() || pairs.open().contains(graph_.result())) return kNever;
    if (const bool several = graph_.has_several_users(i); several != known(i).several_users) {
      known(i).several_users = several;
      pairs.open_all();
    }
    estimate(i, pairs);
    const NodeId root = graph_[i].roots.back();
    const auto record = [&](int user, const Ruling& ruling) {
      recorder_.record("priority-fusion", root, graph_[user].roots.back(), ruling, "");
    };
    if (!pairs.refused().empty()) {
      const auto& [user, ruling] = *pairs.refused().begin();
      record(user, ruling);
      return kNever;
    }
    if (!recorder_.enabled()) {
      known(i).settled = false;
      return pairs.most_gain(kLaunch + times_.of(i).us);
    }
    const auto [apart, together] = pairs.sums(kLaunch + times_.of(i).us);
    if (apart < together)
      record(pairs.first(),
             {"xla-today.no-gain", "XLA's model gives {} ns for it within its users, {} ns apart",
              static_cast<std::int64_t>(together * 1e3), static_cast<std::int64_t>(apart * 1e3)});
    return apart - together;
  }

  /// Every pair up to the first that is refused.
  void estimate(int i, Pairs& pairs) {
    while (!pairs.open().empty()) {
      const int user = *pairs.open().begin();
      if (!pairs.refused().empty() && pairs.refused().begin()->first < user) return;
      Ruling ruling = may_hold(i, user);
      RunTime fused;
      if (ruling) {
        fused = times_.fused(i, user);
        ruling = fits_code(fused);
      }
      pairs.estimated(user, ruling, ruling ? times_.of(user).us : 0, fused.us);
    }
  }

  Ruling may_fuse(int producer, int consumer) {
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
  Ruling may_hold(int producer, int consumer) {
    if (!is_fusible(producer) || !is_fusible(consumer) || is_bitcast(consumer))
      return {"xla.not-loop-fusible", "it cannot be emitted inside a kernel"};
    if (graph_[producer].roots.size() > 1) return {"xla-today.several-outputs", "it gives several values"};
    if (has_tiles(producer) || has_tiles(consumer)) {
      if (const Ruling ruling = fits_tiles(producer, consumer); !ruling) return ruling;
    } else {
      if (times_.work(producer).significant_reductions > 0 &&
          times_.work(consumer).significant_reductions > 0)
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

  Ruling fits(int producer, int consumer) {
    if (!graph_.regions_allow(producer, consumer, false)) return {"xla.region", "they are planned apart"};
    if (graph_.keeps_apart(producer, consumer))
      return {"override.forbid_merge", "an override keeps ops of theirs apart"};
    if (const std::int64_t count =
            times_.work(producer).tiled_reductions + times_.work(consumer).tiled_reductions;
        count > kMaxReductions && !has_tiles(producer) && !has_tiles(consumer))
      return {"xla-today.reductions", "the kernel would hold {} reductions, {} allowed", count,
              kMaxReductions};
    const std::int64_t read = values_read(producer, consumer);
    const std::int64_t parameters = read + static_cast<std::int64_t>(graph_[consumer].roots.size());
    if (parameters > kMaxOperands && read > static_cast<std::int64_t>(graph_[consumer].reads.size()))
      return {"xla.too-many-parameters", "the kernel would have {} parameters, {} allowed", parameters,
              kMaxOperands};
    return kAllowed;
  }

  /// Values of others that both in one kernel would read.
  std::int64_t values_read(int producer, int consumer) const {
    const std::vector<NodeId>&own = graph_[producer].reads, &others = graph_[consumer].reads;
    std::int64_t count = static_cast<std::int64_t>(others.size());
    for (const NodeId value : own)
      if (!graph_.contains(consumer, value) && !contains_sorted(others, value)) ++count;
    const std::vector<NodeId>& ops = graph_[producer].ops;
    if (ops.size() < others.size())
      return count - std::ranges::count_if(ops, [&](NodeId op) { return contains_sorted(others, op); });
    return count -
           std::ranges::count_if(others, [&](NodeId value) { return graph_.contains(producer, value); });
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
  std::vector<Producer> producers_;
  std::vector<std::pair<NodeId, int>> changed_;  ///< values and readers that came or went
  std::set<std::pair<double, int>> queue_;       ///< most gain first, then in the order of the graph
};

}  // namespace

bool priority_fusion(FusionGraph& graph, const Device& device, Recorder& recorder) {
  return PriorityFusion(graph, device, recorder).run();
}

}  // namespace stitchwork::xla
