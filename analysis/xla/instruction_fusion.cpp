// InstructionFusion: a producer is fused into one consumer at a time, consumers before producers.
#include <algorithm>
#include <unordered_map>

#include "analysis/facts.h"
#include "analysis/xla/fusion_graph.h"
#include "analysis/xla/rules.h"
#include "core/interrupt.h"

namespace stitchwork::xla {
namespace {

/// Copies of a producer's code a fusion may hold (XLA's FusionNodeIndexingEvaluation).
constexpr std::int64_t kMaxEmissions = 15;

class InstructionFusion {
 public:
  InstructionFusion(FusionGraph& graph, bool may_duplicate, Recorder& recorder)
      : graph_(graph),
        computation_(graph.computation()),
        may_duplicate_(may_duplicate),
        recorder_(recorder) {}

  bool run() {
    const std::vector<int> order = graph_.post_order();
    position_.assign(static_cast<std::size_t>(graph_.size()), -1);
    for (std::size_t p = 0; p < order.size(); ++p)
      position_[static_cast<std::size_t>(order[p])] = static_cast<int>(p);
    bool changed = false;
    for (auto consumer = order.rbegin(); consumer != order.rend(); ++consumer) {
      interruption_point();
      if (!graph_[*consumer].alive || !is_consumer(*consumer)) continue;
      while (fuse_one_operand(*consumer)) changed = true;
    }
    return changed;
  }

 private:
  int position(int i) const { return position_[static_cast<std::size_t>(i)]; }

  /// A bitcast alone is a name and no kernel, so nothing is fused into it.
  bool is_consumer(int i) const {
    if (i == graph_.result()) return false;
    if (graph_[i].kind != InstructionKind::kPlain) return true;
    const Node& node = graph_.op(i);
    if (plan_role(node) == PlanRole::kAlias) return false;
    return is_loop_fusible(computation_, node) || tiled_reduction(computation_, node);
  }

  bool fuse_one_operand(int consumer) {
    std::vector<int> producers;
    for (NodeId value : graph_[consumer].reads)
      if (const int p = graph_.provider(value); p >= 0) producers.push_back(p);
    std::sort(producers.begin(), producers.end(), [&](int a, int b) { return position(a) > position(b); });
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
    for (int producer : producers) {
      Ruling ruling = may_fuse(producer, consumer, may_duplicate_);
      if (ruling && may_duplicate_ && graph_.users(producer).size() > 1 && is_globally_unfusible(producer))
        ruling = {
            "xla.globally-unfusible",
            "it reads more than it writes and cannot go into every user, so that copies of it would only add "
            "reads"};
      if (graph_[producer].kind != InstructionKind::kPlain || !is_source(producer))
        recorder_.record("instruction-fusion", graph_[producer].roots.back(), graph_[consumer].roots.back(),
                         ruling, "xla.fused");
      if (!ruling) continue;
      graph_.fuse(producer, consumer);
      return true;
    }
    return false;
  }

  bool is_source(int i) const {
    const PlanRole role = plan_role(graph_.op(i));
    return role != PlanRole::kMemory;
  }

  Ruling may_fuse(int producer, int consumer, bool may_duplicate) const {
    const Instruction& p = graph_[producer];
    if (graph_.reduction_root(producer) != kNoNode)
      return {"xla.reduce-is-never-a-producer", "a tiled reduction ends its kernel"};
    if (p.kind != InstructionKind::kPlain)
      return {"xla.producer-is-a-fusion", "instruction fusion moves single ops only"};
    const Node& node = graph_.op(producer);
    if (!is_loop_fusible(computation_, node) || node.op == Op::kConstant)
      return {"xla.not-loop-fusible", "it cannot be emitted inside a loop"};
    if (is_renamed_input(computation_, node))
      return {"xla.renamed-input", "it is only another name of a parameter or of a library call's result"};
    const bool expensive = is_expensive(computation_, node);
    if (graph_.users(producer).size() > 1) {
      if (!may_duplicate)
        return {"xla.several-users", "it has other users, and this pass does not duplicate"};
      if (expensive && !is_widening(node))
        return {"xla.expensive-to-duplicate", "it has other users and is too expensive to compute twice"};
    }
    if (expensive && reuses(consumer, node.id))
      return {"xla.expensive-and-reused",
              "the consumer reads each of its elements several times, and it is expensive"};
    if (has_inner_loop(computation_, node) && reaches_loop(consumer, node.id))
      return {"xla.nested-loops", "its inner loop would run inside the consumer's"};
    if (Ruling fits = fits_one_kernel(graph_, producer, consumer, false); !fits) return fits;
    const std::int64_t emissions = emissions_in(consumer, node.id);
    if (emissions > kMaxEmissions)
      return {"xla.emitted-too-often", "its code would be emitted {} times in the kernel, {} allowed",
              emissions, kMaxEmissions};
    return kAllowed;
  }

  bool is_widening(const Node& node) const {
    return node.op == Op::kConvert &&
           byte_size(node.shape.dtype) > byte_size(computation_.node(node.operands[0]).shape.dtype);
  }

  /// Some use of `value`, or of what is computed from it inside the consumer, reads elements repeatedly.
  bool reuses(int consumer, NodeId value) const {
    return any_use(consumer, value, [&](const Node& user, int operand) {
      return reuses_operand(computation_, user, operand);
    });
  }

  bool reaches_loop(int consumer, NodeId value) const {
    return any_use(consumer, value, [&](const Node& user, int) {
      return def(user.op).cls == OpClass::kReduce || def(user.op).cls == OpClass::kWindow;
    });
  }

  template <typename Test>
  bool any_use(int consumer, NodeId value, Test test) const {
    std::unordered_set<NodeId> reached{value};
    for (NodeId op : graph_[consumer].ops) {
      const Node& node = computation_.node(op);
      for (std::size_t i = 0; i < node.operands.size(); ++i) {
        if (!reached.contains(node.operands[i])) continue;
        if (test(node, static_cast<int>(i))) return true;
        reached.insert(op);
      }
    }
    return false;
  }

  /// At how many different indices `value` is needed in the consumer. Element-wise users pass their own
  /// indices on; every other user makes a new one of each of its own.
  std::int64_t emissions_in(int consumer, NodeId value) const {
    const Instruction& c = graph_[consumer];
    if (c.kind == InstructionKind::kPlain) return 1;
    std::unordered_map<NodeId, std::vector<NodeId>> indexed_by;  // op -> users that index it
    std::unordered_map<NodeId, std::int64_t> emitted;
    for (NodeId root : c.roots) {
      indexed_by[root].push_back(kNoNode);
      emitted[kNoNode] = 1;
    }
    const auto count = [&](NodeId op) {
      std::int64_t total = 0;
      for (NodeId user : indexed_by[op]) total += emitted[user];
      return total;
    };
    for (auto op = c.ops.rbegin(); op != c.ops.rend(); ++op) {
      const Node& node = computation_.node(*op);
      emitted[*op] = count(*op);
      const std::vector<NodeId> here = is_elementwise(node.op) ? indexed_by[*op] : std::vector<NodeId>{*op};
      for (NodeId operand : node.operands) {
        if (operand != value && !graph_.contains(consumer, operand)) continue;
        std::vector<NodeId>& list = indexed_by[operand];
        for (NodeId user : here)
          if (std::find(list.begin(), list.end(), user) == list.end()) list.push_back(user);
      }
    }
    return count(value);
  }

  /// XLA's guard of duplication: a producer that reads more than it writes is copied only if no instruction
  /// of its own remains, so it must be fusible into every user along every path.
  bool is_globally_unfusible(int producer) {
    const auto known = unfusible_.find(producer);
    if (known != unfusible_.end()) return known->second;
    bool unfusible = false;
    if (reads_more_than_writes(computation_, graph_.op(producer))) {
      const std::vector<int> users = graph_.users(producer);
      int last = -1;
      for (int user : users) last = std::max(last, position(user));
      const std::unordered_set<int> below = descendants(producer, last);
      std::unordered_map<int, bool> memo;
      unfusible = !std::all_of(users.begin(), users.end(),
                               [&](int user) { return fuses_on_all_paths(producer, user, below, memo); });
    }
    return unfusible_[producer] = unfusible;
  }

  /// What depends on `from`, itself included, up to a position of the order.
  std::unordered_set<int> descendants(int from, int last) const {
    std::unordered_set<int> found{from};
    std::vector<int> open{from};
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      for (int user : graph_.users(at))
        if (position(user) <= last && found.insert(user).second) open.push_back(user);
    }
    return found;
  }

  bool fuses_on_all_paths(int producer, int consumer, const std::unordered_set<int>& below,
                          std::unordered_map<int, bool>& memo) {
    if (consumer == producer) return true;
    if (const auto known = memo.find(consumer); known != memo.end()) return known->second;
    bool ok = is_consumer(consumer);
    for (NodeId value : graph_[consumer].reads) {
      if (!ok) break;
      const int operand = graph_.provider(value);
      if (operand < 0 || !below.contains(operand)) continue;
      ok = may_fuse(operand, consumer, true) && fuses_on_all_paths(producer, operand, below, memo);
    }
    return memo[consumer] = ok;
  }

  FusionGraph& graph_;
  const Computation& computation_;
  bool may_duplicate_;
  Recorder& recorder_;
  std::vector<int> position_;  ///< in the post-order at the start of the pass
  std::unordered_map<int, bool> unfusible_;
};

}  // namespace

bool instruction_fusion(FusionGraph& graph, bool may_duplicate, Recorder& recorder) {
  return InstructionFusion(graph, may_duplicate, recorder).run();
}

}  // namespace stitchwork::xla
