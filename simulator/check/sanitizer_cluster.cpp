// What the sanitizers look at between the blocks of a cluster: its barriers, and shared memory of others.
#include "core/base/error.h"
#include "simulator/check/sanitizer.h"
#include "simulator/machine/cluster.h"

namespace stitchwork::sim {

void BlockSanitizer::cluster_arrive(const Strand& s, bool relaxed) {
  Horizon& arriving = of_cluster().cluster_arriving_;
  for (int w = s.first_warp; w < s.last_warp; ++w)
    if (s.mask[w] != 0) clocks_.cluster_arrive(block_warp(s, w), arriving, relaxed);
}

void BlockSanitizer::cluster_wait(const Strand& s) {
  const Horizon& arrived = of_cluster().cluster_arrived_;
  for (int w = s.first_warp; w < s.last_warp; ++w)
    if (s.mask[w] != 0) clocks_.cluster_wait(block_warp(s, w), arrived);
}

void BlockSanitizer::cluster_complete() {
  cluster_arrived_ = std::move(cluster_arriving_);
  cluster_arriving_ = {};
}

BlockSanitizer& BlockSanitizer::of_cluster() { return of(*block_of_rank(block_, 0).checks); }

BlockSanitizer* BlockSanitizer::owner_of(std::uint64_t address, std::uint64_t* base) {
  *base = 0;
  if (block_.cluster == nullptr) return this;
  const std::uint64_t rank = address >> kClusterRankShift;
  if (rank >= block_.cluster->blocks.size()) return nullptr;
  *base = rank << kClusterRankShift;
  return rank == block_.cluster_rank ? this : &of(*block_of_rank(block_, rank).checks);
}

BlockAccesses& BlockSanitizer::accesses_to(BlockSanitizer& owner) {
  if (&owner == this) return shared_accesses_;
  remote_accesses_.resize(block_.cluster->blocks.size());
  auto& accesses = remote_accesses_[owner.block_.cluster_rank];
  if (!accesses) {
    accesses = std::make_unique<BlockAccesses>(owner.shared_events_);
    accesses->start((block_.threads + 31) / 32 * launch_.memory_instructions());
  }
  return *accesses;
}

void BlockSanitizer::check_lifetime(const Access& a) {
  const int warp = block_warp(a.s, a.warp);
  if (a.owner == this) {
    // What others wrote here by strong accesses this block has seen.
    if (a.strong() && a.form.reads)
      std::erase_if(touched_by_, [&](const auto& touched) {
        return touched.second.event.strong && touched.second.offset == a.offset;
      });
    return;
  }
  const BlockRun& other = a.owner->block_;
  if (other.alive_threads == 0) return;  // the handler reports it
  if (!clocks_.knows_of(warp, static_cast<std::uint32_t>(other.index)))
    raise_finding(a.s, a.i, FindingKind::kBlockLifetime,
                  fmt::format("{} {} bytes of shared memory of block rank {}, which may not have started: no "
                              "cluster barrier came before",
                              a.form.writes ? "writes" : "reads", a.form.bytes, other.cluster_rank)
                      .c_str(),
                  a.warp, a.lane);
  const AccessEvent event = a.accesses[event_of(a)];
  a.owner->touched_by_[{event.block, warp, a.strong()}] = {
      .event = event, .lane = a.lane, .writes = a.form.writes, .bytes = a.form.bytes, .offset = a.offset};
}

void BlockSanitizer::end_of_block() {
  const int warps = static_cast<int>((block_.threads + 31) / 32);
  for (const auto& [who, touched] : touched_by_) {
    const AccessEvent& e = touched.event;
    bool before = false;
    for (int w = 0; w < warps && !before; ++w)
      before = clocks_.after_block(w, e.block, static_cast<int>(e.warp), e.time, true);
    if (before) continue;
    const std::uint32_t rank = block_.cluster_rank;
    Finding finding;
    finding.kind = FindingKind::kBlockLifetime;
    finding.kernel = launch_.context.launch->kernel;
    finding.ptx_line = launch_.context.program->positions[e.inst].line;
    finding.cuda_location = cuda_location(launch_.context, e.inst);
    finding.block = block_coordinates(launch_.context, e.block);
    const std::uint32_t t = e.warp * 32u + static_cast<std::uint32_t>(touched.lane);
    const Dim3& size = launch_.context.launch->block;
    finding.thread = {t % size.x, t / size.x % size.y, t / size.x / size.y};
    finding.message = fmt::format(
        "{} {} bytes of shared memory of block rank {}, which ends without waiting for that: no "
        "cluster barrier came in between",
        touched.writes ? "writes" : "reads", touched.bytes, rank);
    throw FindingError{std::move(finding), block_.index};
  }
}

}  // namespace stitchwork::sim
