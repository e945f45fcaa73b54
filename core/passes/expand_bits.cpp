// Bitcasts and bitcast-converts as moves of logical values, whatever the layouts.
#include <algorithm>

#include "core/passes/expand_ops.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

/// Leaves out dimensions of extent 1, whose place in memory says nothing.
Dims order_of(const Shape& shape) {
  Dims order = physical_order(shape);
  std::erase_if(order, [&](std::int64_t d) { return shape.dims[static_cast<std::size_t>(d)] == 1; });
  return order;
}

bool in_order(const Shape& shape) { return std::ranges::is_sorted(order_of(shape)); }

Dims physical_dims(const Shape& shape) {
  Dims dims;
  for (const std::int64_t d : physical_order(shape)) dims.push_back(shape.dims[static_cast<std::size_t>(d)]);
  return dims;
}

/// The value, which lay in memory as `shape` says, with its dimensions in that order.
NodeId to_physical(Emitter& emit, NodeId value, const Shape& shape) {
  if (in_order(shape)) return value;
  Attributes attributes;
  attributes.dimensions = physical_order(shape);
  return emit.add(Op::kTranspose, Shape::array(shape.dtype, physical_dims(shape)), {value}, attributes);
}

/// From dimensions in their order in memory to those of `shape`, whose layout is kept for who asks how it
/// lies.
NodeId from_physical(Emitter& emit, NodeId value, const Shape& shape) {
  if (in_order(shape)) return emit.reshape(value, shape.dims);
  value = emit.reshape(value, physical_dims(shape));
  Attributes attributes;
  attributes.dimensions.resize(shape.dims.size());
  const Dims order = physical_order(shape);
  for (std::size_t i = 0; i < order.size(); ++i)
    attributes.dimensions[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return emit.add(Op::kTranspose, shape, {value}, attributes);
}

DType unsigned_type(int bits) {
  switch (bits) {
    case 8:
      return DType::kU8;
    case 16:
      return DType::kU16;
    case 32:
      return DType::kU32;
    default:
      return DType::kU64;
  }
}

NodeId as(Emitter& emit, NodeId value, DType type) {
  const Shape shape = emit.shape(value);
  if (shape.dtype == type) return value;
  return emit.add(Op::kBitcastConvert, Shape::array(type, shape.dims), {value});
}

/// One element becomes several, low bits first.
NodeId split(Emitter& emit, NodeId value, DType type) {
  const int wide = bit_width(emit.shape(value).dtype), narrow = bit_width(type);
  const DType word = unsigned_type(wide);
  value = as(emit, value, word);
  Dims dims = emit.shape(value).dims, at(dims.size());
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i);
  dims.push_back(wide / narrow);
  const Shape shape = Shape::array(word, dims);
  Attributes last;
  last.dimensions = {static_cast<std::int64_t>(dims.size()) - 1};
  const NodeId amount =
      emit.binary(Op::kMultiply, emit.add(Op::kIota, shape, {}, last), emit.fill(shape, narrow));
  const NodeId shifted = emit.binary(Op::kShiftRightLogical, emit.broadcast(value, dims, at), amount);
  return as(emit, emit.convert(shifted, unsigned_type(narrow)), type);
}

/// The elements of the last dimension become one, low bits first.
NodeId unite(Emitter& emit, NodeId value, DType type) {
  const int wide = bit_width(type), narrow = bit_width(emit.shape(value).dtype);
  const DType word = unsigned_type(wide);
  value = emit.convert(as(emit, value, unsigned_type(narrow)), word);
  Dims dims = emit.shape(value).dims;
  Attributes part;
  for (const std::int64_t d : dims) part.slice.push_back({0, d, 1});
  Dims part_dims = dims;
  part_dims.back() = 1;
  dims.pop_back();
  NodeId all = kNoNode;
  for (int i = 0; i < wide / narrow; ++i) {
    part.slice.back() = {i, i + 1, 1};
    NodeId one = emit.reshape(emit.add(Op::kSlice, Shape::array(word, part_dims), {value}, part), dims);
    if (i > 0) one = emit.binary(Op::kShiftLeft, one, emit.fill(emit.shape(one), i * narrow));
    all = i == 0 ? one : emit.binary(Op::kOr, all, one);
  }
  return as(emit, all, type);
}

/// Whole bytes of types that are computed.
bool splits(DType type) { return is_executable(type) && bit_width(type) >= 8; }

}  // namespace

bool expands_bitcast(const Node& node, const Shape& operand) {
  if (node.shape.is_tuple || operand.is_tuple) return false;
  if (node.shape.dtype != operand.dtype)
    return bit_width(node.shape.dtype) == bit_width(operand.dtype) ||
           (splits(node.shape.dtype) && splits(operand.dtype));
  return !node.shape.has_default_layout() || !operand.has_default_layout();
}

NodeId expand_bitcast(Emitter& emit, const Node& node, NodeId operand, const Shape& from) {
  NodeId value = to_physical(emit, operand, from);
  const DType type = node.shape.dtype;
  const int wide = bit_width(emit.shape(value).dtype), narrow = bit_width(type);
  if (wide > narrow) {
    value = split(emit, value, type);
  } else if (wide < narrow) {
    const std::int64_t parts = narrow / wide;
    value = emit.reshape(value, {emit.shape(value).elements_count() / parts, parts});
    value = unite(emit, value, type);
  } else {
    value = as(emit, value, type);
  }
  return from_physical(emit, value, node.shape);
}

bool expands_bitcast_convert(const Node& node, const Shape& operand) {
  return bit_width(node.shape.dtype) != bit_width(operand.dtype) && splits(node.shape.dtype) &&
         splits(operand.dtype);
}

NodeId expand_bitcast_convert(Emitter& emit, const Node& node, NodeId operand) {
  return bit_width(emit.shape(operand).dtype) > bit_width(node.shape.dtype)
             ? split(emit, operand, node.shape.dtype)
             : unite(emit, operand, node.shape.dtype);
}

}  // namespace stitchwork
