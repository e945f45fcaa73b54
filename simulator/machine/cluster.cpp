#include "simulator/machine/cluster.h"

#include <algorithm>
#include <bit>

#include "core/base/error.h"

namespace stitchwork::sim {
namespace {

/// Rounds in which no block changed memory or passed a barrier before that counts as standing still.
constexpr int kIdleRounds = 64;

/// "4,2,1"
std::string text_of(const Dim3& d) { return fmt::format("{},{},{}", d.x, d.y, d.z); }

template <class F>
void for_warps(const Block& block, F f) {
  for (const Strand& s : block.strands)
    for (int w = s.first_warp; w < s.last_warp; ++w)
      f(static_cast<std::size_t>(s.gang * kGangWarps + w), s.alive[w]);
}

}  // namespace

void choose_cluster(LaunchContext& c) {
  const ptx::KernelInfo& k = c.program->info;
  const Launch& launch = *c.launch;
  const Device& device = *c.device;
  const auto fail = [&](std::string message, std::string hint) {
    throw Error(c.module->file, k.line, 0, fmt::format("kernel '{}' {}", k.name, message), std::move(hint));
  };
  const bool required = k.cluster[0] > 0;
  if (required) c.cluster = {k.cluster[0], k.cluster[1], k.cluster[2]};
  if (launch.cluster) {
    if (required && text_of(*launch.cluster) != text_of(c.cluster))
      fail(fmt::format("runs in clusters of {} blocks (.reqnctapercluster), not of {}", text_of(c.cluster),
                       text_of(*launch.cluster)),
           "leave the cluster out of the launch");
    c.cluster = *launch.cluster;
  }
  c.explicit_cluster = required || launch.cluster.has_value();
  if (k.explicit_cluster && !c.explicit_cluster)
    fail("has to be launched with a cluster size (.explicitcluster)", "give one: --cluster X[,Y[,Z]]");
  if (!c.explicit_cluster && !k.uses_clusters) return;
  if (device.max_cluster_blocks == 0)
    fail(fmt::format("uses thread block clusters, which {} (sm_{}{}) does not have", device.id,
                     device.cc_major, device.cc_minor),
         "clusters need sm_90 or later: --device h100");
  const std::uint64_t blocks = c.cluster.count();
  if (blocks == 0) fail("is given an empty cluster", "a cluster has one block or more in each dimension");
  if (k.max_cluster_blocks > 0 && blocks > static_cast<std::uint64_t>(k.max_cluster_blocks))
    fail(fmt::format("allows {} blocks a cluster (.maxclusterrank), {} given", k.max_cluster_blocks, blocks),
         "use a smaller cluster");
  if (blocks > static_cast<std::uint64_t>(device.max_cluster_blocks))
    fail(fmt::format("is given clusters of {} blocks; {} has {} at most", blocks, device.id,
                     device.max_cluster_blocks),
         "use a smaller cluster");
  if (blocks > kPortableClusterBlocks && !launch.non_portable_cluster)
    fail(fmt::format("is given clusters of {} blocks, and more than {} are not portable", blocks,
                     kPortableClusterBlocks),
         fmt::format("{} has up to {}: allow them with --non-portable-cluster", device.id,
                     device.max_cluster_blocks));
  if (launch.grid.x % c.cluster.x != 0 || launch.grid.y % c.cluster.y != 0 ||
      launch.grid.z % c.cluster.z != 0)
    fail(fmt::format("is given a grid of {} blocks, which is no multiple of its clusters of {}",
                     text_of(launch.grid), text_of(c.cluster)),
         "round the grid up to whole clusters in each dimension");
}

std::uint64_t block_at(const LaunchContext& context, std::uint64_t position) {
  const Dim3 &grid = context.launch->grid, &cluster = context.cluster;
  const std::uint64_t size = cluster.count();
  if (size == 1) return position;
  const std::uint64_t number = position / size, rank = position % size;
  const std::uint64_t across = grid.x / cluster.x, down = grid.y / cluster.y;
  const std::uint64_t x = number % across * cluster.x + rank % cluster.x;
  const std::uint64_t y = number / across % down * cluster.y + rank / cluster.x % cluster.y;
  const std::uint64_t z = number / across / down * cluster.z + rank / cluster.x / cluster.y;
  return x + grid.x * (y + std::uint64_t{grid.y} * z);
}

Block& block_of_rank(const BlockRun& block, std::uint64_t rank) { return *block.cluster->blocks[rank]; }

std::pair<std::uint64_t, std::uint64_t> ClusterRun::threads() const {
  std::uint64_t arrived_threads = 0, running = 0;
  for (const Block* block : blocks)
    for_warps(*block, [&](std::size_t warp, std::uint32_t alive) {
      running += static_cast<std::uint64_t>(std::popcount(alive));
      arrived_threads += static_cast<std::uint64_t>(std::popcount(alive & block->cluster_arrived[warp]));
    });
  return {arrived_threads, running};
}

bool ClusterRun::complete_barrier() {
  const auto [here, running] = threads();
  if (here == 0 || here != running) return false;
  for (Block* block : blocks) {
    // All running threads have passed the barrier before: they could not have arrived here else.
    block->cluster_passing.swap(block->cluster_arrived);
    std::fill(block->cluster_arrived.begin(), block->cluster_arrived.end(), 0);
    if (block->alive_threads == 0) continue;
    ++block->hot->cluster_barriers;
    ++block->progress;
  }
  for (Block* block : blocks)
    if (block->checks != nullptr) block->checks->cluster_complete();
  return true;
}

Cluster::Cluster(const LaunchContext& context) {
  const std::uint64_t size = context.cluster.count();
  if (size > 1 || context.program->info.uses_clusters) shared_ = std::make_unique<ClusterRun>();
  for (std::uint64_t rank = 0; rank < size; ++rank) {
    blocks_.push_back(std::make_unique<Block>(context, static_cast<std::uint32_t>(rank)));
    if (!shared_) continue;
    shared_->blocks.push_back(blocks_.back().get());
    blocks_.back()->cluster = shared_.get();
  }
}

void Cluster::start(std::uint64_t number) {
  for (std::size_t rank = 0; rank < blocks_.size(); ++rank)
    blocks_[rank]->start(number * blocks_.size() + rank);
}

void Cluster::attach(Worker& worker, std::vector<AccessLog>& access_logs) {
  for (auto& block : blocks_) block->attach(worker, access_logs);
}

void Cluster::run() {
  if (!shared_) return blocks_[0]->run();
  std::vector<bool> running(blocks_.size(), true);
  std::uint64_t progress_before = 0;
  for (int idle = 0; idle <= kIdleRounds;) {
    std::uint64_t progress = 0;
    bool all_done = true, finished = false;
    for (std::size_t r = 0; r < blocks_.size(); ++r) {
      if (!running[r]) continue;
      running[r] = blocks_[r]->step() != Block::Progress::kFinished;
      finished |= !running[r];
      all_done &= !running[r];
    }
    if (all_done) return;
    for (const auto& block : blocks_) progress += block->progress;
    idle = finished || progress != progress_before ? 0 : idle + 1;
    progress_before = progress;
    if (idle < kIdleRounds) continue;
    bool parted = false;
    for (std::size_t r = 0; r < blocks_.size(); ++r) parted |= running[r] && blocks_[r]->part(progress);
    if (parted) idle = 0;
  }
  report_standstill();
  const auto first =
      static_cast<std::size_t>(std::find(running.begin(), running.end(), true) - running.begin());
  blocks_[first]->raise_waiting(FindingKind::kLivelock, "polls memory that no running thread will change");
}

void Cluster::report_standstill() {
  for (auto& block : blocks_) block->report_mbarrier_wait();
  if (!shared_) return;
  for (auto& block : blocks_) {
    const auto waiting = std::find_if(block->strands.begin(), block->strands.end(), [](const Strand& s) {
      return s.state == StrandState::kClusterBarrier;
    });
    if (waiting == block->strands.end()) continue;
    const auto [here, running] = shared_->threads();
    int warp = waiting->first_warp;
    while (warp + 1 < waiting->last_warp && waiting->mask[warp] == 0) ++warp;
    raise_finding(
        *waiting, waiting->resume, FindingKind::kBarrierMismatch,
        fmt::format("the cluster barrier wants the {} running threads of the cluster; {} have arrived "
                    "and the other {} wait elsewhere",
                    running, here, running - here)
            .c_str(),
        warp, std::countr_zero(waiting->mask[warp]));
  }
}

void arrive_at_cluster_barrier(Strand& s, const Inst* i) {
  Block& b = static_cast<Block&>(*s.block);
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const auto warp = static_cast<std::size_t>(s.gang * kGangWarps + w);
    const std::uint32_t twice = s.mask[w] & (b.cluster_arrived[warp] | b.cluster_passing[warp]);
    if (twice != 0)
      raise_finding(s, i, FindingKind::kBarrierMismatch,
                    "arrives at the cluster barrier again without having waited for it", w,
                    std::countr_zero(twice));
    b.cluster_arrived[warp] |= s.mask[w];
  }
  ++b.progress;
  if (b.checks != nullptr) b.checks->cluster_arrive(s, i->flags & kClusterRelaxed);
}

bool warp_is_at_cluster_barrier(const Strand& s, int w) {
  const Block& b = static_cast<const Block&>(*s.block);
  const auto warp = static_cast<std::size_t>(s.gang * kGangWarps + w);
  return (s.alive[w] & ~(b.cluster_arrived[warp] | b.cluster_passing[warp])) == 0;
}

bool wait_at_cluster_barrier(Strand& s, const Inst* i) {
  Block& b = static_cast<Block&>(*s.block);
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const auto warp = static_cast<std::size_t>(s.gang * kGangWarps + w);
    const std::uint32_t not_arrived = s.mask[w] & ~(b.cluster_arrived[warp] | b.cluster_passing[warp]);
    if (not_arrived != 0)
      raise_finding(s, i, FindingKind::kBarrierMismatch,
                    "waits at the cluster barrier without having arrived at it", w,
                    std::countr_zero(not_arrived));
  }
  if (!b.may_pass_cluster_barrier(s)) {
    s.resume = i;
    s.state = StrandState::kClusterBarrier;
    return false;
  }
  for (int w = s.first_warp; w < s.last_warp; ++w)
    b.cluster_passing[static_cast<std::size_t>(s.gang * kGangWarps + w)] &= ~s.mask[w];
  if (b.checks != nullptr) b.checks->cluster_wait(s);
  return true;
}

bool Block::may_pass_cluster_barrier(const Strand& s) {
  const auto passes = [&] {
    for (int w = s.first_warp; w < s.last_warp; ++w)
      if ((s.mask[w] & ~cluster_passing[static_cast<std::size_t>(s.gang * kGangWarps + w)]) != 0)
        return false;
    return true;
  };
  return passes() || (cluster->complete_barrier() && passes());
}

}  // namespace stitchwork::sim
