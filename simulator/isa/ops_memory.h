// Loads, stores and atomics of every state space, with checks and sector accounting.
#pragma once

#include "simulator/isa/memory_access.h"

namespace stitchwork::sim {
namespace {

/// True if a store of the active lanes changes memory, all of it in the cached allocation.
template <int kBytes>
bool changes_memory(Strand& s, const Inst* i, int w, u32 mask, Lanes<u64> a, const AddressCache& cache) {
  const int shift = i->aux & kWideRegister ? 8 : 4;
  for (u32 m = mask; m != 0; m &= m - 1) {
    const int l = __builtin_ctz(m);
    if (__builtin_memcmp(cache.host + (a[l] - cache.lo), s.regs + i->o[0] + (w * 32 + l) * shift, kBytes) !=
        0)
      return true;
  }
  return false;
}

/// Finds the allocation of each active lane's access on its own, and reports those that have none.
template <bool kStore, int kBytes>
void move_checked(Strand& s, const Inst* i, int w, u32 mask, Lanes<u64> a) {
  AddressCache& cache = s.block->caches[i->id];
  const u32 width = u32(accessed_bytes(i, kBytes * i->count));
  for (u32 m = mask; m != 0; m &= m - 1) {
    const int l = __builtin_ctz(m);
    if ((a[l] & (width - 1)) != 0) raise_misaligned(s, i, a[l], width, w, l);
    if (a[l] < cache.lo || a[l] + width > cache.hi) find_allocation(s, i, cache, a[l], width, kStore, w, l);
    if (kStore && s.block->communicates)
      s.block->progress += changes_memory<kBytes>(s, i, w, 1u << l, a, cache);
    move_lane<kStore, kBytes>(s, i, w, l, cache.host + (a[l] - cache.lo));
  }
}

/// What the warps of one instruction did.
struct Tally {
  u64 lanes = 0;  ///< active
  u64 counted_bytes = 0, requests = 0, transactions = 0, wavefronts = 0;
};

template <bool kStore, int kBytes>
SW_INLINE void access_global(Strand& s, const Inst* i, int w, u32 mask, Lanes<u64> a, u64 width,
                             Tally& tally) {
  BlockRun& b = *s.block;
  AddressCache& cache = b.caches[i->id];
  alignas(64) u64 filled[32];
  const u32 lanes = __builtin_popcount(mask);
  tally.lanes += lanes;
  if (mask != ~0u) {
    fill_inactive(a, mask, filled);
    a = Lanes<u64>(filled);
  }
  const u64 accessed = accessed_bytes(i, width);
  const Shape<u64> whole = shape_of<u64>(a, accessed);
  if (all_inside<u64>(a, whole, cache.lo, cache.hi)) [[likely]] {
    if (kStore && b.communicates) b.progress += changes_memory<kBytes>(s, i, w, mask, a, cache);
    const Shape<u64> part = accessed == width ? whole : shape_of<u64>(a, width);
    move_lanes<kStore, kBytes, u64>(s, i, w, mask, a, part, cache.host, cache.lo);
  } else {
    move_checked<kStore, kBytes>(s, i, w, mask, a);
  }
  if (i->aux & (kUncounted | kLaterPart)) return;
  tally.counted_bytes += lanes * accessed;
  ++tally.requests;
  const Touched touched = log_access(b, a, whole, kStore, !kStore && through_l1(b, i));
  tally.transactions += touched.sectors;
  tally.wavefronts += l1_wavefronts(touched, lanes * u32(accessed));
}

/// Has the host fetch what the half warps of an instruction are about to touch, side by side. Addresses of
/// inactive lanes do no harm.
SW_INLINE void prefetch(const Strand& s, const Inst* i, bool write) {
  if (i->aux & kAddress32) return;
  const AddressCache& cache = s.block->caches[i->id];
  const std::byte* numbers = s.regs + i->o[4];
  // Sums of numbers, not of a pointer: the place may be nowhere.
  const auto base = reinterpret_cast<std::uintptr_t>(cache.host) + u64(i->imm) - cache.lo;
  for (int l = s.first_warp * 32; l < s.last_warp * 32; l += 16) {
    const auto* p = reinterpret_cast<const std::byte*>(base + load<u64>(numbers + l * 8));
    if (write)
      __builtin_prefetch(p, 1);
    else
      __builtin_prefetch(p);
  }
}

/// Adds what an instruction did to global memory to the counters.
template <bool kStore>
SW_INLINE void count_global(HotCounters& hot, const Tally& tally) {
  hot.accesses += tally.lanes;
  (kStore ? hot.gst_requests : hot.gld_requests) += tally.requests;
  (kStore ? hot.gst_transactions : hot.gld_transactions) += tally.transactions;
  (kStore ? hot.gst_bytes : hot.gld_bytes) += tally.counted_bytes;
  hot.l1_wavefronts += tally.wavefronts;
}

/// The finding of the first lane whose access of a window is misaligned or outside.
template <bool kStore, class A>
[[noreturn]] void report_outside(Strand& s, const Inst* i, int w, u32 mask, Lanes<A> a, u32 width, u64 window,
                                 u64 base, u64 size) {
  for (u32 m = mask;; m &= m - 1) {
    const int l = __builtin_ctz(m);
    if ((a[l] & (width - 1)) != 0) raise_misaligned(s, i, a[l], width, w, l);
    const u64 offset = u64(a[l]) - base;
    if (offset > size || offset + u64(width) > size)
      raise_window(s, i,
                   window == kSharedWindow  ? "shared"
                   : window == kLocalWindow ? "local"
                                            : "parameter",
                   offset, width, size, kStore, w, l);
  }
}

/// Shared, local and parameter memory: a window of `size` bytes at `base`, for local memory one a thread. A:
/// u32 where all addresses have 32 bits.
template <bool kStore, int kBytes, class A>
SW_INLINE void access_window(Strand& s, const Inst* i, int w, u32 mask, Lanes<A> a, A width, u64 window,
                             AccessMemo* memo = nullptr) {
  BlockRun& b = *s.block;
  alignas(64) A filled[32];
  b.hot->accesses += __builtin_popcount(mask);
  if (mask != ~0u) {
    fill_inactive(a, mask, filled);
    a = Lanes<A>(filled);
  }
  const u64 size = window == kSharedWindow  ? b.shared_bytes
                   : window == kLocalWindow ? b.local_bytes
                                            : b.param_bytes;
  const A base = window == kSharedWindow ? A(b.shared_base) : A(0);
  const Shape<A> shape = shape_of<A>(a, width);
  if (!all_inside<A>(a, shape, base, base + A(size))) [[unlikely]]
    report_outside<kStore>(s, i, w, mask, a, u32(width), window, base, size);
  if (window == kLocalWindow) {
    for (u32 m = mask; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m);
      const u64 thread = u64((s.gang * kGangWarps + w) * 32 + l);
      move_lane<kStore, kBytes>(s, i, w, l, b.local + thread * b.local_bytes + a[l]);
    }
    log_local(b, u64(s.gang * kGangWarps + w), a, mask, u32(width), kStore);
    return;
  }
  if (window == kSharedWindow) {
    const SharedCost cost = shared_cost(a, mask, shape);
    count_shared(*b.hot, kStore, cost);
    if constexpr (sizeof(A) == 4) {
      if (memo != nullptr) remember(*memo, w, mask, shape, cost);
    }
  }
  move_lanes<kStore, kBytes, A>(s, i, w, mask, a, shape, window == kSharedWindow ? b.shared : b.params, base);
}

/// Generic addresses: splits the lanes by the window they point into.
template <bool kStore, int kBytes>
void access_generic(Strand& s, const Inst* i, int w, u32 mask, Lanes<u64> a, u64 width, Tally& tally) {
  while (mask != 0) {
    const u64 window = a[__builtin_ctz(mask)] >> kAllocationShift;
    const bool is_global = window == 0 || window >= kFirstAllocation;
    u32 same = 0;
    alignas(64) u64 local[32];
    for (int l = 0; l < 32; ++l) {
      const u64 address = a[l], x = address >> kAllocationShift;
      const bool match = is_global ? x == 0 || x >= kFirstAllocation : x == window;
      if (match && (mask >> l & 1)) same |= 1u << l;
      local[l] = address & kAllocationOffsetMask;
    }
    if (is_global)
      access_global<kStore, kBytes>(s, i, w, same, a, width, tally);
    else if (window == kSharedWindow && s.block->cluster != nullptr)
      access_cluster(s, i, w, same, local, kBytes, kStore);
    else
      access_window<kStore, kBytes, u64>(s, i, w, same, Lanes<u64>(local), width, window);
    mask &= ~same;
  }
}

/// Remembers where a warp accesses shared memory; `cost`: of this warp.
SW_INLINE void remember(AccessMemo& memo, int w, u32 mask, const Shape<u32>& shape, SharedCost cost) {
  memo.known &= mask == ~0u && shape.even();
  if (!memo.known) return;
  for (int h = 0; h < 2; ++h) {
    const u64 at = shape.at[h], end = at + shape.bytes(h);
    memo.at[2 * w + h] = shape.at[h];
    memo.is_run[2 * w + h] = shape.half[h] == Half::kRun;
    memo.low = at < memo.low ? at : memo.low;
    memo.high = end > memo.high ? end : memo.high;
  }
  memo.wavefronts += cost.wavefronts;
  memo.conflicts += cost.conflicts;
}

/// An access whose warps are where those of another were, but for a constant. False where that does not lie
/// inside, or is not aligned: then each warp is to be looked at.
template <bool kStore, int kBytes>
bool follow(Strand& s, const Inst* i, const AccessMemo& memo) {
  BlockRun& b = *s.block;
  const u32 shift = u32(i->imm) - memo.offset, width = kBytes * i->count, base = u32(b.shared_base);
  const u64 low = u64(u32(memo.low) + shift) - base, size = memo.high - memo.low;
  if (low > b.shared_bytes || size > b.shared_bytes - low || (shift & (width - 1)) != 0) return false;
  const u32 warps = u32(s.last_warp - s.first_warp);
  b.hot->accesses += 32 * warps;
  (kStore ? b.hot->shared_stores : b.hot->shared_loads) += warps;
  b.hot->shared_wavefronts += memo.wavefronts;
  b.hot->shared_conflicts += memo.conflicts;
  // Read once: what is moved might be any of these, for all the compiler knows.
  std::byte* const shared = b.shared;
  const u32 from = shift - base;
  const int first = 2 * s.first_warp, last = 2 * s.last_warp, count = i->count;
  std::byte* element[4];
  for (int k = 0; k < count; ++k) element[k] = s.regs + i->o[k];
  for (int h = first; h < last; ++h) {
    const Half half = memo.is_run[h] ? Half::kRun : Half::kSame;
    std::byte* const p = shared + u32(memo.at[h] + from);
    std::byte* r[4];
    r[0] = element[0] + h * 16 * kBytes;
    if (count == 1) {
      move_half<kStore, kBytes>(r, 1, half, p);
      continue;
    }
    for (int k = 1; k < count; ++k) r[k] = element[k] + h * 16 * kBytes;
    move_half<kStore, kBytes>(r, count, half, p);
  }
  return true;
}

enum class Space { kGlobal, kGeneric, kShared, kLocal, kParam };

template <Space kSpace, bool kStore, int kBytes, class A>
const Inst* access_warps(Strand& s, const Inst* i) {
  Tally tally;
  const A width = A(kBytes * i->count);
  if constexpr (kSpace == Space::kGlobal) prefetch(s, i, kStore);
  AccessMemo* memo = nullptr;
  if constexpr (kSpace == Space::kShared && sizeof(A) == 4 && kBytes >= 4) {
    if (i->flags & kMemoLeads) {
      memo = &s.memos[i->flags & (kMemos - 1)];
      memo->known = !s.masked && same_size<kBytes>(i);
      memo->offset = u32(i->imm);
      memo->low = ~u64(0);
      memo->high = memo->wavefronts = memo->conflicts = 0;
    }
  }
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 mask = s.mask[w];
    if (mask == 0) continue;
    Lanes<A> a(s.regs + i->o[4] + w * 32 * int(sizeof(A)), A(i->imm));
    alignas(64) A widened[32];
    if (sizeof(A) == 8 && (i->aux & kAddress32)) {
      lane_addresses(s, i, w, i->o[4], reinterpret_cast<u64*>(widened));
      a = Lanes<A>(widened);
    }
    if constexpr (kSpace == Space::kGlobal)
      access_global<kStore, kBytes>(s, i, w, mask, a, width, tally);
    else if constexpr (kSpace == Space::kGeneric)
      access_generic<kStore, kBytes>(s, i, w, mask, a, width, tally);
    else
      access_window<kStore, kBytes, A>(s, i, w, mask, a, width,
                                       kSpace == Space::kShared  ? kSharedWindow
                                       : kSpace == Space::kLocal ? kLocalWindow
                                                                 : kParamWindow,
                                       memo);
  }
  if constexpr (kSpace == Space::kGlobal || kSpace == Space::kGeneric) {
    count_global<kStore>(*s.block->hot, tally);
    if (i->aux & kAcquire) empty_l1(*s.block);
  }
  if (i->aux & kPolls) {
    const u64 awaited = first_address(s, i);
    if constexpr (kSpace == Space::kGlobal || kSpace == Space::kGeneric)
      s.block->updates->add_awaited(awaited >> 2);
    return yield_after_poll(s, i, awaited);
  }
  return i + 1;
}

template <Space kSpace, bool kStore, int kBytes>
const Inst* access(Strand& s, const Inst* i) {
  if constexpr (kSpace == Space::kShared) {
    if (i->aux & kAddress32) {
      if constexpr (kBytes >= 4) {
        const AccessMemo& memo = s.memos[i->flags & (kMemos - 1)];
        if ((i->flags & kMemoFollows) && memo.known && same_size<kBytes>(i) &&
            follow<kStore, kBytes>(s, i, memo))
          return i + 1;
      }
      return access_warps<kSpace, kStore, kBytes, u32>(s, i);
    }
  }
  return access_warps<kSpace, kStore, kBytes, u64>(s, i);
}

/// Memory that an atomic may be on.
enum class AtomicSpace { kGlobalOrGeneric, kShared, kCluster };

/// atom.exch.b128, atom.cas.b128 (count 1) of a lane: o[0] and o[1] what was there, o[2] and o[3] operand,
/// o[5] and the one behind it second operand, low halves first. Returns whether memory changed.
SW_INLINE bool exchange_wide(Strand& s, const Inst* i, int w, int l, std::byte* p) {
  const int e = (w * 32 + l) * 8;
  const u64 old[2] = {load<u64>(p), load<u64>(p + 8)};
  const u64 x[2] = {load<u64>(s.regs + i->o[2] + e), load<u64>(s.regs + i->o[3] + e)};
  const u64 y[2] = {load<u64>(s.regs + i->o[5] + e), load<u64>(s.regs + i[1].o[0] + e)};
  store(s.regs + i->o[0] + e, old[0]);
  store(s.regs + i->o[1] + e, old[1]);
  if (i->count == 1 && (old[0] != x[0] || old[1] != x[1])) return false;
  const u64* const now = i->count == 1 ? y : x;
  store(p, now[0]);
  store(p + 8, now[1]);
  return now[0] != old[0] || now[1] != old[1];
}

/// atom and red: lanes in order. o[0] destination (~0: none), o[1] operand, o[2] second operand (cas), o[4]
/// address; count: AtomicOp, flags: operand bytes. kWide: of 128 bits, as exchange_wide.
template <AtomicSpace kSpace, bool kWide = false>
const Inst* atomic(Strand& s, const Inst* i) {
  BlockRun& b = *s.block;
  const u32 width = i->flags, lane_bytes = i->aux & kWideRegister ? 8 : 4;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 mask = s.mask[w];
    if (mask == 0) continue;
    alignas(64) u64 a[32];
    lane_addresses(s, i, w, i->o[4], a);
    b.hot->atomics += __builtin_popcount(mask);
    b.hot->accesses += __builtin_popcount(mask);
    u32 global = 0, cluster = 0, own = 0;
    for (u32 m = mask; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m);
      u64 address = a[l];
      bool shared = kSpace != AtomicSpace::kGlobalOrGeneric;
      if (!shared && address >> kAllocationShift == kSharedWindow) {
        shared = true;
        address &= (u64(1) << kAllocationShift) - 1;
      }
      if ((address & (width - 1)) != 0) [[unlikely]]
        raise_misaligned(s, i, address, width, w, l);
      std::byte* p;
      if (shared && kSpace != AtomicSpace::kShared && b.cluster != nullptr) {
        p = cluster_byte(s, i, address, width, true, w, l);
        a[l] = address;
        cluster |= 1u << l;
      } else if (shared) {
        address -= b.shared_base;
        if (address > b.shared_bytes || address + width > b.shared_bytes) [[unlikely]] {
          raise_window(s, i, "shared", address, width, b.shared_bytes, true, w, l);
        }
        p = b.shared + address;
        own |= 1u << l;
      } else {
        AddressCache& cache = b.caches[i->id];
        if (address < cache.lo || address + width > cache.hi) [[unlikely]] {
          find_allocation(s, i, cache, address, width, true, w, l);
        }
        p = cache.host + (address - cache.lo);
        global |= 1u << l;
      }
      if constexpr (kWide) {
        b.progress += exchange_wide(s, i, w, l, p);
        continue;
      }
      const u64 e = (w * 32 + l) * lane_bytes;
      u64 x = 0, y = 0;
      __builtin_memcpy(&x, s.regs + i->o[1] + e, lane_bytes);
      if (i->o[2] != ~0u) __builtin_memcpy(&y, s.regs + i->o[2] + e, lane_bytes);
      bool changed = false;
      AtomicOp op = AtomicOp(i->count);
      if (op == AtomicOp::kAddF32 && !shared) op = AtomicOp::kAddF32Flush;
      const u64 old = apply_atomic(op, p, x, y, changed);
      b.progress += changed;
      if (i->o[0] != ~0u) __builtin_memcpy(s.regs + i->o[0] + e, &old, lane_bytes);
    }
    if (global != 0) {
      const Touched touched = log_lanes(b, Lanes<u64>(a), global, 0, false);
      log_lanes(b, Lanes<u64>(a), global, 1, false);
      b.hot->atomic_sectors += touched.sectors;
      b.hot->atomic_conflicts += count_updates(*b.updates, a, global);
      b.hot->l1_wavefronts += l1_wavefronts(touched, u32(__builtin_popcount(global)) * width);
      b.hot->atomic_results += i->o[0] != ~0u;
    }
    if (cluster != 0) own |= count_remote(b, cluster, a);
    if (own != 0) b.hot->shared_wavefronts += atomic_wavefronts(a, own, width);
  }
  if (i->aux & kAcquire) empty_l1(b);
  const Inst* const last = i + kWide;
  if (i->aux & kPolls) return yield_after_poll(s, last, first_address(s, i));
  return last + 1;
}

/// fence, membar; flags: a Scope and whether it acquires and releases. Loads behind one that acquires from
/// other blocks look past what L1 holds.
const Inst* fence(Strand& s, const Inst* i) {
  const auto scope = static_cast<Scope>(i->flags & kFenceScope);
  if (scope != Scope::kBlock && (i->flags & kFenceAcquires)) empty_l1(*s.block);
  return i + 1;
}

/// isspacep: flags: window wanted, 0 for global, or kConstantWanted; aux 1: of any block of the cluster.
const Inst* is_space(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    u32 bits = 0;
    for (int l = 0; l < 32; ++l) {
      const u64 address = load<u64>(s.regs + i->o[1] + (w * 32 + l) * 8), x = address >> kAllocationShift;
      const bool constant = i->flags == kConstantWanted;
      bool in = x == i->flags;
      if (i->flags == 0 || constant)
        in = x >= kFirstAllocation ? is_constant_memory(s, address) == constant : x == 0 && !constant;
      if (i->flags == kSharedWindow && i->aux == 0)
        in &= (address & kAllocationOffsetMask) >> kClusterRankShift == s.block->cluster_rank;
      bits |= u32(in) << l;
    }
    std::byte* d = s.regs + i->o[0] + w * 4;
    store<u32>(d, (load<u32>(d) & ~s.mask[w]) | (bits & s.mask[w]));
  }
  return i + 1;
}

void add_memory_rows() {
  const auto other = Pipe::kOther;
#define SW_ACCESS(NAME, SPACE)                                                            \
  add_row("@ld." NAME ".1", "", other, access<SPACE, false, 1>, access<SPACE, false, 1>); \
  add_row("@ld." NAME ".2", "", other, access<SPACE, false, 2>, access<SPACE, false, 2>); \
  add_row("@ld." NAME ".4", "", other, access<SPACE, false, 4>, access<SPACE, false, 4>); \
  add_row("@ld." NAME ".8", "", other, access<SPACE, false, 8>, access<SPACE, false, 8>); \
  add_row("@st." NAME ".1", "", other, access<SPACE, true, 1>, access<SPACE, true, 1>);   \
  add_row("@st." NAME ".2", "", other, access<SPACE, true, 2>, access<SPACE, true, 2>);   \
  add_row("@st." NAME ".4", "", other, access<SPACE, true, 4>, access<SPACE, true, 4>);   \
  add_row("@st." NAME ".8", "", other, access<SPACE, true, 8>, access<SPACE, true, 8>)
  SW_ACCESS("global", Space::kGlobal);
  SW_ACCESS("generic", Space::kGeneric);
  SW_ACCESS("shared", Space::kShared);
  SW_ACCESS("local", Space::kLocal);
  SW_ACCESS("param", Space::kParam);
#undef SW_ACCESS
  constexpr auto kGlobal = AtomicSpace::kGlobalOrGeneric, kShared = AtomicSpace::kShared,
                 kCluster = AtomicSpace::kCluster;
  add_row("@atom.global", "", other, atomic<kGlobal>, atomic<kGlobal>);
  add_row("@atom.global.128", "", other, atomic<kGlobal, true>, atomic<kGlobal, true>);
  add_row("@atom.shared", "", other, atomic<kShared>, atomic<kShared>);
  add_row("@atom.shared.128", "", other, atomic<kShared, true>, atomic<kShared, true>);
  add_row("@atom.cluster", "", other, atomic<kCluster>, atomic<kCluster>);
  add_row("@atom.cluster.128", "", other, atomic<kCluster, true>, atomic<kCluster, true>);
  add_row("@fence", "", other, fence, fence);
  add_row("@isspacep", "", other, is_space, is_space);
}

}  // namespace
}  // namespace stitchwork::sim
