// Tensor cores, asynchronous copies, narrow numbers and what later machines have.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cstdint>
#include <cuda/annotated_ptr>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

/// Half-precision softmax of rows by pairs: h2exp, hmax2, conversions of pairs.
extern "C" __global__ void half_softmax(const __half2* in, __half2* out, int pairs) {
  const __half2* row = in + blockIdx.x * pairs;
  __half2 most = __float2half2_rn(-60000.f);
  for (int k = threadIdx.x; k < pairs; k += 32) most = __hmax2(most, row[k]);
  for (int d = 16; d > 0; d /= 2) most = __hmax2(most, __shfl_xor_sync(~0u, most, d));
  const __half greatest = __hmax(__low2half(most), __high2half(most));
  const __half2 both = __half2half2(greatest);
  float sum = 0;
  for (int k = threadIdx.x; k < pairs; k += 32) {
    const float2 e = __half22float2(h2exp(__hsub2(row[k], both)));
    sum += e.x + e.y;
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  for (int k = threadIdx.x; k < pairs; k += 32) out[blockIdx.x * pairs + k] = __hmul2(h2exp(__hsub2(row[k], both)), __float2half2_rn(1 / sum));
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/// Products of tiles of 64 x 64 by three stages of cp.async, ldmatrix (the right side transposed) and mma of halves.
template <int kStages>
__device__ void staged_product(const __half* a, const __half* b, float* c, int n, int k_size) {
  extern __shared__ __align__(16) __half stages[];
  constexpr int kPad = 8, kRow = 32 + kPad, kDown = 64 + kPad;
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5, row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
  __half* left = stages;
  __half* right = stages + kStages * 64 * kRow;
  auto fetch = [&](int tile) {
    if (tile * 32 < k_size) {
      __half *to = left + tile % kStages * 64 * kRow, *down = right + tile % kStages * 32 * kDown;
      for (int p = t; p < 256; p += 128) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to + p / 4 * kRow + p % 4 * 8)), "l"(a + (row0 + p / 4) * k_size + tile * 32 + p % 4 * 8));
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared_address(down + p / 8 * kDown + p % 8 * 8)), "l"(b + (tile * 32 + p / 8) * n + col0 + p % 8 * 8));
      }
    }
    asm volatile("cp.async.commit_group;");
  };
  float sum[8][4] = {};
  for (int s = 0; s < kStages - 1; ++s) fetch(s);
  for (int tile = 0; tile * 32 < k_size; ++tile) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    fetch(tile + kStages - 1);
    const __half *from = left + tile % kStages * 64 * kRow, *down = right + tile % kStages * 32 * kDown;
    for (int k = 0; k < 32; k += 16) {
      unsigned f[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
                   : "r"(shared_address(from + (warp * 16 + lane % 16) * kRow + k + lane / 16 * 8)));
      for (int j = 0; j < 8; ++j) {
        unsigned g[2];
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(g[0]), "=r"(g[1]) : "r"(shared_address(down + (k + lane % 16) * kDown + j * 8)));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
                     : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "r"(g[0]), "r"(g[1]));
      }
    }
  }
  for (int j = 0; j < 8; ++j)
    for (int e = 0; e < 4; ++e) c[(row0 + warp * 16 + lane / 4 + e / 2 * 8) * n + col0 + j * 8 + lane % 4 * 2 + e % 2] = sum[j][e];
}
extern "C" __global__ void three_stages(const __half* a, const __half* b, float* c, int n, int k) { staged_product<3>(a, b, c, n, k); }
extern "C" __global__ void four_stages(const __half* a, const __half* b, float* c, int n, int k) { staged_product<4>(a, b, c, n, k); }

/// One product each of bf16, tf32, bytes, halves that add in halves, doubles, and bits.
extern "C" __global__ void fragments(const float* a, const float* b, float* out) {
  const int lane = threadIdx.x, r = lane / 4, c = lane % 4;
  auto A = [&](int row, int k) { return a[row * 32 + k]; };  // 16 x 32
  auto B = [&](int k, int col) { return b[k * 8 + col]; };   // 32 x 8
  auto U = [&](int k, int col) { return B(k, col) + 125; };  // on both sides of where signed bytes end
  auto put = [&](int what, float v0, float v1, float v2, float v3) {
    float* o = out + what * 128;
    o[r * 8 + c * 2] = v0, o[r * 8 + c * 2 + 1] = v1, o[(r + 8) * 8 + c * 2] = v2, o[(r + 8) * 8 + c * 2 + 1] = v3;
  };
  auto bf = [](float x, float y) { const __nv_bfloat162 v = __floats2bfloat162_rn(x, y); return *reinterpret_cast<const unsigned*>(&v); };
  auto hf = [](float x, float y) { const __half2 v = __floats2half2_rn(x, y); return *reinterpret_cast<const unsigned*>(&v); };
  auto bytes = [](float x, float y, float z, float w) { return (static_cast<int>(x) & 255) | (static_cast<int>(y) & 255) << 8 | (static_cast<int>(z) & 255) << 16 | (static_cast<int>(w) & 255) << 24; };
  float d[4] = {};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(bf(A(r, 2 * c), A(r, 2 * c + 1))), "r"(bf(A(r + 8, 2 * c), A(r + 8, 2 * c + 1))), "r"(bf(A(r, 2 * c + 8), A(r, 2 * c + 9))), "r"(bf(A(r + 8, 2 * c + 8), A(r + 8, 2 * c + 9))),
                 "r"(bf(B(2 * c, r), B(2 * c + 1, r))), "r"(bf(B(2 * c + 8, r), B(2 * c + 9, r))));
  put(0, d[0], d[1], d[2], d[3]);
  float e[4] = {};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3])
               : "r"(__float_as_uint(A(r, c))), "r"(__float_as_uint(A(r + 8, c))), "r"(__float_as_uint(A(r, c + 4))), "r"(__float_as_uint(A(r + 8, c + 4))), "r"(__float_as_uint(B(c, r))), "r"(__float_as_uint(B(c + 4, r))));
  put(1, e[0], e[1], e[2], e[3]);
  int s[4] = {1, 2, 3, 4};
  asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
               : "r"(bytes(A(r, 4 * c), A(r, 4 * c + 1), A(r, 4 * c + 2), A(r, 4 * c + 3))), "r"(bytes(A(r + 8, 4 * c), A(r + 8, 4 * c + 1), A(r + 8, 4 * c + 2), A(r + 8, 4 * c + 3))),
                 "r"(bytes(A(r, 4 * c + 16), A(r, 4 * c + 17), A(r, 4 * c + 18), A(r, 4 * c + 19))), "r"(bytes(A(r + 8, 4 * c + 16), A(r + 8, 4 * c + 17), A(r + 8, 4 * c + 18), A(r + 8, 4 * c + 19))),
                 "r"(bytes(U(4 * c, r), U(4 * c + 1, r), U(4 * c + 2, r), U(4 * c + 3, r))), "r"(bytes(U(4 * c + 16, r), U(4 * c + 17, r), U(4 * c + 18, r), U(4 * c + 19, r))));
  put(2, s[0] - 1, s[1] - 2, s[2] - 3, s[3] - 4);
  unsigned h[2] = {};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
               : "+r"(h[0]), "+r"(h[1])
               : "r"(hf(A(r, 2 * c), A(r, 2 * c + 1))), "r"(hf(A(r + 8, 2 * c), A(r + 8, 2 * c + 1))), "r"(hf(B(2 * c, r), B(2 * c + 1, r))));
  const float2 h0 = __half22float2(*reinterpret_cast<__half2*>(&h[0])), h1 = __half22float2(*reinterpret_cast<__half2*>(&h[1]));
  put(3, h0.x, h0.y, h1.x, h1.y);
  double p[2] = {};
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(p[0]), "+d"(p[1]) : "d"(static_cast<double>(A(r, c))), "d"(static_cast<double>(B(c, r))));
  put(4, p[0], p[1], 0, 0);
}

/// Warp-wide sums by redux, movmatrix, and bf16 in pairs.
extern "C" __global__ void warp_units(const int* in, int* out, const __nv_bfloat162* pairs, __nv_bfloat162* sums) {
  const int lane = threadIdx.x;
  out[lane] = __reduce_add_sync(~0u, in[lane]);
  out[32 + lane] = __reduce_min_sync(0xffffu << (lane & 16), in[lane]);
  out[64 + lane] = __reduce_xor_sync(lane & 1 ? 0xaaaaaaaa : 0x55555555, static_cast<unsigned>(in[lane]));
  unsigned moved;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(moved) : "r"((2 * lane) | (2 * lane + 1) << 16));
  out[96 + lane] = moved;
  sums[lane] = __hfma2(pairs[lane], pairs[31 - lane], __hmax2(pairs[lane], __float2bfloat162_rn(.5f)));
}

/// Warps that only fetch and warps that only add (cuda::pipeline with roles); policies of the cache.
extern "C" __global__ void producers(const int4* in, int4* out, int tiles) {
  constexpr int kStages = 3;
  __shared__ int4 buffers[kStages][32];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const auto block = cg::this_thread_block();
  const bool fetches = threadIdx.x < 32;
  auto pipe = cuda::make_pipeline(block, &state, fetches ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  int4 sum = make_int4(0, 0, 0, 0);
  for (int t = 0; t < tiles; ++t) {
    if (fetches) {
      pipe.producer_acquire();
      cuda::memcpy_async(&buffers[t % kStages][threadIdx.x], in + (blockIdx.x * tiles + t) * 32 + threadIdx.x, cuda::aligned_size_t<16>(16), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      const int4 v = buffers[t % kStages][31 - threadIdx.x % 32];
      sum = make_int4(sum.x + v.x, sum.y ^ v.y, max(sum.z, v.z), sum.w - v.w);
      pipe.consumer_release();
    }
  }
  if (threadIdx.x >= 32 && threadIdx.x < 64) out[blockIdx.x * 32 + threadIdx.x - 32] = sum;
}
extern "C" __global__ void policies(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  cuda::annotated_ptr<const float, cuda::access_property::streaming> once(in);
  cuda::annotated_ptr<float, cuda::access_property::persisting> kept(out);
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(policy));
  float value;
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(value) : "l"(in + (i + 1) % n), "l"(policy));
  kept[i] = once[i] + value;
}

/// Narrow floats of eight bits, both kinds and pairs, with saturation.
extern "C" __global__ void eight_bits(const float* in, unsigned char* codes, float* back) {
  const int i = threadIdx.x;
  codes[4 * i] = __nv_cvt_float_to_fp8(in[i], __NV_SATFINITE, __NV_E4M3);
  codes[4 * i + 1] = __nv_cvt_float_to_fp8(in[i], __NV_SATFINITE, __NV_E5M2);
  const __nv_fp8x2_storage_t pair = __nv_cvt_float2_to_fp8x2(make_float2(in[i], -in[i]), __NV_SATFINITE, __NV_E5M2);
  codes[4 * i + 2] = pair & 255, codes[4 * i + 3] = pair >> 8;
  back[2 * i] = __half2float(__half(__nv_cvt_fp8_to_halfraw(codes[4 * i], __NV_E4M3)));
  back[2 * i + 1] = __half2float(__half(__nv_cvt_fp8_to_halfraw(codes[4 * i + 1], __NV_E5M2)));
}
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
/// A ring of a cluster by mapa, remote mbarriers and split cluster barriers: each block's numbers go on to the next.
extern "C" __global__ void __cluster_dims__(4) cluster_ring(const int* in, int* out) {
  __shared__ int mine[64];
  __shared__ uint64_t full;
  unsigned rank, there, there_full;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const unsigned here = shared_address(mine), bar = shared_address(&full);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(bar));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"((rank + 1) % 4));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there_full) : "r"(bar), "r"((rank + 1) % 4));
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there + 4 * threadIdx.x), "r"(in[blockIdx.x * 64 + threadIdx.x]) : "memory");
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there_full) : "memory");
  asm volatile("{\n.reg .pred p;\nL%=:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n@!p bra L%=;\n}" ::"r"(bar) : "memory");
  out[blockIdx.x * 64 + threadIdx.x] = mine[63 - threadIdx.x];
  asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}

/// Stores that count on a remote mbarrier (st.async), then a bulk copy within the cluster.
extern "C" __global__ void __cluster_dims__(2) async_stores(const int* in, int* out) {
  __shared__ alignas(16) int box[64];
  __shared__ uint64_t full;
  unsigned rank, there, there_full;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const unsigned bar = shared_address(&full);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(bar) : "memory");
  }
  cg::this_cluster().sync();
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(box)), "r"(rank ^ 1));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there_full) : "r"(bar), "r"(rank ^ 1));
  const int i = threadIdx.x;
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(there + 8 * i), "r"(in[blockIdx.x * 64 + 2 * i]), "r"(in[blockIdx.x * 64 + 2 * i + 1]), "r"(there_full) : "memory");
  asm volatile("{\n.reg .pred p;\nL%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra L%=;\n}" ::"r"(bar) : "memory");
  out[blockIdx.x * 64 + i] = box[2 * i] * box[2 * i + 1];
  out[blockIdx.x * 64 + 32 + i] = box[2 * i] + box[63 - 2 * i];
  cg::this_cluster().sync();
}

/// stmatrix, elect.sync, dependent launches, a 128-bit compare and swap.
extern "C" __global__ void hopper_bits(int* out, unsigned __int128* wide) {
  __shared__ alignas(16) unsigned tile[4 * 32];
  const int lane = threadIdx.x;
  asm volatile("griddepcontrol.wait;" ::: "memory");
  unsigned elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(elected));
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(tile + lane * 4)), "r"(lane), "r"(lane + 100), "r"(lane + 200), "r"(lane + 300) : "memory");
  __syncwarp();
  for (int k = 0; k < 4; ++k) out[k * 32 + lane] = tile[k * 32 + lane];
  out[128 + lane] = __reduce_add_sync(~0u, elected);
  unsigned __int128 old = 0, was;
  while ((was = atomicCAS(wide, old, old + (static_cast<unsigned __int128>(1) << 64) + 3)) != old) old = was;
  asm volatile("griddepcontrol.launch_dependents;");
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/// wgmma of bf16 (the left side in registers or shared memory), tf32 and bytes, of tiles without swizzle.
__device__ void hold(float (&v)[4]) { asm volatile("" : "+f"(v[0]), "+f"(v[1]), "+f"(v[2]), "+f"(v[3])::"memory"); }  // sets accumulators before the fence
__device__ void hold(int (&v)[4]) { asm volatile("" : "+r"(v[0]), "+r"(v[1]), "+r"(v[2]), "+r"(v[3])::"memory"); }
template <class T>
__device__ void fill(T* tile, const float* from, int rows, int columns) {  // core matrices of 8 rows by 16 bytes, K first
  constexpr int kWide = 16 / sizeof(T);
  for (int p = threadIdx.x; p < rows * columns; p += 128) {
    const int r = p / columns, c = p % columns;
    const int core = r / 8 * (columns / kWide) + c / kWide;
    tile[core * 8 * kWide + r % 8 * kWide + c % kWide] = static_cast<T>(from[p]);
  }
}
__device__ unsigned long long descriptor(const void* tile, int row_bytes) {  // leading: 128 bytes to the next core along K; stride: to the next 8 rows
  const unsigned long long at = shared_address(tile);
  return (at & 0x3ffff) >> 4 | 8ull << 16 | static_cast<unsigned long long>(row_bytes * 8 >> 4) << 32;
}
extern "C" __global__ void __launch_bounds__(128) warpgroup_products(const float* a, const float* b, float* out) {  // a 64 x 32, b 8 x 32
  __shared__ alignas(128) char left[64 * 32 * 4], right[8 * 32 * 4];
  const int t = threadIdx.x;
  auto put = [&](int what, float v0, float v1, float v2, float v3) {
    float* o = out + what * 512 + (t / 32 * 16 + t % 32 / 4) * 8 + t % 4 * 2;
    o[0] = v0, o[1] = v1, o[64] = v2, o[65] = v3;
  };
  auto begin = [] { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads(); asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); };
  auto end = [] { asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;" ::: "memory"); };
  float d[4] = {};
  hold(d);
  fill(reinterpret_cast<__nv_bfloat16*>(left), a, 64, 32);
  fill(reinterpret_cast<__nv_bfloat16*>(right), b, 8, 32);
  begin();
  for (int k = 0; k < 2; ++k)
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, -1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "l"(descriptor(left + k * 256, 64)), "l"(descriptor(right + k * 256, 64)));
  end();
  put(0, d[0], d[1], d[2], d[3]);
  float e[4];
  unsigned f[4];
  const int r = t / 32 * 16 + t % 32 / 4, c = t % 4 * 2;
  for (int k = 0; k < 4; ++k) {
    const float* p = a + (r + k % 2 * 8) * 32 + c + k / 2 * 8;
    const __nv_bfloat162 pair = __floats2bfloat162_rn(p[0], p[1]);
    f[k] = *reinterpret_cast<const unsigned*>(&pair);
  }
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 0, 1, 1, 0;"
               : "=f"(e[0]), "=f"(e[1]), "=f"(e[2]), "=f"(e[3])
               : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "l"(descriptor(right, 64)));
  end();
  put(1, e[0], e[1], e[2], e[3]);
  __syncthreads();
  float g[4] = {};
  hold(g);
  fill(reinterpret_cast<float*>(left), a, 64, 32);
  fill(reinterpret_cast<float*>(right), b, 8, 32);
  begin();
  for (int k = 0; k < 4; ++k)
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0, %1, %2, %3}, %4, %5, 1, -1, 1;"
                 : "+f"(g[0]), "+f"(g[1]), "+f"(g[2]), "+f"(g[3])
                 : "l"(descriptor(left + k * 256, 128)), "l"(descriptor(right + k * 256, 128)));
  end();
  put(2, g[0], g[1], g[2], g[3]);
  __syncthreads();
  int s[4] = {};
  hold(s);
  fill(reinterpret_cast<signed char*>(left), a, 64, 32);
  fill(reinterpret_cast<signed char*>(right), b, 8, 32);
  begin();
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%0, %1, %2, %3}, %4, %5, 1;"
               : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
               : "l"(descriptor(left, 32)), "l"(descriptor(right, 32)));
  end();
  put(3, s[0], s[1], s[2], s[3]);
}
#endif
