#include "simulator/l2_cache.h"

#include <algorithm>

namespace stitchwork::sim {

L2State::L2State(std::int64_t bytes)
    : groups_(static_cast<std::uint32_t>(std::max<std::int64_t>(bytes / (128 * kWays * kPartitions), 1))) {
  sets_.resize(std::size_t{groups_} * kPartitions);
}

void L2State::clear() {
  ++epoch_;
  dirty_sectors = 0;
}

namespace {

constexpr std::uint8_t kBits[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

}  // namespace

#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
int L2State::find_way(const Set& set, std::uint64_t line) {
  int way = -1;
  for (int w = 0; w < kWays; ++w) way = set.line[w] == line ? w : way;
  return way;
}

void L2State::access(std::uint64_t entry, L2Counters& counters) {
  const std::uint64_t line = entry >> 5;
  const auto sectors = static_cast<std::uint8_t>(entry >> 1 & 0xf);
  const bool write = entry & 1;
  // A multiplicative hash spreads strided lines over the sets, as the address hash of real L2 slices does.
  const std::uint64_t hash = (line / kPartitions) * 0x9E3779B97F4A7C15ull >> 32;
  const std::uint64_t group = hash * groups_ >> 32;
  Set& set = sets_[group * kPartitions + line % kPartitions];
  if (set.epoch != epoch_) {
    set.epoch = epoch_;
    set.clock = set.recent = 0;
    for (int w = 0; w < kWays; ++w) {
      set.line[w] = ~std::uint64_t{0};
      set.stamp[w] = 0;
      set.valid[w] = set.dirty[w] = 0;
    }
  }
  int way = set.recent;
  if (set.line[way] != line) way = find_way(set, line);
  if (way < 0) {
    way = static_cast<int>(std::min_element(set.stamp, set.stamp + kWays) - set.stamp);
    const int evicted = kBits[set.dirty[way]];
    counters.dram_writes += static_cast<std::uint64_t>(evicted);
    counters.dirty_sectors -= evicted;
    set.line[way] = line;
    set.valid[way] = set.dirty[way] = 0;
  }
  set.recent = static_cast<std::uint32_t>(way);
  set.stamp[way] = ++set.clock;
  const auto count = std::uint64_t{kBits[sectors]};
  if (write) {
    counters.write_sectors += count;
    counters.dirty_sectors += kBits[sectors & ~set.dirty[way] & 0xf];
    set.dirty[way] |= sectors;
    set.valid[way] |= sectors;
  } else {
    counters.read_sectors += count;
    counters.dram_reads += kBits[sectors & ~set.valid[way] & 0xf];
    set.valid[way] |= sectors;
  }
}

void L2StateDeleter::operator()(L2State* state) const { delete state; }
L2StatePtr make_l2_state(const Device& device) { return L2StatePtr(new L2State(device.l2_bytes)); }

}  // namespace stitchwork::sim
