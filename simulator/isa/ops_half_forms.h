// fp16 and bf16 instructions, on one value and on pairs.
#pragma once

#include "simulator/isa/ops_half.h"

namespace stitchwork::sim {
namespace {

/// Subnormal halves become zeros of their sign.
SW_INLINE Words<u32> flush_half(Words<u32> h) { return (h & 0x7c00u) == 0 ? h & 0x8000u : h; }
template <bool kFtz>
SW_INLINE Words<u32> in16(Words<u32> h) {
  return kFtz ? flush_half(h) : h;
}
SW_INLINE Words<f32> relu(Words<f32> v) {
  const Words<f32> zero = {};
  return v != v ? v : v > zero ? v : zero;
}
/// The larger or smaller magnitude with the exclusive or of the signs.
template <bool kMax, bool kNan>
SW_INLINE Words<f32> xorsign_extremum(Words<f32> a, Words<f32> b) {
  const auto sign = ((Words<u32>)a ^ (Words<u32>)b) & 0x80000000u;
  const auto magnitude = extremum<kMax, kNan>((Words<f32>)((Words<u32>)a & 0x7fffffffu),
                                              (Words<f32>)((Words<u32>)b & 0x7fffffffu));
  return magnitude != magnitude ? magnitude : (Words<f32>)((Words<u32>)magnitude | sign);
}

/// Rows NAME.T and NAME.Tx2 of an expression in 16-bit lanes a, b, c.
#define SW_HALF1(NAME, T, ...)                                                                             \
  {                                                                                                        \
    auto f = [](auto a) __attribute__((always_inline)) { return __VA_ARGS__; };                            \
    add_cold<u32, u32>(NAME "." T, f, Pipe::kHalf2, "xx");                                                 \
    add_cold<u32, u32>(                                                                                    \
        NAME "." T "x2", [](auto a) __attribute__((always_inline)) { return pairwise(decltype(f){}, a); }, \
        Pipe::kHalf2, "rr");                                                                               \
  }
#define SW_HALF2(NAME, T, ...)                                                                       \
  {                                                                                                  \
    auto f = [](auto a, auto b) __attribute__((always_inline)) { return __VA_ARGS__; };              \
    add_cold<u32, u32, u32>(NAME "." T, f, Pipe::kHalf2, "xxx");                                     \
    add_cold<u32, u32, u32>(                                                                         \
        NAME "." T "x2",                                                                             \
        [](auto a, auto b) __attribute__((always_inline)) { return pairwise(decltype(f){}, a, b); }, \
        Pipe::kHalf2, "rrr");                                                                        \
  }
#define SW_HALF3(NAME, T, ...)                                                                  \
  {                                                                                             \
    auto f = [](auto a, auto b, auto c) __attribute__((always_inline)) { return __VA_ARGS__; }; \
    add_cold<u32, u32, u32, u32>(NAME "." T, f, Pipe::kHalf2, "xxxx");                          \
    add_cold<u32, u32, u32, u32>(                                                               \
        NAME "." T "x2", [](auto a, auto b, auto c) __attribute__((always_inline)) {            \
          return pairwise(decltype(f){}, a, b, c);                                              \
        },                                                                                      \
        Pipe::kHalf2, "rrrr");                                                                  \
  }

/// What both formats have. X: the format, T: its PTX name.
#define SW_HALF_COMMON(X, T)                                                                             \
  SW_HALF2("add{,.rn}", T, X::narrow(X::widen(a) + X::widen(b)))                                         \
  SW_HALF2("sub{,.rn}", T, X::narrow(X::widen(a) - X::widen(b)))                                         \
  SW_HALF2("mul{,.rn}", T, X::narrow(X::widen(a) * X::widen(b)))                                         \
  SW_HALF3("fma.rn", T, X::narrow(fma_round_odd(X::widen(a), X::widen(b), X::widen(c))))                 \
  SW_HALF3("fma.rn.relu", T, X::narrow(relu(fma_round_odd(X::widen(a), X::widen(b), X::widen(c)))))      \
  SW_HALF2("max", T, X::narrow(extremum<true, false>(X::widen(a), X::widen(b))))                         \
  SW_HALF2("min", T, X::narrow(extremum<false, false>(X::widen(a), X::widen(b))))                        \
  SW_HALF2("max.NaN", T, X::narrow(extremum<true, true>(X::widen(a), X::widen(b))))                      \
  SW_HALF2("min.NaN", T, X::narrow(extremum<false, true>(X::widen(a), X::widen(b))))                     \
  SW_HALF2("max.xorsign.abs", T, X::narrow(xorsign_extremum<true, false>(X::widen(a), X::widen(b))))     \
  SW_HALF2("min.xorsign.abs", T, X::narrow(xorsign_extremum<false, false>(X::widen(a), X::widen(b))))    \
  SW_HALF2("max.NaN.xorsign.abs", T, X::narrow(xorsign_extremum<true, true>(X::widen(a), X::widen(b))))  \
  SW_HALF2("min.NaN.xorsign.abs", T, X::narrow(xorsign_extremum<false, true>(X::widen(a), X::widen(b)))) \
  SW_HALF1("abs", T, a & 0x7fffu)                                                                        \
  SW_HALF1("neg", T, a ^ 0x8000u)                                                                        \
  SW_HALF1("tanh.approx", T, X::narrow(SW_LANES1(f32, f32(tanh(f64(a))))(X::widen(a))))

void add_half_rows() {
  using H = HalfFormat;
  SW_HALF_COMMON(HalfFormat, "f16")
  SW_HALF_COMMON(Bf16Format, "bf16")
  SW_HALF1("ex2.approx", "f16", H::narrow(SW_HALVES(exp2_approx<false>)(H::widen(a))))
  SW_HALF1("ex2.approx.ftz", "bf16",
           Bf16Format::narrow(flush(SW_HALVES(exp2_approx<true>)(flush(Bf16Format::widen(a))))))
#define SW_SAT_FTZ(SUFFIX, FTZ, SAT)                                                               \
  SW_HALF2("add{,.rn}" SUFFIX, "f16",                                                              \
           in16<FTZ>(H::narrow(out<false, SAT>(H::widen(in16<FTZ>(a)) + H::widen(in16<FTZ>(b)))))) \
  SW_HALF2("sub{,.rn}" SUFFIX, "f16",                                                              \
           in16<FTZ>(H::narrow(out<false, SAT>(H::widen(in16<FTZ>(a)) - H::widen(in16<FTZ>(b)))))) \
  SW_HALF2("mul{,.rn}" SUFFIX, "f16",                                                              \
           in16<FTZ>(H::narrow(out<false, SAT>(H::widen(in16<FTZ>(a)) * H::widen(in16<FTZ>(b)))))) \
  SW_HALF3("fma.rn" SUFFIX, "f16",                                                                 \
           in16<FTZ>(H::narrow(out<false, SAT>(                                                    \
               fma_round_odd(H::widen(in16<FTZ>(a)), H::widen(in16<FTZ>(b)), H::widen(in16<FTZ>(c)))))))
  SW_SAT_FTZ(".sat", false, true)
  SW_SAT_FTZ(".ftz", true, false)
  SW_SAT_FTZ(".ftz.sat", true, true)
#undef SW_SAT_FTZ
  SW_HALF3("fma.rn.ftz.relu", "f16",
           in16<true>(H::narrow(relu(
               fma_round_odd(H::widen(in16<true>(a)), H::widen(in16<true>(b)), H::widen(in16<true>(c)))))))
#define SW_FTZ_EXTREMUM(SUFFIX, MAX, NAN_) \
  SW_HALF2(SUFFIX, "f16", H::narrow(extremum<MAX, NAN_>(H::widen(in16<true>(a)), H::widen(in16<true>(b)))))
  SW_FTZ_EXTREMUM("max.ftz", true, false)
  SW_FTZ_EXTREMUM("min.ftz", false, false)
  SW_FTZ_EXTREMUM("max.ftz.NaN", true, true)
  SW_FTZ_EXTREMUM("min.ftz.NaN", false, true)
#undef SW_FTZ_EXTREMUM
  SW_HALF1("abs.ftz", "f16", flush_half(a) & 0x7fffu)
  SW_HALF1("neg.ftz", "f16", flush_half(a) ^ 0x8000u)
}

#undef SW_HALF_COMMON
#undef SW_HALF1
#undef SW_HALF2
#undef SW_HALF3

}  // namespace
}  // namespace stitchwork::sim
