// cvt between integers, and between integers, fp32 and fp64.
#pragma once

#include "simulator/isa/ops_compare.h"

namespace stitchwork::sim {
namespace {

template <class T>
constexpr T lowest_of() {
  return T(-1) < T(0) ? T(T(1) << (sizeof(T) * 8 - 1)) : T(0);
}
template <class T>
constexpr T highest_of() {
  return T(~lowest_of<T>());
}

/// A register lane holding a T: 16-bit registers are kept zero-extended.
template <class T>
using LaneOf = std::conditional_t<sizeof(T) == 8, u64, u32>;
template <class T>
constexpr u64 register_bits(T v) {
  return sizeof(T) == 1 && T(-1) < T(0) ? u64(std::uint16_t(std::int16_t(v)))
         : sizeof(T) <= 2               ? u64(std::make_unsigned_t<T>(v))
                                        : u64(v);
}

/// Float to integer after rounding to integral: saturates; NaN gives 0.
template <class T, class F>
SW_INLINE T clamp_to(F v) {
  if (v != v) return 0;
  constexpr F low = F(lowest_of<T>());
  constexpr F high = F(highest_of<T>());  // may round up to 2^n; then >= catches it
  if (v <= low) return lowest_of<T>();
  if (v >= high) return highest_of<T>();
  return T(v);
}

template <Round R, class F>
SW_INLINE F round_integral(F v) {
  if constexpr (sizeof(F) == 4) {
    return R == Round::kNearest ? __builtin_rintf(v)
           : R == Round::kZero  ? __builtin_truncf(v)
           : R == Round::kDown  ? __builtin_floorf(v)
                                : __builtin_ceilf(v);
  } else {
    return R == Round::kNearest ? __builtin_rint(v)
           : R == Round::kZero  ? __builtin_trunc(v)
           : R == Round::kDown  ? __builtin_floor(v)
                                : __builtin_ceil(v);
  }
}

/// integer D <- integer S; a negative value saturates against an unsigned type under .sat, which only those
/// take that have something to saturate (PTX ISA, cvt).
template <class D, class S, bool kSat>
void add_int_convert(const char* name, const char* signature) {
  if (kSat && std::cmp_less_equal(lowest_of<D>(), lowest_of<S>()) &&
      std::cmp_greater_equal(highest_of<D>(), highest_of<S>()))
    return;
  add_cold<LaneOf<D>, LaneOf<S>>(
      name,
      SW_LANES1(LaneOf<D>,
                [](S v) -> LaneOf<D> {
                  if constexpr (kSat) {
                    const __int128 x = v;
                    const __int128 low = lowest_of<D>(), high = highest_of<D>();
                    return LaneOf<D>(register_bits<D>(D(x < low ? low : x > high ? high : x)));
                  } else {
                    return LaneOf<D>(register_bits<D>(D(v)));
                  }
                }(S(a))),
      Pipe::kInt32, signature);
}
template <bool kFtz>
SW_INLINE f32 flush_number(f32 v) {
  return kFtz && __builtin_fabsf(v) < FLT_MIN ? __builtin_copysignf(0, v) : v;
}
template <bool kFtz>
SW_INLINE f64 flush_number(f64 v) {
  return v;
}
template <bool kSat, class F>
SW_INLINE F saturate_number(F v) {
  return !kSat ? v : v > 0 ? (v < 1 ? v : F(1)) : F(0);  // NaN gives +0
}
template <class D, class F, Round R, bool kFtz = false>
void add_float_to_int(const char* name, const char* signature) {
  add_cold<LaneOf<D>, F>(
      name,
      SW_LANES1(LaneOf<D>,
                LaneOf<D>(register_bits<D>(clamp_to<D>(round_integral<R>(flush_number<kFtz>(a)))))),
      sizeof(F) == 4 ? Pipe::kFp32 : Pipe::kFp64, signature);
}
template <bool M, class F, class S, Round R>
const Inst* run_int_to_float(Strand& s, const Inst* i) {
  RoundingScope<R> scope;
  return map<M, F, LaneOf<S>>(
      s, i, [](auto a) __attribute__((always_inline)) {
        constexpr int N = sizeof(a) / sizeof(a[0]);
        if constexpr (sizeof(S) == 4 && sizeof(F) == 4) {
          return __builtin_convertvector((vec<S, N>)a, vec<F, N>);
        } else {
          vec<F, N> r;
          for (int j = 0; j < N; ++j) r[j] = F(S(a[j]));
          return r;
        }
      });
}
template <class F, class S, Round R>
void add_int_to_float(const char* name, const char* signature) {
  add_row(name, signature, sizeof(F) == 4 ? Pipe::kFp32 : Pipe::kFp64, &run_int_to_float<true, F, S, R>,
          &run_int_to_float<true, F, S, R>);
}
/// Under .sat an integer becomes 0 or 1, which no mode of rounding changes.
template <class F, class S>
void add_int_to_unit(const char* name, const char* signature) {
  add_cold<F, LaneOf<S>>(name, SW_LANES1(F, F(S(a) > 0)), sizeof(F) == 4 ? Pipe::kFp32 : Pipe::kFp64,
                         signature);
}

/// f32 <- f64: the modifiers are f32's.
template <bool M, Round R, bool kFtz, bool kSat>
const Inst* run_narrow(Strand& s, const Inst* i) {
  RoundingScope<R> scope;
  return map<M, f32, f64>(
      s, i, [](auto a) __attribute__((always_inline)) {
        Longs<f32> r = __builtin_convertvector(a, Longs<f32>);
        if constexpr (kFtz || kSat)
          for (int j = 0; j < kLongs; ++j) r[j] = saturate_number<kSat>(flush_number<kFtz>(r[j]));
        return r;
      });
}
template <Round R, bool kFtz, bool kSat>
void add_narrow(const char* name) {
  add_row(name, "fe", Pipe::kFp64, &run_narrow<false, R, kFtz, kSat>, &run_narrow<true, R, kFtz, kSat>);
}
template <Round R>
void add_narrows(const char* const (&names)[4]) {
  add_narrow<R, false, false>(names[0]);
  add_narrow<R, true, false>(names[1]);
  add_narrow<R, false, true>(names[2]);
  add_narrow<R, true, true>(names[3]);
}

#define SW_INT_TYPES(X, ...)                \
  X(std::uint8_t, "u8", "h", __VA_ARGS__)   \
  X(std::int8_t, "s8", "h", __VA_ARGS__)    \
  X(std::uint16_t, "u16", "h", __VA_ARGS__) \
  X(std::int16_t, "s16", "h", __VA_ARGS__)  \
  X(u32, "u32", "r", __VA_ARGS__)           \
  X(i32, "s32", "r", __VA_ARGS__)           \
  X(u64, "u64", "d", __VA_ARGS__)           \
  X(i64, "s64", "d", __VA_ARGS__)

template <class S>
void add_converts_from(const char* const (&names)[16]) {
  constexpr bool wide = sizeof(S) == 8, narrow = sizeof(S) <= 2;
  const char* to16 = wide ? "hd" : narrow ? "hh" : "hr";
  const char* to32 = wide ? "rd" : narrow ? "rh" : "rr";
  const char* to64 = wide ? "dd" : narrow ? "dh" : "dr";
  add_int_convert<std::uint8_t, S, false>(names[0], to16);
  add_int_convert<std::int8_t, S, false>(names[1], to16);
  add_int_convert<std::uint16_t, S, false>(names[2], to16);
  add_int_convert<std::int16_t, S, false>(names[3], to16);
  if constexpr (sizeof(S) != 8) {  // the others are in add_convert_rows
    add_int_convert<u32, S, false>(names[4], to32);
    add_int_convert<i32, S, false>(names[5], to32);
  }
  if constexpr (sizeof(S) != 4) {
    add_int_convert<u64, S, false>(names[6], to64);
    add_int_convert<i64, S, false>(names[7], to64);
  }
  add_int_convert<std::uint8_t, S, true>(names[8], to16);
  add_int_convert<std::int8_t, S, true>(names[9], to16);
  add_int_convert<std::uint16_t, S, true>(names[10], to16);
  add_int_convert<std::int16_t, S, true>(names[11], to16);
  add_int_convert<u32, S, true>(names[12], to32);
  add_int_convert<i32, S, true>(names[13], to32);
  add_int_convert<u64, S, true>(names[14], to64);
  add_int_convert<i64, S, true>(names[15], to64);
}

/// Conversions that address arithmetic and common kernels use, for each vector width.
void add_convert_rows() {
  constexpr auto fp32 = Pipe::kFp32;
  add<u32, u64>("cvt{.u32,.s32}{.u64,.s64}", SW_F1(__builtin_convertvector(a, Longs<u32>)));
  add<u64, u32>("cvt{.u64,.s64}.u32", SW_F1(__builtin_convertvector(a, Longs<u64>)));
  add<u64, u32>("cvt{.u64,.s64}.s32", SW_F1(__builtin_convertvector((Longs<i32>)a, Longs<i64>)));
  add<f32, u32>("cvt.rn{,.ftz}.f32.u32", SW_F1(__builtin_convertvector(a, Words<f32>)), fp32);
  add<f32, i32>("cvt.rn{,.ftz}.f32.s32", SW_F1(__builtin_convertvector(a, Words<f32>)), fp32);
  add<f32, f32>("cvt.sat.f32.f32", SW_F1(saturate(a)), fp32);
  add<f32, f32>("cvt.f32.f32", SW_F1(a), fp32);
  add<f64, f32>("cvt.f64.f32", SW_F1(__builtin_convertvector(a, Longs<f64>)));
  add<u32, f32>("cvt.rn.f16.f32", SW_F1(float_to_half(a)), Pipe::kOther, "xf");
  add<u32, f32>("cvt.rn.bf16.f32", SW_F1(float_to_bf16(a)), Pipe::kOther, "xf");
  add<u32, u32>("cvt.f32.f16", SW_F1((Words<u32>)half_to_float(a)), Pipe::kOther, "fx");
  add<u32, u32>("cvt.f32.bf16", SW_F1((Words<u32>)bf16_to_float(a)), Pipe::kOther, "fx");
}

/// All others: compiled once, for any processor.
void add_rare_convert_rows() {
#define SW_FROM(S, TEXT, LETTER, ...)                                                                      \
  add_converts_from<S>({"cvt.u8." TEXT, "cvt.s8." TEXT, "cvt.u16." TEXT, "cvt.s16." TEXT, "cvt.u32." TEXT, \
                        "cvt.s32." TEXT, "cvt.u64." TEXT, "cvt.s64." TEXT, "cvt.sat.u8." TEXT,             \
                        "cvt.sat.s8." TEXT, "cvt.sat.u16." TEXT, "cvt.sat.s16." TEXT, "cvt.sat.u32." TEXT, \
                        "cvt.sat.s32." TEXT, "cvt.sat.u64." TEXT, "cvt.sat.s64." TEXT});                   \
  if constexpr (sizeof(S) != 4)                                                                            \
    add_int_to_float<f32, S, Round::kNearest>("cvt.rn{,.ftz}.f32." TEXT, "f" LETTER);                      \
  add_int_to_float<f32, S, Round::kZero>("cvt.rz{,.ftz}.f32." TEXT, "f" LETTER);                           \
  add_int_to_float<f32, S, Round::kDown>("cvt.rm{,.ftz}.f32." TEXT, "f" LETTER);                           \
  add_int_to_float<f32, S, Round::kUp>("cvt.rp{,.ftz}.f32." TEXT, "f" LETTER);                             \
  add_int_to_unit<f32, S>("cvt.{rn,rz,rm,rp}{.sat,.ftz.sat}.f32." TEXT, "f" LETTER);                       \
  add_int_to_unit<f64, S>("cvt.{rn,rz,rm,rp}.sat.f64." TEXT, "e" LETTER);                                  \
  add_int_to_float<f64, S, Round::kNearest>("cvt.rn.f64." TEXT, "e" LETTER);                               \
  add_int_to_float<f64, S, Round::kZero>("cvt.rz.f64." TEXT, "e" LETTER);                                  \
  add_int_to_float<f64, S, Round::kDown>("cvt.rm.f64." TEXT, "e" LETTER);                                  \
  add_int_to_float<f64, S, Round::kUp>("cvt.rp.f64." TEXT, "e" LETTER);                                    \
  add_float_to_int<S, f32, Round::kNearest>("cvt.rni{,.sat}." TEXT ".f32", LETTER "f");                    \
  add_float_to_int<S, f32, Round::kNearest, true>("cvt.rni{.ftz,.ftz.sat}." TEXT ".f32", LETTER "f");      \
  add_float_to_int<S, f32, Round::kZero>("cvt.rzi{,.sat}." TEXT ".f32", LETTER "f");                       \
  add_float_to_int<S, f32, Round::kZero, true>("cvt.rzi{.ftz,.ftz.sat}." TEXT ".f32", LETTER "f");         \
  add_float_to_int<S, f32, Round::kDown>("cvt.rmi{,.sat}." TEXT ".f32", LETTER "f");                       \
  add_float_to_int<S, f32, Round::kDown, true>("cvt.rmi{.ftz,.ftz.sat}." TEXT ".f32", LETTER "f");         \
  add_float_to_int<S, f32, Round::kUp>("cvt.rpi{,.sat}." TEXT ".f32", LETTER "f");                         \
  add_float_to_int<S, f32, Round::kUp, true>("cvt.rpi{.ftz,.ftz.sat}." TEXT ".f32", LETTER "f");           \
  add_float_to_int<S, f64, Round::kNearest>("cvt.rni{,.sat}." TEXT ".f64", LETTER "e");                    \
  add_float_to_int<S, f64, Round::kZero>("cvt.rzi{,.sat}." TEXT ".f64", LETTER "e");                       \
  add_float_to_int<S, f64, Round::kDown>("cvt.rmi{,.sat}." TEXT ".f64", LETTER "e");                       \
  add_float_to_int<S, f64, Round::kUp>("cvt.rpi{,.sat}." TEXT ".f64", LETTER "e");
  SW_INT_TYPES(SW_FROM, 0)
#undef SW_FROM

  constexpr auto fp32 = Pipe::kFp32;
#define SW_INTEGRAL(MODE, R)                                                                                 \
  add_cold<f32, f32>("cvt." MODE ".f32.f32", SW_LANES1(f32, round_integral<R>(a)), fp32);                    \
  add_cold<f32, f32>(                                                                                        \
      "cvt." MODE ".ftz.f32.f32", [](auto a) { return SW_LANES1(f32, round_integral<R>(a))(flush(a)); },     \
      fp32);                                                                                                 \
  add_cold<f32, f32>("cvt." MODE ".sat.f32.f32",                                                             \
                     SW_LANES1(f32, saturate_number<true>(round_integral<R>(a))), fp32);                     \
  add_cold<f32, f32>("cvt." MODE ".ftz.sat.f32.f32",                                                         \
                     SW_LANES1(f32, saturate_number<true>(round_integral<R>(flush_number<true>(a)))), fp32); \
  add_cold<f64, f64>("cvt." MODE ".f64.f64", SW_LANES1(f64, round_integral<R>(a)));                          \
  add_cold<f64, f64>("cvt." MODE ".sat.f64.f64", SW_LANES1(f64, saturate_number<true>(round_integral<R>(a))));
  SW_INTEGRAL("rni", Round::kNearest)
  SW_INTEGRAL("rzi", Round::kZero)
  SW_INTEGRAL("rmi", Round::kDown)
  SW_INTEGRAL("rpi", Round::kUp)
#undef SW_INTEGRAL
  add_cold<f32, f32>("cvt{.sat.ftz,.ftz.sat}.f32.f32", SW_F1(saturate(flush(a))), fp32);
  add_cold<f32, f32>("cvt.ftz.f32.f32", SW_F1(flush(a)), fp32);
  add_cold<f64, f64>("cvt.f64.f64", SW_F1(a));
  add_cold<f64, f64>("cvt.sat.f64.f64", SW_LANES1(f64, saturate_number<true>(a)));
  add_cold<f64, f32>("cvt.ftz.f64.f32", SW_LANES1(f64, f64(flush_number<true>(a))));
  add_cold<f64, f32>("cvt.sat.f64.f32", SW_LANES1(f64, f64(saturate_number<true>(a))));
  add_cold<f64, f32>("cvt.ftz.sat.f64.f32",
                     SW_LANES1(f64, f64(saturate_number<true>(flush_number<true>(a)))));
#define SW_NARROW(MODE, R)                                                                        \
  add_narrows<R>({"cvt." MODE ".f32.f64", "cvt." MODE ".ftz.f32.f64", "cvt." MODE ".sat.f32.f64", \
                  "cvt." MODE ".ftz.sat.f32.f64"});
  SW_NARROW("rn", Round::kNearest)
  SW_NARROW("rz", Round::kZero)
  SW_NARROW("rm", Round::kDown)
  SW_NARROW("rp", Round::kUp)
#undef SW_NARROW
}

}  // namespace
}  // namespace stitchwork::sim
