#include "analysis/stitching/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "analysis/plan/mapping.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/tiles.h"
#include "analysis/stitching/mapping_tuned.h"
#include "analysis/stitching/sharing.h"
#include "core/base/arithmetic.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::astitch {
void plan_launch(const Stitched& stitched, const Device& device, const Options& options,
                 const MappingLimits& limits, KernelPlan& kernel, Recorder& recorder) {
  const Body& body = stitched.body;
  const std::vector<OpGroup>& groups = stitched.groups;
  const Finalization& finalization = stitched.finalization;
  KernelLaunch& launch = kernel.launch;
  launch.block = limits.block;
  launch.grid = launch.cluster = 1;
  for (const OpGroup& group : groups) {
    launch.grid = std::max(launch.grid, group.deal.end_block());
    launch.cluster = std::max(launch.cluster, group.deal.cluster);
  }
  launch.grid = round_up(launch.grid, launch.cluster);
  launch.grid_barriers = finalization.grid_barriers;

  const std::int64_t workspace = reduction_workspace_bytes(*body.nodes->computation, kernel);
  MemoryPlan memory =
      plan_memory(body, groups, finalization, {workspace, launch.block}, options.shared_reuse, recorder);
  kernel.shared = std::move(memory.shared);
  kernel.scratch = std::move(memory.scratch);
  launch.shared_bytes = memory.shared_bytes;
  launch.scratch_bytes = memory.scratch_bytes;

  bound_launch(device, options, limits, launch);
}

namespace {

/// Of blocks that wait for each other, those that are surely resident at once.
std::int64_t wave_of(const Device& device, const LaunchBound& bound, const KernelLaunch& launch) {
  if (launch.grid_barriers > 0) return resident_blocks(device, bound.blocks_per_sm, launch.cluster);
  return launch.cluster == 1
             ? bound.blocks_per_wave
             : launch.cluster * clusters_per_wave(device, bound.blocks_per_sm, launch.cluster);
}

}  // namespace

void bound_launch(const Device& device, const Options& options, const MappingLimits& limits,
                  KernelLaunch& launch) {
  const LaunchBound bound =
      assume_relax_apply(device, launch.block, launch.shared_bytes, limits.max_blocks_per_sm);
  launch.blocks_per_sm = bound.blocks_per_sm;
  launch.blocks_per_wave = wave_of(device, bound, launch);
  launch.register_bound = options.register_relaxation ? bound.register_bound : kAssumedRegisters;
}

void settle_registers(const Device& device, const Options& options, KernelLaunch& launch) {
  int share = blocks_an_sm(device, launch.grid);
  // Clusters that wait for each other may leave places of some SMs unused.
  if (launch.grid_barriers > 0)
    while (share < launch.blocks_per_sm && resident_blocks(device, share, launch.cluster) < launch.grid)
      ++share;
  if (share >= launch.blocks_per_sm) return;
  const LaunchBound bound = assume_relax_apply(device, launch.block, launch.shared_bytes, share);
  launch.blocks_per_sm = bound.blocks_per_sm;
  launch.blocks_per_wave = wave_of(device, bound, launch);
  if (options.register_relaxation) launch.register_bound = bound.register_bound;
}

bool stages_single_rows(const KernelPlan& kernel) {
  return std::any_of(kernel.groups.begin(), kernel.groups.end(),
                     [](const Group& group) { return stages_a_row(group.mapping); });
}

Verdict fits_device(const KernelPlan& kernel, const Device& device, const MappingLimits& limits) {
  const KernelLaunch& launch = kernel.launch;
  const std::int64_t allowed = stages_single_rows(kernel) ? device.shared_bytes_per_block_optin
                                                          : device.shared_bytes_per_block_default;
  if (launch.shared_bytes > allowed) {
    return Verdict::no("astitch.shared-memory", fmt::format("needs {} bytes of shared memory, {} allowed",
                                                            launch.shared_bytes, allowed));
  }
  // Staged rows are dealt to the blocks that their tiles leave room for.
  const bool staged = std::any_of(kernel.groups.begin(), kernel.groups.end(),
                                  [](const Group& group) { return is_staged(group.mapping); });
  const std::int64_t assumed = staged ? launch.grid : limits.blocks_per_wave;
  if (limits.one_wave && launch.blocks_per_wave < assumed) {
    return Verdict::no("astitch.wave",
                       fmt::format("{} bytes of shared memory leave {} blocks a wave, mappings assumed {}",
                                   launch.shared_bytes, launch.blocks_per_wave, assumed));
  }
  return Verdict::yes();
}

}  // namespace stitchwork::astitch
