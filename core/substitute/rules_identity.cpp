// The tidy rules: what changes nothing, layout ops in a row, neutral elements, constants, slices of
// concatenations.
#include <algorithm>
#include <cmath>

#include "core/evaluate/evaluator.h"
#include "core/substitute/editor.h"
#include "core/substitute/families.h"
#include "core/substitute/single_op.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {

// ---- same

std::optional<Match> find_same(const View& view, NodeId place) {
  const Node& node = view.node(place);
  const OpClass cls = def(node.op).cls;
  const bool candidate = cls == OpClass::kLayout || cls == OpClass::kBroadcast || cls == OpClass::kGather ||
                         node.op == Op::kCopy || node.op == Op::kConvert;
  if (!candidate || node.operands.empty() || !same_array(node.shape, view.operand(node, 0).shape))
    return std::nullopt;
  // dynamic-update-slice: operand 0 is what it updates; update-in-place: it is stored elsewhere.
  if (node.op == Op::kDynamicUpdateSlice || node.op == Op::kUpdateInPlace) return std::nullopt;
  const std::optional<IndexMap> map = operand_map(view.computation(), place, 0);
  if (!map || !map->is_identity()) return std::nullopt;
  return Match{{place}};
}

void apply_same(Editor& editor, const Match& match) {
  editor.replace(match.at[0], editor.view().node(match.at[0]).operands[0]);
}

// ---- layout-pair

namespace {

/// What a row of layout ops is: one op of the farthest value possible.
struct LayoutRow {
  std::vector<NodeId> ops;  ///< the last one first
  NodeId from = kNoNode;
  std::optional<SingleOp> op;  ///< nullopt: nothing changes
};

std::optional<LayoutRow> layout_row(const View& view, NodeId place) {
  const Shape& to = view.node(place).shape;
  if (view.node(place).operands.empty() ||
      !only_moves(view.node(place), view.operand(view.node(place), 0).shape))
    return std::nullopt;
  const std::vector<Source> sources = view.sources(place);
  for (std::size_t last = sources.size(); last-- > 2;) {
    const Node& from = view.node(sources[last].node);
    LayoutRow row{{}, from.id, std::nullopt};
    for (std::size_t i = 0; i < last; ++i) row.ops.push_back(sources[i].node);
    if (same_array(from.shape, to) && sources[last].map.is_identity()) return row;
    row.op = single_op(sources[last].map, from.shape, to);
    if (row.op) return row;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Match> find_layout_pair(const View& view, NodeId place) {
  std::optional<LayoutRow> row = layout_row(view, place);
  if (!row) return std::nullopt;
  return Match{std::move(row->ops)};
}

void apply_layout_pair(Editor& editor, const Match& match) {
  const NodeId place = match.at[0];
  const LayoutRow row = *layout_row(editor.view(), place);
  const Shape& to = editor.view().node(place).shape;
  editor.replace(place,
                 row.op ? editor.add(row.op->op, to.dtype, to.dims, {row.from}, row.op->attrs) : row.from);
}

// ---- neutral

namespace {

/// Which operand the other one leaves as it is.
std::optional<std::size_t> left_as_it_is(const View& view, const Node& node) {
  if (node.operands.size() != 2 || node.shape.is_tuple) return std::nullopt;
  const DType type = node.shape.dtype;
  const auto neutral = [&](std::size_t side) {
    const NodeId value = node.operands[side];
    const Literal* literal = view.uniform(value);
    if (literal == nullptr) return false;
    switch (node.op) {
      case Op::kAdd:  // -0 + 0 is 0
        return is_identity_of(view, Op::kAdd, value) &&
               (!is_real(type) || std::signbit(literal->get_double(0)));
      case Op::kSubtract:  // x - 0 is x, but -0 - -0 is 0
        return side == 1 &&
               (is_real(type) ? literal->get_double(0) == 0 && !std::signbit(literal->get_double(0))
                              : is_integral(type) && literal->get_int(0) == 0);
      case Op::kDivide:
        return side == 1 && is_identity_of(view, Op::kMultiply, value);
      case Op::kMultiply:
      case Op::kMaximum:
      case Op::kMinimum:
      case Op::kAnd:
      case Op::kOr:
      case Op::kXor:
        return is_identity_of(view, node.op, value);
      default:
        return false;
    }
  };
  for (const std::size_t side : {1, 0})
    if (neutral(side) && same_array(node.shape, view.operand(node, 1 - side).shape)) return 1 - side;
  return std::nullopt;
}

}  // namespace

std::optional<Match> find_neutral(const View& view, NodeId place) {
  if (!left_as_it_is(view, view.node(place))) return std::nullopt;
  return Match{{place}};
}

void apply_neutral(Editor& editor, const Match& match) {
  const Node& node = editor.view().node(match.at[0]);
  editor.replace(node.id, node.operands[*left_as_it_is(editor.view(), node)]);
}

// ---- constant

namespace {

/// As in the ONNX reader: larger ones would make the text, and the time it takes, those of the array.
constexpr std::int64_t kMostConstantBytes = std::int64_t{16} << 20;

bool has_known_value(const Node& node) {
  return node.op == Op::kConstant && node.attrs.literal && !node.shape.is_tuple &&
         is_executable(node.shape.dtype) && node.shape.byte_size() <= kMostConstantBytes;
}

}  // namespace

std::optional<Match> find_constant(const View& view, NodeId place) {
  const Node& node = view.node(place);
  const OpClass cls = def(node.op).cls;
  const bool computes = is_elementwise(node.op) || cls == OpClass::kLayout || cls == OpClass::kReduce;
  if (!computes || def(node.op).execution == Execution::kOpaque || node.op == Op::kMap ||
      node.op == Op::kBitcast || node.operands.empty() || node.shape.is_tuple ||
      !is_executable(node.shape.dtype) || node.shape.byte_size() > kMostConstantBytes)
    return std::nullopt;
  if (!std::ranges::all_of(node.operands, [&](NodeId id) { return has_known_value(view.node(id)); }))
    return std::nullopt;
  return Match{{place}};
}

void apply_constant(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& node = view.node(match.at[0]);
  std::vector<const Literal*> operands;
  for (const NodeId id : node.operands) operands.push_back(view.node(id).attrs.literal.get());
  Attributes attributes;
  attributes.literal =
      std::make_shared<const Literal>(evaluate_node(view.graph(), view.computation(), node, operands));
  editor.replace(node.id, editor.add(Op::kConstant, node.shape.dtype, node.shape.dims, {}, attributes));
}

// ---- slice-of-concat

namespace {

struct InsidePart {
  NodeId part = kNoNode;
  std::vector<SliceSpec> slice;  ///< of it
};

std::optional<InsidePart> inside_part(const View& view, const Node& slice) {
  if (slice.op != Op::kSlice || view.operand(slice, 0).op != Op::kConcatenate) return std::nullopt;
  const Node& whole = view.operand(slice, 0);
  const auto axis = static_cast<std::size_t>(whole.attrs.dimensions[0]);
  if (slice.shape.dims[axis] == 0) return std::nullopt;
  InsidePart result{kNoNode, slice.attrs.slice};
  SliceSpec& range = result.slice[axis];
  const std::int64_t last = range.start + (slice.shape.dims[axis] - 1) * range.stride;
  std::int64_t offset = 0;
  for (const NodeId part : whole.operands) {
    const std::int64_t extent = view.node(part).shape.dims[axis];
    if (offset <= range.start && last < offset + extent) {
      range = {range.start - offset, last + 1 - offset, range.stride};
      result.part = part;
      return result;
    }
    offset += extent;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Match> find_slice_of_concat(const View& view, NodeId place) {
  const Node& slice = view.node(place);
  if (!inside_part(view, slice)) return std::nullopt;
  return Match{{place, slice.operands[0]}};
}

void apply_slice_of_concat(Editor& editor, const Match& match) {
  const Node& slice = editor.view().node(match.at[0]);
  InsidePart inside = *inside_part(editor.view(), slice);
  if (same_array(slice.shape, editor.view().node(inside.part).shape))  // all of it
    return editor.replace(slice.id, inside.part);
  Attributes attributes;
  attributes.slice = std::move(inside.slice);
  editor.replace(slice.id, editor.add(Op::kSlice, slice.shape.dtype, slice.shape.dims, {inside.part},
                                      std::move(attributes)));
}

// ---- concat-of-slices

namespace {

/// The slice that all operands of `whole` are parts of, in order and without gaps.
std::optional<std::vector<SliceSpec>> joined_slice(const View& view, const Node& whole) {
  if (whole.op != Op::kConcatenate || whole.operands.size() < 2) return std::nullopt;
  const auto axis = static_cast<std::size_t>(whole.attrs.dimensions[0]);
  std::optional<std::vector<SliceSpec>> joined;
  for (const NodeId id : whole.operands) {
    const Node& part = view.node(id);
    if (part.op != Op::kSlice || part.operands != view.operand(whole, 0).operands ||
        part.attrs.slice[axis].stride != 1)
      return std::nullopt;
    std::vector<SliceSpec> slice = part.attrs.slice;
    if (joined) {
      if ((*joined)[axis].limit != slice[axis].start) return std::nullopt;
      slice[axis].start = (*joined)[axis].start;
      (*joined)[axis].limit = slice[axis].limit;
      if (slice != *joined) return std::nullopt;
    }
    joined = std::move(slice);
  }
  return joined;
}

}  // namespace

std::optional<Match> find_concat_of_slices(const View& view, NodeId place) {
  const Node& whole = view.node(place);
  if (!joined_slice(view, whole)) return std::nullopt;
  Match match{{place}};
  match.at.insert(match.at.end(), whole.operands.begin(), whole.operands.end());
  return match;
}

void apply_concat_of_slices(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& whole = view.node(match.at[0]);
  const NodeId from = view.operand(whole, 0).operands[0];
  if (same_array(view.node(from).shape, whole.shape)) return editor.replace(whole.id, from);
  Attributes attributes;
  attributes.slice = *joined_slice(view, whole);
  editor.replace(whole.id,
                 editor.add(Op::kSlice, whole.shape.dtype, whole.shape.dims, {from}, std::move(attributes)));
}

}  // namespace stitchwork::rewriting
