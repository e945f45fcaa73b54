// Conversions between half, bfloat16 and float lanes, and fp16 / bf16 arithmetic.
#pragma once

#include "simulator/ops_float.h"

namespace stitchwork::sim {
namespace {

/// IEEE half in the low 16 bits of each lane to float, exact.
SW_INLINE vec<f32, 16> half_to_float(vec<u32, 16> h) {
#if defined(__AVX512F__)
  return (vec<f32, 16>)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)h));
#else
  auto sign = (h & 0x8000u) << 16;
  auto magnitude = h & 0x7fffu;
  // Shifted into place a half reads as a float 2^112 too small; multiplying is exact and mends subnormals.
  auto scaled = (vec<f32, 16>)(magnitude << 13) * 0x1p112f;
  auto bits = magnitude >= 0x7c00u ? magnitude << 13 | 0x7f800000u : (vec<u32, 16>)scaled;
  return (vec<f32, 16>)(bits | sign);
#endif
}
/// Float to half, to nearest even; NaN gives 0x7fff as on GPUs.
SW_INLINE vec<u32, 16> float_to_half(vec<f32, 16> f) {
  auto bits = (vec<u32, 16>)f;
  auto sign = bits >> 16 & 0x8000u;
  auto m = bits & 0x7fffffffu;
#if defined(__AVX512F__)
  auto r = (vec<u32, 16>)_mm512_cvtepu16_epi32(_mm512_cvtps_ph((__m512)m, 8));
#else
  // Subnormal halves: adding 0.5 leaves the rounded result in the low mantissa bits.
  auto small = (vec<u32, 16>)((vec<f32, 16>)m + 0.5f) - 0x3f000000u;
  auto normal = (m + 0xfffu + (m >> 13 & 1) - (112u << 23)) >> 13;
  auto r = m < 0x38800000u ? small : normal;
  r = m >= 0x47800000u ? (r ^ r) + 0x7c00u : r;
#endif
  return m > 0x7f800000u ? (r ^ r) + 0x7fffu : r | sign;
}
SW_INLINE vec<f32, 16> bf16_to_float(vec<u32, 16> h) { return (vec<f32, 16>)(h << 16); }
SW_INLINE vec<u32, 16> float_to_bf16(vec<f32, 16> f) {
  auto bits = (vec<u32, 16>)f;
  auto r = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? (r ^ r) + 0x7fffu : r;
}

struct HalfFormat {
  static SW_INLINE vec<f32, 16> widen(vec<u32, 16> v) { return half_to_float(v); }
  static SW_INLINE vec<u32, 16> narrow(vec<f32, 16> v) { return float_to_half(v); }
};
struct Bf16Format {
  static SW_INLINE vec<f32, 16> widen(vec<u32, 16> v) { return bf16_to_float(v); }
  static SW_INLINE vec<u32, 16> narrow(vec<f32, 16> v) { return float_to_bf16(v); }
};

/// a*b+c rounded to odd in float, so that the later rounding to 16 bits is the only one that counts.
SW_INLINE vec<f32, 16> fma_round_odd(vec<f32, 16> a, vec<f32, 16> b, vec<f32, 16> c) {
  vec<f32, 16> r;
  for (int j = 0; j < 16; ++j) {
    const f64 p = f64(a[j]) * f64(b[j]);  // exact: at most 22 significant bits
    const f64 t = c[j];
    f64 sum = p + t;
    const f64 v = sum - p;
    const f64 error = (p - (sum - v)) + (t - v);
    u64 bits;
    __builtin_memcpy(&bits, &sum, 8);
    if (error != 0 && sum - sum == 0 && !(bits & 1)) bits += (error > 0) == (sum > 0) ? 1 : -1;
    __builtin_memcpy(&sum, &bits, 8);
    f32 f = f32(sum);
    const f64 back = f;
    u32 fbits;
    __builtin_memcpy(&fbits, &f, 4);
    if (back != sum && f - f == 0 && !(fbits & 1)) {
      const bool away = (back < sum) == (f > 0 || (f == 0 && sum > 0));
      if (f == 0) {
        fbits = sum > 0 ? 1 : 0x80000001u;
      } else {
        fbits += away ? 1 : -1;
      }
    }
    __builtin_memcpy(&r[j], &fbits, 4);
  }
  return r;
}

/// f on each 16-bit half of a packed pair.
template <class F>
SW_INLINE vec<u32, 16> pairwise(F f, vec<u32, 16> a) {
  return f(a & 0xffffu) | f(a >> 16) << 16;
}
template <class F>
SW_INLINE vec<u32, 16> pairwise(F f, vec<u32, 16> a, vec<u32, 16> b) {
  return f(a & 0xffffu, b & 0xffffu) | f(a >> 16, b >> 16) << 16;
}
template <class F>
SW_INLINE vec<u32, 16> pairwise(F f, vec<u32, 16> a, vec<u32, 16> b, vec<u32, 16> c) {
  return f(a & 0xffffu, b & 0xffffu, c & 0xffffu) | f(a >> 16, b >> 16, c >> 16) << 16;
}

template <class Format>
void add_half_arithmetic(const char* const (&names)[2][12], const char* x2_signature) {
#define SW_HALF1(INDEX, ...)                                                                               \
  {                                                                                                        \
    auto f = [](auto a) __attribute__((always_inline)) { return __VA_ARGS__; };                            \
    add_cold<u32, u32>(names[0][INDEX], f, InstClass::kOther, "xx");                                       \
    add_cold<u32, u32>(                                                                                    \
        names[1][INDEX], [](auto a) __attribute__((always_inline)) { return pairwise(decltype(f){}, a); }, \
        InstClass::kOther, x2_signature + 2);                                                              \
  }
#define SW_HALF2(INDEX, ...)                                                                         \
  {                                                                                                  \
    auto f = [](auto a, auto b) __attribute__((always_inline)) { return __VA_ARGS__; };              \
    add_cold<u32, u32, u32>(names[0][INDEX], f, InstClass::kOther, "xxx");                           \
    add_cold<u32, u32, u32>(                                                                         \
        names[1][INDEX],                                                                             \
        [](auto a, auto b) __attribute__((always_inline)) { return pairwise(decltype(f){}, a, b); }, \
        InstClass::kOther, x2_signature + 1);                                                        \
  }
#define SW_HALF3(INDEX, ...)                                                                    \
  {                                                                                             \
    auto f = [](auto a, auto b, auto c) __attribute__((always_inline)) { return __VA_ARGS__; }; \
    add_cold<u32, u32, u32, u32>(names[0][INDEX], f, InstClass::kOther, "xxxx");                \
    add_cold<u32, u32, u32, u32>(                                                               \
        names[1][INDEX], [](auto a, auto b, auto c) __attribute__((always_inline)) {            \
          return pairwise(decltype(f){}, a, b, c);                                              \
        },                                                                                      \
        InstClass::kOther, x2_signature);                                                       \
  }
  using X = Format;
  SW_HALF2(0, X::narrow(X::widen(a) + X::widen(b)));
  SW_HALF2(1, X::narrow(X::widen(a) - X::widen(b)));
  SW_HALF2(2, X::narrow(X::widen(a) * X::widen(b)));
  SW_HALF3(3, X::narrow(fma_round_odd(X::widen(a), X::widen(b), X::widen(c))));
  SW_HALF2(4, X::narrow(extremum<true, false>(X::widen(a), X::widen(b))));
  SW_HALF2(5, X::narrow(extremum<false, false>(X::widen(a), X::widen(b))));
  SW_HALF2(6, X::narrow(extremum<true, true>(X::widen(a), X::widen(b))));
  SW_HALF2(7, X::narrow(extremum<false, true>(X::widen(a), X::widen(b))));
  SW_HALF1(8, a & 0x7fffu);
  SW_HALF1(9, a ^ 0x8000u);
  SW_HALF1(10, X::narrow(SW_HALVES(exp2_approx<false>)(X::widen(a))));
  SW_HALF1(11, X::narrow(SW_LANES1(f32, f32(tanh(f64(a))))(X::widen(a))));
#undef SW_HALF1
#undef SW_HALF2
#undef SW_HALF3
}

void add_half_rows() {
  add_half_arithmetic<HalfFormat>(
      {{"add{,.rn}.f16", "sub{,.rn}.f16", "mul{,.rn}.f16", "fma.rn.f16", "max.f16", "min.f16", "max.NaN.f16",
        "min.NaN.f16", "abs.f16", "neg.f16", "ex2.approx.f16", "tanh.approx.f16"},
       {"add{,.rn}.f16x2", "sub{,.rn}.f16x2", "mul{,.rn}.f16x2", "fma.rn.f16x2", "max.f16x2", "min.f16x2",
        "max.NaN.f16x2", "min.NaN.f16x2", "abs.f16x2", "neg.f16x2", "ex2.approx.f16x2", "tanh.approx.f16x2"}},
      "rrrr");
  add_half_arithmetic<Bf16Format>(
      {{"add{,.rn}.bf16", "sub{,.rn}.bf16", "mul{,.rn}.bf16", "fma.rn.bf16", "max.bf16", "min.bf16",
        "max.NaN.bf16", "min.NaN.bf16", "abs.bf16", "neg.bf16", "ex2.approx.ftz.bf16", "tanh.approx.bf16"},
       {"add{,.rn}.bf16x2", "sub{,.rn}.bf16x2", "mul{,.rn}.bf16x2", "fma.rn.bf16x2", "max.bf16x2",
        "min.bf16x2", "max.NaN.bf16x2", "min.NaN.bf16x2", "abs.bf16x2", "neg.bf16x2", "ex2.approx.ftz.bf16x2",
        "tanh.approx.bf16x2"}},
      "rrrr");
  add_cold<u32, u32, u32, u32>(
      "fma.rn.relu.f16",
      SW_F3(float_to_half(extremum<true, false>(
          fma_round_odd(half_to_float(a), half_to_float(b), half_to_float(c)), vec<f32, 16>{}))),
      InstClass::kOther, "xxxx");

  add_cold<u32, u32>("cvt.f32.f16", SW_F1((vec<u32, 16>)half_to_float(a)), InstClass::kOther, "fx");
  add_cold<u32, u32>("cvt.f32.bf16", SW_F1((vec<u32, 16>)bf16_to_float(a)), InstClass::kOther, "fx");
  add_cold<u32, f32>("cvt.rn.f16.f32", SW_F1(float_to_half(a)), InstClass::kOther, "xf");
  add_cold<u32, f32>("cvt.rn.bf16.f32", SW_F1(float_to_bf16(a)), InstClass::kOther, "xf");
  add_cold<u32, f32>(
      "cvt.rz.f16.f32",
      [](auto a) {
        auto h = float_to_half(a);  // step back towards zero where rounding went away from it
        auto back = (vec<u32, 16>)half_to_float(h) & 0x7fffffffu;
        auto m = (vec<u32, 16>)a & 0x7fffffffu;
        return m < 0x7f800000u && back > m ? h - 1 : h;
      },
      InstClass::kOther, "xf");
  add_cold<u32, f32>("cvt.rz.bf16.f32", SW_F1((vec<u32, 16>)a >> 16), InstClass::kOther, "xf");
  add_cold<u32, f32, f32>("cvt.rn.f16x2.f32", SW_F2(float_to_half(a) << 16 | float_to_half(b)),
                          InstClass::kOther, "rff");
  add_cold<u32, f32, f32>("cvt.rn.bf16x2.f32", SW_F2(float_to_bf16(a) << 16 | float_to_bf16(b)),
                          InstClass::kOther, "rff");
  add_cold<u32, f32>("cvt.rn.relu.bf16.f32", SW_F1(float_to_bf16(extremum<true, false>(a, vec<f32, 16>{}))),
                     InstClass::kOther, "xf");
  add_cold<u32, f32>("cvt.rn.relu.f16.f32", SW_F1(float_to_half(extremum<true, false>(a, vec<f32, 16>{}))),
                     InstClass::kOther, "xf");
}

}  // namespace
}  // namespace stitchwork::sim
