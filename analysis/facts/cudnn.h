// What cuDNN makes of convolutions: which, and what it adds to them in the same call.
#pragma once

#include "core/base/verdict.h"
#include "core/graph/graph.h"

namespace stitchwork {

/// Whether cudnnConvolutionForward makes the convolution of arrays that lie row by row; no: what it cannot do
/// of it.
Verdict cudnn_convolves(const Node& convolution, const Shape& input, const Shape& kernel);

/// Likewise cudnnConvolutionBiasActivationForward. No depthwise convolutions: as XLA's CudnnFusedConvRewriter
/// (IsNonDepthwiseConvCustomCall) has it, cuDNN's calls that add are slower for some of those.
Verdict cudnn_adds(const Node& convolution, const Shape& input, const Shape& kernel);

}  // namespace stitchwork
