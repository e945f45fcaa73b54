#include "analysis/explain/explain.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_map>

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

OpPlacement placement(const Computation& computation, const std::vector<std::vector<NodeId>>& users,
                      const KernelPlan& kernel, NodeId op) {
  OpPlacement at;
  at.kernel_id = kernel.id;
  at.kernel_name = kernel.name;
  at.role = "inlined";
  at.scheme = kernel.schemes.at(op);
  if (const auto near = kernel.in_phase.find(op); near != kernel.in_phase.end()) at.in_phase = near->second;
  at.level = kernel.levels.at(op);
  if (kernel.code) at.role = "compiled";
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

/// As people call it who know the model: by the first of its ops that it stands for.
std::string model_name(const FusionPlan& plan, const Computation& computation, NodeId op) {
  if (plan.peer == nullptr || plan.rewritten == nullptr) return computation.node(op).name;
  const std::vector<NodeId> of = model_ops(plan, op);
  return of.empty() ? computation.node(op).name : plan.rewritten->model->entry_computation().node(of[0]).name;
}

/// What a compiler's kernel is, and what else of the model it computes.
void add_code(const Computation& computation, const FusionPlan& plan, const KernelPlan& kernel, NodeId op,
              OpPlacement& at) {
  const KernelCode& code = *kernel.code;
  at.code = fmt::format("{} of {}", code.entry, code.module);
  if (!code.kind.empty()) at.code += fmt::format(", {} {}", code.kind, code.instruction);
  for (std::vector<std::string>* names : {&at.producers, &at.consumers})
    for (std::string& name : *names) name = model_name(plan, computation, computation.find(name));
  std::set<NodeId> others;
  for (const NodeId other : kernel.ops)
    if (other != op)
      for (const NodeId of : model_ops(plan, other)) others.insert(of);
  for (const NodeId of : model_ops(plan, op)) others.erase(of);
  const Computation& model =
      plan.rewritten == nullptr ? computation : plan.rewritten->model->entry_computation();
  for (const NodeId of : others)
    if (plan_role(model.node(of)) != PlanRole::kAlias && !is_immediate(model, of))
      at.beside.push_back(model.node(of).name);
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
                model_name(plan_, computation_, boundary.value),
                boundary.reader == kNoNode ? "" : model_name(plan_, computation_, boundary.reader),
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
      return step_text(computation_, &at, computation_.node(at.nodes.front()));
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

/// Refusals that name the op, decided and are not about a neighbour, each pair and rule once.
std::vector<Refusal> other_refusals(const Device& device, const PlanView& view,
                                    const Explanation& explanation) {
  std::vector<Refusal> result;
  for (std::size_t i = 0; i < view.decisions().size(); ++i) {
    const Decision& d = view.decisions()[i];
    if (d.verdict.ok || (d.subject != explanation.op && d.object != explanation.op) || !decided(view, i))
      continue;
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

/// The same of a compiler's plan, whose module says nothing of steps.
Replaced compiled(const FusionPlan& plan, const std::string& op, bool gives,
                  const std::vector<std::string>& stand) {
  if (const auto gone = plan.peer->gone.find(op); gone != plan.peer->gone.end())
    return {"", fmt::format("{}: no step of {} has it; {}", op, plan.peer->title, gone->second)};
  if (stand.empty()) return {"", fmt::format("{}: {} has no op for it", op, plan.peer->title)};
  return {stand.back(), stand.back() == op
                            ? std::string()
                            : fmt::format("{}: in {} {} {}", op, plan.peer->title, fmt::join(stand, ", "),
                                          gives               ? "gives its value"
                                          : stand.size() == 1 ? "stands for it"
                                                              : "stand for it")};
}

/// nullopt: the model has no such op.
std::optional<Replaced> replacement(const FusionPlan& plan, const std::string& op) {
  const rewriting::RewrittenGraph& rewritten = *plan.rewritten;
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
    if (plan.peer != nullptr)
      return compiled(plan, op, gives != kNoNode,
                      gives != kNoNode ? std::vector{now.node(gives).name} : stand);
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

NodeId op_named(const Computation& computation, const std::string& op) {
  const NodeId found = computation.find(op);
  if (found != kNoNode) return found;
  std::vector<std::string_view> names;
  for (const Node& node : computation.nodes) names.push_back(node.name);
  names = nearest(op, names, 5);
  throw Error(fmt::format("no op is called '{}'", op),
              fmt::format("close names: {}", fmt::join(names, ", ")));
}

bool has_op(const Graph& graph, const FusionPlan& plan, const std::string& op) {
  return in_graph(model_graph(graph, plan), op) || in_graph(planned_graph(graph, plan), op);
}

std::optional<AsRead> op_as_read(const Graph& graph, const OpTrace& trace, const std::string& op) {
  if (in_graph(graph, op)) return AsRead{op, {}};
  const Computation& entry = graph.entry_computation();
  AsRead result;
  std::vector<OpName> now;
  if (const std::optional<OpName> read = trace.find(op, entry.name)) {
    std::vector<OpTrace::Step> steps;
    now = trace.now(graph, *read, &steps);
    for (const OpTrace::Step& step : steps) result.became.push_back(to_text(step));
  } else {
    const std::string_view scope = std::string_view(op).substr(op.starts_with('/') ? 1 : 0);
    for (const Node& node : entry.nodes)
      if (node.metadata.op_name == scope) now.push_back({entry.name, node.name});
    if (now.empty()) return std::nullopt;
    result.became.push_back(to_text(OpTrace::Step{OpChange::kRewritten, {entry.name, op}, now}));
  }
  if (now.empty()) return result;
  const auto in_entry = std::find_if(now.rbegin(), now.rend(),
                                     [&](const OpName& name) { return name.computation == entry.name; });
  result.op = in_entry == now.rend() ? now.back().op : in_entry->op;
  return result;
}

Explanation explain_as_read(const Graph& given, const FusionPlan& plan, const OpTrace& trace,
                            const std::string& op) {
  const Graph& graph = model_graph(given, plan);
  const std::optional<AsRead> read = op_as_read(graph, trace, op);
  if (!read) return explain(graph, plan, op);  // throws, with close names
  Explanation result;
  if (read->op.empty())
    result.op = op;
  else
    result = explain(graph, plan, read->op);
  result.became.insert(result.became.begin(), read->became.begin(), read->became.end());
  return result;
}

namespace {

Explanation explain_planned(const Graph& graph, const FusionPlan& plan, const std::string& op);

}  // namespace

Explanation explain(const Graph& model, const FusionPlan& plan, const std::string& op) {
  const Graph& graph = planned_graph(model, plan);
  // A compiler's module may call another op by the name of one of the model's.
  if (plan.rewritten != nullptr && (plan.peer != nullptr || !in_graph(graph, op)))
    if (const std::optional<Replaced> replaced = replacement(plan, op)) {
      Explanation result;
      if (replaced->by.empty())
        result.op = op;
      else
        result = explain_planned(graph, plan, replaced->by);
      if (!replaced->text.empty()) result.became.insert(result.became.begin(), replaced->text);
      // Astra decides about the model's products, before there is another graph.
      const PlanView view(graph, plan);
      for (const Decision& decision : view.decisions())
        if (decision.step.starts_with("astra.") && (decision.subject == op || decision.object == op))
          result.decisions.push_back(decision);
      return result;
    }
  return explain_planned(graph, plan, op);
}

namespace {

Explanation explain_planned(const Graph& graph, const FusionPlan& plan, const std::string& op) {
  const Computation& computation = graph.entry_computation();
  if (computation.find(op) == kNoNode) {
    for (const ComputationPlan& part : plan.computations)
      if (graph.computation(part.computation).find(op) != kNoNode)
        return explain(entered(graph, part.computation), part.plan, op);
    if (std::optional<Explanation> body = applied_by(graph, op)) return *body;
  }
  const NodeId id = op_named(computation, op);
  const Node& node = computation.node(id);
  Explanation result;
  result.op = node.name;
  result.opcode = def(node.op).name;
  result.shape = to_text(node.shape);
  if (const UpdatedArray* array = node.attrs.updated.get())
    result.updates = fmt::format("{} = {}", computation.node(array->op).name, to_text(array->shape));
  result.place = place_text(computation, node);
  const auto users = computation.users();
  const Device& target = device(plan.device);
  const PlanView view(graph, plan, op);
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const KernelPlan& kernel = plan.kernels[k];
    if (!std::binary_search(kernel.ops.begin(), kernel.ops.end(), id)) continue;
    OpPlacement& at = result.placements.emplace_back(placement(computation, users, kernel, id));
    const TimedKernel timed = kernel_cost(graph, target, kernel).timed;
    if (kernel.code) add_code(computation, plan, kernel, id, at);
    at.time = timed.time;
    at.not_modelled = not_modelled(target, timed);
    at.forms = view.forms(k);
  }
  const auto outside = steps_outside_kernels(plan);
  const auto own = outside.find(id);
  const PlanStep* const step = own == outside.end() ? nullptr : own->second;
  if (result.placements.empty()) result.step = step_text(computation, step, node);
  if (result.placements.empty() && result.step.empty() && plan.peer != nullptr)
    result.step = "in no step: its readers have it where it lies";
  if (const auto product =
          result.placements.empty() ? called_product(computation, plan, step, node) : std::nullopt)
    result.library_time = to_text(*product, library_time(target, *product));
  for (const Decision& decision : view.decisions())
    if (decision.subject == op || decision.object == op) result.decisions.push_back(decision);
  result.neighbours = Neighbours(graph, view, plan, id).run();
  for (Neighbour& n : result.neighbours)
    if (n.refusal) n.needs = remedy(target, *n.refusal);
  result.refusals = other_refusals(target, view, result);
  return result;
}

}  // namespace

}  // namespace stitchwork
