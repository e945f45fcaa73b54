// Scalar semantics of HLO that C++ does not share: integer division, shifts, NaN in maximum, powers.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/error.h"
#include "core/graph/op.h"

namespace stitchwork {

/// Unsigned type of T's width, or T itself if it is not an integer: integer arithmetic wraps.
template <typename T>
struct Wrapping {
  using type = T;
};
template <typename T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) struct Wrapping<T> {
  // At least 32 bits: narrower operands would be promoted to (signed, overflowing) int.
  using type = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;
};
template <typename T>
using WrappingT = typename Wrapping<T>::type;

/// IEEE 754-2019 maximum and minimum: NaN if either is NaN, and -0 is less than +0.
template <typename T>
T hlo_maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) return std::signbit(a) ? b : a;
    if (b != b) return b;
    return a != a || a > b ? a : b;
  }
  return a > b ? a : b;
}
template <typename T>
T hlo_minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) return std::signbit(a) ? a : b;
    if (b != b) return b;
    return a != a || a < b ? a : b;
  }
  return a < b ? a : b;
}

template <typename T>
T hlo_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return static_cast<T>(WrappingT<T>{0} - static_cast<WrappingT<T>>(a));
  }
  return static_cast<T>(a / b);
}
template <typename T>
T hlo_remainder(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return static_cast<T>(a % b);
  } else {
    return std::fmod(a, b);
  }
}

template <typename T>
T hlo_power(T base, T exponent) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>)
      if (exponent < 0) return base == 1 ? T{1} : base == -1 ? (exponent % 2 == 0 ? T{1} : T{-1}) : T{0};
    WrappingT<T> result = 1, square = static_cast<WrappingT<T>>(base);
    for (auto left = static_cast<std::make_unsigned_t<T>>(exponent); left != 0; left >>= 1, square *= square)
      if ((left & 1) != 0) result *= square;
    return static_cast<T>(result);
  } else {
    return static_cast<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
}

/// An amount outside [0, width) shifts everything out.
template <typename T>
T hlo_shift(Op op, T value, T amount) {
  using U = std::make_unsigned_t<T>;
  constexpr int kWidth = std::numeric_limits<U>::digits;
  const bool within = static_cast<U>(amount) < static_cast<U>(kWidth);
  const int by = within ? static_cast<int>(amount) : kWidth - 1;
  if (op == Op::kShiftRightArithmetic) return static_cast<T>(static_cast<std::make_signed_t<T>>(value) >> by);
  if (!within) return 0;
  if (op == Op::kShiftLeft) return static_cast<T>(static_cast<WrappingT<T>>(value) << by);
  return static_cast<T>(static_cast<U>(value) >> by);
}

/// a op b for the commutative ops that simple_reducer names.
template <typename T>
T combine(Op op, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    switch (op) {
      case Op::kAdd:
      case Op::kMaximum:
      case Op::kOr:
        return a || b;
      case Op::kXor:
        return a != b;
      default:
        return a && b;  // multiply, minimum, and
    }
  } else {
    using W = WrappingT<T>;
    switch (op) {
      case Op::kAdd:
        return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
      case Op::kMultiply:
        return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
      case Op::kMaximum:
        return hlo_maximum(a, b);
      case Op::kMinimum:
        return hlo_minimum(a, b);
      default:
        break;
    }
    if constexpr (std::is_integral_v<T>) {
      if (op == Op::kAnd) return static_cast<T>(a & b);
      if (op == Op::kOr) return static_cast<T>(a | b);
      if (op == Op::kXor) return static_cast<T>(a ^ b);
    }
    SW_CHECK(false, "{} is not a simple reducer of this type", def(op).name);
    return a;
  }
}

}  // namespace stitchwork
