#include "core/graph/infer_checks.h"

#include <set>

#include "core/base/error.h"

namespace stitchwork::infer {

std::string dims_text(const std::vector<std::int64_t>& dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

Shape plain(const Shape& shape) {
  if (!shape.is_tuple) return Shape::array(shape.dtype, shape.dims);
  std::vector<Shape> elements;
  for (const Shape& element : shape.elements) elements.push_back(plain(element));
  return Shape::tuple(std::move(elements));
}

/// One shape, or a tuple of several.
Shape packed(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes.front()) : Shape::tuple(std::move(shapes));
}

const Shape& array(const Node& node, Operands operands, std::size_t i) {
  if (operands[i]->is_tuple)
    throw Error(fmt::format("operand {} of {} is a tuple, an array is needed", i, def(node.op).name));
  return *operands[i];
}

void check_same_dims(const Node& node, const Shape& a, const Shape& b) {
  if (a.dims != b.dims)
    throw Error(fmt::format("operands of {} have different dimensions {} and {}", def(node.op).name,
                            dims_text(a.dims), dims_text(b.dims)),
                "HLO broadcasts only by an explicit broadcast op");
}

void check_same_dtype(const Node& node, const Shape& a, const Shape& b) {
  if (a.dtype != b.dtype)
    throw Error(fmt::format("operands of {} have different types {} and {}", def(node.op).name, name(a.dtype),
                            name(b.dtype)),
                "insert a convert");
}

void check_dimension(const Node& node, std::int64_t dim, int rank) {
  if (dim < 0 || dim >= rank)
    throw Error(fmt::format("{} names dimension {} of an operand of rank {}", def(node.op).name, dim, rank));
}

void check_one_dimension(const Node& node, int rank) {
  if (node.attrs.dimensions.size() != 1)
    throw Error(fmt::format("{} names {} dimensions, one is needed", def(node.op).name,
                            node.attrs.dimensions.size()));
  check_dimension(node, node.attrs.dimensions[0], rank);
}

void check_distinct(const Node& node, const std::vector<std::int64_t>& dims, int rank) {
  std::set<std::int64_t> seen;
  for (std::int64_t dim : dims) {
    check_dimension(node, dim, rank);
    if (!seen.insert(dim).second)
      throw Error(fmt::format("{} names dimension {} twice", def(node.op).name, dim));
  }
}

const Computation& named_computation(const Graph& graph, const Node& node, std::size_t i) {
  if (i >= node.attrs.computations.size())
    throw Error(fmt::format("{} names no computation", def(node.op).name),
                "give it to_apply, calls, body, ...");
  const ComputationId id = node.attrs.computations[i];
  SW_CHECK(id >= 0 && id < static_cast<ComputationId>(graph.computations.size()), "computation {}", id);
  return graph.computation(id);
}

const Shape& root_shape(const Graph& graph, const Node& node, std::size_t i) {
  const Computation& computation = named_computation(graph, node, i);
  return computation.node(computation.root).shape;
}

}  // namespace stitchwork::infer
