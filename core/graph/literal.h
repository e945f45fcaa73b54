// A dense array of values on the host (constants, inputs, outputs), row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/shape.h"

namespace stitchwork {

struct Literal {
  Shape shape;                   ///< array, default layout; or a tuple, then `elements` holds the parts
  std::vector<std::byte> bytes;  ///< shape.byte_size() bytes, row-major, pred as one byte 0/1
  std::vector<Literal> elements;

  static Literal zeros(const Shape& shape);

  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }

  /// Element i (row-major) of any executable dtype, converted.
  double get_double(std::int64_t i) const;
  std::int64_t get_int(std::int64_t i) const;
  /// Stores as HLO's convert does: floats are rounded (nearest even for f16, bf16, f32), or saturate as
  /// integers; integers keep their low bits.
  void set_double(std::int64_t i, double value);
  void set_int(std::int64_t i, std::int64_t value);

  bool operator==(const Literal& other) const = default;
};

/// The largest or the least value of a real type, as a scalar: of floats an infinity.
Literal extreme(DType type, bool largest);

/// IEEE half and bfloat16 <-> float, round to nearest even.
float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);

}  // namespace stitchwork
