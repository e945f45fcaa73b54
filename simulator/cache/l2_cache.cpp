#include "simulator/cache/l2_cache.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <new>

#include "occupancy_model/l2.h"

namespace stitchwork::sim {

void L2Counters::add(const L2Counters& other, std::int64_t times) {
  const auto n = static_cast<std::uint64_t>(times);
  read_sectors += n * other.read_sectors;
  write_sectors += n * other.write_sectors;
  dram_reads += n * other.dram_reads;
  dram_writes += n * other.dram_writes;
  dirty_sectors += times * other.dirty_sectors;
}

L2State::L2State(std::int64_t bytes)
    : groups_(static_cast<std::uint32_t>(std::max<std::int64_t>(bytes / (128 * kWays * kPartitions), 1))) {
  std::size_t room = (std::size_t{groups_} * kPartitions + 1) * sizeof(Set);
  void* begin = std::calloc(room, 1);
  memory_.reset(begin);
  if (begin == nullptr) throw std::bad_alloc();
  sets_ = static_cast<Set*>(std::align(alignof(Set), room - sizeof(Set), begin, room));
}

void L2State::Free::operator()(void* p) const { std::free(p); }

void L2State::clear() {
  ++epoch_;
  dirty_sectors = 0;
}

namespace {

constexpr std::uint8_t kBits[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
constexpr std::uint64_t kOnes = 0x1111111111111111ull;

/// `order` with `way` moved to its front.
inline std::uint64_t used(std::uint64_t order, std::uint64_t way) {
  const std::uint64_t other = order ^ way * kOnes;  // its digit is 0
  const int at = std::countr_zero((other - kOnes) & ~other & 8 * kOnes) - 3;
  const std::uint64_t before = (std::uint64_t{1} << at) - 1;
  return (order & ~(before << 4 | 15)) | (order & before) << 4 | way;
}

}  // namespace

inline std::uint64_t L2State::Set::way_of(std::uint64_t tag) const {
  const __m128i wanted = _mm_set1_epi32(static_cast<std::int32_t>(tag));
  const auto equal = [&](int four) {
    return _mm_cmpeq_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(line_low) + four), wanted);
  };
  const __m128i all =
      _mm_packs_epi16(_mm_packs_epi32(equal(0), equal(1)), _mm_packs_epi32(equal(2), equal(3)));
  for (auto ways = static_cast<std::uint32_t>(_mm_movemask_epi8(all)); ways != 0; ways &= ways - 1) {
    const auto way = static_cast<std::uint64_t>(std::countr_zero(ways));
    if (line_high[way] == static_cast<std::uint16_t>(tag >> 32)) [[likely]]
      return way;
  }
  return kWays;
}

inline L2State::Set& L2State::set_of(std::uint64_t line) const {
  // A hash spreads strided lines over the sets, as the address hash of real L2 slices does. One product alone
  // would leave lines of one stride that many blocks ask for together in few sets.
  std::uint64_t hash = (line / kPartitions) * 0x9E3779B97F4A7C15ull;
  hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9ull >> 32;  // as splitmix64 mixes (Steele et al., 2014)
  return sets_[(hash * groups_ >> 32) * kPartitions + line % kPartitions];
}

inline void L2State::access(Set& set, std::uint64_t entry, L2Counters& counters) {
  const std::uint64_t tag = (entry >> 5) / kPartitions, sectors = entry >> 1 & 0xf;
  if (set.epoch != epoch_) [[unlikely]] {
    // A way without sectors may hold any line: it behaves as one that is not there.
    set = {.epoch = epoch_,
           .recent = 0,
           .order = 0xfedcba9876543210ull,
           .valid = 0,
           .dirty = 0,
           .line_high = {},
           .line_low = {}};
  }
  std::uint64_t way = set.recent;
  if (!set.holds(way, tag)) {
    way = set.way_of(tag);
    if (way == kWays) {
      way = set.order >> 60;
      const int evicted = kBits[set.dirty >> 4 * way & 15];
      counters.dram_writes += static_cast<std::uint64_t>(evicted);
      counters.dirty_sectors -= evicted;
      set.line_low[way] = static_cast<std::uint32_t>(tag);
      set.line_high[way] = static_cast<std::uint16_t>(tag >> 32);
      set.valid &= ~(std::uint64_t{15} << 4 * way);
      set.dirty &= ~(std::uint64_t{15} << 4 * way);
    }
    set.recent = static_cast<std::uint32_t>(way);
    set.order = used(set.order, way);
  }
  const auto count = std::uint64_t{kBits[sectors]};
  if (entry & 1) {
    counters.write_sectors += count;
    counters.dirty_sectors += kBits[sectors & ~(set.dirty >> 4 * way)];
    set.dirty |= sectors << 4 * way;
  } else {
    counters.read_sectors += count;
    counters.dram_reads += kBits[sectors & ~(set.valid >> 4 * way)];
  }
  set.valid |= sectors << 4 * way;
}

void L2State::replay(const std::uint64_t* begin, const std::uint64_t* end, L2Counters& counters) {
  constexpr std::ptrdiff_t kAhead = 16;  // entries whose sets are being fetched meanwhile
  std::array<Set*, kAhead> sets;
  const auto fetch = [&](std::ptrdiff_t e) {
    Set* const set = &set_of(begin[e] >> 5);
    __builtin_prefetch(set);
    __builtin_prefetch(&set->line_low[kWays - 1]);
    sets[static_cast<std::size_t>(e % kAhead)] = set;
  };
  const std::ptrdiff_t entries = end - begin;
  for (std::ptrdiff_t e = 0; e < std::min(kAhead, entries); ++e) fetch(e);
  L2Counters sum;
  for (std::ptrdiff_t e = 0; e < entries; ++e) {
    Set& set = *sets[static_cast<std::size_t>(e % kAhead)];
    if (e + kAhead < entries) fetch(e + kAhead);
    access(set, begin[e], sum);
  }
  counters += sum;
}

void L2StateDeleter::operator()(L2State* state) const { delete state; }
L2StatePtr make_l2_state(const Device& device) { return L2StatePtr(new L2State(l2_distinct_bytes(device))); }

}  // namespace stitchwork::sim
