// Thread block clusters: blocks that are resident together, reach each other's shared memory and wait for
// each other at cluster barriers.
//
// Addresses of shared memory name their block: bits 24 and up of the offset in the window hold its rank in
// the cluster, as on hardware, so that an address one block made means the same in all others.
#pragma once

#include <memory>
#include <vector>

#include "simulator/machine/block.h"

namespace stitchwork::sim {

/// What the blocks of one cluster share while they run.
struct ClusterRun {
  std::vector<Block*> blocks;  ///< by rank

  /// Completes the open barrier if every running thread of the cluster has arrived at it.
  bool complete_barrier();
  /// (arrived, running) threads at the open barrier.
  std::pair<std::uint64_t, std::uint64_t> threads() const;
};

/// The blocks of one cluster; where a launch has none, one block.
class Cluster {
 public:
  explicit Cluster(const LaunchContext& context);

  /// Prepares cluster number `number`: blocks number x size and on, in the order of clusters.
  void start(std::uint64_t number);
  void attach(Worker& worker, std::vector<AccessLog>& access_logs);
  /// Runs all blocks to their ends. They take turns, each running until it waits.
  void run();
  std::size_t size() const { return blocks_.size(); }
  Block& block(std::size_t rank) { return *blocks_[rank]; }
  /// Where running blocks wait at a cluster barrier, a finding that says so.
  void report_standstill();

 private:
  std::vector<std::unique_ptr<Block>> blocks_;
  std::unique_ptr<ClusterRun> shared_;  ///< null for a kernel that knows of no clusters, launched without
};

/// The cluster of the launch, or of the kernel; throws Error where the device or the grid has none of that
/// size.
void choose_cluster(LaunchContext& context);

/// The block of the grid that is number `position` in the order of clusters; the same number without
/// clusters.
std::uint64_t block_at(const LaunchContext& context, std::uint64_t position);

/// The block of a rank.
Block& block_of_rank(const BlockRun& block, std::uint64_t rank);

}  // namespace stitchwork::sim
