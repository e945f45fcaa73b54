#include "analysis/judge/beside.h"

#include <algorithm>

#include "occupancy_model/hardware.h"

namespace stitchwork {

CountedWork beside(const Device& device, const CountedWork& a, const CountedWork& b, double shared_bytes,
                   bool waves) {
  const KernelWork &u = a.work, &v = b.work;
  CountedWork both;
  both.blocks_per_wave = std::min(a.blocks_per_wave, b.blocks_per_wave);
  KernelWork& work = both.work;
  work = u;
  work.phases = std::max(u.phases, v.phases);
  work.grid_barriers = work.phases - 1;
  const std::int64_t blocks = u.grid_blocks + v.grid_blocks;
  work.grid_blocks = waves && work.phases == 1
                         ? blocks
                         : std::max({u.grid_blocks, v.grid_blocks, std::min(blocks, both.blocks_per_wave)});
  work.threads_per_block = std::max(u.threads_per_block, v.threads_per_block);
  work.blocks_per_sm = std::min(u.blocks_per_sm, v.blocks_per_sm);
  work.dram_sectors = std::max(std::max(u.dram_sectors, v.dram_sectors),
                               u.dram_sectors + v.dram_sectors - shared_bytes / kSectorBytes);
  static_cast<ThreadWork&>(work) += v;
  work.independent_loads = std::max(u.independent_loads, v.independent_loads);
  both.us = kernel_time(device, work).total_us;
  return both;
}

}  // namespace stitchwork
