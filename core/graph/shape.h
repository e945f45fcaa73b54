// Array and tuple shapes with layouts, as in HLO: f32[4096,256]{1,0}, (f32[2], s32[]).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/dtype.h"

namespace stitchwork {

struct Shape {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> dims;
  /// Physical order, minor-most first. Empty means the default, {rank-1, ..., 0} (row-major).
  std::vector<std::int64_t> minor_to_major;
  bool is_tuple = false;
  std::vector<Shape> elements;  ///< of a tuple

  static Shape array(DType dtype, std::vector<std::int64_t> dims) {
    return {dtype, std::move(dims), {}, false, {}};
  }
  static Shape tuple(std::vector<Shape> elements) {
    return {DType::kOpaque, {}, {}, true, std::move(elements)};
  }

  int rank() const { return static_cast<int>(dims.size()); }
  /// Number of elements (1 for rank 0); 0 for tuples.
  std::int64_t elements_count() const;
  /// Bytes of the array, or of all arrays of the tuple.
  std::int64_t byte_size() const;
  bool has_default_layout() const;

  /// Same dtype and dims (tuples: recursively); layouts may differ.
  bool compatible(const Shape& other) const;
  bool operator==(const Shape& other) const = default;
};

/// Dimensions from major to minor in memory: 0, 1, ... by default.
std::vector<std::int64_t> physical_order(const Shape& shape);

/// HLO spelling; the layout is printed only where it is not the default unless `with_layout`.
std::string to_text(const Shape& shape, bool with_layout = false);

}  // namespace stitchwork
