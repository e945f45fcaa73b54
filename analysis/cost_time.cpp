#include <algorithm>
#include <cmath>

#include "analysis/cost_internal.h"

namespace stitchwork::costs {

double KernelCounter::busiest(const Phase& phase, std::int64_t resident) const {
  const std::int64_t grid = kernel_.launch.grid;
  if (grid > resident) return 1;  // what one wave leaves idle the next fills
  std::vector<double> sms(static_cast<std::size_t>(std::min<std::int64_t>(grid, device_.sms)));
  double total = 0;
  for (const auto& [group, instructions] : phase.groups) {
    const double each = instructions / static_cast<double>(group->mapping.blocks);
    for (std::int64_t b = 0; b < group->mapping.blocks; ++b)
      sms[static_cast<std::size_t>(group->first_block + b) % sms.size()] += each;
    total += instructions;
  }
  // The average SM of a grid whose blocks are alike has as many blocks as any, or one less.
  const double even = total / static_cast<double>(grid) * std::ceil(static_cast<double>(grid) / device_.sms);
  return even > 0 ? std::max(1.0, *std::max_element(sms.begin(), sms.end()) / even) : 1;
}

void KernelCounter::finish() {
  const KernelLaunch& launch = kernel_.launch;
  level_ = phases_.begin()->first;
  count_blocks();
  work_.grid_blocks = launch.grid;
  work_.threads_per_block = launch.block;
  work_.blocks_per_sm = std::max(1, blocks_per_sm());
  if (loads_made_ > 0) work_.independent_loads = loads_in_flight_ / loads_made_;
  work_.grid_barriers = launch.grid_barriers;
  work_.phases = launch.grid_barriers + 1;
  LaunchWork timed{.threads_per_block = work_.threads_per_block,
                   .blocks_per_sm = work_.blocks_per_sm,
                   .grid_blocks = work_.grid_blocks,
                   .grid_barriers = work_.grid_barriers,
                   .independent_loads = work_.independent_loads};
  double of_busiest = 0;
  for (auto& [level, phase] : phases_) of_busiest += add_phase(phase, timed);
  if (work_.warp_instructions > 0) work_.busiest_sm = of_busiest / work_.warp_instructions;
  // Barriers within a phase: behind each, partial results come from the L2.
  for (int p = static_cast<int>(phases_.size()); p < work_.phases; ++p) {
    const ThreadWork fetch{.l2_sectors = static_cast<double>(launch.grid)};
    for (const Stretch& s : stretches(device_, launch.grid, work_.blocks_per_sm, fetch, 0, 1))
      timed.stretches.push_back(s);
  }
  cost_.work = work_;
  cost_.predicted_us = kernel_time(device_, timed).total_us;
}

double KernelCounter::add_phase(Phase& phase, LaunchWork& timed) {
  ThreadWork& w = phase.work;
  const double dram_sectors = phase.dram_bytes / kSectorBytes;
  w.l2_sectors = std::max(w.l2_sectors, dram_sectors);
  w.global_accesses = std::max(0.0, w.ldst_warp_instructions - w.shared_wavefronts - w.remote_accesses);
  work_.dram_sectors += dram_sectors;
  work_.l2_sectors += w.l2_sectors;
  work_.warp_instructions += w.warp_instructions;
  work_.fp32_warp_instructions += w.fp32_warp_instructions;
  work_.mufu_warp_instructions += w.mufu_warp_instructions;
  work_.ldst_warp_instructions += w.ldst_warp_instructions;
  work_.shared_wavefronts += w.shared_wavefronts;
  work_.remote_accesses += w.remote_accesses;
  work_.remote_sectors += w.remote_sectors;
  work_.cluster_barriers += w.cluster_barriers / static_cast<double>(work_.grid_blocks);
  const double busiest_sm = busiest(phase, static_cast<std::int64_t>(device_.sms) * work_.blocks_per_sm);
  for (const Stretch& s :
       stretches(device_, work_.grid_blocks, work_.blocks_per_sm, w, dram_sectors, busiest_sm))
    timed.stretches.push_back(s);
  return busiest_sm * w.warp_instructions;
}

}  // namespace stitchwork::costs
