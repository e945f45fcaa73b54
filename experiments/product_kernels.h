// Matrix products of an exploration by our own tiled kernels, each timed in the simulator.
#pragma once

#include "analysis/planners/astra/minibatches.h"
#include "runtime/tiled_products.h"

namespace stitchwork {

/// Whether every product of a model that a row of Astra plans with these options is one of a tiled kernel:
/// all product times of an exploration have one source.
Verdict all_tiled(const Graph& model, const std::string& planner, const PlanOptions& options);

/// No quantity: the name of the kernel that products have before another is tried, neither coarse nor fine.
inline constexpr const char* kDefaultTiled = "tiled-64x64";

/// All of tiled_products(), kDefaultTiled first.
std::vector<std::string> tiled_kernel_names();
/// Of these. `products` outlives what is returned.
astra::ProductKernels tiled_kernels(SimulatedProducts& products);

}  // namespace stitchwork
