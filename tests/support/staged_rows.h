// Plans whose tasks are single rows in tiles of shared memory, whether or not a planner would choose so.
#pragma once

#include <algorithm>
#include <cstdint>

#include "analysis/forms/staging.h"
#include "analysis/plan/mapping.h"
#include "analysis/schedule/clusters.h"
#include "analysis/verify/verify.h"
#include "core/base/arithmetic.h"
#include "tests/support/clustered.h"

namespace stitchwork::testing {

/// The kernel's rows taken one by one, by all threads of a block or cluster, through tiles, on at most
/// `takers` of these a group, copied for `stages` tasks at a time where a block has so many, by threads or in
/// `bulk`; false where staging or verify says that they cannot be.
inline bool stage_single_rows(const Graph& graph, const Device& target, FusionPlan& plan, std::size_t k,
                              std::int64_t takers, int cluster = 1, int vector = 1, int unroll = 1,
                              int stages = 0, bool bulk = false) {
  const Computation& computation = graph.entry_computation();
  FusionPlan changed = plan;
  KernelPlan& kernel = changed.kernels[k];
  KernelLaunch& launch = kernel.launch;
  launch.block = static_cast<int>(round_up(launch.block, std::int64_t{32}));
  launch.cluster = cluster;
  bool some = false;
  for (Group& group : kernel.groups) {
    const auto [rows, cols] = extents(group.mapping);
    if (!packs_rows(group.mapping) || cols < 2) continue;
    some = true;
    group.deal = {std::max<std::int64_t>(1, rows), std::clamp<std::int64_t>(rows, 1, takers), 0, cluster};
    const int depth = static_cast<int>(std::min<std::int64_t>(stages, group.deal.most_tasks()));
    mapping::Rows of{rows, cols, mapping::Lanes{launch.block, 1, {vector, unroll}, copy_of(depth, bulk)}};
    if (cluster > 1)
      of.sharing = mapping::Cluster{
          cluster,
          cluster * launch.block,
          {vector, unroll},
          depth == 0 ? mapping::PartCopy(mapping::ByLoads{}) : mapping::PartCopy(mapping::Async{depth})};
    group.mapping = of;
    group.one_pass.clear();
  }
  if (!some) return false;
  kernel.resident.clear();
  kernel.tiles.clear();
  launch_anew(computation, kernel);
  if (!astitch::stage_rows(computation, kernel)) return false;
  if (!verify(graph, target, changed).empty()) return false;
  plan = std::move(changed);
  return true;
}

}  // namespace stitchwork::testing
