#include "core/onnx/casts.h"

namespace stitchwork::onnx_reader {

Value cast(Builder& b, const Value& x, DType to, bool saturate) {
  if (saturate && is_floating(x.dtype()) && byte_size(to) == 1 && is_floating(to)) {
    const double largest = to == DType::kF8E5M2 ? 57344 : 448;
    return b.convert(b.min(b.max(x, -largest), largest), to);
  }
  return b.convert(x, to);
}

}  // namespace stitchwork::onnx_reader
