// Checks every family of shape inference shares; each throws Error naming op and dims.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork::infer {

using Operands = std::span<const Shape* const>;

/// "[4,6]"
std::string dims_text(const std::vector<std::int64_t>& dims);
/// The shape with default layouts.
Shape plain(const Shape& shape);
/// One shape, or a tuple of several.
Shape packed(std::vector<Shape> shapes);
/// The shape of operand i, which must not be a tuple.
const Shape& array(const Node& node, Operands operands, std::size_t i);
void check_same_dims(const Node& node, const Shape& a, const Shape& b);
void check_same_dtype(const Node& node, const Shape& a, const Shape& b);

void check_dimension(const Node& node, std::int64_t dim, int rank);
/// The node names one dimension, which exists.
void check_one_dimension(const Node& node, int rank);
/// Every dimension exists and occurs once.
void check_distinct(const Node& node, const std::vector<std::int64_t>& dims, int rank);
/// Computation i of those the node names, and the shape of its root.
const Computation& named_computation(const Graph& graph, const Node& node, std::size_t i);
const Shape& root_shape(const Graph& graph, const Node& node, std::size_t i);

}  // namespace stitchwork::infer
