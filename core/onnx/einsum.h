// Einsum.
#pragma once

#include <string>
#include <vector>

#include "core/onnx/builder.h"

namespace stitchwork::onnx_reader {

/// NumPy's einsum: an equation like "bij,bjk->bik", with "..." for dimensions that broadcast. Throws Error
/// where equation and shapes do not fit.
Value einsum(Builder& b, std::string equation, const std::vector<Value>& inputs);

}  // namespace stitchwork::onnx_reader
