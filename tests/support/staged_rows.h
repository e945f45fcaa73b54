// Plans whose tasks are single rows in tiles of shared memory, whether or not a planner would choose so.
#pragma once

#include <algorithm>
#include <cstdint>

#include "analysis/astitch/staging.h"
#include "analysis/clusters.h"
#include "analysis/schedule/mapping.h"
#include "analysis/verify.h"
#include "core/arithmetic.h"
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
    ThreadMapping& m = group.mapping;
    if (m.kind != MappingKind::kRowPack || m.split > 1 || m.cols < 2) continue;
    some = true;
    m.staged = true;
    m.vector = vector;
    m.unroll = unroll;
    m.cluster = cluster;
    m.threads_per_row = cluster * launch.block;
    m.rows_per_block = 1;
    m.tasks = std::max<std::int64_t>(1, m.rows);
    m.blocks = std::min(m.tasks, takers) * cluster;
    m.tasks_per_block = ceil_div(m.tasks, to_deal(m).takers);
    m.stages = static_cast<int>(std::min<std::int64_t>(stages, m.tasks_per_block));
    m.bulk = bulk && m.stages > 0;
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
