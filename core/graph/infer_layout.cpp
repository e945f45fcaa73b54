#include <algorithm>

#include "core/base/error.h"
#include "core/graph/infer_checks.h"
#include "core/graph/infer_families.h"

namespace stitchwork {

using namespace infer;

/// bitcast-convert between types of different width adds or takes the minor-most dimension.
Shape infer_bitcast_convert(const Node& node, const Shape& from) {
  const DType type = node.shape.dtype;
  const int wide = bit_width(from.dtype), narrow = bit_width(type);
  Shape result = Shape::array(type, from.dims);
  if (wide == 0 || narrow == 0)
    throw Error(fmt::format("cannot bitcast-convert {} to {}", name(from.dtype), name(type)));
  if (wide > narrow) {
    result.dims.push_back(wide / narrow);
  } else if (wide < narrow) {
    if (from.dims.empty() || from.dims.back() != narrow / wide)
      throw Error(fmt::format("bitcast-convert of {} to {} needs a last dimension of {}", name(from.dtype),
                              name(type), narrow / wide));
    result.dims.pop_back();
  }
  return result;
}

Shape infer_broadcast(const Node& node, const Shape& from) {
  const auto& dims = node.attrs.dimensions;
  const Shape result = Shape::array(from.dtype, node.shape.dims);
  if (static_cast<int>(dims.size()) != from.rank())
    throw Error(fmt::format("broadcast of {} lists {} dimensions, {} are needed", dims_text(from.dims),
                            dims.size(), from.rank()));
  check_distinct(node, dims, result.rank());
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (result.dims[static_cast<std::size_t>(dims[i])] != from.dims[i])
      throw Error(
          fmt::format("broadcast puts operand dimension {} of extent {} on result dimension {} of extent {}",
                      i, from.dims[i], dims[i], result.dims[static_cast<std::size_t>(dims[i])]));
  return result;
}

Shape infer_reshape(const Node& node, const Shape& from) {
  const Shape result = Shape::array(from.dtype, node.shape.dims);
  if (result.elements_count() != from.elements_count())
    throw Error(fmt::format("reshape of {} to {} changes the number of elements from {} to {}",
                            dims_text(from.dims), dims_text(result.dims), from.elements_count(),
                            result.elements_count()));
  return result;
}

Shape infer_bitcast(const Node& node, const Shape& from) {
  if (node.shape.byte_size() != from.byte_size())
    throw Error(fmt::format("bitcast of {} to {} changes the size from {} to {} bytes", to_text(from),
                            to_text(node.shape), from.byte_size(), node.shape.byte_size()));
  return plain(node.shape);
}

Shape infer_transpose(const Node& node, const Shape& from) {
  const auto& dims = node.attrs.dimensions;
  if (static_cast<int>(dims.size()) != from.rank())
    throw Error(fmt::format("transpose of {} lists {} dimensions", dims_text(from.dims), dims.size()));
  check_distinct(node, dims, from.rank());
  Shape result = Shape::array(from.dtype, {});
  for (std::int64_t dim : dims) result.dims.push_back(from.dims[static_cast<std::size_t>(dim)]);
  return result;
}

Shape infer_slice(const Node& node, const Shape& from) {
  if (node.attrs.slice.size() != from.dims.size())
    throw Error(fmt::format("slice of {} gives {} ranges", dims_text(from.dims), node.attrs.slice.size()));
  Shape result = Shape::array(from.dtype, {});
  for (std::size_t i = 0; i < from.dims.size(); ++i) {
    const SliceSpec& s = node.attrs.slice[i];
    if (s.start < 0 || s.limit < s.start || s.limit > from.dims[i] || s.stride < 1)
      throw Error(fmt::format("slice range [{}:{}:{}] does not fit dimension {} of extent {}", s.start,
                              s.limit, s.stride, i, from.dims[i]));
    result.dims.push_back((s.limit - s.start + s.stride - 1) / s.stride);
  }
  return result;
}

Shape infer_concatenate(const Node& node, Operands operands) {
  Shape result = plain(array(node, operands, 0));
  if (node.attrs.dimensions.size() != 1) throw Error("concatenate needs dimensions={D} with one dimension");
  const std::int64_t dim = node.attrs.dimensions[0];
  check_dimension(node, dim, result.rank());
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const Shape& next = array(node, operands, i);
    check_same_dtype(node, result, next);
    Shape expected = result;
    if (next.rank() == result.rank())
      expected.dims[static_cast<std::size_t>(dim)] = next.dims[static_cast<std::size_t>(dim)];
    if (expected.dims != next.dims)
      throw Error(fmt::format("concatenate along dimension {}: operand {} is {}, operand 0 {}", dim, i,
                              dims_text(next.dims), dims_text(operands[0]->dims)));
    result.dims[static_cast<std::size_t>(dim)] += next.dims[static_cast<std::size_t>(dim)];
  }
  return result;
}

Shape infer_pad(const Node& node, Operands operands) {
  const Shape& from = array(node, operands, 0);
  check_same_dtype(node, from, array(node, operands, 1));
  if (operands[1]->rank() != 0)
    throw Error(fmt::format("pad's value is {}, a scalar is needed", to_text(*operands[1])));
  if (node.attrs.padding.size() != from.dims.size())
    throw Error(fmt::format("pad of {} gives {} paddings", dims_text(from.dims), node.attrs.padding.size()));
  Shape result = Shape::array(from.dtype, {});
  for (std::size_t i = 0; i < from.dims.size(); ++i) {
    const PadSpec& p = node.attrs.padding[i];
    const std::int64_t inner = from.dims[i] == 0 ? 0 : from.dims[i] + p.interior * (from.dims[i] - 1);
    const std::int64_t extent = inner + p.low + p.high;
    if (p.interior < 0 || extent < 0)
      throw Error(fmt::format("padding {}_{}_{} does not fit dimension {} of extent {}", p.low, p.high,
                              p.interior, i, from.dims[i]));
    result.dims.push_back(extent);
  }
  return result;
}

}  // namespace stitchwork
