#include <algorithm>

#include "analysis/schedule/clusters.h"
#include "analysis/verify/verify_internal.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::verification {
namespace {

void check_group(const Computation& computation, const KernelPlan& kernel, const Group& group,
                 Report& report) {
  const int cluster = group.deal.cluster, threads = threads_a_row(group.mapping);
  const std::string where =
      fmt::format("kernel {}, group {}", kernel.id, computation.node(group.dominant).name);
  if (cluster != kernel.launch.cluster)
    report.add("cluster", "{}: clusters of {} blocks in a launch of clusters of {}", where, cluster,
               kernel.launch.cluster);
  if (threads != cluster * kernel.launch.block || kernel.launch.block % 32 != 0)
    report.add("cluster", "{}: {} threads a row are not all of {} blocks of {}", where, threads, cluster,
               kernel.launch.block);
  if (group.deal.first_block % cluster != 0)
    report.add("cluster", "{}: blocks from {} on are no whole clusters of {}", where, group.deal.first_block,
               cluster);
}

}  // namespace

void check_clusters(const Computation& computation, const Device& device, const KernelPlan& kernel,
                    Report& report) {
  const KernelLaunch& launch = kernel.launch;
  if (launch.cluster < 1 || launch.cluster > kPortableClusterBlocks ||
      (launch.cluster & (launch.cluster - 1)) != 0) {
    report.add("cluster", "kernel {}: clusters of {} blocks; a power of two up to {} is launched anywhere",
               kernel.id, launch.cluster, kPortableClusterBlocks);
    return;
  }
  bool used = false;
  for (const Group& group : kernel.groups) {
    if (group.deal.cluster == 1) continue;
    used = true;
    check_group(computation, kernel, group, report);
  }
  if (launch.cluster == 1) return;
  if (!used) report.add("cluster", "kernel {}: is launched in clusters that no group uses", kernel.id);
  if (launch.cluster > largest_cluster(device))
    report.add("cluster", "kernel {}: {} (sm_{}{}) has no thread block clusters of {} blocks", kernel.id,
               device.id, device.cc_major, device.cc_minor, launch.cluster);
  else if (const int blocks = occupancy(device, launch.block, std::max(1, launch.register_bound),
                                        std::max<std::int64_t>(0, launch.shared_bytes))
                                  .blocks_per_sm;
           clusters_per_wave(device, blocks, launch.cluster) == 0)
    report.add("cluster",
               "kernel {}: no GPC of {} holds a cluster of {} blocks ({} SMs in {} GPCs, {} blocks an SM)",
               kernel.id, device.id, launch.cluster, device.sms, device.gpcs, blocks);
  if (launch.grid % launch.cluster != 0)
    report.add("cluster", "kernel {}: a grid of {} blocks is no whole clusters of {}", kernel.id, launch.grid,
               launch.cluster);
  // Other blocks write to the workspace while this one is at any of its steps.
  const auto workspace = std::find_if(kernel.shared.begin(), kernel.shared.end(),
                                      [](const MemorySlot& slot) { return slot.op == kNoNode; });
  if (workspace == kernel.shared.end()) return;
  for (const MemorySlot& slot : kernel.shared)
    if (slot.op != kNoNode && slot.offset < workspace->offset + workspace->bytes &&
        workspace->offset < slot.offset + slot.bytes)
      report.add("cluster",
                 "kernel {}: {} lies in the workspace, which the blocks of a cluster write to at any time",
                 kernel.id, computation.node(slot.op).name);
}

}  // namespace stitchwork::verification
