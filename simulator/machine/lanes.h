// Lane vectors of the interpreter, for the instruction set the including file is compiled for. Everything
// here has internal linkage: three files compile it with different target options (simulator/CMakeLists.txt).
#pragma once

#include <immintrin.h>
#include <math.h>

#include <cstdint>
#include <utility>

#include "simulator/machine/block_run.h"

namespace stitchwork::sim {
namespace {

using i32 = std::int32_t;
using u32 = std::uint32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;
using f32 = float;
using f64 = double;

#define SW_INLINE inline __attribute__((always_inline))
/// Before a loop of a few fixed rounds, whose values are then kept in registers.
#define SW_UNROLL _Pragma("GCC unroll 8")

template <class T, int N>
struct VecOf {
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
template <class T, int N>
using vec = typename VecOf<T, N>::type;

/// Bytes of the vectors that handlers compute with: those of a register, or several of them where registers
/// have 16. (GCC 12 takes vectors of two AVX2 registers through memory, piece by piece.)
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 64;
#endif
/// Lanes of a vector of 32-bit values, and of one of 64-bit values and what these are made of or become.
constexpr int kWords = kVectorBytes / 4, kLongs = kVectorBytes / 8;
template <class T>
using Words = vec<T, kWords>;
template <class T>
using Longs = vec<T, kLongs>;

template <class V>
SW_INLINE V load(const std::byte* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
SW_INLINE void store(std::byte* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}
template <class T, int N, std::size_t... K>
SW_INLINE vec<T, N> splat(T x, std::index_sequence<K...>) {
  return vec<T, N>{((void)K, x)...};
}
template <class T, int N>
SW_INLINE vec<T, N> splat(T x) {
  return splat<T, N>(x, std::make_index_sequence<N>{});
}
template <int N, std::size_t... K>
SW_INLINE vec<u32, N> lane_bits(std::index_sequence<K...>) {
  return vec<u32, N>{(1u << K)...};
}

/// Bit l of `bits` as all-ones in lane l.
template <int N>
SW_INLINE vec<i32, N> expand(u32 bits) {
  const auto each = lane_bits<N>(std::make_index_sequence<N>{});
  return (vec<i32, N>)((splat<u32, N>(bits) & each) == each);
}

SW_INLINE u32 movemask(vec<i32, 16> m) {
#if defined(__AVX512DQ__)
  return _mm512_movepi32_mask((__m512i)m);
#else
  __m128 h[4];
  __builtin_memcpy(h, &m, 64);
  return _mm_movemask_ps(h[0]) | _mm_movemask_ps(h[1]) << 4 | _mm_movemask_ps(h[2]) << 8 |
         _mm_movemask_ps(h[3]) << 12;
#endif
}
SW_INLINE u32 movemask(vec<i32, 8> m) {
#if defined(__AVX2__)
  return _mm256_movemask_ps((__m256)m);
#else
  __m128 h[2];
  __builtin_memcpy(h, &m, 32);
  return _mm_movemask_ps(h[0]) | _mm_movemask_ps(h[1]) << 4;
#endif
}
#if defined(__AVX2__)
SW_INLINE u32 movemask(vec<i64, 4> m) { return u32(_mm256_movemask_pd((__m256d)m)); }
#endif
SW_INLINE u32 movemask(vec<i64, 8> m) { return movemask(__builtin_convertvector(m, vec<i32, 8>)); }

/// True if any bit of v is set.
template <class V>
SW_INLINE bool any(V v) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask((__m512i)v, (__m512i)v) != 0;
#elif defined(__AVX2__)
  return !_mm256_testz_si256((__m256i)v, (__m256i)v);
#else
  __m128i h[4];
  __builtin_memcpy(h, &v, 64);
  const __m128i all = _mm_or_si128(_mm_or_si128(h[0], h[1]), _mm_or_si128(h[2], h[3]));
  return _mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_setzero_si128())) != 0xffff;
#endif
}

template <class T, int N>
SW_INLINE vec<T, N> select(vec<i32, N> m, vec<T, N> a, vec<T, N> b) {
  using Mask = vec<std::conditional_t<sizeof(T) == 8, i64, i32>, N>;
  return __builtin_convertvector(m, Mask) ? a : b;
}

/// Floats as doubles, and doubles rounded to floats.
SW_INLINE Longs<f64> to_doubles(Longs<f32> v) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  return (Longs<f64>)_mm256_cvtps_pd((__m128)v);  // GCC 12 converts halves, by way of memory
#else
  return __builtin_convertvector(v, Longs<f64>);
#endif
}
SW_INLINE Longs<f32> to_floats(Longs<f64> v) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  return (Longs<f32>)_mm256_cvtpd_ps((__m256d)v);
#else
  return __builtin_convertvector(v, Longs<f32>);
#endif
}

/// fma with one rounding, in hardware where the target has it.
SW_INLINE Words<f32> fma_v(Words<f32> a, Words<f32> b, Words<f32> c) {
#if defined(__AVX512F__)
  return (Words<f32>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Words<f32>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  Words<f32> r;
  for (int j = 0; j < kWords; ++j) r[j] = __builtin_fmaf(a[j], b[j], c[j]);
  return r;
#endif
}
SW_INLINE Longs<f64> fma_v(Longs<f64> a, Longs<f64> b, Longs<f64> c) {
#if defined(__AVX512F__)
  return (Longs<f64>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
  return (Longs<f64>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  Longs<f64> r;
  for (int j = 0; j < kLongs; ++j) r[j] = __builtin_fma(a[j], b[j], c[j]);
  return r;
#endif
}

template <bool M, class D, class... S, class F, std::size_t... K>
SW_INLINE const Inst* map(Strand& s, const Inst* i, F f, std::index_sequence<K...>) {
  constexpr bool wide = sizeof(D) == 8 || ((sizeof(S) == 8) || ...);
  constexpr int N = wide ? kLongs : kWords;
  // Read once: what is stored to registers might be the instruction, for all the compiler knows.
  std::byte* const to = s.regs + i->o[0];
  const std::byte* const from[] = {s.regs + i->o[K + 1]...};
  const int first = s.first_warp, last = s.last_warp;
  const auto compute = [&](int e) __attribute__((always_inline)) {
    return (vec<D, N>)f(load<vec<S, N>>(from[K] + e * int(sizeof(S)))...);
  };
  if constexpr (!M) {
    for (int e = first * 32; e < last * 32; e += N) store(to + e * int(sizeof(D)), compute(e));
  } else {
    for (int w = first; w < last; ++w) {
      const u32 mask = s.mask[w];
      if (mask == 0) continue;
      for (int l = 0; l < 32; l += N) {
        const int e = w * 32 + l;
        std::byte* const d = to + e * int(sizeof(D));
        store(d, select<D, N>(expand<N>(mask >> l), compute(e), load<vec<D, N>>(d)));
      }
    }
  }
  return i + 1;
}
/// Runs `f` over the lanes of every active warp: destination lanes of type D, sources of types S, a vector at
/// a time.
template <bool M, class D, class... S, class F>
SW_INLINE const Inst* map(Strand& s, const Inst* i, F f) {
  return map<M, D, S...>(s, i, f, std::index_sequence_for<S...>{});
}

/// As map, for a comparison: destination predicate, two sources.
template <bool M, class S, class F>
SW_INLINE const Inst* compare(Strand& s, const Inst* i, F f) {
  constexpr int N = kVectorBytes / static_cast<int>(sizeof(S));
  const std::byte *const a = s.regs + i->o[1], *const b = s.regs + i->o[2];
  std::byte* const to = s.regs + i->o[0];
  const int first = s.first_warp, last = s.last_warp;
  for (int w = first; w < last; ++w) {
    const u32 mask = s.mask[w];
    if (M && mask == 0) continue;
    u32 bits = 0;
    SW_UNROLL
    for (int l = 0; l < 32; l += N) {
      const int e = (w * 32 + l) * int(sizeof(S));
      using Truth = vec<std::conditional_t<sizeof(S) == 8, i64, i32>, N>;
      bits |= movemask((Truth)f(load<vec<S, N>>(a + e), load<vec<S, N>>(b + e))) << l;
    }
    std::byte* const d = to + w * 4;
    if (M) bits = (bits & mask) | (load<u32>(d) & ~mask);
    store(d, bits);
  }
  return i + 1;
}

/// Predicate logic: f on 32 lanes' bits at once.
template <bool M, int kSources, class F>
SW_INLINE const Inst* map_pred(Strand& s, const Inst* i, F f) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 mask = s.mask[w];
    if (M && mask == 0) continue;
    u32 a = load<u32>(s.regs + i->o[1] + w * 4);
    u32 b = kSources > 1 ? load<u32>(s.regs + i->o[2] + w * 4) : 0;
    u32 bits = f(a, b);
    std::byte* d = s.regs + i->o[0] + w * 4;
    if (M) bits = (bits & mask) | (load<u32>(d) & ~mask);
    store(d, bits);
  }
  return i + 1;
}

/// d = p ? a : b.
template <bool M, class T>
SW_INLINE const Inst* map_select(Strand& s, const Inst* i) {
  constexpr int N = kVectorBytes / static_cast<int>(sizeof(T));
  const std::byte *const a = s.regs + i->o[1], *const b = s.regs + i->o[2], *const p = s.regs + i->o[3];
  std::byte* const to = s.regs + i->o[0];
  const int first = s.first_warp, last = s.last_warp;
  for (int w = first; w < last; ++w) {
    const u32 mask = s.mask[w], chosen = load<u32>(p + w * 4);
    if (M && mask == 0) continue;
    for (int l = 0; l < 32; l += N) {
      const int e = (w * 32 + l) * int(sizeof(T));
      vec<T, N> r = select<T, N>(expand<N>(chosen >> l), load<vec<T, N>>(a + e), load<vec<T, N>>(b + e));
      if (M) r = select<T, N>(expand<N>(mask >> l), r, load<vec<T, N>>(to + e));
      store(to + e, r);
    }
  }
  return i + 1;
}

/// Elements from[l] of a warp's 32 words, for each lane l of a vector.
SW_INLINE Words<u32> pick(const std::byte* words, Words<i32> from) {
#if defined(__AVX512F__)
  return (Words<u32>)_mm512_permutex2var_epi32((__m512i)load<Words<u32>>(words), (__m512i)from,
                                               (__m512i)load<Words<u32>>(words + kVectorBytes));
#elif defined(__AVX2__)
  // Mostly all are of one vector.
  const i32 first = from[0] & ~(kWords - 1);
  if (!any((from ^ first) & ~(kWords - 1)))
    return (Words<u32>)_mm256_permutevar8x32_epi32((__m256i)load<Words<u32>>(words + first * 4),
                                                   (__m256i)from);
  return (Words<u32>)_mm256_i32gather_epi32(reinterpret_cast<const int*>(words), (__m256i)from, 4);
#else
  Words<u32> r;
  for (int j = 0; j < kWords; ++j) r[j] = load<u32>(words + from[j] * 4);
  return r;
#endif
}

}  // namespace
}  // namespace stitchwork::sim
