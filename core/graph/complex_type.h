// Complex element types: a real part and an imaginary one, in this order, side by side in memory.
#pragma once

#include "core/graph/dtype.h"

namespace stitchwork {

inline bool is_complex(DType type) { return type == DType::kC64 || type == DType::kC128; }
/// The type of its parts; of other types the type itself.
inline DType part_of(DType type) {
  return type == DType::kC64 ? DType::kF32 : type == DType::kC128 ? DType::kF64 : type;
}
inline DType complex_of(DType part) { return part == DType::kF64 ? DType::kC128 : DType::kC64; }

}  // namespace stitchwork
