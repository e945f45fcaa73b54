// Products of products and sums of products: dot-chain, dot-sum.
#include <algorithm>
#include <map>

#include "core/substitute/editor.h"
#include "core/substitute/families.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {

// ---- dot-chain

namespace {

/// (A B) C as A' (B' C): what is computed first, and the operand left for the second product.
struct Chain {
  NodeId inner = kNoNode;
  Labelled first, last, left;     ///< first * last, then left * that
  std::vector<int> between, out;  ///< dimensions of the two products
  double multiplications = 0;
};

using ExtentOf = std::map<int, std::int64_t>;

double extent_product(const std::vector<const std::vector<int>*>& lists, const ExtentOf& extents) {
  std::vector<int> labels;
  for (const auto* list : lists) labels.insert(labels.end(), list->begin(), list->end());
  std::ranges::sort(labels);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  double result = 1;
  for (const int label : labels) result *= static_cast<double>(extents.at(label));
  return result;
}

bool same_types(const View& view, const Node& outer, const Node& inner) {
  const DType type = outer.shape.dtype;
  if (!is_real(type) || inner.attrs.other != outer.attrs.other) return false;
  for (const Node* node : {&outer, &inner})
    for (const std::size_t side : {0, 1})
      if (view.operand(*node, side).shape.dtype != type) return false;
  return true;
}

std::optional<Chain> chain_at(const View& view, const Node& outer, std::size_t side) {
  const Node& inner = view.operand(outer, side);
  if (inner.op != Op::kDot || !view.only_read_by(inner.id, outer.id) || !same_types(view, outer, inner))
    return std::nullopt;
  const DotLabels outside = view.labels(outer), inside = view.labels(inner);
  if (outside.contracted.empty() || inside.contracted.empty() || outside.batch != inside.batch)
    return std::nullopt;
  // The inner product's dimensions by the outer one's numbers; what it contracts gets numbers of its own.
  const auto numbered = [&](const std::vector<int>& labels) {
    std::vector<int> result;
    for (const int label : labels)
      result.push_back(inside.is_contracted(label)
                           ? static_cast<int>(outside.out.size() + outside.contracted.size()) + label
                           : outside.operand(side)[static_cast<std::size_t>(label)]);
    return result;
  };
  for (int b = 0; b < inside.batch; ++b)
    if (!outside.is_batch(outside.operand(side)[static_cast<std::size_t>(b)])) return std::nullopt;
  const Labelled parts[] = {{inner.operands[0], numbered(inside.lhs)},
                            {inner.operands[1], numbered(inside.rhs)}};
  const Labelled other{outer.operands[1 - side], outside.operand(1 - side)};
  std::vector<int> batch = outside.out;
  batch.resize(static_cast<std::size_t>(outside.batch));
  ExtentOf extents;
  for (const Labelled& part : {parts[0], parts[1], other})
    for (std::size_t d = 0; d < part.labels.size(); ++d)
      extents[part.labels[d]] = view.node(part.id).shape.dims[d];
  for (const std::size_t p : {0, 1}) {
    const bool all = std::ranges::all_of(
        outside.contracted, [&](int label) { return std::ranges::count(parts[p].labels, label) != 0; });
    if (!all) continue;
    Chain chain{inner.id, parts[p], other, parts[1 - p], {}, outside.out, 0};
    chain.between = natural_order(chain.first, chain.last, batch);
    chain.multiplications = extent_product({&chain.first.labels, &chain.last.labels}, extents) +
                            extent_product({&chain.left.labels, &chain.between}, extents);
    return chain;
  }
  return std::nullopt;
}

/// Of the two operands that may be products, the one that leaves fewer multiplications.
std::optional<Chain> dot_chain(const View& view, const Node& outer) {
  if (outer.op != Op::kDot) return std::nullopt;
  std::optional<Chain> best;
  for (const std::size_t side : {0, 1})
    if (std::optional<Chain> chain = chain_at(view, outer, side);
        chain && (!best || chain->multiplications < best->multiplications))
      best = std::move(chain);
  return best;
}

}  // namespace

std::optional<Match> find_dot_chain(const View& view, NodeId place) {
  const std::optional<Chain> chain = dot_chain(view, view.node(place));
  if (!chain) return std::nullopt;
  return Match{{place, chain->inner}};
}

void apply_dot_chain(Editor& editor, const Match& match) {
  const Node& outer = editor.view().node(match.at[0]);
  const Chain chain = *dot_chain(editor.view(), outer);
  const Labelled between{editor.product(chain.first, chain.last, chain.between, outer), chain.between};
  editor.replace(outer.id, editor.product(chain.left, between, chain.out, outer));
}

// ---- dot-sum

namespace {

struct DotSum {
  NodeId a = kNoNode, b = kNoNode;
  std::optional<std::size_t> shared;  ///< the side on which both read one array
};

std::optional<DotSum> dot_sum(const View& view, const Node& node) {
  if ((node.op != Op::kAdd && node.op != Op::kSubtract) || !is_real(node.shape.dtype)) return std::nullopt;
  const Node &a = view.operand(node, 0), &b = view.operand(node, 1);
  if (a.op != Op::kDot || b.op != Op::kDot || a.id == b.id || a.attrs.dot != b.attrs.dot ||
      a.attrs.other != b.attrs.other || !view.only_read_by(a.id, node.id) ||
      !view.only_read_by(b.id, node.id))
    return std::nullopt;
  for (const Node* dot : {&a, &b})
    for (const std::size_t side : {0, 1})
      if (view.operand(*dot, side).shape.dtype != node.shape.dtype) return std::nullopt;
  for (const std::size_t side : {0, 1})
    if (a.operands[side] == b.operands[side] &&
        view.operand(a, 1 - side).shape.dims == view.operand(b, 1 - side).shape.dims)
      return DotSum{a.id, b.id, side};
  // Appended along the first contracted dimension: all others are alike.
  const DotDims dims = a.attrs.dot.value_or(DotDims{});
  if (node.op == Op::kSubtract || dims.lhs_contracting.empty()) return std::nullopt;
  for (const std::size_t side : {0, 1}) {
    Dims left = view.operand(a, side).shape.dims, right = view.operand(b, side).shape.dims;
    if (left.size() != right.size()) return std::nullopt;
    const auto axis = static_cast<std::size_t>((side == 0 ? dims.lhs_contracting : dims.rhs_contracting)[0]);
    left[axis] = right[axis] = 0;
    if (left != right) return std::nullopt;
  }
  return DotSum{a.id, b.id, std::nullopt};
}

}  // namespace

std::optional<Match> find_dot_sum(const View& view, NodeId place) {
  const std::optional<DotSum> found = dot_sum(view, view.node(place));
  if (!found) return std::nullopt;
  return Match{{place, found->a, found->b}};
}

void apply_dot_sum(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& node = view.node(match.at[0]);
  const DotSum found = *dot_sum(view, node);
  const Node &a = view.node(found.a), &b = view.node(found.b);
  const DotDims dims = a.attrs.dot.value_or(DotDims{});
  NodeId operands[2];
  for (const std::size_t side : {0, 1}) {
    const std::vector<NodeId> both{a.operands[side], b.operands[side]};
    const auto axis = [&] {
      return static_cast<std::size_t>((side == 0 ? dims.lhs_contracting : dims.rhs_contracting)[0]);
    };
    operands[side] = found.shared == side ? both[0]
                     : found.shared       ? editor.add(node.op, node.shape.dtype, editor.dims(both[0]), both)
                                          : editor.concatenate(both, axis());
  }
  editor.replace(node.id, editor.dot(operands[0], operands[1], dims, a));
}

}  // namespace stitchwork::rewriting
