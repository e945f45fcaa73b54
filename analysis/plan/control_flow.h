// Loops and branches in plans: the computations they run are planned as graphs of their own.
#pragma once

#include <optional>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork {

/// while and conditional.
bool is_control(const Node& node);

/// The module up to computation `id`, with that as its entry. Ids of nodes and computations stay.
Graph with_entry(const Graph& graph, ComputationId id);
/// The same as it is planned and run: a loop's body updates arrays of its state in place
/// (core/passes/in_place.h).
Graph entered(const Graph& graph, ComputationId id);

/// The computations that loops and branches reachable from the entry run, each once, callees first. The
/// conditions of loops whose trips the text tells are not: the host counts.
std::vector<ComputationId> run_by_control(const Graph& graph);

/// Whether a loop with these trips (PlanStep::trips) runs without its condition.
bool is_counted(const Node& loop, const std::optional<std::int64_t>& trips);

/// Launch gaps between what a loop runs, one after another; 0 of branches.
double control_gaps_us(const Device& device, const Node& node, const std::optional<std::int64_t>& trips);

/// What a loop or branch of `node`'s kind takes if one run of its i-th computation takes cost(i): a loop its
/// body's times its trips (once where they are unknown), and where it is not counted its condition's as often
/// and once more; a branch the costliest of its computations.
template <typename Cost>
auto control_cost(const Node& node, const std::optional<std::int64_t>& trips, Cost&& cost) {
  if (node.op == Op::kWhile) {
    const auto body = cost(1);
    const std::int64_t times = trips.value_or(1);
    if (is_counted(node, trips)) return times * body;
    const auto condition = cost(0);
    return times * (condition + body) + condition;
  }
  auto most = cost(0);
  for (std::size_t i = 1; i < node.attrs.computations.size(); ++i)
    if (const auto other = cost(i); most < other) most = other;
  return most;
}

/// How often each of the plan's computations runs, by its index in plan.computations: loops as often as
/// their trips (once where they are unknown), of branches the costliest.
std::vector<std::int64_t> runs_of_computations(const Graph& graph, const FusionPlan& plan);

/// Adds the times of what its control steps run to a plan, with the gaps between. `computations` has complete
/// plans of it.
void add_control(const Graph& graph, const Device& device, FusionPlan& plan,
                 const std::vector<ComputationPlan>& computations);
/// The same of dynamic_memory_kernels, as often as they run (a loop whose trips are unknown: once).
void add_control_counts(const Graph& graph, FusionPlan& plan,
                        const std::vector<ComputationPlan>& computations);

/// Library calls of a complete plan, counted as dynamic_memory_kernels are.
std::int64_t dynamic_library_calls(const Graph& graph, const FusionPlan& plan);

}  // namespace stitchwork
