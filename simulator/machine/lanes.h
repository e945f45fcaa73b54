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

/// GCC 12 compares, selects and shuffles vectors of two AVX2 registers element by element: they are taken one
/// half at a time.
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr bool kHalves = true;
#else
constexpr bool kHalves = false;
#endif
/// f of both halves of vectors of 64 bytes, where that is faster than f of the whole.
template <class F, class V, class... W>
SW_INLINE V by_halves(F f, V a, W... b) {
  if constexpr (kHalves && sizeof(V) == 64) {
    using Half = vec<std::remove_reference_t<decltype(a[0])>, 32 / sizeof(a[0])>;
    Half h[2];
    const auto half = [](auto v, int k) __attribute__((always_inline)) {
      Half both[2];
      __builtin_memcpy(both, &v, sizeof both);
      return both[k];
    };
    h[0] = f(half(a, 0), half(b, 0)...);
    h[1] = f(half(a, 1), half(b, 1)...);
    __builtin_memcpy(&a, h, sizeof a);
    return a;
  } else {
    return f(a, b...);
  }
}

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
template <class T, int N>
SW_INLINE vec<T, N> splat(T x) {
  return vec<T, N>{} + x;
}
template <>
SW_INLINE vec<f32, 16> splat<f32, 16>(f32 x) {
  return vec<f32, 16>{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}
template <>
SW_INLINE vec<f64, 8> splat<f64, 8>(f64 x) {
  return vec<f64, 8>{x, x, x, x, x, x, x, x};
}
template <>
SW_INLINE vec<f32, 8> splat<f32, 8>(f32 x) {
  return vec<f32, 8>{x, x, x, x, x, x, x, x};
}

template <int N>
SW_INLINE vec<u32, N> lane_bits();
template <>
SW_INLINE vec<u32, 16> lane_bits<16>() {
  return vec<u32, 16>{1,      1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                      1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
}
template <>
SW_INLINE vec<u32, 8> lane_bits<8>() {
  return vec<u32, 8>{1, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7};
}

/// Bit l of `bits` as all-ones in lane l.
template <int N>
SW_INLINE vec<i32, N> expand(u32 bits) {
  if constexpr (kHalves && N == 16) {
    const vec<i32, 8> h[2] = {expand<8>(bits), expand<8>(bits >> 8)};
    vec<i32, 16> all;
    __builtin_memcpy(&all, h, sizeof all);
    return all;
  } else {
    return (vec<i32, N>)((splat<u32, N>(bits) & lane_bits<N>()) != 0);
  }
}

SW_INLINE u32 movemask(vec<i32, 16> m) {
#if defined(__AVX512DQ__)
  return _mm512_movepi32_mask((__m512i)m);
#elif defined(__AVX2__)
  __m256 h[2];
  __builtin_memcpy(h, &m, 64);
  return _mm256_movemask_ps(h[0]) | _mm256_movemask_ps(h[1]) << 8;
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
SW_INLINE bool any(vec<i64, 8> v) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask((__m512i)v, (__m512i)v) != 0;
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
  const auto mask = __builtin_convertvector(m, Mask);
  if constexpr (kHalves)
    return (vec<T, N>)(((Mask)a & mask) | ((Mask)b & ~mask));
  else
    return mask ? a : b;
}

/// fma with one rounding, in hardware where the target has it.
SW_INLINE vec<f32, 16> fma_v(vec<f32, 16> a, vec<f32, 16> b, vec<f32, 16> c) {
#if defined(__AVX512F__)
  return (vec<f32, 16>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return by_halves(
      [](auto x, auto y, auto z) __attribute__((always_inline)) {
        return (vec<f32, 8>)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z);
      },
      a, b, c);
#else
  vec<f32, 16> r;
  for (int j = 0; j < 16; ++j) r[j] = __builtin_fmaf(a[j], b[j], c[j]);
  return r;
#endif
}
SW_INLINE vec<f64, 8> fma_v(vec<f64, 8> a, vec<f64, 8> b, vec<f64, 8> c) {
#if defined(__AVX512F__)
  return (vec<f64, 8>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
  return by_halves(
      [](auto x, auto y, auto z) __attribute__((always_inline)) {
        return (vec<f64, 4>)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)z);
      },
      a, b, c);
#else
  vec<f64, 8> r;
  for (int j = 0; j < 8; ++j) r[j] = __builtin_fma(a[j], b[j], c[j]);
  return r;
#endif
}

template <int N, class... S, class F, std::size_t... K>
SW_INLINE auto apply(F f, const std::byte* regs, const Inst* i, int e, std::index_sequence<K...>) {
  return f(load<vec<S, N>>(regs + i->o[K + 1] + e * sizeof(S))...);
}

/// Runs `f` over the lanes of every active warp: destination lanes of type D, sources of types S, N at a
/// time.
template <bool M, class D, class... S, class F>
SW_INLINE const Inst* map(Strand& s, const Inst* i, F f) {
  constexpr bool wide = sizeof(D) == 8 || ((sizeof(S) == 8) || ...);
  constexpr int N = wide ? 8 : 16;
  std::byte* const regs = s.regs;
  const int first = s.first_warp, last = s.last_warp;
  for (int w = first; w < last; ++w) {
    const u32 mask = s.mask[w];
    if (M && mask == 0) continue;
    for (int l = 0; l < 32; l += N) {
      const int e = w * 32 + l;
      std::byte* d = regs + i->o[0] + e * sizeof(D);
      vec<D, N> r = (vec<D, N>)apply<N, S...>(f, regs, i, e, std::index_sequence_for<S...>{});
      if (M) r = select<D, N>(expand<N>(mask >> l), r, load<vec<D, N>>(d));
      store(d, r);
    }
  }
  return i + 1;
}

/// As map, for a comparison: destination predicate, two sources. `kNarrow`: of vectors of 32 bytes.
template <bool M, class S, bool kNarrow, class F>
SW_INLINE const Inst* compare(Strand& s, const Inst* i, F f) {
  constexpr int N = (kNarrow ? 32 : 64) / static_cast<int>(sizeof(S));
  std::byte* const regs = s.regs;
  const int first = s.first_warp, last = s.last_warp;
  for (int w = first; w < last; ++w) {
    const u32 mask = s.mask[w];
    if (M && mask == 0) continue;
    u32 bits = 0;
    for (int l = 0; l < 32; l += N) {
      const int e = w * 32 + l;
      using Truth = vec<std::conditional_t<sizeof(S) == 8, i64, i32>, N>;
      bits |= movemask((Truth)f(load<vec<S, N>>(regs + i->o[1] + e * sizeof(S)),
                                load<vec<S, N>>(regs + i->o[2] + e * sizeof(S))))
              << l;
    }
    std::byte* d = regs + i->o[0] + w * 4;
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

/// d = p ? a : b, or with f: any function of two lane values and a predicate.
template <bool M, class T>
SW_INLINE const Inst* map_select(Strand& s, const Inst* i) {
  constexpr int N = sizeof(T) == 8 ? 8 : 16;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 mask = s.mask[w];
    if (M && mask == 0) continue;
    const u32 p = load<u32>(s.regs + i->o[3] + w * 4);
    for (int l = 0; l < 32; l += N) {
      const int e = (w * 32 + l) * sizeof(T);
      vec<T, N> r = select<T, N>(expand<N>(p >> l), load<vec<T, N>>(s.regs + i->o[1] + e),
                                 load<vec<T, N>>(s.regs + i->o[2] + e));
      std::byte* d = s.regs + i->o[0] + e;
      if (M) r = select<T, N>(expand<N>(mask >> l), r, load<vec<T, N>>(d));
      store(d, r);
    }
  }
  return i + 1;
}

/// Element from[l] of a's and b's 32, for each l.
SW_INLINE vec<u32, 16> pick(vec<u32, 16> a, vec<u32, 16> b, vec<i32, 16> from) {
#if defined(__clang__)
  u32 both[32];
  __builtin_memcpy(both, &a, 64);
  __builtin_memcpy(both + 16, &b, 64);
  vec<u32, 16> r;
  for (int j = 0; j < 16; ++j) r[j] = both[from[j] & 31];
  return r;
#else
  if constexpr (kHalves) {  // within each register, then of the four the one that is asked for
    u32 both[32];
    __builtin_memcpy(both, &a, 64);
    __builtin_memcpy(both + 16, &b, 64);
    vec<u32, 16> r;
    SW_UNROLL
    for (int h = 0; h < 2; ++h) {
      vec<i32, 8> at;
      __builtin_memcpy(&at, reinterpret_cast<const char*>(&from) + h * 32, 32);
      vec<u32, 8> part = {};
      SW_UNROLL
      for (int k = 0; k < 4; ++k) {
        vec<u32, 8> words;
        __builtin_memcpy(&words, both + 8 * k, 32);
        const auto here = (vec<i32, 8>)((at >> 3 & 3) == k);
        part |= __builtin_shuffle(words, at & 7) & (vec<u32, 8>)here;
      }
      __builtin_memcpy(reinterpret_cast<char*>(&r) + h * 32, &part, 32);
    }
    return r;
  } else {
    return __builtin_shuffle(a, b, from);
  }
#endif
}

template <class D, int N, class F, class... S>
SW_INLINE vec<D, N> lanewise(F f, S... a) {
  vec<D, N> r;
  for (int j = 0; j < N; ++j) r[j] = f(a[j]...);
  return r;
}

}  // namespace
}  // namespace stitchwork::sim
