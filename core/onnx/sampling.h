// Reading arrays between their elements, at positions that are computed: what GridSample, RoiAlign and
// DeformConv share.
#pragma once

#include <vector>

#include "core/onnx/builder.h"

namespace stitchwork::onnx_reader {

enum class Interpolation { kNearest, kLinear, kCubic };
/// What lies beyond the first and the last element: zeros, the border's element, the elements mirrored at the
/// outermost elements' centers or at their outer edges.
enum class Beyond { kZeros, kBorder, kMirrorCenters, kMirrorEdges };

/// The elements one dimension contributes to every sample.
struct Taps {
  Value index;   ///< s32[batch, samples, taps], inside the dimension
  Value weight;  ///< [batch, samples, taps]; absent: 1
  Value inside;  ///< pred[batch, samples, taps]: false where the element counts as 0; absent: true
};

/// Of positions [batch, samples] (0 is the first element's center) along a dimension of `extent` >= 1
/// elements.
Taps taps_at(Builder& b, const Value& position, std::int64_t extent, Interpolation interpolation,
             Beyond beyond);

/// The elements times their weights: [batch, channels, samples, all taps] of x [images, channels,
/// extents...], `axes` one a spatial dimension. Entry i of the batch reads image `images`[i] (s32; absent:
/// image i).
Value tapped(Builder& b, const Value& x, const std::vector<Taps>& axes, const Value& images = {});

}  // namespace stitchwork::onnx_reader
