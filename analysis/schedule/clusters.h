// Rows shared by the blocks of a thread block cluster (mapping::Cluster): each block keeps its part of
// the row in registers, and all of them have the row's reductions, without a grid barrier between. A kernel
// without other grid barriers has any number of waves of them.
#pragma once

#include <cstdint>

#include "analysis/plan/plan.h"

namespace stitchwork {

/// Thread block clusters are of sm_90 (PTX ISA 7.8).
constexpr int kClusterArchitecture = 90;
/// Blocks of the largest cluster that is launched without being asked for; 1: the device has none.
int largest_cluster(const Device& device);

/// Blocks that may wait for each other at a grid barrier: those resident at once, in whole clusters, wherever
/// the device's SMs are. 0: not one cluster is surely held.
std::int64_t resident_blocks(const Device& device, int blocks_per_sm, int cluster);

/// What a reduction over a cluster of blocks of `block` threads costs beyond one over a block. Every warp
/// sends its accumulator to every block of the cluster, waits, and folds those of all warps.
struct ClusterExchange {
  double warp_instructions = 0;  ///< of each warp
  double remote_accesses = 0;    ///< of each warp, to the shared memory of other blocks
  double remote_sectors = 0;     ///< likewise, moved by these
};
ClusterExchange cluster_exchange(const Deal& deal, int block);

/// Barriers of the cluster that a block comes to in all its tasks: one in each reduction, and one a task
/// before the first, so that no block writes to one that has not begun or still reads what the task before
/// left.
double cluster_barriers(const Deal& deal, std::int64_t reductions);

}  // namespace stitchwork
