// Integer, packed and bit instructions that compilers seldom emit.
#pragma once

#include "simulator/isa/ops_float.h"

namespace stitchwork::sim {
namespace {

/// dp2a: two 16-bit values of a times two bytes of b, the lower or upper two.
template <bool kSignedA, bool kSignedB, bool kHigh>
u32 dot2(u32 a, u32 b, u32 c) {
  for (int k = 0; k < 2; ++k) {
    const u32 byte = b >> 8 * (k + (kHigh ? 2 : 0)) & 0xff;
    const i32 x = kSignedA ? i32(std::int16_t(a >> 16 * k)) : i32(a >> 16 * k & 0xffff);
    const i32 y = kSignedB ? i32(std::int8_t(byte)) : i32(byte);
    c += u32(x * y);
  }
  return c;
}

/// fns: position of the n-th set bit of mask counted from bit base, downwards for negative n; ~0: none.
u32 nth_set(u32 mask, u32 base, i32 n) {
  if (base > 31) return ~0u;
  if (n == 0) return mask >> base & 1 ? base : ~0u;
  const int step = n > 0 ? 1 : -1;
  u32 left = n > 0 ? u32(n) : 0u - u32(n);
  for (int at = int(base); at >= 0 && at < 32; at += step)
    if ((mask >> at & 1) && --left == 0) return u32(at);
  return ~0u;
}

u32 permute_mode(u32 a, u32 b, u32 c,
                 int mode) {  // prmt with a mode: forward and backward 4, replicate, edges
  const u64 bytes = u64(b) << 32 | a;
  const u32 n = c & 3;
  u32 r = 0;
  for (u32 k = 0; k < 4; ++k) {
    u32 from = 0;
    switch (mode) {
      case 0:  // f4e
        from = n + k;
        break;
      case 1:  // b4e
        from = (n + 8 - k) & 7;
        break;
      case 2:  // rc8
        from = n;
        break;
      case 3:  // ecl
        from = k > n ? k : n;
        break;
      case 4:  // ecr
        from = k < n ? k : n;
        break;
      default:  // rc16
        from = (n & 1) * 2 + (k & 1);
        break;
    }
    r |= (u32(bytes >> 8 * from) & 0xff) << 8 * k;
  }
  return r;
}

/// f on both 16-bit halves.
template <class T, class F>
u32 both_halves(u32 a, u32 b, F f) {
  return (u32(f(i32(T(a)), i32(T(b)))) & 0xffff) | u32(f(i32(T(a >> 16)), i32(T(b >> 16)))) << 16;
}
i32 less_of(i32 a, i32 b) { return a < b ? a : b; }
i32 more_of(i32 a, i32 b) { return a > b ? a : b; }

u32 absolute_differences(u32 a, u32 b) {
  u32 r = 0;
  for (int k = 0; k < 32; k += 8) {
    const u32 x = a >> k & 0xff, y = b >> k & 0xff;
    r |= (x > y ? x - y : y - x) << k;
  }
  return r;
}
u32 byte_sum(u32 v) { return (v & 0xff) + (v >> 8 & 0xff) + (v >> 16 & 0xff) + (v >> 24); }

i32 clamp_number(i64 v, i64 low, i64 high) { return i32(v < low ? low : v > high ? high : v); }

template <class T>
T sign_extend_from(T v, u32 bits, bool is_signed) {  // szext.clamp
  constexpr u32 width = sizeof(T) * 8;
  if (bits > 32) bits = 32;
  if (bits == 0) return 0;
  if (bits >= width) return v;
  const T low = v & ((T(1) << bits) - 1);
  return is_signed && (low >> (bits - 1) & 1) ? low | ~((T(1) << bits) - 1) : low;
}
u32 bit_mask(u32 at, u32 count, bool wrap) {  // bmsk
  if (wrap) {
    at &= 31;
    count &= 31;
  }
  if (at > 31 || count == 0) return 0;
  const u32 ones = count >= 32 ? ~0u : (1u << count) - 1;
  return ones << at;
}

SW_INLINE Words<f32> as_floats(Longs<u64> v) { return (Words<f32>)v; }
/// Two floats in each lane, a NaN as GPUs write it.
SW_INLINE Longs<u64> as_pairs(Words<f32> v) {
  const auto bits = (Words<u32>)v;
  return (Longs<u64>)(v != v ? (bits ^ bits) + 0x7fffffffu : bits);
}

void add_rare_rows() {
  const auto integer = Pipe::kInt32, fp32 = Pipe::kFp32;
#define SW_DP2A(A, B, SA, SB)                                                                       \
  add_cold<u32, u32, u32, u32>("dp2a.lo." A "." B, SW_LANES3(u32, (dot2<SA, SB, false>(a, b, c)))); \
  add_cold<u32, u32, u32, u32>("dp2a.hi." A "." B, SW_LANES3(u32, (dot2<SA, SB, true>(a, b, c))))
  SW_DP2A("u32", "u32", false, false);
  SW_DP2A("s32", "s32", true, true);
  SW_DP2A("u32", "s32", false, true);
  SW_DP2A("s32", "u32", true, false);
#undef SW_DP2A
  add_cold<u32, u32, u32, i32>("fns.b32", SW_LANES3(u32, nth_set(a, b, c)));
  add_cold<u32, u32, u32>("mul24.hi.u32", SW_LANES2(u32, u32(u64(a & 0xffffff) * (b & 0xffffff) >> 16)));
  add_cold<i32, i32, i32>("mul24.hi.s32", SW_LANES2(i32, i32(i64(a << 8 >> 8) * (b << 8 >> 8) >> 16)));
  add_cold<u32, u32, u32, u32>("mad24.hi.u32",
                               SW_LANES3(u32, u32(u64(a & 0xffffff) * (b & 0xffffff) >> 16) + c));
  add_cold<i32, i32, i32, i32>("mad24.hi.s32",
                               SW_LANES3(i32, i32(u32(i64(a << 8 >> 8) * (b << 8 >> 8) >> 16) + u32(c))));
  add_cold<i32, i32, i32, i32>(
      "mad.hi.sat.s32", SW_LANES3(i32, clamp_number((i64(a) * b >> 32) + c, -2147483648LL, 2147483647LL)));
#define SW_PRMT(NAME, MODE) \
  add_cold<u32, u32, u32, u32>("prmt.b32." NAME, SW_LANES3(u32, permute_mode(a, b, c, MODE)))
  SW_PRMT("f4e", 0);
  SW_PRMT("b4e", 1);
  SW_PRMT("rc8", 2);
  SW_PRMT("ecl", 3);
  SW_PRMT("ecr", 4);
  SW_PRMT("rc16", 5);
#undef SW_PRMT
  add_cold<u32, u32, u32, u32>("sad.u16", SW_F3((c + (a > b ? a - b : b - a)) & 0xffff), integer, "hhhh");
  add_cold<i32, i32, i32, i32>(
      "sad.s16",
      SW_LANES3(i32, [](i32 x, i32 y, i32 z) { return (z + (x > y ? x - y : y - x)) & 0xffff; }(
                         std::int16_t(a), std::int16_t(b), c)),
      integer, "hhhh");
  add_cold<u64, u64, u64, u64>("sad.u64", SW_F3(c + (a > b ? a - b : b - a)));
  add_cold<i64, i64, i64, i64>("sad.s64",
                               SW_LANES3(i64, i64(u64(c) + (a > b ? u64(a) - u64(b) : u64(b) - u64(a)))));
  add_cold<u32, u32>("cnot.b16", SW_LANES1(u32, a == 0), integer, "hh");
  add_cold<u32, u64>("bfind.shiftamt.u64", SW_LANES1(u32, a ? 63 - highest_bit<u64>(a) : ~0u));
  add_cold<u32, i64>("bfind.shiftamt.s64",
                     SW_LANES1(u32, highest_bit<i64>(a) == ~0u ? ~0u : 63 - highest_bit<i64>(a)));
  add_cold<u32, u32, u32>("szext.clamp.u32", SW_LANES2(u32, sign_extend_from<u32>(a, b, false)));
  add_cold<u32, u32, u32>("szext.clamp.s32", SW_LANES2(u32, sign_extend_from<u32>(a, b, true)));
  add_cold<u32, u32, u32>("szext.wrap.u32", SW_LANES2(u32, sign_extend_from<u32>(a, b & 31, false)));
  add_cold<u32, u32, u32>("szext.wrap.s32", SW_LANES2(u32, sign_extend_from<u32>(a, b & 31, true)));
  add_cold<u32, u32, u32>("bmsk.clamp.b32", SW_LANES2(u32, bit_mask(a, b, false)));
  add_cold<u32, u32, u32>("bmsk.wrap.b32", SW_LANES2(u32, bit_mask(a, b, true)));

  // Pairs of 16-bit integers (sm_90).
  add_cold<u32, u32, u32>("add{.u16x2,.s16x2}", SW_F2((((a & 0xffff) + (b & 0xffff)) & 0xffff) |
                                                      ((a & 0xffff0000u) + (b & 0xffff0000u))));
#define SW_PAIR(NAME, T, F) \
  add_cold<u32, u32, u32>(NAME, SW_LANES2(u32, both_halves<T>(a, b, [](i32 x, i32 y) { return F; })))
  SW_PAIR("min.u16x2", std::uint16_t, less_of(x, y));
  SW_PAIR("max.u16x2", std::uint16_t, more_of(x, y));
  SW_PAIR("min.s16x2", std::int16_t, less_of(x, y));
  SW_PAIR("max.s16x2", std::int16_t, more_of(x, y));
  SW_PAIR("min.relu.s16x2", std::int16_t, more_of(less_of(x, y), 0));
  SW_PAIR("max.relu.s16x2", std::int16_t, more_of(more_of(x, y), 0));
#undef SW_PAIR
  add_cold<i32, i32, i32>("min{.relu.s32,.s32.relu}", SW_LANES2(i32, more_of(less_of(a, b), 0)));
  add_cold<i32, i32, i32>("max{.relu.s32,.s32.relu}", SW_LANES2(i32, more_of(more_of(a, b), 0)));
  add_cold<u32, u32, u32, u32>("vabsdiff4.u32.u32.u32", SW_LANES3(u32, absolute_differences(a, b) | (c & 0)));
  add_cold<u32, u32, u32, u32>("vabsdiff4.u32.u32.u32.add",
                               SW_LANES3(u32, c + byte_sum(absolute_differences(a, b))));
  // As CUB adds to an index what is left of it.
#define SW_VIDEO_SHIFT(NAME, MODE, EXPR)                                    \
  add_cold<u32, u32, u32>(NAME ".u32.u32.u32." MODE, SW_LANES2(u32, EXPR)); \
  add_cold<u32, u32, u32, u32>(NAME ".u32.u32.u32." MODE ".add", SW_LANES3(u32, c + (EXPR)))
  SW_VIDEO_SHIFT("vshl", "clamp", b < 32 ? a << (b & 31) : 0);
  SW_VIDEO_SHIFT("vshl", "wrap", a << (b & 31));
  SW_VIDEO_SHIFT("vshr", "clamp", b < 32 ? a >> (b & 31) : 0);
  SW_VIDEO_SHIFT("vshr", "wrap", a >> (b & 31));
#undef SW_VIDEO_SHIFT
  add_cold<u32, i32, i32>("cvt.pack.sat.u16.s32", SW_LANES2(u32, u32(clamp_number(a, 0, 65535)) << 16 |
                                                                     u32(clamp_number(b, 0, 65535))));
  add_cold<u32, i32, i32>("cvt.pack.sat.s16.s32",
                          SW_LANES2(u32, u32(clamp_number(a, -32768, 32767)) << 16 |
                                             (u32(clamp_number(b, -32768, 32767)) & 0xffff)));
  add_cold<u32, i32, i32, u32>(
      "cvt.pack.sat.u8.s32.b32",
      SW_LANES3(u32, c << 16 | u32(clamp_number(a, 0, 255)) << 8 | u32(clamp_number(b, 0, 255))));
  add_cold<u32, i32, i32, u32>("cvt.pack.sat.s8.s32.b32",
                               SW_LANES3(u32, c << 16 | (u32(clamp_number(a, -128, 127)) & 0xff) << 8 |
                                                  (u32(clamp_number(b, -128, 127)) & 0xff)));

  // Pairs of floats in 64 bits (sm_100).
  add<u64, u64, u64>("add{,.rn}.f32x2", SW_F2(as_pairs(as_floats(a) + as_floats(b))), fp32);
  add<u64, u64, u64>("sub{,.rn}.f32x2", SW_F2(as_pairs(as_floats(a) - as_floats(b))), fp32);
  add<u64, u64, u64>("mul{,.rn}.f32x2", SW_F2(as_pairs(as_floats(a) * as_floats(b))), fp32);
  add<u64, u64, u64, u64>("fma.rn.f32x2", SW_F3(as_pairs(fma_v(as_floats(a), as_floats(b), as_floats(c)))),
                          fp32);
  add_cold<u64, u64, u64>("add{,.rn}.ftz.f32x2",
                          SW_F2(as_pairs(flush(flush(as_floats(a)) + flush(as_floats(b))))), fp32);
  add_cold<u64, u64, u64>("mul{,.rn}.ftz.f32x2",
                          SW_F2(as_pairs(flush(flush(as_floats(a)) * flush(as_floats(b))))), fp32);
  add_cold<u64, u64, u64, u64>(
      "fma.rn.ftz.f32x2",
      SW_F3(as_pairs(flush(fma_v(flush(as_floats(a)), flush(as_floats(b)), flush(as_floats(c)))))), fp32);

  // testp: what kind of number it is.
#define SW_TESTP(NAME, EXPR32, EXPR64)                                        \
  add_compare_cold<u32>(                                                      \
      "testp." NAME ".f32", [](auto x, auto) __attribute__((always_inline)) { \
        auto m = x & 0x7fffffffu;                                             \
        return EXPR32;                                                        \
      },                                                                      \
      Pipe::kInt32, "pf");                                                    \
  add_compare_cold<u64>(                                                      \
      "testp." NAME ".f64", [](auto x, auto) __attribute__((always_inline)) { \
        auto m = x & 0x7fffffffffffffffull;                                   \
        return EXPR64;                                                        \
      },                                                                      \
      Pipe::kInt32, "pe")
  SW_TESTP("finite", m < 0x7f800000u, m < 0x7ff0000000000000ull);
  SW_TESTP("infinite", m == 0x7f800000u, m == 0x7ff0000000000000ull);
  SW_TESTP("number", m <= 0x7f800000u, m <= 0x7ff0000000000000ull);
  SW_TESTP("notanumber", m > 0x7f800000u, m > 0x7ff0000000000000ull);
  SW_TESTP("normal", ((m >= 0x00800000u) & (m < 0x7f800000u)),
           ((m >= 0x0010000000000000ull) & (m < 0x7ff0000000000000ull)));
  SW_TESTP("subnormal", ((m != 0) & (m < 0x00800000u)), ((m != 0) & (m < 0x0010000000000000ull)));
#undef SW_TESTP
}

}  // namespace
}  // namespace stitchwork::sim
