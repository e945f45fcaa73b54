#include "analysis/planners/fusionstitching/ilp/tuned.h"

#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/forms/best_kernel.h"
#include "analysis/judge/judge.h"
#include "analysis/planners/fusionstitching/alone.h"
#include "analysis/planners/fusionstitching/ilp/pattern.h"
#include "analysis/schedule/inlined_kernel.h"
#include "analysis/schedule/plain_mapping.h"

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

std::optional<KernelPlan> summed_kernel(const Ops& ops, const std::vector<NodeId>& pattern) {
  const Graph& graph = *ops.nodes->graph;
  const Computation& computation = *ops.nodes->computation;
  const std::vector<NodeId> results = outputs_of(ops, pattern);
  const auto is_other = [&](NodeId id) { return ops[id].fusible && ops[id].kind == OpKind::kElementwise; };
  if (results.size() != 1 || !is_reduction(ops[results.front()].kind) ||
      std::ranges::count_if(pattern, is_other) + 1 != std::ssize(pattern))
    return std::nullopt;
  const NodeId sum = results.front();
  const Dealt dealt = eager_mapping(graph, *ops.device, computation.node(sum));
  if (segments(dealt.mapping) == 1) return std::nullopt;
  auto kernel = inlined_within_maps(computation, evaluated_ops(*ops.nodes, pattern), {sum}, sum, dealt);
  if (std::holds_alternative<NodeId>(kernel)) return std::nullopt;
  KernelPlan& made = std::get<KernelPlan>(kernel);
  made.outputs = {sum};
  return std::move(made);
}

double modelled_us(const Ops& ops, const KernelPlan& kernel) {
  return modelled_judge().worth(*ops.nodes->graph, *ops.device, {&kernel, 1}).us - ops.device->launch_gap_us;
}

}  // namespace stitchwork::fusionstitching
