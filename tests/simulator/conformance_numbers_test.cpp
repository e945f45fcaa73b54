// Floats in the reference: formats of 16 bits and fewer, arithmetic of every rounding, comparisons.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/simulator/conformance_reference.h"

namespace stitchwork::sim::reference {
namespace {

/// a + b in 113 bits, the last made odd where bits were lost: rounding it on is rounding the exact sum.
Wide add_to_odd(Wide a, Wide b) {
  Wide sum = a + b;
  if (sum - sum != 0) return sum;
  const Wide part = sum - a;
  const Wide error = (a - (sum - part)) + (b - part);
  if (error == 0) return sum;
  __int128 bits;
  std::memcpy(&bits, &sum, 16);
  if ((bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
  std::memcpy(&sum, &bits, 16);
  return sum;
}

struct Layout {
  int exponent, mantissa;
  u32 largest;  ///< bits of the largest finite number
};
Layout layout_of(const std::string& type) {
  if (type == "f16") return {5, 10, 0x7bff};
  if (type == "bf16") return {8, 7, 0x7f7f};
  if (type == "tf32") return {8, 10, 0x3fbff};
  if (type == "e5m2") return {5, 2, 0x7b};
  return {4, 3, 0x7e};  // e4m3
}
Wide magnitude_of(const Layout& l, u32 bits) {
  const int bias = (1 << (l.exponent - 1)) - 1, e = static_cast<int>(bits >> l.mantissa);
  const u32 m = bits & ((1u << l.mantissa) - 1);
  const double whole = e == 0 ? m : m + (1u << l.mantissa);
  return static_cast<Wide>(std::ldexp(whole, std::max(e, 1) - bias - l.mantissa));
}

/// Half-precision arithmetic of one element.
}  // namespace

std::optional<u32> half_element(const Form& f, const std::string& type, const u32* x) {
  const bool ftz = f.has("ftz") && type == "f16";
  Wide v[3];
  double d[3];
  for (int k = 0; k < 3; ++k) {
    u32 bits = x[k] & 0xffff;
    if (ftz && (bits & 0x7c00) == 0) bits &= 0x8000;
    d[k] = number_of(type, bits);
    v[k] = d[k];
  }
  const u32 nan = 0x7fff;
  auto finish = [&](Wide r) -> u32 {
    if (f.has("sat")) r = r > 0 ? (r < 1 ? r : 1) : 0;
    if (f.has("relu") && r == r && !(r > 0)) r = 0;
    u32 bits = round_to(type, r, FE_TONEAREST);
    if (ftz && (bits & 0x7c00) == 0) bits &= 0x8000;
    return bits;
  };
  if (f.base == "add") return finish(v[0] + v[1]);
  if (f.base == "sub") return finish(v[0] - v[1]);
  if (f.base == "mul") return finish(v[0] * v[1]);
  if (f.base == "fma") {
    const Wide product = v[0] * v[1];
    if (product == 0 && v[2] == 0) return finish(static_cast<Wide>(std::fma(d[0], d[1], d[2])));
    return finish(add_to_odd(product, v[2]));
  }
  if (f.base == "neg") return (ftz && (x[0] & 0x7c00) == 0 ? x[0] & 0x8000 : x[0] & 0xffff) ^ 0x8000;
  if (f.base == "abs") return (ftz && (x[0] & 0x7c00) == 0 ? 0 : x[0] & 0x7fff);
  if (f.base == "max" || f.base == "min") {
    const bool sign = ((x[0] ^ x[1]) & 0x8000) != 0, xorsign = f.has("xorsign");
    double a = xorsign ? std::fabs(d[0]) : d[0], b = xorsign ? std::fabs(d[1]) : d[1];
    if (std::isnan(a) || std::isnan(b)) {
      if (f.has("NaN") || (std::isnan(a) && std::isnan(b))) return nan;
      a = b = std::isnan(a) ? b : a;
    }
    const bool first =
        f.base == "max" ? a > b || (a == b && !std::signbit(a)) : a < b || (a == b && std::signbit(a));
    const u32 r = round_to(type, first ? a : b, FE_TONEAREST);
    return xorsign ? (r & 0x7fff) | (sign ? 0x8000u : 0) : r;
  }
  return std::nullopt;
}
namespace {

template <class T>
std::optional<T> float_value(const Form& f, T a, T b, T c) {
  volatile T x = a, y = b, z = c;
  const int mode = mode_of(f);
  if (f.base == "add")
    return rounded(mode, [&] {
      volatile T r = x + y;
      return T(r);
    });
  if (f.base == "sub")
    return rounded(mode, [&] {
      volatile T r = x - y;
      return T(r);
    });
  if (f.base == "mul")
    return rounded(mode, [&] {
      volatile T r = x * y;
      return T(r);
    });
  if (f.base == "div")
    return rounded(mode, [&] {
      volatile T r = x / y;
      return T(r);
    });
  if (f.base == "rcp")
    return rounded(mode, [&] {
      volatile T r = 1 / x;
      return T(r);
    });
  if (f.base == "sqrt")
    return rounded(mode, [&] {
      volatile T r = std::sqrt(T(x));
      return T(r);
    });
  if (f.base == "fma" || f.base == "mad")
    return rounded(mode, [&] {
      volatile T r = std::fma(T(x), T(y), T(z));
      return T(r);
    });
  if (f.base == "neg") return -a;
  if (f.base == "abs") return std::fabs(a);
  if (f.base == "copysign") return std::copysign(b, a);
  if (f.base == "max" || f.base == "min") {
    if (std::isnan(a) || std::isnan(b)) {
      if (f.has("NaN") || (std::isnan(a) && std::isnan(b))) return std::numeric_limits<T>::quiet_NaN();
      return std::isnan(a) ? b : a;
    }
    const bool first =
        f.base == "max" ? a > b || (a == b && !std::signbit(a)) : a < b || (a == b && std::signbit(a));
    return first ? a : b;
  }
  return std::nullopt;
}

std::optional<Expected> approximate(const Form& f, float x) {
  const double v = x;
  Expected e;
  if (f.base == "ex2") {
    e.value = std::exp2(v);
    e.relative = 0x1p-22;  // 2 ulp
  } else if (f.base == "lg2") {
    e.value = x < 0 ? std::nan("") : std::log2(v);
    e.relative = 0x1p-22;
    e.absolute = 0x1p-22;
  } else if (f.base == "rsqrt") {
    e.value = 1 / std::sqrt(v);
    e.relative = 0x1p-22;
  } else if (f.base == "sin" || f.base == "cos") {
    e.value = f.base == "sin" ? std::sin(v) : std::cos(v);
    e.absolute = 0x1p-20;
    if (f.has("ftz") && f.base == "sin" && std::fabs(x) < FLT_MIN)
      return Expected{.bits = bits_of(std::copysign(0.0f, x)), .value = {}};
  } else if (f.base == "tanh") {
    e.value = std::tanh(v);
    e.relative = 0x1p-11;
  } else {
    return std::nullopt;
  }
  e.absolute += 0x1p-149;
  if (f.has("ftz")) e.absolute += 0x1p-126;
  return e;
}
}  // namespace

std::optional<Expected> float_form(const Form& f, const u64* s) {
  const std::string& type = f.type();
  if (type == "f64") {
    if ((f.base == "rcp" && f.has("approx")) || f.base == "rsqrt") {
      double v = f64_of(s[0]);  // PTX ISA, rcp.approx.ftz.f64: of subnormal numbers, an infinity
      if (f.has("ftz") && std::fabs(v) < DBL_MIN) v = std::copysign(0.0, v);
      return Expected{.bits = 0,
                      .value = 1 / (f.base == "rcp" ? v : std::sqrt(v)),
                      .relative = 0x1p-20,
                      .absolute = 0x1p-1022};
    }
    const auto r = float_value<double>(f, f64_of(s[0]), f64_of(s[1]), f64_of(s[2]));
    if (!r) return std::nullopt;
    return Expected{.bits = bits_of(*r), .value = {}};
  }
  if (type == "f32x2") {
    u64 bits = 0;
    for (int half = 0; half < 2; ++half) {
      Form one = f;
      one.modifiers.back() = "f32";
      const u64 part[3] = {s[0] >> 32 * half & 0xffffffff, s[1] >> 32 * half & 0xffffffff,
                           s[2] >> 32 * half & 0xffffffff};
      const auto r = float_form(one, part);
      if (!r) return std::nullopt;
      bits |= (std::isnan(f32_of(r->bits)) ? 0x7fffffff : r->bits) << 32 * half;
    }
    return Expected{.bits = bits, .value = {}};
  }
  float x[3] = {f32_of(s[0]), f32_of(s[1]), f32_of(s[2])};
  if (f.has("ftz"))
    for (float& v : x) v = flush(v);
  if (const auto e = approximate(f, x[0])) return e;
  auto r = float_value<float>(f, x[0], x[1], x[2]);
  if (!r) return std::nullopt;
  if (f.has("ftz")) r = flush(*r);
  if (f.has("sat")) r = saturate(*r);
  if (f.has("approx") || f.has("full")) {
    Expected e{.bits = 0, .value = *r, .relative = 0x1p-22, .absolute = 0x1p-148};
    return e;
  }
  return Expected{.bits = bits_of(*r), .value = {}};
}

std::optional<bool> compare(const std::string& how, double a, double b) {
  const bool nan = std::isnan(a) || std::isnan(b);
  if (how == "num") return !nan;
  if (how == "nan") return nan;
  const bool unordered = how.size() == 3;
  if (nan) return unordered;
  const std::string op = how.substr(0, 2);
  if (op == "eq") return a == b;
  if (op == "ne") return a != b;
  if (op == "lt") return a < b;
  if (op == "le") return a <= b;
  if (op == "gt") return a > b;
  if (op == "ge") return a >= b;
  return std::nullopt;
}

double number_of(const std::string& type, u64 bits) {
  if (type == "e5m2") return number_of("f16", bits << 8);
  const Layout l = layout_of(type);
  const int width = l.exponent + l.mantissa;
  const u32 magnitude = static_cast<u32>(bits) & ((1u << width) - 1);
  const double sign = bits >> width & 1 ? -1.0 : 1.0;
  const u32 infinity = ((1u << l.exponent) - 1) << l.mantissa;
  if (type == "e4m3" ? magnitude == 0x7f : magnitude > infinity) return std::nan("");
  if (type != "e4m3" && magnitude == infinity) return sign * HUGE_VAL;
  return sign * static_cast<double>(magnitude_of(l, magnitude));
}

/// By search among the numbers of the format: the neighbours below and above, and which of them is meant.
u32 round_to(const std::string& type, Wide v, int mode) {
  const Layout l = layout_of(type);
  const bool small = type[0] == 'e';
  const int shift = type == "tf32" ? 13 : 0;
  const u32 sign_bit = 1u << (l.exponent + l.mantissa);
  if (v != v) return (sign_bit - 1) << shift;
  const bool negative = v < 0 || (v == 0 && std::signbit(static_cast<double>(v)));
  const Wide m = negative ? -v : v;
  u32 low = 0, high = l.largest;  // the largest number not above m
  while (low < high) {
    const u32 middle = (low + high + 1) / 2;
    if (magnitude_of(l, middle) <= m)
      low = middle;
    else
      high = middle - 1;
  }
  const Wide below = magnitude_of(l, low), above = magnitude_of(l, low + 1);
  u32 r = low;
  if (m != below) {
    const Wide middle = below + (above - below) / 2;
    const bool up = mode == FE_TONEAREST    ? m > middle || (m == middle && (low & 1))
                    : mode == FE_TOWARDZERO ? false
                    : mode == FE_DOWNWARD   ? negative
                                            : !negative;
    r += up;
  }
  if (m - m != 0) r = l.largest + 1;
  if (small && r > l.largest) r = l.largest;  // satfinite
  return ((negative ? sign_bit : 0) | r) << shift;
}

namespace {

TEST(ConformanceReference, RoundsToNarrowFormatsAsWorkedOutByHand) {
  EXPECT_EQ(round_to("f16", 1 + 0x1p-11, FE_TONEAREST), 0x3c00u);  // a tie goes to the even neighbour
  EXPECT_EQ(round_to("f16", 1 + 0x3p-11, FE_TONEAREST), 0x3c02u);
  EXPECT_EQ(round_to("f16", 1 + 0x1p-11, FE_UPWARD), 0x3c01u);
  EXPECT_EQ(round_to("f16", -1 - 0x1p-11, FE_DOWNWARD), 0xbc01u);
  EXPECT_EQ(round_to("f16", -1 - 0x1p-11, FE_TOWARDZERO), 0xbc00u);
  EXPECT_EQ(round_to("f16", 65520, FE_TONEAREST), 0x7c00u);  // halfway to 2^16
  EXPECT_EQ(round_to("f16", 65519, FE_TONEAREST), 0x7bffu);
  EXPECT_EQ(round_to("f16", 65536, FE_TOWARDZERO), 0x7bffu);
  EXPECT_EQ(round_to("f16", 0x1p-25, FE_TONEAREST), 0u);
  EXPECT_EQ(round_to("f16", 0x3p-26, FE_TONEAREST), 1u);
  EXPECT_EQ(round_to("bf16", 1 + 0x1p-8, FE_TONEAREST), 0x3f80u);
  EXPECT_EQ(round_to("bf16", 1 + 0x3p-8, FE_TONEAREST), 0x3f82u);
  EXPECT_EQ(round_to("e4m3", 1000, FE_TONEAREST), 0x7eu);  // the largest, 448
  EXPECT_EQ(round_to("e5m2", 1.5, FE_TONEAREST), 0x3eu);
  EXPECT_EQ(number_of("f16", 0x0001), 0x1p-24);
  EXPECT_EQ(number_of("bf16", 0xc040), -3.0);
  EXPECT_EQ(number_of("e4m3", 0x7e), 448.0);
}

TEST(ConformanceReference, DirectedRoundingReachesTheNeighbours) {
  const u64 sources[3] = {bits_of(1.0f), bits_of(0x1p-24f), 0};
  EXPECT_EQ(float_form(Form("add.rn.f32"), sources)->bits, 0x3f800000u);
  EXPECT_EQ(float_form(Form("add.rp.f32"), sources)->bits, 0x3f800001u);
  EXPECT_EQ(float_form(Form("sub.rm.f32"), sources)->bits, 0x3f7fffffu);
  EXPECT_EQ(float_form(Form("sub.rz.f32"), sources)->bits, 0x3f7fffffu);
}

}  // namespace

}  // namespace stitchwork::sim::reference
