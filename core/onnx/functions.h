// Model-local functions: the attributes of a call.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/onnx/proto.h"

namespace stitchwork::onnx_reader {

/// FunctionProto::attribute_proto (field 11) is younger than the header: attributes with default values.
/// Throws Error where they cannot be read.
std::vector<pb::AttributeProto> defaults_of(const pb::FunctionProto& function);

using AttributeMap = std::map<std::string, pb::AttributeProto>;

/// Replaces references to a function's attributes by what the call gives; absent ones vanish.
void bind_attributes(pb::NodeProto& node, const AttributeMap& given);

}  // namespace stitchwork::onnx_reader
