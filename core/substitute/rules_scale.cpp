// Scales of products: scale-out-of-dot, scale-into-dot, scale-across-dot.
#include <algorithm>

#include "core/substitute/editor.h"
#include "core/substitute/families.h"
#include "core/substitute/scale.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {

std::optional<Scaled> scaled(const View& view, const Node& node,
                             const std::function<bool(int axis)>& may_use) {
  if ((node.op != Op::kMultiply && node.op != Op::kDivide) || node.shape.is_tuple) return std::nullopt;
  // f16: a product without its scale may pass 65,504, where bf16 and wider have the range (docs/rewriting.md,
  // Numerics).
  if (!is_real(node.shape.dtype) || node.shape.dtype == DType::kF16) return std::nullopt;
  for (const std::size_t side : {1, 0}) {
    if (side == 0 && node.op == Op::kDivide) continue;
    std::vector<Spread> spreads = view.spreads(node.operands[side]);
    std::ranges::reverse(spreads);  // the narrowest first
    for (Spread& spread : spreads) {
      if (view.node(spread.source).shape.elements_count() >= node.shape.elements_count()) continue;
      if (std::ranges::all_of(spread.axes, [&](int axis) { return axis < 0 || may_use(axis); }))
        return Scaled{node.id, node.op, node.operands[1 - side], side == 0, std::move(spread)};
    }
  }
  return std::nullopt;
}

NodeId apply_scale(Editor& editor, const Scaled& scaled, NodeId value, const std::vector<int>& axes) {
  const Dims dims = editor.dims(value);
  const NodeId scale = editor.spread({scaled.scale.source, axes}, dims);
  std::vector<NodeId> operands{value, scale};
  if (scaled.scale_first) std::ranges::reverse(operands);
  return editor.add(scaled.op, editor.shape(value).dtype, dims, operands);
}

namespace {

/// Dimension `label` of the dot, as a dimension of that operand.
int axis_in(const std::vector<int>& labels, int label) {
  return static_cast<int>(std::ranges::find(labels, label) - labels.begin());
}

bool is_of_one_type(const View& view, const Node& dot) {
  return view.operand(dot, 0).shape.dtype == dot.shape.dtype &&
         view.operand(dot, 1).shape.dtype == dot.shape.dtype;
}

NodeId dot_with(Editor& editor, const Node& dot, std::size_t side, NodeId operand) {
  std::vector<NodeId> operands = dot.operands;
  operands[side] = operand;
  return editor.like(dot, operands, dot.shape.dims);
}

}  // namespace

// ---- scale-out-of-dot

std::optional<ScaledDot> scale_of_dot(const View& view, NodeId place) {
  const Node& dot = view.node(place);
  if (dot.op != Op::kDot || !is_of_one_type(view, dot)) return std::nullopt;
  const DotLabels labels = view.labels(dot);
  for (const std::size_t side : {0, 1}) {
    const std::vector<int>& have = labels.operand(side);
    const auto kept = [&](int axis) { return !labels.is_contracted(have[static_cast<std::size_t>(axis)]); };
    if (!view.only_read_by(dot.operands[side], place)) continue;
    if (std::optional<Scaled> found = scaled(view, view.operand(dot, side), kept))
      return ScaledDot{side, std::move(*found)};
  }
  return std::nullopt;
}

std::optional<Match> find_scale_out_of_dot(const View& view, NodeId place) {
  const std::optional<ScaledDot> found = scale_of_dot(view, place);
  if (!found) return std::nullopt;
  return Match{{place, found->scaled.node}};
}

void apply_scale_out_of_dot(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& dot = view.node(match.at[0]);
  const ScaledDot found = *scale_of_dot(view, dot.id);
  const std::vector<int> labels = view.labels(dot).operand(found.side);
  std::vector<int> axes;
  for (const int axis : found.scaled.scale.axes)
    axes.push_back(axis < 0 ? -1 : labels[static_cast<std::size_t>(axis)]);
  const NodeId product = dot_with(editor, dot, found.side, found.scaled.value);
  editor.replace(dot.id, apply_scale(editor, found.scaled, product, axes));
}

// ---- scale-into-dot

namespace {

/// Behind a dot, with the side it may go to: the smaller one where both may.
std::optional<ScaledDot> scale_behind_dot(const View& view, const Node& node) {
  if (node.op != Op::kMultiply && node.op != Op::kDivide) return std::nullopt;
  std::vector<ScaledDot> found;
  for (const NodeId id : node.operands) {
    const Node& dot = view.node(id);
    if (dot.op != Op::kDot || !view.only_read_by(id, node.id) || !is_of_one_type(view, dot)) continue;
    const DotLabels labels = view.labels(dot);
    for (const std::size_t side : {0, 1}) {
      const auto of_side = [&](int axis) { return std::ranges::count(labels.operand(side), axis) != 0; };
      std::optional<Scaled> scale = scaled(view, node, of_side);
      if (scale && scale->value == id) found.push_back({side, std::move(*scale)});
    }
  }
  if (found.empty()) return std::nullopt;
  return *std::ranges::min_element(found, {}, [&](const ScaledDot& s) {
    return view.operand(view.node(s.scaled.value), s.side).shape.elements_count();
  });
}

}  // namespace

std::optional<Match> find_scale_into_dot(const View& view, NodeId place) {
  const std::optional<ScaledDot> found = scale_behind_dot(view, view.node(place));
  if (!found) return std::nullopt;
  return Match{{place, found->scaled.value}};
}

void apply_scale_into_dot(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const ScaledDot found = *scale_behind_dot(view, view.node(match.at[0]));
  const Node& dot = view.node(match.at[1]);
  const std::vector<int> labels = view.labels(dot).operand(found.side);
  std::vector<int> axes;
  for (const int axis : found.scaled.scale.axes) axes.push_back(axis < 0 ? -1 : axis_in(labels, axis));
  const NodeId operand = apply_scale(editor, found.scaled, dot.operands[found.side], axes);
  editor.replace(match.at[0], dot_with(editor, dot, found.side, operand));
}

// ---- scale-across-dot

namespace {

std::optional<ScaledDot> scale_of_contracted(const View& view, const Node& dot) {
  if (dot.op != Op::kDot || !is_of_one_type(view, dot)) return std::nullopt;
  const DotLabels labels = view.labels(dot);
  for (const std::size_t side : {0, 1}) {
    const std::vector<int>& have = labels.operand(side);
    if (!view.only_read_by(dot.operands[side], dot.id)) continue;
    const auto label_of = [&](int axis) { return have[static_cast<std::size_t>(axis)]; };
    std::optional<Scaled> found = scaled(view, view.operand(dot, side), [&](int axis) {
      return labels.is_contracted(label_of(axis)) || labels.is_batch(label_of(axis));
    });
    if (found && std::ranges::any_of(found->scale.axes, [&](int axis) {
          return axis >= 0 && labels.is_contracted(label_of(axis));
        }))
      return ScaledDot{side, std::move(*found)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Match> find_scale_across_dot(const View& view, NodeId place) {
  const std::optional<ScaledDot> found = scale_of_contracted(view, view.node(place));
  if (!found) return std::nullopt;
  return Match{{place, found->scaled.node}};
}

void apply_scale_across_dot(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& dot = view.node(match.at[0]);
  const ScaledDot found = *scale_of_contracted(view, dot);
  const DotLabels labels = view.labels(dot);
  std::vector<int> axes;
  for (const int axis : found.scaled.scale.axes)
    axes.push_back(axis < 0 ? -1
                            : axis_in(labels.operand(1 - found.side),
                                      labels.operand(found.side)[static_cast<std::size_t>(axis)]));
  std::vector<NodeId> operands = dot.operands;
  operands[found.side] = found.scaled.value;
  operands[1 - found.side] = apply_scale(editor, found.scaled, dot.operands[1 - found.side], axes);
  editor.replace(dot.id, editor.like(dot, operands, dot.shape.dims));
}

}  // namespace stitchwork::rewriting
