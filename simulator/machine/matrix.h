// Shapes and element types of tensor-core instructions.
#pragma once

#include <cstdint>

#include "occupancy_model/timing.h"

namespace stitchwork::sim {

enum class MatrixElement : std::uint8_t {
  kF16,
  kBF16,
  kTF32,
  kF32,
  kF64,
  kS8,
  kU8,
  kS32,
  kE4M3,
  kE5M2,
  kS4,
  kU4
};

constexpr int element_bits(MatrixElement e) {
  switch (e) {
    case MatrixElement::kF16:
    case MatrixElement::kBF16:
      return 16;
    case MatrixElement::kS8:
    case MatrixElement::kU8:
    case MatrixElement::kE4M3:
    case MatrixElement::kE5M2:
      return 8;
    case MatrixElement::kS4:
    case MatrixElement::kU4:
      return 4;
    case MatrixElement::kF64:
      return 64;
    default:
      return 32;
  }
}

/// D[m][n] = A[m][k] B[k][n] + C[m][n].
struct MatrixShape {
  int m = 0, n = 0, k = 0;
  MatrixElement a{}, b{}, c{}, d{};
  bool saturate = false;  ///< integer sums are clamped instead of wrapped

  constexpr std::int64_t bits() const {
    return m | n << 8 | k << 16 | std::int64_t(a) << 24 | std::int64_t(b) << 28 | std::int64_t(c) << 32 |
           std::int64_t(d) << 36 | std::int64_t(saturate) << 40;
  }
  static constexpr MatrixShape of(std::int64_t bits) {
    const auto element = [&](int at) { return static_cast<MatrixElement>(bits >> at & 15); };
    return {int(bits & 255), int(bits >> 8 & 255), int(bits >> 16 & 255), element(24),
            element(28),     element(32),          element(36),           (bits >> 40 & 1) != 0};
  }
};

/// What the tensor cores' rate of these is listed under (occupancy_model/timing.h): the type of A.
constexpr TensorType tensor_type(const MatrixShape& shape) {
  switch (shape.a) {
    case MatrixElement::kBF16:
      return TensorType::kBf16;
    case MatrixElement::kTF32:
    case MatrixElement::kF32:
      return TensorType::kTf32;
    case MatrixElement::kF64:
      return TensorType::kF64;
    case MatrixElement::kS8:
    case MatrixElement::kU8:
    case MatrixElement::kS4:
    case MatrixElement::kU4:
    case MatrixElement::kS32:
    case MatrixElement::kE4M3:  // as fast as integers of 8 bits (H100 whitepaper, table 2)
    case MatrixElement::kE5M2:
      return TensorType::kInt8;
    default:
      return TensorType::kF16;
  }
}

/// A matrix as wmma.load and wmma.store see it. Which lane holds which element is up to the implementation:
/// here lane l holds `slots` elements from l * slots on, in the order of rows, starting over at the end.
struct WmmaMatrix {
  int rows = 0, columns = 0;
  MatrixElement element{};
  bool column_major = false;

  constexpr std::int64_t bits() const {
    return rows | columns << 8 | std::int64_t(element) << 16 | std::int64_t(column_major) << 24;
  }
  static constexpr WmmaMatrix of(std::int64_t bits) {
    return {int(bits & 255), int(bits >> 8 & 255), static_cast<MatrixElement>(bits >> 16 & 15),
            (bits >> 24 & 1) != 0};
  }
  constexpr int element_bytes() const { return element_bits(element) / 8; }
  /// Bytes from the matrix's start to element e, with `stride` elements from row to row (or column).
  constexpr std::uint64_t offset(int e, std::uint64_t stride) const {
    const auto row = static_cast<std::uint64_t>(e / columns),
               column = static_cast<std::uint64_t>(e % columns);
    return (column_major ? column * stride + row : row * stride + column) *
           static_cast<std::uint64_t>(element_bytes());
  }
  constexpr int default_stride() const { return column_major ? rows : columns; }
};

/// Registers a lane holds of a matrix of so many elements.
constexpr int fragment_registers(int elements, MatrixElement e) {
  const int per = e == MatrixElement::kF64 ? 1 : 32 / element_bits(e);
  return elements / 32 / per;
}

constexpr bool is_float8(MatrixElement e) { return e == MatrixElement::kE4M3 || e == MatrixElement::kE5M2; }
constexpr bool is_int8(MatrixElement e) { return e == MatrixElement::kS8 || e == MatrixElement::kU8; }
constexpr bool is_int4(MatrixElement e) { return e == MatrixElement::kS4 || e == MatrixElement::kU4; }

/// The forms of mma.sync that are executed (PTX ISA, "Warp-level matrix instructions").
constexpr bool mma_supported(const MatrixShape& s, MatrixElement a, MatrixElement b, MatrixElement c,
                             MatrixElement d, bool saturate) {
  using E = MatrixElement;
  const bool whole = c == E::kS32 && d == E::kS32, square = s.m == 8 && s.n == 8,
             tall = s.m == 16 && s.n == 8;
  if (is_int8(a) && is_int8(b)) return whole && ((square && s.k == 16) || (tall && (s.k == 16 || s.k == 32)));
  if (is_int4(a) && is_int4(b)) return whole && ((square && s.k == 32) || (tall && (s.k == 32 || s.k == 64)));
  if (saturate) return false;
  const bool single = c == E::kF32 && d == E::kF32;
  if (is_float8(a) && is_float8(b))
    return tall && (s.k == 16 || s.k == 32) && (single || (c == E::kF16 && d == E::kF16));
  if (a != b) return false;
  if (a == E::kF64)
    return c == E::kF64 && d == E::kF64 &&
           ((square && s.k == 4) || (tall && (s.k == 4 || s.k == 8 || s.k == 16)));
  if (!tall) return false;
  if (a == E::kTF32) return single && (s.k == 4 || s.k == 8);
  if (a == E::kBF16) return single && (s.k == 8 || s.k == 16);
  const bool half = (c == E::kF16 || c == E::kF32) && (d == E::kF16 || d == E::kF32);
  return a == E::kF16 && half && (s.k == 8 || s.k == 16);
}

/// The forms of mma.sp that are executed (PTX ISA 8.7, 9.7.14.6): A holds half of its elements.
constexpr bool sparse_supported(const MatrixShape& s, MatrixElement a, MatrixElement b, MatrixElement c,
                                MatrixElement d, bool saturate) {
  using E = MatrixElement;
  if (s.m != 16 || s.n != 8) return false;
  const bool whole = c == E::kS32 && d == E::kS32, single = c == E::kF32 && d == E::kF32;
  if (is_int8(a) && is_int8(b)) return whole && (s.k == 32 || s.k == 64);
  if (is_int4(a) && is_int4(b)) return whole && (s.k == 64 || s.k == 128);
  if (saturate) return false;
  if (is_float8(a) && is_float8(b)) return s.k == 64 && (single || (c == E::kF16 && d == E::kF16));
  if (a != b) return false;
  if (a == E::kTF32) return single && (s.k == 8 || s.k == 16);
  if (a == E::kBF16) return single && (s.k == 16 || s.k == 32);
  const bool half = (c == E::kF16 || c == E::kF32) && (d == E::kF16 || d == E::kF32);
  return a == E::kF16 && half && (s.k == 16 || s.k == 32);
}

/// Where the metadata of a sparse A is: of stored element j (of 4-bit integers, of pair j) of a row, `bits`
/// bits of a lane's word.
struct SparsePlace {
  int lane = 0, shift = 0;
};
constexpr int sparse_bits(MatrixElement a) { return a == MatrixElement::kTF32 ? 4 : 2; }
/// Stored elements, or pairs, that have metadata, of a row.
constexpr int sparse_entries(const MatrixShape& s) { return is_int4(s.a) ? s.k / 4 : s.k / 2; }
/// Sparsity selectors are below this.
constexpr int sparse_selectors(const MatrixShape& s) {
  const int words = 16 * sparse_entries(s) * sparse_bits(s.a) / 32;  // of all rows, in as many lanes
  return 32 / words;
}
constexpr SparsePlace sparse_place(const MatrixShape& s, int selector, int row, int j) {
  const int bit = j * sparse_bits(s.a), group = row % 8 * 4, lower = row / 8;
  const int per_row = sparse_entries(s) * sparse_bits(s.a);
  if (element_bits(s.a) >= 16)  // rows r and r + 8 share a word
    return {group + (per_row == 16 ? selector : 2 * selector + bit / 16), 16 * lower + bit % 16};
  return {group + (per_row == 32 ? 2 * selector : bit / 32 * 2) + lower, bit % 32};
}

/// Registers of the operands of wmma (PTX ISA, "Matrix fragments for WMMA"): fp16 inputs are held twice.
constexpr int wmma_registers(int elements, MatrixElement e, bool input) {
  return input && e == MatrixElement::kF16 ? 8 : fragment_registers(elements, e);
}

/// The forms of wmma.mma.sync that are executed.
constexpr bool wmma_supported(const MatrixShape& s, MatrixElement a, MatrixElement b, MatrixElement c,
                              MatrixElement d, bool saturate) {
  using E = MatrixElement;
  const bool square = (s.m == 16 && s.n == 16 && s.k == 16) || (s.m == 32 && s.n == 8 && s.k == 16) ||
                      (s.m == 8 && s.n == 32 && s.k == 16);
  if (a != b) return false;
  if (is_int8(a)) return square && c == E::kS32 && d == E::kS32;
  if (saturate) return false;
  if (a == E::kTF32) return c == E::kF32 && d == E::kF32 && s.m == 16 && s.n == 16 && s.k == 8;
  if (a == E::kF64) return c == E::kF64 && d == E::kF64 && s.m == 8 && s.n == 8 && s.k == 4;
  if (a == E::kBF16) return square && c == E::kF32 && d == E::kF32;
  return a == E::kF16 && square && (c == E::kF16 || c == E::kF32) && (d == E::kF16 || d == E::kF32);
}

}  // namespace stitchwork::sim
