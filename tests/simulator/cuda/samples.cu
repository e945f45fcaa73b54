#pragma nv_diag_suppress 20054
// Kernels in the manner of NVIDIA's samples, with what its headers make of them: cooperative groups, pipelines,
// libcu++ barriers, double-precision tensor cores, function pointers.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include <cuda/barrier>

namespace cg = cooperative_groups;

__device__ unsigned int retired = 0;

// Blocks publish their sums by a fence and a count; the last one to count itself adds them up.
extern "C" __global__ void threadfence_sum(const int* in, int* out, int n) {
  const cg::thread_block block = cg::this_thread_block();
  __shared__ int cells[256];
  __shared__ bool last;
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  const auto add_up = [&](int mine) {
    cells[threadIdx.x] = mine;
    cg::sync(block);
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
      if (threadIdx.x < step) cells[threadIdx.x] += cells[threadIdx.x + step];
      cg::sync(block);
    }
  };
  add_up(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = cells[0];
  __threadfence();
  if (threadIdx.x == 0) last = atomicInc(&retired, gridDim.x) == gridDim.x - 1;
  cg::sync(block);
  if (!last) return;
  sum = 0;
  for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += out[i];
  add_up(sum);
  if (threadIdx.x == 0) {
    out[0] = cells[0];
    retired = 0;
  }
}

// One atomic for all lanes of a warp that have a bucket.
extern "C" __global__ void bucket_maxima(const int* in, int* out, int buckets) {
  const int v = in[blockIdx.x * blockDim.x + threadIdx.x], bucket = (v & 0xffff) % buckets;
  const auto same = cg::labeled_partition(cg::coalesced_threads(), bucket);
  const int most = cg::reduce(same, v, cg::greater<int>());
  if (same.thread_rank() == 0) atomicMax(&out[bucket], most);
}

// Odd values are numbered by bucket.
extern "C" __global__ void bucket_ranks(const int* in, int* counts, int* seen, int buckets) {
  const int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  if ((v & 1) == 0) return;
  const int bucket = (v & 0xffff) % buckets;
  const auto same = cg::labeled_partition(cg::coalesced_threads(), bucket);
  int first = 0;
  if (same.thread_rank() == 0) first = atomicAdd(&counts[bucket], same.size());
  first = same.shfl(first, 0) + same.thread_rank();
  atomicAdd(&seen[bucket * 256 + first % 256], 1);
}

// Tiles of more than a warp meet in shared memory that the system keeps for them.
extern "C" __global__ void wide_tiles(const int* in, int* out) {
  const cg::thread_block block = cg::this_thread_block();
  __shared__ cg::block_tile_memory<256> scratch;
  const auto tile = cg::tiled_partition<64>(cg::this_thread_block(scratch));
  const int sum = cg::reduce(tile, in[blockIdx.x * blockDim.x + threadIdx.x], cg::plus<int>());
  tile.sync();
  if (tile.thread_rank() == 0) out[blockIdx.x * (blockDim.x / 64) + tile.meta_group_rank()] = sum;
}

// Inclusive sums within tiles of 16; threads past the end are gone.
extern "C" __global__ void tile_scan(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  out[i] = cg::inclusive_scan(tile, in[i], cg::plus<int>());
}

__device__ int add(int a, int b) { return a + b; }
__device__ int multiply(int a, int b) { return a * b; }
__device__ int larger(int a, int b) { return a > b ? a : b; }
typedef int (*Operation)(int, int);
__device__ Operation operations[3] = {add, multiply, larger};

extern "C" __global__ void by_pointer(const int* in, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = operations[in[i] % 3](in[i], i % 7);
}

// A stencil of five points over rows, the next rows' tile copied while one is computed.
extern "C" __global__ void stencil(const float* in, float* out, int tiles) {
  __shared__ float tile[2][256 + 4];
  const auto copy = [&](int t) {
    float* to = tile[t % 2];
    const float* from = in + (blockIdx.x * tiles + t) * 256;
    __pipeline_memcpy_async(&to[threadIdx.x + 2], &from[threadIdx.x], sizeof(float));
    if (threadIdx.x < 2) {
      to[threadIdx.x] = 0;
      to[threadIdx.x + 258] = 0;
    }
    __pipeline_commit();
  };
  copy(0);
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) {
      copy(t + 1);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 5; ++k) sum += tile[t % 2][threadIdx.x + k];
    out[(blockIdx.x * tiles + t) * 256 + threadIdx.x] = sum;
    __syncthreads();
  }
}

// The same bytes by a barrier of libcu++ that its copies complete.
extern "C" __global__ void reversed(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ __align__(16) int tile[512];
  const cg::thread_block block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  block.sync();
  cuda::memcpy_async(&tile[threadIdx.x * 4], &in[blockIdx.x * 512 + threadIdx.x * 4], cuda::aligned_size_t<16>(16), barrier);
  barrier.arrive_and_wait();
  for (int k = 0; k < 4; ++k) out[blockIdx.x * 512 + k * 128 + threadIdx.x] = tile[511 - (k * 128 + threadIdx.x)];
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void double_product(const double* a, const double* b, double* c, int k) {
  using namespace nvcuda;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
  wmma::fill_fragment(sum, 0.0);
  for (int at = 0; at < k; at += 4) {
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> right;
    wmma::load_matrix_sync(left, a + at, k);
    wmma::load_matrix_sync(right, b + at, k);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}
#endif
