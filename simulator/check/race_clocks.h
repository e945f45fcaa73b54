// Who is ordered after whom: vector clocks of the warps of a launch.
//
// Every warp of a block has a clock, which block barriers carry to the other warps. Between blocks order goes
// by releases: a fence numbers what its warp is ordered after, a strong write (atomic, volatile, relaxed,
// release) after the fence leaves that number at its address, and a strong read there takes it along. A fence
// after the read, or a read that is itself an acquire, orders what follows; before that only strong accesses
// are ordered, since plain loads may still find old lines in L1. Fences and strong accesses have scopes: both
// fences of such a chain, and each write and the read that finds it, have to be of scopes that hold the
// blocks of both (PTX ISA, Memory Consistency Model: morally strong).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/machine/atomics.h"

namespace stitchwork::sim {

/// 1024 threads a block.
inline constexpr int kMaxWarps = 32;

/// By block the number of its last release that is seen; ascending by block, absent: none.
class Horizon {
 public:
  void join(const Horizon& other);
  void add(std::uint32_t block, std::uint32_t release);
  std::uint32_t of(std::uint32_t block) const;
  bool empty() const { return seen_.empty(); }
  auto begin() const { return seen_.begin(); }  ///< (block, release)
  auto end() const { return seen_.end(); }

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen_;
};

/// A Horizon that many keep as it was at some time: it is copied when it changes.
class SharedHorizon {
 public:
  const Horizon& operator*() const { return at_ ? *at_ : none(); }
  const Horizon* operator->() const { return &**this; }
  void join(const Horizon& other) {
    if (!other.empty()) own().join(other);
  }
  void add(std::uint32_t block, std::uint32_t release) { own().add(block, release); }

 private:
  static const Horizon& none();
  Horizon& own();
  std::shared_ptr<Horizon> at_;
};

/// Bulk copies go on beside the warps of a block: what loads do, what stores read, what they write. Each has
/// a clock as warps have, which counts copies.
inline constexpr int kBulkLoads = kMaxWarps, kBulkReads = kMaxWarps + 1, kBulkWrites = kMaxWarps + 2;
inline constexpr int kActors = kMaxWarps + 3;
/// From here on, by place (kProxy...) and warp: until when a fence.proxy.async made what it did there visible
/// to bulk copies.
inline constexpr int kFenced = kActors;
/// Of all of these.
using WarpClocks = std::array<std::uint32_t, kFenced + kProxyPlaces * kMaxWarps>;

/// Releases, and what all of them were ordered after.
struct Releases {
  Horizon made, behind;
  void join(const Releases& other) {
    made.join(other.made);
    behind.join(other.behind);
  }
  bool empty() const { return made.empty() && behind.empty(); }
  /// Until when a warp that is ordered after all of these knows what `block` did.
  std::uint32_t of(std::uint32_t block) const { return std::max(made.of(block), behind.of(block)); }
};

/// What strong writes left at an address: releases by the scopes of their fences, and what the last write
/// was.
struct LeftAtAddress {
  std::array<Releases, kScopes> releases;
  std::uint32_t block = 0;
  Scope scope = Scope::kDevice;
};
using LeftAt = std::unordered_map<std::uint64_t, LeftAtAddress>;

/// What all blocks share: their releases, and what strong writes left at addresses of global memory.
class LaunchClocks {
 public:
  /// The blocks of a cluster share its number; of a launch without clusters, no two blocks do.
  explicit LaunchClocks(std::function<std::uint64_t(std::uint32_t block)> cluster_of)
      : cluster_of_(std::move(cluster_of)) {}
  /// The narrowest scope that holds both.
  Scope common(std::uint32_t a, std::uint32_t b) const {
    return a == b ? Scope::kBlock : cluster_of_(a) == cluster_of_(b) ? Scope::kCluster : Scope::kDevice;
  }

  struct Release {
    WarpClocks covered;  ///< and by earlier releases of the block
    SharedHorizon blocks;
  };
  /// The number, from 1, of a new release of `block`, which is ordered after `blocks`.
  std::uint32_t release(std::uint32_t block, const WarpClocks& covered, const SharedHorizon& blocks);
  const Release& at(std::uint32_t block, std::uint32_t release) const {
    return releases_.at(block)[release - 1];
  }
  const WarpClocks& covered(std::uint32_t block, std::uint32_t release) const {
    return at(block, release).covered;
  }
  LeftAt left_at;
  /// Of WarpClocks, that can be other than 0: all where the kernel has bulk copies or proxy fences.
  std::size_t used = kMaxWarps;

 private:
  std::function<std::uint64_t(std::uint32_t)> cluster_of_;
  std::unordered_map<std::uint32_t, std::vector<Release>> releases_;
};

/// The clocks of one block.
class BlockClocks {
 public:
  BlockClocks(LaunchClocks& launch, std::uint32_t block, int warps);

  /// An access of a warp at some time is known by the warp's clock and its number of warp barriers.
  struct Time {
    std::uint32_t clock = 0, warp_barriers = 0;
    bool operator==(const Time&) const = default;
  };
  Time now(int warp) const { return warps_[static_cast<std::size_t>(warp)].time; }
  /// True if `warp` is ordered after what `earlier` of this block, a warp or bulk copies, did at `time`.
  bool after(int warp, int earlier, Time time) const;
  /// The same for a warp of another block. `strong`: for a strong access.
  bool after_block(int warp, std::uint32_t block, int earlier, Time time, bool strong) const;

  void warp_barrier(int warp) { ++warps_[static_cast<std::size_t>(warp)].time.warp_barriers; }
  void arrive(int warp, int barrier);
  /// The barrier lets `warp` go on.
  void pass(int warp, int barrier);
  /// All that were waiting have passed.
  void reset(int barrier) { barriers_.erase(barrier); }

  void fence(int warp, Scope scope, bool acquires = true, bool releases = true);
  struct StrongAccess {
    Scope scope = Scope::kDevice;
    bool reads = false, writes = false, acquires = false, releases = false;
  };
  /// An access to a synchronisation variable, in this block's shared memory or in global memory.
  void strong_access(int warp, std::uint64_t address, bool shared, StrongAccess access) {
    strong_access(warp, shared ? left_at_shared_ : launch_->left_at, address, access);
  }
  /// The same in shared memory of another block of the cluster.
  void strong_access(int warp, BlockClocks& owner, std::uint64_t address, StrongAccess access) {
    strong_access(warp, owner.left_at_shared_, address, access);
  }

  /// Arrives at a cluster barrier that gathers what was released in `arriving`; `relaxed`: what a fence
  /// released before.
  void cluster_arrive(int warp, Horizon& arriving, bool relaxed);
  /// The barrier lets `warp` go on, after all that was released there.
  void cluster_wait(int warp, const Horizon& arrived);
  /// True if some warp of this block is ordered after anything that `block` released.
  bool knows_of(int warp, std::uint32_t block) const;

  /// What those did that arrived at something: a block barrier, an mbarrier.
  struct Gathered {
    WarpClocks seen = {};
    Horizon blocks;
    Releases observed, taken;
    std::array<Horizon, kProxyPlaces> fenced_blocks;
  };
  struct AtMbarrier : Gathered {
    Horizon remote;         ///< releases of other blocks' warps that arrived
    WarpClocks whole = {};  ///< of warps whose running lanes all arrived together
  };
  /// Some lanes of a warp arrive at an mbarrier of this block; `all`: all its running lanes.
  void mbarrier_arrive(int warp, AtMbarrier& at, bool all, bool relaxed);
  /// The same at one of another block.
  void mbarrier_arrive_remote(int warp, AtMbarrier& at, SyncOrder order);
  /// A wait found a phase complete.
  void mbarrier_wait(int warp, const AtMbarrier& arrived, SyncOrder order);
  /// fence.proxy.async: what the warp is ordered after in `places` (kProxy...), bulk copies that come later
  /// see.
  void proxy_fence(int warp, std::uint8_t places);
  /// Whether a bulk copy that `warp` issues sees what `earlier` wrote, which is ordered before, in the shared
  /// memory of the block `owner`, else in global memory.
  bool visible_to_bulk(int warp, std::uint32_t block, int earlier, Time time,
                       std::optional<std::uint32_t> owner) const;
  /// The next copy of one of the kBulk... clocks.
  Time next_bulk(int actor) { return {++bulk_times_[static_cast<std::size_t>(actor - kBulkLoads)], 0}; }
  /// `warp` has waited for it.
  void bulk_waited(int warp, int actor, std::uint32_t clock);

 private:
  struct Warp {
    Time time;
    WarpClocks seen = {};   ///< of the warps of this block, itself apart
    std::uint32_t own = 0;  ///< its own clock until which its lanes are ordered by mbarriers
    std::array<Horizon, kProxyPlaces> fenced_blocks;  ///< `blocks` at its last proxy fences
    SharedHorizon blocks;                             ///< releases it is ordered after
    Releases observed;  ///< releases its strong reads found; a fence orders it after them
    Releases taken;     ///< of these, what its read-modify-writes found
    int fenced = -1;    ///< the widest scope of its fences that acquire; -1: none
    /// Its last releases by scope; of a narrower one only if that came after all of wider ones. 0: none.
    std::array<std::uint32_t, kScopes> releases = {};
  };
  void strong_access(int warp, LeftAt& left_at, std::uint64_t address, StrongAccess access);
  /// What reaches `warp` of what was left at an address.
  Releases found(const LeftAtAddress& left, Scope scope) const;
  /// The last release that holds the whole of `scope`; 0: none.
  static std::uint32_t last_release(const Warp& w, Scope scope);
  void order_after(Warp& w, std::uint32_t block, std::uint32_t release) const;
  WarpClocks clocks(int warp) const;
  Releases acquire(Warp& w, const Releases& releases, Scope scope) const;
  std::uint32_t new_release(Warp& w, int warp);
  void release(int warp, Scope scope);
  void gather(int warp, Gathered& at) const;
  void pass(Warp& warp, const Gathered& arrived) const;

  LaunchClocks* launch_;
  std::uint32_t block_;
  std::vector<Warp> warps_;
  std::map<int, Gathered> barriers_;
  std::array<std::uint32_t, kActors - kMaxWarps> bulk_times_ = {};
  LeftAt left_at_shared_;
  std::vector<WarpClocks>
      noticed_;  ///< by warp, in relaxed waits; a fence orders it after them. Empty: nothing
};

}  // namespace stitchwork::sim
