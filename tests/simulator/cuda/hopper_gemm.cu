// C = A B^T of halves, as libraries write it for Hopper: a warp that fetches tiles by tensor maps, two
// warpgroups that multiply them by wgmma, and mbarriers between them. For sm_90a.
#include <cuda_fp16.h>

struct alignas(64) TensorMap {
  unsigned long long words[16];
};

constexpr int kTileM = 128, kTileN = 128, kTileK = 64, kStages = 3, kConsumers = 2;
constexpr int kTileBytes = kTileM * kTileK * 2;

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ void barrier_init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count));
}
__device__ void barrier_expect(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ void barrier_arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ void barrier_wait(unsigned bar, unsigned parity) {
  asm volatile(
      "{\n.reg .pred p;\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra "
      "WAIT;\nDONE:\n}" ::"r"(bar),
      "r"(parity)
      : "memory");
}
__device__ void fetch(unsigned to, const TensorMap& map, int column, int row, unsigned bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(bar)
      : "memory");
}
/// K-major, rows of 128 bytes, swizzled: eight rows are 1024 bytes.
__device__ unsigned long long descriptor(unsigned address) {
  return (1ull << 62) | (64ull << 32) | (1ull << 16) | ((address & 0x3ffff) >> 4);
}
__device__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b, int adds) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, 0, 0;\n}"
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
      : D16(0), D16(16), D16(32), D16(48)
      : "l"(a), "l"(b), "r"(adds));
}

extern "C" __global__ void __launch_bounds__((kConsumers + 1) * 128)
    hopper_gemm(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, float* c,
                int n, int k) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  __shared__ alignas(8) unsigned long long barriers[2 * kStages];
  const int warpgroup = threadIdx.x / 128;
  const int row = blockIdx.y * kTileM, column = blockIdx.x * kTileN, steps = k / kTileK;
  const auto a_tile = [&](int s) { return shared_address(tiles) + s * kTileBytes; };
  const auto b_tile = [&](int s) { return shared_address(tiles) + (kStages + s) * kTileBytes; };
  const auto full = [&](int s) { return shared_address(barriers + s); };
  const auto empty = [&](int s) { return shared_address(barriers + kStages + s); };
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      barrier_init(full(s), 1);
      barrier_init(empty(s), kConsumers);  // one thread of each warpgroup
    }
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("prefetch.tensormap [%0];\nprefetch.tensormap [%1];" ::"l"(&a_map), "l"(&b_map));
  }
  __syncthreads();
  if (warpgroup == kConsumers) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x % 128 != 0) return;
    for (int t = 0; t < steps; ++t) {
      const int s = t % kStages;
      if (t >= kStages) barrier_wait(empty(s), (t / kStages - 1) & 1);
      barrier_expect(full(s), 2 * kTileBytes);
      fetch(a_tile(s), a_map, t * kTileK, row, full(s));
      fetch(b_tile(s), b_map, t * kTileK, column, full(s));
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float d[64];
  for (int t = 0; t < steps; ++t) {
    const int s = t % kStages;
    barrier_wait(full(s), t / kStages & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int j = 0; j < kTileK / 16; ++j)
      multiply(d, descriptor(a_tile(s) + warpgroup * 64 * 128 + j * 32), descriptor(b_tile(s) + j * 32),
               t + j);
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (threadIdx.x % 128 == 0) barrier_arrive(empty(s));
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
  float* const out = c + (row + warpgroup * 64 + warp * 16 + lane / 4) * (long long)n + column + lane % 4 * 2;
  for (int j = 0; j < 16; ++j)
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float2*>(out + half * 8 * n + 8 * j) =
          make_float2(d[4 * j + 2 * half], d[4 * j + 2 * half + 1]);
}
