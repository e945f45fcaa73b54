#include "gui/page/excerpt.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <unordered_set>

#include "analysis/explain/explain.h"
#include "analysis/facts/facts.h"
#include "analysis/plan/control_flow.h"
#include "core/base/at.h"
#include "core/base/sorted.h"

namespace stitchwork::gui {
namespace {

// Each is a choice, not measured: what a reader cannot take in is not listed.
constexpr std::size_t kOperandsFollowed = 64;  ///< an op of more does not bring its operands with it
constexpr int kReadersElsewhere = 20;          ///< of a value, steps that are not shown
constexpr std::size_t kCostliest = 20;         ///< steps of the whole plan, in the summary

const std::vector<NodeId>& evaluated(const FusionPlan& plan, const PlanStep& step) {
  return step.kind == StepKind::kKernel ? plan.kernels[at(step.kernel)].ops : step.nodes;
}

bool is_closed(const FusionPlan& plan, const PlanStep& step) {
  return step.kind == StepKind::kKernel && evaluated(plan, step).size() > kOpsOfExcerpt;
}

/// Steps to be shown, of a plan of `graph`'s entry: those with an op that is wanted, in their order, until
/// they have twice the ops of an excerpt: kernels may reach far beyond the range.
std::vector<char> steps_shown(const FusionPlan& plan, const std::function<bool(NodeId)>& wanted) {
  std::vector<char> shown(plan.steps.size());
  std::size_t ops = 0;
  for (std::size_t s = 0; s < plan.steps.size() && ops < 2 * kOpsOfExcerpt; ++s) {
    const PlanStep& step = plan.steps[s];
    if (!std::ranges::any_of(evaluated(plan, step), wanted)) continue;
    shown[s] = 1;
    ops += is_closed(plan, step) ? 1 : evaluated(plan, step).size();
  }
  return shown;
}

/// Steps, kernels and boundaries.
PartExcerpt part_of(const Graph& graph, const FusionPlan& plan, const std::vector<char>& shown) {
  PartExcerpt part;
  int steps = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    part.step.push_back(shown[s] != 0 ? steps++ : -1);
    if (shown[s] != 0 && plan.steps[s].kernel >= 0) part.kernels.push_back(at(plan.steps[s].kernel));
  }
  std::ranges::sort(part.kernels);
  std::map<NodeId, int> elsewhere;
  for (const StepBoundary& b : boundaries(graph, plan)) {
    const bool from = shown[at(b.from)] != 0, to = b.to >= 0 && shown[at(b.to)] != 0;
    if (!from && !to) continue;
    if (!to && b.to >= 0 && ++elsewhere[b.value] > kReadersElsewhere) continue;
    part.boundaries.push_back(b);
  }
  return part;
}

/// Ops of what is shown, what they read, and the ends of boundaries.
void add_ops(const Computation& computation, const FusionPlan& plan,
             const std::function<bool(NodeId)>& wanted, PartExcerpt& part) {
  std::vector<char> shown(computation.nodes.size());
  const auto add = [&](NodeId op) {
    if (op != kNoNode) shown[at(op)] = 1;
  };
  std::size_t wished = 0;
  for (const Node& node : computation.nodes)
    if (wished < 2 * kOpsOfExcerpt && wanted(node.id)) add(node.id), ++wished;
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    if (part.step[s] >= 0 && !is_closed(plan, plan.steps[s]))
      std::ranges::for_each(evaluated(plan, plan.steps[s]), add);
  for (const StepBoundary& b : part.boundaries) add(b.value), add(b.reader);
  std::vector<char> own = shown;
  for (const Node& node : computation.nodes)
    if (own[at(node.id)] != 0 && node.operands.size() <= kOperandsFollowed)
      std::ranges::for_each(node.operands, add);
  part.row.assign(computation.nodes.size(), -1);
  for (const Node& node : computation.nodes)
    if (shown[at(node.id)] != 0) {
      part.row[at(node.id)] = static_cast<int>(part.ops.size());
      part.ops.push_back(node.id);
    }
}

PartExcerpt whole_part(const Graph& graph, const FusionPlan& plan) {
  PartExcerpt part;
  part.step.resize(plan.steps.size());
  std::iota(part.step.begin(), part.step.end(), 0);
  part.kernels.resize(plan.kernels.size());
  std::iota(part.kernels.begin(), part.kernels.end(), 0);
  part.row.resize(graph.entry_computation().nodes.size());
  std::iota(part.row.begin(), part.row.end(), 0);
  part.ops.assign(part.row.begin(), part.row.end());
  part.boundaries = boundaries(graph, plan);
  return part;
}

/// The part's steps and kernels that are shown in place of all.
void keep_shown(const PartExcerpt& part, FusionPlan& plan) {
  std::map<int, int> kernel;
  std::vector<KernelPlan> kernels;
  for (const std::size_t k : part.kernels) {
    kernel[static_cast<int>(k)] = static_cast<int>(kernels.size());
    kernels.push_back(std::move(plan.kernels[k]));
  }
  std::vector<PlanStep> steps;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (part.step[s] < 0) continue;
    PlanStep& step = steps.emplace_back(std::move(plan.steps[s]));
    if (step.kernel >= 0) step.kernel = kernel.at(step.kernel);
    std::erase_if(step.waits, [&](int other) { return part.step[at(other)] < 0; });
    for (int& other : step.waits) other = part.step[at(other)];
  }
  plan.kernels = std::move(kernels);
  plan.steps = std::move(steps);
}

/// Names of the ops whose decisions tell why a page's steps end where they do: those shown, those of the
/// steps that they meet, and the result's, by which planners speak of the whole.
std::unordered_set<std::string> names_near(const Computation& computation, const FusionPlan& plan,
                                           const PartExcerpt& part) {
  std::unordered_set<std::string> near{computation.node(computation.root).name};
  std::set<int> steps;
  for (const StepBoundary& b : part.boundaries)
    for (const int step : {b.from, b.to})
      if (step >= 0) steps.insert(step);
  for (const int step : steps)
    for (const NodeId op : evaluated(plan, plan.steps[at(step)])) near.insert(computation.node(op).name);
  for (const NodeId op : part.ops) near.insert(computation.node(op).name);
  return near;
}

/// The entry's decisions about ops of these names; of a plan that has none, those of planning again.
void keep_near(const Graph& model, const std::unordered_set<std::string>& near, FusionPlan& plan) {
  std::vector<Decision> decisions =
      decisions_behind(model, plan, std::vector<std::string>(near.begin(), near.end()));
  std::erase_if(decisions,
                [&](const Decision& d) { return !near.contains(d.subject) && !near.contains(d.object); });
  for (const ComputationPlan& body : plan.computations)
    decisions.insert(decisions.end(), body.plan.decisions.begin(), body.plan.decisions.end());
  plan.decisions = std::move(decisions);
}

/// Whether the page has what a loop or branch runs: a step that is shown runs it, and it is small enough.
bool is_run(const Graph& graph, const PlanExcerpt& excerpt, const ComputationPlan& body) {
  if (graph.computations[at(body.computation)].nodes.size() > kOpsOfExcerpt) return false;
  const auto runs = [&](const Computation& computation, const FusionPlan& plan, const PartExcerpt& part) {
    for (std::size_t s = 0; s < plan.steps.size(); ++s)
      if (part.step[s] >= 0 && plan.steps[s].kind == StepKind::kControl &&
          std::ranges::count(computation.node(plan.steps[s].nodes.at(0)).attrs.computations,
                             body.computation) > 0)
        return true;
    return false;
  };
  return runs(graph.entry_computation(), excerpt.plan, excerpt.parts.front());
}

nlohmann::ordered_json summary_json(const Graph& model, const PlanExcerpt& excerpt, const OpRange& range) {
  const Computation& computation = model.entry_computation();
  const FusionPlan& plan = excerpt.plan;
  std::vector<const PlanStep*> costliest;
  for (const PlanStep& step : plan.steps) costliest.push_back(&step);
  const std::size_t most = std::min(kCostliest, costliest.size());
  std::ranges::stable_sort(costliest, std::greater<>(), &PlanStep::predicted_us);
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  const Computation& planned = planned_graph(model, plan).entry_computation();
  for (std::size_t i = 0; i < most; ++i) {
    const PlanStep& step = *costliest[i];
    const std::vector<NodeId> of = model_ops(plan, op_of(plan, step));
    steps.push_back({{"id", step.id},
                     {"name", step.kernel >= 0 ? plan.kernels[at(step.kernel)].name
                                               : std::string(def(planned.node(step.nodes.front()).op).name)},
                     {"ops", evaluated(plan, step).size()},
                     {"predicted_us", step.predicted_us},
                     {"around", of.empty() ? nlohmann::ordered_json()
                                           : nlohmann::ordered_json(computation.node(of.back()).name)}});
  }
  return {{"first", computation.node(range.first).name},
          {"last", computation.node(range.last - 1).name},
          {"ops", excerpt.parts.front().ops.size()},
          {"of_ops", planned.nodes.size()},
          {"steps", excerpt.shown.steps.size()},
          {"of_steps", plan.steps.size()},
          {"closed", excerpt.closed},
          {"costliest", std::move(steps)}};
}

}  // namespace

std::optional<OpRange> excerpt_range(const Graph& model, const std::string& around) {
  const Computation& computation = model.entry_computation();
  const NodeId middle = around.empty() ? 0 : op_named(computation, around);
  std::size_t ops = 0;
  for (const Computation& each : model.computations) ops += each.nodes.size();
  if (ops <= kMostOpsOfPage) return std::nullopt;
  const auto all = static_cast<NodeId>(computation.nodes.size()),
             wide = std::min(static_cast<NodeId>(kOpsOfExcerpt), all);
  const NodeId first = std::clamp(middle - wide / 2, NodeId{0}, all - wide);
  return OpRange{first, first + wide};
}

std::vector<std::string> ops_in(const Graph& model, const OpRange& range) {
  std::vector<std::string> names;
  for (NodeId op = range.first; op < range.last; ++op)
    names.push_back(model.entry_computation().node(op).name);
  return names;
}

PlanExcerpt excerpt(const Graph& model, const FusionPlan& plan, const std::optional<OpRange>& range) {
  const Graph& graph = planned_graph(model, plan);
  PlanExcerpt result{plan, plan, {}, {}, nullptr};
  result.shown.decisions.clear();
  if (!range) {
    result.parts.push_back(whole_part(graph, plan));
    for (const ComputationPlan& body : plan.computations)
      result.parts.push_back(whole_part(entered(graph, body.computation), body.plan));
    return result;
  }
  const auto wanted = [&](NodeId op) {
    return std::ranges::any_of(model_ops(plan, op),
                               [&](NodeId of) { return range->first <= of && of < range->last; });
  };
  PartExcerpt& entry = result.parts.emplace_back(part_of(graph, plan, steps_shown(plan, wanted)));
  add_ops(graph.entry_computation(), plan, wanted, entry);
  keep_shown(entry, result.shown);
  for (const KernelPlan& kernel : result.shown.kernels)
    if (kernel.ops.size() > kOpsOfExcerpt) result.closed.insert(kernel.id);
  keep_near(model_graph(model, plan), names_near(graph.entry_computation(), plan, entry), result.plan);
  for (std::size_t c = 0; c < plan.computations.size(); ++c) {
    const ComputationPlan& body = plan.computations[c];
    const bool run = is_run(graph, result, body);
    const Graph own = entered(graph, body.computation);
    PartExcerpt& part =
        result.parts.emplace_back(run ? whole_part(own, body.plan)
                                      : part_of(own, body.plan, std::vector<char>(body.plan.steps.size())));
    if (!run) part.row.assign(own.entry_computation().nodes.size(), -1);
    keep_shown(part, result.shown.computations[c].plan);
  }
  result.summary = summary_json(model_graph(model, plan), result, *range);
  return result;
}

FusionPlan closed_plan(const PlanExcerpt& excerpt) {
  FusionPlan plan = excerpt.shown;
  for (KernelPlan& kernel : plan.kernels)
    if (excerpt.closed.contains(kernel.id)) {
      kernel.ops.clear();
      kernel.outputs.clear();
      kernel.groups.clear();
      kernel.schemes.clear();
    }
  return plan;
}

std::string step_elsewhere(const Graph& graph, const FusionPlan& plan, int s) {
  const PlanStep& step = plan.steps[at(s)];
  if (step.kind == StepKind::kKernel)
    return fmt::format("kernel {} {}", step.id, plan.kernels[at(step.kernel)].name);
  const Computation& computation = graph.entry_computation();
  return step_text(computation, &step, computation.node(step.nodes.front()));
}

}  // namespace stitchwork::gui
