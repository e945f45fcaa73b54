// Asynchronous copies, barriers, clusters, caches, and what the language has of memory.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

/// Tiles by cg::memcpy_async, each scaled in place.
extern "C" __global__ void group_copies(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float tile[256];
  const auto block = cg::this_thread_block();
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    cg::memcpy_async(block, tile, in + t * 256, sizeof tile);
    cg::wait(block);
    out[t * 256 + threadIdx.x] = tile[255 - threadIdx.x] * 2;
    block.sync();
  }
}

/// A pipeline of the block of two stages (cuda::pipeline, cuda::memcpy_async).
extern "C" __global__ void pipelined(const float* in, float* out, int tiles) {
  constexpr int kStages = 2;
  __shared__ alignas(16) float buffers[kStages][256];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  const float* mine = in + blockIdx.x * tiles * 256;
  float sum = 0;
  for (int t = 0, fetched = 0; t < tiles; ++t) {
    for (; fetched < tiles && fetched < t + kStages; ++fetched) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, buffers[fetched % kStages], mine + fetched * 256, cuda::aligned_size_t<16>(1024), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += buffers[t % kStages][(threadIdx.x + 1) % 256];
    pipeline.consumer_release();
  }
  out[blockIdx.x * 256 + threadIdx.x] = sum;
}

/// Producer and consumer warps that meet at cuda::barriers.
extern "C" __global__ void handed_over(const int* in, int* out, int rounds) {
  __shared__ cuda::barrier<cuda::thread_scope_block> full, empty;
  __shared__ int slot[32];
  if (threadIdx.x == 0) {
    init(&full, 64);
    init(&empty, 64);
  }
  __syncthreads();
  const int lane = threadIdx.x % 32;
  int sum = 0;
  for (int k = 0; k < rounds; ++k) {
    if (threadIdx.x < 32) {
      slot[lane] = in[(blockIdx.x * rounds + k) * 32 + lane];
      (void)full.arrive();
      empty.arrive_and_wait();
    } else {
      full.arrive_and_wait();
      sum += slot[31 - lane];
      (void)empty.arrive();
    }
  }
  if (threadIdx.x >= 32) out[blockIdx.x * 32 + lane] = sum;
}

/// Loads by the read-only cache with prefetches and hints; streaming stores.
extern "C" __global__ void cached(const float4* in, float4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  asm volatile("prefetch.global.L2 [%0];" ::"l"(in + (i + 32) % n));
  const float4 a = __ldg(in + i), b = __ldcs(in + (i + 1) % n), c = __ldcg(in + (i + 2) % n), d = __ldca(in + (i + 3) % n);
  __stcs(out + i, make_float4(a.x + b.x, a.y + c.y, a.z + d.z, b.w - c.w));
}

/// Local arrays indexed at run time, a switch of many cases, function pointers, virtual functions.
struct Shape {
  __device__ virtual float area() const = 0;
};
struct Square : Shape {
  float side;
  __device__ Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Disc : Shape {
  float radius;
  __device__ Disc(float r) : radius(r) {}
  __device__ float area() const override { return 3.f * radius * radius; }
};
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int squared(int x) { return x * x; }
__device__ int (*const kTable[2])(int) = {twice, squared};
extern "C" __global__ void language(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int bins[16] = {};
  for (int k = 0; k < 32; ++k) bins[(in[i] >> k % 7) & 15] += k;
  int value = bins[in[i] & 15] + kTable[in[i] & 1](in[i]);
  switch (in[i] % 11) {
    case 0: value += 17; break;
    case 1: value ^= 0x55; break;
    case 2: value *= 3; break;
    case 3: value -= 1000; break;
    case 4: value = -value; break;
    case 5: value = value << 2 | 1; break;
    case 6: value = ~value; break;
    case 7: value %= 77; break;
    default: value += 1;
  }
  const Square square(in[i] % 5);
  const Disc disc(in[i] % 3);
  const Shape* shapes[2] = {&square, &disc};
  value += static_cast<int>(shapes[in[i] >> 1 & 1]->area());
  out[i] = value;
}

/// Variables of the module that kernels read and write; __constant__ structures; a counter of the last block.
struct Settings {
  float scale;
  int shift[3];
};
__constant__ Settings kSettings = {1.5f, {1, 2, 3}};
__device__ float partial[64];
__device__ unsigned finished = 0;
extern "C" __global__ void module_variables(const float* in, float* out) {
  __shared__ bool last;
  float value = in[blockIdx.x * 32 + threadIdx.x] * kSettings.scale + kSettings.shift[threadIdx.x % 3];
  for (int d = 16; d > 0; d /= 2) value += __shfl_down_sync(~0u, value, d);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = value;
    __threadfence();
    last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  __threadfence();
  float sum = 0;
  for (unsigned k = 0; k < gridDim.x; ++k) sum += *static_cast<volatile float*>(partial + k);
  *out = sum;
}

/// Formats, a passing assertion and an output of blocks in order.
#include <cassert>
#include <cstdio>
extern "C" __global__ void prints(const float* in, int n) {
  assert(n > 0);
  if (threadIdx.x == 0) printf("block %d of %u: %.3f %5d %s %c%%\n", blockIdx.x, gridDim.x, in[blockIdx.x], n, "text", 'x');
}

/// A sum in shared memory by the old volatile idiom of a warp that reads past its half (reduction sample, reduce4).
extern "C" __global__ void sum_of_blocks(const int* in, int* out) {
  __shared__ int data[128];
  const int t = threadIdx.x;
  data[t] = in[blockIdx.x * 128 + t];
  for (int s = 64; s > 32; s /= 2) {
    __syncthreads();
    if (t < s) data[t] += data[t + s];
  }
  __syncthreads();
  if (t < 32) {
    int sum = data[t] + data[t + 32];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (t == 0) out[blockIdx.x] = sum;
  }
}

/// A grid that takes tiles from a queue, and a sum of scattered gathers (sparse rows by a warp each).
extern "C" __global__ void sparse_rows(const int* begins, const int* columns, const float* values, const float* x, float* y, int rows, int* next) {
  const int lane = threadIdx.x & 31;
  for (;;) {
    int row = 0;
    if (lane == 0) row = atomicAdd(next, 1);
    row = __shfl_sync(~0u, row, 0);
    if (row >= rows) return;
    float sum = 0;
    for (int k = begins[row] + lane; k < begins[row + 1]; k += 32) sum += values[k] * x[columns[k]];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) y[row] = sum;
  }
}

/// Which space generic addresses are of; a managed variable.
__device__ __managed__ int managed = 5;
__constant__ int kNumbers[4] = {7, 8, 9, 10};
extern "C" __global__ void spaces(const int* in, int* out) {
  __shared__ int shared[4];
  int local[4] = {1, 2, 3, in[0]};
  if (threadIdx.x < 4) shared[threadIdx.x] = threadIdx.x;
  const void* places[] = {in, shared, local, kNumbers, &managed};
  const void* p = places[threadIdx.x % 5];
  out[threadIdx.x] = __isGlobal(p) + 2 * __isShared(p) + 4 * __isLocal(p) + 8 * __isConstant(p) + 16 * managed;
}

/// Copies of 16 bytes to shared memory, every second of them cut short and filled up with zeros (cuda_pipeline.h).
extern "C" __global__ void cut_copies(const int4* in, int4* out) {
  __shared__ int4 tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], in + threadIdx.x, 16, threadIdx.x & 1 ? 4 : 0);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
/// A histogram over a cluster's shared memories (CUDA C++ Programming Guide, distributed shared memory).
extern "C" __global__ void __cluster_dims__(4) cluster_histogram(const int* in, int* bins, int n) {
  __shared__ int mine[64];
  const cg::cluster_group cluster = cg::this_cluster();
  for (int k = threadIdx.x; k < 64; k += blockDim.x) mine[k] = 0;
  cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const int bin = in[i] & 255;
    atomicAdd(cluster.map_shared_rank(mine, bin / 64) + bin % 64, 1);
  }
  cluster.sync();
  for (int k = threadIdx.x; k < 64; k += blockDim.x) atomicAdd(bins + cluster.block_rank() * 64 + k, mine[k]);
}

/// Sums of a cluster: every block's reaches all by remote stores.
extern "C" __global__ void __cluster_dims__(8) cluster_sums(const float* in, float* out) {
  __shared__ float sums[8], warps[4];
  const cg::cluster_group cluster = cg::this_cluster();
  float sum = in[blockIdx.x * 128 + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  cluster.sync();  // all blocks have started
  if (threadIdx.x < 8) *cluster.map_shared_rank(&sums[cluster.block_rank()], threadIdx.x) = warps[0] + warps[1] + warps[2] + warps[3];
  cluster.sync();
  if (threadIdx.x == 0) {
    float all = 0;
    for (int k = 0; k < 8; ++k) all += sums[k];
    out[blockIdx.x] = all;
  }
}

/// Sums of pairs and fours of floats by one atomic each.
extern "C" __global__ void vector_atomics(float4* fours, float2* pairs) {
  atomicAdd(fours + threadIdx.x % 3, make_float4(1, 2, 3, threadIdx.x));
  atomicAdd(pairs + threadIdx.x % 3, make_float2(.5f, 1));
}

/// A bulk copy in, and a bulk reduction out (cuda::ptx).
extern "C" __global__ void bulk_sums(const int* in, int* out) {
  namespace ptx = cuda::ptx;
  __shared__ alignas(128) int tile[256];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_proxy_async();
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in + blockIdx.x * 256, sizeof tile, &barrier);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, sizeof tile);
  }
  __syncthreads();
  while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
  }
  tile[threadIdx.x] *= 2;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x != 0) return;
  ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, out, tile, sizeof tile);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
}
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 1000
/// Loads and stores of 32 bytes.
extern "C" __global__ void wide_accesses(const int* in, int* out) {
  int v[8];
  asm("ld.global.v8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];"
      : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7])
      : "l"(in + threadIdx.x * 8));
  asm volatile("st.global.v8.b32 [%8], {%0,%1,%2,%3,%4,%5,%6,%7};" ::"r"(v[7]), "r"(v[6]), "r"(v[5]), "r"(v[4]), "r"(v[3]), "r"(v[2]), "r"(v[1]), "r"(v[0]), "l"(out + threadIdx.x * 8));
}
#endif
