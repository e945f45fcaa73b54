// The sectors that a warp's accesses touch, through L1 and into the log of what goes on to L2.
#pragma once

#include "simulator/machine/atomics.h"
#include "simulator/machine/lanes.h"

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

/// Sectors of a line that L1 does not hold, and the entry (L1Share) that made room for it, or 0.
struct L1Look {
  u64 missing, pushed_out;
};
/// Looks for `bits`, sectors and those of them that are made dirty; L1 holds them from now on.
SW_INLINE L1Look look_in_l1(L1Share& l1, u64 line, u64 bits) {
  static_assert(L1Share::kWays == 4);
  u64* const set = l1.lines + L1Share::kWays * ((line * 0x9E3779B97F4A7C15ull >> 32) * l1.sets >> 32);
  const u64 sectors = bits & L1Share::kSectors, tag = line << L1Share::kLineShift, first = set[0];
  constexpr u64 kOne = u64(1) << L1Share::kLineShift;
  if ((first ^ tag) < kOne) {
    set[0] = first | bits;
    return {sectors & ~first, 0};
  }
  // To the front, without branches: which way holds a line, if any, cannot be foreseen.
  const u64 b = set[1], c = set[2], d = set[3];
  const bool in_b = (b ^ tag) < kOne, in_c = (c ^ tag) < kOne, in_d = (d ^ tag) < kOne;
  const u64 held = in_b ? b : in_c ? c : in_d ? d : tag;
  set[0] = held | bits;
  set[1] = first;
  set[2] = in_b ? c : b;
  set[3] = in_b || in_c ? d : c;
  return {sectors & ~held, in_b || in_c || in_d ? 0 : d};
}

/// What a strong read or a fence found may be newer than what L1 holds, but for the threads' own local
/// memory.
SW_INLINE void empty_l1(BlockRun& b) {
  const u64 entries = u64(b.l1.sets) * L1Share::kWays;
  if (b.local_bytes == 0) {
    __builtin_memset(b.l1.lines, 0, entries * sizeof(u64));
    return;
  }
  for (u64 k = 0; k < entries; ++k)
    if (b.l1.lines[k] >> L1Share::kLineShift >> kLineOfWindowShift != kLocalWindow) b.l1.lines[k] = 0;
}

SW_INLINE void log_sectors(BlockRun& b, u64 line, u64 sectors, u32 write) {
  append(b.logs[line & (b.partitions - 1)], line << 5 | sectors << 1 | write);
}
/// Dirty sectors, of local memory, that L1 has no room for go to L2.
inline void write_back(BlockRun& b, u64 entry) {
  const u64 dirty = entry >> L1Share::kDirtyShift & L1Share::kSectors;
  b.hot->local_l2_sectors += u64(__builtin_popcountll(dirty));
  log_sectors(b, entry >> L1Share::kLineShift, dirty, 1);
}

/// Logs what of a line's sectors goes on to L2. `l1`: those that L1 holds do not.
SW_INLINE void log_line(BlockRun& b, u64 line, u64 sectors, u32 write, bool l1) {
  if (l1) {
    const L1Look look = look_in_l1(b.l1, line, sectors);
    if (look.pushed_out & L1Share::kDirty) [[unlikely]]
      write_back(b, look.pushed_out);
    b.hot->l1_hit_sectors += u64(__builtin_popcountll(sectors ^ look.missing));
    if (look.missing == 0) return;
    sectors = look.missing;
  }
  log_sectors(b, line, sectors, write);
}

/// Logs what of a line of local memory goes on to L2: through L1, which writes it back where it caches more
/// than non-coherent loads.
inline void log_local_line(BlockRun& b, u64 line, u64 sectors, u32 write) {
  if (b.l1.sets != 0 && !b.l1.only_non_coherent) {
    const L1Look look = look_in_l1(b.l1, line, write ? sectors | sectors << L1Share::kDirtyShift : sectors);
    if (look.pushed_out & L1Share::kDirty) write_back(b, look.pushed_out);
    // A store fills what it misses.
    sectors = write ? 0 : look.missing;
  }
  if (sectors == 0) return;
  b.hot->local_l2_sectors += u64(__builtin_popcountll(sectors));
  log_sectors(b, line, sectors, write);
}

/// Logs a warp's access of local memory. The words of a thread lie 128 bytes apart, between those of the
/// warp's other lanes. `a`: offsets in a thread's memory.
template <class A>
void log_local(BlockRun& b, u64 warp, Lanes<A> a, u32 mask, u32 width, u32 write) {
  const u64 words = width < 4 ? 1 : width / 4;
  const u64 first_line = b.local_line + warp * ((b.local_bytes + 3) / 4);
  u64 total = 0, lines = 0;
  for (u32 left = mask; left != 0;) {
    const A word = a[__builtin_ctz(left)] >> 2;
    u32 same = 0;
    u64 sectors = 0;
    for (u32 m = left; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m);
      if (a[l] >> 2 != word) continue;
      same |= 1u << l;
      sectors |= u64(1) << (l / 8);
    }
    for (u64 k = 0; k < words; ++k) log_local_line(b, first_line + u64(word) + k, sectors, write);
    total += words * u64(__builtin_popcountll(sectors));
    lines += words;
    left &= ~same;
  }
  HotCounters& hot = *b.hot;
  ++(write ? hot.local_stores : hot.local_loads);
  (write ? hot.local_store_sectors : hot.local_load_sectors) += total;
  hot.l1_wavefronts += lines;
}

/// Distinct sectors and lines of an access.
struct Touched {
  u32 sectors = 0, lines = 0;
};

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

/// Logs a range.
SW_INLINE Touched log_range(BlockRun& b, Sectors range, u32 write, bool l1) {
  const u64 last_line = range.last >> 2;
  for (u64 line = range.first >> 2; line <= last_line; ++line) log_line(b, line, range.in(line), write, l1);
  return {u32(range.last - range.first + 1), u32(last_line - (range.first >> 2) + 1)};
}

/// Logs two ranges, each line once.
SW_INLINE Touched log_ranges(BlockRun& b, Sectors x, Sectors y, u32 write, bool l1) {
  const u64 x_first = x.first >> 2, x_last = x.last >> 2, y_first = y.first >> 2, y_last = y.last >> 2;
  if (x_last < y_first || y_last < x_first) {
    const Touched in_x = log_range(b, x, write, l1), in_y = log_range(b, y, write, l1);
    return {in_x.sectors + in_y.sectors, in_x.lines + in_y.lines};
  }
  Touched total;
  const auto log = [&](u64 line, u64 sectors) {
    total.sectors += u32(__builtin_popcountll(sectors));
    ++total.lines;
    log_line(b, line, sectors, write, l1);
  };
  for (u64 line = x_first; line <= x_last; ++line) log(line, x.in(line) | y.in(line));
  for (u64 line = y_first; line <= y_last; ++line)
    if (line < x_first || line > x_last) log(line, y.in(line));
  return total;
}

/// Distinct sectors of the active lanes' accesses, logged line by line. An access is aligned to its width,
/// which is 32 bytes at most: it lies in one sector.
inline Touched log_lanes(BlockRun& b, Lanes<u64> a, u32 mask, u32 write, bool l1) {
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
  Touched total{0, u32(n)};
  for (int k = 0; k < n; ++k) {
    total.sectors += u32(__builtin_popcountll(entries[k] & 15));
    log_line(b, entries[k] >> 4, entries[k] & 15, write, l1);
  }
  return total;
}

/// 128 bytes a wavefront, of one line each: what L1 takes to look up a request and to move its bytes.
SW_INLINE u32 l1_wavefronts(Touched touched, u32 bytes) {
  const u32 moved = (bytes + 127) / 128;
  return touched.lines > moved ? touched.lines : moved;
}

}  // namespace
}  // namespace stitchwork::sim
