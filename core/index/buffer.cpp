#include "core/index/buffer.h"

namespace stitchwork {

const Shape& buffer_shape(const Node& node) {
  if (node.attrs.placed != nullptr) return node.attrs.placed->matrix;
  return node.attrs.updated == nullptr ? node.shape : node.attrs.updated->shape;
}

const std::vector<std::int64_t>& buffer_extents(const Node& node) {
  return node.attrs.placed != nullptr ? node.attrs.placed->extents : buffer_shape(node).dims;
}

IndexExpr buffer_offset(const Node& node, std::span<const IndexExpr> index) {
  IndexExpr offset = linearize(index, buffer_extents(node));
  if (node.attrs.placed != nullptr) offset = offset + IndexExpr::value(node.attrs.placed->offset);
  return offset;
}

}  // namespace stitchwork
