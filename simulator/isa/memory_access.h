// What a warp's 32 addresses touch: sectors, banks, and the bytes to move between memory and registers.
#pragma once

#include "simulator/cache/update_tally.h"
#include "simulator/isa/cluster_access.h"
#include "simulator/isa/ops_registry.h"
#include "simulator/machine/access_log.h"
#include "simulator/machine/findings.h"

namespace stitchwork::sim {
namespace {

// Inst of a memory access: o[0..count-1] data, o[4] address slot, imm offset, count elements, aux AccessBits,
// flags log2 of the element bytes.
/// Clocks in which shared memory serves a warp's access, and those among them that bank conflicts add.
struct SharedCost {
  u32 wavefronts = 0, conflicts = 0;
};

/// SharedCost of one group of lanes: distinct words in the busiest bank.
template <class A>
u32 group_wavefronts(Lanes<A> a, u32 mask, int words) {
  u32 worst = 0;
  A seen[32][32];  // distinct words of each bank
  std::uint8_t count[32] = {};
  for (u32 m = mask; m != 0; m &= m - 1) {
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
  return worst;
}

/// Lanes of each group that shared memory serves at once: 128 bytes are 32 lanes of 4 bytes, 16 of 8, 8
/// of 16.
constexpr int shared_group(int words) { return 32 / words; }
SW_INLINE u32 lanes_of_group(int group, int begin) {
  return group == 32 ? ~0u : ((1u << group) - 1) << begin;
}

/// True if no active lane has another address than the active lane whose number differs in `bit`.
template <class A>
bool same_in_pairs(Lanes<A> a, u32 mask, u32 bit) {
  for (u32 m = mask; m != 0; m &= m - 1) {
    const u32 l = u32(__builtin_ctz(m)), other = l ^ bit;
    if ((mask >> other & 1) && a[int(l)] != a[int(other)]) return false;
  }
  return true;
}

/// Each group of lanes takes as many wavefronts as its busiest bank has distinct words. Two groups of a wide
/// access go together where lanes 2n and 2n + 1, or lanes n and n + 2, read the same: their registers are
/// packed (Nvidia's answer in forums.developer.nvidia.com/t/unexpected-shared-memory-bank-conflict/77228).
template <class A>
SharedCost shared_cost_of_lanes(Lanes<A> a, u32 mask, u32 bytes) {
  const int words = bytes < 4 ? 1 : int(bytes / 4);
  const auto add_groups = [&](int group) {
    SharedCost cost;
    for (int begin = 0; begin < 32; begin += group) {
      const u32 lanes = mask & lanes_of_group(group, begin);
      if (lanes == 0) continue;
      const u32 wavefronts = group_wavefronts(a, lanes, words);
      cost.wavefronts += wavefronts;
      cost.conflicts += wavefronts - 1;
    }
    return cost;
  };
  const int group = shared_group(words);
  SharedCost cost = add_groups(group);
  if (words > 1 && (same_in_pairs(a, mask, 1) || same_in_pairs(a, mask, 2))) {
    const u32 packed = add_groups(2 * group).wavefronts;
    cost.wavefronts = packed < cost.wavefronts ? packed : cost.wavefronts;
  }
  return cost;
}

/// Wavefronts of atomics on shared memory: lanes of one bank follow each other, those of one address too.
inline u32 atomic_wavefronts(const u64* addresses, u32 mask, u32 bytes) {
  const int words = bytes < 4 ? 1 : int(bytes / 4), group = shared_group(words);
  u32 wavefronts = 0;
  for (int begin = 0; begin < 32; begin += group) {
    std::uint8_t lanes[32] = {};
    u32 worst = 0;
    for (u32 m = mask & lanes_of_group(group, begin); m != 0; m &= m - 1) {
      const u64 word = addresses[__builtin_ctz(m)] >> 2;
      for (int k = 0; k < words; ++k) {
        const u32 here = ++lanes[(word + u64(k)) & 31];
        worst = here > worst ? here : worst;
      }
    }
    wavefronts += worst;
  }
  return wavefronts;
}

/// Counts what a request of atomics on global memory updates, by words. Lanes of one word follow each other:
/// the result is how often more the sectors are updated than once each.
inline u32 count_updates(UpdateTally& updates, const u64* addresses, u32 mask) {
  u64 words[32];
  std::uint8_t lanes[32];
  int n = 0;
  bool several = false;
  for (u32 m = mask; m != 0;) {
    const u64 word = addresses[__builtin_ctz(m)] >> 2;
    u32 same = 0;
    for (int l = 0; l < 32; ++l) same |= u32(addresses[l] >> 2 == word) << l;
    same &= m;
    words[n] = word;
    lanes[n] = std::uint8_t(__builtin_popcount(same));
    several |= lanes[n] > 1;
    updates.add(word, lanes[n++]);
    m &= ~same;
  }
  if (!several) return 0;
  u32 further = 0;
  for (int k = 0; k < n; ++k) {
    // Of each sector the first word counts: the most lanes of one of its words, less one.
    const auto same_sector = [&](int other) { return words[other] >> 3 == words[k] >> 3; };
    bool counted = false;
    for (int e = 0; e < k; ++e) counted |= same_sector(e);
    if (counted) continue;
    int most = 0;
    for (int e = k; e < n; ++e)
      if (same_sector(e) && lanes[e] > most) most = lanes[e];
    further += u32(most - 1);
  }
  return further;
}

SW_INLINE void lane_addresses(const Strand& s, const Inst* i, int w, u32 slot, u64* a) {
  if (i->aux & kAddress32) {
    for (int l = 0; l < 32; l += kLongs) {
      auto v = load<Longs<u32>>(s.regs + slot + (w * 32 + l) * 4);
      store(reinterpret_cast<std::byte*>(a + l), __builtin_convertvector(v + u32(i->imm), Longs<u64>));
    }
  } else {
    for (int l = 0; l < 32; l += kLongs) {
      auto v = load<Longs<u64>>(s.regs + slot + (w * 32 + l) * 8);
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

/// Addresses of type A as vectors.
template <class A>
constexpr int kPerVector = kVectorBytes / sizeof(A);
template <class A>
using Addresses = vec<A, kPerVector<A>>;
/// The numbers from a lane on, without what is added to them.
template <class A>
SW_INLINE Addresses<A> addresses_at(Lanes<A> a, int lane) {
  return load<Addresses<A>>(a.numbers + lane * int(sizeof(A)));
}
template <class A, std::size_t... K>
SW_INLINE Addresses<A> iota(std::index_sequence<K...>) {
  return Addresses<A>{A(K)...};
}
template <class A>
SW_INLINE Addresses<A> iota() {
  return iota<A>(std::make_index_sequence<kPerVector<A>>{});
}

/// Writes all addresses to `to`, of inactive lanes that of the first active one: they then touch nothing that
/// it does not.
template <class A>
SW_INLINE void fill_inactive(Lanes<A> a, u32 mask, A* to) {
  constexpr int N = kPerVector<A>;
  const Addresses<A> first = splat<A, N>(a[__builtin_ctz(mask)]), offset = splat<A, N>(a.offset);
  SW_UNROLL
  for (int l = 0; l < 32; l += N)
    store(reinterpret_cast<std::byte*>(to + l),
          select<A, N>(expand<N>(mask >> l), addresses_at(a, l) + offset, first));
}

/// How the addresses of each half warp follow each other: the halves of most accesses of real kernels, whose
/// blocks are 16 threads wide or more, are one address or a run of neighbours.
enum class Half { kUneven, kSame, kRun };
template <class A>
struct Shape {
  A at[2];  ///< first address
  Half half[2];
  A width;

  SW_INLINE A bytes(int h) const { return half[h] == Half::kRun ? 16 * width : width; }
  SW_INLINE bool even() const { return half[0] != Half::kUneven && half[1] != Half::kUneven; }
  /// One run of all 32 lanes.
  SW_INLINE bool run() const {
    return half[0] == Half::kRun && half[1] == Half::kRun && at[1] - at[0] == 16 * width;
  }
  /// One address of all 32 lanes.
  SW_INLINE bool same() const { return half[0] == Half::kSame && half[1] == Half::kSame && at[1] == at[0]; }
};
template <class A>
SW_INLINE Shape<A> shape_of(Lanes<A> a, A width) {
  constexpr int N = kPerVector<A>;
  const Addresses<A> shift = splat<A, N>(A(__builtin_ctz(u32(width)))), low = iota<A>() << shift;
  const Addresses<A> step = splat<A, N>(A(N)) << shift;
  Shape<A> s;
  s.width = width;
  SW_UNROLL
  for (int h = 0; h < 2; ++h) {
    const A at = load<A>(a.numbers + 16 * h * int(sizeof(A)));
    s.at[h] = at + a.offset;
    const Addresses<A> first = splat<A, N>(at);
    Addresses<A> same = {}, run = {}, expected = low;
    SW_UNROLL
    for (int l = 16 * h; l < 16 * h + 16; l += N) {
      const Addresses<A> distance = addresses_at(a, l) - first;
      same |= distance;
      run |= distance ^ expected;
      expected += step;
    }
    s.half[h] = !any(run) ? Half::kRun : !any(same) ? Half::kSame : Half::kUneven;
  }
  return s;
}

/// Of a vector that several instructions move the first is its access of global memory: so many bytes. The
/// later ones, which it has checked, move their part alone.
SW_INLINE u64 accessed_bytes(const Inst* i, u64 width) {
  return (i->aux & (kPartOfVector | kLaterPart)) == kPartOfVector ? 2 * width : width;
}

/// True if all 32 accesses are aligned to their width, a power of two, and lie in [lo, hi).
template <class A>
SW_INLINE bool all_inside(Lanes<A> a, const Shape<A>& shape, A lo, A hi) {
  const A size = hi - lo, width = shape.width;
  if (shape.even()) [[likely]] {  // what lies below lo is far away, as distances are unsigned
    const A x = shape.bytes(0), y = shape.bytes(1);
    return ((shape.at[0] | shape.at[1]) & (width - 1)) == 0 && x <= size && y <= size &&
           shape.at[0] - lo <= size - x && shape.at[1] - lo <= size - y;
  }
  if (size < width) return false;
  constexpr int N = kPerVector<A>;
  const Addresses<A> furthest = splat<A, N>(size - width), first = splat<A, N>(lo),
                     low = splat<A, N>(width - 1), offset = splat<A, N>(a.offset);
  Addresses<A> bad = {};
  SW_UNROLL
  for (int l = 0; l < 32; l += N) {
    const Addresses<A> v = addresses_at(a, l) + offset;
    bad |= (Addresses<A>)((v - first) > furthest) | (v & low);
  }
  return !any(bad);
}

/// shared_cost_of_lanes, without looking at each where the shape tells. A run has all lanes active.
template <class A>
SW_INLINE SharedCost shared_cost(Lanes<A> a, u32 mask, const Shape<A>& shape) {
  if (shape.run()) return {shape.width < 4 ? 1 : u32(shape.width) / 4, 0};
  if (shape.width <= 8 && shape.same()) return {1, 0};
  if (shape.width == 4 && shape.even() && shape.half[0] == shape.half[1]) {
    // Two runs of 16 words, or two words.
    const A x = shape.at[0] >> 2, y = shape.at[1] >> 2, distance = x < y ? y - x : x - y;
    const u32 conflicts =
        shape.half[0] == Half::kRun ? distance > 16 && distance % 32 != 16 : distance % 32 == 0;
    return {1 + conflicts, conflicts};
  }
  return shared_cost_of_lanes(a, mask, u32(shape.width));
}

SW_INLINE void count_shared(HotCounters& hot, bool is_store, SharedCost cost) {
  ++(is_store ? hot.shared_stores : hot.shared_loads);
  hot.shared_wavefronts += cost.wavefronts;
  hot.shared_conflicts += cost.conflicts;
}

/// Sectors of 32 global accesses, logged.
SW_INLINE Touched log_access(BlockRun& b, Lanes<u64> a, const Shape<u64>& shape, u32 write, bool l1) {
  if (!shape.even()) return log_lanes(b, a, ~0u, write, l1);
  if (shape.run()) return log_range(b, Sectors::of(shape.at[0], 32 * shape.width), write, l1);
  return log_ranges(b, Sectors::of(shape.at[0], shape.bytes(0)), Sectors::of(shape.at[1], shape.bytes(1)),
                    write, l1);
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

/// Four lanes' elements of a vector of four words, which follow each other in memory, to or from registers.
template <bool kStore>
SW_INLINE void transpose_quads(std::byte* const* r, std::byte* p) {
  using V = vec<u32, 4>;
  std::byte* const q[] = {p, p + 16, p + 32, p + 48};
  std::byte *const *const from = kStore ? r : q, *const *const to = kStore ? q : r;
  const V a = load<V>(from[0]), b = load<V>(from[1]), c = load<V>(from[2]), d = load<V>(from[3]);
  const auto ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const auto ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(to[0], __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  store(to[1], __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  store(to[2], __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5));
  store(to[3], __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7));
}
/// Of a vector of two words.
template <bool kStore>
SW_INLINE void transpose_pairs(std::byte* const* r, std::byte* p) {
  using V = vec<u32, 4>;
  if constexpr (kStore) {
    const V a = load<V>(r[0]), b = load<V>(r[1]);
    store(p, __builtin_shufflevector(a, b, 0, 4, 1, 5));
    store(p + 16, __builtin_shufflevector(a, b, 2, 6, 3, 7));
  } else {
    const V a = load<V>(p), b = load<V>(p + 16);
    store(r[0], __builtin_shufflevector(a, b, 0, 2, 4, 6));
    store(r[1], __builtin_shufflevector(a, b, 1, 3, 5, 7));
  }
}

/// Moves the elements of a half warp whose addresses are even, from p on; `r`: where each element of its
/// first lane is in the registers. Of a store to one address the last lane's stays.
template <bool kStore, int kBytes>
SW_INLINE void move_half(std::byte* const* r, int count, Half half, std::byte* p) {
  using T = std::conditional_t<kBytes == 8, u64, u32>;
  constexpr int N = kVectorBytes / kBytes;  // lanes a vector
  if (half == Half::kSame) {
    for (int k = 0; k < count; ++k) {
      if (kStore) {
        store<T>(p + k * kBytes, load<T>(r[k] + 15 * kBytes));
        continue;
      }
      const auto v = splat<T, N>(load<T>(p + k * kBytes));
      SW_UNROLL
      for (int l = 0; l < 16; l += N) store(r[k] + l * kBytes, v);
    }
  } else if (count == 1) {
    SW_UNROLL
    for (int l = 0; l < 16; l += N) {
      if (kStore)
        store(p + l * kBytes, load<vec<T, N>>(r[0] + l * kBytes));
      else
        store(r[0] + l * kBytes, load<vec<T, N>>(p + l * kBytes));
    }
  } else if (kBytes == 4 && count == 4) {
    SW_UNROLL
    for (int l = 0; l < 16; l += 4) {
      std::byte* const here[] = {r[0] + 4 * l, r[1] + 4 * l, r[2] + 4 * l, r[3] + 4 * l};
      transpose_quads<kStore>(here, p + 16 * l);
    }
  } else if (kBytes == 4 && count == 2) {
    SW_UNROLL
    for (int l = 0; l < 16; l += 4) {
      std::byte* const here[] = {r[0] + 4 * l, r[1] + 4 * l};
      transpose_pairs<kStore>(here, p + 8 * l);
    }
  } else {
    for (int k = 0; k < count; ++k)
      for (int l = 0; l < 16; ++l) {
        std::byte* const q = p + (l * count + k) * kBytes;
        if (kStore)
          store<T>(q, load<T>(r[k] + l * kBytes));
        else
          store<T>(r[k] + l * kBytes, load<T>(q));
      }
  }
}

/// Moves the active lanes of a warp; `host` is where address `origin` lies. `shape` is of the addresses after
/// fill_inactive.
template <bool kStore, int kBytes, class A>
SW_INLINE void move_lanes(Strand& s, const Inst* i, int w, u32 mask, Lanes<A> a, const Shape<A>& shape,
                          std::byte* host, A origin) {
  if constexpr (kBytes >= 4) {
    if (mask == ~0u && same_size<kBytes>(i)) {
      SW_UNROLL
      for (int h = 0; h < 2; ++h) {
        const int first = w * 32 + 16 * h;
        if (shape.half[h] != Half::kUneven) {
          std::byte* r[4];
          for (int k = 0; k < i->count; ++k) r[k] = s.regs + i->o[k] + first * kBytes;
          move_half<kStore, kBytes>(r, i->count, shape.half[h], host + (shape.at[h] - origin));
          continue;
        }
        for (int l = 0; l < 16; ++l) {
          std::byte* p = host + (a[16 * h + l] - origin);
          for (int k = 0; k < i->count; ++k, p += kBytes) {
            std::byte* const r = s.regs + i->o[k] + (first + l) * kBytes;
            if (kStore)
              __builtin_memcpy(p, r, kBytes);
            else
              __builtin_memcpy(r, p, kBytes);
          }
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
