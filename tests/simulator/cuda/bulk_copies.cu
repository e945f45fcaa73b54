// Barriers in shared memory and bulk copies by the CUDA C++ library, for sm_90 and later.
#include <cooperative_groups.h>

#include <cuda/barrier>
#include <cuda/ptx>

using Barrier = cuda::barrier<cuda::thread_scope_block>;
namespace ptx = cuda::ptx;

constexpr int kTile = 1024, kStages = 3;

/// One tile a block, in and out in bulk.
extern "C" __global__ void add_one(const int* x, int* y) {
  alignas(128) __shared__ int tile[kTile];
  __shared__ alignas(8) unsigned char place[sizeof(Barrier)];
  Barrier& loaded = *reinterpret_cast<Barrier*>(place);
  if (threadIdx.x == 0) {
    init(&loaded, blockDim.x);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(tile, x + blockIdx.x * kTile, cuda::aligned_size_t<16>(sizeof tile), loaded);
    token = cuda::device::barrier_arrive_tx(loaded, 1, sizeof tile);
  } else {
    token = loaded.arrive();
  }
  loaded.wait(std::move(token));
  for (int i = threadIdx.x; i < kTile; i += blockDim.x) tile[i] += 1;
#ifndef FORGET_FENCE
  ptx::fence_proxy_async(ptx::space_shared);
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + blockIdx.x * kTile, tile, sizeof tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}

/// Each block adds up `tiles` tiles, element by element. The first warp fetches them, the others add; a stage
/// is refilled when its readers have said so.
extern "C" __global__ void sum_tiles(const int* x, int* y, int tiles) {
  alignas(128) __shared__ int stages[kStages][kTile];
  __shared__ alignas(8) unsigned char places[2 * kStages * sizeof(Barrier)];
  Barrier* const full = reinterpret_cast<Barrier*>(places);
  Barrier* const empty = full + kStages;
  const int readers = blockDim.x - 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init(full + s, 1);
      init(empty + s, readers);
    }
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  const int* const mine = x + blockIdx.x * tiles * kTile;
  if (threadIdx.x < 32) {
    if (threadIdx.x != 0) return;
    for (int t = 0; t < tiles; ++t) {
      const int s = t % kStages;
#ifndef FORGET_READERS
      if (t >= kStages) empty[s].wait_parity((t / kStages - 1) & 1);
#endif
      cuda::device::memcpy_async_tx(stages[s], mine + t * kTile, cuda::aligned_size_t<16>(sizeof stages[s]), full[s]);
      (void)cuda::device::barrier_arrive_tx(full[s], 1, sizeof stages[s]);
    }
    return;
  }
  const int reader = threadIdx.x - 32;
  for (int i = reader; i < kTile; i += readers) y[blockIdx.x * kTile + i] = 0;
  for (int t = 0; t < tiles; ++t) {
    const int s = t % kStages;
    full[s].wait_parity((t / kStages) & 1);
    for (int i = reader; i < kTile; i += readers) y[blockIdx.x * kTile + i] += stages[s][i];
    (void)empty[s].arrive();
  }
}

/// Values go round the threads of a block, one place in each phase.
extern "C" __global__ void rotate(int* x, int turns) {
  extern __shared__ int ring[];
  __shared__ alignas(8) unsigned char place[sizeof(Barrier)];
  Barrier& all = *reinterpret_cast<Barrier*>(place);
  if (threadIdx.x == 0) init(&all, blockDim.x);
  __syncthreads();
  int value = x[threadIdx.x];
  for (int t = 0; t < turns; ++t) {
    ring[threadIdx.x] = value;
    all.arrive_and_wait();
    value = ring[(threadIdx.x + 1) % blockDim.x];
    all.arrive_and_wait();
  }
  x[threadIdx.x] = value;
}

/// Sums of a cluster of four, element by element: tiles go round its blocks, each turn by a bulk copy from a block's
/// shared memory to the next one's.
extern "C" __global__ void __cluster_dims__(4, 1, 1) ring_sums(const int* x, int* y) {
  constexpr int kBlocks = 4;
  alignas(128) __shared__ int tiles[2][kTile];
  __shared__ uint64_t landed[2];
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned next = (cluster.block_rank() + 1) % kBlocks;
  if (threadIdx.x == 0)
    for (uint64_t& barrier : landed) ptx::mbarrier_init(&barrier, 1);
  for (int i = threadIdx.x; i < kTile; i += blockDim.x) y[blockIdx.x * kTile + i] = tiles[0][i] = x[blockIdx.x * kTile + i];
#ifndef FORGET_FENCE
  ptx::fence_proxy_async(ptx::space_shared);
#endif
  cluster.sync();
  for (int turn = 0; turn < kBlocks - 1; ++turn) {
    const int from = turn % 2, to = 1 - from;
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &landed[to], sizeof tiles[to]);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, cluster.map_shared_rank(tiles[to], next), tiles[from],
                         sizeof tiles[from], cluster.map_shared_rank(&landed[to], next));
    }
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &landed[to], turn / 2 % 2)) {
    }
    for (int i = threadIdx.x; i < kTile; i += blockDim.x) y[blockIdx.x * kTile + i] += tiles[to][i];
#ifndef FORGET_TURN
    cluster.sync();  // the next block has what this one sent
#endif
  }
}
