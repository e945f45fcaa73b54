// What form an instruction is, and whether a result is the one expected.
#include "tests/simulator/conformance_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace stitchwork::sim::reference {

int width_of(const std::string& type) {
  if (type == "pred") return 1;
  const std::size_t digit = type.find_first_of("0123456789");
  if (type.ends_with("x2")) return type[0] == 'e' ? 16 : 2 * width_of(type.substr(0, type.size() - 2));
  if (type == "bf16") return 16;
  return digit == std::string::npos ? 32 : std::stoi(type.substr(digit));
}

int mode_of(const Form& f) {
  return f.has("rz") || f.has("rzi")   ? FE_TOWARDZERO
         : f.has("rm") || f.has("rmi") ? FE_DOWNWARD
         : f.has("rp") || f.has("rpi") ? FE_UPWARD
                                       : FE_TONEAREST;
}

Form::Form(const std::string& opcode) {
  std::size_t dot = opcode.find('.');
  base = opcode.substr(0, dot);
  while (dot != std::string::npos) {
    const std::size_t next = opcode.find('.', dot + 1);
    modifiers.push_back(opcode.substr(dot + 1, next == std::string::npos ? next : next - dot - 1));
    dot = next;
  }
}
bool Form::has(std::string_view m) const {
  return std::find(modifiers.begin(), modifiers.end(), m) != modifiers.end();
}
std::string Form::result_type() const {
  if (base == "setp" || base == "testp" || type() == "pred") return "pred";
  if (base == "cvt") return has("pack") ? "b32" : modifiers[modifiers.size() - 2];
  if (base == "mul" || base == "mad") {
    if (has("wide")) return type().substr(0, 1) + std::to_string(2 * width_of(type()));
  }
  if (base == "popc" || base == "clz" || base == "bfind" || base == "dp4a" || base == "dp2a") return "u32";
  if (base == "slct") return modifiers[0];
  if (base == "prmt" || base == "vabsdiff4" || base == "vshl" || base == "vshr") return "b32";
  if (type() == "relu") return modifiers[modifiers.size() - 2];
  return type();
}

bool matches(const std::string& type, const Expected& expected, u64 got) {
  if (expected.value) {
    if (type.ends_with("x2")) {
      Expected half = expected;
      half.upper.reset();
      const std::string element = type.substr(0, type.size() - 2);
      const bool lower = matches(element, half, got);
      half.value = expected.upper;
      return lower && matches(element, half, got >> 16);
    }
    const double v = type == "f64"   ? f64_of(got)
                     : type == "f32" ? f32_of(got)
                                     : number_of(type, got & 0xffff);
    const double want = *expected.value;
    if (std::isnan(want)) return std::isnan(v);
    if (std::isinf(want) || std::isinf(v)) {
      const double limit = type == "f32" ? FLT_MAX : type == "f64" ? DBL_MAX : 65504;
      return v == want ||
             (std::isinf(v) && std::fabs(want) > limit * 0.999 && std::signbit(v) == std::signbit(want));
    }
    return std::fabs(v - want) <= expected.relative * std::fabs(want) + expected.absolute;
  }
  const u64 mask = type == "pred" ? 1 : mask_of(width_of(type));
  if (((got ^ expected.bits) & mask) == 0) return true;
  if (type == "f32") return std::isnan(f32_of(got)) && std::isnan(f32_of(expected.bits));
  if (type == "f64") return std::isnan(f64_of(got)) && std::isnan(f64_of(expected.bits));
  return false;
}

namespace {

u64 permute(const Form& f, const u64* s) {
  const u64 bytes = (s[1] & 0xffffffff) << 32 | (s[0] & 0xffffffff);
  // PTX ISA, prmt: which byte each byte of the result is, by mode and the two low bits of the selector.
  static constexpr struct {
    const char* mode;
    int from[4][4];  ///< lowest byte first
  } kModes[] = {{"f4e", {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}},
                {"b4e", {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}},
                {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
                {"ecl", {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}},
                {"ecr", {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}},
                {"rc16", {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}}};
  u64 r = 0;
  for (int k = 0; k < 4; ++k) {
    u64 byte = 0;
    bool found = false;
    for (const auto& mode : kModes) {
      if (f.type() != mode.mode) continue;
      byte = bytes >> 8 * mode.from[s[2] & 3][k] & 0xff;
      found = true;
    }
    if (!found) {
      const u64 select = s[2] >> 4 * k & 15;
      byte = bytes >> 8 * (select & 7) & 0xff;
      if (select & 8) byte = byte & 0x80 ? 0xff : 0;
    }
    r |= byte << 8 * k;
  }
  return r;
}

std::optional<u64> pack(const Form& f, const u64* s) {  // cvt.pack.sat.TO.s32{.b32}
  const std::string& to = f.modifiers[2];
  const int w = width_of(to);
  u64 r = w == 8 ? s[2] << 16 & 0xffffffff : 0;
  for (int k = 0; k < 2; ++k) {
    const __int128 low = is_signed(to) ? -(1 << (w - 1)) : 0, high = (1 << (is_signed(to) ? w - 1 : w)) - 1;
    r |= (static_cast<u64>(std::clamp(integer_of("s32", s[k]), low, high)) & mask_of(w)) << (k == 0 ? w : 0);
  }
  return r;
}

}  // namespace

std::optional<Expected> evaluate(const Form& f, const u64* s) {
  const std::string& b = f.base;
  const auto exact = [](u64 bits) { return Expected{.bits = bits, .value = {}}; };
  if (f.type() == "pred") {
    if (b == "and") return exact(s[0] & s[1]);
    if (b == "or") return exact(s[0] | s[1]);
    if (b == "xor") return exact(s[0] ^ s[1]);
    if (b == "not") return exact(~s[0]);
    if (b == "mov") return exact(s[0]);
    return std::nullopt;
  }
  if (b == "selp") return exact(s[2] & 1 ? s[0] : s[1]);
  if (b == "slct")
    return exact(f.type() == "f32" ? (f32_of(s[2]) >= 0 ? s[0] : s[1])
                                   : (static_cast<std::int32_t>(s[2]) >= 0 ? s[0] : s[1]));
  if (b == "mov") return exact(s[0]);
  if (b == "prmt") return exact(permute(f, s));
  if (b == "vabsdiff4") {
    u64 differences = 0, sum = s[2];
    for (int k = 0; k < 32; k += 8) {
      const i64 d = std::abs(static_cast<i64>(s[0] >> k & 0xff) - static_cast<i64>(s[1] >> k & 0xff));
      differences |= static_cast<u64>(d) << k;
      sum += static_cast<u64>(d);
    }
    return exact(f.has("add") ? sum : differences);
  }
  if (b == "vshl" || b == "vshr") {
    const u64 by = f.has("wrap") ? s[1] & 31 : s[1], shifted = by > 31       ? 0
                                                               : b == "vshl" ? s[0] << by
                                                                             : s[0] >> by;
    return exact((shifted + (f.has("add") ? s[2] : 0)) & 0xffffffff);
  }
  if (b == "cvt") {
    if (!f.has("pack")) return convert(f, s);
    const auto r = pack(f, s);
    return exact(*r);
  }
  if (b == "testp") {
    const double v = f.type() == "f32" ? f32_of(s[0]) : f64_of(s[0]);
    const int kind = f.type() == "f32" ? std::fpclassify(f32_of(s[0])) : std::fpclassify(v);
    const std::string& what = f.modifiers[0];
    return exact(what == "finite"       ? std::isfinite(v)
                 : what == "infinite"   ? kind == FP_INFINITE
                 : what == "number"     ? kind != FP_NAN
                 : what == "notanumber" ? kind == FP_NAN
                 : what == "normal"     ? kind == FP_NORMAL
                                        : kind == FP_SUBNORMAL);
  }
  const std::string& type = f.type();
  if (b == "setp") {
    const std::string& how = f.modifiers[0];
    std::optional<bool> r;
    if (is_integer(type)) {
      r = compare_integers(how, integer_of(type, s[0]), integer_of(type, s[1]));
    } else {
      double v[2];
      for (int k = 0; k < 2; ++k) {
        v[k] = type == "f64" ? f64_of(s[k]) : type == "f32" ? f32_of(s[k]) : number_of(type, s[k]);
        if (f.has("ftz")) v[k] = flush(static_cast<float>(v[k]));
      }
      r = compare(how, v[0], v[1]);
    }
    if (!r) return std::nullopt;
    return exact(*r);
  }
  if (type == "f32" || type == "f64" || type == "f32x2") return float_form(f, s);
  if (type.starts_with("f16") || type.starts_with("bf16")) {
    const std::string element = type.starts_with("f16") ? "f16" : "bf16";
    if (b == "ex2" || b == "tanh") {
      const auto value = [&](u64 bits) {
        const double v = number_of(element, bits & 0xffff);
        return b == "ex2" ? std::exp2(v) : std::tanh(v);
      };
      Expected e{.bits = 0,
                 .value = value(s[0]),
                 .relative = element == "f16" ? 0x1p-9 : 0x1p-7,
                 .absolute = element == "f16" ? 0x1p-24 : 0x1p-126};
      if (type != element) e.upper = value(s[0] >> 16);
      return e;
    }
    u64 bits = 0;
    for (int half = 0; half < (type == element ? 1 : 2); ++half) {
      const u32 x[3] = {static_cast<u32>(s[0] >> 16 * half) & 0xffff,
                        static_cast<u32>(s[1] >> 16 * half) & 0xffff,
                        static_cast<u32>(s[2] >> 16 * half) & 0xffff};
      const auto r = half_element(f, element, x);
      if (!r) return std::nullopt;
      bits |= static_cast<u64>(*r) << 16 * half;
    }
    return exact(bits);
  }
  if (const auto r = integer_form(f, s)) return exact(*r);
  return std::nullopt;
}

}  // namespace stitchwork::sim::reference