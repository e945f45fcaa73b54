#include "analysis/explain/diff.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "analysis/explain/boundaries.h"
#include "analysis/facts/facts.h"
#include "analysis/judge/cost.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace {

/// A plan by the model's ops, which two plans of one model have in common whatever they rewrote.
class Side {
 public:
  Side(const Graph& model, const FusionPlan& plan)
      : plan_(plan), view_(model, plan), computation_(model.entry_computation()) {
    for (std::size_t k = 0; k < view_.kernels(); ++k) {
      std::set<NodeId>& own = ops_.emplace_back();
      std::unordered_map<NodeId, NodeId>& stands = stands_for_.emplace_back();
      for (const NodeId op : view_.kernel(k).ops)
        for (const NodeId of : model_ops(plan, op)) stands[of] = op;
      for (const NodeId output : view_.kernel(k).outputs)
        for (const NodeId of : model_ops(plan, output)) outputs_.emplace(k, of);
      for (const NodeId op : view_.ops(k))
        for (const NodeId of : model_ops(plan, op))
          if (plan.peer == nullptr || is_counted(of)) own.insert(of);
      for (const NodeId op : own) homes_[op].push_back(k);
    }
  }

  /// What a planner's kernel would list, of what an op of a compiler's module stands for.
  bool is_counted(NodeId op) const {
    return plan_role(computation_.node(op)) != PlanRole::kAlias && !is_immediate(computation_, op);
  }

  const PlanView& view() const { return view_; }
  const FusionPlan& plan() const { return plan_; }
  const std::string& name(NodeId op) const { return computation_.node(op).name; }
  std::size_t kernels() const { return ops_.size(); }
  const KernelPlan& kernel(std::size_t k) const { return view_.kernel(k); }
  const std::set<NodeId>& ops(std::size_t k) const { return ops_[k]; }
  const std::map<NodeId, std::vector<std::size_t>>& homes() const { return homes_; }
  const std::vector<std::size_t>& kernels_of(NodeId op) const {
    static const std::vector<std::size_t> none;
    const auto found = homes_.find(op);
    return found == homes_.end() ? none : found->second;
  }
  bool shares_kernel(NodeId producer, NodeId consumer) const {
    return std::ranges::all_of(kernels_of(consumer),
                               [&](std::size_t k) { return ops_[k].contains(producer); });
  }
  bool is_output(std::size_t k, NodeId op) const { return outputs_.contains({k, op}); }
  /// PlanStep::variant of the calls that make the model's ops.
  std::map<NodeId, std::string> variants() const {
    std::map<NodeId, std::string> result;
    for (const PlanStep& step : plan_.steps)
      if (step.kind == StepKind::kLibrary)
        for (const NodeId op : step.nodes)
          for (const NodeId of : model_ops(plan_, op))
            if (computation_.node(of).op == Op::kDot) result.emplace(of, step.variant);
    return result;
  }
  bool stands_for(NodeId planned, NodeId op) const { return contains_sorted(model_ops(plan_, planned), op); }
  /// Of what stands for the op in the kernel: its last.
  std::string scheme(std::size_t k, NodeId op) const { return scheme_text(kernel(k), stands_for_[k].at(op)); }
  DiffKernel describe(std::size_t k) const {
    DiffKernel result{kernel(k).id, kernel(k).name, {}};
    for (const NodeId op : ops_[k]) result.ops.push_back(name(op));
    return result;
  }

 private:
  const FusionPlan& plan_;
  PlanView view_;
  const Computation& computation_;
  std::vector<std::set<NodeId>> ops_;  ///< by kernel
  std::vector<std::unordered_map<NodeId, NodeId>>
      stands_for_;                                    ///< by kernel: the last of its ops for the model's
  std::set<std::pair<std::size_t, NodeId>> outputs_;  ///< kernels, and the model's ops they store
  std::map<NodeId, std::vector<std::size_t>> homes_;
};

PlanTotals totals(const Graph& graph, const FusionPlan& plan) {
  const PlanCost cost = plan_cost(graph, device(plan.device), plan);
  const PlanCounts& c = plan.counts;
  return {c.memory_kernels,  c.library_calls, c.copies,          c.memsets,         cost.grid_barriers,
          c.product_kernels, cost.dram_bytes, cost.predicted_us, times_method(plan)};
}

std::string launch_text(const KernelLaunch& launch) {
  return fmt::format("grid {}, block {}, shared {} bytes, {}", launch.grid, launch.block, launch.shared_bytes,
                     counted(launch.grid_barriers, "barrier"));
}

std::string launch_and_mappings(const KernelPlan& kernel) {
  std::string text = launch_text(kernel.launch);
  for (const Group& group : kernel.groups) text += "; " + to_text(group.mapping, group.deal);
  return text;
}

std::string label(const KernelPlan& kernel) { return kernel.id + " " + kernel.name; }

class Differ {
 public:
  Differ(const Graph& model, const FusionPlan& a, const FusionPlan& b, const DiffScope& scope)
      : model_(model), a_(model, a), b_(model, b), scope_(scope) {
    result_.a = totals(model, a);
    result_.b = totals(model, b);
  }

  PlanDiff run() {
    pair_kernels();
    compare_kernels();
    find_moved();
    find_products();
    find_boundaries();
    return std::move(result_);
  }

 private:
  void pair_kernels() {
    struct Common {
      std::int64_t results = 0, ops = 0;
    };
    std::map<std::pair<std::size_t, std::size_t>, Common> common;
    for (const auto& [op, kernels] : a_.homes())
      for (std::size_t k : kernels)
        for (std::size_t other : b_.kernels_of(op)) {
          Common& both = common[{k, other}];
          ++both.ops;
          both.results += a_.is_output(k, op) && b_.is_output(other, op);
        }
    std::vector<std::tuple<std::int64_t, std::int64_t, std::size_t, std::size_t>>
        order;  // most in common first
    for (const auto& [pair, both] : common)
      order.emplace_back(-both.results, -both.ops, pair.first, pair.second);
    std::sort(order.begin(), order.end());
    for (const auto& [results, ops, k, other] : order) {
      if (to_b_.contains(k) || to_a_.contains(other)) continue;
      to_b_[k] = other;
      to_a_[other] = k;
    }
  }

  void compare_kernels() {
    for (std::size_t k = 0; k < a_.kernels(); ++k)
      if (!to_b_.contains(k) && is_seen(a_.ops(k))) result_.removed.push_back(a_.describe(k));
    for (std::size_t k = 0; k < b_.kernels(); ++k)
      if (!to_a_.contains(k) && is_seen(b_.ops(k))) result_.added.push_back(b_.describe(k));
    for (const auto& [k, other] : to_b_) {
      if (are_same(k, other)) {
        ++result_.same_kernels;
        continue;
      }
      if (!is_seen(a_.ops(k)) && !is_seen(b_.ops(other))) continue;
      KernelChange change{a_.describe(k), b_.describe(other), {}, {}, {}, {}, {}, 0, 0};
      for (NodeId op : b_.ops(other))
        if (!a_.ops(k).contains(op)) change.gained.push_back(b_.name(op));
      for (NodeId op : a_.ops(k)) {
        if (!b_.ops(other).contains(op)) {
          change.lost.push_back(a_.name(op));
          continue;
        }
        if (a_.kernel(k).code || b_.kernel(other).code) continue;  // a compiler's has none
        const std::string before = a_.scheme(k, op), after = b_.scheme(other, op);
        if (before != after)
          change.schemes.push_back(fmt::format("{}: {} -> {}", a_.name(op), before, after));
      }
      change.launch_a = launch_text(a_.kernel(k).launch);
      change.launch_b = launch_text(b_.kernel(other).launch);
      change.us_a = a_.kernel(k).predicted_us;
      change.us_b = b_.kernel(other).predicted_us;
      result_.changed.push_back(std::move(change));
    }
  }

  bool are_same(std::size_t k, std::size_t other) const {
    const bool compiled = a_.kernel(k).code || b_.kernel(other).code;  // a compiler's has no schemes
    return a_.ops(k) == b_.ops(other) &&
           launch_and_mappings(a_.kernel(k)) == launch_and_mappings(b_.kernel(other)) &&
           (compiled || std::ranges::all_of(
                            a_.ops(k), [&](NodeId op) { return a_.scheme(k, op) == b_.scheme(other, op); }));
  }

  /// Of the model's dots that calls make in both plans.
  void find_products() {
    const std::map<NodeId, std::string> in_a = a_.variants(), in_b = b_.variants();
    for (const auto& [op, variant] : in_a)
      if (const auto other = in_b.find(op); other != in_b.end() && other->second != variant && is_seen(op))
        result_.products.push_back({a_.name(op), variant, other->second});
  }

  void find_moved() {
    std::set<NodeId> all;
    for (const Side* side : {&a_, &b_})
      for (const auto& [op, kernels] : side->homes()) all.insert(op);
    for (NodeId op : all) {
      if (!is_seen(op)) continue;
      const auto &from = a_.kernels_of(op), &to = b_.kernels_of(op);
      const bool stays =
          from.size() == to.size() && std::all_of(from.begin(), from.end(), [&](std::size_t k) {
            const auto pair = to_b_.find(k);
            return pair != to_b_.end() && std::find(to.begin(), to.end(), pair->second) != to.end();
          });
      if (stays) continue;
      MovedOp moved{a_.name(op), {}, {}};
      for (std::size_t k : from) moved.from.push_back(label(a_.kernel(k)));
      for (std::size_t k : to) moved.to.push_back(label(b_.kernel(k)));
      result_.moved.push_back(std::move(moved));
    }
  }

  /// For each pair of kernels of the plan that separates them, the first producer and consumer that explains
  /// it.
  void find_boundaries() {
    std::map<std::tuple<bool, std::size_t, std::size_t>, Boundary> found;
    const Computation& computation = model_.entry_computation();
    for (const Node& node : computation.nodes) {
      if (!is_seen(node.id) || a_.kernels_of(node.id).empty() || b_.kernels_of(node.id).empty()) continue;
      for (NodeId producer : computing_operands(computation, node.id)) {
        if (a_.kernels_of(producer).empty() || b_.kernels_of(producer).empty()) continue;
        const bool in_a = a_.shares_kernel(producer, node.id), in_b = b_.shares_kernel(producer, node.id);
        if (in_a == in_b) continue;
        const Side &apart = in_a ? b_ : a_, &together = in_a ? a_ : b_;
        const std::tuple key{in_a, apart.kernels_of(producer).front(), apart.kernels_of(node.id).front()};
        const auto known = found.find(key);
        if (known != found.end() && known->second.apart) continue;
        Boundary boundary{a_.name(producer), node.name, in_a, refusal(in_a, producer, node.id),
                          reason_together(together, producer, node.id)};
        if (known == found.end())
          found.emplace(key, std::move(boundary));
        else if (boundary.apart)
          known->second = std::move(boundary);
      }
    }
    for (auto& [key, boundary] : found) result_.boundaries.push_back(std::move(boundary));
  }

  static std::optional<Decision> reason_together(const Side& side, NodeId producer, NodeId consumer) {
    const FusionPlan& plan = side.plan();
    if (plan.peer == nullptr)
      return why_together(side.view(), planned_op(plan, producer), planned_op(plan, consumer));
    const KernelPlan& kernel = side.kernel(side.kernels_of(consumer).front());
    const std::string kind = kernel.code->kind.empty() ? "" : " (" + kernel.code->kind + ")";
    return Decision{"compiled", side.name(producer), side.name(consumer),
                    Verdict::yes("peer.kernel", fmt::format("{} computes both in {}{}", plan.peer->title,
                                                            kernel.name, kind))};
  }

  /// Of the plan that keeps them apart; none where the reading kernel computes the producer itself.
  std::optional<Decision> refusal(bool in_b, NodeId producer, NodeId consumer) {
    const Side& side = in_b ? b_ : a_;
    const FusionPlan& plan = side.plan();
    const std::vector<StepBoundary>& known = boundaries_into(in_b, side.kernels_of(consumer));
    const auto computes = [&](int step, NodeId op) {
      if (step < 0) return false;
      const int kernel = plan.steps[static_cast<std::size_t>(step)].kernel;
      return kernel >= 0 && side.ops(static_cast<std::size_t>(kernel)).contains(op);
    };
    for (const bool exact : {true, false})
      for (const StepBoundary& at : known)
        if (computes(at.from, producer) && computes(at.to, consumer) &&
            (side.stands_for(at.value, producer) || !exact))
          return why_apart(side.view(), plan, at);
    return std::nullopt;
  }

  /// Those whose reading step is one of the kernels, in their order.
  std::vector<StepBoundary> boundaries_into(bool of_b, const std::vector<std::size_t>& kernels) {
    const FusionPlan& plan = (of_b ? b_ : a_).plan();
    Known& known = of_b ? known_b_ : known_a_;
    if (known.all.empty()) {
      known.all = boundaries(model_, plan);
      for (std::size_t i = 0; i < known.all.size(); ++i)
        if (const int to = known.all[i].to; to >= 0)
          known.into[plan.steps[static_cast<std::size_t>(to)].kernel].push_back(i);
    }
    std::vector<std::size_t> numbers;
    for (const std::size_t k : kernels)
      if (const auto found = known.into.find(static_cast<int>(k)); found != known.into.end())
        numbers.insert(numbers.end(), found->second.begin(), found->second.end());
    std::ranges::sort(numbers);
    std::vector<StepBoundary> result;
    for (const std::size_t i : numbers) result.push_back(known.all[i]);
    return result;
  }

  bool is_seen(NodeId op) const { return !scope_ || scope_(op); }
  bool is_seen(const std::set<NodeId>& ops) const { return !scope_ || std::ranges::any_of(ops, scope_); }

  /// The boundaries of a plan, and by kernel those of the values that it reads.
  struct Known {
    std::vector<StepBoundary> all;
    std::unordered_map<int, std::vector<std::size_t>> into;
  };

  const Graph& model_;
  Side a_, b_;
  const DiffScope& scope_;
  Known known_a_, known_b_;
  std::map<std::size_t, std::size_t> to_b_, to_a_;  ///< paired kernels
  PlanDiff result_;
};

}  // namespace

PlanDiff diff(const Graph& graph, const FusionPlan& a, const FusionPlan& b, const DiffScope& scope) {
  if (a.model_sha256 != b.model_sha256)
    throw Error(fmt::format("the plans are of different models: {} and {}", a.model_path, b.model_path),
                "compare plans of the same version of one model");
  return Differ(model_graph(model_graph(graph, a), b), a, b, scope).run();
}

}  // namespace stitchwork
