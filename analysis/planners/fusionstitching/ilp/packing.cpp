#include "analysis/planners/fusionstitching/ilp/packing.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/judge/cost.h"
#include "analysis/planners/best_kernel.h"

namespace stitchwork::fusionstitching {

PackedKernel pack(const Ops& ops, const std::vector<NodeId>& pattern, const IlpOptions& options) {
  const astitch::Nodes& nodes = *ops.nodes;
  astitch::Options knobs;
  knobs.tuned = options.tuned;
  knobs.register_relaxation = false;
  knobs.shared_reuse = options.shared_reuse;
  knobs.constraints.block = options.constraints.block;
  BestKernel best = best_kernel(nodes, astitch::stitch_op(nodes, pattern), *ops.device, knobs);
  PackedKernel result;
  result.tried = 1;
  if (best.kernels.size() != 1) {
    result.made = Verdict::no("fs19.kernel-limits", "more than one kernel");
    return result;
  }
  KernelPlan& kernel = best.kernels.front();
  if (kernel.launch.grid_barriers > 0 || !kernel.scratch.empty()) {
    result.made = Verdict::no("fs19.layout", "a value is read across blocks");
    return result;
  }
  result.us = kernel_cost(*nodes.graph, *ops.device, kernel).predicted_us;
  result.one_block = kernel.launch.grid == 1;
  result.kernel = std::move(kernel);
  return result;
}

}  // namespace stitchwork::fusionstitching
