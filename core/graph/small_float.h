// Binary floats of 8 bits and less (OCP 8-bit and microscaling formats, and the variants XLA has): to and
// from double.
#pragma once

#include <cstdint>

#include "core/graph/dtype.h"

namespace stitchwork {

/// How a type packs sign, exponent and mantissa, and what it does with what it cannot hold. The suffixes of
/// the names say it: fn has no infinity, fnuz neither infinity nor -0, fnu no sign at all.
struct SmallFloat {
  int exponent_bits, mantissa_bits, bias;
  enum class Special : std::uint8_t {
    kIeee,       ///< infinity, and NaN above it
    kAllOnes,    ///< fn: no infinity, NaN is all ones
    kMinusZero,  ///< fnuz: no infinity, NaN is where -0 would be
    kNone,       ///< f4e2m1fn: neither; conversion saturates
    kScale,      ///< f8e8m0fnu: powers of two without sign or zero, NaN is all ones
  } special;
  int decimal_digits;  ///< that tell its values apart, as HLO prints them
};

/// Of a floating type of at most 8 bits.
SmallFloat small_float(DType type);

/// The largest finite value of a signed format.
double largest_value(SmallFloat format);
double decode(SmallFloat format, std::uint8_t bits);
/// The nearest value, ties to even (of f8e8m0fnu: to the larger); what rounds beyond the largest becomes
/// infinity, NaN or (kNone) the largest.
std::uint8_t encode(SmallFloat format, double value);
/// A finite value that does not become one of these, and any value that is not finite.
bool fits(SmallFloat format, double value);

}  // namespace stitchwork
