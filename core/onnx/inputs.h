// Types of a model's inputs, and values that fix them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "core/graph/literal.h"
#include "core/onnx/proto.h"

namespace stitchwork::onnx_reader {

/// Of symbolic dimensions, by name.
using Sizes = std::map<std::string, std::int64_t>;

/// Throws Error where the input is no tensor.
const pb::TypeProto_Tensor& tensor_type(const pb::ValueInfoProto& input);

/// All symbolic dimensions have a size in `dims`. Throws Error where there is no shape.
Shape shape_of(const pb::ValueInfoProto& input, const Sizes& dims);

/// The value --value gives an input; its dimensions bind symbolic ones. Throws Error where it is not of the
/// input's type or shape.
Literal given_value(const pb::ValueInfoProto& input, const std::variant<std::string, Literal>& given,
                    Sizes& dims);

}  // namespace stitchwork::onnx_reader
