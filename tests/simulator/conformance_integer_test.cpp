// Integers and bits in the reference, in 128-bit arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/simulator/conformance_reference.h"

namespace stitchwork::sim::reference {

__int128 integer_of(const std::string& type, u64 bits) {
  const int w = width_of(type);
  bits &= mask_of(w);
  if (is_signed(type) && (bits >> (w - 1) & 1))
    return static_cast<__int128>(bits) - (static_cast<__int128>(1) << w);
  return bits;
}

std::optional<bool> compare_integers(const std::string& how, __int128 a, __int128 b) {
  if (how == "eq") return a == b;
  if (how == "ne") return a != b;
  if (how == "lt" || how == "lo") return a < b;
  if (how == "le" || how == "ls") return a <= b;
  if (how == "gt" || how == "hi") return a > b;
  if (how == "ge" || how == "hs") return a >= b;
  return std::nullopt;
}

std::optional<u64> integer_form(const Form& f, const u64* s) {
  std::string type = f.type() == "relu" ? f.modifiers[f.modifiers.size() - 2] : f.type();
  const std::string& b = f.base;
  if (b == "dp4a" || b == "dp2a") {
    u32 sum = static_cast<u32>(s[2]);
    const int n = b == "dp4a" ? 4 : 2, shift = f.has("hi") ? 2 : 0;
    const std::string ta = f.modifiers[f.modifiers.size() - 2].substr(0, 1), tb = f.type().substr(0, 1);
    for (int k = 0; k < n; ++k)
      sum += static_cast<u32>(integer_of(ta + (n == 4 ? "8" : "16"), s[0] >> (n == 4 ? 8 : 16) * k) *
                              integer_of(tb + "8", s[1] >> 8 * (k + shift)));
    return sum;
  }
  if (type.ends_with("x2") && is_integer(type) && type[0] != 'b') {
    u64 r = 0;
    for (int half = 0; half < 2; ++half) {
      const std::string one = type.substr(0, type.size() - 2);
      const __int128 x = integer_of(one, s[0] >> 16 * half), y = integer_of(one, s[1] >> 16 * half);
      __int128 v = b == "add" ? x + y : b == "min" ? std::min(x, y) : std::max(x, y);
      if (f.has("relu")) v = std::max<__int128>(v, 0);
      r |= (static_cast<u64>(v) & 0xffff) << 16 * half;
    }
    return r;
  }
  if (!is_integer(type)) return std::nullopt;
  const int w = width_of(type);
  const __int128 x = integer_of(type, s[0]), y = integer_of(type, s[1]), z = integer_of(type, s[2]);
  const u64 ux = s[0] & mask_of(w), uy = s[1] & mask_of(w);
  const __int128 low = -(static_cast<__int128>(1) << (w - 1)),
                 high = (static_cast<__int128>(1) << (w - 1)) - 1;
  if (b == "mov") return s[0];
  if (b == "add") return static_cast<u64>(f.has("sat") ? std::clamp(x + y, low, high) : x + y);
  if (b == "sub") return static_cast<u64>(f.has("sat") ? std::clamp(x - y, low, high) : x - y);
  if (b == "mul" || b == "mad") {
    const __int128 add =
        b == "mad" ? (f.has("wide") ? integer_of(type.substr(0, 1) + std::to_string(2 * w), s[2]) : z) : 0;
    if (f.has("wide")) return static_cast<u64>(x * y + add);
    if (f.has("lo"))
      return static_cast<u64>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y) +
                              static_cast<unsigned __int128>(add));
    const __int128 upper =
        is_signed(type) ? x * y >> w
                        : static_cast<__int128>(
                              static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y) >> w);
    return static_cast<u64>(f.has("sat") ? std::clamp(upper + add, low, high) : upper + add);
  }
  if (b == "mul24" || b == "mad24") {
    auto cut = [&](u64 v) -> i64 {
      v &= 0xffffff;
      return is_signed(type) && (v >> 23 & 1) ? static_cast<i64>(v) - (1 << 24) : static_cast<i64>(v);
    };
    const i64 product = cut(s[0]) * cut(s[1]);
    return static_cast<u64>((f.has("hi") ? product >> 16 : product) +
                            (b == "mad24" ? static_cast<i64>(z) : 0));
  }
  if (b == "div") return uy == 0 ? ~u64{0} : static_cast<u64>(x / y);
  if (b == "rem") return uy == 0 ? ux : static_cast<u64>(x % y);
  if (b == "neg") return static_cast<u64>(-x);
  if (b == "abs") return static_cast<u64>(x < 0 ? -x : x);
  if (b == "min" || b == "max") {
    __int128 r = b == "min" ? std::min(x, y) : std::max(x, y);
    if (f.has("relu")) r = std::max<__int128>(r, 0);
    return static_cast<u64>(r);
  }
  if (b == "and") return ux & uy;
  if (b == "or") return ux | uy;
  if (b == "xor") return ux ^ uy;
  if (b == "not") return ~ux;
  if (b == "cnot") return ux == 0;
  if (b == "lop3") {
    u64 r = 0;
    for (int k = 0; k < 32; ++k) {
      const u64 index = (s[0] >> k & 1) * 4 + (s[1] >> k & 1) * 2 + (s[2] >> k & 1);
      r |= (s[3] >> index & 1) << k;
    }
    return r;
  }
  const u64 n = s[1] & 0xffffffff;
  if (b == "shl") return n >= static_cast<u64>(w) ? 0 : ux << n;
  if (b == "shr") return n >= static_cast<u64>(w) ? (x < 0 ? ~u64{0} : 0) : static_cast<u64>(x >> n);
  if (b == "shf") {
    const u64 both = (s[1] & 0xffffffff) << 32 | (s[0] & 0xffffffff);
    const u64 by = f.has("wrap") ? s[2] & 31 : std::min<u64>(s[2] & 0xffffffff, 32);
    return f.has("l") ? (by == 32 ? s[0] : (both << by) >> 32) : both >> by;
  }
  if (b == "bfe" || b == "bfi") {
    const bool insert = b == "bfi";
    const u64 at = (insert ? s[2] : s[1]) & 0xff, length = (insert ? s[3] : s[2]) & 0xff;
    u64 r = insert ? uy : 0;
    for (u64 k = 0; k < static_cast<u64>(w); ++k) {
      if (insert) {
        if (k < length && at + k < static_cast<u64>(w))
          r = (r & ~(u64{1} << (at + k))) | (ux >> k & 1) << (at + k);
        continue;
      }
      // Beyond the field, or beyond the value, the sign: the last bit of the field that there is.
      const u64 last = std::min<u64>(at + length - 1, static_cast<u64>(w) - 1);
      const u64 sign = is_signed(type) && length != 0 ? ux >> last & 1 : 0;
      r |= (k < length && at + k < static_cast<u64>(w) ? ux >> (at + k) & 1 : sign) << k;
    }
    return r;
  }
  if (b == "bfind") {
    u64 v = x < 0 ? ~ux & mask_of(w) : ux;
    if (v == 0) return 0xffffffff;
    int at = 63;
    while (!(v >> at & 1)) --at;
    return static_cast<u64>(f.has("shiftamt") ? w - 1 - at : at);
  }
  if (b == "brev") {
    u64 r = 0;
    for (int k = 0; k < w; ++k) r |= (ux >> k & 1) << (w - 1 - k);
    return r;
  }
  if (b == "clz") return ux == 0 ? static_cast<u64>(w) : static_cast<u64>(std::countl_zero(ux) - (64 - w));
  if (b == "popc") return static_cast<u64>(std::popcount(ux));
  if (b == "sad") return static_cast<u64>(z + (x > y ? x - y : y - x));
  if (b == "fns") {
    const u64 base = s[1] & 0xffffffff;
    i64 left = static_cast<std::int32_t>(s[2]);
    if (base > 31) return 0xffffffff;
    if (left == 0) return s[0] >> base & 1 ? base : 0xffffffff;
    const int step = left > 0 ? 1 : -1;
    left = std::abs(left);
    for (int k = static_cast<int>(base); k >= 0 && k < 32; k += step)
      if ((s[0] >> k & 1) && --left == 0) return static_cast<u64>(k);
    return 0xffffffff;
  }
  if (b == "szext") {
    const u64 bits = f.has("wrap") ? n & 31 : std::min<u64>(n, 32);
    if (bits == 0) return 0;
    u64 r = ux & mask_of(static_cast<int>(bits));
    if (is_signed(type) && (r >> (bits - 1) & 1)) r |= ~mask_of(static_cast<int>(bits));
    return r;
  }
  if (b == "bmsk") {
    const u64 at = f.has("wrap") ? s[0] & 31 : s[0] & 0xffffffff, count = f.has("wrap") ? n & 31 : n;
    u64 r = 0;
    for (u64 k = 0; k < std::min<u64>(count, 32); ++k)
      if (at + k < 32) r |= u64{1} << (at + k);
    return r;
  }
  return std::nullopt;
}
namespace TEST_FILE {

TEST(ConformanceReference, IntegersWrapClampAndExtendAsWorkedOutByHand) {
  const auto give = [](const char* opcode, u64 a, u64 b, u64 c = 0) {
    const u64 sources[4] = {a, b, c, 0};
    return *integer_form(Form(opcode), sources) & 0xffffffff;
  };
  EXPECT_EQ(give("add.sat.s32", 0x7fffffff, 1), 0x7fffffffu);
  EXPECT_EQ(give("add.s32", 0x7fffffff, 1), 0x80000000u);
  EXPECT_EQ(give("mul.hi.s32", 0xffffffff, 5), 0xffffffffu);
  EXPECT_EQ(give("mul.hi.u32", 0xffffffff, 5), 4u);
  EXPECT_EQ(give("bfe.s32", 0x80, 7, 1), 0xffffffffu);
  EXPECT_EQ(give("shr.s32", 0x80000000, 33), 0xffffffffu);
  EXPECT_EQ(give("rem.s32", 0xfffffff9, 3), 0xffffffffu);  // -7 = -2 * 3 - 1
}

}  // namespace TEST_FILE

}  // namespace stitchwork::sim::reference
