// A convolution in cuDNN's terms.
#pragma once

#include <vector>

#include "core/base/verdict.h"
#include "core/graph/graph.h"
#include "runtime/convolution.h"

namespace stitchwork::cuda {

/// What cuDNN's descriptors say. It convolves in two or three dimensions: a convolution of fewer has some of
/// one element in front.
struct DnnConvolution {
  struct Tensor {
    std::vector<int> dims, strides;  ///< batch, features, spatial dimensions; strides in elements
  };
  DType dtype = DType::kF32;
  Tensor input, output;
  std::vector<int> kernel;     ///< output features, input features of a group, spatial extents
  bool features_last = false;  ///< the kernel's input features lie behind its spatial dimensions
  Gather weights;              ///< puts the kernel into that order
  std::vector<int> pads, strides, dilations;  ///< by spatial dimension; pads are those of either side
  bool flipped = false;                       ///< every window is reversed
  int groups = 1;
};

struct DnnTerms {
  Verdict verdict;  ///< no: what cuDNN cannot do of it
  DnnConvolution convolution;
};

/// Of a convolution whose arrays have elements and lie row by row. `features_last`: with the kernel's input
/// features last, for an input and an output that have batch first and features last.
DnnTerms dnn_terms(const Node& convolution, const Shape& input, const Shape& kernel, bool features_last);

}  // namespace stitchwork::cuda
