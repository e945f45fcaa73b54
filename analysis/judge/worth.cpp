// What kernels are worth by the estimate.
#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/judge/cost.h"
#include "analysis/judge/order.h"
#include "analysis/plan/assemble.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace {

bool is_any(const KernelPlan& kernel, bool (*is)(const Group&)) {
  return std::any_of(kernel.groups.begin(), kernel.groups.end(), is);
}

bool adds_atomically(const Group& group) { return combines_atomically(group.mapping); }

Simplicity simplicity(const KernelPlan& kernel) {
  const bool copies = is_any(kernel, [](const Group& g) { return copy_depth(g.mapping) > 0; });
  const bool staged = is_any(kernel, [](const Group& g) { return is_staged(g.mapping); });
  const bool clusters = kernel.launch.cluster > 1, atomics = is_any(kernel, adds_atomically);
  Simplicity result;
  result.grid_barriers = kernel.launch.grid_barriers;
  result.kinds_of_sync = static_cast<int>(kernel.launch.grid_barriers > 0) + static_cast<int>(clusters) +
                         static_cast<int>(!kernel.shared.empty()) + static_cast<int>(copies) +
                         static_cast<int>(atomics);
  result.steps = static_cast<int>(kernel.groups.size());
  result.choices = static_cast<int>(staged) + static_cast<int>(clusters) +
                   static_cast<int>(is_any(kernel, [](const Group& g) { return !g.across.empty(); })) +
                   static_cast<int>(is_any(kernel, [](const Group& g) { return !g.one_pass.empty(); })) +
                   static_cast<int>(is_any(kernel, [](const Group& g) { return segments(g.mapping) > 1; }));
  return result;
}

/// What sets the results of atomics to zero before the kernel.
double memsets_us(const Computation& computation, const Device& device, const KernelPlan& kernel) {
  double us = 0;
  for (const Group& group : kernel.groups) {
    if (!adds_atomically(group)) continue;
    for (const NodeId id : materialised(group)) {
      const Node& node = computation.node(id);
      if (is_reduction(node))
        us += transfer_us(device, static_cast<double>(node.shape.byte_size())) + device.launch_gap_us;
    }
  }
  return us;
}

}  // namespace

Worth worth(const Graph& graph, const Device& device, std::span<const KernelPlan> kernels) {
  Worth sum;
  for (const KernelPlan& kernel : kernels) {
    const KernelCost cost = kernel_cost(graph, device, kernel);
    sum.us +=
        cost.predicted_us + device.launch_gap_us + memsets_us(graph.entry_computation(), device, kernel);
    sum.dram_sectors += cost.work.dram_sectors;
    sum.l2_sectors += cost.work.l2_sectors;
    const Simplicity of = simplicity(kernel);
    sum.simple.grid_barriers += of.grid_barriers;
    sum.simple.kinds_of_sync = std::max(sum.simple.kinds_of_sync, of.kinds_of_sync);
    sum.simple.steps += of.steps;
    sum.simple.choices += of.choices;
  }
  return sum;
}

}  // namespace stitchwork
