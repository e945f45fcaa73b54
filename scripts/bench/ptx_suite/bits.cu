// Bit tricks, packed and narrow types.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

__device__ unsigned bits_of(float x) { return __float_as_uint(x); }

/// bfe, bfi, brev, clz, ffs, popc, prmt, lop3, shf, fns, sad: 16 words a thread.
extern "C" __global__ void bit_tricks(const unsigned* a, const unsigned* b, unsigned* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned x = a[i], y = b[i];
  unsigned* mine = out + 16 * i;
  unsigned field, inserted, table;
  int signed_field;
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(field) : "r"(x), "r"(y & 31), "r"(y >> 8 & 31));
  asm("bfe.s32 %0, %1, 5, 9;" : "=r"(signed_field) : "r"(x));
  asm("bfi.b32 %0, %1, %2, %3, 7;" : "=r"(inserted) : "r"(x), "r"(y), "r"(x & 31));
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(table) : "r"(x), "r"(y), "r"(x >> 3));
  mine[0] = field;
  mine[1] = signed_field;
  mine[2] = inserted;
  mine[3] = table;
  mine[4] = __brev(x);
  mine[5] = __clz(x);
  mine[6] = __ffs(x);
  mine[7] = __popc(x & y);
  mine[8] = __byte_perm(x, y, 0x5140);
  mine[9] = __funnelshift_l(x, y, x & 31);
  mine[10] = __funnelshift_rc(x, y, y & 63);
  mine[11] = __fns(x, 0, (y & 7) + 1);
  mine[12] = __usad(x, y, 5);
  mine[13] = __umulhi(x, y) + __mulhi(x, y);
  mine[14] = __mul24(x, y) + __umul24(x, y);
  mine[15] = __rhadd(static_cast<int>(x), static_cast<int>(y)) ^ __uhadd(x, y);
}

/// 64-bit forms of the same, and rotations.
extern "C" __global__ void bit_tricks_64(const unsigned long long* a, unsigned long long* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned long long x = a[i];
  unsigned long long* mine = out + 8 * i;
  mine[0] = __brevll(x);
  mine[1] = __clzll(x);
  mine[2] = __ffsll(x);
  mine[3] = __popcll(x);
  mine[4] = x << (x & 63) | x >> (-x & 63);
  asm("bfe.u64 %0, %1, 7, 33;" : "=l"(mine[5]) : "l"(x));
  asm("bfi.b64 %0, %1, %2, 11, 20;" : "=l"(mine[6]) : "l"(x), "l"(~x));
  mine[7] = __double_as_longlong(__longlong_as_double((x & 0x000fffffffffffffull) | 0x3ff0000000000000ull) * 1.5);
}

/// SIMD within a word.
extern "C" __global__ void packed_bytes(const unsigned* a, const unsigned* b, unsigned* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned x = a[i], y = b[i];
  unsigned* mine = out + 12 * i;
  mine[0] = __vadd4(x, y);
  mine[1] = __vsubus4(x, y);
  mine[2] = __vaddss4(x, y);
  mine[3] = __vabsdiffu4(x, y);
  mine[4] = __vmaxs4(x, y);
  mine[5] = __vcmpgtu4(x, y);
  mine[6] = __vavgu4(x, y);
  mine[7] = __vsadu4(x, y);
  mine[8] = __vadd2(x, y);
  mine[9] = __vmins2(x, y);
  mine[10] = __viaddmax_s32_relu(x, y, 17);
  mine[11] = __vimax3_s16x2(x, y, 0x00050005);
}

/// dp4a and dp2a.
extern "C" __global__ void dot_products(const int* a, const int* b, int* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  out[4 * i] = __dp4a(a[i], b[i], 7);
  out[4 * i + 1] = __dp4a(static_cast<unsigned>(a[i]), static_cast<unsigned>(b[i]), 7u);
  out[4 * i + 2] = __dp2a_lo(a[i], b[i], -3);
  out[4 * i + 3] = __dp2a_hi(a[i], b[i], -3);
}

/// CRC-32 of 64 bytes a thread, table in shared memory.
extern "C" __global__ void crc32(const unsigned char* data, unsigned* out) {
  __shared__ unsigned table[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x) {
    unsigned c = k;
    for (int j = 0; j < 8; ++j) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    table[k] = c;
  }
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned c = ~0u;
  for (int k = 0; k < 64; ++k) c = table[(c ^ data[i * 64 + k]) & 255] ^ (c >> 8);
  out[i] = ~c;
}

/// SHA-256 of one block of 64 bytes a thread, without padding; the schedule is in local memory or registers.
__constant__ unsigned kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
extern "C" __global__ void sha256(const unsigned* data, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned w[64];
  for (int k = 0; k < 16; ++k) w[k] = __byte_perm(data[i * 16 + k], 0, 0x0123);
  auto turn = [](unsigned x, int n) { return __funnelshift_r(x, x, n); };
  for (int k = 16; k < 64; ++k)
    w[k] = w[k - 16] + w[k - 7] + (turn(w[k - 15], 7) ^ turn(w[k - 15], 18) ^ w[k - 15] >> 3) + (turn(w[k - 2], 17) ^ turn(w[k - 2], 19) ^ w[k - 2] >> 10);
  unsigned h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, s[8];
  for (int k = 0; k < 8; ++k) s[k] = h[k];
#pragma unroll 1
  for (int k = 0; k < 64; ++k) {
    const unsigned t1 = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[k] + w[k];
    const unsigned t2 = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    for (int j = 7; j > 0; --j) s[j] = s[j - 1];
    s[4] += t1;
    s[0] = t1 + t2;
  }
  for (int k = 0; k < 8; ++k) out[i * 8 + k] = h[k] + s[k];
}

/// Halves: arithmetic, comparisons, conversions; the results as halves.
extern "C" __global__ void half_arithmetic(const __half2* a, const __half2* b, __half2* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const __half2 x = a[i], y = b[i];
  __half2* mine = out + 8 * i;
  mine[0] = __hfma2(x, y, x);
  mine[1] = __hmax2(x, y);
  mine[2] = __hsub2_sat(x, y);
  mine[3] = h2exp(x);
  mine[4] = __hgt2(x, y);
  mine[5] = __h2div(x, y);
  mine[6] = __lowhigh2highlow(__hadd2(x, __habs2(y)));
  mine[7] = __halves2half2(__hfma_relu(x.x, y.x, y.y), hsqrt(__habs(x.y)));
}

/// fp8: to e4m3 and e5m2 and back.
extern "C" __global__ void fp8_round_trip(const float* in, float* out, unsigned char* codes, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const __nv_fp8_e4m3 a(in[i]);
  const __nv_fp8_e5m2 b(in[i]);
  out[2 * i] = static_cast<float>(a);
  out[2 * i + 1] = static_cast<float>(b);
  codes[2 * i] = a.__x;
  codes[2 * i + 1] = b.__x;
}

/// Atomics on halves, pairs of halves and bf16, which are loops of the header where a target has none.
extern "C" __global__ void narrow_atomics(const int* bins, __half2* pairs, __half* halves, __nv_bfloat16* bfloats, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  atomicAdd(pairs + bins[i], __floats2half2_rn(1.f, .5f));
  atomicAdd(halves + bins[i], __float2half(2.f));
  atomicAdd(bfloats + bins[i], __float2bfloat16(1.f));
}

/// A product of signed 8-bit matrices by wmma, tiles of 16 x 16 x 16 (cudaTensorCoreGemm).
extern "C" __global__ void wmma_int8(const signed char* a, const signed char* b, int* c, int n, int k) {
  using namespace nvcuda::wmma;
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  fragment<accumulator, 16, 16, 16, int> sum;
  fill_fragment(sum, 0);
  for (int at = 0; at < k; at += 16) {
    fragment<matrix_a, 16, 16, 16, signed char, row_major> left;
    fragment<matrix_b, 16, 16, 16, signed char, col_major> right;
    load_matrix_sync(left, a + row * k + at, k);
    load_matrix_sync(right, b + column * k + at, k);
    mma_sync(sum, left, right, sum);
  }
  for (int e = 0; e < sum.num_elements; ++e) sum.x[e] *= 2;
  store_matrix_sync(c + row * n + column, sum, n, mem_row_major);
}

/// Products of halves by wmma with float sums, of bf16 where there are.
extern "C" __global__ void wmma_half(const __half* a, const __half* b, float* c, int n, int k) {
  using namespace nvcuda::wmma;
  __shared__ __half tiles[2][16][24];
  const int row = blockIdx.y * 16, column = blockIdx.x * 16, lane = threadIdx.x;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.f);
  for (int at = 0; at < k; at += 16) {
    for (int e = lane; e < 256; e += 32) {
      tiles[0][e / 16][e % 16] = a[(row + e / 16) * k + at + e % 16];
      tiles[1][e / 16][e % 16] = b[(at + e / 16) * n + column + e % 16];
    }
    __syncwarp();
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, row_major> right;
    load_matrix_sync(left, &tiles[0][0][0], 24);
    load_matrix_sync(right, &tiles[1][0][0], 24);
    mma_sync(sum, left, right, sum);
    __syncwarp();
  }
  store_matrix_sync(c + row * n + column, sum, n, mem_row_major);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/// bf16 likewise.
extern "C" __global__ void bfloat_arithmetic(const __nv_bfloat162* a, const __nv_bfloat162* b, __nv_bfloat162* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const __nv_bfloat162 x = a[i], y = b[i];
  __nv_bfloat162* mine = out + 4 * i;
  mine[0] = __hfma2(x, y, x);
  mine[1] = __hmin2(x, y);
  mine[2] = __float22bfloat162_rn(make_float2(__low2float(x) * 1.7f, __high2float(y) / 3.f));
  mine[3] = __hmul2(__habs2(x), y);
}

/// Signed 4-bit matrices by mma of 16 x 8 x 64, a warp.
extern "C" __global__ void mma_int4(const unsigned* a, const unsigned* b, int* c) {
  const int lane = threadIdx.x, group = lane / 4, part = lane % 4;
  int d[4] = {};
  asm volatile("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[group * 8 + part]), "r"(a[(group + 8) * 8 + part]), "r"(a[group * 8 + part + 4]), "r"(a[(group + 8) * 8 + part + 4]), "r"(b[group * 8 + part]), "r"(b[group * 8 + part + 4]));
  c[group * 8 + 2 * part] = d[0];
  c[group * 8 + 2 * part + 1] = d[1];
  c[(group + 8) * 8 + 2 * part] = d[2];
  c[(group + 8) * 8 + 2 * part + 1] = d[3];
}

/// tf32 products by wmma.
extern "C" __global__ void wmma_tf32(const float* a, const float* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> left;
  fragment<matrix_b, 16, 16, 8, precision::tf32, col_major> right;
  fragment<accumulator, 16, 16, 8, float> sum;
  load_matrix_sync(left, a, 8);
  load_matrix_sync(right, b, 8);
  for (int e = 0; e < left.num_elements; ++e) left.x[e] = __float_to_tf32(left.x[e]);
  for (int e = 0; e < right.num_elements; ++e) right.x[e] = __float_to_tf32(right.x[e]);
  fill_fragment(sum, 1.f);
  mma_sync(sum, left, right, sum);
  store_matrix_sync(c, sum, 16, mem_row_major);
}
#endif
