// fp32 and fp64 arithmetic with every rounding mode, and the approximate instructions.
#pragma once

#include <cfloat>

#include "simulator/isa/ops_integer.h"

namespace stitchwork::sim {
namespace {

enum class Round { kNearest, kZero, kDown, kUp };

/// Switches the processor's rounding mode for a scope. The arithmetic inside sits between memory barriers,
/// its operands come from memory and its results go there, so it cannot move out.
template <Round R>
struct RoundingScope {
  SW_INLINE RoundingScope() {
    if constexpr (R != Round::kNearest) {
      saved = _mm_getcsr();
      constexpr u32 mode = R == Round::kZero ? 3u : R == Round::kDown ? 1u : 2u;
      _mm_setcsr((saved & ~0x6000u) | mode << 13);
      asm volatile("" ::: "memory");
    }
  }
  SW_INLINE ~RoundingScope() {
    if constexpr (R != Round::kNearest) {
      asm volatile("" ::: "memory");
      _mm_setcsr(saved);
    }
  }
  u32 saved = 0;
};

SW_INLINE Words<f32> flush(Words<f32> v) {
  auto bits = (Words<u32>)v;
  return (Words<f32>)((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
/// A subnormal number as a zero of its sign.
inline f64 flush(f64 v) { return __builtin_fabs(v) < DBL_MIN ? __builtin_copysign(0.0, v) : v; }
SW_INLINE Words<f32> saturate(Words<f32> v) {
  const Words<f32> zero = {}, one = splat<f32, kWords>(1.0f);
  return v > zero ? (v < one ? v : one) : zero;  // NaN gives +0
}
template <bool kFtz>
SW_INLINE Words<f32> in(Words<f32> v) {
  return kFtz ? flush(v) : v;
}
template <bool kFtz, bool kSat>
SW_INLINE Words<f32> out(Words<f32> v) {
  if (kFtz) v = flush(v);
  return kSat ? saturate(v) : v;
}

struct AddOp {
  template <class V>
  static SW_INLINE V eval(V a, V b, V) {
    return a + b;
  }
};
struct SubOp {
  template <class V>
  static SW_INLINE V eval(V a, V b, V) {
    return a - b;
  }
};
struct MulOp {
  template <class V>
  static SW_INLINE V eval(V a, V b, V) {
    return a * b;
  }
};
struct DivOp {
  template <class V>
  static SW_INLINE V eval(V a, V b, V) {
    return a / b;
  }
};
struct FmaOp {
  template <class V>
  static SW_INLINE V eval(V a, V b, V c) {
    return fma_v(a, b, c);
  }
};
struct RcpOp {
  template <class V>
  static SW_INLINE V eval(V a, V, V) {
    return 1 / a;
  }
};
struct SqrtOp {
  static SW_INLINE Words<f32> eval(Words<f32> a, Words<f32>, Words<f32>) {
#if defined(__AVX512F__)
    return (Words<f32>)_mm512_sqrt_ps((__m512)a);
#else
    Words<f32> r;
    for (int j = 0; j < kWords; ++j) r[j] = __builtin_sqrtf(a[j]);
    return r;
#endif
  }
  static SW_INLINE Longs<f64> eval(Longs<f64> a, Longs<f64>, Longs<f64>) {
    Longs<f64> r;
    for (int j = 0; j < kLongs; ++j) r[j] = __builtin_sqrt(a[j]);
    return r;
  }
};

template <bool M, class Op, class T, int kSources, Round R, bool kFtz, bool kSat>
const Inst* run_float(Strand& s, const Inst* i) {
  [[maybe_unused]] RoundingScope<R> scope;
  auto value = [](auto a, auto b, auto c) __attribute__((always_inline)) {
    if constexpr (sizeof(T) == 4) {
      return out<kFtz, kSat>(Op::eval(in<kFtz>(a), in<kFtz>(b), in<kFtz>(c)));
    } else {
      return Op::eval(a, b, c);
    }
  };
  if constexpr (kSources == 1) {
    return map<M, T, T>(
        s, i, [&](auto a) __attribute__((always_inline)) { return value(a, a, a); });
  } else if constexpr (kSources == 2) {
    return map<M, T, T, T>(
        s, i, [&](auto a, auto b) __attribute__((always_inline)) { return value(a, b, b); });
  } else {
    return map<M, T, T, T, T>(
        s, i, [&](auto a, auto b, auto c) __attribute__((always_inline)) { return value(a, b, c); });
  }
}

template <class Op, class T, int kSources, Round R, bool kFtz = false, bool kSat = false>
void add_float(const char* spelling, Pipe pipe) {
  static constexpr char f[] = {'f', 'f', kSources > 1 ? 'f' : char(0), kSources > 2 ? 'f' : char(0), 0};
  static constexpr char e[] = {'e', 'e', kSources > 1 ? 'e' : char(0), kSources > 2 ? 'e' : char(0), 0};
  // Directed rounding, flushing and fp64 are rare: one handler, always masked, keeps the code small.
  constexpr bool kMaskedOnly = R != Round::kNearest || kFtz || kSat || sizeof(T) == 8;
  add_row(spelling, sizeof(T) == 4 ? f : e, pipe, &run_float<kMaskedOnly, Op, T, kSources, R, kFtz, kSat>,
          &run_float<true, Op, T, kSources, R, kFtz, kSat>);
}

/// 2^x for one vector of doubles in [-200, 200]: exponent bits times a Taylor polynomial of degree 9 on
/// [-0.5, 0.5] (error below 2^-36), so that the float result is the exact one rounded, but for near ties.
SW_INLINE Longs<f64> exp2_double(Longs<f64> x) {
  const Longs<f64> magic = splat<f64, kLongs>(6755399441055744.0);  // 1.5 * 2^52: adding it rounds to integer
  auto shifted = x + magic;
  auto n = (Longs<i64>)shifted;
  auto t = (x - (shifted - magic)) * 0.693147180559945309417;
  Longs<f64> p = t * (1.0 / 362880) + 1.0 / 40320;
  p = fma_v(p, t, splat<f64, kLongs>(1.0 / 5040));
  p = fma_v(p, t, splat<f64, kLongs>(1.0 / 720));
  p = fma_v(p, t, splat<f64, kLongs>(1.0 / 120));
  p = fma_v(p, t, splat<f64, kLongs>(1.0 / 24));
  p = fma_v(p, t, splat<f64, kLongs>(1.0 / 6));
  p = fma_v(p, t, splat<f64, kLongs>(0.5));
  p = fma_v(p, t, splat<f64, kLongs>(1.0));
  p = fma_v(p, t, splat<f64, kLongs>(1.0));
  return (Longs<f64>)((Longs<i64>)p + (n << 52));
}
template <bool kFtz>
SW_INLINE Longs<f32> exp2_approx(Longs<f32> a) {
  const auto bound = splat<f32, kLongs>(200.0f);
  const auto c = a > bound ? bound : a < -bound ? -bound : a;
  auto r = to_floats(exp2_double(to_doubles(c)));
  if (kFtz) {
    auto bits = (Longs<u32>)r;
    r = (Longs<f32>)((bits & 0x7f800000u) == 0 ? bits & 0u : bits);
  }
  return a != a ? a : r;
}

/// log2 of a float, through atanh of (m-1)/(m+1) in double, m in [sqrt(1/2), sqrt(2)).
template <bool kFtz>
SW_INLINE Longs<f32> log2_approx(Longs<f32> a) {
  if (kFtz) {
    auto bits = (Longs<u32>)a;
    a = (Longs<f32>)((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
  }
  auto x = to_doubles(a);
  auto bits = (Longs<i64>)x;
  auto e = (bits - 0x3fe6a09e667f3bcdLL) >> 52;  // sqrt(1/2)
  auto m = (Longs<f64>)(bits - (e << 52));
  auto s = (m - 1.0) / (m + 1.0);
  auto z = s * s;
  Longs<f64> p = z * (1.0 / 17) + 1.0 / 15;
  p = fma_v(p, z, splat<f64, kLongs>(1.0 / 13));
  p = fma_v(p, z, splat<f64, kLongs>(1.0 / 11));
  p = fma_v(p, z, splat<f64, kLongs>(1.0 / 9));
  p = fma_v(p, z, splat<f64, kLongs>(1.0 / 7));
  p = fma_v(p, z, splat<f64, kLongs>(1.0 / 5));
  p = fma_v(p, z, splat<f64, kLongs>(1.0 / 3));
  p = fma_v(p, z, splat<f64, kLongs>(1.0));
  auto r = __builtin_convertvector(
      fma_v(p * s, splat<f64, kLongs>(2.88539008177792681472), __builtin_convertvector(e, Longs<f64>)),
      Longs<f32>);
  const auto zero = splat<f32, kLongs>(0.0f), inf = splat<f32, kLongs>(__builtin_inff());
  const auto nan = splat<f32, kLongs>(__builtin_nanf(""));
  return a == zero ? -inf : a == inf ? inf : a > zero ? r : nan;
}
SW_INLINE Longs<f32> rsqrt_approx(Longs<f32> a) {
  auto x = to_doubles(a);
  Longs<f64> r;
  for (int j = 0; j < kLongs; ++j) r[j] = 1.0 / __builtin_sqrt(x[j]);
  return to_floats(r);
}

/// f of a vector's halves, without the way through memory.
template <class F, std::size_t... K>
SW_INLINE Words<f32> of_halves(F f, Words<f32> a, std::index_sequence<K...>) {
  const Longs<f32> low = f(Longs<f32>{a[K]...}), high = f(Longs<f32>{a[K + kLongs]...});
  return Words<f32>{low[K]..., high[K]...};
}
/// A function of half a vector as one of a whole one.
#define SW_HALVES(FN)                                                         \
  [](auto a) __attribute__((always_inline)) {                                 \
    return of_halves(                                                         \
        [](Longs<f32> h) __attribute__((always_inline)) { return FN(h); }, a, \
        std::make_index_sequence<kLongs>{});                                  \
  }

template <bool kMax, bool kNan, class V>
SW_INLINE V extremum(V a, V b) {
  using I = decltype(a < b);
  auto ia = (I)a, ib = (I)b;
  V r = kMax ? (a > b ? a : b) : (a < b ? a : b);
  r = a == b ? (V)(kMax ? ia & ib : ia | ib) : r;  // orders +0 over -0
  if (kNan) {
    V nan = sizeof(a[0]) == 4 ? (V)(ia | I(ia | ~ia)) : (V)(ia | ~ia);
    const auto all = (I)nan;
    constexpr int sign = sizeof(a[0]) * 8 - 1;
    using Scalar = std::remove_reference_t<decltype(all[0])>;
    nan = (V)(all ^ (I{} + (Scalar)(Scalar(1) << sign)));  // 0x7fffffff
    return a != a ? nan : b != b ? nan : r;
  }
  return a != a ? b : b != b ? a : r;
}
template <class Op, int kSources>
void add_fp32_family(const char* plain, const char* ftz, const char* sat, const char* ftz_sat) {
  constexpr auto pipe = Pipe::kFp32;
  add_float<Op, f32, kSources, Round::kNearest>(plain, pipe);
  add_float<Op, f32, kSources, Round::kNearest, true>(ftz, pipe);
  add_float<Op, f32, kSources, Round::kNearest, false, true>(sat, pipe);
  add_float<Op, f32, kSources, Round::kNearest, true, true>(ftz_sat, pipe);
}
template <class Op, int kSources>
void add_fp32_directed(const char* rz, const char* rm, const char* rp, const char* rz_ftz, const char* rm_ftz,
                       const char* rp_ftz) {
  constexpr auto pipe = Pipe::kFp32;
  add_float<Op, f32, kSources, Round::kZero>(rz, pipe);
  add_float<Op, f32, kSources, Round::kDown>(rm, pipe);
  add_float<Op, f32, kSources, Round::kUp>(rp, pipe);
  add_float<Op, f32, kSources, Round::kZero, true>(rz_ftz, pipe);
  add_float<Op, f32, kSources, Round::kDown, true>(rm_ftz, pipe);
  add_float<Op, f32, kSources, Round::kUp, true>(rp_ftz, pipe);
}
template <class Op, int kSources>
void add_fp64_family(const char* rn, const char* rz, const char* rm, const char* rp) {
  add_float<Op, f64, kSources, Round::kNearest>(rn, Pipe::kFp64);
  add_float<Op, f64, kSources, Round::kZero>(rz, Pipe::kFp64);
  add_float<Op, f64, kSources, Round::kDown>(rm, Pipe::kFp64);
  add_float<Op, f64, kSources, Round::kUp>(rp, Pipe::kFp64);
}

void add_float_rows() {
  constexpr auto fp32 = Pipe::kFp32, mufu = Pipe::kMufu;
#define SW_FP32(OP, NAME, RN, N)                                                                          \
  add_fp32_family<OP, N>(NAME RN ".f32", NAME RN ".ftz.f32", NAME RN ".sat.f32", NAME RN ".ftz.sat.f32"); \
  add_fp32_directed<OP, N>(NAME ".rz.f32", NAME ".rm.f32", NAME ".rp.f32", NAME ".rz.ftz.f32",            \
                           NAME ".rm.ftz.f32", NAME ".rp.ftz.f32");                                       \
  add_fp64_family<OP, N>(NAME RN ".f64", NAME ".rz.f64", NAME ".rm.f64", NAME ".rp.f64")
  SW_FP32(AddOp, "add", "{,.rn}", 2);
  SW_FP32(SubOp, "sub", "{,.rn}", 2);
  SW_FP32(MulOp, "mul", "{,.rn}", 2);
  SW_FP32(FmaOp, "{fma,mad}", ".rn", 3);
#undef SW_FP32
#define SW_EXACT(OP, NAME, N)                                                                  \
  add_float<OP, f32, N, Round::kNearest>(NAME ".rn.f32", fp32);                                \
  add_float<OP, f32, N, Round::kNearest, true>(NAME ".rn.ftz.f32", fp32);                      \
  add_fp32_directed<OP, N>(NAME ".rz.f32", NAME ".rm.f32", NAME ".rp.f32", NAME ".rz.ftz.f32", \
                           NAME ".rm.ftz.f32", NAME ".rp.ftz.f32");                            \
  add_fp64_family<OP, N>(NAME ".rn.f64", NAME ".rz.f64", NAME ".rm.f64", NAME ".rp.f64")
  SW_EXACT(DivOp, "div", 2);
  SW_EXACT(RcpOp, "rcp", 1);
  SW_EXACT(SqrtOp, "sqrt", 1);
#undef SW_EXACT

  // Approximate instructions: the exact value rounded to nearest (div, rcp, sqrt), or within one ulp of it
  // (the others), which lies inside the bounds of the PTX ISA.
  add_float<DivOp, f32, 2, Round::kNearest>("div{.approx,.full}.f32", fp32);
  add_float<DivOp, f32, 2, Round::kNearest, true>("div{.approx,.full}.ftz.f32", fp32);
  add_float<RcpOp, f32, 1, Round::kNearest>("rcp.approx.f32", mufu);
  add_float<RcpOp, f32, 1, Round::kNearest, true>("rcp.approx.ftz.f32", mufu);
  add_float<SqrtOp, f32, 1, Round::kNearest>("sqrt.approx.f32", mufu);
  add_float<SqrtOp, f32, 1, Round::kNearest, true>("sqrt.approx.ftz.f32", mufu);
  add_cold<f64, f64>("rcp.approx.ftz.f64", SW_LANES1(f64, flush(1.0 / flush(f64(a)))));
  add<f32, f32>("rsqrt.approx.f32", SW_HALVES(rsqrt_approx), mufu);
  add_cold<f32, f32>(
      "rsqrt.approx.ftz.f32", [](auto a) { return flush(SW_HALVES(rsqrt_approx)(flush(a))); }, mufu);
  add_cold<f64, f64>("rsqrt.approx.f64", SW_LANES1(f64, 1.0 / __builtin_sqrt(a)));
  add_cold<f64, f64>("rsqrt.approx.ftz.f64", SW_LANES1(f64, 1.0 / __builtin_sqrt(flush(f64(a)))));
  add<f32, f32>("ex2.approx.f32", SW_HALVES(exp2_approx<false>), mufu);
  add<f32, f32>("ex2.approx.ftz.f32", SW_HALVES(exp2_approx<true>), mufu);
  add<f32, f32>("lg2.approx.f32", SW_HALVES(log2_approx<false>), mufu);
  add_cold<f32, f32>("lg2.approx.ftz.f32", SW_HALVES(log2_approx<true>), mufu);
  add_cold<f32, f32>("sin.approx.f32", SW_LANES1(f32, f32(sin(f64(a)))), mufu);
  add_cold<f32, f32>(
      "sin.approx.ftz.f32", [](auto a) { return flush(SW_LANES1(f32, f32(sin(f64(a))))(flush(a))); }, mufu);
  add_cold<f32, f32>("cos.approx{,.ftz}.f32", SW_LANES1(f32, f32(cos(f64(a)))), mufu);
  add_cold<f32, f32>("tanh.approx.f32", SW_LANES1(f32, f32(tanh(f64(a)))), mufu);

  add<u32, u32>("abs.f32", SW_F1(a & 0x7fffffffu), fp32, "ff");
  add_cold<f32, f32>("abs.ftz.f32", SW_F1(flush((Words<f32>)((Words<u32>)a & 0x7fffffffu))), fp32);
  add<u32, u32>("neg.f32", SW_F1(a ^ 0x80000000u), fp32, "ff");
  add_cold<f32, f32>("neg.ftz.f32", SW_F1(flush(-a)), fp32);
  add_cold<u64, u64>("abs.f64", SW_F1(a & 0x7fffffffffffffffull), Pipe::kFp64, "ee");
  add_cold<u64, u64>("neg.f64", SW_F1(a ^ 0x8000000000000000ull), Pipe::kFp64, "ee");
  add<u32, u32, u32>("copysign.f32", SW_F2((a & 0x80000000u) | (b & 0x7fffffffu)), fp32, "fff");
  add_cold<u64, u64, u64>("copysign.f64", SW_F2((a & 0x8000000000000000ull) | (b & 0x7fffffffffffffffull)),
                          Pipe::kInt32, "eee");
  add<f32, f32, f32>("max.f32", SW_F2((extremum<true, false>(a, b))), fp32);
  add<f32, f32, f32>("min.f32", SW_F2((extremum<false, false>(a, b))), fp32);
  add_cold<f32, f32, f32>("max.NaN.f32", SW_F2((extremum<true, true>(a, b))), fp32);
  add_cold<f32, f32, f32>("min.NaN.f32", SW_F2((extremum<false, true>(a, b))), fp32);
  add_cold<f32, f32, f32>("max.ftz.f32", SW_F2((extremum<true, false>(flush(a), flush(b)))), fp32);
  add_cold<f32, f32, f32>("min.ftz.f32", SW_F2((extremum<false, false>(flush(a), flush(b)))), fp32);
  add_cold<f32, f32, f32>("max.ftz.NaN.f32", SW_F2((extremum<true, true>(flush(a), flush(b)))), fp32);
  add_cold<f32, f32, f32>("min.ftz.NaN.f32", SW_F2((extremum<false, true>(flush(a), flush(b)))), fp32);
  add_cold<f64, f64, f64>("max.f64", SW_F2((extremum<true, false>(a, b))));
  add_cold<f64, f64, f64>("min.f64", SW_F2((extremum<false, false>(a, b))));
}

}  // namespace
}  // namespace stitchwork::sim
