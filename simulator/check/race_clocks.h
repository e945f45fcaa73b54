// Who is ordered after whom: vector clocks of the warps of a launch.
//
// Every warp of a block has a clock, which block barriers carry to the other warps. Between blocks order goes
// by releases: a fence numbers what its warp is ordered after, a strong write (atomic, volatile, relaxed,
// release) after the fence leaves that number at its address, and a strong read there takes it along. A fence
// after the read, or a read that is itself an acquire, orders what follows; before that only strong accesses
// are ordered, since plain loads may still find old lines in L1.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

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

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen_;
};

/// Bulk copies go on beside the warps of a block: what loads do, what stores read, what they write. Each has
/// a clock as warps have, which counts copies.
inline constexpr int kBulkLoads = kMaxWarps, kBulkReads = kMaxWarps + 1, kBulkWrites = kMaxWarps + 2;
inline constexpr int kActors = kMaxWarps + 3;
/// From here on, by warp: until when a fence.proxy.async made what it did visible to bulk copies.
inline constexpr int kFenced = kActors;
/// Of all of these.
using WarpClocks = std::array<std::uint32_t, kFenced + kMaxWarps>;

/// What all blocks share: their releases, and what strong writes left at addresses of global memory.
class LaunchClocks {
 public:
  /// The number, from 1, of a new release of `block` that covers these clocks and those of earlier releases.
  std::uint32_t release(std::uint32_t block, const WarpClocks& covered);
  const WarpClocks& covered(std::uint32_t block, std::uint32_t release) const {
    return releases_.at(block)[release - 1];
  }
  std::unordered_map<std::uint64_t, Horizon> left_at;
  /// Of WarpClocks, that can be other than 0: all where the kernel has bulk copies or proxy fences.
  std::size_t used = kMaxWarps;

 private:
  std::unordered_map<std::uint32_t, std::vector<WarpClocks>> releases_;
};

enum class FenceScope : std::uint8_t { kNone, kBlock, kDevice };

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

  void fence(int warp, FenceScope scope);
  struct StrongAccess {
    bool reads = false, writes = false, acquires = false, releases = false;
  };
  /// An access to a synchronisation variable, in this block's shared memory or in global memory.
  void strong_access(int warp, std::uint64_t address, bool shared, StrongAccess access) {
    strong_access(warp, shared ? left_at_shared_ : launch_->left_at, address, shared, access);
  }
  /// The same in shared memory of another block of the cluster.
  void strong_access(int warp, BlockClocks& owner, std::uint64_t address, StrongAccess access) {
    strong_access(warp, owner.left_at_shared_, address, false, access);
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
    Horizon blocks, observed, taken, fenced_blocks;
  };
  struct AtMbarrier : Gathered {
    WarpClocks whole = {};  ///< of warps whose running lanes all arrived together
  };
  /// Some lanes of a warp arrive at an mbarrier of this block; `all`: all its running lanes.
  void mbarrier_arrive(int warp, AtMbarrier& at, bool all, bool relaxed);
  /// The same at one of another block.
  void mbarrier_arrive_remote(int warp, AtMbarrier& at, bool relaxed);
  /// A wait found a phase complete.
  void mbarrier_wait(int warp, const AtMbarrier& arrived, bool relaxed);
  /// fence.proxy.async: what the warp is ordered after, bulk copies that come later see.
  void proxy_fence(int warp);
  /// Whether a bulk copy that `warp` issues sees what `earlier` wrote, which is ordered before.
  bool visible_to_bulk(int warp, std::uint32_t block, int earlier, Time time) const;
  /// The next copy of one of the kBulk... clocks.
  Time next_bulk(int actor) { return {++bulk_times_[static_cast<std::size_t>(actor - kBulkLoads)], 0}; }
  /// `warp` has waited for it.
  void bulk_waited(int warp, int actor, std::uint32_t clock);

 private:
  struct Warp {
    Time time;
    WarpClocks seen = {};             ///< of the warps of this block, itself apart
    std::uint32_t own = 0;            ///< its own clock until which its lanes are ordered by mbarriers
    Horizon fenced_blocks;            ///< `blocks` at its last proxy fence
    Horizon blocks;                   ///< releases it is ordered after
    Horizon observed;                 ///< releases its strong reads found; a fence orders it after them
    Horizon taken;                    ///< of these, what its read-modify-writes found
    Horizon released_blocks;          ///< `blocks` at its last device fence
    std::uint32_t release = 0;        ///< of its last device fence
    std::uint32_t block_release = 0;  ///< of its last fence of any scope
  };
  using LeftAt = std::unordered_map<std::uint64_t, Horizon>;
  void strong_access(int warp, LeftAt& left_at, std::uint64_t address, bool of_block, StrongAccess access);
  WarpClocks clocks(int warp) const;
  void acquire(int warp, FenceScope scope);
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
