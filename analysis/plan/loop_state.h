// Arrays of a loop's state that its body updates in place (core/passes/in_place.h), and what has to be copied
// for that.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork {

/// Elements of the state of `loop`, a while of the graph, that its body updates in place, ascending.
std::vector<int> updated_in_place(const Graph& graph, const Node& loop);

/// Of those that a step of a plan of `graph`'s entry starts from, the ones that it copies before the first
/// trip, ascending: what is no buffer of a kernel's or call's own, and what somebody reads behind the loop,
/// or another element of its state is. (XLA inserts copies by the same need.) None of what its trips write
/// from end to end (analysis/plan/written_state.h), of a compiler's plan, which has steps for them, and of
/// steps that are no loops.
std::vector<int> copied_state(const Graph& graph, const FusionPlan& plan, const PlanStep& step);
/// Read and written by these copies.
std::int64_t copied_state_bytes(const Graph& graph, const FusionPlan& plan, const PlanStep& step);
/// Their time, with the gaps behind them.
double copied_state_us(const Graph& graph, const Device& device, const FusionPlan& plan,
                       const PlanStep& step);

}  // namespace stitchwork
