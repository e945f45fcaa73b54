#include "analysis/astitch/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/launch.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::astitch {
namespace {

/// Section 4.5 assumes "a very small value" of registers a thread, and the largest block: fewer blocks make
/// grid barriers cheaper.
constexpr int kAssumedRegisters = 32;
constexpr int kLargestBlock = 1024;
/// Threads of a block of XLA's element-wise kernels.
constexpr int kElementwiseBlock = 256;

}  // namespace

MappingLimits mapping_limits(const Nodes& nodes, const StitchOp& op, const Device& device,
                             const Options& options, bool one_wave) {
  MappingLimits limits;
  limits.block = std::min(kLargestBlock, device.max_threads_per_block);
  limits.adaptive = options.adaptive_mapping;
  limits.one_wave = options.adaptive_mapping || one_wave;
  if (!options.adaptive_mapping) {
    std::int64_t widest = 0;
    for (const NodeId id : op.members) {
      if (!nodes[id].reduction) continue;
      const ReductionShape& shape = *nodes[id].reduction;
      widest = std::max(widest, shape.row_reduce ? shape.cols : kLargestBlock);
    }
    if (widest == 0) widest = kElementwiseBlock;
    limits.block = static_cast<int>(std::min<std::int64_t>(limits.block, (widest + 31) / 32 * 32));
  }
  limits.wanted_splits = &options.constraints.split_factor;
  if (const auto* wanted = Constraints::find(options.constraints.block, op.members))
    limits.block = wanted->second;
  if (const auto* wanted = Constraints::find(options.constraints.residency, op.members))
    limits.max_blocks_per_sm = wanted->second;
  limits.blocks_per_wave = std::max<std::int64_t>(
      1, assume_relax_apply(device, limits.block, 0, limits.max_blocks_per_sm).blocks_per_wave);
  return limits;
}

void plan_launch(const Body& body, const std::vector<OpGroup>& groups, const Finalization& finalization,
                 const Device& device, const Options& options, const MappingLimits& limits,
                 KernelPlan& kernel) {
  KernelLaunch& launch = kernel.launch;
  launch.block = limits.block;
  launch.grid = 1;
  for (const OpGroup& group : groups)
    launch.grid = std::max(launch.grid, group.first_block + group.mapping.blocks);
  launch.grid_barriers = finalization.grid_barriers;

  const std::int64_t workspace = reduction_workspace_bytes(*body.nodes->computation, kernel);
  MemoryPlan memory = plan_memory(body, groups, finalization, workspace, options.shared_reuse);
  kernel.shared = std::move(memory.shared);
  kernel.scratch = std::move(memory.scratch);
  launch.shared_bytes = memory.shared_bytes;
  launch.scratch_bytes = memory.scratch_bytes;

  const LaunchBound bound =
      assume_relax_apply(device, launch.block, launch.shared_bytes, limits.max_blocks_per_sm);
  launch.blocks_per_sm = bound.blocks_per_sm;
  launch.blocks_per_wave = bound.blocks_per_wave;
  launch.register_bound = options.register_relaxation ? bound.register_bound : kAssumedRegisters;
}

Verdict fits_device(const KernelPlan& kernel, const Device& device, const MappingLimits& limits) {
  const KernelLaunch& launch = kernel.launch;
  const std::int64_t allowed = device.shared_bytes_per_block_default;
  if (launch.shared_bytes > allowed) {
    return Verdict::no("astitch.shared-memory", fmt::format("needs {} bytes of shared memory, {} allowed",
                                                            launch.shared_bytes, allowed));
  }
  if (launch.blocks_per_wave < limits.blocks_per_wave) {
    return Verdict::no("astitch.wave",
                       fmt::format("{} bytes of shared memory leave {} blocks a wave, mappings assumed {}",
                                   launch.shared_bytes, launch.blocks_per_wave, limits.blocks_per_wave));
  }
  return Verdict::yes();
}

}  // namespace stitchwork::astitch
