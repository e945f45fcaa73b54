#include "simulator/l2_cache.h"

#include <algorithm>
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
  sets_.reset(static_cast<Set*>(std::calloc(std::size_t{groups_} * kPartitions, sizeof(Set))));
  if (!sets_) throw std::bad_alloc();
}

void L2State::Free::operator()(Set* p) const { std::free(p); }

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

inline L2State::Set& L2State::set_of(std::uint64_t line) const {
  // A hash spreads strided lines over the sets, as the address hash of real L2 slices does. One product alone
  // would leave lines of one stride that many blocks ask for together in few sets.
  std::uint64_t hash = (line / kPartitions) * 0x9E3779B97F4A7C15ull;
  hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9ull >> 32;  // as splitmix64 mixes (Steele et al., 2014)
  return sets_[(hash * groups_ >> 32) * kPartitions + line % kPartitions];
}

__attribute__((always_inline)) inline void L2State::access(std::uint64_t entry, L2Counters& counters) {
  const std::uint64_t line = entry >> 5, sectors = entry >> 1 & 0xf;
  Set& set = set_of(line);
  if (set.epoch != epoch_) [[unlikely]] {
    set = {.epoch = epoch_, .recent = 0, .order = 0xfedcba9876543210ull, .valid = 0, .dirty = 0, .line = {}};
    std::fill(std::begin(set.line), std::end(set.line), ~std::uint64_t{0});
  }
  std::uint64_t way = set.recent;
  if (set.line[way] != line) {
    std::uint64_t found = kWays;
    for (std::uint64_t w = 0; w < kWays; ++w) found = set.line[w] == line ? w : found;
    way = found;
    if (way == kWays) {
      way = set.order >> 60;
      const int evicted = kBits[set.dirty >> 4 * way & 15];
      counters.dram_writes += static_cast<std::uint64_t>(evicted);
      counters.dirty_sectors -= evicted;
      set.line[way] = line;
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

#if defined(__x86_64__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
void L2State::replay(const std::uint64_t* begin, const std::uint64_t* end, L2Counters& counters) {
  constexpr std::ptrdiff_t kAhead = 12;  // entries whose sets are being fetched meanwhile
  L2Counters sum;
  for (const std::uint64_t* e = begin; e != end; ++e) {
    if (end - e > kAhead) {
      const Set& next = set_of(e[kAhead] >> 5);
      __builtin_prefetch(&next);
      __builtin_prefetch(&next.line[6]);
      __builtin_prefetch(&next.line[kWays - 1]);
    }
    access(*e, sum);
  }
  counters += sum;
}

void L2StateDeleter::operator()(L2State* state) const { delete state; }
L2StatePtr make_l2_state(const Device& device) { return L2StatePtr(new L2State(l2_distinct_bytes(device))); }

}  // namespace stitchwork::sim
