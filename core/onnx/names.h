// Names of a model as a graph, metadata and errors have them.
#pragma once

#include <string>
#include <string_view>

#include "core/onnx/proto.h"

namespace stitchwork::onnx_reader {

/// An HLO name: letters, digits, '_', '.', '-', not beginning with a separator.
std::string hlo_name(std::string_view name);

/// A scope path as metadata keeps it: "/encoder/layer.0/MatMul" without the leading slash.
std::string scope_name(std::string_view name);

/// The first output of a node that has a name, or "".
std::string first_output(const pb::NodeProto& node);

/// "node 'NAME' (DOMAIN.OPERATOR)"
std::string title(const pb::NodeProto& node);

}  // namespace stitchwork::onnx_reader
