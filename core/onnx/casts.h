// Changes of element type by ONNX's rules.
#pragma once

#include "core/onnx/builder.h"

namespace stitchwork::onnx_reader {

/// Numbers beyond the range of a float of 8 bits or fewer become its largest finite ones if `saturate`,
/// infinities or NaN if not. Integers of fewer than 8 bits keep the low bits of the truncated number, as
/// ONNX's test data have it.
Value cast(Builder& b, const Value& x, DType to, bool saturate);

}  // namespace stitchwork::onnx_reader
