// Moving elements by indices that are known: slices and reversals where they do, a gather where they do not.
#pragma once

#include "core/onnx/builder.h"

namespace stitchwork::onnx_reader {

/// x with its dimension `dim` replaced by x's elements at `indices` along it, all in [0, extent).
Value take(Builder& b, const Value& x, std::int64_t dim, const Dims& indices);

}  // namespace stitchwork::onnx_reader
