#include "analysis/schedule/clusters.h"

#include <algorithm>
#include <cmath>

#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork {

int largest_cluster(const Device& device) {
  return std::clamp(device.max_cluster_blocks, 1, kPortableClusterBlocks);
}

std::int64_t resident_blocks(const Device& device, int blocks_per_sm, int cluster) {
  return cluster * clusters_held_anyway(device, blocks_per_sm, cluster);
}

ClusterExchange cluster_exchange(const Deal& deal, int block) {
  if (deal.cluster == 1) return {};
  // A choice, not measured: about what the place of an accumulator takes, and a load, its address and an
  // addition of each.
  constexpr double kPlaceInstructions = 6, kFoldInstructions = 3;
  const double accumulators = deal.cluster * std::ceil(block / static_cast<double>(kWarp));
  return {kPlaceInstructions + kFoldInstructions * std::ceil(accumulators / kWarp), 1,
          static_cast<double>(deal.cluster)};
}

double cluster_barriers(const Deal& deal, std::int64_t reductions) {
  return deal.cluster == 1 ? 0 : static_cast<double>(deal.most_tasks() * (reductions + 1));
}

}  // namespace stitchwork
