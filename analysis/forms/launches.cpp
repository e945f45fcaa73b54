#include "analysis/forms/launches.h"

#include <algorithm>
#include <array>

#include "analysis/judge/sketch.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/tiles.h"
#include "analysis/stitching/mapping_tuned.h"
#include "analysis/stitching/row_work.h"
#include "core/base/arithmetic.h"
#include "occupancy_model/errors.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::astitch {
namespace {

/// Section 4.5 takes the largest block: fewer blocks make grid barriers cheaper.
constexpr int kLargestBlock = 1024;
/// mapping=tuned tries these, 256 first: it leaves the scheduler blocks to fill an SM's gaps with. Where an
/// SM has one block only, 512 first: that many warps hide the latency of arithmetic. Not so for elements of
/// several blocks without barriers: their warps are as many in smaller blocks, which more SMs then share.
/// A choice, not measured: the powers of two of 4 warps and more, up to the device's most.
constexpr std::array kTunedBlocks = {256, 128, 512, 1024}, kTunedLoneBlocks = {512, 256, 128, 1024};
/// And of the blocks an SM holds at 32 registers a thread all, half or a quarter: the fewer, the longer the
/// rows that stay in registers.
/// A choice, not measured: an eighth would leave fewer than 8 warps of blocks of 256.
constexpr std::array kTunedShares = {1, 2, 4};
/// Threads of a block of XLA's element-wise kernels.
constexpr int kElementwiseBlock = 256;

void set_block(MappingLimits& limits, const Device& device, int block) {
  limits.block = block;
  const LaunchBound bound = assume_relax_apply(device, block, 0, limits.max_blocks_per_sm);
  limits.blocks_per_wave =
      std::max<std::int64_t>(1, limits.one_wave ? resident_blocks(device, bound.blocks_per_sm, limits.cluster)
                                                : bound.blocks_per_wave);
}

/// The simplest first: without clusters, then ever larger ones of blocks that each have a part of the row.
std::vector<TunedLaunch> tuned_launches(const GroupDomain& domain, bool alone, bool blocks_are_given,
                                        int cluster_limit) {
  std::vector<TunedLaunch> launches;
  const int most = domain.kind == GroupDomain::Kind::kRows ? cluster_limit : 1;
  for (int cluster = 1; cluster <= most; cluster *= 2)
    for (const int share : kTunedShares)
      for (const int block : alone ? kTunedLoneBlocks : kTunedBlocks) {
        if (share > 1 && blocks_are_given) continue;
        if (cluster > 1 && domain.cols < std::int64_t{block} * cluster) continue;
        launches.push_back({block, share, cluster});
      }
  return launches;
}

/// The block, the threads an SM shares its registers among, and the blocks of a cluster, in which the largest
/// domain takes least time; or the `given` ones.
void choose_launch(const Nodes& nodes, const StitchOp& op, const Device& device, int cluster_limit,
                   const std::optional<TunedLaunch>& given, MappingLimits& limits) {
  const NodeId largest = largest_op(nodes, op);
  const GroupDomain domain = largest == kNoNode ? GroupDomain{} : domain_of(nodes, largest);
  if (largest != kNoNode) limits.row_work = row_work(nodes, op, largest, domain);
  if (given) {
    limits.cluster = given->cluster;
    limits.max_blocks_per_sm = assume_relax_apply(device, given->block, 0, 0).blocks_per_sm / given->share;
    return set_block(limits, device, given->block);
  }
  const int wanted_blocks = limits.max_blocks_per_sm;
  set_block(limits, device, std::min(kTunedBlocks.front(), device.max_threads_per_block));
  const std::int64_t blocks = map_tuned(domain, limits).deal.blocks();
  const bool spreads = domain.kind == GroupDomain::Kind::kElements && blocks > 1 && !limits.one_wave;
  const bool alone = blocks <= device.sms && !spreads;
  int best = 0, best_blocks = 0, best_cluster = 1;
  double best_us = 0;
  for (const auto& [block, share, cluster] :
       tuned_launches(domain, alone, wanted_blocks > 0, cluster_limit)) {
    if (block > device.max_threads_per_block) continue;
    limits.max_blocks_per_sm = wanted_blocks;
    limits.cluster = cluster;
    if (share > 1) {
      const int full = assume_relax_apply(device, block, 0, 0).blocks_per_sm;
      if (full < share) continue;
      limits.max_blocks_per_sm = full / share;
    }
    set_block(limits, device, block);
    const Dealt dealt = map_tuned(domain, limits);
    Sketch sketch = sketch_of(domain, dealt, limits);
    sketch.waits = limits.one_wave;  // which tells launches apart, not the mappings of one
    const double us = sketch_us(device, sketch);
    if (best > 0 && us >= best_us * (1 - kIndifference)) continue;
    best = block;
    best_blocks = limits.max_blocks_per_sm;
    best_cluster = dealt.deal.cluster;
    best_us = us;
  }
  limits.max_blocks_per_sm = best_blocks;
  limits.cluster = best_cluster;
  set_block(limits, device, best);
}

}  // namespace

std::vector<TunedLaunch> waiting_launches(const Device& device, int most_blocks) {
  std::vector<TunedLaunch> launches;
  for (int cluster = 1; cluster <= largest_cluster(device); cluster *= 2)
    for (const int block : {1024, 512, 256})
      for (const int threads : {512, 1024}) {
        const int full = assume_relax_apply(device, block, 0, 0).blocks_per_sm, blocks = threads / block;
        if (blocks == 0) continue;
        if (most_blocks > 0 && blocks > most_blocks) continue;
        if (full >= blocks && resident_blocks(device, blocks, cluster) > 0)
          launches.push_back({block, full / blocks, cluster});
      }
  return launches;
}

MappingLimits mapping_limits(const Nodes& nodes, const StitchOp& op, const Device& device,
                             const Options& options, int accumulators, const WideForms& forms) {
  MappingLimits limits;
  limits.accumulators = accumulators;
  limits.tiles = options.tiles;
  limits.staging = forms.staging && options.tiles;
  limits.async_copies = options.async_copies && has_async_copies(device);
  limits.bulk_copies = limits.async_copies && options.bulk_copies && has_bulk_copies(device);
  limits.single_rows = forms.single_rows && options.tiles;
  limits.column_vectors = forms.column_vectors;
  limits.vector_bytes = forms.vector_bytes;
  if (const auto* wanted = Constraints::find(options.constraints.residency, op.members))
    limits.max_blocks_per_sm = wanted->second;
  const bool tuned = options.tuned && options.adaptive_mapping;
  limits.block = std::min(kLargestBlock, device.max_threads_per_block);
  limits.adaptive = options.adaptive_mapping;
  limits.one_wave = forms.waits || (options.adaptive_mapping && !tuned);
  limits.wanted_splits = &options.constraints.split_factor;
  const auto* wanted_block = Constraints::find(options.constraints.block, op.members);
  if (tuned) {
    limits.tuned_for = &device;
    limits.members = &op.members;
    const int clusters = forms.clusters && options.clusters && !forms.waits ? largest_cluster(device) : 1;
    if (wanted_block == nullptr) choose_launch(nodes, op, device, clusters, forms.launch, limits);
  }
  if (!options.adaptive_mapping) {
    std::int64_t widest = 0;
    for (const NodeId id : op.members) {
      if (!nodes[id].reduction) continue;
      const ReductionShape& shape = *nodes[id].reduction;
      widest = std::max(widest, shape.row_reduce ? shape.cols : kLargestBlock);
    }
    if (widest == 0) widest = kElementwiseBlock;
    limits.block =
        static_cast<int>(std::min<std::int64_t>(limits.block, round_up(widest, std::int64_t{kWarp})));
  }
  set_block(limits, device, wanted_block != nullptr ? wanted_block->second : limits.block);
  return limits;
}

}  // namespace stitchwork::astitch
