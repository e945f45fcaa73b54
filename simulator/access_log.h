// The sectors that a warp's accesses touch, through L1 and into the log of what goes on to L2.
#pragma once

#include "simulator/atomics.h"
#include "simulator/lanes.h"

namespace stitchwork::sim {
namespace {

/// 32 addresses: numbers in a register or an array, and what is added to each.
template <class A>
struct Lanes {
  const std::byte* numbers;
  A offset = 0;
  Lanes(const std::byte* numbers, A offset) : numbers(numbers), offset(offset) {}
  explicit Lanes(const A* a) : numbers(reinterpret_cast<const std::byte*>(a)) {}
  SW_INLINE A operator[](int lane) const { return load<A>(numbers + lane * int(sizeof(A))) + offset; }
};

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
  static_assert(L1Share::kWays == 4);
  u64* const set = l1.lines + L1Share::kWays * ((line * 0x9E3779B97F4A7C15ull >> 32) * l1.sets >> 32);
  const u64 tag = line << 4, first = set[0];
  if ((first ^ tag) < 16) {
    set[0] = first | sectors;
    return sectors & ~first;
  }
  // To the front, without branches: which way holds a line, if any, cannot be foreseen.
  const u64 b = set[1], c = set[2], d = set[3];
  const bool in_b = (b ^ tag) < 16, in_c = (c ^ tag) < 16, in_d = (d ^ tag) < 16;
  const u64 held = in_b ? b : in_c ? c : in_d ? d : tag;
  set[0] = held | sectors;
  set[1] = first;
  set[2] = in_b ? c : b;
  set[3] = in_b || in_c ? d : c;
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

/// The 32-byte sectors from `first` to `last`.
struct Sectors {
  u64 first, last;
  SW_INLINE static Sectors of(u64 address, u64 bytes) { return {address >> 5, (address + bytes - 1) >> 5}; }
  /// Those of a line, four bits.
  SW_INLINE u64 in(u64 line) const {
    const u64 begin = line << 2;
    if (last < begin || first > begin + 3) return 0;
    const u64 from = begin > first ? 0 : first & 3, to = begin + 3 < last ? 3 : last & 3;
    return (0xfull >> (3 - to)) & (0xfull << from);
  }
};

/// Logs a range and returns its number of sectors.
SW_INLINE u32 log_range(BlockRun& b, Sectors range, u32 write, bool l1) {
  const u64 last_line = range.last >> 2;
  for (u64 line = range.first >> 2; line <= last_line; ++line) log_line(b, line, range.in(line), write, l1);
  return u32(range.last - range.first + 1);
}

/// Logs two ranges, each line once, and returns their number of distinct sectors.
SW_INLINE u32 log_ranges(BlockRun& b, Sectors x, Sectors y, u32 write, bool l1) {
  const u64 x_first = x.first >> 2, x_last = x.last >> 2, y_first = y.first >> 2, y_last = y.last >> 2;
  if (x_last < y_first || y_last < x_first) return log_range(b, x, write, l1) + log_range(b, y, write, l1);
  u32 total = 0;
  const auto log = [&](u64 line, u64 sectors) {
    total += u32(__builtin_popcountll(sectors));
    log_line(b, line, sectors, write, l1);
  };
  for (u64 line = x_first; line <= x_last; ++line) log(line, x.in(line) | y.in(line));
  for (u64 line = y_first; line <= y_last; ++line)
    if (line < x_first || line > x_last) log(line, y.in(line));
  return total;
}

/// Distinct sectors of the active lanes' accesses, logged line by line. An access is aligned to its width,
/// which is 32 bytes at most: it lies in one sector.
inline u32 log_lanes(BlockRun& b, Lanes<u64> a, u32 mask, u32 write, bool l1) {
  u64 entries[32];  // line << 4 | sectors
  // Entry of a line, by hash; -1: none. Sparse, so that few lines have to look further.
  constexpr int kTableLog2 = 8;
  std::int8_t table[1 << kTableLog2];
  __builtin_memset(table, -1, sizeof table);
  int n = 0, recent = 0;
  for (u32 m = mask; m != 0; m &= m - 1) {
    const u64 sector = a[__builtin_ctz(m)] >> 5, line = sector >> 2, bit = u64(1) << (sector & 3);
    if (n == 0 || entries[recent] >> 4 != line) {
      u64 slot = line * 0x9E3779B97F4A7C15ull >> (64 - kTableLog2);
      while (table[slot] >= 0 && entries[table[slot]] >> 4 != line)
        slot = (slot + 1) & ((1 << kTableLog2) - 1);
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

}  // namespace
}  // namespace stitchwork::sim
