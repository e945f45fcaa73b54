// Thread block clusters by cooperative groups, for sm_90 and later: a histogram whose bins lie in the shared
// memory of several blocks, and sums of rows that each block has a part of.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

/// Launched in clusters that together have `per_block` x blocks bins.
extern "C" __global__ void cluster_histogram(const int* x, int* bins, int n, int per_block) {
  extern __shared__ int mine[];
  cg::cluster_group cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < per_block; i += blockDim.x) mine[i] = 0;
  cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(cluster.map_shared_rank(mine, x[i] / per_block) + x[i] % per_block, 1);
#ifndef FORGET_LAST_SYNC
  cluster.sync();
#endif
  for (int i = threadIdx.x; i < per_block; i += blockDim.x)
    atomicAdd(bins + cluster.block_rank() * per_block + i, mine[i]);
}

/// A row of 4 x blockDim elements a cluster, each divided by the sum of all: parts of the sum are exchanged.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_normalise(const float* x, float* y) {
  __shared__ float part[32];
  __shared__ float of_block;
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const float mine = x[i];
  float sum = mine;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (lane == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0;
    for (unsigned w = 0; w < blockDim.x / 32; ++w) all += part[w];
    of_block = all;
  }
  cluster.sync();
  float total = 0;
  for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank)
    total += *cluster.map_shared_rank(&of_block, rank);
  // Nobody ends before all have read: other work in between.
  auto token = cluster.barrier_arrive();
  y[i] = mine / total;
#ifndef FORGET_LAST_SYNC
  cluster.barrier_wait(std::move(token));
#endif
}
