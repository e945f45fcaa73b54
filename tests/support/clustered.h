// Plans whose rows the blocks of clusters share, whether or not a planner would choose so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "analysis/plan/assemble.h"
#include "analysis/plan/mapping.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/launch.h"
#include "analysis/verify/verify.h"
#include "core/base/arithmetic.h"

namespace stitchwork::testing {

inline bool is_clustered(const FusionPlan& plan) {
  return std::any_of(plan.kernels.begin(), plan.kernels.end(),
                     [](const KernelPlan& kernel) { return kernel.launch.cluster > 1; });
}

/// The grid, partials of sums across the rows and the workspace that the kernel's mappings now ask for.
inline void launch_anew(const Computation& computation, KernelPlan& kernel) {
  KernelLaunch& launch = kernel.launch;
  for (const Group& group : kernel.groups)
    for (MemorySlot& slot : kernel.scratch)
      if (is_across(group, slot.op))
        slot.bytes = across_bytes(group.mapping, group.deal, computation.node(slot.op).shape.dtype);
  launch.scratch_bytes = 0;
  for (MemorySlot& slot : kernel.scratch) {
    slot.offset = launch.scratch_bytes;
    launch.scratch_bytes = round_up(slot.offset + slot.bytes, std::int64_t{256});
  }
  launch.grid = 1;
  for (Group& group : kernel.groups) {
    group.deal.first_block = 0;
    group.lane = 0;  // one after the other
    launch.grid = std::max(launch.grid, round_up(group.deal.blocks(), std::int64_t{launch.cluster}));
  }
  std::erase_if(kernel.shared, [](const MemorySlot& slot) { return slot.op == kNoNode; });
  launch.shared_bytes = 0;
  for (const MemorySlot& slot : kernel.shared)
    launch.shared_bytes = std::max(launch.shared_bytes, slot.offset + slot.bytes);
  const std::int64_t workspace = reduction_workspace_bytes(computation, kernel);
  if (workspace == 0) return;
  launch.shared_bytes = round_up(launch.shared_bytes, std::int64_t{16});
  kernel.shared.push_back({kNoNode, launch.shared_bytes, workspace});
  launch.shared_bytes += workspace;
}

/// The groups' rows shared by clusters of so many blocks, of which there are at most `clusters` a group;
/// false where verify says that they cannot be.
inline bool share_rows(const Graph& graph, const Device& target, FusionPlan& plan, std::size_t k, int cluster,
                       std::int64_t clusters) {
  FusionPlan changed = plan;
  KernelPlan& kernel = changed.kernels[k];
  bool some = false;
  for (Group& group : kernel.groups) {
    if (!packs_rows(group.mapping) || is_staged(group.mapping)) continue;
    some = true;
    const auto [rows, cols] = extents(group.mapping);
    const mapping::Cluster shared{cluster, cluster * kernel.launch.block, vectors(group.mapping),
                                  std::nullopt};
    group.mapping = mapping::Rows{rows, cols, shared};
    group.deal = deal_to(group.mapping, clusters);
  }
  if (!some) return false;
  kernel.launch.cluster = cluster;
  launch_anew(graph.entry_computation(), kernel);
  if (!verify(graph, target, changed).empty()) return false;
  plan = std::move(changed);
  return true;
}

}  // namespace stitchwork::testing
