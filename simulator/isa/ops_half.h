// Conversions between half, bfloat16 and float lanes, and fp16 / bf16 arithmetic.
#pragma once

#include "simulator/isa/ops_integer_rare.h"

namespace stitchwork::sim {
namespace {

/// IEEE half in the low 16 bits of each lane to float, exact.
SW_INLINE Words<f32> half_to_float(Words<u32> h) {
#if defined(__AVX512F__)
  return (Words<f32>)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)h));
#else
  auto sign = (h & 0x8000u) << 16;
  auto magnitude = h & 0x7fffu;
  // Shifted into place a half reads as a float 2^112 too small; multiplying is exact and mends subnormals.
  auto scaled = (Words<f32>)(magnitude << 13) * 0x1p112f;
  auto bits = magnitude >= 0x7c00u ? magnitude << 13 | 0x7f800000u : (Words<u32>)scaled;
  return (Words<f32>)(bits | sign);
#endif
}
/// Float to half, to nearest even; NaN gives 0x7fff as on GPUs.
SW_INLINE Words<u32> float_to_half(Words<f32> f) {
  auto bits = (Words<u32>)f;
  auto sign = bits >> 16 & 0x8000u;
  auto m = bits & 0x7fffffffu;
#if defined(__AVX512F__)
  auto r = (Words<u32>)_mm512_cvtepu16_epi32(_mm512_cvtps_ph((__m512)m, 8));
#else
  // Subnormal halves: adding 0.5 leaves the rounded result in the low mantissa bits.
  auto small = (Words<u32>)((Words<f32>)m + 0.5f) - 0x3f000000u;
  auto normal = (m + 0xfffu + (m >> 13 & 1) - (112u << 23)) >> 13;
  auto r = m < 0x38800000u ? small : normal;
  r = m >= 0x47800000u ? (r ^ r) + 0x7c00u : r;
#endif
  return m > 0x7f800000u ? (r ^ r) + 0x7fffu : r | sign;
}
SW_INLINE Words<f32> bf16_to_float(Words<u32> h) { return (Words<f32>)(h << 16); }
SW_INLINE Words<u32> float_to_bf16(Words<f32> f) {
  auto bits = (Words<u32>)f;
  auto r = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? (r ^ r) + 0x7fffu : r;
}

struct HalfFormat {
  static SW_INLINE Words<f32> widen(Words<u32> v) { return half_to_float(v); }
  static SW_INLINE Words<u32> narrow(Words<f32> v) { return float_to_half(v); }
};
struct Bf16Format {
  static SW_INLINE Words<f32> widen(Words<u32> v) { return bf16_to_float(v); }
  static SW_INLINE Words<u32> narrow(Words<f32> v) { return float_to_bf16(v); }
};

/// a*b+c rounded to odd in float, so that the later rounding to 16 bits is the only one that counts.
SW_INLINE Words<f32> fma_round_odd(Words<f32> a, Words<f32> b, Words<f32> c) {
  Words<f32> r;
  for (int j = 0; j < kWords; ++j) {
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
    __builtin_memcpy(&f, &fbits, 4);
    r[j] = f;
  }
  return r;
}

/// f on each 16-bit half of a packed pair.
template <class F>
SW_INLINE Words<u32> pairwise(F f, Words<u32> a) {
  return f(a & 0xffffu) | f(a >> 16) << 16;
}
template <class F>
SW_INLINE Words<u32> pairwise(F f, Words<u32> a, Words<u32> b) {
  return f(a & 0xffffu, b & 0xffffu) | f(a >> 16, b >> 16) << 16;
}
template <class F>
SW_INLINE Words<u32> pairwise(F f, Words<u32> a, Words<u32> b, Words<u32> c) {
  return f(a & 0xffffu, b & 0xffffu, c & 0xffffu) | f(a >> 16, b >> 16, c >> 16) << 16;
}

/// A value rounded once to a binary format of kExponent and kMantissa bits with infinities; NaN gives all
/// ones but the sign.
template <int kExponent, int kMantissa>
u32 round_to_format(f64 v, Round r) {
  constexpr int bias = (1 << (kExponent - 1)) - 1, lowest = 1 - bias;
  constexpr u32 infinity = ((1u << kExponent) - 1) << kMantissa, sign_bit = 1u << (kExponent + kMantissa);
  if (v != v) return infinity | ((1u << kMantissa) - 1);
  u64 bits;
  __builtin_memcpy(&bits, &v, 8);
  const bool negative = bits >> 63;
  const u32 sign = negative ? sign_bit : 0;
  const f64 m = __builtin_fabs(v);
  if (m == 0) return sign;
  if (m - m != 0) return sign | infinity;
  int e;
  __builtin_frexp(m, &e);  // m in [2^(e-1), 2^e)
  const int quantum = (e - 1 > lowest ? e - 1 : lowest) - kMantissa;
  const f64 scaled = __builtin_ldexp(m, -quantum);
  u64 n = u64(scaled);
  const f64 rest = scaled - f64(n);
  const bool up = r == Round::kNearest ? rest > 0.5 || (rest == 0.5 && (n & 1))
                  : r == Round::kZero  ? false
                  : r == Round::kDown  ? negative && rest > 0
                                       : !negative && rest > 0;
  n += up;
  // A subnormal's exponent field is 0, one less than that of the lowest normal exponent: adding n carries.
  const i64 field = i64(quantum + kMantissa + bias - 1) << kMantissa;
  const u64 magnitude = n >> kMantissa == 0 ? n : u64(field) + n;
  if (magnitude >= infinity) {
    const bool to_infinity =
        r == Round::kNearest || (r == Round::kDown && negative) || (r == Round::kUp && !negative);
    return sign | (to_infinity ? infinity : infinity - 1);
  }
  return sign | u32(magnitude);
}
u32 round_to_half(f64 v, Round r = Round::kNearest) { return round_to_format<5, 10>(v, r); }
u32 round_to_bf16(f64 v, Round r = Round::kNearest) { return round_to_format<8, 7>(v, r); }

/// An integer as a double that rounds on as the integer itself would: what does not fit is made odd.
template <class S>
f64 to_odd_double(S v) {
  if constexpr (sizeof(S) < 8) {
    return f64(v);
  } else {
    const bool negative = S(-1) < S(0) && i64(v) < 0;
    u64 m = negative ? 0 - u64(v) : u64(v);
    if (m >> 53) m = (m & ~u64(0x7ff)) | (m & 0x7ff ? u64(0x800) : 0);
    return negative ? -f64(m) : f64(m);
  }
}

}  // namespace
}  // namespace stitchwork::sim
