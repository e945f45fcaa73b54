// Products joined into one, and taken apart: dot-merge-free, dot-merge-batch, dot-split, dot-split-sum.
#include <algorithm>

#include "core/base/error.h"
#include "core/substitute/editor.h"
#include "core/substitute/families.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {
namespace {

constexpr const char* kPrecision = "operand_precision";

using TextAttributes = std::vector<std::pair<std::string, std::string>>;

/// Attributes kept as text, but for the precision.
TextAttributes without_precision(const Node& node) {
  TextAttributes result = node.attrs.other;
  std::erase_if(result, [](const auto& attribute) { return attribute.first == kPrecision; });
  return result;
}

bool same_kind(const Node& a, const Node& b) {
  return b.op == Op::kDot && a.shape.dtype == b.shape.dtype && without_precision(a) == without_precision(b);
}

/// `first` and, ascending, those of `candidates` none of which is computed from another.
std::vector<NodeId> independent(const View& view, NodeId first, const std::vector<NodeId>& candidates) {
  std::vector<NodeId> result{first};
  for (const NodeId id : candidates)
    if (id != first && std::ranges::none_of(result, [&](NodeId other) {
          return view.descends(std::max(id, other), std::min(id, other));
        }))
      result.push_back(id);
  return result;
}

}  // namespace

// ---- dot-merge-free

namespace {

struct Merged {
  std::size_t side = 0;  ///< of the operand they share
  std::vector<NodeId> dots;
};

bool reads_alike(const View& view, const Node& a, const Node& b, std::size_t side) {
  if (!same_kind(a, b) || b.operands[side] != a.operands[side] ||
      view.operand(a, 1 - side).shape.dtype != view.operand(b, 1 - side).shape.dtype)
    return false;
  const DotDims x = a.attrs.dot.value_or(DotDims{}), y = b.attrs.dot.value_or(DotDims{});
  return side == 0 ? x.lhs_batch == y.lhs_batch && x.lhs_contracting == y.lhs_contracting
                   : x.rhs_batch == y.rhs_batch && x.rhs_contracting == y.rhs_contracting;
}

std::optional<Merged> merged_dots(const View& view, NodeId place) {
  const Node& dot = view.node(place);
  if (dot.op != Op::kDot) return std::nullopt;
  for (const std::size_t side : {0, 1}) {
    std::vector<NodeId> alike;
    for (const NodeId reader : view.readers(dot.operands[side]))
      if (reads_alike(view, dot, view.node(reader), side)) alike.push_back(reader);
    Merged result{side, independent(view, place, alike)};
    if (result.dots.size() > 1) return result;
  }
  return std::nullopt;
}

/// The precision of the most careful of the dots, its node.
const Node& most_precise(const View& view, const std::vector<NodeId>& dots) {
  for (const NodeId id : dots)
    for (const auto& [key, value] : view.node(id).attrs.other)
      if (key == kPrecision && value.find("highest") != std::string::npos) return view.node(id);
  return view.node(dots.front());
}

/// The other operands in one order of dimensions, their own dimensions as one. That of the first which has
/// one dimension of its own, or batch, contracted, own.
struct Matrices {
  std::vector<NodeId> parts;
  std::vector<int> labels;  ///< of each dimension; that of the appended one is `own`
  std::size_t axis = 0;     ///< which is that
};

Matrices matrices(Editor& editor, const Merged& merged, int own) {
  const View& view = editor.view();
  const auto is_own = [](const DotLabels& labels, int label) {
    return !labels.is_batch(label) && !labels.is_contracted(label);
  };
  // Batch dimensions are numbered alike in all of them, contracted ones from kContracted here.
  constexpr int kContracted = 1 << 20;
  const auto numbered = [&](const DotLabels& labels, std::size_t side) {
    std::vector<int> result;
    for (const int label : labels.operand(side))
      result.push_back(is_own(labels, label) ? own
                       : labels.is_contracted(label)
                           ? kContracted + label - static_cast<int>(labels.out.size())
                           : label);
    return result;
  };
  Matrices result;
  for (const NodeId id : merged.dots) {
    const std::vector<int> labels = numbered(view.labels(view.node(id)), 1 - merged.side);
    if (result.labels.empty() && std::ranges::count(labels, own) == 1) result.labels = labels;
  }
  if (result.labels.empty()) {
    result.labels = numbered(view.labels(view.node(merged.dots[0])), 1 - merged.side);
    std::erase(result.labels, own);
    std::ranges::sort(result.labels);
    result.labels.push_back(own);
  }
  result.axis = static_cast<std::size_t>(std::ranges::find(result.labels, own) - result.labels.begin());
  for (const NodeId id : merged.dots) {
    const Node& operand = view.operand(view.node(id), 1 - merged.side);
    const std::vector<int> labels = numbered(view.labels(view.node(id)), 1 - merged.side);
    Dims permutation, dims;
    for (const int label : result.labels) {
      std::int64_t extent = 1;
      for (std::size_t d = 0; d < labels.size(); ++d)
        if (labels[d] == label) {
          permutation.push_back(static_cast<std::int64_t>(d));
          extent *= operand.shape.dims[d];
        }
      dims.push_back(extent);
    }
    result.parts.push_back(editor.emit().reshape(editor.transpose(operand.id, permutation), dims));
  }
  return result;
}

}  // namespace

std::optional<Match> find_dot_merge_free(const View& view, NodeId place) {
  std::optional<Merged> merged = merged_dots(view, place);
  if (!merged) return std::nullopt;
  return Match{std::move(merged->dots)};
}

void apply_dot_merge_free(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Merged merged = *merged_dots(view, match.at[0]);
  const Node& first = view.node(match.at[0]);
  const DotLabels first_labels = view.labels(first);
  const std::size_t side = merged.side;
  constexpr int kOwn = 1 << 21;
  const Matrices w = matrices(editor, merged, kOwn);
  const NodeId appended = editor.concatenate(w.parts, w.axis);
  // The dot's dimension numbers: x as it was, the other operand by its new order.
  const DotDims was = first.attrs.dot.value_or(DotDims{});
  DotDims dims = was;
  Dims& batch = side == 0 ? dims.rhs_batch : dims.lhs_batch;
  Dims& contracting = side == 0 ? dims.rhs_contracting : dims.lhs_contracting;
  const auto at = [&](int label) { return std::ranges::find(w.labels, label) - w.labels.begin(); };
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i] = at(static_cast<int>(i));
  for (std::size_t i = 0; i < contracting.size(); ++i) contracting[i] = at((1 << 20) + static_cast<int>(i));
  const Node& like = most_precise(view, match.at);
  const NodeId x = first.operands[side];
  const NodeId all = side == 0 ? editor.dot(x, appended, dims, like) : editor.dot(appended, x, dims, like);
  const auto own_axis =
      side == 0 ? editor.dims(all).size() - 1 : static_cast<std::size_t>(first_labels.batch);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < match.at.size(); ++i) {
    const std::int64_t extent = editor.dims(w.parts[i])[w.axis];
    const NodeId part = editor.slice(all, own_axis, offset, offset + extent);
    editor.replace(match.at[i], editor.emit().reshape(part, view.node(match.at[i]).shape.dims));
    offset += extent;
  }
}

// ---- dot-merge-batch

namespace {

std::vector<NodeId> batched_dots(const View& view, NodeId place) {
  const Node& dot = view.node(place);
  if (dot.op != Op::kDot) return {};
  std::vector<NodeId> alike;
  for (const Node& other : view.computation().nodes) {
    if (!same_kind(dot, other) || other.attrs.dot != dot.attrs.dot || other.attrs.other != dot.attrs.other)
      continue;
    if (view.operand(other, 0).shape.compatible(view.operand(dot, 0).shape) &&
        view.operand(other, 1).shape.compatible(view.operand(dot, 1).shape))
      alike.push_back(other.id);
  }
  return independent(view, place, alike);
}

}  // namespace

std::optional<Match> find_dot_merge_batch(const View& view, NodeId place) {
  std::vector<NodeId> dots = batched_dots(view, place);
  if (dots.size() < 2) return std::nullopt;
  return Match{std::move(dots)};
}

void apply_dot_merge_batch(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& first = view.node(match.at[0]);
  const auto stacked = [&](std::size_t side) {
    std::vector<NodeId> parts;
    for (const NodeId id : match.at) {
      const Node& operand = view.operand(view.node(id), side);
      Dims dims = operand.shape.dims;
      dims.insert(dims.begin(), 1);
      parts.push_back(editor.emit().reshape(operand.id, dims));
    }
    return editor.concatenate(parts, 0);
  };
  DotDims dims = first.attrs.dot.value_or(DotDims{});
  for (Dims* list : {&dims.lhs_batch, &dims.rhs_batch, &dims.lhs_contracting, &dims.rhs_contracting})
    for (std::int64_t& d : *list) ++d;
  dims.lhs_batch.insert(dims.lhs_batch.begin(), 0);
  dims.rhs_batch.insert(dims.rhs_batch.begin(), 0);
  const NodeId all = editor.dot(stacked(0), stacked(1), dims, first);
  for (std::size_t i = 0; i < match.at.size(); ++i) {
    const auto n = static_cast<std::int64_t>(i);
    editor.replace(match.at[i], editor.emit().reshape(editor.slice(all, 0, n, n + 1), first.shape.dims));
  }
}

// ---- dot-split

namespace {

/// The side whose operand is a concatenation along a dimension that the dot keeps (or contracts).
std::optional<std::size_t> concatenated_side(const View& view, const Node& dot, bool contracted) {
  if (dot.op != Op::kDot) return std::nullopt;
  const DotLabels labels = view.labels(dot);
  for (const std::size_t side : {0, 1}) {
    const Node& operand = view.operand(dot, side);
    if (operand.op != Op::kConcatenate || operand.operands.size() < 2) continue;
    const int label = labels.operand(side)[static_cast<std::size_t>(operand.attrs.dimensions[0])];
    if (contracted ? labels.is_contracted(label) : !labels.is_contracted(label) && !labels.is_batch(label))
      return side;
  }
  return std::nullopt;
}

bool slices_dot(const View& view, const Node& slice) {
  return slice.op == Op::kSlice && view.operand(slice, 0).op == Op::kDot &&
         slice.shape.dims != view.operand(slice, 0).shape.dims;
}

/// The dot's operand with the dimensions sliced as those of the result are.
NodeId sliced_operand(Editor& editor, const Node& dot, std::size_t side,
                      const std::vector<SliceSpec>& of_result) {
  const std::vector<int> labels = editor.view().labels(dot).operand(side);
  NodeId value = dot.operands[side];
  for (std::size_t d = 0; d < labels.size(); ++d)
    if (const auto label = static_cast<std::size_t>(labels[d]); label < of_result.size())
      value = editor.emit().slice(value, d, of_result[label]);
  return value;
}

NodeId dot_of(Editor& editor, const Node& dot, std::size_t side, NodeId operand, NodeId other) {
  const DotDims dims = dot.attrs.dot.value_or(DotDims{});
  return side == 0 ? editor.dot(operand, other, dims, dot) : editor.dot(other, operand, dims, dot);
}

}  // namespace

std::optional<Match> find_dot_split(const View& view, NodeId place) {
  const Node& node = view.node(place);
  if (slices_dot(view, node)) return Match{{place, node.operands[0]}};
  const std::optional<std::size_t> side = concatenated_side(view, node, false);
  if (!side) return std::nullopt;
  return Match{{place, node.operands[*side]}};
}

void apply_dot_split(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& node = view.node(match.at[0]);
  if (node.op == Op::kSlice) {
    const Node& dot = view.node(match.at[1]);
    const NodeId lhs = sliced_operand(editor, dot, 0, node.attrs.slice),
                 rhs = sliced_operand(editor, dot, 1, node.attrs.slice);
    return editor.replace(node.id, editor.dot(lhs, rhs, dot.attrs.dot.value_or(DotDims{}), dot));
  }
  const std::size_t side = *concatenated_side(view, node, false);
  const Node& whole = view.node(match.at[1]);
  const int label = view.labels(node).operand(side)[static_cast<std::size_t>(whole.attrs.dimensions[0])];
  std::vector<NodeId> parts;
  for (const NodeId part : whole.operands)
    parts.push_back(dot_of(editor, node, side, part, node.operands[1 - side]));
  editor.replace(node.id, editor.concatenate(parts, static_cast<std::size_t>(label)));
}

// ---- dot-split-sum

std::optional<Match> find_dot_split_sum(const View& view, NodeId place) {
  const Node& dot = view.node(place);
  const std::optional<std::size_t> side = concatenated_side(view, dot, true);
  if (!side || !is_real(dot.shape.dtype)) return std::nullopt;
  return Match{{place, dot.operands[*side]}};
}

void apply_dot_split_sum(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& dot = view.node(match.at[0]);
  const std::size_t side = *concatenated_side(view, dot, true);
  const Node& whole = view.node(match.at[1]);
  const auto axis = static_cast<std::size_t>(whole.attrs.dimensions[0]);
  const DotLabels labels = view.labels(dot);
  const std::vector<int>& theirs = labels.operand(1 - side);
  const auto other_axis =
      static_cast<std::size_t>(std::ranges::find(theirs, labels.operand(side)[axis]) - theirs.begin());
  std::int64_t offset = 0;
  NodeId total = kNoNode;
  for (const NodeId part : whole.operands) {
    const std::int64_t extent = view.node(part).shape.dims[axis];
    const NodeId other = editor.slice(dot.operands[1 - side], other_axis, offset, offset + extent);
    const NodeId term = dot_of(editor, dot, side, part, other);
    total = total == kNoNode ? term : editor.add(Op::kAdd, dot.shape.dtype, dot.shape.dims, {total, term});
    offset += extent;
  }
  editor.replace(dot.id, total);
}

}  // namespace stitchwork::rewriting
