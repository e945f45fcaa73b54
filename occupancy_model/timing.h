// The timing model of docs/timing.md: kernel time from counts alone. The planner feeds it modelled counts
// (method "modelled"), the simulator executed ones (method "simulated").
#pragma once

#include <cstdint>

#include "occupancy_model/device.h"

namespace stitchwork {

/// What a kernel does, summed over the whole launch unless said otherwise.
struct KernelWork {
  std::int64_t grid_blocks = 1;
  int threads_per_block = 1;
  int blocks_per_sm = 1;    ///< residency (occupancy)
  double dram_sectors = 0;  ///< 32-byte, read + write
  double l2_sectors = 0;
  double warp_instructions = 0;
  double fp32_warp_instructions = 0;
  double mufu_warp_instructions = 0;
  double ldst_warp_instructions = 0;
  double shared_wavefronts = 0;
  /// Loads a warp has in flight before the first use, in 128-byte requests: 1 for one 4-byte load a thread,
  /// 8 for two independent 16-byte loads a thread.
  double independent_loads = 1;
  double busiest_sm = 1;  ///< instructions of the busiest SM over those of the average one
  int grid_barriers = 0;
  int phases = 1;  ///< grid_barriers + 1
};

/// The parts are sums over the waves; total is less than their sum, since they overlap.
struct KernelTime {
  double total_us = 0;
  double launch_us = 0, dram_us = 0, l2_us = 0, issue_us = 0, latency_us = 0, barrier_us = 0;
};

/// Time of one launch, launch overhead included, gap to the next kernel not included.
KernelTime kernel_time(const Device& device, const KernelWork& work);

/// Documented roofline of a library matrix product or convolution: max(flops/peak, bytes/BW) + T_null.
double library_time_us(const Device& device, double flops, double bytes);

}  // namespace stitchwork
