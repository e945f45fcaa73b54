// What a warp's 32 addresses touch: sectors, banks, and the bytes to move between memory and registers.
#pragma once

#include "simulator/atomics.h"
#include "simulator/ops_registry.h"

namespace stitchwork::sim {
namespace {

// Inst of a memory access: o[0..count-1] data, o[4] address slot, imm offset, count elements, aux AccessBits,
// flags log2 of the element bytes.
SW_INLINE void append(AccessLog& log, u64 entry) {
  if (log.end == log.capacity) [[unlikely]]
    grow_log(log);
  *log.end++ = entry;
}

/// True if L1 serves what the load `i` asks for.
SW_INLINE bool through_l1(const BlockRun& b, const Inst* i) {
  return b.l1.sets != 0 && !(i->aux & kPastL1) && (!b.l1.only_non_coherent || (i->aux & kNonCoherent));
}

/// Of `sectors` (four bits) of a line those that L1 does not hold, which it does from now on.
SW_INLINE u64 missing_in_l1(L1Share& l1, u64 line, u64 sectors) {
  u64* const set = l1.lines + L1Share::kWays * ((line * 0x9E3779B97F4A7C15ull >> 32) * l1.sets >> 32);
  u64 held = set[0];
  if (held >> 4 != line) {
    u32 way = 1;
    while (way < L1Share::kWays - 1 && set[way] >> 4 != line) ++way;
    held = set[way] >> 4 == line ? set[way] : line << 4;
    for (; way > 0; --way) set[way] = set[way - 1];
  }
  set[0] = held | sectors;
  return sectors & ~held;
}

/// What a strong read or a fence found may be newer than what L1 holds.
SW_INLINE void empty_l1(L1Share& l1) {
  __builtin_memset(l1.lines, 0, u64(l1.sets) * L1Share::kWays * sizeof(u64));
}

/// Logs what of a line's sectors goes on to L2. `l1`: those that L1 holds do not.
SW_INLINE void log_line(BlockRun& b, u64 line, u64 sectors, u32 write, bool l1) {
  if (l1) {
    const u64 missing = missing_in_l1(b.l1, line, sectors);
    b.hot->l1_hit_sectors += u64(__builtin_popcountll(sectors ^ missing));
    if (missing == 0) return;
    sectors = missing;
  }
  append(b.logs[line & (b.partitions - 1)], line << 5 | sectors << 1 | write);
}

/// Logs [lo, lo + bytes) and returns its sectors.
SW_INLINE u32 log_range(BlockRun& b, u64 lo, u64 bytes, u32 write, bool l1) {
  const u64 first = lo >> 5, last = (lo + bytes - 1) >> 5;
  for (u64 line = first >> 2; line <= last >> 2; ++line) {
    const u64 from = line << 2 > first ? 0 : first & 3;
    const u64 to = (line << 2) + 3 < last ? 3 : last & 3;
    const u64 sectors = (0xfull >> (3 - to)) & (0xfull << from);
    log_line(b, line, sectors, write, l1);
  }
  return u32(last - first + 1);
}

/// Distinct sectors of the active lanes' accesses, logged line by line. An access is aligned to its width,
/// which is 32 bytes at most: it lies in one sector.
u32 log_lanes(BlockRun& b, const u64* a, u32 mask, u32 write, bool l1) {
  u64 entries[32];        // line << 4 | sectors
  std::int8_t table[64];  // entry of a line, by hash; -1: none
  __builtin_memset(table, -1, sizeof table);
  int n = 0, recent = 0;
  for (u32 m = mask; m != 0; m &= m - 1) {
    const u64 sector = a[__builtin_ctz(m)] >> 5, line = sector >> 2, bit = u64(1) << (sector & 3);
    if (n == 0 || entries[recent] >> 4 != line) {
      u64 slot = line * 0x9E3779B97F4A7C15ull >> 58;
      while (table[slot] >= 0 && entries[table[slot]] >> 4 != line) slot = (slot + 1) & 63;
      if (table[slot] < 0) {
        table[slot] = std::int8_t(n);
        entries[n++] = line << 4;
      }
      recent = table[slot];
    }
    entries[recent] |= bit;
  }
  u32 total = 0;
  for (int k = 0; k < n; ++k) {
    total += u32(__builtin_popcountll(entries[k] & 15));
    log_line(b, entries[k] >> 4, entries[k] & 15, write, l1);
  }
  return total;
}

/// Shared-memory wavefronts beyond the first: distinct words in the busiest bank, for each group of lanes
/// that the hardware serves at once (32, 16 or 8 lanes by access width). A: u32 or u64.
template <class A>
u32 bank_conflicts(const A* a, u32 mask, u32 bytes) {
  const int words = bytes < 4 ? 1 : int(bytes / 4), group = 32 / words;
  u32 conflicts = 0;
  A seen[32][32];  // distinct words of each bank
  for (int g = 0; g < 32; g += group) {
    u32 worst = 1;
    std::uint8_t count[32] = {};
    for (u32 m = mask & (group == 32 ? ~0u : ((1u << group) - 1) << g); m != 0; m &= m - 1) {
      const A first = a[__builtin_ctz(m)] >> 2;
      for (int k = 0; k < words; ++k) {
        const A word = first + A(k);
        const u32 bank = word & 31;
        u32 x = 0;
        while (x < count[bank] && seen[bank][x] != word) ++x;
        if (x < count[bank]) continue;
        seen[bank][x] = word;
        count[bank] = std::uint8_t(x + 1);
        worst = x + 1 > worst ? x + 1 : worst;
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
SW_INLINE void lane_addresses(const Strand& s, const Inst* i, int w, u32* a) {
  for (int l = 0; l < 32; l += 16) {
    auto v = load<vec<u32, 16>>(s.regs + i->o[4] + (w * 32 + l) * 4);
    store(reinterpret_cast<std::byte*>(a + l), v + u32(i->imm));
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

/// Addresses of type A as vectors of 64 bytes.
template <class A>
constexpr int kPerVector = 64 / sizeof(A);
template <class A>
using Addresses = vec<A, kPerVector<A>>;
template <class A>
SW_INLINE Addresses<A> addresses_at(const A* a) {
  return load<Addresses<A>>(reinterpret_cast<const std::byte*>(a));
}
SW_INLINE vec<u32, 16> iota(u32) {
  return vec<u32, 16>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}
SW_INLINE vec<u64, 8> iota(u64) { return vec<u64, 8>{0, 1, 2, 3, 4, 5, 6, 7}; }

/// Gives inactive lanes the address of the first active one: they then touch nothing that it does not.
template <class A>
SW_INLINE void fill_inactive(A* a, u32 mask) {
  constexpr int N = kPerVector<A>;
  const Addresses<A> first = splat<A, N>(a[__builtin_ctz(mask)]);
  for (int l = 0; l < 32; l += N)
    store(reinterpret_cast<std::byte*>(a + l),
          select<A, N>(expand<N>(mask >> l), addresses_at(a + l), first));
}

/// True if all 32 accesses of `width` bytes, a power of two, are aligned and lie in [lo, hi).
template <class A>
SW_INLINE bool all_inside(const A* a, A width, A lo, A hi) {
  constexpr int N = kPerVector<A>;
  if (hi - lo < width) return false;
  // The distance from lo is unsigned: what lies below is far away.
  const Addresses<A> furthest = splat<A, N>(hi - lo - width), first = splat<A, N>(lo),
                     low = splat<A, N>(width - 1);
  Addresses<A> bad = {};
  for (int l = 0; l < 32; l += N) {
    const Addresses<A> v = addresses_at(a + l);
    bad |= (Addresses<A>)((v - first) > furthest) | (v & low);
  }
  return !any((vec<i64, 8>)bad);
}

/// How the addresses of each half warp follow each other: the halves of most accesses of real kernels, whose
/// blocks are 16 threads wide or more, are one address or a run of neighbours.
struct Shape {
  enum Half : std::uint8_t { kUneven, kSame, kRun };
  Half half[2];
  bool run = false;   ///< one run of all 32 lanes
  bool same = false;  ///< one address of all 32 lanes
};
template <class A>
SW_INLINE Shape shape_of(const A* a, A width) {
  constexpr int N = kPerVector<A>;
  const int shift = __builtin_ctz(u32(width));
  Shape s;
  for (int h = 0; h < 2; ++h) {
    const Addresses<A> first = splat<A, N>(a[16 * h]);
    Addresses<A> same = {}, run = {}, expected = iota(A{}) << shift;
    for (int l = 16 * h; l < 16 * h + 16; l += N) {
      const Addresses<A> distance = addresses_at(a + l) - first;
      same |= distance;
      run |= distance ^ expected;
      expected += A(N) << shift;
    }
    s.half[h] = !any((vec<i64, 8>)run)    ? Shape::kRun
                : !any((vec<i64, 8>)same) ? Shape::kSame
                                          : Shape::kUneven;
  }
  if (s.half[0] == s.half[1]) {
    s.run = s.half[0] == Shape::kRun && a[16] - a[0] == 16 * width;
    s.same = s.half[0] == Shape::kSame && a[16] == a[0];
  }
  return s;
}

/// bank_conflicts of the active lanes, without looking at each where the shape tells.
template <class A>
SW_INLINE u32 conflicts_of(const A* a, u32 mask, const Shape& shape, u32 bytes) {
  if (shape.run || shape.same) return 0;
  if (bytes == 4 && shape.half[0] == shape.half[1] && shape.half[0] != Shape::kUneven) {
    // Two runs of 16 words, or two words.
    const A x = a[0] >> 2, y = a[16] >> 2, distance = x < y ? y - x : x - y;
    if (shape.half[0] == Shape::kRun) return distance > 16 && distance % 32 != 16;
    return distance % 32 == 0;
  }
  return bank_conflicts(a, mask, bytes);
}

/// Sectors of 32 global accesses of `width` bytes, logged.
SW_INLINE u32 log_access(BlockRun& b, const u64* a, const Shape& shape, u64 width, u32 write, bool l1) {
  if (shape.run) return log_range(b, a[0], 32 * width, write, l1);
  if (shape.same) return log_range(b, a[0], width, write, l1);
  if (shape.half[0] == Shape::kUneven || shape.half[1] == Shape::kUneven)
    return log_lanes(b, a, ~0u, write, l1);
  u64 bytes[2], last_line[2];
  for (int h = 0; h < 2; ++h) {
    bytes[h] = shape.half[h] == Shape::kSame ? width : 16 * width;
    last_line[h] = (a[16 * h] + bytes[h] - 1) >> 7;
  }
  if (a[0] >> 7 <= last_line[1] && a[16] >> 7 <= last_line[0]) return log_lanes(b, a, ~0u, write, l1);
  const u32 sectors = log_range(b, a[0], bytes[0], write, l1);
  return sectors + log_range(b, a[16], bytes[1], write, l1);
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

/// Registers hold elements as memory does: 4 or 8 bytes in a register of that size.
template <int kBytes>
SW_INLINE bool same_size(const Inst* i) {
  return kBytes >= 4 && bool(i->aux & kWideRegister) == (kBytes == 8);
}

/// Moves a warp whose lanes touch consecutive elements.
template <bool kStore, int kBytes>
SW_INLINE void move_contiguous(Strand& s, const Inst* i, int w, std::byte* p) {
  if constexpr (kBytes >= 4) {
    if (same_size<kBytes>(i)) {
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

/// Moves the active lanes of a warp; `host` is where address `origin` lies. `shape` is of the addresses after
/// fill_inactive.
template <bool kStore, int kBytes, class A>
SW_INLINE void move_lanes(Strand& s, const Inst* i, int w, u32 mask, const A* a, const Shape& shape,
                          std::byte* host, A origin) {
  if (mask == ~0u && shape.run) return move_contiguous<kStore, kBytes>(s, i, w, host + (a[0] - origin));
  if constexpr (!kStore && kBytes >= 4) {
    if (mask == ~0u && i->count == 1 && same_size<kBytes>(i)) {
      using T = std::conditional_t<kBytes == 8, u64, u32>;
      std::byte* r = s.regs + i->o[0] + w * 32 * kBytes;
      for (int h = 0; h < 2; ++h, r += 16 * kBytes) {
        const A* at = a + 16 * h;
        if (shape.half[h] == Shape::kRun) {
          __builtin_memcpy(r, host + (at[0] - origin), 16 * kBytes);
        } else if (shape.half[h] == Shape::kSame) {
          constexpr int kLanes = 64 / kBytes;
          const auto v = splat<T, kLanes>(load<T>(host + (at[0] - origin)));
          for (int l = 0; l < 16; l += kLanes) store(r + l * kBytes, v);
        } else {
          for (int l = 0; l < 16; ++l) store<T>(r + l * kBytes, load<T>(host + (at[l] - origin)));
        }
      }
      return;
    }
  }
  for (u32 m = mask; m != 0; m &= m - 1) {
    const int l = __builtin_ctz(m);
    move_lane<kStore, kBytes>(s, i, w, l, host + (a[l] - origin));
  }
}

}  // namespace
}  // namespace stitchwork::sim
