// st.async and red.async (PTX ISA 8.7, 9.7.9.12 and 9.7.13.7): stores and reductions to shared memory of a
// block of the cluster, which an mbarrier there counts in bytes. They are moved as bulk loads are: when
// somebody looks at that mbarrier.
#include "simulator/isa/memory_access.h"
#include "simulator/machine/bulk_copy.h"
#include "simulator/machine/mbarrier.h"

namespace stitchwork::sim {

const Inst* store_async(Strand& s, const Inst* i) {
  BlockRun& b = *s.block;
  const u32 element = i->flags & kAsyncElementMask, bytes = element * i->count;
  const bool remote = i->flags & kAsyncRemote, reduces = i->imm != 0;
  const auto address = [&](int operand, std::uint16_t narrow, int w, int l) {
    const std::byte* const registers = s.regs + i->o[operand];
    return i->aux & narrow ? u64{load<u32>(registers + (w * 32 + l) * 4)}
                           : load<u64>(registers + (w * 32 + l) * 8);
  };
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    u64 to[32] = {};
    for (u32 m = s.mask[w]; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m);
      to[l] = address(4, kBulkNarrowShared, w, l);
      const SharedPlace at = shared_place(s, i, to[l], bytes, bytes, remote, true, w, l);
      const SharedPlace bar = shared_place(s, i, address(5, kBulkNarrowMbarrier, w, l), Mbarrier::kBytes,
                                           Mbarrier::kBytes, remote, true, w, l);
      BulkCopies::Load store{.bytes = bytes, .of_registers = true};
      for (int k = 0; k < i->count; ++k)
        __builtin_memcpy(store.values.data() + u32(k) * element, s.regs + i->o[k] + u32(w * 32 + l) * element,
                         element);
      if (reduces) {
        store.reduction = AtomicOp(i->imm - 1);
        store.element_bytes = bytes;
      }
      queue_bulk_load(s, i, at, bar, store, w, l);
    }
    const u32 lanes = u32(__builtin_popcount(s.mask[w]));
    b.hot->accesses += lanes;
    if (reduces) b.hot->atomics += lanes;
    const u32 own = b.cluster == nullptr ? s.mask[w] : count_remote(b, s.mask[w], to);
    if (own == 0) continue;
    if (reduces)
      b.hot->shared_wavefronts += atomic_wavefronts(to, own, bytes);
    else
      count_shared(*b.hot, true, shared_cost_of_lanes(Lanes<u64>(to), own, bytes));
  }
  return i + 1;
}

}  // namespace stitchwork::sim
