// Shape inference of products and windows; called by infer_shape only.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph.h"

namespace stitchwork {

/// Batch dimensions, then the left operand's free ones, then the right one's. The element type is the
/// declared one (HLO's preferred_element_type is not printed), the left operand's where nothing fitting is
/// declared.
Shape infer_dot(const Node& node, const Shape& lhs, const Shape& rhs);
Shape infer_convolution(const Node& node, const Shape& input, const Shape& kernel);
/// Result dimensions of a window sliding over `from`.
std::vector<std::int64_t> infer_window_dims(const Node& node, const Shape& from);

}  // namespace stitchwork
