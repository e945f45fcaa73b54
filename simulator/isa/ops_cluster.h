// Thread block clusters: their barrier, and addresses of shared memory of their blocks.
#pragma once

#include "simulator/isa/memory_access.h"

namespace stitchwork::sim {
namespace {

/// ld and st .shared::cluster.
template <bool kStore, int kBytes>
const Inst* cluster_access(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    alignas(64) u64 a[32];
    lane_addresses(s, i, w, i->o[4], a);
    access_cluster(s, i, w, s.mask[w], a, kBytes, kStore);
  }
  if (i->aux & kPolls) return yield_after_poll(s, i, first_address(s, i));
  return i + 1;
}

/// barrier.cluster.arrive. A thread arrives for itself; under .aligned with its warp.
const Inst* cluster_arrive(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp && (i->flags & kClusterAligned); ++w)
    if (s.mask[w] != 0 && s.mask[w] != s.alive[w])
      if (const Inst* next = await_warp(s, i, Rendezvous::kClusterBarrier); next != i) return next;
  arrive_at_cluster_barrier(s, i);
  return i + 1;
}

/// barrier.cluster.wait. Lanes of a warp that has not arrived as a whole wait for the others, which may come
/// elsewhere; under .aligned a warp waits as a whole.
const Inst* cluster_wait(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == s.alive[w]) continue;
    if (!(i->flags & kClusterAligned) && s.waiting == 0 && warp_is_at_cluster_barrier(s, w)) continue;
    if (const Inst* next = await_warp(s, i, Rendezvous::kClusterBarrier); next != i) return next;
  }
  s.poll = nullptr;
  return wait_at_cluster_barrier(s, i) ? i + 1 : nullptr;
}

/// The address of lane l, of 64 or 32 bits; flags 1: generic, which has to lie in shared memory.
template <class A>
SW_INLINE A shared_address(Strand& s, const Inst* i, int w, int l) {
  const A a = load<A>(s.regs + i->o[1] + (w * 32 + l) * int(sizeof(A)));
  if (i->flags && u64(a) >> kAllocationShift != kSharedWindow)
    raise_finding(s, i, FindingKind::kOutOfBounds, "takes an address that is not in shared memory", w, l);
  return a;
}

/// mapa: o[0] = the address that o[1] is in the block of rank o[2].
template <class A>
const Inst* map_address(Strand& s, const Inst* i) {
  constexpr A offset = (A(1) << kClusterRankShift) - 1;
  const A window = sizeof(A) == 8 ? A(~kAllocationOffsetMask) : A(0);
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for (u32 m = s.mask[w]; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m);
      const A a = shared_address<A>(s, i, w, l);
      const u32 rank = load<u32>(s.regs + i->o[2] + (w * 32 + l) * 4);
      // Of a rank that is none, the address of a block that is none: clusters have 16 blocks at most.
      const A limited = A(rank < 0xff ? rank : 0xff);
      store<A>(s.regs + i->o[0] + (w * 32 + l) * int(sizeof(A)),
               A((a & (offset | window)) | limited << kClusterRankShift));
    }
  }
  return i + 1;
}

/// getctarank: o[0] = the rank of the block that shared memory address o[1] belongs to.
template <class A>
const Inst* rank_of_address(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for (u32 m = s.mask[w]; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m);
      const A a = shared_address<A>(s, i, w, l);
      const u64 in_window = u64(a) & kAllocationOffsetMask;
      store<u32>(s.regs + i->o[0] + (w * 32 + l) * 4, u32(in_window >> kClusterRankShift));
    }
  }
  return i + 1;
}

/// atom and red of .shared::cluster memory are in ops_memory.h, with the others.
void add_cluster_rows() {
  const auto other = Pipe::kOther;
  add_row("@ld.cluster.1", "", other, cluster_access<false, 1>, cluster_access<false, 1>);
  add_row("@ld.cluster.2", "", other, cluster_access<false, 2>, cluster_access<false, 2>);
  add_row("@ld.cluster.4", "", other, cluster_access<false, 4>, cluster_access<false, 4>);
  add_row("@ld.cluster.8", "", other, cluster_access<false, 8>, cluster_access<false, 8>);
  add_row("@st.cluster.1", "", other, cluster_access<true, 1>, cluster_access<true, 1>);
  add_row("@st.cluster.2", "", other, cluster_access<true, 2>, cluster_access<true, 2>);
  add_row("@st.cluster.4", "", other, cluster_access<true, 4>, cluster_access<true, 4>);
  add_row("@st.cluster.8", "", other, cluster_access<true, 8>, cluster_access<true, 8>);
  add_row("@cluster.arrive", "", other, cluster_arrive, cluster_arrive);
  add_row("@cluster.wait", "", other, cluster_wait, cluster_wait);
  add_row("@mapa.32", "", other, map_address<u32>, map_address<u32>);
  add_row("@mapa.64", "", other, map_address<u64>, map_address<u64>);
  add_row("@getctarank.32", "", other, rank_of_address<u32>, rank_of_address<u32>);
  add_row("@getctarank.64", "", other, rank_of_address<u64>, rank_of_address<u64>);
}

}  // namespace
}  // namespace stitchwork::sim
