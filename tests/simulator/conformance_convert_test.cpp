// Conversions in the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "simulator/isa/isa.h"
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
      if (from_integer && !f.has("sat")) {
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
      if (from_integer && !f.has("sat")) {
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
namespace TEST_FILE {

/// The forms of cvt between scalar types that the PTX ISA has (8.5, "cvt"): rounding is named where the type
/// cannot hold every value, .ftz where a type is f32, .sat where the result is no bf16.
std::vector<std::string> scalar_forms() {
  const std::vector<std::string> integers = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"};
  const std::vector<std::string> floats = {"f16", "bf16", "f32", "f64"};
  const std::vector<std::string> float_roundings = {".rn", ".rz", ".rm", ".rp"},
                                 integer_roundings = {".rni", ".rzi", ".rmi", ".rpi"};
  std::vector<std::string> forms;
  const auto add = [&](const std::vector<std::string>& roundings, const std::string& to,
                       const std::string& from) {
    const bool single = to == "f32" || from == "f32";
    for (const std::string& rounding : roundings)
      for (const char* ftz : {"", ".ftz"})
        for (const char* sat : {"", ".sat"}) {
          if ((*ftz != 0 && !single) || (*sat != 0 && to == "bf16")) continue;
          forms.push_back("cvt" + rounding + ftz + sat + "." + to + "." + from);
        }
  };
  for (const std::string& a : integers) {
    for (const std::string& b : integers) {
      forms.push_back("cvt." + a + "." + b);
      const int to = std::stoi(a.substr(1)), from = std::stoi(b.substr(1));
      const bool holds_all = b[0] == 's' ? a[0] == 's' && to >= from : to >= from + (a[0] == 's' ? 1 : 0);
      if (!holds_all) forms.push_back("cvt.sat." + a + "." + b);
    }
    for (const std::string& f : floats) {
      add(float_roundings, f, a);
      add(integer_roundings, a, f);
    }
  }
  for (const std::string& to : floats)
    for (const std::string& from : floats) {
      const bool holds = to == "f64" || (to == "f32" && from != "f64");
      if (to == from) {
        add(integer_roundings, to, from);
        if (to != "bf16") add({""}, to, from);
      } else {
        add(holds ? std::vector<std::string>{""} : float_roundings, to, from);
      }
    }
  return forms;
}

TEST(Conversions, EveryFormOfTheIsaBetweenScalarTypesIsExecuted) {
  const std::vector<std::string> forms = scalar_forms();
  EXPECT_GT(forms.size(), 700u);
  for (const std::string& form : forms) EXPECT_GE(find_row(form), 0) << form;
}

TEST(Conversions, FlushOnlyWhatIsSubnormalAsFloat) {
  const auto one = [](const char* opcode, u64 source) {
    const u64 sources[2] = {source, 0};
    return convert(Form(opcode), sources)->bits;
  };
  const u64 largest = bits_of(0x1p-126 - 0x1p-149), tiny = bits_of(0x1p-140);  // of f64
  EXPECT_EQ(one("cvt.rn.f32.f64", largest), 0x007fffffu);
  EXPECT_EQ(one("cvt.rn.ftz.f32.f64", largest), 0u);
  EXPECT_EQ(one("cvt.rn.ftz.f32.f64", largest | u64{1} << 63), 0x80000000u);
  EXPECT_EQ(one("cvt.rn.ftz.f32.f64", bits_of(0x1p-126)), 0x00800000u);
  EXPECT_EQ(one("cvt.rp.ftz.f32.f64", tiny), 0u);
  EXPECT_EQ(one("cvt.ftz.f64.f32", 0x80000001u), bits_of(-0.0));
  EXPECT_EQ(one("cvt.rn.ftz.f16.f32", bits_of(0x1p-20f)), 0x0010u);  // subnormal as f16 only
  EXPECT_EQ(one("cvt.ftz.f32.f16", 0x0001u), bits_of(0x1p-24f));
  EXPECT_EQ(one("cvt.rpi.ftz.s32.f32", 1u), 0u);
  EXPECT_EQ(one("cvt.rpi.s32.f32", 1u), 1u);
  EXPECT_EQ(one("cvt.rn.sat.f32.f64", bits_of(1.5)), bits_of(1.0f));
  EXPECT_EQ(one("cvt.rn.sat.f32.s32", 7u), bits_of(1.0f));
}

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

}  // namespace TEST_FILE

}  // namespace stitchwork::sim::reference
