#include "analysis/planners/fusionstitching/ilp/tuned.h"

#include <algorithm>

#include "analysis/forms/best_kernel.h"

namespace stitchwork::fusionstitching {

std::optional<KernelPlan> tuned_kernel(const Ops& ops, const std::vector<NodeId>& pattern,
                                       const IlpOptions& options) {
  const auto is_other = [&](NodeId id) { return is_product(ops[id].kind) || !ops[id].fusible; };
  if (std::any_of(pattern.begin(), pattern.end(), is_other)) return std::nullopt;
  astitch::Options knobs;
  knobs.tuned = true;
  knobs.register_relaxation = false;
  knobs.shared_reuse = options.shared_reuse;
  knobs.constraints.block = options.constraints.block;
  BestKernel best = best_kernel(*ops.nodes, astitch::stitch_op(*ops.nodes, pattern), *ops.device, knobs);
  if (best.kernels.size() != 1) return std::nullopt;
  KernelPlan& kernel = best.kernels.front();
  const KernelLaunch& launch = kernel.launch;
  if (launch.grid_barriers > 0 || launch.register_bound > 0 || !kernel.scratch.empty() ||
      launch.shared_bytes > ops.device->shared_bytes_per_block_default)
    return std::nullopt;
  if (std::any_of(kernel.groups.begin(), kernel.groups.end(),
                  [](const Group& group) { return segments(group.mapping) > 1; }))
    return std::nullopt;
  return std::move(kernel);
}

}  // namespace stitchwork::fusionstitching
