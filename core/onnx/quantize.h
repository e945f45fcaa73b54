// What quantization and products of quantized numbers share.
#pragma once

#include "core/onnx/builder.h"

namespace stitchwork::onnx_reader {

/// Whether numbers are quantized to this type by rounding: integers of at most 16 bits.
bool is_quantized_integer(DType type);

/// saturate(round(ratio) + zero point) as `type`; an absent zero point is 0.
Value quantized(Builder& b, const Value& ratio, const Value& zero_point, DType type);

}  // namespace stitchwork::onnx_reader
