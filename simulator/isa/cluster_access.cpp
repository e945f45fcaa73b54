#include "simulator/isa/cluster_access.h"

#include <algorithm>

#include "simulator/isa/memory_access.h"

namespace stitchwork::sim {
namespace {

template <bool kStore>
void move_element_lane(Strand& s, const Inst* i, int w, int l, std::byte* p, unsigned element_bytes) {
  switch (element_bytes) {
    case 1:
      return move_lane<kStore, 1>(s, i, w, l, p);
    case 2:
      return move_lane<kStore, 2>(s, i, w, l, p);
    case 4:
      return move_lane<kStore, 4>(s, i, w, l, p);
    default:
      return move_lane<kStore, 8>(s, i, w, l, p);
  }
}

/// True if a store of one lane would change memory.
bool changes(const Strand& s, const Inst* i, int w, int l, const std::byte* p, unsigned element_bytes) {
  const int shift = i->aux & kWideRegister ? 8 : 4;
  for (int k = 0; k < i->count; ++k)
    if (__builtin_memcmp(p + unsigned(k) * element_bytes, s.regs + i->o[k] + (w * 32 + l) * shift,
                         element_bytes) != 0)
      return true;
  return false;
}

}  // namespace

u32 count_remote(BlockRun& b, u32 mask, const u64* addresses) {
  u64 sectors[32];
  int count = 0;
  u32 own = 0;
  for (u32 m = mask; m != 0; m &= m - 1) {
    const int l = __builtin_ctz(m);
    if (addresses[l] >> kClusterRankShift == b.cluster_rank)
      own |= 1u << l;
    else
      sectors[count++] = addresses[l] >> 5;  // an access is aligned to its width, 32 bytes at most
  }
  if (count == 0) return own;
  std::sort(sectors, sectors + count);
  ++b.hot->remote_requests;
  b.hot->remote_sectors += u64(std::unique(sectors, sectors + count) - sectors);
  return own;
}

void access_cluster(Strand& s, const Inst* i, int w, u32 mask, const u64* addresses, unsigned element_bytes,
                    bool is_store) {
  BlockRun& b = *s.block;
  const unsigned bytes = element_bytes * i->count;
  b.hot->accesses += u64(__builtin_popcount(mask));
  for (u32 m = mask; m != 0; m &= m - 1) {
    const int l = __builtin_ctz(m);
    std::byte* const p = cluster_byte(s, i, addresses[l], bytes, is_store, w, l);
    if (is_store) {
      b.progress += changes(s, i, w, l, p, element_bytes);
      move_element_lane<true>(s, i, w, l, p, element_bytes);
    } else {
      move_element_lane<false>(s, i, w, l, p, element_bytes);
    }
  }
  if (const u32 own = count_remote(b, mask, addresses); own != 0) {
    count_shared(*b.hot, is_store, shared_cost_of_lanes(Lanes<u64>(addresses), own, bytes));
  }
}

}  // namespace stitchwork::sim
