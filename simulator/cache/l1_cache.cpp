#include "simulator/cache/l1_cache.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace stitchwork::sim {
namespace {

// CUDA C++ Programming Guide 13.0, "Compute Capabilities": the size of the unified data cache and the
// shared-memory capacities it can be divided into. Pascal Tuning Guide, "Unified L1/Texture Cache": GP104
// caches only non-coherent loads by default, GP100 all.
constexpr std::int64_t kCarveouts70[] = {0, 8, 16, 32, 64, 96};
constexpr std::int64_t kCarveouts75[] = {32, 64};
constexpr std::int64_t kCarveouts80[] = {0, 8, 16, 32, 64, 100, 132, 164};
constexpr std::int64_t kCarveouts86[] = {0, 8, 16, 32, 64, 100};
constexpr std::int64_t kCarveouts90[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

struct L1Row {
  int major, minor;
  std::int64_t kib;
  std::span<const std::int64_t> carveouts_kib;  ///< empty: shared memory is apart
  bool only_non_coherent;
};
const L1Row kL1Rows[] = {
    {6, 0, 24, {}, false},
    {6, 1, 48, {}, true},
    {6, 2, 24, {}, true},
    {7, 0, 128, kCarveouts70, false},
    {7, 5, 96, kCarveouts75, false},
    {8, 0, 192, kCarveouts80, false},
    {8, 6, 128, kCarveouts86, false},
    {8, 7, 192, kCarveouts80, false},
    {8, 9, 128, kCarveouts86, false},
    {9, 0, 256, kCarveouts90, false},
    {12, 0, 128, kCarveouts86, false},
};
constexpr std::int64_t kKib = 1024;

const L1Row& row_of(const Device& device) {
  // 10.x has Hopper's caches; the 12.x row is of smaller parts.
  const L1Row* found = std::begin(kL1Rows);
  for (const L1Row& row : kL1Rows)
    if (std::pair(row.major, row.minor) <= std::pair(device.cc_major, device.cc_minor)) found = &row;
  return *found;
}

}  // namespace

bool l1_only_non_coherent(const Device& device) { return row_of(device).only_non_coherent; }

std::int64_t l1_bytes_a_block(const Device& device, std::int64_t shared_bytes, int blocks) {
  const L1Row& row = row_of(device);
  const std::int64_t shared = blocks * (shared_bytes + device.shared_bytes_reserved_per_block);
  // The driver takes the smallest division that holds what is resident.
  std::int64_t carved = 0;
  for (const std::int64_t kib : row.carveouts_kib) {
    carved = kib * kKib;
    if (carved >= shared) break;
  }
  return (row.kib * kKib - carved) / std::max(blocks, 1);
}

}  // namespace stitchwork::sim
