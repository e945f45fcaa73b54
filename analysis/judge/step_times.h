// Steps of a plan on their streams: what each takes of the device, and when the last ends.
#pragma once

#include <span>
#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/schedule/evaluations.h"
#include "occupancy_model/streams.h"

namespace stitchwork {

/// Modelled, of each step as it runs alone; nothing of a control step. `found` is what the kernels evaluate.
std::vector<StreamKernel> step_kernels(const Graph& graph, const Device& device, const FusionPlan& plan,
                                       const PlanEvaluations& found);

/// The same kernels where each takes so much time: shares of the device stay what they are.
std::vector<StreamKernel> with_times(std::vector<StreamKernel> kernels, std::span<const double> us);

/// When each step begins and ends on its stream; the host takes `dispatch_us` to launch each, in order.
std::vector<StreamSpan> step_spans(const Device& device, const FusionPlan& plan,
                                   std::span<const StreamKernel> kernels, double dispatch_us = 0);
/// When the last step ends, us.
double last_end_us(std::span<const StreamSpan> spans);

}  // namespace stitchwork
