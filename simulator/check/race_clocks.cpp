#include "simulator/check/race_clocks.h"

#include <algorithm>
#include <bit>

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

const Horizon& SharedHorizon::none() {
  static const Horizon kNone;
  return kNone;
}

Horizon& SharedHorizon::own() {
  if (!at_)
    at_ = std::make_shared<Horizon>();
  else if (at_.use_count() > 1)
    at_ = std::make_shared<Horizon>(*at_);
  return *at_;
}

std::uint32_t LaunchClocks::release(std::uint32_t block, const WarpClocks& covered,
                                    const SharedHorizon& blocks) {
  std::vector<Release>& mine = releases_[block];
  mine.push_back({covered, blocks});
  if (mine.size() > 1) join(mine.back().covered, mine[mine.size() - 2].covered, used);
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
  const auto covers = [&](std::uint32_t release) {
    return release != 0 && time.clock <= launch_->covered(block, release)[static_cast<std::size_t>(earlier)];
  };
  if (covers(w.blocks->of(block)) || (strong && covers(w.observed.of(block)))) return true;
  // A warp that has fenced, and by that emptied L1, reads what a read-modify-write since has found published,
  // be it its own or one before a barrier of the block: so the last block of a reduction reads the others'
  // results (CUDA C++ Programming Guide, "Memory Fence Functions").
  return w.fenced >= static_cast<int>(launch_->common(block_, block)) && covers(w.taken.of(block));
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
  at.blocks.join(*w.blocks);
  at.observed.join(w.observed);
  at.taken.join(w.taken);
  for (std::size_t p = 0; p < at.fenced_blocks.size(); ++p) at.fenced_blocks[p].join(w.fenced_blocks[p]);
}

void BlockClocks::pass(Warp& w, const Gathered& arrived) const {
  join(w.seen, arrived.seen, launch_->used);
  w.blocks.join(arrived.blocks);
  w.observed.join(arrived.observed);
  w.taken.join(arrived.taken);
  for (std::size_t p = 0; p < w.fenced_blocks.size(); ++p) w.fenced_blocks[p].join(arrived.fenced_blocks[p]);
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

void BlockClocks::order_after(Warp& w, std::uint32_t block, std::uint32_t release) const {
  const LaunchClocks::Release& r = launch_->at(block, release);
  w.blocks.join(*r.blocks);
  if (block == block_)
    join(w.seen, r.covered, launch_->used);
  else
    w.blocks.add(block, release);
}

/// Orders the warp after these, as far as they are of blocks in the scope; returns the rest.
Releases BlockClocks::acquire(Warp& w, const Releases& releases, Scope scope) const {
  if (scope == Scope::kDevice) {  // all of them
    if (const std::uint32_t own = releases.made.of(block_); own != 0) order_after(w, block_, own);
    w.blocks.join(releases.behind);
    w.blocks.join(releases.made);
    return {};
  }
  Releases beyond;
  for (const auto& [block, release] : releases.made) {
    if (launch_->common(block, block_) <= scope)
      order_after(w, block, release);
    else
      beyond.made.add(block, release);
  }
  if (!beyond.made.empty()) beyond.behind = releases.behind;
  return beyond;
}

std::uint32_t BlockClocks::new_release(Warp& w, int warp) {
  const std::uint32_t number = launch_->release(block_, clocks(warp), w.blocks);
  ++w.time.clock;
  return number;
}

/// Of a fence: what later strong writes leave at their addresses.
void BlockClocks::release(int warp, Scope scope) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  const auto s = static_cast<std::size_t>(scope);
  std::fill_n(w.releases.begin(), s, 0u);
  w.releases[s] = new_release(w, warp);
}

void BlockClocks::fence(int warp, Scope scope, bool acquires, bool releases) {
  if (acquires) {
    Warp& w = warps_[static_cast<std::size_t>(warp)];
    if (!noticed_.empty()) join(w.seen, noticed_[static_cast<std::size_t>(warp)], launch_->used);
    w.observed = acquire(w, w.observed, scope);
    w.fenced = std::max(w.fenced, static_cast<int>(scope));
  }
  if (releases) release(warp, scope);
}

std::uint32_t BlockClocks::last_release(const Warp& w, Scope scope) {
  return *std::max_element(w.releases.begin() + static_cast<int>(scope), w.releases.end());
}

void BlockClocks::cluster_arrive(int warp, Horizon& arriving, bool relaxed) {
  if (!relaxed) release(warp, Scope::kCluster);
  const std::uint32_t last = last_release(warps_[static_cast<std::size_t>(warp)], Scope::kCluster);
  if (last != 0) arriving.add(block_, last);
}

void BlockClocks::cluster_wait(int warp, const Horizon& arrived) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  acquire(w, {arrived, {}}, Scope::kCluster);
  ++w.time.warp_barriers;
}

void BlockClocks::mbarrier_arrive(int warp, AtMbarrier& at, bool all, bool relaxed) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  if (relaxed) {  // what a fence released before
    const std::uint32_t last = last_release(w, Scope::kBlock);
    if (last == 0) return;
    join(at.seen, launch_->covered(block_, last), launch_->used);
    at.blocks.join(*launch_->at(block_, last).blocks);
    return;
  }
  gather(warp, at);
  if (all) at.whole[static_cast<std::size_t>(warp)] = w.time.clock;
  ++w.time.clock;
}

void BlockClocks::mbarrier_arrive_remote(int warp, AtMbarrier& at, SyncOrder order) {
  if (order.scope == Scope::kBlock) return;  // which the other block is not in
  if (!order.relaxed) release(warp, Scope::kCluster);
  const std::uint32_t last = last_release(warps_[static_cast<std::size_t>(warp)], Scope::kCluster);
  if (last != 0) at.remote.add(block_, last);
}

void BlockClocks::mbarrier_wait(int warp, const AtMbarrier& arrived, SyncOrder order) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  if (order.relaxed) {
    noticed_.resize(warps_.size());
    join(noticed_[static_cast<std::size_t>(warp)], arrived.seen, launch_->used);
    w.observed.made.join(arrived.blocks);
    if (order.scope != Scope::kBlock) w.observed.made.join(arrived.remote);
    return;
  }
  pass(w, arrived);
  acquire(w, {arrived.remote, {}}, order.scope);
  w.own = std::max(w.own, arrived.whole[static_cast<std::size_t>(warp)]);
}

void BlockClocks::proxy_fence(int warp, std::uint8_t places) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  const WarpClocks now = clocks(warp);
  for (std::size_t p = 0; p < w.fenced_blocks.size(); ++p) {
    if (!(places >> p & 1)) continue;
    std::uint32_t* const fenced = w.seen.data() + kFenced + p * kMaxWarps;
    for (std::size_t k = 0; k < kMaxWarps; ++k) fenced[k] = std::max(fenced[k], now[k]);
    w.fenced_blocks[p].join(*w.blocks);
  }
  ++w.time.clock;
}

bool BlockClocks::visible_to_bulk(int warp, std::uint32_t block, int earlier, Time time,
                                  std::optional<std::uint32_t> owner) const {
  const Warp& w = warps_[static_cast<std::size_t>(warp)];
  if (earlier >= kMaxWarps) return true;  // of bulk copies themselves
  const auto e = static_cast<std::size_t>(earlier);
  // To a fence of a block.
  const auto place = [&](std::uint32_t to) {
    const int bit = !owner ? kProxyGlobal : *owner == to ? kProxyShared : kProxyOtherShared;
    return static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(bit)));
  };
  const std::size_t fenced = kFenced + place(block) * kMaxWarps + e;
  if (block == block_) return time.clock <= w.seen[fenced];
  // Fenced there, before the release, or here behind it.
  const std::uint32_t release = w.blocks->of(block), seen = w.fenced_blocks[place(block_)].of(block);
  return (release != 0 && time.clock <= launch_->covered(block, release)[fenced]) ||
         (seen != 0 && time.clock <= launch_->covered(block, seen)[e]);
}

void BlockClocks::bulk_waited(int warp, int actor, std::uint32_t clock) {
  std::uint32_t& seen = warps_[static_cast<std::size_t>(warp)].seen[static_cast<std::size_t>(actor)];
  seen = std::max(seen, clock);
}

bool BlockClocks::knows_of(int warp, std::uint32_t block) const {
  const Warp& w = warps_[static_cast<std::size_t>(warp)];
  return w.blocks->of(block) != 0 || w.observed.of(block) != 0;
}

Releases BlockClocks::found(const LeftAtAddress& left, Scope scope) const {
  if (launch_->common(left.block, block_) > std::min(left.scope, scope)) return {};
  Releases reaching = left.releases.back();
  for (std::size_t s = 0; s + 1 < left.releases.size(); ++s)
    for (const auto& [block, release] : left.releases[s].made) {
      if (launch_->common(block, block_) > static_cast<Scope>(s)) continue;
      reaching.made.add(block, release);
      reaching.behind.join(*launch_->at(block, release).blocks);
    }
  return reaching;
}

void BlockClocks::strong_access(int warp, LeftAt& left_at, std::uint64_t address, StrongAccess access) {
  Warp& w = warps_[static_cast<std::size_t>(warp)];
  const auto left = left_at.find(address);
  const bool any_left = left != left_at.end();
  if (access.reads && any_left) {
    const Releases reaching = found(left->second, access.scope);
    w.observed.join(reaching);
    if (access.writes) w.taken.join(reaching);
    if (access.acquires) acquire(w, reaching, access.scope);
  }
  if (!access.writes) return;
  LeftAtAddress published;
  published.block = block_;
  published.scope = access.scope;
  bool any = false;
  const auto publish = [&](std::size_t scope, std::uint32_t release) {
    if (release == 0) return;
    published.releases[scope].made.add(block_, release);
    published.releases[scope].behind.join(*launch_->at(block_, release).blocks);
    any = true;
  };
  for (std::size_t s = 0; s < w.releases.size(); ++s) publish(s, w.releases[s]);
  if (access.releases) publish(static_cast<std::size_t>(access.scope), new_release(w, warp));
  if (any_left) {
    // A read-modify-write continues what was released here before, a write what its own block did.
    const bool continues = access.reads && launch_->common(left->second.block, block_) <=
                                               std::min(left->second.scope, access.scope);
    for (std::size_t s = 0; s < published.releases.size(); ++s) {
      if (continues)
        published.releases[s].join(left->second.releases[s]);
      else
        publish(s, left->second.releases[s].made.of(block_));
    }
    any |= continues;
  }
  if (any)
    left_at.insert_or_assign(address, std::move(published));
  else if (any_left)
    left_at.erase(left);
}

}  // namespace stitchwork::sim
