// TensorProto to Literal: every way ONNX stores elements.
#pragma once

#include <filesystem>
#include <string>

#include "core/graph/literal.h"
#include "core/onnx/proto.h"

namespace stitchwork::onnx_reader {

/// "FLOAT16", "INT4", ... as ONNX spells TensorProto::DataType; "type 99" for a number it does not have.
std::string type_name(std::int32_t onnx_type);

/// Our element type. Throws Error naming the type where there is none (strings, complex numbers).
DType dtype_of(std::int32_t onnx_type);

/// The tensor's elements: from raw_data, the field of its type, or a file beside the model. `folder` is the
/// model's; empty: a tensor in another file is refused. Throws Error where sizes, types or files do not fit;
/// the message begins with the tensor's name.
Literal read_tensor(const pb::TensorProto& tensor, const std::filesystem::path& folder);

}  // namespace stitchwork::onnx_reader
