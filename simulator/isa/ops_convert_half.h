// cvt to and from fp16, bf16, tf32 and fp8.
#pragma once

#include "simulator/isa/ops_convert.h"

namespace stitchwork::sim {
namespace {

f64 half_number(u32 bits) { return half_to_float(splat<u32, kWords>(bits & 0xffff))[0]; }
f64 bf16_number(u32 bits) { return bf16_to_float(splat<u32, kWords>(bits & 0xffff))[0]; }

/// fp8 of either kind, saturating to the largest finite value. e4m3 has no infinities: its largest mantissa
/// of the largest exponent is NaN, all others are numbers.
u32 round_to_e5m2(f64 v) {
  const u32 r = round_to_format<5, 2>(v, Round::kNearest);
  return v == v && (r & 0x7f) >= 0x7c ? (r & 0x80) | 0x7b : v == v ? r : 0x7f;
}
u32 round_to_e4m3(f64 v) {
  if (v != v) return 0x7f;
  const f64 m = __builtin_fabs(v);
  const u32 sign = __builtin_signbit(v) ? 0x80 : 0;
  if (m >= 448) return sign | 0x7e;
  // As a format with one more exponent bit, whose field is moved down by the difference of the biases.
  const u32 wide = round_to_format<5, 3>(m < 0x1p-6 ? 0 : m, Round::kNearest);
  if (m >= 0x1p-6) return sign | (wide - (8u << 3));
  const f64 scaled = m * 512;  // subnormals are multiples of 2^-9
  u32 n = u32(scaled);
  const f64 rest = scaled - n;
  n += rest > 0.5 || (rest == 0.5 && (n & 1));
  return sign | n;
}
f64 e5m2_number(u32 bits) { return half_number(bits << 8); }
f64 e4m3_number(u32 bits) {
  const u32 exponent = bits >> 3 & 15, mantissa = bits & 7;
  if ((bits & 0x7f) == 0x7f) return __builtin_nan("");
  const f64 m = exponent == 0 ? mantissa * 0x1p-9 : __builtin_ldexp(8 + mantissa, int(exponent) - 10);
  return bits & 0x80 ? -m : m;
}
f64 relu_number(f64 v) { return v != v ? v : v > 0 ? v : 0; }

void add_convert_half_rows() {
  const auto other = Pipe::kOther, fp64 = Pipe::kFp64;
#define SW_ROUNDINGS(X, ...)            \
  X("rn", Round::kNearest, __VA_ARGS__) \
  X("rz", Round::kZero, __VA_ARGS__)    \
  X("rm", Round::kDown, __VA_ARGS__)    \
  X("rp", Round::kUp, __VA_ARGS__)
#define SW_FROM_INT(R, ROUND, S, TEXT, LETTER)                                                               \
  add_cold<u32, LaneOf<S>>("cvt." R ".f16." TEXT, SW_LANES1(u32, round_to_half(to_odd_double(S(a)), ROUND)), \
                           other, "x" LETTER);                                                               \
  add_cold<u32, LaneOf<S>>("cvt." R ".bf16." TEXT,                                                           \
                           SW_LANES1(u32, round_to_bf16(to_odd_double(S(a)), ROUND)), other, "x" LETTER);    \
  add_cold<u32, LaneOf<S>>("cvt." R ".sat.f16." TEXT, SW_LANES1(u32, S(a) > 0 ? 0x3c00u : 0u), other,        \
                           "x" LETTER);                                                                      \
  add_cold<LaneOf<S>, u32>(                                                                                  \
      "cvt." R "i{,.sat}." TEXT ".f16",                                                                      \
      SW_LANES1(LaneOf<S>, LaneOf<S>(register_bits<S>(clamp_to<S>(round_integral<ROUND>(half_number(a)))))), \
      other, LETTER "x");                                                                                    \
  add_cold<LaneOf<S>, u32>(                                                                                  \
      "cvt." R "i{,.sat}." TEXT ".bf16",                                                                     \
      SW_LANES1(LaneOf<S>, LaneOf<S>(register_bits<S>(clamp_to<S>(round_integral<ROUND>(bf16_number(a)))))), \
      other, LETTER "x");
#define SW_INTEGER(S, TEXT, LETTER, ...) SW_ROUNDINGS(SW_FROM_INT, S, TEXT, LETTER)
  SW_INT_TYPES(SW_INTEGER, 0)
#undef SW_INTEGER
#undef SW_FROM_INT
#define SW_FROM_FLOAT(R, ROUND, ...)                                                                      \
  add_cold<u32, f64>("cvt." R ".f16.f64", SW_LANES1(u32, round_to_half(a, ROUND)), fp64, "xe");           \
  add_cold<u32, f64>("cvt." R ".sat.f16.f64",                                                             \
                     SW_LANES1(u32, round_to_half(saturate_number<true>(a), ROUND)), fp64, "xe");         \
  add_cold<u32, f64>("cvt." R ".bf16.f64", SW_LANES1(u32, round_to_bf16(a, ROUND)), fp64, "xe");          \
  add_cold<u32, u32>("cvt." R ".f16.bf16", SW_LANES1(u32, round_to_half(bf16_number(a), ROUND)), other,   \
                     "xx");                                                                               \
  add_cold<u32, u32>("cvt." R ".sat.f16.bf16",                                                            \
                     SW_LANES1(u32, round_to_half(saturate_number<true>(bf16_number(a)), ROUND)), other,  \
                     "xx");                                                                               \
  add_cold<u32, u32>("cvt." R ".bf16.f16", SW_LANES1(u32, round_to_bf16(half_number(a), ROUND)), other,   \
                     "xx");                                                                               \
  add_cold<u32, u32>("cvt." R "i.f16.f16",                                                                \
                     SW_LANES1(u32, round_to_half(round_integral<ROUND>(half_number(a)))), other, "xx");  \
  add_cold<u32, u32>(                                                                                     \
      "cvt." R "i.sat.f16.f16",                                                                           \
      SW_LANES1(u32, round_to_half(saturate_number<true>(round_integral<ROUND>(half_number(a))))), other, \
      "xx");                                                                                              \
  add_cold<u32, u32>("cvt." R "i.bf16.bf16",                                                              \
                     SW_LANES1(u32, round_to_bf16(round_integral<ROUND>(bf16_number(a)))), other, "xx");
  SW_ROUNDINGS(SW_FROM_FLOAT, 0)
#undef SW_FROM_FLOAT
#define SW_NARROW(R, ROUND, ...)                                                                 \
  add_cold<u32, f32>("cvt." R ".f16.f32", SW_LANES1(u32, round_to_half(a, ROUND)), other, "xf"); \
  add_cold<u32, f32>("cvt." R ".bf16.f32", SW_LANES1(u32, round_to_bf16(a, ROUND)), other, "xf");
  SW_NARROW("rz", Round::kZero)
  SW_NARROW("rm", Round::kDown)
  SW_NARROW("rp", Round::kUp)
#undef SW_NARROW
#define SW_NARROW(R, ROUND, ...)                                                                            \
  add_cold<u32, f32>("cvt." R ".sat.f16.f32",                                                               \
                     SW_LANES1(u32, round_to_half(saturate_number<true>(a), ROUND)), other, "xf");          \
  add_cold<u32, f32>("cvt." R ".ftz.sat.f16.f32",                                                           \
                     SW_LANES1(u32, round_to_half(saturate_number<true>(flush_number<true>(a)), ROUND)),    \
                     other, "xf");                                                                          \
  add_cold<u32, f32>("cvt." R ".ftz.f16.f32", SW_LANES1(u32, round_to_half(flush_number<true>(a), ROUND)),  \
                     other, "xf");                                                                          \
  add_cold<u32, f32>("cvt." R ".ftz.bf16.f32", SW_LANES1(u32, round_to_bf16(flush_number<true>(a), ROUND)), \
                     other, "xf");
  SW_ROUNDINGS(SW_NARROW, 0)
#undef SW_NARROW
#undef SW_ROUNDINGS
  // No half is as small as a subnormal float; bf16 has float's subnormals.
  add_cold<u32, u32>("cvt.ftz.f32.f16", SW_F1((Words<u32>)half_to_float(a)), other, "fx");
  add_cold<u32, u32>("cvt{.sat,.ftz.sat}.f32.f16", SW_F1((Words<u32>)saturate(half_to_float(a))), other,
                     "fx");
  add_cold<u32, u32>("cvt.ftz.f32.bf16", SW_F1((Words<u32>)flush(bf16_to_float(a))), other, "fx");
  add_cold<u32, u32>("cvt.sat.f32.bf16", SW_F1((Words<u32>)saturate(bf16_to_float(a))), other, "fx");
  add_cold<u32, u32>("cvt.ftz.sat.f32.bf16", SW_F1((Words<u32>)saturate(flush(bf16_to_float(a)))), other,
                     "fx");
  add_cold<u32, u32>("cvt.f16.f16", SW_F1(float_to_half(half_to_float(a))), other, "xx");
  add_cold<f64, u32>("cvt.sat.f64.f16", SW_LANES1(f64, saturate_number<true>(half_number(a))), fp64, "ex");
  add_cold<f64, u32>("cvt.sat.f64.bf16", SW_LANES1(f64, saturate_number<true>(bf16_number(a))), fp64, "ex");
  add_cold<f64, u32>("cvt.f64.f16", SW_LANES1(f64, half_number(a)), fp64, "ex");
  add_cold<f64, u32>("cvt.f64.bf16", SW_LANES1(f64, bf16_number(a)), fp64, "ex");
  add_cold<u32, u32>("cvt.sat.f16.f16", SW_F1(float_to_half(saturate(half_to_float(a)))), other, "xx");
  // Two floats into a pair: the first operand is the upper half.
#define SW_PAIR(TYPE, ROUNDED, ROUND)                                                                       \
  add_cold<u32, f32, f32>("cvt.rn." TYPE "x2.f32", SW_LANES2(u32, ROUNDED(a) << 16 | ROUNDED(b)), other,    \
                          "rff");                                                                           \
  add_cold<u32, f32, f32>("cvt.rn.relu." TYPE "x2.f32",                                                     \
                          SW_LANES2(u32, ROUNDED(relu_number(a)) << 16 | ROUNDED(relu_number(b))), other,   \
                          "rff");                                                                           \
  add_cold<u32, f32, f32>("cvt.rz." TYPE "x2.f32",                                                          \
                          SW_LANES2(u32, ROUNDED(a, Round::kZero) << 16 | ROUNDED(b, Round::kZero)), other, \
                          "rff");                                                                           \
  add_cold<u32, f32, f32>(                                                                                  \
      "cvt.rz.relu." TYPE "x2.f32",                                                                         \
      SW_LANES2(u32, ROUNDED(relu_number(a), Round::kZero) << 16 | ROUNDED(relu_number(b), Round::kZero)),  \
      other, "rff");                                                                                        \
  add_cold<u32, f32>("cvt.rn.relu." TYPE ".f32", SW_LANES1(u32, ROUNDED(relu_number(a))), other, "xf");     \
  add_cold<u32, f32>("cvt.rz.relu." TYPE ".f32", SW_LANES1(u32, ROUNDED(relu_number(a), Round::kZero)),     \
                     other, "xf")
  SW_PAIR("f16", round_to_half, 0);
  SW_PAIR("bf16", round_to_bf16, 0);
#undef SW_PAIR
  // tf32: a float of 10 mantissa bits; .rna rounds ties away from zero.
  add_cold<u32, f32>("cvt.rna.tf32.f32", SW_F1([](auto v) {
                       auto bits = (Words<u32>)v;
                       auto r = (bits + 0x1000u) & 0xffffe000u;
                       return (bits & 0x7fffffffu) >= 0x7f800000u ? bits & 0xffffe000u : r;
                     }(a)),
                     other, "rf");
  add_cold<u32, f32>("cvt.rn.tf32.f32", SW_LANES1(u32, round_to_format<8, 10>(a, Round::kNearest) << 13),
                     other, "rf");
  add_cold<u32, f32>("cvt.rz.tf32.f32", SW_LANES1(u32, round_to_format<8, 10>(a, Round::kZero) << 13), other,
                     "rf");
#define SW_FP8(TYPE, ROUNDED, NUMBER)                                                                      \
  add_cold<u32, f32, f32>("cvt.rn.satfinite." TYPE "x2.f32", SW_LANES2(u32, ROUNDED(a) << 8 | ROUNDED(b)), \
                          other, "hff");                                                                   \
  add_cold<u32, f32, f32>("cvt.rn.satfinite.relu." TYPE "x2.f32",                                          \
                          SW_LANES2(u32, ROUNDED(relu_number(a)) << 8 | ROUNDED(relu_number(b))), other,   \
                          "hff");                                                                          \
  add_cold<u32, u32>("cvt.rn.satfinite." TYPE "x2.f16x2",                                                  \
                     SW_LANES1(u32, ROUNDED(half_number(a >> 16)) << 8 | ROUNDED(half_number(a))), other,  \
                     "hr");                                                                                \
  add_cold<u32, u32>("cvt.rn.relu.f16x2." TYPE "x2",                                                       \
                     SW_LANES1(u32, round_to_half(relu_number(NUMBER(a >> 8 & 0xff))) << 16 |              \
                                        round_to_half(relu_number(NUMBER(a & 0xff)))),                     \
                     other, "rh");                                                                         \
  add_cold<u32, u32>(                                                                                      \
      "cvt.rn.f16x2." TYPE "x2",                                                                           \
      SW_LANES1(u32, round_to_half(NUMBER(a >> 8 & 0xff)) << 16 | round_to_half(NUMBER(a & 0xff))), other, \
      "rh")
  SW_FP8("e5m2", round_to_e5m2, e5m2_number);
  SW_FP8("e4m3", round_to_e4m3, e4m3_number);
#undef SW_FP8
}

}  // namespace
}  // namespace stitchwork::sim
