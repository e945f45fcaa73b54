#include "core/graph/literal.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/graph/dtype_dispatch.h"

namespace stitchwork {
namespace {

/// Bytes from which on an array asks for memory first. A choice, not measured: reading what is left takes
/// some tens of microseconds, filling so many some tens of milliseconds.
constexpr double kAskedFor = 1 << 28;

}  // namespace

Literal Literal::zeros(const Shape& shape) {
  Literal literal;
  if (shape.is_tuple) {
    literal.shape = Shape::tuple(shape.elements);
    for (const Shape& element : shape.elements) literal.elements.push_back(zeros(element));
    return literal;
  }
  literal.shape = Shape::array(shape.dtype, shape.dims);
  if (const auto bytes = static_cast<double>(literal.shape.byte_size()); bytes >= kAskedFor)
    require_memory(
        bytes, to_text(literal.shape),
        "arrays are kept in this machine's memory: plan, compare and explain take a model of any size");
  literal.bytes.resize(static_cast<std::size_t>(literal.shape.byte_size()));
  return literal;
}

double Literal::get_double(std::int64_t i) const {
  return with_element(shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    return static_cast<double>(S::widen(data<typename S::Stored>()[i]));
  });
}

std::int64_t Literal::get_int(std::int64_t i) const {
  return with_element(shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    return convert_value<std::int64_t>(S::widen(data<typename S::Stored>()[i]));
  });
}

void Literal::set_double(std::int64_t i, double value) {
  with_element(shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    data<typename S::Stored>()[i] = S::narrow(convert_value<typename S::Value>(value));
  });
}

void Literal::set_int(std::int64_t i, std::int64_t value) {
  with_element(shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    data<typename S::Stored>()[i] = S::narrow(convert_value<typename S::Value>(value));
  });
}

Literal extreme(DType type, bool largest) {
  Literal literal = Literal::zeros(Shape::array(type, {}));
  if (is_floating(type)) {
    literal.set_double(0, (largest ? 1 : -1) * std::numeric_limits<double>::infinity());
  } else if (type == DType::kPred) {
    literal.set_int(0, largest ? 1 : 0);
  } else {
    const int bits = bit_width(type);
    const std::int64_t least =
        is_signed_integer(type) ? -1 - ((std::int64_t{1} << (bits - 2)) - 1) * 2 - 1 : 0;
    literal.set_int(0, largest ? ~least : least);
  }
  return literal;
}

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in float
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 0xffu : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;   // NaN
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and more round to infinity
  if (magnitude < 0x38800000u) {                        // below 2^-14: subnormal, a multiple of 2^-24
    // Adding 0.5 puts the unit in the last place at 2^-24, so the addition itself rounds to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float bf16_to_f32(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace stitchwork
