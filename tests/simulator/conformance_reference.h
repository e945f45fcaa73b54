// What an instruction gives, computed lane by lane in plain host arithmetic of the stated rounding from its
// spelling alone: the other side of the conformance test.
#pragma once

#include <bit>
#include <cfenv>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stitchwork::sim::reference {

using Wide = __float128;

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

/// Runs f under a rounding mode. Operands and results pass through volatile objects, so that nothing is
/// computed before or after.
template <class F>
auto rounded(int mode, F f) {
  const int before = std::fegetround();
  std::fesetround(mode);
  const auto r = f();
  std::fesetround(before);
  return r;
}

/// Bits of a type's value: 1 for "pred", 32 for "f16x2".
int width_of(const std::string& type);
inline bool is_signed(const std::string& type) { return type[0] == 's'; }
inline bool is_integer(const std::string& type) {
  return type[0] == 's' || type[0] == 'u' || (type[0] == 'b' && !type.starts_with("bf16"));
}
inline u64 mask_of(int width) { return width >= 64 ? ~u64{0} : (u64{1} << width) - 1; }
/// The number that an integer register of this type holds.
__int128 integer_of(const std::string& type, u64 bits);
inline float f32_of(u64 bits) { return std::bit_cast<float>(static_cast<u32>(bits)); }
inline double f64_of(u64 bits) { return std::bit_cast<double>(bits); }
inline u64 bits_of(float v) { return std::bit_cast<u32>(v); }
inline u64 bits_of(double v) { return std::bit_cast<u64>(v); }
inline float flush(float v) { return std::fabs(v) < FLT_MIN ? std::copysign(0.0f, v) : v; }
inline float saturate(float v) { return v > 0 ? (v < 1 ? v : 1.0f) : 0.0f; }

/// "cvt.rzi.ftz.s32.f32" taken apart.
struct Form {
  explicit Form(const std::string& opcode);
  std::string base;
  std::vector<std::string> modifiers;
  bool has(std::string_view m) const;
  const std::string& type() const { return modifiers.back(); }
  /// The type of the result, for comparing it.
  std::string result_type() const;
};

/// A value an instruction may give: exactly `bits`, or within `error` of `value`.
struct Expected {
  std::uint64_t bits = 0;
  std::optional<double> value, upper;  ///< upper: of the second half of a pair
  double relative = 0, absolute = 0;
};

/// Nothing where the reference does not know the form.
std::optional<Expected> evaluate(const Form& form, const std::uint64_t* sources);

// The kinds of forms: integers and bits, floats (the operation of one element of a half pair apart),
// comparisons, conversions. Nothing where a form is of another kind.
std::optional<u64> integer_form(const Form& form, const u64* sources);
std::optional<Expected> float_form(const Form& form, const u64* sources);
std::optional<u32> half_element(const Form& form, const std::string& type, const u32* sources);
std::optional<bool> compare(const std::string& how, double a, double b);
std::optional<bool> compare_integers(const std::string& how, __int128 a, __int128 b);
std::optional<Expected> convert(const Form& form, const u64* sources);
/// FE_TONEAREST and so on, as .rn, .rzi and so on name them.
int mode_of(const Form& form);

/// True if `got` is what was expected of a result of this type; NaNs are alike.
bool matches(const std::string& type, const Expected& expected, std::uint64_t got);

/// A number rounded to a format of 16 bits or fewer ("f16", "bf16", "e4m3", "e5m2"; "tf32" as 32 bits).
std::uint32_t round_to(const std::string& type, Wide v, int mode);
double number_of(const std::string& type, std::uint64_t bits);

}  // namespace stitchwork::sim::reference
