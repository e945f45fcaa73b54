#include "codegen/prelude/prelude.h"

namespace stitchwork {

std::string_view prelude_cluster() {
  return R"cuda(// Blocks of a cluster. clang writes no such directive: codegen/compile/ptx_target.h adds it.
#ifdef SW_CLANG
#define SW_CLUSTER(blocks)
#else
#define SW_CLUSTER(blocks) __cluster_dims__(blocks, 1, 1)
#endif
// The blocks of a thread block cluster (sm_90 and later) wait for each other in two parts: a thread goes on behind
// sw_cluster_wait when all threads of all blocks have come to sw_cluster_arrive, and sees what they wrote before it,
// also to its block's shared memory. (Arriving releases and waiting acquires; to say so would ask for PTX 8.0.)
SW_FN void sw_cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" : : : "memory"); }
SW_FN void sw_cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" : : : "memory"); }
// To the shared memory of block `rank` of the cluster, at the place of *p in this one's.
SW_FN unsigned sw_cluster_place(const void* p, int rank) {
  unsigned long long here;
  unsigned there;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(here) : "l"(p));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((unsigned)here), "r"(rank));
  return there;
}
template <class T> SW_FN void sw_cluster_store(T* p, int rank, T v) {
  const unsigned place = sw_cluster_place(p, rank);
  union { T t; unsigned long long wide; unsigned word; unsigned short half; unsigned char byte; } b;
  b.wide = 0;
  b.t = v;
  if (sizeof(T) == 8)
    asm volatile("st.shared::cluster.b64 [%0], %1;" : : "r"(place), "l"(b.wide) : "memory");
  else if (sizeof(T) == 4)
    asm volatile("st.shared::cluster.b32 [%0], %1;" : : "r"(place), "r"(b.word) : "memory");
  else if (sizeof(T) == 2)
    asm volatile("st.shared::cluster.b16 [%0], %1;" : : "r"(place), "h"(b.half) : "memory");
  else
    asm volatile("st.shared::cluster.b8 [%0], %1;" : : "r"(place), "r"((unsigned)b.byte) : "memory");
}
// Over all threads of the kBlocks blocks of a cluster, of kBlock threads each; every thread gets the result, the
// same in all blocks. Each warp leaves what it has in every block's `workspace`, which holds kBlocks * kBlock / 32
// values and must not be in use in any of them.
template <class R, int kBlocks, int kBlock, class T> SW_FN T sw_cluster_reduce(T v, T identity, T* workspace, int rank) {
  const int warps = kBlock / 32, lane = threadIdx.x % 32;
  v = sw_warp_reduce<R, 32>(v);
  if (lane < kBlocks) sw_cluster_store(&workspace[rank * warps + threadIdx.x / 32], lane, v);
  sw_cluster_arrive();
  sw_cluster_wait();
  v = identity;
#pragma unroll
  for (int i = 0; i < kBlocks * warps; i += 32)
    if (i + lane < kBlocks * warps) v = R::of(v, workspace[i + lane]);
  return sw_warp_reduce<R, 32>(v);
}
)cuda";
}

}  // namespace stitchwork
