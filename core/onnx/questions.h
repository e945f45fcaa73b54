// What an ONNX model leaves open, as questions (core/onnx/onnx.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/onnx/open_model.h"
#include "core/onnx/proto.h"

namespace stitchwork::onnx_reader {

/// What a dimension without a size is called: its symbol, else INPUT[AXIS].
std::string dimension_name(const pb::ValueInfoProto& input, int axis);

/// Whether a dimension has a size. -1 is how some exporters (Paddle's) say that it has none.
bool has_size(const pb::TensorShapeProto::Dimension& dim);

/// The dimensions of these inputs, all tensors, that are not in `sizes`: one question a name.
std::vector<OnnxQuestion> open_dimensions(const std::vector<const pb::ValueInfoProto*>& inputs,
                                          const std::map<std::string, std::int64_t>& sizes);

/// How to ask for the value of an input.
OnnxQuestion value_question(const pb::ValueInfoProto& input,
                            const std::map<std::string, std::int64_t>& sizes);

}  // namespace stitchwork::onnx_reader
