// The planners of Astra (docs/planners/astra.md): rows of the planner table.
#pragma once

#include "analysis/planners/planner.h"
#include "core/substitute/rewritten_graph.h"

namespace stitchwork {

/// The model with products joined as exploring modelled times finds best; the steps are fuse-products. The
/// model itself where nothing is gained by the whole plan's time.
rewriting::RewrittenGraph rewrite_astra(const Graph& model, const Device& device, const PlanOptions& options,
                                        Recorder& recorder);

/// Kernels by the planner that the knob `elementwise` names; steps on as many streams as the knob `streams`
/// says, dealt as exploring modelled times finds best.
FusionPlan plan_astra(const Graph& graph, const Device& device, const PlanOptions& options);

namespace astra {

/// Whether the row is one of Astra's: there is something to explore.
bool explores(const Planner& row);

/// By the planner that the knob names; predicted, not verified.
FusionPlan plan_elementwise(const Graph& graph, const Device& device, const PlanOptions& options);

/// Deals the steps of a predicted plan to streams: exploring epochs in turn, super-epochs at once.
void put_on_streams(const Graph& graph, const Device& device, FusionPlan& plan, int streams,
                    Recorder& recorder);

}  // namespace astra
}  // namespace stitchwork
