#include "analysis/plan/control_flow.h"

#include <algorithm>

#include "analysis/plan/loop_state.h"
#include "core/base/error.h"
#include "core/graph/rewrite.h"
#include "core/passes/in_place.h"
#include "core/passes/trip_count.h"

namespace stitchwork {

bool is_control(const Node& node) { return node.op == Op::kWhile || node.op == Op::kConditional; }

Graph with_entry(const Graph& graph, ComputationId id) {
  Graph result = head_of(graph);
  result.computations.assign(graph.computations.begin(), graph.computations.begin() + id + 1);
  result.entry = id;
  return result;
}

Graph entered(const Graph& graph, ComputationId id) {
  Graph result = with_entry(graph, id);
  const bool body = std::ranges::any_of(graph.computations, [&](const Computation& caller) {
    return std::ranges::any_of(caller.nodes, [&](const Node& node) {
      return node.op == Op::kWhile && node.attrs.computations.at(1) == id;
    });
  });
  if (body) update_in_place(result.computations.back());
  return result;
}

std::vector<ComputationId> run_by_control(const Graph& graph) {
  // Callers come after their callees: backwards, whether a computation runs is known before its own ops are
  // seen.
  std::vector<bool> runs(graph.computations.size(), false);
  runs[static_cast<std::size_t>(graph.entry)] = true;
  std::vector<ComputationId> result;
  for (std::size_t c = graph.computations.size(); c-- > 0;) {
    if (!runs[c]) continue;
    for (const Node& node : graph.computations[c].nodes) {
      if (!is_control(node)) continue;
      const bool counted =
          node.op == Op::kWhile && is_counted(node, trip_count(graph, graph.computations[c], node));
      for (std::size_t i = counted ? 1 : 0; i < node.attrs.computations.size(); ++i)
        runs[static_cast<std::size_t>(node.attrs.computations[i])] = true;
    }
  }
  for (std::size_t c = 0; c < runs.size(); ++c)
    if (runs[c] && static_cast<ComputationId>(c) != graph.entry)
      result.push_back(static_cast<ComputationId>(c));
  return result;
}

bool is_counted(const Node& loop, const std::optional<std::int64_t>& trips) {
  return trips.has_value() && !trips_are_assumed(loop);
}

double control_gaps_us(const Device& device, const Node& node, const std::optional<std::int64_t>& trips) {
  if (node.op != Op::kWhile) return 0;
  const std::int64_t bodies = trips.value_or(1);
  const std::int64_t gaps = is_counted(node, trips) ? std::max<std::int64_t>(0, bodies - 1) : 2 * bodies;
  return static_cast<double>(gaps) * device.launch_gap_us;
}

namespace {

const FusionPlan& part_of(const std::vector<ComputationPlan>& computations, ComputationId id) {
  const auto found = std::ranges::find(computations, id, &ComputationPlan::computation);
  SW_CHECK(found != computations.end(), "computation {} has no plan", id);
  return found->plan;
}

/// Calls add(step, node, sum) of every control step: sum(what) is that of all it runs, `what` being of one
/// plan.
template <typename Add>
void for_each_control(const Graph& graph, FusionPlan& plan, const std::vector<ComputationPlan>& computations,
                      Add add) {
  const Computation& computation = graph.entry_computation();
  for (PlanStep& step : plan.steps) {
    if (step.kind != StepKind::kControl) continue;
    const Node& node = computation.node(step.nodes.at(0));
    add(step, node, [&](auto what) {
      return control_cost(node, step.trips, [&](std::size_t i) {
        return what(part_of(computations, node.attrs.computations[i]));
      });
    });
  }
}

}  // namespace

std::vector<std::int64_t> runs_of_computations(const Graph& model, const FusionPlan& plan) {
  const Graph& graph = planned_graph(model, plan);
  std::vector<std::int64_t> runs(plan.computations.size(), 0);
  const auto index_of = [&](ComputationId id) {
    const auto found = std::ranges::find(plan.computations, id, &ComputationPlan::computation);
    SW_CHECK(found != plan.computations.end(), "computation {} has no plan", id);
    return static_cast<std::size_t>(found - plan.computations.begin());
  };
  const auto add = [&](const Computation& computation, const FusionPlan& part, std::int64_t times) {
    for (const PlanStep& step : part.steps) {
      if (step.kind != StepKind::kControl) continue;
      const Node& node = computation.node(step.nodes.at(0));
      if (node.op == Op::kWhile) {
        const std::int64_t trips = step.trips.value_or(1);
        if (!is_counted(node, step.trips))
          runs[index_of(node.attrs.computations.at(0))] += times * (trips + 1);
        runs[index_of(node.attrs.computations.at(1))] += times * trips;
        continue;
      }
      const auto costliest = std::ranges::max_element(node.attrs.computations, {}, [&](ComputationId id) {
        return plan.computations[index_of(id)].plan.predicted_us;
      });
      runs[index_of(*costliest)] += times;
    }
  };
  add(graph.entry_computation(), plan, 1);
  for (std::size_t c = plan.computations.size(); c-- > 0;)  // callees come first
    add(graph.computation(plan.computations[c].computation), plan.computations[c].plan, runs[c]);
  return runs;
}

void add_control(const Graph& graph, const Device& device, FusionPlan& plan,
                 const std::vector<ComputationPlan>& computations) {
  for_each_control(graph, plan, computations, [&](PlanStep& step, const Node& node, auto sum) {
    step.predicted_us = sum([](const FusionPlan& part) { return part.predicted_us; }) +
                        control_gaps_us(device, node, step.trips) +
                        copied_state_us(graph, device, plan, step);
    plan.predicted_us += step.predicted_us;
  });
}

void add_control_counts(const Graph& graph, FusionPlan& plan,
                        const std::vector<ComputationPlan>& computations) {
  for_each_control(graph, plan, computations, [&](const PlanStep&, const Node&, auto sum) {
    plan.counts.dynamic_memory_kernels +=
        sum([](const FusionPlan& part) { return part.counts.dynamic_memory_kernels; });
  });
}

namespace {

/// Of one run of the steps of `plan`, a plan of `computation`; `parts` are those of all that runs in it.
std::int64_t calls_of(const Graph& graph, const Computation& computation, const FusionPlan& plan,
                      const std::vector<ComputationPlan>& parts) {
  std::int64_t calls = 0;
  for (const PlanStep& step : plan.steps) {
    calls += step.kind == StepKind::kLibrary ? 1 : 0;
    if (step.kind != StepKind::kControl) continue;
    const Node& node = computation.node(step.nodes.at(0));
    calls += control_cost(node, step.trips, [&](std::size_t i) {
      const ComputationId id = node.attrs.computations[i];
      return calls_of(graph, graph.computation(id), part_of(parts, id), parts);
    });
  }
  return calls;
}

}  // namespace

std::int64_t dynamic_library_calls(const Graph& model, const FusionPlan& plan) {
  const Graph& graph = planned_graph(model, plan);
  return calls_of(graph, graph.entry_computation(), plan, plan.computations);
}

}  // namespace stitchwork
