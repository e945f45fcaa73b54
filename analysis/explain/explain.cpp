#include "analysis/explain/explain.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "analysis/explain/boundaries.h"
#include "analysis/explain/remedy.h"
#include "analysis/facts/facts.h"
#include "analysis/judge/cost.h"
#include "analysis/judge/library_cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/control_flow.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/sorted.h"
#include "core/base/suggest.h"
#include "core/passes/trip_count.h"
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

/// The steps that meet those which compute the op, through the op itself before other ops of theirs, each
/// once.
class Neighbours {
 public:
  Neighbours(const Graph& graph, const PlanView& view, const FusionPlan& plan, NodeId op)
      : graph_(graph), view_(view), computation_(view.computation()), plan_(plan), op_(op) {}

  std::vector<Neighbour> run() {
    std::vector<bool> own;
    for (const PlanStep& step : plan_.steps) own.push_back(computes(step));
    const auto is_own = [&](int step) { return step >= 0 && own[static_cast<std::size_t>(step)]; };
    std::vector<StepBoundary> found = boundaries(graph_, plan_);
    std::erase_if(found, [&](const StepBoundary& b) { return is_own(b.from) == is_own(b.to); });
    std::stable_partition(found.begin(), found.end(),
                          [&](const StepBoundary& b) { return b.value == op_ || b.reader == op_; });
    for (const StepBoundary& b : found)
      add(b, is_own(b.to) ? "producer" : "consumer", is_own(b.to) ? b.from : b.to);
    add_siblings();
    return std::move(result_);
  }

 private:
  bool computes(const PlanStep& step) const {
    if (step.kind == StepKind::kMemset) return false;
    const std::vector<NodeId>& ops = step.kind == StepKind::kKernel
                                         ? plan_.kernels[static_cast<std::size_t>(step.kernel)].ops
                                         : step.nodes;
    return std::find(ops.begin(), ops.end(), op_) != ops.end();
  }

  void add(const StepBoundary& boundary, const char* relation, int other) {
    const bool kernels =
        other >= 0 && !view_.kernels_of(op_).empty() && step(other).kind == StepKind::kKernel;
    Neighbour n{relation,
                view_.name(boundary.value),
                boundary.reader == kNoNode ? "" : view_.name(boundary.reader),
                where(other),
                kernels,
                {},
                {}};
    const auto known = [&](const Neighbour& k) { return k.where == n.where && k.relation == n.relation; };
    if (std::any_of(result_.begin(), result_.end(), known)) return;
    n.refusal = why_apart(view_, plan_, boundary);
    result_.push_back(std::move(n));
  }

  /// Kernels that only a refusal ties to this one.
  void add_siblings() {
    std::set<NodeId> own;
    for (std::size_t k : view_.kernels_of(op_)) own.insert(view_.ops(k).begin(), view_.ops(k).end());
    for (std::size_t d = 0; d < view_.decisions().size(); ++d) {
      const Decision& decision = view_.decisions()[d];
      const auto [subject, object] = view_.about(d);
      if (decision.verdict.ok || !decides_kernels(decision.step) || object == kNoNode) continue;
      if (subject != op_ && object != op_) continue;
      const NodeId other = subject == op_ ? object : subject;
      if (other == kNoNode || view_.kernels_of(other).empty() || own.contains(other)) continue;
      const KernelPlan& kernel = view_.kernel(view_.kernels_of(other).front());
      const std::string where = fmt::format("kernel {} {}", kernel.id, kernel.name);
      const auto known =
          std::find_if(result_.begin(), result_.end(), [&](const Neighbour& k) { return k.where == where; });
      if (known == result_.end())
        result_.push_back({"sibling", view_.name(op_), view_.name(other), where, true, decision, {}});
      else if (known->relation == "sibling")
        known->refusal = decision;  // the last decides
    }
  }

  const PlanStep& step(int index) const { return plan_.steps[static_cast<std::size_t>(index)]; }

  std::string where(int index) const {
    if (index < 0) return "result";
    const PlanStep& at = step(index);
    if (at.kind != StepKind::kKernel)
      return step_text(computation_, plan_, computation_.node(at.nodes.front()));
    const KernelPlan& kernel = plan_.kernels[static_cast<std::size_t>(at.kernel)];
    return fmt::format("kernel {} {}", kernel.id, kernel.name);
  }

  const Graph& graph_;
  const PlanView& view_;
  const Computation& computation_;
  const FusionPlan& plan_;
  NodeId op_;
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

/// Of an op of a computation that has no plan: others apply it to scalars (a reducer, a comparator), or it is
/// the condition of loops that are counted.
std::optional<Explanation> applied_by(const Graph& graph, const std::string& op) {
  for (std::size_t c = 0; c < graph.computations.size(); ++c) {
    const Computation& body = graph.computations[c];
    const NodeId id = body.find(op);
    if (id == kNoNode) continue;
    std::vector<std::string> by, counts;
    for (const Computation& caller : graph.computations)
      for (const Node& node : caller.nodes)
        if (std::ranges::find(node.attrs.computations, static_cast<ComputationId>(c)) !=
            node.attrs.computations.end()) {
          by.push_back(node.name);
          if (node.op == Op::kWhile)
            counts.push_back(fmt::format("{} ({})", node.name,
                                         counted(trip_count(graph, caller, node).value_or(0), "trip")));
        }
    Explanation result;
    result.op = op;
    result.opcode = def(body.node(id).op).name;
    result.shape = to_text(body.node(id).shape);
    result.step =
        counts.empty()
            ? fmt::format("in {}, which {} applies: it is part of its code", body.name, fmt::join(by, ", "))
            : fmt::format("in {}, the condition of {}: the host counts, nothing computes it", body.name,
                          fmt::join(counts, ", "));
    return result;
  }
  return std::nullopt;
}

bool in_graph(const Graph& graph, const std::string& op) {
  return std::ranges::any_of(graph.computations, [&](const Computation& c) { return c.find(op) != kNoNode; });
}

/// Of an op that a planner rewrote.
struct Replaced {
  std::string by;    ///< who gives its value, else the last op that stands for it; "": nobody
  std::string text;  ///< "divide.30: rewritten by scale-out-of-dot with dot.31; dot.31.divide stands for it"
};

/// "scale-out-of-dot with dot.31": the first step that stands on the op, and what else it stands on.
std::string rewritten_by(const rewriting::RewrittenGraph& rewritten, const std::string& op) {
  for (const rewriting::Rewrite& step : rewritten.steps)
    for (rewriting::Place place : step.at) {
      if (std::erase(place, op) == 0) continue;
      return step.rule + (place.empty() ? "" : fmt::format(" with {}", fmt::join(place, ", ")));
    }
  return "the tidy rules";
}

/// nullopt: the model has no such op.
std::optional<Replaced> replacement(const rewriting::RewrittenGraph& rewritten, const std::string& op) {
  for (std::size_t c = 0; c < rewritten.graph.computations.size(); ++c) {
    const Computation& now = rewritten.graph.computations[c];
    const Computation* model = rewritten.model_computation(now.name);
    const NodeId id = model == nullptr ? kNoNode : model->find(op);
    if (id == kNoNode || rewritten.origins[c].now.empty()) continue;
    NodeId gives = rewritten.origins[c].now[static_cast<std::size_t>(id)];
    std::vector<std::string> stand;
    for (const Node& node : now.nodes)
      if (contains_sorted(rewritten.origins[c].of[static_cast<std::size_t>(node.id)], id))
        stand.push_back(node.name);
    std::string by = gives != kNoNode ? now.node(gives).name : stand.empty() ? "" : stand.back();
    const std::string how = rewritten_by(rewritten, op);
    if (by.empty()) return Replaced{by, fmt::format("{}: rewritten by {}; nothing stands for it", op, how)};
    return Replaced{
        by, gives != kNoNode
                ? fmt::format("{}: rewritten by {}; {} gives its value", op, how, by)
                : fmt::format(
                      "{}: rewritten by {}; {} for it", op, how,
                      stand.size() == 1 ? by + " stands" : fmt::format("{} stand", fmt::join(stand, ", ")))};
  }
  return std::nullopt;
}

}  // namespace

std::string step_text(const Computation& computation, const FusionPlan& plan, const Node& node) {
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

bool has_op(const Graph& graph, const FusionPlan& plan, const std::string& op) {
  return in_graph(model_graph(graph, plan), op) || in_graph(planned_graph(graph, plan), op);
}

Explanation explain_as_read(const Graph& given, const FusionPlan& plan, const OpTrace& trace,
                            const std::string& op) {
  const Graph& graph = model_graph(given, plan);
  const Computation& entry = graph.entry_computation();
  std::vector<std::string> became;
  std::vector<OpName> now;
  if (const std::optional<OpName> read = trace.find(op, entry.name)) {
    std::vector<OpTrace::Step> steps;
    now = trace.now(graph, *read, &steps);
    for (const OpTrace::Step& step : steps) became.push_back(to_text(step));
  } else {
    const std::string_view scope = std::string_view(op).substr(op.starts_with('/') ? 1 : 0);
    for (const Node& node : entry.nodes)
      if (node.metadata.op_name == scope) now.push_back({entry.name, node.name});
    if (now.empty()) return explain(graph, plan, op);  // throws, with close names
    became.push_back(to_text(OpTrace::Step{OpChange::kRewritten, {entry.name, op}, now}));
  }
  Explanation result;
  if (now.empty()) {
    result.op = op;
  } else {
    const auto in_entry = std::find_if(now.rbegin(), now.rend(),
                                       [&](const OpName& name) { return name.computation == entry.name; });
    result = explain(graph, plan, in_entry == now.rend() ? now.back().op : in_entry->op);
  }
  result.became.insert(result.became.begin(), std::move_iterator(became.begin()),
                       std::move_iterator(became.end()));
  return result;
}

Explanation explain(const Graph& model, const FusionPlan& plan, const std::string& op) {
  const Graph& graph = planned_graph(model, plan);
  if (plan.rewritten != nullptr && !in_graph(graph, op))
    if (const std::optional<Replaced> replaced = replacement(*plan.rewritten, op)) {
      Explanation result;
      if (replaced->by.empty())
        result.op = op;
      else
        result = explain(graph, plan, replaced->by);
      result.became.insert(result.became.begin(), replaced->text);
      // Astra decides about the model's products, before there is another graph.
      const PlanView view(graph, plan);
      for (const Decision& decision : view.decisions())
        if (decision.step.starts_with("astra.") && (decision.subject == op || decision.object == op))
          result.decisions.push_back(decision);
      return result;
    }
  const Computation& computation = graph.entry_computation();
  if (computation.find(op) == kNoNode) {
    for (const ComputationPlan& part : plan.computations)
      if (graph.computation(part.computation).find(op) != kNoNode)
        return explain(entered(graph, part.computation), part.plan, op);
    if (std::optional<Explanation> body = applied_by(graph, op)) return *body;
  }
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
  if (result.placements.empty()) result.step = step_text(computation, plan, node);
  if (const auto product =
          result.placements.empty() ? matrix_product(computation, node, plan.tf32) : std::nullopt)
    result.library_time = to_text(*product, library_time(target, *product));
  for (const Decision& decision : view.decisions())
    if (decision.subject == op || decision.object == op) result.decisions.push_back(decision);
  result.neighbours = Neighbours(graph, view, plan, id).run();
  for (Neighbour& n : result.neighbours)
    if (n.refusal) n.needs = remedy(target, *n.refusal);
  result.refusals = other_refusals(target, result);
  return result;
}

std::string to_text(const Explanation& explanation) {
  std::string text;
  for (const std::string& step : explanation.became) text += step + "\n";
  if (explanation.opcode.empty()) return text;
  text += fmt::format("{} = {} {}\n", explanation.op, explanation.shape, explanation.opcode);
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
    // A choice, not measured: of those beyond, a reader learns little; --json has all.
    constexpr std::size_t kBusiest = 4;
    if (const std::string units = busiest_units(at.time, kBusiest); !units.empty())
      text += fmt::format("  of each unit's peak (modelled): {}\n", units);
    for (const NotModelled& effect : at.not_modelled)
      text += fmt::format("  not modelled: {}: {}\n", effect.id, effect.why);
    if (!at.forms.empty()) text += "  forms tried (modelled)\n";
    for (const Decision& form : at.forms)
      text += fmt::format("    {}: {} [{}] {}\n", form.object, form.verdict.ok ? "yes" : "no",
                          form.verdict.rule, form.verdict.why);
  }
  if (!explanation.neighbours.empty()) text += "neighbours\n";
  for (const Neighbour& n : explanation.neighbours) {
    text += fmt::format("  {} {}: {}", n.relation, n.where, n.producer);
    if (!n.consumer.empty()) text += fmt::format(" -> {}", n.consumer);
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
