#include "core/onnx/casts.h"

#include "core/graph/small_float.h"

namespace stitchwork::onnx_reader {

Value cast(Builder& b, const Value& x, DType to, bool saturate) {
  if (is_floating(x.dtype()) && is_integral(to) && bit_width(to) < 8)
    return b.convert(b.convert(x, DType::kS32), to);
  if (!saturate || !is_floating(to) || byte_size(to) > 1) return b.convert(x, to);
  const bool computes = is_floating(x.dtype()) && is_executable(x.dtype());
  const Value wide = computes ? x : b.convert(x, DType::kF32);
  const double largest = largest_value(small_float(to));
  return b.convert(b.min(b.max(wide, -largest), largest), to);
}

}  // namespace stitchwork::onnx_reader
