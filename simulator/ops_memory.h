// Loads, stores and atomics of every state space, with checks and sector accounting.
#pragma once

#include "simulator/atomics.h"
#include "simulator/ops_control.h"

namespace stitchwork::sim {
namespace {

// Inst of a memory access: o[0..count-1] data, o[4] address slot, imm offset, count elements, aux AccessBits,
// flags log2 of the element bytes.
SW_INLINE void append(AccessLog& log, u64 entry) {
  if (log.end == log.capacity) [[unlikely]]
    grow_log(log);
  *log.end++ = entry;
}

/// Logs [lo, lo + bytes) and returns its sectors.
SW_INLINE u32 log_range(BlockRun& b, u64 lo, u64 bytes, u32 write) {
  const u64 first = lo >> 5, last = (lo + bytes - 1) >> 5;
  for (u64 line = first >> 2; line <= last >> 2; ++line) {
    const u64 from = line << 2 > first ? 0 : first & 3;
    const u64 to = (line << 2) + 3 < last ? 3 : last & 3;
    const u64 sectors = (0xfull >> (3 - to)) & (0xfull << from);
    append(b.logs[line & (b.partitions - 1)], line << 5 | sectors << 1 | write);
  }
  return u32(last - first + 1);
}

/// Distinct sectors of the active lanes' accesses of `bytes` each, logged line by line.
u32 log_lanes(BlockRun& b, const u64* a, u32 mask, u32 bytes, u32 write) {
  u64 lines[64];
  u32 sectors[64];
  int n = 0, recent = 0;
  u32 total = 0;
  for (u32 m = mask; m != 0; m &= m - 1) {
    const u64 lo = a[__builtin_ctz(m)];
    for (u64 sector = lo >> 5; sector <= (lo + bytes - 1) >> 5; ++sector) {
      const u64 line = sector >> 2;
      int k = recent;
      if (n == 0 || lines[k] != line) {
        for (k = 0; k < n && lines[k] != line; ++k) {
        }
        if (k == n) {
          lines[n] = line;
          sectors[n++] = 0;
        }
      }
      recent = k;
      sectors[k] |= 1u << (sector & 3);
    }
  }
  for (int k = 0; k < n; ++k) {
    total += __builtin_popcount(sectors[k]);
    append(b.logs[lines[k] & (b.partitions - 1)], lines[k] << 5 | u64(sectors[k]) << 1 | write);
  }
  return total;
}

/// Shared-memory wavefronts beyond the first: distinct words in the busiest bank, for each group of lanes
/// that the hardware serves at once (32, 16 or 8 lanes by access width).
u32 bank_conflicts(const u64* a, u32 mask, u32 bytes) {
  const int words = bytes < 4 ? 1 : int(bytes / 4), group = 32 / words;
  u32 conflicts = 0;
  for (int g = 0; g < 32; g += group) {
    u32 worst = 1;
    u64 seen[128];
    int n = 0;
    std::uint8_t load_of[32] = {};
    for (int l = g; l < g + group; ++l) {
      if (!(mask >> l & 1)) continue;
      for (int k = 0; k < words; ++k) {
        const u64 word = (a[l] >> 2) + k;
        int x = 0;
        while (x < n && seen[x] != word) ++x;
        if (x < n) continue;
        seen[n++] = word;
        const u32 load = ++load_of[word & 31];
        worst = load > worst ? load : worst;
      }
    }
    conflicts += worst - 1;
  }
  return conflicts;
}

SW_INLINE void lane_addresses(const Strand& s, const Inst* i, int w, u32 slot, u64* a) {
  if (i->aux & kAddress32) {
    for (int l = 0; l < 32; l += 8) {
      auto v = load<vec<u32, 8>>(s.regs + slot + (w * 32 + l) * 4);
      store(reinterpret_cast<std::byte*>(a + l), __builtin_convertvector(v + u32(i->imm), vec<u64, 8>));
    }
  } else {
    for (int l = 0; l < 32; l += 8) {
      auto v = load<vec<u64, 8>>(s.regs + slot + (w * 32 + l) * 8);
      store(reinterpret_cast<std::byte*>(a + l), v + u64(i->imm));
    }
  }
}

/// Where the first active lane of a strand accesses memory.
SW_INLINE u64 first_address(const Strand& s, const Inst* i) {
  int w = s.first_warp;
  while (s.mask[w] == 0) ++w;
  const int e = w * 32 + __builtin_ctz(s.mask[w]);
  return i->aux & kAddress32 ? u64(load<u32>(s.regs + i->o[4] + e * 4) + u32(i->imm))
                             : load<u64>(s.regs + i->o[4] + e * 8) + u64(i->imm);
}

/// True if a[l] == a[0] + l * stride for all 32 lanes.
SW_INLINE bool is_affine(const u64* a, u64 stride) {
  const vec<u64, 8> iota = {0, 1, 2, 3, 4, 5, 6, 7};
  vec<u64, 8> expected = a[0] + iota * stride, diff = {};
  for (int l = 0; l < 32; l += 8) {
    diff |= load<vec<u64, 8>>(reinterpret_cast<const std::byte*>(a + l)) ^ expected;
    expected += 8 * stride;
  }
  u64 any = 0;
  for (int k = 0; k < 8; ++k) any |= diff[k];
  return any == 0;
}

template <int kBytes>
SW_INLINE u64 read_element(const std::byte* p, bool sign) {
  if constexpr (kBytes == 1) {
    const auto v = load<std::uint8_t>(p);
    return sign ? u64(i64(std::int8_t(v))) : v;
  } else if constexpr (kBytes == 2) {
    const auto v = load<std::uint16_t>(p);
    return sign ? u64(i64(std::int16_t(v))) : v;
  } else if constexpr (kBytes == 4) {
    const auto v = load<u32>(p);
    return sign ? u64(i64(i32(v))) : v;
  } else {
    return load<u64>(p);
  }
}

/// Moves one lane's elements between host memory and registers.
template <bool kStore, int kBytes>
SW_INLINE void move_lane(Strand& s, const Inst* i, int w, int l, std::byte* p) {
  const bool wide = i->aux & kWideRegister;
  for (int k = 0; k < i->count; ++k, p += kBytes) {
    std::byte* r = s.regs + i->o[k] + (w * 32 + l) * (wide ? 8 : 4);
    if (kStore) {
      __builtin_memcpy(p, r, kBytes);
    } else {
      u64 v = read_element<kBytes>(p, i->aux & kSigned);
      if (i->aux & kRegister16) v &= 0xffff;
      if (wide)
        store<u64>(r, v);
      else
        store<u32>(r, u32(v));
    }
  }
}

/// Moves a warp whose lanes touch consecutive elements.
template <bool kStore, int kBytes>
SW_INLINE void move_contiguous(Strand& s, const Inst* i, int w, std::byte* p) {
  const bool wide = i->aux & kWideRegister;
  if constexpr (kBytes >= 4) {
    if (wide == (kBytes == 8)) {
      if (i->count == 1) {
        std::byte* r = s.regs + i->o[0] + w * 32 * kBytes;
        if (kStore)
          __builtin_memcpy(p, r, 32 * kBytes);
        else
          __builtin_memcpy(r, p, 32 * kBytes);
        return;
      }
      using T = std::conditional_t<kBytes == 8, u64, u32>;
      const int count = i->count;
      for (int k = 0; k < count; ++k) {
        std::byte* r = s.regs + i->o[k] + w * 32 * kBytes;
        for (int l = 0; l < 32; ++l) {
          std::byte* q = p + (l * count + k) * kBytes;
          if (kStore)
            store<T>(q, load<T>(r + l * kBytes));
          else
            store<T>(r + l * kBytes, load<T>(q));
        }
      }
      return;
    }
  }
  for (int l = 0; l < 32; ++l) move_lane<kStore, kBytes>(s, i, w, l, p + l * i->count * kBytes);
}

template <bool kStore, int kBytes>
void access_global(Strand& s, const Inst* i, int w, u32 mask, const u64* a) {
  BlockRun& b = *s.block;
  HotCounters& hot = *b.hot;
  AddressCache& cache = b.caches[i->id];
  const u32 width = kBytes * i->count;
  const bool counted = !(i->aux & kUncounted);
  const u32 lanes = __builtin_popcount(mask);
  hot.accesses += lanes;
  u32 sectors = 0;
  if (mask == ~0u && is_affine(a, width)) {
    const u64 lo = a[0], bytes = 32u * width;
    if ((lo & (width - 1)) != 0) [[unlikely]]
      raise_misaligned(s, i, lo, width, w, 0);
    if (lo < cache.lo || lo + bytes > cache.hi) [[unlikely]] {
      for (int l = 0; l < 32; ++l) {
        if (a[l] < cache.lo || a[l] + width > cache.hi)
          find_allocation(s, i, cache, a[l], width, kStore, w, l);
      }
    }
    std::byte* p = cache.host + (lo - cache.lo);
    if (kStore && b.communicates) b.progress += __builtin_memcmp(p, s.regs + i->o[0] + w * 128, 4) != 0;
    move_contiguous<kStore, kBytes>(s, i, w, p);
    if (counted) sectors = log_range(b, lo, bytes, kStore);
  } else {
    for (u32 m = mask; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m);
      if ((a[l] & (width - 1)) != 0) [[unlikely]]
        raise_misaligned(s, i, a[l], width, w, l);
      if (a[l] < cache.lo || a[l] + width > cache.hi) [[unlikely]] {
        find_allocation(s, i, cache, a[l], width, kStore, w, l);
      }
      std::byte* p = cache.host + (a[l] - cache.lo);
      if (kStore && b.communicates) {
        const int shift = i->aux & kWideRegister ? 8 : 4;
        b.progress += __builtin_memcmp(p, s.regs + i->o[0] + (w * 32 + l) * shift, kBytes) != 0;
      }
      move_lane<kStore, kBytes>(s, i, w, l, p);
    }
    if (counted) sectors = log_lanes(b, a, mask, width, kStore);
  }
  if (!counted) return;
  if (kStore) {
    ++hot.gst_requests;
    hot.gst_transactions += sectors;
    hot.gst_bytes += u64(width) * lanes;
  } else {
    ++hot.gld_requests;
    hot.gld_transactions += sectors;
    hot.gld_bytes += u64(width) * lanes;
  }
}

/// Shared, local and parameter memory: a window of `size` bytes at `base`, for local memory one a thread.
template <bool kStore, int kBytes>
void access_window(Strand& s, const Inst* i, int w, u32 mask, const u64* a, u64 window) {
  BlockRun& b = *s.block;
  const u32 width = kBytes * i->count;
  b.hot->accesses += __builtin_popcount(mask);
  if (window == kSharedWindow) {
    ++(kStore ? b.hot->shared_stores : b.hot->shared_loads);
    if (mask == ~0u && (a[0] & (width - 1)) == 0 && is_affine(a, width) && a[31] + width <= b.shared_bytes) {
      move_contiguous<kStore, kBytes>(s, i, w, b.shared + a[0]);
      return;
    }
    if (!kStore && mask == ~0u && is_affine(a, 0)) {
      // All lanes read one address: no conflict either.
    } else {
      b.hot->shared_conflicts += bank_conflicts(a, mask, width);
    }
  }
  const u64 size = window == kSharedWindow  ? b.shared_bytes
                   : window == kLocalWindow ? b.local_bytes
                                            : b.param_bytes;
  std::byte* const base = window == kSharedWindow ? b.shared : window == kLocalWindow ? b.local : b.params;
  for (u32 m = mask; m != 0; m &= m - 1) {
    const int l = __builtin_ctz(m);
    if ((a[l] & (width - 1)) != 0) [[unlikely]]
      raise_misaligned(s, i, a[l], width, w, l);
    if (a[l] + width > size || a[l] > size) [[unlikely]] {
      raise_window(s, i,
                   window == kSharedWindow  ? "shared"
                   : window == kLocalWindow ? "local"
                                            : "parameter",
                   a[l], width, size, kStore, w, l);
    }
    u64 offset = a[l];
    if (window == kLocalWindow) offset += u64((s.gang * kGangWarps + w) * 32 + l) * b.local_bytes;
    move_lane<kStore, kBytes>(s, i, w, l, base + offset);
  }
}

/// Generic addresses: splits the lanes by the window they point into.
template <bool kStore, int kBytes>
void access_generic(Strand& s, const Inst* i, int w, u32 mask, u64* a) {
  while (mask != 0) {
    const u64 window = a[__builtin_ctz(mask)] >> kAllocationShift;
    const bool is_global = window == 0 || window >= kFirstAllocation;
    u32 same = 0;
    u64 local[32];
    for (int l = 0; l < 32; ++l) {
      const u64 x = a[l] >> kAllocationShift;
      const bool match = is_global ? x == 0 || x >= kFirstAllocation : x == window;
      if (match && (mask >> l & 1)) same |= 1u << l;
      local[l] = a[l] & ((u64(1) << kAllocationShift) - 1);
    }
    if (is_global)
      access_global<kStore, kBytes>(s, i, w, same, a);
    else
      access_window<kStore, kBytes>(s, i, w, same, local, window);
    mask &= ~same;
  }
}

enum class Space { kGlobal, kGeneric, kShared, kLocal, kParam };

template <Space kSpace, bool kStore, int kBytes>
const Inst* access(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 mask = s.mask[w];
    if (mask == 0) continue;
    alignas(64) u64 a[32];
    lane_addresses(s, i, w, i->o[4], a);
    if constexpr (kSpace == Space::kGlobal)
      access_global<kStore, kBytes>(s, i, w, mask, a);
    else if constexpr (kSpace == Space::kGeneric)
      access_generic<kStore, kBytes>(s, i, w, mask, a);
    else
      access_window<kStore, kBytes>(s, i, w, mask, a,
                                    kSpace == Space::kShared  ? kSharedWindow
                                    : kSpace == Space::kLocal ? kLocalWindow
                                                              : kParamWindow);
  }
  if (i->aux & kPolls) return yield_after_poll(s, i, first_address(s, i));
  return i + 1;
}

/// atom and red: lanes in order. o[0] destination (~0: none), o[1] operand, o[2] second operand (cas), o[4]
/// address; count: AtomicOp, flags: operand bytes.
template <bool kGenericOrGlobal>
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
    u32 global = 0;
    for (u32 m = mask; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m);
      u64 address = a[l];
      bool shared = !kGenericOrGlobal;
      if (kGenericOrGlobal && address >> kAllocationShift == kSharedWindow) {
        shared = true;
        address &= (u64(1) << kAllocationShift) - 1;
      }
      if ((address & (width - 1)) != 0) [[unlikely]]
        raise_misaligned(s, i, address, width, w, l);
      std::byte* p;
      if (shared) {
        if (address + width > b.shared_bytes) [[unlikely]] {
          raise_window(s, i, "shared", address, width, b.shared_bytes, true, w, l);
        }
        p = b.shared + address;
      } else {
        AddressCache& cache = b.caches[i->id];
        if (address < cache.lo || address + width > cache.hi) [[unlikely]] {
          find_allocation(s, i, cache, address, width, true, w, l);
        }
        p = cache.host + (address - cache.lo);
        global |= 1u << l;
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
      log_lanes(b, a, global, width, 0);
      log_lanes(b, a, global, width, 1);
    }
  }
  if (i->aux & kPolls) return yield_after_poll(s, i, first_address(s, i));
  return i + 1;
}

/// isspacep: flags: window wanted, 0 for global.
const Inst* is_space(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    u32 bits = 0;
    for (int l = 0; l < 32; ++l) {
      const u64 x = load<u64>(s.regs + i->o[1] + (w * 32 + l) * 8) >> kAllocationShift;
      bits |= u32(i->flags == 0 ? x == 0 || x >= kFirstAllocation : x == i->flags) << l;
    }
    std::byte* d = s.regs + i->o[0] + w * 4;
    store<u32>(d, (load<u32>(d) & ~s.mask[w]) | (bits & s.mask[w]));
  }
  return i + 1;
}

void add_memory_rows() {
  const auto other = InstClass::kOther;
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
  add_row("@atom.global", "", other, atomic<true>, atomic<true>);
  add_row("@atom.shared", "", other, atomic<false>, atomic<false>);
  add_row("@isspacep", "", other, is_space, is_space);
}

}  // namespace
}  // namespace stitchwork::sim
