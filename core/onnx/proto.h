// ONNX's own protobuf classes, as Debian's libonnx-dev ships them. Only the reader includes this: its
// checker, shape inference and version converter are older than the models and are not used.
#pragma once

#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#include <onnx/onnx_pb.h>

namespace stitchwork::onnx_reader {
namespace pb = ::onnx;
}  // namespace stitchwork::onnx_reader
