// Sources of the PTX files beside this one, compiled once so that the tests need no compiler:
//   nvcc -ptx -lineinfo -arch=sm_75 -DKERNEL_NAME kernels.cu -o NAME.ptx
// tiled_gemm.ptx comes from ../cuda/tiled_gemm.cu in the same way.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef KERNEL_vecadd
extern "C" __global__ void vecadd(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
#endif

#ifdef KERNEL_copy
extern "C" __global__ void copy(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}
extern "C" __global__ void copy4(const float4* x, float4* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}
extern "C" __global__ void strided(const float* x, float* y, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i * stride];
}
#endif

#ifdef KERNEL_softmax
template <class F>
__device__ float block_reduce(float v, float identity, F f, float* scratch) {
  for (int offset = 16; offset; offset >>= 1) v = f(v, __shfl_xor_sync(~0u, v, offset));
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? scratch[threadIdx.x] : identity;
    for (int offset = 16; offset; offset >>= 1) v = f(v, __shfl_xor_sync(~0u, v, offset));
    if (threadIdx.x == 0) scratch[0] = v;
  }
  __syncthreads();
  v = scratch[0];
  __syncthreads();
  return v;
}
extern "C" __global__ void __launch_bounds__(256) softmax(const float* __restrict__ x, float* __restrict__ y,
                                                          int columns) {
  __shared__ float scratch[32];
  const float* row = x + (long long)blockIdx.x * columns;
  float m = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < columns; i += 256) m = fmaxf(m, row[i]);
  m = block_reduce(m, -INFINITY, [](float a, float b) { return fmaxf(a, b); }, scratch);
  for (int i = threadIdx.x; i < columns; i += 256) sum += expf(row[i] - m);
  sum = block_reduce(sum, 0, [](float a, float b) { return a + b; }, scratch);
  for (int i = threadIdx.x; i < columns; i += 256) {
    y[(long long)blockIdx.x * columns + i] = expf(row[i] - m) / sum;
  }
}
#endif

#ifdef KERNEL_reduce
// Sums n floats a block in dynamic shared memory, then adds the block sums by an atomic.
extern "C" __global__ void reduce(const float* x, float* total, int n) {
  extern __shared__ float scratch[];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half >= 32; half >>= 1) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    sum = scratch[threadIdx.x];
    for (int offset = 16; offset; offset >>= 1) sum += __shfl_down_sync(~0u, sum, offset);
    if (threadIdx.x == 0) atomicAdd(total, sum);
  }
}
extern "C" __global__ void count_positive(const float* x, unsigned* counts) {
  int here = __syncthreads_count(x[blockIdx.x * blockDim.x + threadIdx.x] > 0);
  unsigned votes = __ballot_sync(~0u, x[blockIdx.x * blockDim.x + threadIdx.x] > 0);
  if (threadIdx.x == 0) counts[2 * blockIdx.x] = here;
  if (threadIdx.x == 0) counts[2 * blockIdx.x + 1] = __popc(votes);
}
#endif

#ifdef KERNEL_grid_barrier
__device__ void grid_barrier(unsigned long long* counter) {
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned long long step = blockIdx.x == 0 ? (1ull << 63) - (gridDim.x - 1) : 1;
    __threadfence();
    unsigned long long old = atomicAdd(counter, step), now;
    do {
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(counter) : "memory");
      __nanosleep(32);
    } while (((now ^ old) >> 63) == 0);
    __threadfence();
  }
  __syncthreads();
}
// Doubles x, then reverses it into y, then adds neighbours into z: two grid barriers.
extern "C" __global__ void phases(unsigned long long* counter, float* x, float* y, float* z, int n) {
  int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  for (int i = first; i < n; i += stride) x[i] *= 2;
  grid_barrier(counter);
  for (int i = first; i < n; i += stride) y[i] = x[n - 1 - i];
  grid_barrier(counter);
  for (int i = first; i < n; i += stride) z[i] = y[i] + y[(i + 1) % n];
}
#endif

#ifdef KERNEL_divergent
// Collatz steps: every lane leaves its loop at another time, and both sides of the branch are taken.
extern "C" __global__ void collatz(const unsigned* x, unsigned* steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i], n = 0;
  while (v != 1) {
    if (v & 1) v = 3 * v + 1;
    else v >>= 1;
    ++n;
  }
  steps[i] = n;
}
extern "C" __global__ void early_exit(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int r;
  switch (x[i] % 5) {
    case 0: r = 1; break;
    case 1: r = x[i] * 3; break;
    case 2: if (x[i] > 50) return; r = -1;
    case 3: r = x[i] - 7; break;
    default: for (r = 0; r * r < x[i]; ++r) {}
  }
  y[i] = r;
}
#endif

#ifdef KERNEL_math
__constant__ float table[4] = {1, 2, 3, 4};
extern "C" __global__ void math(const float* x, float* y, int n) {
  int i = threadIdx.x;
  float v = x[i];
  y[0 * n + i] = expf(v);
  y[1 * n + i] = tanhf(v);
  y[2 * n + i] = powf(fabsf(v), 1.7f);
  y[3 * n + i] = logf(fabsf(v));
  y[4 * n + i] = erff(v);
  y[5 * n + i] = sinf(v);
  y[6 * n + i] = rsqrtf(fabsf(v));
  y[7 * n + i] = sqrtf(fabsf(v)) + table[i & 3];
  y[8 * n + i] = log1pf(fabsf(v));
  y[9 * n + i] = expm1f(v);
  y[10 * n + i] = cbrtf(v);
  y[11 * n + i] = atan2f(v, 0.3f);
  y[12 * n + i] = copysignf(2.5f, v) / (1.0f + expf(-v));
  y[13 * n + i] = (float)exp((double)v);
  y[14 * n + i] = fmodf(v, 0.7f);
  y[15 * n + i] = cosf(v * 1000.0f);
}
#endif

#ifdef KERNEL_half
extern "C" __global__ void half_ops(const __half2* a, __half* exponentials, __half2* squares,
                                    __nv_bfloat16* scaled, __half2* total) {
  int i = threadIdx.x;
  __half2 v = a[i];
  exponentials[i] = hexp(v.x) + v.y;
  squares[i] = __hfma2(v, v, v);
  scaled[i] = __float2bfloat16(__half2float(v.x)) * __float2bfloat16(1.5f);
  atomicAdd(total, v);
}
#endif

#ifdef KERNEL_faults
extern "C" __global__ void overrun(float* x, int n) { x[blockIdx.x * blockDim.x + threadIdx.x + n] = 1; }
extern "C" __global__ void misaligned(char* x) { *(float*)(x + threadIdx.x * 4 + 2) = 1; }
extern "C" __global__ void null_read(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void divergent_barrier(float* x) {
  if (threadIdx.x < 16) {
    x[threadIdx.x] = 1;
    asm volatile("bar.sync 0;" ::: "memory");
  } else {
    x[threadIdx.x] = 2;
  }
  x[threadIdx.x] += 1;
}
extern "C" __global__ void mismatched_barrier(float* x) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
  else asm volatile("bar.sync 2, 64;" ::: "memory");
  x[threadIdx.x] = 1;
}
extern "C" __global__ void spin(volatile int* flag, int* x) {
  while (*flag == 0) {}
  x[threadIdx.x] = 1;
}
extern "C" __global__ void spin_on_register(int* x, int n) {
  int v = x[0];
  while (v != n) v = v * 3 + 2;
  x[1] = v;
}
extern "C" __global__ void shared_overrun(float* x) {
  __shared__ float s[32];
  s[threadIdx.x + (int)x[0]] = 1;
  __syncthreads();
  x[threadIdx.x] = s[31 - threadIdx.x];
}
// Warp 1 hands a value to warp 0 through shared memory: the warps of a block must make progress separately.
extern "C" __global__ void warp_handoff(int* x) {
  __shared__ volatile int ready;
  __shared__ int value;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) {
      while (ready == 0) {}
      x[0] = value;
    }
  } else if (threadIdx.x == 32) {
    value = 42;
    __threadfence_block();
    ready = 1;
  }
}
#endif

#ifdef KERNEL_gather
extern "C" __global__ void gather(const float* x, const int* index, float* y, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, at = (index[i] + i * 40503) & 0xfffff;
  float sum = 0;
#pragma unroll 4
  for (int r = 0; r < rounds; ++r) {
    sum += x[at];
    at = (at * 1664525 + 1013904223) & 0xfffff;
  }
  y[i] = sum;
}
#endif
