// Conversions in the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/simulator/conformance_reference.h"

namespace stitchwork::sim::reference {

std::optional<Expected> convert(const Form& f, const u64* s) {
  const std::string& from = f.modifiers.back();
  const std::string& to = f.modifiers[f.modifiers.size() - 2];
  const int mode = mode_of(f);
  const bool to_integer = is_integer(to), from_integer = is_integer(from);
  if (to_integer && from_integer) {
    __int128 v = integer_of(from, s[0]);
    if (f.has("sat")) {
      const int w = width_of(to);
      const __int128 low = is_signed(to) ? -(static_cast<__int128>(1) << (w - 1)) : 0;
      const __int128 high = (static_cast<__int128>(1) << (is_signed(to) ? w - 1 : w)) - 1;
      v = std::clamp(v, low, high);
    } else {
      v = integer_of(to, static_cast<u64>(v));
    }
    return Expected{.bits = static_cast<u64>(v), .value = {}};
  }
  if (to.ends_with("x2") || from.ends_with("x2")) {
    const std::string element = to.substr(0, to.size() - 2);
    const bool narrow = element[0] == 'e';
    u32 parts[2];
    for (int k = 0; k < 2; ++k) {  // parts[0] is the upper one
      double v;
      if (from == "f32")
        v = f32_of(s[k]);
      else if (from == "f16x2")
        v = number_of("f16", s[0] >> (k == 0 ? 16 : 0) & 0xffff);
      else
        v = number_of(from.substr(0, 4), s[0] >> (k == 0 ? 8 : 0) & 0xff);
      if (f.has("relu") && !std::isnan(v) && !(v > 0)) v = 0;
      parts[k] = round_to(element, v, mode);
    }
    return Expected{.bits = parts[0] << (narrow ? 8 : 16) | parts[1], .value = {}};
  }
  Wide v;
  if (from_integer) {
    v = static_cast<Wide>(integer_of(from, s[0]));
  } else {
    double d = from == "f64" ? f64_of(s[0]) : from == "f32" ? f32_of(s[0]) : number_of(from, s[0]);
    if (f.has("ftz") && from == "f32") d = flush(static_cast<float>(d));
    if (f.has("rni") || f.has("rzi") || f.has("rmi") || f.has("rpi"))
      d = rounded(mode, [&] {
        volatile double x = d;
        volatile double r = std::nearbyint(x);
        return double(r);
      });
    v = d;
    if (to_integer) {
      const int w = width_of(to);
      if (std::isnan(d)) return Expected{.bits = 0, .value = {}};
      const Wide low = is_signed(to) ? -static_cast<Wide>(static_cast<__int128>(1) << (w - 1)) : 0;
      const __int128 top = (static_cast<__int128>(1) << (is_signed(to) ? w - 1 : w)) - 1;
      const __int128 i = v <= low                      ? static_cast<__int128>(low)
                         : v >= static_cast<Wide>(top) ? top
                                                       : static_cast<__int128>(v);
      return Expected{.bits = static_cast<u64>(i), .value = {}};
    }
  }
  if (f.has("relu") && v == v && !(v > 0)) v = 0;
  if (f.has("sat")) v = v > 0 ? (v < 1 ? v : 1) : 0;
  if (to == "f32") {
    float r = rounded(mode, [&] {
      if (from_integer) {
        volatile __int128 i = integer_of(from, s[0]);
        volatile float x = is_signed(from) ? static_cast<float>(static_cast<i64>(i))
                                           : static_cast<float>(static_cast<u64>(i));
        return float(x);
      }
      volatile double d = static_cast<double>(v);
      volatile float x = static_cast<float>(d);
      return float(x);
    });
    if (f.has("ftz")) r = flush(r);
    return Expected{.bits = bits_of(r), .value = {}};
  }
  if (to == "f64") {
    const double r = rounded(mode, [&] {
      if (from_integer) {
        volatile __int128 i = integer_of(from, s[0]);
        volatile double x = is_signed(from) ? static_cast<double>(static_cast<i64>(i))
                                            : static_cast<double>(static_cast<u64>(i));
        return double(x);
      }
      return static_cast<double>(v);
    });
    return Expected{.bits = bits_of(r), .value = {}};
  }
  if (f.has("rna")) {  // ties away from zero: half a unit more, cut off
    u64 bits = s[0] & 0xffffffff;
    if ((bits & 0x7f800000) != 0x7f800000) bits += 0x1000;
    return Expected{.bits = bits & 0xffffe000, .value = {}};
  }
  return Expected{.bits = round_to(to, v, mode), .value = {}};
}
namespace {

TEST(ConformanceReference, ConvertsAsWorkedOutByHand) {
  const auto one = [](const char* opcode, u64 source) {
    const u64 sources[2] = {source, 0};
    return convert(Form(opcode), sources)->bits;
  };
  EXPECT_EQ(one("cvt.rni.s32.f32", bits_of(2.5f)), 2u);
  EXPECT_EQ(one("cvt.rpi.s32.f32", bits_of(-2.5f)) & 0xffffffff, 0xfffffffeu);
  EXPECT_EQ(one("cvt.rzi.u32.f32", bits_of(-1.0f)), 0u);
  EXPECT_EQ(one("cvt.rzi.s32.f32", bits_of(3e9f)), 0x7fffffffu);
  EXPECT_EQ(one("cvt.rzi.s32.f32", 0x7fc00000), 0u);
  EXPECT_EQ(one("cvt.rn.f32.u32", 0xffffffff), bits_of(4294967296.0f));
  EXPECT_EQ(one("cvt.rz.f32.u32", 0xffffffff), bits_of(4294967040.0f));
  EXPECT_EQ(one("cvt.sat.s8.s32", 200), 127u);
}

}  // namespace

}  // namespace stitchwork::sim::reference
