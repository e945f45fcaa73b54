// Integer, logic and bit-field instructions.
#pragma once

#include "simulator/isa/ops_registry.h"

namespace stitchwork::sim {
namespace {

/// Low 16 bits of a 32-bit lane as a sign-extended value.
template <class V>
SW_INLINE V sext16(V v) {
  return (V)((vec<i32, sizeof(V) / 4>)v << 16 >> 16);
}

u32 funnel_left(u32 lo, u32 hi, u32 n) { return n == 0 ? hi : n >= 32 ? lo : hi << n | lo >> (32 - n); }
u32 funnel_right(u32 lo, u32 hi, u32 n) { return n == 0 ? lo : n >= 32 ? hi : lo >> n | hi << (32 - n); }

template <class T>
u32 highest_bit(T a) {  // bfind: position of the most significant non-sign bit, or ~0
  using U = std::conditional_t<sizeof(T) == 8, u64, u32>;
  U v = U(a);
  if (T(-1) < T(0) && T(a) < 0) v = ~v;
  if (v == 0) return ~0u;
  return sizeof(T) == 8 ? 63 - __builtin_clzll(v) : 31 - __builtin_clz(u32(v));
}

template <class T>
T bit_field(T a, u32 pos, u32 len) {  // bfe, PTX ISA's own definition
  constexpr u32 msb = sizeof(T) * 8 - 1;
  using U = std::conditional_t<sizeof(T) == 8, u64, u32>;
  pos &= 0xff;
  len &= 0xff;
  U sign = 0;
  if (T(-1) < T(0) && len != 0) sign = U(a) >> (pos + len - 1 < msb ? pos + len - 1 : msb) & 1;
  U r = 0;
  for (u32 k = 0; k <= msb; ++k) {
    U bit = k < len && pos + k <= msb ? U(a) >> (pos + k) & 1 : sign;
    r |= bit << k;
  }
  return T(r);
}

template <class U>
U bit_insert(U a, U b, u32 pos, u32 len) {  // bfi
  constexpr u32 bits = sizeof(U) * 8;
  pos &= 0xff;
  len &= 0xff;
  if (pos >= bits || len == 0) return b;
  U ones = len >= bits ? ~U(0) : (U(1) << len) - 1;
  U mask = ones << pos;
  return (b & ~mask) | (a << pos & mask);
}

u32 permute(u32 a, u32 b, u32 c) {  // prmt, default mode
  const u64 bytes = u64(b) << 32 | a;
  u32 r = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 sel = c >> (4 * k) & 0xf;
    u32 byte = u32(bytes >> (8 * (sel & 7))) & 0xff;
    if (sel & 8) byte = byte & 0x80 ? 0xff : 0;
    r |= byte << (8 * k);
  }
  return r;
}

u32 bit_reverse(u32 v) {
  v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
  v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
  v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(v);
}
u64 bit_reverse64(u64 v) { return u64(bit_reverse(u32(v))) << 32 | bit_reverse(u32(v >> 32)); }

template <bool kSignedA, bool kSignedB>
u32 dot4(u32 a, u32 b, u32 c) {
  for (int k = 0; k < 4; ++k) {
    const i32 x = kSignedA ? i32(std::int8_t(a >> 8 * k)) : i32(a >> 8 * k & 0xff);
    const i32 y = kSignedB ? i32(std::int8_t(b >> 8 * k)) : i32(b >> 8 * k & 0xff);
    c += u32(x * y);
  }
  return c;
}

void add_integer_rows() {
  // mov is a row only where copy propagation cannot remove it.
  add<u32, u32>("mov{.b32,.u32,.s32,.f32}", SW_F1(a), Pipe::kOther, "rr");
  add<u64, u64>("mov{.b64,.u64,.s64,.f64}", SW_F1(a), Pipe::kOther, "dd");
  add_cold<u32, u32>("mov{.b16,.u16,.s16}", SW_F1(a), Pipe::kOther, "hh");

  add<u32, u32, u32>("add{.u32,.s32}", SW_F2(a + b));
  add<u64, u64, u64>("add{.u64,.s64}", SW_F2(a + b));
  add_cold<u32, u32, u32>("add{.u16,.s16}", SW_F2((a + b) & 0xffff), Pipe::kInt32, "hhh");
  add<u32, u32, u32>("sub{.u32,.s32}", SW_F2(a - b));
  add<u64, u64, u64>("sub{.u64,.s64}", SW_F2(a - b));
  add_cold<u32, u32, u32>("sub{.u16,.s16}", SW_F2((a - b) & 0xffff), Pipe::kInt32, "hhh");
  add_cold<i32, i32, i32>("add.sat.s32", SW_LANES2(i32, [](i64 v) -> i32 {
                            return v > 2147483647 ? 2147483647 : v < -2147483648LL ? i32(0x80000000) : i32(v);
                          }(i64(a) + b)));
  add_cold<i32, i32, i32>("sub.sat.s32", SW_LANES2(i32, [](i64 v) -> i32 {
                            return v > 2147483647 ? 2147483647 : v < -2147483648LL ? i32(0x80000000) : i32(v);
                          }(i64(a) - b)));
  add<u32, u32, u32>("mul.lo{.u32,.s32}", SW_F2(a * b));
  add<u64, u64, u64>("mul.lo{.u64,.s64}", SW_F2(a * b));
  add_cold<u32, u32, u32>("mul.lo{.u16,.s16}", SW_F2(a * b & 0xffff), Pipe::kInt32, "hhh");
  add_cold<u32, u32, u32>("mul.hi.u32", SW_LANES2(u32, u32(u64(a) * b >> 32)));
  add_cold<i32, i32, i32>("mul.hi.s32", SW_LANES2(i32, i32(i64(a) * b >> 32)));
  add_cold<u64, u64, u64>("mul.hi.u64", SW_LANES2(u64, u64((unsigned __int128)(a)*b >> 64)));
  add_cold<i64, i64, i64>("mul.hi.s64", SW_LANES2(i64, i64((__int128)(a)*b >> 64)));
  add_cold<u32, u32, u32>("mul.hi.u16", SW_F2(a * b >> 16), Pipe::kInt32, "hhh");
  add_cold<u32, u32, u32>("mul.hi.s16", SW_F2((u32)0 + (sext16(a) * sext16(b) >> 16 & 0xffff)), Pipe::kInt32,
                          "hhh");
  add<u64, u32, u32>("mul.wide.u32",
                     SW_F2(__builtin_convertvector(a, Longs<u64>) * __builtin_convertvector(b, Longs<u64>)));
  add<i64, i32, i32>("mul.wide.s32",
                     SW_F2(__builtin_convertvector(a, Longs<i64>) * __builtin_convertvector(b, Longs<i64>)));
  add_cold<u32, u32, u32>("mul.wide.u16", SW_F2(a * b), Pipe::kInt32, "rhh");
  add_cold<u32, u32, u32>("mul.wide.s16", SW_F2(sext16(a) * sext16(b)), Pipe::kInt32, "rhh");
  add_cold<u32, u32, u32>("mul24.lo.u32", SW_F2((a & 0xffffff) * (b & 0xffffff)));
  add_cold<i32, i32, i32>("mul24.lo.s32", SW_F2((a << 8 >> 8) * (b << 8 >> 8)));
  add<u32, u32, u32, u32>("mad.lo{.u32,.s32}", SW_F3(a * b + c));
  add<u64, u64, u64, u64>("mad.lo{.u64,.s64}", SW_F3(a * b + c));
  add_cold<u32, u32, u32, u32>("mad.lo{.u16,.s16}", SW_F3((a * b + c) & 0xffff), Pipe::kInt32, "hhhh");
  add_cold<u32, u32, u32, u32>("mad.hi.u32", SW_LANES3(u32, u32(u64(a) * b >> 32) + c));
  add_cold<i32, i32, i32, i32>("mad.hi.s32", SW_LANES3(i32, i32(u32(i64(a) * b >> 32) + u32(c))));
  add_cold<u64, u64, u64, u64>("mad.hi.u64", SW_LANES3(u64, u64((unsigned __int128)(a)*b >> 64) + c));
  add_cold<i64, i64, i64, i64>("mad.hi.s64", SW_LANES3(i64, i64(u64((__int128)(a)*b >> 64) + u64(c))));
  add<u64, u32, u32, u64>(
      "mad.wide.u32",
      SW_F3(__builtin_convertvector(a, Longs<u64>) * __builtin_convertvector(b, Longs<u64>) + c));
  add<i64, i32, i32, i64>(
      "mad.wide.s32",
      SW_F3(__builtin_convertvector(a, Longs<i64>) * __builtin_convertvector(b, Longs<i64>) + c));
  add_cold<u32, u32, u32, u32>("mad.wide.u16", SW_F3(a * b + c), Pipe::kInt32, "rhhr");
  add_cold<u32, u32, u32, u32>("mad.wide.s16", SW_F3(sext16(a) * sext16(b) + c), Pipe::kInt32, "rhhr");
  add_cold<u32, u32, u32, u32>("mad24.lo.u32", SW_F3((a & 0xffffff) * (b & 0xffffff) + c));
  add_cold<i32, i32, i32, i32>("mad24.lo.s32", SW_F3((a << 8 >> 8) * (b << 8 >> 8) + c));

  // Division by zero: all ones, and the dividend as remainder, as GPUs give it.
  add_cold<u32, u32, u32>("div.u32", SW_LANES2(u32, b ? a / b : ~0u));
  add_cold<i32, i32, i32>("div.s32", SW_LANES2(i32, b == 0 ? -1 : b == -1 ? i32(0u - u32(a)) : a / b));
  add_cold<u64, u64, u64>("div.u64", SW_LANES2(u64, b ? a / b : ~u64(0)));
  add_cold<i64, i64, i64>("div.s64", SW_LANES2(i64, b == 0 ? -1 : b == -1 ? i64(u64(0) - u64(a)) : a / b));
  add_cold<u32, u32, u32>("div.u16", SW_LANES2(u32, b ? a / b : 0xffffu), Pipe::kInt32, "hhh");
  add_cold<i32, i32, i32>(
      "div.s16", SW_LANES2(i32, std::int16_t(b) ? std::int16_t(a) / std::int16_t(b) & 0xffff : 0xffff),
      Pipe::kInt32, "hhh");
  add_cold<u32, u32, u32>("rem.u32", SW_LANES2(u32, b ? a % b : a));
  add_cold<i32, i32, i32>("rem.s32", SW_LANES2(i32, b == 0 ? a : b == -1 ? 0 : a % b));
  add_cold<u64, u64, u64>("rem.u64", SW_LANES2(u64, b ? a % b : a));
  add_cold<i64, i64, i64>("rem.s64", SW_LANES2(i64, b == 0 ? a : b == -1 ? i64(0) : a % b));
  add_cold<u32, u32, u32>("rem.u16", SW_LANES2(u32, b ? a % b : a), Pipe::kInt32, "hhh");
  add_cold<i32, i32, i32>("rem.s16",
                          SW_LANES2(i32, (std::int16_t(b) ? std::int16_t(a) % std::int16_t(b) : a) & 0xffff),
                          Pipe::kInt32, "hhh");

  add<u32, u32>("neg.s32", SW_F1(-a));
  add<u64, u64>("neg.s64", SW_F1(-a));
  add_cold<u32, u32>("neg.s16", SW_F1(-a & 0xffff), Pipe::kInt32, "hh");
  add<i32, i32>("abs.s32", SW_F1(a < 0 ? -a : a));
  add<i64, i64>("abs.s64", SW_F1(a < 0 ? -a : a));
  add_cold<u32, u32>("abs.s16", SW_F1((sext16(a) > 0x7fffffff ? -a : a) & 0xffff), Pipe::kInt32, "hh");
  add<u32, u32, u32>("min.u32", SW_F2(a < b ? a : b));
  add<i32, i32, i32>("min.s32", SW_F2(a < b ? a : b));
  add<u64, u64, u64>("min.u64", SW_F2(a < b ? a : b));
  add<i64, i64, i64>("min.s64", SW_F2(a < b ? a : b));
  add_cold<u32, u32, u32>("min.u16", SW_F2(a < b ? a : b), Pipe::kInt32, "hhh");
  add_cold<i32, i32, i32>("min.s16", SW_F2(sext16(a) < sext16(b) ? a : b), Pipe::kInt32, "hhh");
  add<u32, u32, u32>("max.u32", SW_F2(a > b ? a : b));
  add<i32, i32, i32>("max.s32", SW_F2(a > b ? a : b));
  add<u64, u64, u64>("max.u64", SW_F2(a > b ? a : b));
  add<i64, i64, i64>("max.s64", SW_F2(a > b ? a : b));
  add_cold<u32, u32, u32>("max.u16", SW_F2(a > b ? a : b), Pipe::kInt32, "hhh");
  add_cold<i32, i32, i32>("max.s16", SW_F2(sext16(a) > sext16(b) ? a : b), Pipe::kInt32, "hhh");

  add<u32, u32, u32>("and.b32", SW_F2(a & b));
  add<u64, u64, u64>("and.b64", SW_F2(a & b));
  add_cold<u32, u32, u32>("and.b16", SW_F2(a & b), Pipe::kInt32, "hhh");
  add<u32, u32, u32>("or.b32", SW_F2(a | b));
  add<u64, u64, u64>("or.b64", SW_F2(a | b));
  add_cold<u32, u32, u32>("or.b16", SW_F2(a | b), Pipe::kInt32, "hhh");
  add<u32, u32, u32>("xor.b32", SW_F2(a ^ b));
  add<u64, u64, u64>("xor.b64", SW_F2(a ^ b));
  add_cold<u32, u32, u32>("xor.b16", SW_F2(a ^ b), Pipe::kInt32, "hhh");
  add<u32, u32>("not.b32", SW_F1(~a));
  add<u64, u64>("not.b64", SW_F1(~a));
  add_cold<u32, u32>("not.b16", SW_F1(~a & 0xffff), Pipe::kInt32, "hh");
  add_cold<u32, u32>("cnot.b32", SW_LANES1(u32, a == 0));
  add_cold<u64, u64>("cnot.b64", SW_LANES1(u64, a == 0));
  add_cold<u32, u32, u32, u32, u32>(
      "lop3.b32", [](auto a, auto b, auto c, auto t) __attribute__((always_inline)) {
        auto r = a ^ a;
        for (int k = 0; k < 8; ++k) {
          auto term = (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
          r |= term & -(t >> k & 1);
        }
        return r;
      });

  // Shift counts above the width clamp (PTX), they do not wrap.
  add<u32, u32, u32>("shl.b32", SW_F2(b > 31 ? a ^ a : a << (b & 31)));
  add<u64, u64, u32>(
      "shl.b64", [](auto a, auto b) __attribute__((always_inline)) {
        auto n = __builtin_convertvector(b, Longs<u64>);
        return n > 63 ? a ^ a : a << (n & 63);
      });
  add_cold<u32, u32, u32>("shl.b16", SW_F2(b > 15 ? a ^ a : a << (b & 15) & 0xffff), Pipe::kInt32, "hhr");
  add<u32, u32, u32>("shr{.u32,.b32}", SW_F2(b > 31 ? a ^ a : a >> (b & 31)));
  add<i32, i32, u32>("shr.s32", SW_F2(a >> (Words<i32>)(b > 31 ? (b ^ b) + 31 : b)));
  add<u64, u64, u32>(
      "shr{.u64,.b64}", [](auto a, auto b) __attribute__((always_inline)) {
        auto n = __builtin_convertvector(b, Longs<u64>);
        return n > 63 ? a ^ a : a >> (n & 63);
      });
  add<i64, i64, u32>(
      "shr.s64", [](auto a, auto b) __attribute__((always_inline)) {
        auto n = __builtin_convertvector(b, Longs<u64>);
        return a >> (Longs<i64>)(n > 63 ? (n ^ n) + 63 : n);
      });
  add_cold<u32, u32, u32>("shr{.u16,.b16}", SW_F2(b > 15 ? a ^ a : a >> (b & 15)), Pipe::kInt32, "hhr");
  add_cold<u32, u32, u32>(
      "shr.s16", [](auto a, auto b) __attribute__((always_inline)) {
        auto n = b > 15 ? (b ^ b) + 15 : b;
        return (Words<u32>)((Words<i32>)sext16(a) >> (Words<i32>)n) & 0xffff;
      },
      Pipe::kInt32, "hhr");
  add_cold<u32, u32, u32, u32>("shf.l.wrap.b32", SW_LANES3(u32, funnel_left(a, b, c & 31)));
  add_cold<u32, u32, u32, u32>("shf.l.clamp.b32", SW_LANES3(u32, funnel_left(a, b, c > 32 ? 32 : c)));
  add_cold<u32, u32, u32, u32>("shf.r.wrap.b32", SW_LANES3(u32, funnel_right(a, b, c & 31)));
  add_cold<u32, u32, u32, u32>("shf.r.clamp.b32", SW_LANES3(u32, funnel_right(a, b, c > 32 ? 32 : c)));

  add_cold<u32, u32, u32, u32>("bfe.u32", SW_LANES3(u32, bit_field<u32>(a, b, c)));
  add_cold<i32, i32, u32, u32>("bfe.s32", SW_LANES3(i32, bit_field<i32>(a, b, c)));
  add_cold<u64, u64, u32, u32>("bfe.u64", SW_LANES3(u64, bit_field<u64>(a, b, c)));
  add_cold<i64, i64, u32, u32>("bfe.s64", SW_LANES3(i64, bit_field<i64>(a, b, c)));
  add_cold<u32, u32, u32, u32, u32>("bfi.b32", [](auto a, auto b, auto c, auto d) {
    Words<u32> r;
    for (int j = 0; j < kWords; ++j) r[j] = bit_insert<u32>(a[j], b[j], c[j], d[j]);
    return r;
  });
  add_cold<u64, u64, u64, u32, u32>("bfi.b64", [](auto a, auto b, auto c, auto d) {
    Longs<u64> r;
    for (int j = 0; j < kLongs; ++j) r[j] = bit_insert<u64>(a[j], b[j], c[j], d[j]);
    return r;
  });
  add_cold<u32, u32>("bfind.u32", SW_LANES1(u32, highest_bit<u32>(a)));
  add_cold<u32, i32>("bfind.s32", SW_LANES1(u32, highest_bit<i32>(a)));
  add_cold<u32, u64>("bfind.u64", SW_LANES1(u32, highest_bit<u64>(a)));
  add_cold<u32, i64>("bfind.s64", SW_LANES1(u32, highest_bit<i64>(a)));
  add_cold<u32, u32>("bfind.shiftamt.u32", SW_LANES1(u32, a ? 31 - highest_bit<u32>(a) : ~0u));
  add_cold<u32, i32>("bfind.shiftamt.s32",
                     SW_LANES1(u32, highest_bit<i32>(a) == ~0u ? ~0u : 31 - highest_bit<i32>(a)));
  add_cold<u32, u32>("brev.b32", SW_LANES1(u32, bit_reverse(a)));
  add_cold<u64, u64>("brev.b64", SW_LANES1(u64, bit_reverse64(a)));
  add_cold<u32, u32>("clz.b32", SW_LANES1(u32, a ? u32(__builtin_clz(a)) : 32u));
  add_cold<u32, u64>("clz.b64", SW_LANES1(u32, a ? u32(__builtin_clzll(a)) : 64u));
  add_cold<u32, u32>("popc.b32", SW_LANES1(u32, u32(__builtin_popcount(a))));
  add_cold<u32, u64>("popc.b64", SW_LANES1(u32, u32(__builtin_popcountll(a))));
  add_cold<u32, u32, u32, u32>("prmt.b32", SW_LANES3(u32, permute(a, b, c)));
  add_cold<u32, u32, u32, u32>("sad.u32", SW_F3(c + (a > b ? a - b : b - a)));
  add_cold<i32, i32, i32, i32>("sad.s32", SW_F3(c + (a > b ? a - b : b - a)));
  add_cold<u32, u32, u32, u32>("dp4a.u32.u32", SW_LANES3(u32, (dot4<false, false>(a, b, c))));
  add_cold<u32, u32, u32, u32>("dp4a.s32.s32", SW_LANES3(u32, (dot4<true, true>(a, b, c))));
  add_cold<u32, u32, u32, u32>("dp4a.s32.u32", SW_LANES3(u32, (dot4<true, false>(a, b, c))));
  add_cold<u32, u32, u32, u32>("dp4a.u32.s32", SW_LANES3(u32, (dot4<false, true>(a, b, c))));
  add_cold<u32, u32, u32, i32>("slct{.u32,.s32,.b32,.f32}.s32", SW_F3(c >= 0 ? a : b));
  add_cold<u64, u64, u64, i32>("slct{.u64,.s64,.b64,.f64}.s32",
                               SW_F3(__builtin_convertvector(c, Longs<i64>) >= 0 ? a : b));
  add_cold<u32, u32, u32, f32>("slct{.u32,.s32,.b32,.f32}.f32", SW_F3(c >= 0.0f ? a : b));

  // Vector moves take registers apart and put them together.
  add<u64, u32, u32>("@pack64", SW_F2(__builtin_convertvector(a, Longs<u64>) |
                                      __builtin_convertvector(b, Longs<u64>) << 32));
  add<u32, u64>("@low32", SW_F1(__builtin_convertvector(a, Longs<u32>)));
  add<u32, u64>("@high32", SW_F1(__builtin_convertvector(a >> 32, Longs<u32>)));
  add_cold<u32, u32, u32>("@pack32", SW_F2((a & 0xffff) | b << 16));
  add_cold<u32, u32>("@low16", SW_F1(a & 0xffff));
  add_cold<u32, u32>("@high16", SW_F1(a >> 16));

  // Predicate logic and select.
#define SW_PRED2(NAME, EXPR)                                                                                \
  add_row(                                                                                                  \
      NAME, "ppp", Pipe::kInt32,                                                                            \
      [](Strand& s, const Inst* i) { return map_pred<false, 2>(s, i, [](u32 a, u32 b) { return EXPR; }); }, \
      [](Strand& s, const Inst* i) { return map_pred<true, 2>(s, i, [](u32 a, u32 b) { return EXPR; }); })
  SW_PRED2("and.pred", a & b);
  SW_PRED2("or.pred", a | b);
  SW_PRED2("xor.pred", a ^ b);
#undef SW_PRED2
  add_row(
      "not.pred", "pp", Pipe::kInt32,
      [](Strand& s, const Inst* i) { return map_pred<false, 1>(s, i, [](u32 a, u32) { return ~a; }); },
      [](Strand& s, const Inst* i) { return map_pred<true, 1>(s, i, [](u32 a, u32) { return ~a; }); });
  add_row(
      "mov.pred", "pp", Pipe::kInt32,
      [](Strand& s, const Inst* i) { return map_pred<false, 1>(s, i, [](u32 a, u32) { return a; }); },
      [](Strand& s, const Inst* i) { return map_pred<true, 1>(s, i, [](u32 a, u32) { return a; }); });
  add_row("selp{.b32,.u32,.s32}", "rrrp", Pipe::kInt32, map_select<false, u32>, map_select<true, u32>);
  add_row("selp.f32", "fffp", Pipe::kInt32, map_select<false, u32>, map_select<true, u32>);
  add_row("selp{.b16,.u16,.s16}", "hhhp", Pipe::kInt32, map_select<false, u32>, map_select<true, u32>);
  add_row("selp{.b64,.u64,.s64}", "dddp", Pipe::kInt32, map_select<false, u64>, map_select<true, u64>);
  add_row("selp.f64", "eeep", Pipe::kInt32, map_select<false, u64>, map_select<true, u64>);
}

}  // namespace
}  // namespace stitchwork::sim
