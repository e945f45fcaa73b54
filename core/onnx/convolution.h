// What convolutions and pools share: windows from ONNX's attributes.
#pragma once

#include "core/onnx/node_context.h"

namespace stitchwork::onnx_reader {

/// dim_labels of ONNX's layout: batch, channels, space; kernels out, in, space: "bf01_oi01->bf01".
std::string channels_first_labels(std::int64_t spatial, const char* kernel = "oi");

/// The window of a convolution or pool over `spatial` extents, by kernel_shape (or `kernel`, where that
/// attribute may be absent), strides, dilations, pads, auto_pad and ceil_mode.
std::vector<WindowDim> spatial_window(NodeContext& c, const Dims& spatial, Dims kernel,
                                      bool ceil_mode = false);

/// Conv's result without its bias, by the node's attributes: x [batch, channels, ...], kernel [out, in, ...].
Value convolved(NodeContext& c, const Value& x, const Value& kernel);

}  // namespace stitchwork::onnx_reader
