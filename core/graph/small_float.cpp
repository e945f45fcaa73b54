#include "core/graph/small_float.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace stitchwork {
namespace {

using Special = SmallFloat::Special;

int width(SmallFloat f) { return f.exponent_bits + f.mantissa_bits; }
std::uint8_t sign_bit(SmallFloat f) { return static_cast<std::uint8_t>(1 << width(f)); }
std::uint8_t magnitude_mask(SmallFloat f) { return static_cast<std::uint8_t>(sign_bit(f) - 1); }

/// Bits of a positive value of this magnitude.
double magnitude(SmallFloat f, int bits) {
  const int mantissa = bits & ((1 << f.mantissa_bits) - 1), exponent = bits >> f.mantissa_bits;
  const double fraction = exponent == 0 ? mantissa : mantissa + (1 << f.mantissa_bits);
  return std::ldexp(fraction, std::max(exponent, 1) - f.bias - f.mantissa_bits);
}

/// Bits of the largest finite value.
int largest_bits(SmallFloat f) {
  const int all_ones = magnitude_mask(f);
  switch (f.special) {
    case Special::kIeee:
      return (((1 << f.exponent_bits) - 1) << f.mantissa_bits) - 1;
    case Special::kAllOnes:
      return all_ones - 1;
    default:
      return all_ones;
  }
}

std::uint8_t not_a_number(SmallFloat f, bool negative) {
  const auto sign = static_cast<std::uint8_t>(negative ? sign_bit(f) : 0);
  switch (f.special) {
    case Special::kIeee:  // quiet
      return static_cast<std::uint8_t>(sign | (largest_bits(f) + 1) | (1 << (f.mantissa_bits - 1)));
    case Special::kAllOnes:
      return static_cast<std::uint8_t>(sign | magnitude_mask(f));
    default:  // f4e2m1fn has none: the conversion gives -0 (ml_dtypes)
      return sign_bit(f);
  }
}

constexpr std::uint8_t kScaleNan = 0xff;

std::uint8_t encode_scale(SmallFloat f, double value) {
  if (!(value > 0) || std::isinf(value)) return kScaleNan;
  int exponent = std::ilogb(value);
  if (std::scalbn(value, -exponent) >= 1.5) ++exponent;
  return exponent + f.bias > 0xfe ? kScaleNan : static_cast<std::uint8_t>(std::max(exponent + f.bias, 0));
}

/// Bits of the value nearest to `wanted` >= 0, ties to even; more than largest_bits where it lies beyond
/// them.
int rounded(SmallFloat f, double wanted) {
  if (wanted >= 2 * magnitude(f, largest_bits(f))) return largest_bits(f) + 1;
  // The step between neighbours is that of the value's exponent; subnormal values share the smallest.
  const int exponent = wanted == 0 ? 1 - f.bias : std::max(std::ilogb(wanted), 1 - f.bias);
  const double steps = std::scalbn(wanted, f.mantissa_bits - exponent), below = std::floor(steps);
  const bool up = steps - below > 0.5 || (steps - below == 0.5 && std::fmod(below, 2.0) == 1);
  // Counting steps from the exponent's first value also carries into the next exponent.
  return ((exponent + f.bias - 1) << f.mantissa_bits) + static_cast<int>(below) + (up ? 1 : 0);
}

}  // namespace

SmallFloat small_float(DType type) {
  switch (type) {
    case DType::kF4E2M1FN:
      return {2, 1, 1, Special::kNone, 2};
    case DType::kF8E8M0FNU:
      return {8, 0, 127, Special::kScale, 2};
    case DType::kF8E3M4:
      return {3, 4, 3, Special::kIeee, 3};
    case DType::kF8E4M3:
      return {4, 3, 7, Special::kIeee, 3};
    case DType::kF8E4M3FN:
      return {4, 3, 7, Special::kAllOnes, 3};
    case DType::kF8E4M3FNUZ:
      return {4, 3, 8, Special::kMinusZero, 3};
    case DType::kF8E4M3B11FNUZ:
      return {4, 3, 11, Special::kMinusZero, 3};
    case DType::kF8E5M2:
      return {5, 2, 15, Special::kIeee, 2};
    case DType::kF8E5M2FNUZ:
      return {5, 2, 16, Special::kMinusZero, 2};
    default:
      SW_CHECK(false, "{} is no small float", name(type));
  }
}

double largest_value(SmallFloat f) { return magnitude(f, largest_bits(f)); }

double decode(SmallFloat f, std::uint8_t bits) {
  if (f.special == Special::kScale) return bits == kScaleNan ? std::nan("") : std::ldexp(1.0, bits - f.bias);
  const bool negative = (bits & sign_bit(f)) != 0;
  const int rest = bits & magnitude_mask(f);
  const double sign = negative ? -1 : 1;
  if (f.special == Special::kMinusZero && negative && rest == 0) return std::nan("");
  if (rest > largest_bits(f)) {
    const bool infinite = f.special == Special::kIeee && rest == largest_bits(f) + 1;
    return std::copysign(infinite ? std::numeric_limits<double>::infinity() : std::nan(""), sign);
  }
  return sign * magnitude(f, rest);
}

bool fits(SmallFloat f, double value) {
  if (!std::isfinite(value)) return true;
  if (f.special == Special::kScale) return encode_scale(f, value) != kScaleNan;
  return rounded(f, std::abs(value)) <= largest_bits(f);
}

std::uint8_t encode(SmallFloat f, double value) {
  if (f.special == Special::kScale) return encode_scale(f, value);
  const bool negative = std::signbit(value);
  if (std::isnan(value)) return not_a_number(f, negative);
  const auto sign = static_cast<std::uint8_t>(negative ? sign_bit(f) : 0);
  const int bits = rounded(f, std::abs(value));
  if (bits > largest_bits(f)) {
    if (f.special == Special::kNone) return static_cast<std::uint8_t>(sign | largest_bits(f));
    if (f.special == Special::kIeee) return static_cast<std::uint8_t>(sign | (largest_bits(f) + 1));
    return not_a_number(f, negative);
  }
  if (f.special == Special::kMinusZero && bits == 0) return 0;
  return static_cast<std::uint8_t>(sign | bits);
}

}  // namespace stitchwork
