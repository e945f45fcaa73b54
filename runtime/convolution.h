// A convolution as a matrix product over the patches its window covers ("im2col": Chellapilla, Puri and
// Simard, "High Performance Convolutional Neural Networks for Document Processing", 2006).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/gemm.h"
#include "core/graph/graph.h"

namespace stitchwork {

/// A dense row-major array of elements gathered from a source: destination index (i0, i1, ...) reads the
/// source at sum of axis k's stride * ik, plus its windows' places; zero where one of them lies outside or in
/// a hole.
struct Gather {
  struct Axis {
    std::int64_t extent = 1, stride = 0;  ///< in elements of the source; 0 for the axes of a window
  };
  /// Of a spatial dimension: place = origin + axis[position] * step + axis[tap] * dilation, in the source
  /// spread by `holes` (every holes-th place is an element), of `extent` elements `stride` apart.
  struct Window {
    std::size_t position = 0, tap = 0;
    std::int64_t origin = 0, step = 1, dilation = 1, holes = 1, extent = 1, stride = 1;
  };
  std::vector<Axis> axes;
  std::vector<Window> windows;

  std::int64_t elements() const;
  /// Whether the gathered array is the source itself, element by element.
  bool copies_nothing() const;
  /// Source index of a destination element, or -1 for zero.
  std::int64_t source_of(std::int64_t element) const;
};

/// CUDA of `extern "C" __global__ void gather(const T* source, T* gathered)` for elements of that many bytes
/// (1, 2, 4 or 8), any grid of blocks of kGatherBlock threads. Indices have 32 bits where they fit.
std::string gather_cuda(const Gather& gather, std::int64_t source_elements, std::int64_t bytes_per_element);
inline constexpr int kGatherBlock = 256;

/// What follows a convolution in its call, in this order: a bias to each feature, an array, and the larger of
/// that and zero.
struct ConvolutionEpilogue {
  bool bias = false, addend = false, relu = false;
};

/// CUDA of `extern "C" __global__ void epilogue(T* result, const T* bias, const T* addend)`, over the result
/// of the convolution, of f32, f16 or bf16; any grid of blocks of kGatherBlock threads.
std::string epilogue_cuda(const Node& convolution, const ConvolutionEpilogue& epilogue);

/// result = a product of the gathered input (patches) and the gathered kernel (weights).
struct ConvolutionProduct {
  Gather patches, weights;
  bool patches_first = true;  ///< A = patches, B = weights; else the other way round
  Gemm gemm;
};

/// Of any convolution: dimension numbers, strides, paddings, dilations, reversals, feature and batch groups.
/// Nothing where it has no elements.
std::optional<ConvolutionProduct> product_of(const Node& convolution, const Shape& input,
                                             const Shape& kernel);

}  // namespace stitchwork
