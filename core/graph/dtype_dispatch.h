// From a DType to C++ types: how a value is stored, and the type it is computed in.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/graph/dtype.h"
#include "core/graph/literal.h"
#include "core/graph/small_float.h"

namespace stitchwork {

/// A type stored as it is computed.
template <typename T>
struct PlainStorage {
  using Stored = T;
  using Value = T;
  static T widen(T stored) { return stored; }
  static T narrow(T value) { return value; }
};
struct PredStorage {
  using Stored = std::uint8_t;
  using Value = bool;
  static bool widen(std::uint8_t stored) { return stored != 0; }
  static std::uint8_t narrow(bool value) { return value ? 1 : 0; }
};
struct F16Storage {
  using Stored = std::uint16_t;
  using Value = float;
  static float widen(std::uint16_t stored) { return f16_to_f32(stored); }
  static std::uint16_t narrow(float value) { return f32_to_f16(value); }
};
struct BF16Storage {
  using Stored = std::uint16_t;
  using Value = float;
  static float widen(std::uint16_t stored) { return bf16_to_f32(stored); }
  static std::uint16_t narrow(float value) { return f32_to_bf16(value); }
};

/// Calls `f` with the storage struct of an executable dtype. Throws Error for the others.
template <typename F>
decltype(auto) with_storage(DType type, F&& f) {
  switch (type) {
    case DType::kPred:
      return f(PredStorage{});
    case DType::kS8:
      return f(PlainStorage<std::int8_t>{});
    case DType::kS16:
      return f(PlainStorage<std::int16_t>{});
    case DType::kS32:
      return f(PlainStorage<std::int32_t>{});
    case DType::kS64:
      return f(PlainStorage<std::int64_t>{});
    case DType::kU8:
      return f(PlainStorage<std::uint8_t>{});
    case DType::kU16:
      return f(PlainStorage<std::uint16_t>{});
    case DType::kU32:
      return f(PlainStorage<std::uint32_t>{});
    case DType::kU64:
      return f(PlainStorage<std::uint64_t>{});
    case DType::kF16:
      return f(F16Storage{});
    case DType::kBF16:
      return f(BF16Storage{});
    case DType::kF32:
      return f(PlainStorage<float>{});
    case DType::kF64:
      return f(PlainStorage<double>{});
    default:
      break;
  }
  throw Error(fmt::format("values of type {} cannot be computed", name(type)),
              "plan such models without running them");
}

/// A float of 8 bits and less: stored in a byte, computed in double precision.
template <DType kType>
struct SmallFloatStorage {
  using Stored = std::uint8_t;
  using Value = double;
  static double widen(std::uint8_t stored) { return decode(small_float(kType), stored); }
  static std::uint8_t narrow(double value) { return encode(small_float(kType), value); }
};
/// An integer of fewer than 8 bits: stored in a byte, its sign extended; wider ones keep their low bits.
template <DType kType>
struct SmallIntegerStorage {
  using Stored = std::conditional_t<kType == DType::kS1 || kType == DType::kS2 || kType == DType::kS4,
                                    std::int8_t, std::uint8_t>;
  using Value = std::int64_t;
  static std::int64_t widen(Stored stored) { return stored; }
  static Stored narrow(std::int64_t value) {
    const int unused = 64 - bit_width(kType);
    const auto high = static_cast<std::uint64_t>(value) << unused;
    if constexpr (std::is_signed_v<Stored>)
      return static_cast<Stored>(static_cast<std::int64_t>(high) >> unused);
    return static_cast<Stored>(high >> unused);
  }
};

/// with_storage for single elements of literals, of the types too that are not executable.
template <typename F>
decltype(auto) with_element(DType type, F&& f) {
  switch (type) {
    case DType::kS1:
      return f(SmallIntegerStorage<DType::kS1>{});
    case DType::kS2:
      return f(SmallIntegerStorage<DType::kS2>{});
    case DType::kS4:
      return f(SmallIntegerStorage<DType::kS4>{});
    case DType::kU1:
      return f(SmallIntegerStorage<DType::kU1>{});
    case DType::kU2:
      return f(SmallIntegerStorage<DType::kU2>{});
    case DType::kU4:
      return f(SmallIntegerStorage<DType::kU4>{});
    case DType::kF4E2M1FN:
      return f(SmallFloatStorage<DType::kF4E2M1FN>{});
    case DType::kF8E8M0FNU:
      return f(SmallFloatStorage<DType::kF8E8M0FNU>{});
    case DType::kF8E3M4:
      return f(SmallFloatStorage<DType::kF8E3M4>{});
    case DType::kF8E4M3:
      return f(SmallFloatStorage<DType::kF8E4M3>{});
    case DType::kF8E4M3FN:
      return f(SmallFloatStorage<DType::kF8E4M3FN>{});
    case DType::kF8E4M3FNUZ:
      return f(SmallFloatStorage<DType::kF8E4M3FNUZ>{});
    case DType::kF8E4M3B11FNUZ:
      return f(SmallFloatStorage<DType::kF8E4M3B11FNUZ>{});
    case DType::kF8E5M2:
      return f(SmallFloatStorage<DType::kF8E5M2>{});
    case DType::kF8E5M2FNUZ:
      return f(SmallFloatStorage<DType::kF8E5M2FNUZ>{});
    default:
      return with_storage(type, std::forward<F>(f));
  }
}

/// Calls `f` with an unsigned integer of the dtype's width: for ops that only move elements.
template <typename F>
decltype(auto) with_width(DType type, F&& f) {
  switch (byte_size(type)) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    case 8:
      return f(std::uint64_t{});
    default:
      break;
  }
  throw Error(fmt::format("values of type {} cannot be computed", name(type)),
              "plan such models without running them");
}

/// HLO's convert: float to integer truncates towards zero and saturates, NaN gives 0; to pred is "not zero";
/// integer to integer keeps the low bits.
template <typename To, typename From>
To convert_value(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return To{0};
    // max() may round up to the next power of two as a float: then >= is the exact test.
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace stitchwork
