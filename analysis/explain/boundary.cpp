#include "analysis/explain/boundary.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/recorder.h"
#include "analysis/planners/planner.h"

namespace stitchwork {
namespace {

std::string kernels_text(const Graph& graph, const FusionPlan& plan) {
  const std::string text = to_text(graph, plan);
  return text.substr(std::min(text.size(), text.find('\n')));  // the first line names the planner
}

/// Without those of the computations that loops and branches run, which stand behind the entry's own: names
/// are unique in a computation only.
std::vector<Decision> own_decisions(const FusionPlan& plan) {
  std::size_t others = 0;
  for (const ComputationPlan& part : plan.computations) others += part.plan.decisions.size();
  std::vector<Decision> own = plan.decisions;
  own.resize(own.size() - std::min(own.size(), others));
  return own;
}

/// Of equal decisions the last, in their order: passes that run to a fixpoint take the same again.
void keep_last_of_equal(std::vector<Decision>& decisions) {
  std::set<std::tuple<std::string, std::string, std::string, bool, std::string, std::string>> seen;
  std::vector<Decision> kept;
  for (auto d = decisions.rbegin(); d != decisions.rend(); ++d)
    if (seen.emplace(d->step, d->subject, d->object, d->verdict.ok, d->verdict.rule, d->verdict.why).second)
      kept.push_back(std::move(*d));
  decisions.assign(std::move_iterator(kept.rbegin()), std::move_iterator(kept.rend()));
}

}  // namespace

std::vector<Decision> decisions_behind(const Graph& graph, const FusionPlan& plan,
                                       const std::vector<std::string>& about) {
  if (!plan.decisions.empty()) return own_decisions(plan);
  if (plan.peer != nullptr) return {};
  const auto known = std::find_if(planners().begin(), planners().end(),
                                  [&](const Planner& row) { return row.name == plan.planner; });
  if (known == planners().end()) return {};
  PlanOptions options = as_planned(plan, true);
  if (!about.empty()) options.decisions_about = about;
  const FusionPlan again = make_plan(graph, device(plan.device), plan.planner, options);
  if (kernels_text(graph, again) != kernels_text(graph, plan)) return {};
  return own_decisions(again);
}

PlanView::PlanView(const Graph& model, const FusionPlan& plan, const std::string& about)
    : graph_(planned_graph(model, plan)),
      computation_(graph_.entry_computation()),
      plan_(plan),
      decisions_(decisions_behind(model_graph(model, plan), plan,
                                  about.empty() ? std::vector<std::string>() : std::vector{about})) {
  for (const KernelPlan& kernel : plan.kernels) {
    std::set<NodeId>& own = ops_.emplace_back();
    const std::vector<NodeId> made = materialised(kernel);
    for (NodeId op : kernel.ops) {
      // A kernel may fill a buffer with a constant; inlined, that is an immediate.
      if (is_immediate(computation_, op) && !std::binary_search(made.begin(), made.end(), op)) continue;
      const Node& node = computation_.node(op);
      if (plan_role(node) != PlanRole::kMemory && !is_product(node) && !kernel.code) continue;
      if (plan_role(node) == PlanRole::kAlias) continue;
      own.insert(op);
      homes_[op].push_back(ops_.size() - 1);
    }
  }
  std::unordered_map<std::string_view, NodeId> ids;
  for (const Node& node : computation_.nodes) ids.emplace(node.name, node.id);
  const auto id_of = [&](const std::string& op) {
    const auto found = ids.find(op);
    return found == ids.end() ? kNoNode : found->second;
  };
  const auto forms = std::stable_partition(decisions_.begin(), decisions_.end(),
                                           [](const Decision& d) { return d.step != kFormStep; });
  forms_.assign(std::move_iterator(forms), std::move_iterator(decisions_.end()));
  decisions_.erase(forms, decisions_.end());
  keep_last_of_equal(decisions_);
  for (const Decision& d : decisions_) {
    const auto& [subject, object] = about_.emplace_back(id_of(d.subject), id_of(d.object));
    if (subject == kNoNode) continue;
    of_[subject].push_back(about_.size() - 1);
    of_value_[buffer_of(computation_, subject)].push_back(about_.size() - 1);
  }
  for (std::size_t f = 0; f < forms_.size(); ++f) forms_of_[id_of(forms_[f].subject)].push_back(f);
}

std::span<const std::size_t> PlanView::decisions_of(NodeId op) const {
  const auto found = of_.find(op);
  return found == of_.end() ? std::span<const std::size_t>() : found->second;
}

std::span<const std::size_t> PlanView::decisions_of_value(NodeId op) const {
  const auto found = of_value_.find(op);
  return found == of_value_.end() ? std::span<const std::size_t>() : found->second;
}

const std::vector<std::size_t>& PlanView::kernels_of(NodeId op) const {
  static const std::vector<std::size_t> none;
  const auto found = homes_.find(op);
  return found == homes_.end() ? none : found->second;
}

std::vector<Decision> PlanView::forms(std::size_t k) const {
  std::vector<std::size_t> found;
  for (const NodeId op : ops_[k])
    if (const auto of = forms_of_.find(op); of != forms_of_.end())
      found.insert(found.end(), of->second.begin(), of->second.end());
  std::sort(found.begin(), found.end());
  std::vector<Decision> result;
  for (const std::size_t f : found) result.push_back(forms_[f]);
  return result;
}

bool PlanView::shares_kernel(NodeId producer, NodeId consumer) const {
  const auto& kernels = kernels_of(consumer);
  return std::all_of(kernels.begin(), kernels.end(),
                     [&](std::size_t k) { return ops_[k].contains(producer); });
}

bool PlanView::share_a_kernel(NodeId a, NodeId b) const {
  const auto &of_a = kernels_of(a), &of_b = kernels_of(b);
  return std::any_of(of_a.begin(), of_a.end(),
                     [&](std::size_t k) { return std::binary_search(of_b.begin(), of_b.end(), k); });
}

std::vector<NodeId> computing_operands(const Computation& computation, NodeId op) {
  std::vector<NodeId> result, open = computation.node(op).operands;
  while (!open.empty()) {
    const Node& node = computation.node(open.back());
    open.pop_back();
    if (is_immediate(computation, node.id)) continue;
    const PlanRole role = plan_role(node);
    const OpClass cls = def(node.op).cls;
    const bool map = cls == OpClass::kBroadcast || node.op == Op::kSlice;
    if (role == PlanRole::kAlias || map)
      open.insert(open.end(), node.operands.begin(), node.operands.end());
    else if (role != PlanRole::kSource)
      result.push_back(node.id);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace stitchwork
