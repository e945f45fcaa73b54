// MultiOutputFusion: kernels with several results. First a reduction (of today: every kernel) takes in a
// producer it reads, which stays a result; then siblings that read the same values join, most shared bytes
// first.
#include <algorithm>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/planners/xla/rules.h"
#include "analysis/planners/xla/uses.h"
#include "analysis/schedule/propagation.h"
#include "core/base/interrupt.h"

namespace stitchwork::xla {
namespace {

/// Readers of one value that are compared with each other: those next to each other in the order. XLA
/// compares all, which is quadratic where hundreds of fusions share a parameter.
/// A choice, not measured: it bounds planning time.
constexpr std::size_t kNeighbours = 32;

/// Between one level and the next, so that raising the levels behind a join stops at the joined level instead
/// of going on to the end of the graph.
constexpr std::int64_t kLevelGap = std::int64_t{1} << 20;

class MultiOutputFusion {
 public:
  MultiOutputFusion(FusionGraph& graph, Recorder& recorder, bool today)
      : graph_(graph), computation_(graph.computation()), recorder_(recorder), today_(today) {}

  bool run() {
    find_levels();
    find_forest();
    bool changed = false;
    for (int consumer : graph_.post_order()) changed = join_producer(consumer) || changed;
    return join_siblings() || changed;
  }

 private:
  // --- reachability: levels grow along every edge, so a search stops at the level of what it looks for. Most
  // answers are yes and far away (kernels of different layers that read the same weights); a spanning forest
  // of the graph before anything joined gives them at once, for joining takes no path away.

  void find_levels() {
    level_.assign(static_cast<std::size_t>(graph_.size()), 0);
    for (int i : graph_.post_order())
      for (NodeId value : graph_[i].reads)
        if (const int operand = graph_.provider(value); operand >= 0)
          level(i) = std::max(level(i), level(operand) + kLevelGap);
  }

  std::int64_t& level(int i) { return level_[static_cast<std::size_t>(i)]; }

  /// Depth-first over the users: what lies below an instruction in the forest is entered after it and before
  /// it is left.
  void find_forest() {
    const auto count = static_cast<std::size_t>(graph_.size());
    entered_.assign(count, -1);
    left_.assign(count, -1);
    marks_.assign(count, 0);
    const std::vector<int> order = graph_.post_order();
    int clock = 0;
    struct Frame {
      int at;
      std::vector<int> users;
      std::size_t next = 0;
    };
    std::vector<Frame> path;
    const auto enter = [&](int i) {
      entered_[static_cast<std::size_t>(i)] = clock++;
      path.push_back({i, graph_.users(i)});
    };
    for (const int source : order) {
      if (entered_[static_cast<std::size_t>(source)] >= 0) continue;
      enter(source);
      while (!path.empty()) {
        Frame& top = path.back();
        if (top.next == top.users.size()) {
          left_[static_cast<std::size_t>(top.at)] = clock;
          path.pop_back();
        } else if (const int user = top.users[top.next++]; entered_[static_cast<std::size_t>(user)] < 0) {
          enter(user);
        }
      }
    }
  }

  bool below_in_forest(int from, int to) const {
    const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
    return entered_[f] >= 0 && entered_[f] <= entered_[t] && entered_[t] < left_[f];
  }

  bool reaches(int from, int to) {
    if (from == to) return true;
    if (level(from) >= level(to)) return false;
    ++epoch_;
    std::vector<int> open{from};
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      if (below_in_forest(at, to)) return true;
      for (NodeId root : graph_[at].roots) {
        for (int user : graph_.readers(root)) {
          if (user == to) return true;
          int& mark = marks_[static_cast<std::size_t>(user)];
          if (mark == epoch_ || level(user) >= level(to)) continue;
          mark = epoch_;
          open.push_back(user);
        }
      }
    }
    return false;
  }

  void join(int into, int other) {
    level(into) = std::max(level(into), level(other));
    graph_.join(into, other);
    std::vector<int> open{into};
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      for (NodeId root : graph_[at].roots) {
        for (int user : graph_.readers(root)) {
          if (level(user) > level(at)) continue;
          level(user) = level(at) + 1;
          open.push_back(user);
        }
      }
    }
  }

  // --- shapes

  bool is_fusion(int i) const { return graph_[i].kind != InstructionKind::kPlain; }

  /// The root whose loop the kernel runs: a tiled reduction if there is one.
  const Node& hero(int i) const {
    const NodeId reduction = graph_.reduction_root(i);
    return computation_.node(reduction != kNoNode ? reduction : graph_[i].roots.front());
  }

  bool is_reduction(int i) const { return i != graph_.result() && graph_.reduction_root(i) != kNoNode; }

  /// The extents of the loop: of what a reduction reads, else of the result.
  const std::vector<std::int64_t>& loop_shape(int i) const {
    const Node& node = hero(i);
    return tiled_reduction(computation_, node) ? computation_.node(node.operands[0]).shape.dims
                                               : node.shape.dims;
  }

  bool is_candidate(int i) const {
    if (i == graph_.result() || !graph_[i].alive || graph_[i].kind == InstructionKind::kTiles) return false;
    if (is_fusion(i) || is_reduction(i)) return true;
    const Node& node = graph_.op(i);
    return is_elementwise(node.op) && plan_role(node) == PlanRole::kMemory && !node.operands.empty();
  }

  /// Every root of the joined kernel must lie one to one in its loop.
  bool roots_fit(int a, int b) const {
    Instruction joined;
    const std::vector<NodeId> of_a = graph_.sorted_ops(a), of_b = graph_.sorted_ops(b);
    std::set_union(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(joined.ops));
    std::set_union(graph_[a].roots.begin(), graph_[a].roots.end(), graph_[b].roots.begin(),
                   graph_[b].roots.end(), std::back_inserter(joined.roots));
    const Node& leader = computation_.node(leading_root(computation_, joined.roots));
    Mapping domain = mapping::Elements{.count = leader.shape.elements_count()};
    if (def(leader.op).cls == OpClass::kReduce) {
      const ReductionSize shape = reduction_size(computation_, leader.id);
      domain = mapping::Rows{shape.rows, shape.cols, mapping::Lanes{}};
    }
    const auto placed = propagate(computation_, leader.id, domain, joined.ops);
    return std::all_of(joined.roots.begin(), joined.roots.end(), [&](NodeId root) {
      const auto at = placed->find(root);
      return at != placed->end() &&
             (at->second.coverage == Coverage::kFull || at->second.coverage == Coverage::kRows);
    });
  }

  // --- a reduction and the producer it reads

  bool join_producer(int consumer) {
    if (today_ ? !is_candidate(consumer) : !graph_[consumer].alive || !is_reduction(consumer)) return false;
    const std::vector<NodeId> values = graph_[consumer].reads;
    for (NodeId value : values) {
      const int producer = graph_.provider(value);
      if (producer < 0 || !is_loop(producer)) continue;
      // What nothing else reads needs no result of its own.
      if (today_ && !graph_.has_several_users(producer)) continue;
      const Ruling ruling = may_join_producer(producer, consumer);
      recorder_.record("multi-output-fusion", graph_[producer].roots.back(), graph_[consumer].roots.back(),
                       ruling, "xla.producer-joined");
      if (!ruling) continue;
      join(consumer, producer);
      return true;
    }
    return false;
  }

  bool is_loop(int i) const {
    if (graph_[i].kind == InstructionKind::kLoop) return true;
    if (is_fusion(i)) return false;
    const Node& node = graph_.op(i);
    return plan_role(node) == PlanRole::kMemory && is_loop_fusible(computation_, node) &&
           !is_immediate(computation_, node.id);
  }

  Ruling may_join_producer(int producer, int consumer) {
    if (loop_shape(producer) != loop_shape(consumer))
      return {"xla.multi-output-shapes", "its loop has another shape than what the reduction reads"};
    for (NodeId value : graph_[consumer].reads) {
      const int operand = graph_.provider(value);
      if (operand >= 0 && operand != producer && reaches(producer, operand))
        return {"xla.multi-output-cycle", "it also reaches another operand of the reduction"};
    }
    if (Ruling rarely = merged_rarely(graph_, producer, Uses(graph_, consumer)); !rarely) return rarely;
    if (Ruling fits = fits_one_kernel(graph_, producer, consumer, true); !fits) return fits;
    if (!roots_fit(producer, consumer))
      return {"xla.multi-output-index", "the reduction reads it at another index than it is computed at"};
    return kAllowed;
  }

  // --- siblings

  struct Pair {
    double shared_bytes;
    int first, second;  ///< first < second
    bool operator<(const Pair& o) const {
      return std::tuple(shared_bytes, -first, -second) < std::tuple(o.shared_bytes, -o.first, -o.second);
    }
  };

  bool join_siblings() {
    std::priority_queue<Pair> pairs;
    for (int i : graph_.post_order()) offer_pairs(i, true, pairs);
    bool changed = false;
    while (!pairs.empty()) {
      interruption_point();
      const auto [bytes, first, second] = pairs.top();
      pairs.pop();
      if (!graph_[first].alive || !graph_[second].alive) continue;
      if (shared_bytes(first, second) != bytes) continue;  // offered again since
      const bool swapped = !is_fusion(first);
      const int a = swapped ? second : first, b = swapped ? first : second;
      const Ruling ruling = may_join_siblings(a, b);
      recorder_.record("multi-output-fusion", graph_[b].roots.back(), graph_[a].roots.back(), ruling,
                       "xla.siblings-joined");
      if (!ruling) continue;
      join(a, b);
      changed = true;
      offer_pairs(a, false, pairs);
    }
    return changed;
  }

  double shared_bytes(int a, int b) const {
    std::vector<NodeId> shared;
    std::set_intersection(graph_[a].reads.begin(), graph_[a].reads.end(), graph_[b].reads.begin(),
                          graph_[b].reads.end(), std::back_inserter(shared));
    double bytes = 0;
    for (NodeId value : shared) bytes += static_cast<double>(computation_.node(value).shape.byte_size());
    return bytes;
  }

  /// Pairs of `i` with the readers next to it of each value it reads; `later` leaves out those before it.
  void offer_pairs(int i, bool later, std::priority_queue<Pair>& pairs) {
    if (!is_candidate(i)) return;
    std::vector<int> partners;
    for (NodeId value : graph_[i].reads) {
      const std::vector<int>& readers = graph_.readers(value);
      const auto self = std::lower_bound(readers.begin(), readers.end(), i);
      const auto from = later || self - readers.begin() < static_cast<std::ptrdiff_t>(kNeighbours)
                            ? (later ? self : readers.begin())
                            : self - kNeighbours;
      const auto to = readers.end() - self > static_cast<std::ptrdiff_t>(kNeighbours) ? self + kNeighbours
                                                                                      : readers.end();
      for (auto reader = from; reader != to; ++reader)
        if (*reader != i && is_candidate(*reader) && (today_ || is_fusion(i) || is_fusion(*reader)))
          partners.push_back(*reader);
    }
    std::sort(partners.begin(), partners.end());
    partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
    for (int partner : partners) {
      const auto [low, high] = std::minmax(i, partner);
      pairs.push({shared_bytes(i, partner), low, high});
    }
  }

  Ruling may_join_siblings(int a, int b) {
    if (is_reduction(a) != is_reduction(b))
      return {"xla.sibling-kinds", "one is a loop, the other a reduction"};
    if (loop_shape(a) != loop_shape(b))
      return {"xla.multi-output-shapes", "their loops have different shapes"};
    if (is_reduction(a)) {
      const Node &x = hero(a), &y = hero(b);
      if (x.shape.dims != y.shape.dims || x.attrs.dimensions != y.attrs.dimensions)
        return {"xla.sibling-reductions", "they reduce different dimensions"};
    }
    for (int i : {a, b})
      for (NodeId root : graph_[i].roots)
        if (const Op op = computation_.node(root).op;
            op == Op::kDynamicUpdateSlice || op == Op::kUpdateInPlace)
          return {"xla.in-place-root", "a dynamic-update-slice that ends a kernel works in place"};
    if (reaches(a, b) || reaches(b, a)) return {"xla.sibling-dependence", "one depends on the other"};
    if (Ruling fits = fits_one_kernel(graph_, a, b, true); !fits) return fits;
    if (!roots_fit(a, b)) return {"xla.multi-output-index", "they do not lie one to one in a common loop"};
    return kAllowed;
  }

  FusionGraph& graph_;
  const Computation& computation_;
  Recorder& recorder_;
  bool today_;
  std::vector<std::int64_t> level_;
  std::vector<int> entered_, left_;  ///< of the spanning forest; -1 where not in the graph
  std::vector<int> marks_;
  int epoch_ = 0;
};

}  // namespace

bool multi_output_fusion(FusionGraph& graph, Recorder& recorder) {
  return MultiOutputFusion(graph, recorder, false).run();
}

bool multi_output_fusion_of_today(FusionGraph& graph, Recorder& recorder) {
  return MultiOutputFusion(graph, recorder, true).run();
}

}  // namespace stitchwork::xla
