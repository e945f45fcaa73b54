// Occupancy arithmetic, and the launch configuration by assume-relax-apply (AStitch section 4.5).
#pragma once

#include <cstdint>
#include <string>

#include "occupancy_model/device.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {

struct Occupancy {
  int blocks_per_sm = 0;
  std::int64_t blocks_per_wave = 0;  ///< blocks_per_sm * SMs
  double warps_ratio = 0;            ///< resident warps / maximum (theoretical occupancy)
  std::string limiter;               ///< "threads", "registers", "shared memory", "blocks"
};

/// Exact occupancy with allocation granularities, as cuda_occupancy.h computes it (the tests' oracle).
/// blocks_per_sm is 0 where one block does not fit.
Occupancy occupancy(const Device& device, int threads_per_block, int registers_per_thread,
                    std::int64_t shared_bytes_per_block);

/// Clusters of `cluster_blocks` blocks that the device holds at once, each within one GPC: as many as the
/// places for blocks of its SMs hold. SMs come in pairs (TPCs), which are spread over the GPCs as evenly as
/// they go; how they are on a part at hand is not published and differs from part to part.
std::int64_t clusters_per_wave(const Device& device, int blocks_per_sm, int cluster_blocks);

/// So many the device holds at once however its TPCs are spread over the GPCs: a GPC leaves fewer places
/// unused than a cluster takes, and none where clusters fill its TPCs. What clusters that wait for each other
/// may rely on; one block a cluster: as many as the device holds.
std::int64_t clusters_held_anyway(const Device& device, int blocks_per_sm, int cluster_blocks);

struct LaunchBound {
  int blocks_per_sm = 0;
  std::int64_t blocks_per_wave = 0;
  int register_bound = 0;  ///< what __launch_bounds__(T, blocks_per_sm) admits
};

/// The most registers a thread may have, of multiples of 8 and up to what it can address, with which an SM
/// holds `blocks_per_sm` blocks of so many threads, as far as registers go: what __launch_bounds__ asks the
/// compiler for. A block's warps need not divide evenly over the register files of an SM's partitions: two
/// blocks of 25 warps have 32 registers a thread, where 65536 / (2 * 800) is 40.
int launch_bound_registers(const Device& device, int threads_per_block, int blocks_per_sm);

/// Assume kAssumedRegisters, count the blocks an SM holds, then relax the bound to all the registers those
/// blocks leave (launch_bound_registers), whatever limits the blocks. Paper
/// section 4.5 and docs/planners/astitch.md: V100 at T=1024 holds 2 blocks at 32 registers; above 48 KiB of
/// shared memory 1 block at 64; V100 at T=768 gets 40.
/// `max_blocks`, if any: an SM is to hold no more.
LaunchBound assume_relax_apply(const Device& device, int threads_per_block,
                               std::int64_t shared_bytes_per_block, int max_blocks = 0);

}  // namespace stitchwork
