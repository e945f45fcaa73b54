#include "simulator/check/race_clocks.h"

#include <algorithm>

namespace stitchwork::sim {
namespace {

void join(WarpClocks& a, const WarpClocks& b, std::size_t used) {
  for (std::size_t w = 0; w < used; ++w) a[w] = std::max(a[w], b[w]);
}

}  // namespace

void Horizon::add(std::uint32_t block, std::uint32_t release) {
  const auto at = std::lower_bound(seen_.begin(), seen_.end(), std::pair{block, std::uint32_t{0}});
  if (at != seen_.end() && at->first == block)
    at->second = std::max(at->second, release);
  else
    seen_.insert(at, {block, release});
}

void Horizon::join(const Horizon& other) {
  if (other.empty()) return;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> both;
  both.reserve(seen_.size() + other.seen_.size());
  std::merge(seen_.begin(), seen_.end(), other.seen_.begin(), other.seen_.end(), std::back_inserter(both));
  // Of two entries of a block the later, which sorts last, stays.
  std::size_t kept = 0;
  for (const auto& entry : both) {
    if (kept > 0 && both[kept - 1].first == entry.first) --kept;
    both[kept++] = entry;
  }
  both.resize(kept);
  seen_ = std::move(both);
}

std::uint32_t Horizon::of(std::uint32_t block) const {
  const auto at = std::lower_bound(seen_.begin(), seen_.end(), std::pair{block, std::uint32_t{0}});
  return at != seen_.end() && at->first == block ? at->second : 0;
}

std::uint32_t LaunchClocks::release(std::uint32_t block, const WarpClocks& covered) {
  std::vector<WarpClocks>& mine = releases_[block];
  mine.push_back(covered);
  if (mine.size() > 1) join(mine.back(), mine[mine.size() - 2], used);
  return static_cast<std::uint32_t>(mine.size());
}

BlockClocks::BlockClocks(LaunchClocks& launch, std::uint32_t block, int warps)
    : launch_(&launch), block_(block), warps_(static_cast<std::size_t>(warps)) {
  for (Warp& warp : warps_) warp.time.clock = 1;
}

bool BlockClocks::after(int warp, int earlier, Time time) const {
  const Warp& w = warps_[static_cast<std::size_t>(warp)];
  if (warp == earlier) return time.warp_barriers < w.time.warp_barriers || time.clock <= w.own;
  return time.clock <= w.seen[static_cast<std::size_t>(earlier)];
}

bool BlockClocks::after_block(int warp, std::uint32_t block, int earlier, Time time, bool strong) const {
  const Warp& w = warps_[static_cast<std::size_t>(warp)];
  // A warp that has fenced, and by that emptied L1, reads what a read-modify-write since has found published,
  // be it its own or one before a barrier of the block: so the last block of a reduction reads the others'
  // results (CUDA C++ Programming Guide, "Memory Fence Functions").
  std::uint32_t release = w.blocks.of(block);
  if (strong) release = std::max(release, w.observed.of(block));
  if (w.release != 0) release = std::max(release, w.taken.of(block));
  return release != 0 && time.clock <= launch_->covered(block, release)[static_cast<std::size_t>(earlier)];
}

WarpClocks BlockClocks::clocks(int warp) const {
  const Warp& w = warps_[static_cast<std::size_t>(warp)];
  WarpClocks all = w.seen;
  all[static_cast<std::size_t>(warp)] = w.time.clock;
  return all;
}

void BlockClocks::gather(int warp, Gathered& at) const {
  const Warp& w = warps_[static_cast<std::size_t>(warp)];
  join(at.seen, w.seen, launch_->used);
  at.seen[static_cast<std::size_t>(warp)] = w.time.clock;
  at.blocks.join(w.blocks);
  at.observed.join(w.observed);
  at.taken.join(w.taken);
  at.fenced_blocks.join(w.fenced_blocks);
}

void BlockClocks::pass(Warp& w, const Gathered& arrived) const {
  join(w.seen, arrived.seen, launch_->used);
  w.blocks.join(arrived.blocks);
  w.observed.join(arrived.observed);
  w.taken.join(arrived.taken);
  w.fenced_blocks.join(arrived.fenced_blocks);
}

void BlockClocks::arrive(int warp, int barrier) {
  gather(warp, barriers_[barrier]);
  Time& time = warps_[static_cast<std::size_t>(warp)].time;
  ++time.clock;
  ++time.warp_barriers;
}

void BlockClocks::pass(int warp, int barrier) {
  pass(warps_[static_cast<std::size_t>(warp)], barriers_[barrier]);
}

/// Orders the warp after what its strong reads found.
void BlockClocks::acquire(int warp, FenceScope scope) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  if (!noticed_.empty()) join(w.seen, noticed_[static_cast<std::size_t>(warp)], launch_->used);
  if (const std::uint32_t own = w.observed.of(block_); own != 0)
    join(w.seen, launch_->covered(block_, own), launch_->used);
  if (scope != FenceScope::kDevice) return;
  w.blocks.join(w.observed);
  w.observed = {};
}

void BlockClocks::fence(int warp, FenceScope scope) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  acquire(warp, scope);
  w.block_release = launch_->release(block_, clocks(warp));
  ++w.time.clock;
  if (scope != FenceScope::kDevice) return;
  w.release = w.block_release;
  w.released_blocks = w.blocks;
}

void BlockClocks::cluster_arrive(int warp, Horizon& arriving, bool relaxed) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  if (!relaxed) fence(warp, FenceScope::kDevice);
  if (w.release == 0) return;
  arriving.join(w.released_blocks);
  arriving.add(block_, w.release);
}

void BlockClocks::cluster_wait(int warp, const Horizon& arrived) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  w.observed.join(arrived);
  acquire(warp, FenceScope::kDevice);
  ++w.time.warp_barriers;
}

void BlockClocks::mbarrier_arrive(int warp, AtMbarrier& at, bool all, bool relaxed) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  if (relaxed) {  // what a fence released before
    if (w.block_release != 0) join(at.seen, launch_->covered(block_, w.block_release), launch_->used);
    at.blocks.join(w.released_blocks);
    return;
  }
  gather(warp, at);
  if (all) at.whole[static_cast<std::size_t>(warp)] = w.time.clock;
  ++w.time.clock;
}

void BlockClocks::mbarrier_arrive_remote(int warp, AtMbarrier& at, bool relaxed) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  if (!relaxed) fence(warp, FenceScope::kDevice);
  if (w.release == 0) return;
  at.blocks.join(w.released_blocks);
  at.blocks.add(block_, w.release);
}

void BlockClocks::mbarrier_wait(int warp, const AtMbarrier& arrived, bool relaxed) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  if (relaxed) {
    noticed_.resize(warps_.size());
    join(noticed_[static_cast<std::size_t>(warp)], arrived.seen, launch_->used);
    w.observed.join(arrived.blocks);
    return;
  }
  pass(w, arrived);
  w.own = std::max(w.own, arrived.whole[static_cast<std::size_t>(warp)]);
}

void BlockClocks::proxy_fence(int warp) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  const WarpClocks now = clocks(warp);
  for (std::size_t k = 0; k < kMaxWarps; ++k) w.seen[kFenced + k] = std::max(w.seen[kFenced + k], now[k]);
  w.fenced_blocks.join(w.blocks);
  ++w.time.clock;
}

bool BlockClocks::visible_to_bulk(int warp, std::uint32_t block, int earlier, Time time) const {
  const Warp& w = warps_[static_cast<std::size_t>(warp)];
  if (earlier >= kMaxWarps) return true;  // of bulk copies themselves
  const auto e = static_cast<std::size_t>(earlier);
  if (block == block_) return time.clock <= w.seen[kFenced + e];
  const std::uint32_t release = w.blocks.of(block), fenced = w.fenced_blocks.of(block);
  return (release != 0 && time.clock <= launch_->covered(block, release)[kFenced + e]) ||
         (fenced != 0 && time.clock <= launch_->covered(block, fenced)[e]);
}

void BlockClocks::bulk_waited(int warp, int actor, std::uint32_t clock) {
  std::uint32_t& seen = warps_[static_cast<std::size_t>(warp)].seen[static_cast<std::size_t>(actor)];
  seen = std::max(seen, clock);
}

bool BlockClocks::knows_of(int warp, std::uint32_t block) const {
  const Warp& w = warps_[static_cast<std::size_t>(warp)];
  return w.blocks.of(block) != 0 || w.observed.of(block) != 0;
}

void BlockClocks::strong_access(int warp, LeftAt& left_at, std::uint64_t address, bool of_block,
                                StrongAccess access) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  if (access.releases) fence(warp, FenceScope::kDevice);
  if (access.reads) {
    if (const auto found = left_at.find(address); found != left_at.end()) {
      w.observed.join(found->second);
      if (access.writes) w.taken.join(found->second);
      if (access.acquires) acquire(warp, FenceScope::kDevice);
    }
  }
  if (!access.writes) return;
  Horizon published;
  if (w.release != 0) {
    published = w.released_blocks;
    published.add(block_, w.release);
  }
  if (of_block && w.block_release != 0) published.add(block_, w.block_release);
  if (access.reads) {  // a read-modify-write continues what was released here before
    if (!published.empty()) left_at[address].join(published);
  } else if (!published.empty()) {
    left_at[address] = std::move(published);
  } else {
    left_at.erase(address);
  }
}

}  // namespace stitchwork::sim
