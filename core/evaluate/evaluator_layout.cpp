// Ops that only move elements: each is one strided copy an operand.
#include <algorithm>

#include "core/evaluate/evaluator_ops.h"
#include "core/evaluate/move_box.h"
#include "core/graph/dtype_dispatch.h"
#include "core/index/strided.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

/// A box over all of `dims`, both arrays row-major over dims of their own.
StridedBox<2> box_over(const Dims& dims, const Dims& to_dims, const Dims& from_dims) {
  return {dims, {strides_of(to_dims), strides_of(from_dims)}, {}};
}

void broadcast(const Node& node, const Literal& from, Literal& to) {
  StridedBox<2> box{to.shape.dims, {strides_of(to.shape.dims), Dims(to.shape.dims.size(), 0)}, {}};
  const Dims from_strides = strides_of(from.shape.dims);
  for (std::size_t i = 0; i < node.attrs.dimensions.size(); ++i)
    box.strides[1][static_cast<std::size_t>(node.attrs.dimensions[i])] = from_strides[i];
  move_box(box, to, from);
}

void transpose(const Node& node, const Literal& from, Literal& to) {
  StridedBox<2> box{to.shape.dims, {strides_of(to.shape.dims), {}}, {}};
  const Dims from_strides = strides_of(from.shape.dims);
  for (std::int64_t dim : node.attrs.dimensions)
    box.strides[1].push_back(from_strides[static_cast<std::size_t>(dim)]);
  move_box(box, to, from);
}

void slice(const Node& node, const Literal& from, Literal& to) {
  StridedBox<2> box = box_over(to.shape.dims, to.shape.dims, from.shape.dims);
  for (std::size_t i = 0; i < box.dims.size(); ++i) {
    box.offset[1] += node.attrs.slice[i].start * box.strides[1][i];
    box.strides[1][i] *= node.attrs.slice[i].stride;
  }
  move_box(box, to, from);
}

void reverse(const Node& node, const Literal& from, Literal& to) {
  StridedBox<2> box = box_over(to.shape.dims, to.shape.dims, from.shape.dims);
  for (std::int64_t dim : node.attrs.dimensions) {
    const auto d = static_cast<std::size_t>(dim);
    box.offset[1] += (box.dims[d] - 1) * box.strides[1][d];
    box.strides[1][d] = -box.strides[1][d];
  }
  move_box(box, to, from);
}

void concatenate(const Node& node, Values operands, Literal& to) {
  const auto dim = static_cast<std::size_t>(node.attrs.dimensions[0]);
  const std::int64_t stride = strides_of(to.shape.dims)[dim];
  std::int64_t start = 0;
  for (const Literal* from : operands) {
    StridedBox<2> box = box_over(from->shape.dims, to.shape.dims, from->shape.dims);
    box.offset[0] = start * stride;
    move_box(box, to, *from);
    start += from->shape.dims[dim];
  }
}

/// The value everywhere, then the operand's elements that fall inside (negative padding cuts some off).
void pad(const Node& node, Values operands, Literal& to) {
  const Literal& from = *operands[0];
  const Dims zero(to.shape.dims.size(), 0);
  move_box({to.shape.dims, {strides_of(to.shape.dims), zero}, {}}, to, *operands[1]);
  StridedBox<2> box = box_over(from.shape.dims, to.shape.dims, from.shape.dims);
  for (std::size_t i = 0; i < box.dims.size(); ++i) {
    const PadSpec& p = node.attrs.padding[i];
    const std::int64_t step = p.interior + 1, extent = to.shape.dims[i];
    // Operand index j lands at p.low + j * step, wanted in [0, extent).
    const std::int64_t first = p.low >= 0 ? 0 : (-p.low + step - 1) / step;
    const std::int64_t room = extent - 1 - p.low;
    const std::int64_t last = std::min(room < 0 ? -1 : room / step, from.shape.dims[i] - 1);
    box.dims[i] = std::max<std::int64_t>(last - first + 1, 0);
    box.offset[0] += (p.low + first * step) * box.strides[0][i];
    box.offset[1] += first * box.strides[1][i];
    box.strides[0][i] *= step;
  }
  move_box(box, to, from);
}

}  // namespace

Literal evaluate_iota(const Node& node) {
  Literal result = Literal::zeros(node.shape);
  const Dims strides = strides_of(node.shape.dims);
  const auto dim = static_cast<std::size_t>(node.attrs.dimensions[0]);
  for (std::int64_t i = 0, n = node.shape.elements_count(); i < n; ++i)
    result.set_int(i, i / strides[dim] % node.shape.dims[dim]);
  return result;
}

Literal evaluate_bitcast(const Node& node, const Shape& from, const Literal& operand) {
  // Literals are row-major: put the operand's elements into the order of its layout, take them from the
  // result's.
  const auto dims_of = [](const Shape& shape, const Dims& order) {
    Dims dims;
    for (const std::int64_t d : order) dims.push_back(shape.dims[static_cast<std::size_t>(d)]);
    return dims;
  };
  const Dims from_order = physical_order(from), to_order = physical_order(node.shape);
  Literal physical = Literal::zeros(Shape::array(from.dtype, dims_of(from, from_order)));
  StridedBox<2> gather{physical.shape.dims, {strides_of(physical.shape.dims), Dims{}}, {}};
  for (const std::int64_t d : from_order)
    gather.strides[1].push_back(strides_of(from.dims)[static_cast<std::size_t>(d)]);
  move_box(gather, physical, operand);
  physical.shape = Shape::array(node.shape.dtype, dims_of(node.shape, to_order));
  Literal result = Literal::zeros(node.shape);
  StridedBox<2> spread{physical.shape.dims, {Dims{}, strides_of(physical.shape.dims)}, {}};
  for (const std::int64_t d : to_order)
    spread.strides[0].push_back(strides_of(node.shape.dims)[static_cast<std::size_t>(d)]);
  move_box(spread, result, physical);
  return result;
}

Literal evaluate_layout(const Node& node, Values operands) {
  if (node.op == Op::kReshape) {
    Literal result = *operands[0];
    result.shape = Shape::array(node.shape.dtype, node.shape.dims);
    return result;
  }
  Literal result = Literal::zeros(node.shape);
  switch (node.op) {
    case Op::kBroadcast:
      broadcast(node, *operands[0], result);
      break;
    case Op::kTranspose:
      transpose(node, *operands[0], result);
      break;
    case Op::kSlice:
      slice(node, *operands[0], result);
      break;
    case Op::kReverse:
      reverse(node, *operands[0], result);
      break;
    case Op::kConcatenate:
    case Op::kConcatInPlace:
      concatenate(node, operands, result);
      break;
    case Op::kPad:
      pad(node, operands, result);
      break;
    default:
      SW_CHECK(false, "{} is not a layout op", def(node.op).name);
  }
  return result;
}

}  // namespace stitchwork
