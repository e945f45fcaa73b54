// Layout and broadcasts against element-wise ops.
#include <algorithm>

#include "core/substitute/editor.h"
#include "core/substitute/families.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {
namespace {

/// Element by element, but for scalar operands (clamp's bounds, a select's predicate).
bool is_by_element(const View& view, const Node& node) {
  if (!is_elementwise(node.op) || node.op == Op::kMap || node.operands.empty() || node.shape.is_tuple)
    return false;
  return std::ranges::all_of(node.operands, [&](NodeId id) {
    const Dims& dims = view.node(id).shape.dims;
    return dims == node.shape.dims || dims.empty();
  });
}

bool is_scalar_beside(const View& view, const Node& node, NodeId operand) {
  return view.node(operand).shape.dims.empty() && !node.shape.dims.empty();
}

/// One element everywhere; the deepest spread of it.
std::optional<Spread> scalar_spread(const View& view, NodeId value) {
  Spread last = view.spreads(value).back();
  if (view.node(last.source).shape.elements_count() != 1) return std::nullopt;
  return last;
}

}  // namespace

// ---- broadcast-down

namespace {

struct Narrow {
  Dims dims;                     ///< that f is computed over
  std::vector<int> axes;         ///< of the result
  std::vector<Spread> operands;  ///< by operand; axes of what it is over `dims`, not used for scalars beside
};

std::optional<Narrow> narrow_over(const View& view, const Node& node, const Dims& dims,
                                  const std::vector<int>& axes) {
  Narrow result{dims, axes, {}};
  for (const NodeId id : node.operands) {
    Spread& operand = result.operands.emplace_back(Spread{id, {}});
    if (is_scalar_beside(view, node, id)) continue;
    if (const std::optional<Spread> scalar = scalar_spread(view, id)) {
      operand = *scalar;
      continue;
    }
    const std::vector<Spread> spreads = view.spreads(id);
    const auto same = std::ranges::find_if(
        spreads, [&](const Spread& s) { return s.axes == axes && view.node(s.source).shape.dims == dims; });
    if (same == spreads.end()) return std::nullopt;
    operand.source = same->source;
    for (std::size_t i = 0; i < dims.size(); ++i)
      operand.axes.push_back(dims[i] == 1 ? -1 : static_cast<int>(i));
  }
  return result;
}

std::optional<Narrow> narrow(const View& view, const Node& node) {
  if (!is_by_element(view, node) || node.shape.elements_count() <= 1) return std::nullopt;
  for (const NodeId id : node.operands) {
    if (is_scalar_beside(view, node, id) || scalar_spread(view, id)) continue;
    std::vector<Spread> spreads = view.spreads(id);
    std::ranges::reverse(spreads);  // the narrowest first
    for (const Spread& spread : spreads) {
      const Shape& from = view.node(spread.source).shape;
      if (from.elements_count() >= node.shape.elements_count()) continue;
      if (std::optional<Narrow> result = narrow_over(view, node, from.dims, spread.axes)) return result;
    }
    return std::nullopt;
  }
  return narrow_over(view, node, {}, {});
}

}  // namespace

std::optional<Match> find_broadcast_down(const View& view, NodeId place) {
  if (!narrow(view, view.node(place))) return std::nullopt;
  return Match{{place}};
}

void apply_broadcast_down(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& node = view.node(match.at[0]);
  const Narrow found = *narrow(view, node);
  std::vector<NodeId> operands;
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    operands.push_back(is_scalar_beside(view, node, node.operands[i])
                           ? node.operands[i]
                           : editor.spread(found.operands[i], found.dims));
  const NodeId computed = editor.like(node, operands, found.dims);
  Spread result{computed, found.axes};
  editor.replace(node.id, editor.spread(result, node.shape.dims));
}

// ---- through-elementwise

namespace {

/// Whether `other` moves the elements of an array of `from`'s extents as `layout` does.
bool moves_alike(const View& view, const Node& layout, const Node& other) {
  if (other.op != layout.op || other.attrs.dimensions != layout.attrs.dimensions ||
      other.operands.size() != layout.operands.size())
    return false;
  for (std::size_t i = 0; i < layout.operands.size(); ++i)
    if (view.operand(layout, i).shape.dims != view.operand(other, i).shape.dims) return false;
  return true;
}

/// The layout op that all operands of an element-wise op share, but for those of one element everywhere.
const Node* shared_layout(const View& view, const Node& node) {
  if (!is_by_element(view, node)) return nullptr;
  const Node* layout = nullptr;
  for (const NodeId id : node.operands) {
    if (is_scalar_beside(view, node, id) || view.uniform(id) != nullptr || scalar_spread(view, id)) continue;
    const Node& operand = view.node(id);
    const bool bijection =
        operand.op == Op::kTranspose || operand.op == Op::kReshape || operand.op == Op::kReverse;
    if (!bijection && operand.op != Op::kConcatenate) return nullptr;
    if (layout != nullptr && !moves_alike(view, *layout, operand)) return nullptr;
    layout = &operand;
  }
  return layout;
}

}  // namespace

std::optional<Match> find_through_elementwise(const View& view, NodeId place) {
  const Node& node = view.node(place);
  if (shared_layout(view, node) == nullptr) return std::nullopt;
  Match match{{place}};
  for (const NodeId id : node.operands)
    if (!is_scalar_beside(view, node, id) && !scalar_spread(view, id) &&
        std::ranges::count(match.at, id) == 0)
      match.at.push_back(id);
  return match;
}

void apply_through_elementwise(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& node = view.node(match.at[0]);
  const Node& layout = *shared_layout(view, node);
  std::vector<NodeId> parts;
  for (std::size_t p = 0; p < layout.operands.size(); ++p) {
    const Dims& dims = view.operand(layout, p).shape.dims;
    std::vector<NodeId> operands;
    for (const NodeId id : node.operands) {
      const std::optional<Spread> scalar = scalar_spread(view, id);
      operands.push_back(is_scalar_beside(view, node, id) ? id
                         : scalar                         ? editor.spread(*scalar, dims)
                                                          : view.node(id).operands[p]);
    }
    parts.push_back(editor.like(node, operands, dims));
  }
  editor.replace(node.id, editor.add(layout.op, node.shape.dtype, node.shape.dims, parts, layout.attrs));
}

// ---- before-elementwise

std::optional<Match> find_before_elementwise(const View& view, NodeId place) {
  const Node& layout = view.node(place);
  if (layout.op != Op::kTranspose && layout.op != Op::kReshape && layout.op != Op::kReverse &&
      layout.op != Op::kSlice)
    return std::nullopt;
  const Node& node = view.operand(layout, 0);
  if (!is_by_element(view, node) || !view.only_read_by(node.id, place)) return std::nullopt;
  return Match{{place, node.id}};
}

void apply_before_elementwise(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& layout = view.node(match.at[0]);
  const Node& node = view.node(match.at[1]);
  std::vector<NodeId> operands;
  for (const NodeId id : node.operands) {
    const std::optional<Spread> scalar = scalar_spread(view, id);
    operands.push_back(
        is_scalar_beside(view, node, id) ? id
        : scalar                         ? editor.spread(*scalar, layout.shape.dims)
                 : editor.add(layout.op, view.node(id).shape.dtype, layout.shape.dims, {id}, layout.attrs));
  }
  editor.replace(layout.id, editor.like(node, operands, layout.shape.dims));
}

}  // namespace stitchwork::rewriting
