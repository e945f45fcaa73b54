// Layout against products: what a dot's dimension numbers can say instead.
#include <algorithm>

#include "core/substitute/editor.h"
#include "core/substitute/families.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {

// ---- layout-into-dot

namespace {

struct Absorbed {
  std::size_t side = 0;
  NodeId layout = kNoNode;
  Labelled operand;      ///< what the layout op reads
  std::vector<int> out;  ///< of the dot of it
};

/// The numbers of a reshape's operand, where the reshape splits, merges or adds nothing but dimensions that
/// the dot keeps. `out` gets the operand's in the place of those.
std::optional<std::vector<int>> reshaped_labels(const Dims& from, const Dims& to,
                                                const std::vector<int>& labels, const DotLabels& dot,
                                                std::vector<int>& out) {
  std::vector<int> result;
  int fresh = static_cast<int>(dot.out.size() + dot.contracted.size());
  for (std::size_t i = 0, o = 0; i < from.size() || o < to.size();) {
    const std::size_t first_in = i, first_out = o;
    if (o == to.size()) return std::nullopt;
    std::int64_t in = i < from.size() ? from[i++] : 1, have = to[o++];
    while (in != have) {  // extents of 0: there may be no run that ends
      if (in < have && i < from.size())
        in *= from[i++];
      else if (in > have && o < to.size())
        have *= to[o++];
      else
        return std::nullopt;
    }
    if (i - first_in == 1 && o - first_out == 1) {
      result.push_back(labels[first_out]);
      continue;
    }
    // A run: side by side in the dot's result, too, which keeps the order of an operand's own dimensions.
    auto at = out.end();
    for (std::size_t k = first_out; k < o; ++k) {
      if (dot.is_contracted(labels[k]) || dot.is_batch(labels[k])) return std::nullopt;
      at = out.erase(std::ranges::find(out, labels[k]));
    }
    for (std::size_t k = first_in; k < i; ++k) {
      result.push_back(fresh);
      at = out.insert(at, fresh++) + 1;
    }
  }
  return result;
}

std::optional<Absorbed> absorbed(const View& view, const Node& dot) {
  if (dot.op != Op::kDot) return std::nullopt;
  const DotLabels labels = view.labels(dot);
  for (const std::size_t side : {0, 1}) {
    const Node& layout = view.operand(dot, side);
    if (layout.op != Op::kTranspose && layout.op != Op::kReshape) continue;
    const std::vector<int>& have = labels.operand(side);
    const Dims& from = view.operand(layout, 0).shape.dims;
    Absorbed result{side, layout.id, {layout.operands[0], {}}, labels.out};
    if (layout.op == Op::kTranspose) {
      result.operand.labels.resize(have.size());
      for (std::size_t i = 0; i < have.size(); ++i)
        result.operand.labels[static_cast<std::size_t>(layout.attrs.dimensions[i])] = have[i];
    } else if (const auto read = reshaped_labels(from, layout.shape.dims, have, labels, result.out)) {
      result.operand.labels = *read;
    } else {
      continue;
    }
    const Labelled other{dot.operands[1 - side], labels.operand(1 - side)};
    const std::vector<int> natural = side == 0 ? natural_order(result.operand, other, result.out)
                                               : natural_order(other, result.operand, result.out);
    if (natural == result.out) return result;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Match> find_layout_into_dot(const View& view, NodeId place) {
  const std::optional<Absorbed> found = absorbed(view, view.node(place));
  if (!found) return std::nullopt;
  return Match{{place, found->layout}};
}

void apply_layout_into_dot(Editor& editor, const Match& match) {
  const Node& dot = editor.view().node(match.at[0]);
  const Absorbed found = *absorbed(editor.view(), dot);
  const Labelled other{dot.operands[1 - found.side], editor.view().labels(dot).operand(1 - found.side)};
  const NodeId value = found.side == 0 ? editor.product(found.operand, other, found.out, dot)
                                       : editor.product(other, found.operand, found.out, dot);
  editor.replace(dot.id, editor.emit().reshape(value, dot.shape.dims));
}

// ---- transpose-of-dot

namespace {

struct Swapped {
  Labelled lhs, rhs;
  std::vector<int> out;
};

std::optional<Swapped> swapped(const View& view, const Node& transpose) {
  if (transpose.op != Op::kTranspose) return std::nullopt;
  const Node& dot = view.operand(transpose, 0);
  if (dot.op != Op::kDot || !view.only_read_by(dot.id, transpose.id)) return std::nullopt;
  const DotLabels labels = view.labels(dot);
  Swapped result{{dot.operands[1], labels.rhs}, {dot.operands[0], labels.lhs}, {}};
  for (const std::int64_t d : transpose.attrs.dimensions) result.out.push_back(static_cast<int>(d));
  if (natural_order(result.lhs, result.rhs, result.out) != result.out) return std::nullopt;
  return result;
}

}  // namespace

std::optional<Match> find_transpose_of_dot(const View& view, NodeId place) {
  if (!swapped(view, view.node(place))) return std::nullopt;
  return Match{{place, view.node(place).operands[0]}};
}

void apply_transpose_of_dot(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Swapped found = *swapped(view, view.node(match.at[0]));
  editor.replace(match.at[0], editor.product(found.lhs, found.rhs, found.out, view.node(match.at[1])));
}

}  // namespace stitchwork::rewriting
