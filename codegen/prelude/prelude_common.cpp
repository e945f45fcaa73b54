#include "codegen/prelude/prelude.h"

namespace stitchwork {

std::string_view prelude_common() {
  return R"cuda(#ifndef SW_FN
#define SW_FN static __device__ __forceinline__
#endif

// Bits and storage formats.
SW_FN unsigned sw_bits(float v) { union { float f; unsigned u; } b; b.f = v; return b.u; }
SW_FN float sw_float(unsigned v) { union { float f; unsigned u; } b; b.u = v; return b.f; }
SW_FN unsigned long long sw_bits(double v) { union { double f; unsigned long long u; } b; b.f = v; return b.u; }
SW_FN double sw_double(unsigned long long v) { union { double f; unsigned long long u; } b; b.u = v; return b.f; }
template <class To, class From> SW_FN To sw_bitcast(From v) { union { From from; To to; } b; b.from = v; return b.to; }
SW_FN float sw_f16(unsigned short v) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v)); return r; }
SW_FN unsigned short sw_to_f16(float v) { unsigned short r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v)); return r; }
// The same with the sign and the payload of NaN, which the instructions replace.
SW_FN float sw_f16_and_nan(unsigned short v) {
  const unsigned sign = (v & 0x8000u) << 16, magnitude = v & 0x7fffu;
  return magnitude > 0x7c00u ? sw_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13) : sw_f16(v);
}
SW_FN unsigned short sw_to_f16_and_nan(float v) {
  const unsigned sign = sw_bits(v) >> 16 & 0x8000u, payload = sw_bits(v) >> 13 & 0x3ffu;
  return v != v ? (unsigned short)(sign | 0x7c00u | (payload == 0 ? 0x200u : payload)) : sw_to_f16(v);
}
SW_FN float sw_bf16(unsigned short v) { return sw_float((unsigned)v << 16); }
SW_FN float sw_bf16_alone(unsigned short v) {  // of a register of 16 bits
  float r;
  asm("mov.b32 %0, {%1, %2};" : "=f"(r) : "h"((unsigned short)0), "h"(v));
  return r;
}
SW_FN unsigned short sw_bf16_bits(float v) { return (unsigned short)(sw_bits(v) >> 16); }  // of a bf16 value
#if __CUDA_ARCH__ >= 800
SW_FN unsigned short sw_to_bf16(float v) { unsigned short r; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v)); return r; }
#else
SW_FN unsigned short sw_to_bf16(float v) {  // to nearest even
  const unsigned u = sw_bits(v);
  return v != v ? (unsigned short)((u >> 16) | 0x40) : (unsigned short)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
#endif
SW_FN float sw_round_f16(float v) { return sw_f16(sw_to_f16(v)); }
SW_FN float sw_round_bf16(float v) { return sw_bf16(sw_to_bf16(v)); }
// Bits of a float of kExponent and kMantissa bits, rounded to fewer: nearest even, overflow to infinity; with fewer
// exponent bits, what is below the smallest normal number becomes zero. NaN stays.
template <int kExponent, int kMantissa, class U>
SW_FN U sw_reduce_precision(U bits, int exponent_bits, int mantissa_bits) {
  const U sign = (U)((U)1 << (kExponent + kMantissa)), infinity = (U)((((U)1 << kExponent) - 1) << kMantissa);
  U magnitude = (U)(bits & (U)(sign - 1));
  if (magnitude > infinity) return bits;
  if (mantissa_bits < kMantissa) {
    const int cut = kMantissa - mantissa_bits;
    magnitude = (U)((magnitude + ((U)1 << (cut - 1)) - 1 + ((magnitude >> cut) & 1)) >> cut << cut);
  }
  if (exponent_bits < kExponent) {
    const int bias = (1 << (kExponent - 1)) - 1, reduced = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (int)(magnitude >> kMantissa);
    if (exponent > bias + reduced) magnitude = infinity;
    if (exponent <= bias - reduced) magnitude = 0;
  }
  return (U)((bits & sign) | magnitude);
}
// An integer that orders floats as -NaN < -infinity < ... < -0 < +0 < ... < infinity < NaN.
SW_FN int sw_total_order(float v) {
  const int bits = (int)sw_bits(v);
  return bits ^ (int)((unsigned)(bits >> 31) >> 1);
}
SW_FN long long sw_total_order(double v) {
  const long long bits = (long long)sw_bits(v);
  return bits ^ (long long)((unsigned long long)(bits >> 63) >> 1);
}

// Index arithmetic: quotient and remainder of what is known to be non-negative, and with floor.
SW_FN int sw_quotient(int a, int b) { return (int)((unsigned)a / (unsigned)b); }
SW_FN int sw_remainder(int a, int b) { return (int)((unsigned)a % (unsigned)b); }
SW_FN long long sw_quotient(long long a, long long b) { return (long long)((unsigned long long)a / (unsigned long long)b); }
SW_FN long long sw_remainder(long long a, long long b) { return (long long)((unsigned long long)a % (unsigned long long)b); }
template <class I> SW_FN I sw_floor_quotient(I a, I b) { return a / b - (a % b < 0 ? 1 : 0); }
template <class I> SW_FN I sw_floor_remainder(I a, I b) { return a % b + (a % b < 0 ? b : 0); }

// Properties of the integer types.
template <class T> struct SwInt;
#define SW_INT(T, S, U, bits_, low, high) \
  template <> struct SwInt<T> { typedef S Signed; typedef U Unsigned; static const int kBits = bits_; \
    SW_FN T lowest() { return (T)(low); } SW_FN T highest() { return (T)(high); } };
SW_INT(bool, signed char, unsigned char, 1, 0, 1)
SW_INT(signed char, signed char, unsigned char, 8, -128, 127)
SW_INT(unsigned char, signed char, unsigned char, 8, 0, 255)
SW_INT(short, short, unsigned short, 16, -32768, 32767)
SW_INT(unsigned short, short, unsigned short, 16, 0, 65535)
SW_INT(int, int, unsigned, 32, (-2147483647 - 1), 2147483647)
SW_INT(unsigned, int, unsigned, 32, 0, 4294967295u)
SW_INT(long long, long long, unsigned long long, 64, (-9223372036854775807LL - 1), 9223372036854775807LL)
SW_INT(unsigned long long, long long, unsigned long long, 64, 0, 18446744073709551615ull)

// Conversions from floating point saturate; NaN becomes 0.
template <class T, class F> SW_FN T sw_to_int(F v) {
  if (v != v) return (T)0;
  if (v <= (F)SwInt<T>::lowest()) return SwInt<T>::lowest();
  if (v >= (F)SwInt<T>::highest()) return SwInt<T>::highest();
  return (T)v;
}
template <class I, class T> SW_FN I sw_clamp_index(T v, I low, I high) {  // 0 <= low
  if (v < (T)0) return low;
  const unsigned long long u = (unsigned long long)v;
  return u < (unsigned long long)low ? low : (u > (unsigned long long)high ? high : (I)u);
}

// HLO's integer semantics where C's are undefined or different.
SW_FN bool sw_not(bool v) { return !v; }
template <class T> SW_FN T sw_not(T v) { return (T)~v; }
template <class T> SW_FN T sw_div(T a, T b) {
  if (b == (T)0) return (T)-1;
  if ((T)-1 < (T)0 && b == (T)-1) return (T)(0 - (typename SwInt<T>::Unsigned)a);
  return (T)(a / b);
}
template <class T> SW_FN T sw_rem(T a, T b) {
  if (b == (T)0) return a;
  if ((T)-1 < (T)0 && b == (T)-1) return (T)0;
  return (T)(a % b);
}
template <class T> SW_FN T sw_powi(T base, T exponent) {
  if (exponent < (T)0) {
    if (base == (T)1) return (T)1;
    return base == (T)-1 ? ((exponent & 1) ? (T)-1 : (T)1) : (T)0;
  }
  typename SwInt<T>::Unsigned power = (typename SwInt<T>::Unsigned)base, result = 1;
  for (T e = exponent; e > (T)0; e = (T)(e >> 1)) {
    if (e & 1) result = (typename SwInt<T>::Unsigned)((unsigned long long)result * power);
    power = (typename SwInt<T>::Unsigned)((unsigned long long)power * power);
  }
  return (T)result;
}
template <class T> SW_FN bool sw_in_width(T n) { return n >= (T)0 && (unsigned long long)n < (unsigned long long)SwInt<T>::kBits; }
template <class T> SW_FN T sw_shl(T v, T n) { return sw_in_width(n) ? (T)((unsigned long long)v << (int)n) : (T)0; }
template <class T> SW_FN T sw_shrl(T v, T n) { return sw_in_width(n) ? (T)((typename SwInt<T>::Unsigned)v >> (int)n) : (T)0; }
template <class T> SW_FN T sw_shra(T v, T n) {
  const typename SwInt<T>::Signed s = (typename SwInt<T>::Signed)v;
  return (T)(s >> (sw_in_width(n) ? (int)n : SwInt<T>::kBits - 1));
}
template <class T> SW_FN T sw_popc(T v) {
  unsigned long long u = (typename SwInt<T>::Unsigned)v;
  int n = 0;
  for (; u != 0; u &= u - 1) ++n;
  return (T)n;
}
template <class T> SW_FN T sw_clz(T v) {
  typename SwInt<T>::Unsigned u = (typename SwInt<T>::Unsigned)v;
  int n = 0;
  for (int bit = SwInt<T>::kBits - 1; bit >= 0 && !((u >> bit) & 1); --bit) ++n;
  return (T)n;
}
template <class T> SW_FN T sw_max(T a, T b) { return a > b ? a : b; }
template <class T> SW_FN T sw_min(T a, T b) { return a < b ? a : b; }
// NaN if either is NaN; -0 is less than +0.
#if __CUDA_ARCH__ >= 800
SW_FN float sw_max(float a, float b) { float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
SW_FN float sw_min(float a, float b) { float r; asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
#else
SW_FN float sw_max(float a, float b) {
  float r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return a != a || b != b ? sw_float(0x7fffffffu) : r;
}
SW_FN float sw_min(float a, float b) {
  float r;
  asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return a != a || b != b ? sw_float(0x7fffffffu) : r;
}
#endif
SW_FN double sw_max(double a, double b) {
  double r;
  asm("max.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
  return a != a || b != b ? sw_double(0x7fffffffffffffffull) : r;
}
SW_FN double sw_min(double a, double b) {
  double r;
  asm("min.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
  return a != a || b != b ? sw_double(0x7fffffffffffffffull) : r;
}

// kCount adjacent elements of memory, moved by one instruction up to 16 bytes, in global memory 32 from sm_100 on:
// the address is a multiple of their size (or of that).
enum { kSwWidest = __CUDA_ARCH__ >= 1000 ? 32 : 16 };
template <int kBytes> struct SwWords {
  struct __align__(kBytes < kSwWidest ? kBytes : kSwWidest) Type { unsigned word[kBytes / 4]; };
};
template <> struct SwWords<1> { typedef unsigned char Type; };
template <> struct SwWords<2> { typedef unsigned short Type; };
template <class T, int kCount> struct SwElements {
  struct __align__(kCount * sizeof(T) < kSwWidest ? kCount * sizeof(T) : kSwWidest) Type { T word[kCount]; };
};
enum SwForm { kSwAlone, kSwPacked, kSwWhole };  // fewer than 4 bytes; narrow elements; words or wider
template <class T, int kCount, SwForm kForm = (sizeof(T) >= 4 ? kSwWhole : kCount * sizeof(T) >= 4 ? kSwPacked : kSwAlone)>
struct SwVector {
  typedef typename SwWords<kCount * (int)sizeof(T)>::Type All;
  union { All all; T of[kCount]; };
  SW_FN T get(const SwVector& v, int j) { return v.of[j]; }
  SW_FN void set(SwVector& v, int j, T x) { v.of[j] = x; }
};
template <class T, int kCount> struct SwVector<T, kCount, kSwWhole> {
  typedef typename SwElements<T, kCount>::Type All;
  All all;
  SW_FN T get(const SwVector& v, int j) { return v.all.word[j]; }
  SW_FN void set(SwVector& v, int j, T x) { v.all.word[j] = x; }
};
// Narrow elements stay packed in words, or compilers part the access; set in ascending order.
template <class T, int kCount> struct SwVector<T, kCount, kSwPacked> {
  typedef typename SwWords<kCount * (int)sizeof(T)>::Type All;
  enum { kEach = 4 / (int)sizeof(T), kBits = 8 * (int)sizeof(T) };
  All all;
  SW_FN T get(const SwVector& v, int j) { return (T)(v.all.word[j / kEach] >> (j % kEach * kBits)); }
  SW_FN void set(SwVector& v, int j, T x) {
    const unsigned bits = ((unsigned)x & ((1u << kBits) - 1)) << (j % kEach * kBits);
    v.all.word[j / kEach] = j % kEach == 0 ? bits : v.all.word[j / kEach] | bits;
  }
};
template <class T, int kCount> SW_FN T sw_get(const SwVector<T, kCount>& v, int j) { return SwVector<T, kCount>::get(v, j); }
template <class T, int kCount> SW_FN void sw_set(SwVector<T, kCount>& v, int j, T x) { SwVector<T, kCount>::set(v, j, x); }
template <class T, int kCount> SW_FN void sw_load(SwVector<T, kCount>& v, const T* p) {
  v.all = *(const typename SwVector<T, kCount>::All*)p;
}
template <class T, int kCount> SW_FN void sw_store(T* p, const SwVector<T, kCount>& v) {
  *(typename SwVector<T, kCount>::All*)p = v.all;
}
template <class T, int kCount> SW_FN void sw_clear(SwVector<T, kCount>& v) {
#pragma unroll
  for (int j = 0; j < kCount; ++j) sw_set(v, j, (T)0);
}
// Of a vector at the end of an array only `count` elements exist.
template <class T, int kCount, class I> SW_FN void sw_load_part(SwVector<T, kCount>& v, const T* p, I count) {
  if (count >= kCount) return sw_load(v, p);
#pragma unroll
  for (int j = 0; j < kCount; ++j) sw_set(v, j, j < count ? p[j] : (T)0);
}
// Of a vector at a row's first or last element those from `first` to before `end` are the row's.
template <class T, int kCount, class I>
SW_FN void sw_load_part(SwVector<T, kCount>& v, const T* p, I first, I end) {
  if (first <= 0 && end >= kCount) return sw_load(v, p);
#pragma unroll
  for (int j = 0; j < kCount; ++j) sw_set(v, j, j >= first && j < end ? p[j] : (T)0);
}
template <class T, int kCount, class I> SW_FN void sw_store_part(T* p, const SwVector<T, kCount>& v, I first, I end) {
  if (first <= 0 && end >= kCount) return sw_store(p, v);
#pragma unroll
  for (int j = 0; j < kCount; ++j)
    if (j >= first && j < end) p[j] = sw_get(v, j);
}

// Reducers.
struct SwAdd { template <class T> SW_FN T of(T a, T b) { return (T)(a + b); } };
struct SwMultiply { template <class T> SW_FN T of(T a, T b) { return (T)(a * b); } };
struct SwMaximum { template <class T> SW_FN T of(T a, T b) { return sw_max(a, b); } };
struct SwMinimum { template <class T> SW_FN T of(T a, T b) { return sw_min(a, b); } };
struct SwAnd { template <class T> SW_FN T of(T a, T b) { return (T)(a & b); } };
struct SwOr { template <class T> SW_FN T of(T a, T b) { return (T)(a | b); } };
struct SwXor { template <class T> SW_FN T of(T a, T b) { return (T)(a ^ b); } };

SW_FN unsigned sw_shuffle_bits(unsigned v, int lane_mask) {
  unsigned r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(v), "r"(lane_mask));
  return r;
}
template <class T> SW_FN T sw_shuffle(T v, int lane_mask) { return (T)sw_shuffle_bits((unsigned)v, lane_mask); }
SW_FN float sw_shuffle(float v, int lane_mask) { return sw_float(sw_shuffle_bits(sw_bits(v), lane_mask)); }
SW_FN unsigned long long sw_shuffle(unsigned long long v, int lane_mask) {
  const unsigned low = sw_shuffle_bits((unsigned)v, lane_mask), high = sw_shuffle_bits((unsigned)(v >> 32), lane_mask);
  return (unsigned long long)high << 32 | low;
}
SW_FN long long sw_shuffle(long long v, int lane_mask) { return (long long)sw_shuffle((unsigned long long)v, lane_mask); }
SW_FN double sw_shuffle(double v, int lane_mask) { return sw_double(sw_shuffle(sw_bits(v), lane_mask)); }

// Over kLanes adjacent lanes (a power of two); every lane gets the result. All lanes of the warp take part.
template <class R, int kLanes, class T> SW_FN T sw_warp_reduce(T v) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) v = R::of(v, sw_shuffle(v, mask));
  return v;
}
// Over kThreads adjacent threads of a block of kBlock (kThreads a power of two up to 32, or a multiple of
// 32); every thread gets its row's result. `workspace` holds kBlock / 32 values and must not be in use. All
// threads of the block take part.
template <class R, int kThreads, int kBlock, class T> SW_FN T sw_row_reduce(T v, T identity, T* workspace) {
  v = sw_warp_reduce<R, (kThreads < 32 ? kThreads : 32)>(v);
  if (kThreads > 32) {
    const int warps = kThreads / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int slot = threadIdx.x / kThreads * warps + lane;
    if (lane == 0) workspace[warp] = v;
    __syncthreads();
    v = lane < warps && slot < kBlock / 32 ? workspace[slot] : identity;
    v = sw_warp_reduce<R, 32>(v);
  }
  return v;
}
// Over the kSlices threads that share a column tile's row: threads 0 .. kRows-1 get the results. `workspace`
// holds kRows * kSlices values and must not be in use. All threads of the block take part.
template <class R, int kRows, int kSlices, class T> SW_FN T sw_column_reduce(T v, T* workspace) {
  if (kSlices > 1) {
    if (threadIdx.x < kRows * kSlices) workspace[threadIdx.x] = v;
    __syncthreads();
    if (threadIdx.x < kRows)
      for (int slice = 1; slice < kSlices; ++slice) v = R::of(v, workspace[slice * kRows + threadIdx.x]);
  }
  return v;
}

// The same where a thread has kCount neighbouring rows of a slice, those numbered [from, to) of the tile's: `first` is
// the place of the first in the workspace, [kSlices, kRows].
template <class R, int kRows, int kSlices, int kCount, class T>
SW_FN T sw_columns_reduce(const T (&v)[kCount], int first, int from, int to, T* workspace) {
#pragma unroll
  for (int j = 0; j < kCount; ++j)
    if (j >= from && j < to) workspace[first + j] = v[j];
  __syncthreads();
  T result = v[0];
  if (threadIdx.x < kRows) {
    const T* const column = workspace + threadIdx.x;
    result = column[0];
#pragma unroll 8
    for (int slice = 1; slice < kSlices; ++slice) result = R::of(result, column[slice * kRows]);
  }
  return result;
}

// What a thread gathers of a row for a sum about a value c that is known only behind the pass.
SW_FN float sw_exp(float v) { return expf(v); }
SW_FN double sw_exp(double v) { return exp(v); }
SW_FN float sw_reciprocal(float v) { float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v)); return r; }
SW_FN double sw_reciprocal(double v) { return 1.0 / v; }
// The sum of exp(x - about): about an x that no other exceeds by more than 8, so that it seldom changes and sums are
// far from overflowing. An infinity counts as exp(0) while all are taken about it: exp(about - c) makes of it what
// exp(x - c) is.
template <class T> struct SwExponentials { T about, sum; };
template <class T> SW_FN void sw_gather(SwExponentials<T>& g, T x) {
  if (x - g.about > (T)8) {
    g.sum *= sw_exp(g.about - x);
    g.about = x;
  }
  g.sum += x == g.about ? (T)1 : sw_exp(x - g.about);
}
template <class T> SW_FN T sw_about(const SwExponentials<T>& g, T c) { return g.sum * sw_exp(g.about - c); }
// The sum of (x - mean)^2.
template <class T> struct SwSquares { T count, mean, squares; };
template <class T> SW_FN void sw_gather(SwSquares<T>& g, T x) {
  g.count += 1;
  const T further = x - g.mean;
  g.mean += further * sw_reciprocal(g.count);
  g.squares += further * (x - g.mean);
}
template <class T> SW_FN T sw_about(const SwSquares<T>& g, T c) { return g.squares + g.count * (g.mean - c) * (g.mean - c); }

SW_FN unsigned sw_cas(unsigned* p, unsigned expected, unsigned desired) {
  unsigned r;
  asm volatile("atom.cas.b32 %0, [%1], %2, %3;" : "=r"(r) : "l"(p), "r"(expected), "r"(desired) : "memory");
  return r;
}
SW_FN unsigned long long sw_cas(unsigned long long* p, unsigned long long expected, unsigned long long desired) {
  unsigned long long r;
  asm volatile("atom.cas.b64 %0, [%1], %2, %3;" : "=l"(r) : "l"(p), "l"(expected), "l"(desired) : "memory");
  return r;
}
// Combines `v` into *p atomically by compare and swap.
template <class R, class T> SW_FN void sw_atomic(T* p, T v) {
  if (sizeof(T) == 8) {
    unsigned long long* word = (unsigned long long*)p;
    unsigned long long seen = *(volatile unsigned long long*)word, old;
    do {
      old = seen;
      union { unsigned long long u; T t; } b;
      b.u = old;
      b.t = R::of(b.t, v);
      seen = sw_cas(word, old, b.u);
    } while (seen != old);
  } else {  // narrower than 32 bits: within the aligned word
    unsigned* word = (unsigned*)((unsigned long long)p & ~3ull);
    const int shift = (int)((unsigned long long)p & 3) * 8;
    const unsigned mask = (sizeof(T) == 4 ? 0xffffffffu : (1u << (8 * (int)sizeof(T) % 32)) - 1) << shift;
    unsigned seen = *(volatile unsigned*)word, old;
    do {
      old = seen;
      union { unsigned u; T t; } b;
      b.u = (old & mask) >> shift;
      b.t = R::of(b.t, v);
      seen = sw_cas(word, old, (old & ~mask) | ((b.u << shift) & mask));
    } while (seen != old);
  }
}
// 16-bit floats: combined as float, rounded at each step.
template <class R, bool kBrain> SW_FN void sw_atomic_half(unsigned short* p, float v) {
  unsigned* word = (unsigned*)((unsigned long long)p & ~3ull);
  const int shift = (int)((unsigned long long)p & 2) * 8;
  unsigned seen = *(volatile unsigned*)word, old;
  do {
    old = seen;
    const unsigned short now = (unsigned short)(old >> shift);
    const unsigned short next = kBrain ? sw_to_bf16(R::of(sw_bf16(now), v)) : sw_to_f16(R::of(sw_f16(now), v));
    seen = sw_cas(word, old, (old & ~(0xffffu << shift)) | ((unsigned)next << shift));
  } while (seen != old);
}
template <class R> struct SwAtomic { template <class T> SW_FN void into(T* p, T v) { sw_atomic<R>(p, v); } };
template <> struct SwAtomic<SwAdd> {
  template <class T> SW_FN void into(T* p, T v) { sw_atomic<SwAdd>(p, v); }
  SW_FN void into(float* p, float v) { asm volatile("red.add.f32 [%0], %1;" : : "l"(p), "f"(v) : "memory"); }
  SW_FN void into(int* p, int v) { asm volatile("red.add.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory"); }
  SW_FN void into(unsigned* p, unsigned v) { asm volatile("red.add.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory"); }
};

// The warp's threads wait for each other and see each other's shared memory.
SW_FN void sw_warp_barrier() { asm volatile("bar.warp.sync 0xffffffff;" : : : "memory"); }

// The whole grid waits until every block has come; all blocks must be resident. Each block adds 1 to the
// counter but the first, which adds 2^63 - (blocks - 1), so that the top bit flips when all have come and the
// counter needs no reset. Writes before the barrier are released before the arrival, and acquired after it.
SW_FN void sw_grid_barrier(unsigned long long* counter) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned long long arrive = blockIdx.x == 0 ? 0x8000000000000000ull - (gridDim.x - 1) : 1;
    unsigned long long old, now;
    asm volatile("fence.acq_rel.gpu;" : : : "memory");
    asm volatile("atom.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(counter), "l"(arrive) : "memory");
    for (;;) {
      asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(now) : "l"(counter) : "memory");
      if (((now ^ old) >> 63) != 0) break;
      asm volatile("nanosleep.u32 32;" : : : "memory");
    }
    asm volatile("fence.acq_rel.gpu;" : : : "memory");
  }
  __syncthreads();
}
)cuda";
}

}  // namespace stitchwork
