// The parts of infer_shape: one file a family of ops, and what they share. Called by infer_shape only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// infer_callees.cpp: the computations that an op applies take what it passes them, and give what it needs.
/// Throws Error.
void check_callees(const Graph& graph, const Node& node, std::span<const Shape* const> operands);

/// infer_layout.cpp: ops that move or reinterpret elements.
Shape infer_bitcast_convert(const Node& node, const Shape& from);
Shape infer_broadcast(const Node& node, const Shape& from);
Shape infer_reshape(const Node& node, const Shape& from);
Shape infer_bitcast(const Node& node, const Shape& from);
Shape infer_transpose(const Node& node, const Shape& from);
Shape infer_slice(const Node& node, const Shape& from);
Shape infer_concatenate(const Node& node, std::span<const Shape* const> operands);
Shape infer_pad(const Node& node, std::span<const Shape* const> operands);

/// infer_indexed.cpp: ops whose indices are values.
Shape infer_gather(const Node& node, std::span<const Shape* const> operands);
Shape infer_dynamic_slice(const Node& node, std::span<const Shape* const> operands);
Shape infer_dynamic_update_slice(const Node& node, std::span<const Shape* const> operands);
Shape infer_scatter(const Node& node, std::span<const Shape* const> operands);

/// infer_linear.cpp: products and windows. A product's dims are batch dimensions, then the left operand's
/// free ones, then the right one's; its element type is the declared one (HLO's preferred_element_type is not
/// printed), the left operand's where nothing fitting is declared.
Shape infer_dot(const Node& node, const Shape& lhs, const Shape& rhs);
Shape infer_convolution(const Node& node, const Shape& input, const Shape& kernel);
/// Of complex numbers, or of pairs with a last dimension of 2 that stand for them (split_complex).
Shape infer_fft(const Node& node, const Shape& from);
/// Result dimensions of a window sliding over `from`.
std::vector<std::int64_t> infer_window_dims(const Node& node, const Shape& from);

}  // namespace stitchwork
