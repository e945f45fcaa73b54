// InstructionFusion: a producer is fused into one consumer at a time, consumers before producers.
#include <algorithm>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/planners/xla/rules.h"
#include "analysis/planners/xla/uses.h"
#include "core/base/interrupt.h"

namespace stitchwork::xla {
namespace {

class InstructionFusion {
 public:
  InstructionFusion(FusionGraph& graph, bool may_duplicate, Recorder& recorder)
      : graph_(graph),
        computation_(graph.computation()),
        may_duplicate_(may_duplicate),
        recorder_(recorder),
        uses_(graph) {}

  bool run() {
    const std::vector<int> order = graph_.post_order();
    position_.assign(static_cast<std::size_t>(graph_.size()), -1);
    for (std::size_t p = 0; p < order.size(); ++p)
      position_[static_cast<std::size_t>(order[p])] = static_cast<int>(p);
    bool changed = false;
    for (auto consumer = order.rbegin(); consumer != order.rend(); ++consumer) {
      interruption_point();
      if (!graph_[*consumer].alive) continue;
      if (!is_consumer(*consumer)) {
        refuse_operands(*consumer);
        continue;
      }
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

  /// Those an instruction reads, the last in the order first.
  std::vector<int> producers_of(int consumer) const {
    std::vector<int> producers;
    for (NodeId value : graph_[consumer].reads)
      if (const int p = graph_.provider(value); p >= 0) producers.push_back(p);
    std::sort(producers.begin(), producers.end(), [&](int a, int b) { return position(a) > position(b); });
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
    return producers;
  }

  /// A kernel of one op that is no loop: nothing is fused into it.
  void refuse_operands(int consumer) {
    if (consumer == graph_.result() || plan_role(graph_.op(consumer)) != PlanRole::kMemory) return;
    for (const int producer : producers_of(consumer))
      if (graph_[producer].kind != InstructionKind::kPlain || !is_source(producer))
        recorder_.record("instruction-fusion", graph_[producer].roots.back(), graph_[consumer].roots.back(),
                         {"xla.consumer-is-no-loop", "nothing is fused into a kernel that is no loop"}, "");
  }

  bool fuse_one_operand(int consumer) {
    for (int producer : producers_of(consumer)) {
      Ruling ruling = may_fuse(producer, consumer, may_duplicate_);
      if (ruling && may_duplicate_ && graph_.has_several_users(producer) && is_globally_unfusible(producer))
        ruling = {
            "xla.globally-unfusible",
            "it reads more than it writes and cannot go into every user, so that copies of it would only add "
            "reads"};
      if (graph_[producer].kind != InstructionKind::kPlain || !is_source(producer))
        recorder_.record("instruction-fusion", graph_[producer].roots.back(), graph_[consumer].roots.back(),
                         ruling, "xla.fused");
      if (!ruling) continue;
      fuse(producer, consumer);
      return true;
    }
    return false;
  }

  void fuse(int producer, int consumer) {
    uses_.fuse({graph_.op(producer).id}, consumer);
    graph_.fuse(producer, consumer);
  }

  bool is_source(int i) const {
    const PlanRole role = plan_role(graph_.op(i));
    return role != PlanRole::kMemory;
  }

  Ruling may_fuse(int producer, int consumer, bool may_duplicate) {
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
    if (graph_.has_several_users(producer)) {
      if (!may_duplicate)
        return {"xla.several-users", "it has other users, and this pass does not duplicate"};
      if (expensive && !is_widening(node))
        return {"xla.expensive-to-duplicate", "it has other users and is too expensive to compute twice"};
    }
    const Uses::Use& use = uses_.of(consumer).of(node.id);
    if (expensive && use.reused)
      return {"xla.expensive-and-reused",
              "the consumer reads each of its elements several times, and it is expensive"};
    if (has_inner_loop(computation_, node) && use.in_loop)
      return {"xla.nested-loops", "its inner loop would run inside the consumer's"};
    if (Ruling fits = fits_one_kernel(graph_, producer, consumer, false); !fits) return fits;
    return emitted_rarely(use.emissions);
  }

  bool is_widening(const Node& node) const {
    return node.op == Op::kConvert &&
           byte_size(node.shape.dtype) > byte_size(computation_.node(node.operands[0]).shape.dtype);
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

  /// Paths are as long as the graph: the instructions on the one at hand stand on a stack.
  bool fuses_on_all_paths(int producer, int last, const std::unordered_set<int>& below,
                          std::unordered_map<int, bool>& memo) {
    struct Step {
      int consumer;
      std::size_t next = 0;  ///< of what it reads
    };
    memo[producer] = true;
    std::vector<Step> path{{last}};
    while (!path.empty()) {
      auto& [consumer, next] = path.back();
      const std::vector<NodeId>& reads = graph_[consumer].reads;
      bool ok = is_consumer(consumer), deeper = false;
      if (const auto known = memo.find(consumer); known != memo.end()) {
        path.pop_back();
        continue;
      }
      for (; ok && next < reads.size(); ++next) {
        const int operand = graph_.provider(reads[next]);
        if (operand < 0 || !below.contains(operand)) continue;
        const auto known = memo.find(operand);
        if (known == memo.end()) {
          ok = static_cast<bool>(may_fuse(operand, consumer, true));
          deeper = ok;
          break;
        }
        ok = known->second && may_fuse(operand, consumer, true);
      }
      if (deeper) {
        path.push_back({graph_.provider(reads[next])});
        continue;
      }
      memo[consumer] = ok;
      path.pop_back();
    }
    return memo.at(last);
  }

  FusionGraph& graph_;
  const Computation& computation_;
  bool may_duplicate_;
  Recorder& recorder_;
  std::vector<int> position_;  ///< in the post-order at the start of the pass
  std::unordered_map<int, bool> unfusible_;
  UsesByInstruction uses_;
};

}  // namespace

bool instruction_fusion(FusionGraph& graph, bool may_duplicate, Recorder& recorder) {
  return InstructionFusion(graph, may_duplicate, recorder).run();
}

}  // namespace stitchwork::xla
