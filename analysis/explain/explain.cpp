#include "analysis/explain/explain.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "analysis/explain/remedy.h"
#include "analysis/facts/boundary.h"
#include "analysis/facts/facts.h"
#include "analysis/judge/cost.h"
#include "analysis/judge/library_cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/control_flow.h"
#include "core/base/error.h"
#include "core/base/suggest.h"
#include "occupancy_model/timing_text.h"

namespace stitchwork {
namespace {

NodeId find_op(const Computation& computation, const std::string& op) {
  const NodeId found = computation.find(op);
  if (found != kNoNode) return found;
  std::vector<std::string_view> names;
  for (const Node& node : computation.nodes) names.push_back(node.name);
  names = nearest(op, names, 5);
  throw Error(fmt::format("no op is called '{}'", op),
              fmt::format("close names: {}", fmt::join(names, ", ")));
}

/// What an op outside kernels is.
std::string step_of(const Computation& computation, const FusionPlan& plan, const Node& node) {
  for (const PlanStep& step : plan.steps)
    if (step.kind != StepKind::kKernel && step.kind != StepKind::kMemset &&
        std::find(step.nodes.begin(), step.nodes.end(), node.id) != step.nodes.end())
      return fmt::format("{} {}", step.kind == StepKind::kLibrary ? "library call" : name(step.kind),
                         step.id);
  switch (plan_role(node)) {
    case PlanRole::kSource:
      return is_immediate(computation, node.id) ? "immediate in every kernel that reads it"
                                                : std::string(def(node.op).name);
    case PlanRole::kAlias: {
      const NodeId owner = buffer_of(computation, node.id);
      return owner == node.id ? "names the buffers of its operands"
                              : fmt::format("alias of {}", computation.node(owner).name);
    }
    default:
      return is_immediate(computation, node.id) ? "immediate in every kernel that reads it" : std::string();
  }
}

OpPlacement placement(const Computation& computation, const std::vector<std::vector<NodeId>>& users,
                      const KernelPlan& kernel, NodeId op) {
  OpPlacement at;
  at.kernel_id = kernel.id;
  at.kernel_name = kernel.name;
  at.role = "inlined";
  at.scheme = kernel.schemes.at(op);
  if (const auto near = kernel.in_phase.find(op); near != kernel.in_phase.end()) at.in_phase = near->second;
  at.level = kernel.levels.at(op);
  at.output = std::find(kernel.outputs.begin(), kernel.outputs.end(), op) != kernel.outputs.end();
  const Group* own = nullptr;
  int groups = 0;
  for (const Group& group : kernel.groups) {
    if (std::find(group.ops.begin(), group.ops.end(), op) == group.ops.end()) continue;
    const bool leads = group.dominant == op;
    const bool follows =
        std::find(group.sub_dominants.begin(), group.sub_dominants.end(), op) != group.sub_dominants.end();
    if (leads || follows) {
      at.role = leads ? "dominant" : "sub-dominant";
      own = &group;
      groups = 1;
      break;
    }
    own = &group;
    ++groups;
  }
  if (groups == 1) {
    at.dominant = computation.node(own->dominant).name;
    at.mapping = to_text(own->mapping, own->deal);
  }
  const auto in_kernel = [&](NodeId id) { return kernel.schemes.contains(id); };
  for (NodeId operand : computation.node(op).operands)
    if (in_kernel(operand)) at.producers.push_back(computation.node(operand).name);
  for (NodeId user : users[static_cast<std::size_t>(op)])
    if (in_kernel(user)) at.consumers.push_back(computation.node(user).name);
  return at;
}

/// The kernels and calls that meet the op's kernels, through the op itself before other ops of its kernels;
/// for each the first pair of ops about which there is a refusal.
class Neighbours {
 public:
  Neighbours(const PlanView& view, const FusionPlan& plan, NodeId op)
      : view_(view), computation_(view.computation()), plan_(plan), op_(op) {}

  std::vector<Neighbour> run() {
    for (std::size_t k : view_.kernels_of(op_)) own_.insert(view_.ops(k).begin(), view_.ops(k).end());
    for (const bool only_op : {true, false}) {
      for (const Node& node : computation_.nodes) {
        for (NodeId producer : computing_operands(computation_, node.id)) {
          if (own_.contains(node.id) && (!only_op || node.id == op_))
            add("producer", producer, node.id, producer);
          if (own_.contains(producer) && (!only_op || producer == op_))
            add("consumer", producer, node.id, node.id);
        }
      }
    }
    add_siblings();
    return std::move(result_);
  }

 private:
  void add(const char* relation, NodeId producer, NodeId consumer, NodeId other) {
    if (view_.kernels_of(other).empty() ? plan_role(computation_.node(other)) == PlanRole::kAlias
                                        : view_.shares_kernel(producer, consumer))
      return;
    Neighbour n{relation, view_.name(producer), view_.name(consumer), where(other), false, {}, {}};
    n.in_kernel = !view_.kernels_of(other).empty();
    n.refusal = view_.decision_between(false, producer, consumer);
    keep(std::move(n));
  }

  /// Ops of other kernels that only a refusal ties to this one.
  void add_siblings() {
    for (const Decision& d : view_.decisions()) {
      if (d.verdict.ok || d.object.empty()) continue;
      if (d.subject != view_.name(op_) && d.object != view_.name(op_)) continue;
      const NodeId other = computation_.find(d.subject == view_.name(op_) ? d.object : d.subject);
      if (other == kNoNode || view_.kernels_of(other).empty() || own_.contains(other)) continue;
      keep({"sibling", view_.name(op_), view_.name(other), where(other), true, d, {}});
    }
  }

  std::string where(NodeId other) const {
    const auto& kernels = view_.kernels_of(other);
    if (kernels.empty()) return step_of(computation_, plan_, computation_.node(other));
    return fmt::format("kernel {} {}", view_.kernel(kernels.front()).id, view_.kernel(kernels.front()).name);
  }

  void keep(Neighbour n) {
    const auto known = std::find_if(result_.begin(), result_.end(), [&](const Neighbour& k) {
      return k.where == n.where && (k.relation == n.relation || n.relation == "sibling");
    });
    if (known == result_.end())
      result_.push_back(std::move(n));
    else if (!known->refusal && n.refusal)
      *known = std::move(n);
  }

  const PlanView& view_;
  const Computation& computation_;
  const FusionPlan& plan_;
  NodeId op_;
  std::set<NodeId> own_;  ///< ops of the op's kernels
  std::vector<Neighbour> result_;
};

bool about_same(const Decision& a, const Decision& b) {
  return a.subject == b.subject && a.object == b.object && a.verdict.rule == b.verdict.rule;
}

/// Refusals that name the op and are not about a neighbour, each pair and rule once.
std::vector<Refusal> other_refusals(const Device& device, const Explanation& explanation) {
  std::vector<Refusal> result;
  for (const Decision& d : explanation.decisions) {
    if (d.verdict.ok) continue;
    const bool told =
        std::any_of(explanation.neighbours.begin(), explanation.neighbours.end(),
                    [&](const Neighbour& n) { return n.refusal && about_same(*n.refusal, d); }) ||
        std::any_of(result.begin(), result.end(),
                    [&](const Refusal& r) { return about_same(r.decision, d); });
    if (!told) result.push_back({d, remedy(device, d)});
  }
  return result;
}

}  // namespace

Explanation explain(const Graph& graph, const FusionPlan& plan, const std::string& op) {
  const Computation& computation = graph.entry_computation();
  if (computation.find(op) == kNoNode)
    for (const ComputationPlan& part : plan.computations)
      if (graph.computation(part.computation).find(op) != kNoNode)
        return explain(entered(graph, part.computation), part.plan, op);
  const NodeId id = find_op(computation, op);
  const Node& node = computation.node(id);
  Explanation result;
  result.op = node.name;
  result.opcode = def(node.op).name;
  result.shape = to_text(node.shape);
  const auto users = computation.users();
  const Device& target = device(plan.device);
  const PlanView view(graph, plan);
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const KernelPlan& kernel = plan.kernels[k];
    if (!std::binary_search(kernel.ops.begin(), kernel.ops.end(), id)) continue;
    OpPlacement& at = result.placements.emplace_back(placement(computation, users, kernel, id));
    const TimedKernel timed = kernel_cost(graph, target, kernel).timed;
    at.time = timed.time;
    at.not_modelled = not_modelled(target, timed);
    at.forms = view.forms(k);
  }
  if (result.placements.empty()) result.step = step_of(computation, plan, node);
  if (const auto product =
          result.placements.empty() ? matrix_product(computation, node, plan.tf32) : std::nullopt)
    result.library_time = to_text(*product, library_time(target, *product));
  for (const Decision& decision : view.decisions())
    if (decision.subject == op || decision.object == op) result.decisions.push_back(decision);
  result.neighbours = Neighbours(view, plan, id).run();
  for (Neighbour& n : result.neighbours)
    if (n.refusal) n.needs = remedy(target, *n.refusal);
  result.refusals = other_refusals(target, result);
  return result;
}

std::string to_text(const Explanation& explanation) {
  std::string text = fmt::format("{} = {} {}\n", explanation.op, explanation.shape, explanation.opcode);
  if (!explanation.step.empty()) text += explanation.step + "\n";
  if (!explanation.library_time.empty()) text += explanation.library_time + "\n";
  if (explanation.placements.size() > 1)
    text += fmt::format("computed in {} kernels\n", explanation.placements.size());
  for (const OpPlacement& at : explanation.placements) {
    text +=
        fmt::format("kernel {} {}: {}, {}{}, level {}{}\n", at.kernel_id, at.kernel_name, at.role,
                    name(at.scheme), at.in_phase ? fmt::format(" ({} in its phase)", name(*at.in_phase)) : "",
                    at.level, at.output ? ", an output" : "");
    if (at.role != "dominant" && !at.dominant.empty()) text += fmt::format("  group of {}\n", at.dominant);
    if (!at.mapping.empty()) text += fmt::format("  {}\n", at.mapping);
    if (!at.producers.empty()) text += fmt::format("  reads {}\n", fmt::join(at.producers, ", "));
    if (!at.consumers.empty()) text += fmt::format("  read by {}\n", fmt::join(at.consumers, ", "));
    text += fmt::format("  {:.2f} us (modelled), limited by {}\n", at.time.total_us, limited_by(at.time));
    for (const NotModelled& effect : at.not_modelled)
      text += fmt::format("  not modelled: {}: {}\n", effect.id, effect.why);
    if (!at.forms.empty()) text += "  forms tried (modelled)\n";
    for (const Decision& form : at.forms)
      text += fmt::format("    {}: {} [{}] {}\n", form.object, form.verdict.ok ? "yes" : "no",
                          form.verdict.rule, form.verdict.why);
  }
  if (!explanation.neighbours.empty()) text += "neighbours\n";
  for (const Neighbour& n : explanation.neighbours) {
    text += fmt::format("  {} {}: {} -> {}", n.relation, n.where, n.producer, n.consumer);
    if (n.refusal) text += fmt::format(": no [{}] {}", n.refusal->verdict.rule, n.refusal->verdict.why);
    text += "\n";
    if (!n.needs.empty()) text += fmt::format("    to change it: {}\n", n.needs);
  }
  if (!explanation.refusals.empty()) text += "other refusals\n";
  for (const Refusal& r : explanation.refusals) {
    text += fmt::format("  {}{}{}: [{}] {}\n", r.decision.subject, r.decision.object.empty() ? "" : " -> ",
                        r.decision.object, r.decision.verdict.rule, r.decision.verdict.why);
    if (!r.needs.empty()) text += fmt::format("    to change it: {}\n", r.needs);
  }
  if (!explanation.decisions.empty()) text += "decisions\n";
  for (const Decision& d : explanation.decisions) {
    text += fmt::format("  {}: {}", d.step, d.subject);
    if (!d.object.empty()) text += fmt::format(" -> {}", d.object);
    text += fmt::format(": {} [{}]", d.verdict.ok ? "yes" : "no", d.verdict.rule);
    if (!d.verdict.why.empty()) text += " " + d.verdict.why;
    text += "\n";
  }
  return text;
}

}  // namespace stitchwork
