// The estimate for whoever has a faster kernel already: it ends as soon as a kernel is known to be slower.
#pragma once

#include <optional>

#include "analysis/judge/cost.h"

namespace stitchwork {

/// kernel_cost's predicted_us of a generated kernel where that is at most `most_us`, to the last bit.
/// `found`: what the kernel's groups evaluate.
std::optional<double> us_within(const Graph& graph, const Device& device, const KernelPlan& kernel,
                                const KernelEvaluations& found, double most_us);

}  // namespace stitchwork
