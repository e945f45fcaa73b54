// Reductions, and sums against products.
#include <algorithm>

#include "core/substitute/editor.h"
#include "core/substitute/families.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {

// ---- reduce-as-dot

namespace {

Dims sorted_dims(Dims dims) {
  std::ranges::sort(dims);
  return dims;
}

/// A dot that contracts what the sum reduces of the same array: the sum takes its batch dimensions and its
/// side, so that dot-merge-free may join them.
struct Companion {
  NodeId dot = kNoNode;
  std::size_t side = 0;
};

std::optional<Companion> companion(const View& view, const Node& reduce) {
  const NodeId x = reduce.operands[0];
  for (const NodeId reader : view.readers(x)) {
    const Node& dot = view.node(reader);
    if (dot.op != Op::kDot || dot.shape.dtype != reduce.shape.dtype) continue;
    const DotDims dims = dot.attrs.dot.value_or(DotDims{});
    for (const std::size_t side : {0, 1})
      if (dot.operands[side] == x && dot.operands[1 - side] != x &&
          view.operand(dot, 1 - side).shape.dtype == reduce.shape.dtype &&
          sorted_dims(side == 0 ? dims.lhs_contracting : dims.rhs_contracting) ==
              sorted_dims(reduce.attrs.dimensions))
        return Companion{reader, side};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Match> find_reduce_as_dot(const View& view, NodeId place) {
  const Node& reduce = view.node(place);
  if (!is_sum(view, reduce) || reduce.attrs.dimensions.empty()) return std::nullopt;
  Match match{{place}};
  if (const std::optional<Companion> other = companion(view, reduce)) match.at.push_back(other->dot);
  return match;
}

void apply_reduce_as_dot(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& reduce = view.node(match.at[0]);
  const Node& x = view.operand(reduce, 0);
  const std::optional<Companion> other = companion(view, reduce);
  const std::size_t side = other ? other->side : 0;
  Dims batch, contracting = sorted_dims(reduce.attrs.dimensions);
  if (other) {
    const DotDims dims = view.node(other->dot).attrs.dot.value_or(DotDims{});
    batch = side == 0 ? dims.lhs_batch : dims.rhs_batch;
    contracting = side == 0 ? dims.lhs_contracting : dims.rhs_contracting;
  }
  Dims ones, ones_batch, ones_contracting;
  for (const auto& [from, to] : {std::pair{&batch, &ones_batch}, std::pair{&contracting, &ones_contracting}})
    for (const std::int64_t d : *from) {
      to->push_back(static_cast<std::int64_t>(ones.size()));
      ones.push_back(x.shape.dims[static_cast<std::size_t>(d)]);
    }
  const NodeId one = editor.filled(reduce.shape.dtype, 1, ones);
  Node like;  // 10 bits of TF32 would be too few for the summands
  like.shape.dtype = reduce.shape.dtype;
  like.attrs.other = {{"operand_precision", "{highest,highest}"}};
  const NodeId sum = side == 0
                         ? editor.dot(x.id, one, {batch, ones_batch, contracting, ones_contracting}, like)
                         : editor.dot(one, x.id, {ones_batch, batch, ones_contracting, contracting}, like);
  // The dot has its batch dimensions first, the reduction the order of x.
  Dims made = batch, permutation;
  for (std::int64_t d = 0; d < x.shape.rank(); ++d)
    if (std::ranges::count(batch, d) + std::ranges::count(contracting, d) == 0) made.push_back(d);
  for (const std::int64_t d : sorted_dims(made))
    permutation.push_back(std::ranges::find(made, d) - made.begin());
  editor.replace(reduce.id, editor.transpose(sum, permutation));
}

// ---- dot-as-product

std::optional<Match> find_dot_as_product(const View& view, NodeId place) {
  const Node& dot = view.node(place);
  if (dot.op != Op::kDot || !is_real(dot.shape.dtype) || dot.shape.elements_count() == 0) return std::nullopt;
  for (const std::size_t side : {0, 1})
    if (view.operand(dot, side).shape.dtype != dot.shape.dtype) return std::nullopt;
  const DotLabels labels = view.labels(dot);
  std::int64_t contracted = 1, own = 1;
  for (std::size_t d = 0; d < labels.lhs.size(); ++d)
    if (labels.is_contracted(labels.lhs[d])) contracted *= view.operand(dot, 0).shape.dims[d];
  for (std::size_t d = static_cast<std::size_t>(labels.batch); d < labels.out.size(); ++d)
    own *= dot.shape.dims[d];
  if (contracted != 1 && own != 1) return std::nullopt;
  return Match{{place}};
}

void apply_dot_as_product(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& dot = view.node(match.at[0]);
  const DotLabels labels = view.labels(dot);
  // Over the result's dimensions, then the contracted ones.
  Dims all = dot.shape.dims, contracted;
  for (const int label : labels.contracted) {
    const auto d = std::ranges::find(labels.lhs, label) - labels.lhs.begin();
    contracted.push_back(static_cast<std::int64_t>(all.size()));
    all.push_back(view.operand(dot, 0).shape.dims[static_cast<std::size_t>(d)]);
  }
  const auto spread = [&](std::size_t side) {
    Spread result{dot.operands[side], labels.operand(side)};
    for (std::size_t i = 0; i < result.axes.size(); ++i)
      if (view.operand(dot, side).shape.dims[i] == 1) result.axes[i] = -1;
    return editor.spread(result, all);
  };
  const NodeId product = editor.multiply(spread(0), spread(1));
  editor.replace(dot.id, contracted.empty() ? product : editor.sum(product, contracted));
}

// ---- reduce-of-dot

namespace {

/// The side whose own dimensions the sum reduces, and which of the operand's those are.
struct SummedSide {
  std::size_t side = 0;
  Dims dims;
};

std::optional<SummedSide> summed_side(const View& view, const Node& reduce) {
  if (!is_sum(view, reduce) || reduce.attrs.dimensions.empty()) return std::nullopt;
  const Node& dot = view.operand(reduce, 0);
  if (dot.op != Op::kDot) return std::nullopt;
  const DotLabels labels = view.labels(dot);
  for (const std::size_t side : {0, 1}) {
    if (view.operand(dot, side).shape.dtype != dot.shape.dtype) return std::nullopt;
    SummedSide result{side, {}};
    for (const std::int64_t d : reduce.attrs.dimensions) {
      const auto label = static_cast<int>(d);
      const std::vector<int>& have = labels.operand(side);
      const auto at = std::ranges::find(have, label);
      if (!labels.is_batch(label) && at != have.end()) result.dims.push_back(at - have.begin());
    }
    if (result.dims.size() == reduce.attrs.dimensions.size()) {
      std::ranges::sort(result.dims);
      return result;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Match> find_reduce_of_dot(const View& view, NodeId place) {
  const Node& reduce = view.node(place);
  if (!summed_side(view, reduce)) return std::nullopt;
  return Match{{place, reduce.operands[0]}};
}

void apply_reduce_of_dot(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& reduce = view.node(match.at[0]);
  const Node& dot = view.node(match.at[1]);
  const SummedSide found = *summed_side(view, reduce);
  const DotLabels labels = view.labels(dot);
  std::vector<int> left;
  for (std::size_t d = 0; d < labels.operand(found.side).size(); ++d)
    if (std::ranges::count(found.dims, static_cast<std::int64_t>(d)) == 0)
      left.push_back(labels.operand(found.side)[d]);
  std::vector<int> out;
  for (const int label : labels.out)
    if (std::ranges::count(reduce.attrs.dimensions, static_cast<std::int64_t>(label)) == 0)
      out.push_back(label);
  const NodeId sum = editor.reduce(dot.operands[found.side], reduce.operands[1], found.dims, applied(reduce));
  const Labelled summed{sum, left}, other{dot.operands[1 - found.side], labels.operand(1 - found.side)};
  editor.replace(reduce.id, found.side == 0 ? editor.product(summed, other, out, dot)
                                            : editor.product(other, summed, out, dot));
}

// ---- reduce-pair

std::optional<Match> find_reduce_pair(const View& view, NodeId place) {
  const Node& outer = view.node(place);
  const std::optional<Op> op = plain_reducer(view, outer);
  if (!op) return std::nullopt;
  const Node& inner = view.operand(outer, 0);
  if (plain_reducer(view, inner) != op || !view.only_read_by(inner.id, place) ||
      !is_identity_of(view, *op, inner.operands[1]))
    return std::nullopt;
  return Match{{place, inner.id}};
}

void apply_reduce_pair(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& outer = view.node(match.at[0]);
  const Node& inner = view.node(match.at[1]);
  Dims reduced = inner.attrs.dimensions, left;
  for (std::int64_t d = 0; d < view.operand(inner, 0).shape.rank(); ++d)
    if (std::ranges::count(reduced, d) == 0) left.push_back(d);
  for (const std::int64_t d : outer.attrs.dimensions) reduced.push_back(left[static_cast<std::size_t>(d)]);
  editor.replace(outer.id,
                 editor.reduce(inner.operands[0], outer.operands[1], sorted_dims(reduced), applied(outer)));
}

// ---- reduce-of-broadcast

namespace {

struct RepeatedReduce {
  Spread spread;           ///< of the operand
  Dims reduced;            ///< dimensions of the source left to reduce
  std::int64_t times = 1;  ///< how often every element was repeated
};

/// A value of the type: 2,049 is none of f16's.
bool holds_number(DType type, std::int64_t number) {
  Literal literal = Literal::zeros(Shape::array(type, {}));
  literal.set_double(0, static_cast<double>(number));
  return literal.get_double(0) == static_cast<double>(number);
}

std::optional<RepeatedReduce> repeated_reduce(const View& view, const Node& reduce) {
  const std::optional<Op> op = plain_reducer(view, reduce);
  const bool idempotent = op == Op::kMaximum || op == Op::kMinimum || op == Op::kAnd || op == Op::kOr;
  const bool sum = op == Op::kAdd && reduce.shape.dtype != DType::kPred;
  if ((!idempotent && !sum) || !is_identity_of(view, *op, reduce.operands[1])) return std::nullopt;
  const Node& repeated = view.operand(reduce, 0);
  std::vector<Spread> spreads = view.spreads(repeated.id);
  std::ranges::reverse(spreads);
  for (Spread& spread : spreads) {
    RepeatedReduce result{std::move(spread), {}, 1};
    for (const std::int64_t d : reduce.attrs.dimensions) {
      const auto at = std::ranges::find(result.spread.axes, static_cast<int>(d));
      if (at == result.spread.axes.end())
        result.times *= repeated.shape.dims[static_cast<std::size_t>(d)];
      else
        result.reduced.push_back(at - result.spread.axes.begin());
    }
    if (result.times > 1 && (!sum || holds_number(reduce.shape.dtype, result.times))) {
      std::ranges::sort(result.reduced);
      return result;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Match> find_reduce_of_broadcast(const View& view, NodeId place) {
  if (!repeated_reduce(view, view.node(place))) return std::nullopt;
  return Match{{place, view.node(place).operands[0]}};
}

void apply_reduce_of_broadcast(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& reduce = view.node(match.at[0]);
  const RepeatedReduce found = *repeated_reduce(view, reduce);
  NodeId value = found.spread.source;
  if (!found.reduced.empty())
    value = editor.reduce(value, reduce.operands[1], found.reduced, applied(reduce));
  if (plain_reducer(view, reduce) == Op::kAdd)
    value = editor.multiply(
        value, editor.filled(reduce.shape.dtype, static_cast<double>(found.times), editor.dims(value)));
  // Dimensions of the operand that are left, by their place in the result.
  Spread result{value, {}};
  for (std::size_t i = 0; i < found.spread.axes.size(); ++i) {
    if (std::ranges::count(found.reduced, static_cast<std::int64_t>(i)) != 0) continue;
    int axis = found.spread.axes[i];
    if (axis >= 0)
      axis -= static_cast<int>(
          std::ranges::count_if(reduce.attrs.dimensions, [&](std::int64_t d) { return d < axis; }));
    result.axes.push_back(axis);
  }
  editor.replace(reduce.id, editor.spread(result, reduce.shape.dims));
}

// ---- reduce-through-layout

namespace {

/// Dimensions of the layout op's operand that the reduction reduces, in its order.
std::optional<Dims> reduced_before(const View& view, const Node& reduce) {
  if (!plain_reducer(view, reduce)) return std::nullopt;
  const Node& layout = view.operand(reduce, 0);
  Dims reduced;
  for (const std::int64_t d : sorted_dims(reduce.attrs.dimensions))
    if (layout.shape.dims[static_cast<std::size_t>(d)] != 1) reduced.push_back(d);
  if (reduced.empty() || layout.shape.elements_count() == 0) return std::nullopt;
  if (layout.op == Op::kTranspose) {
    for (std::int64_t& d : reduced) d = layout.attrs.dimensions[static_cast<std::size_t>(d)];
    if (!std::ranges::is_sorted(reduced)) return std::nullopt;
    return reduced;
  }
  if (layout.op != Op::kReshape) return std::nullopt;
  const Dims &from = view.operand(layout, 0).shape.dims, &to = layout.shape.dims;
  Dims result;
  for (std::size_t i = 0, o = 0; i < from.size() && o < to.size();) {
    const std::size_t first_in = i, first_out = o;
    std::int64_t in = from[i++], out = to[o++];
    while (in != out) in < out ? in *= from[i++] : out *= to[o++];
    std::size_t inside = 0, wide = 0;
    for (std::size_t k = first_out; k < o; ++k) {
      wide += to[k] != 1 ? 1 : 0;
      inside += static_cast<std::size_t>(std::ranges::count(reduced, static_cast<std::int64_t>(k)));
    }
    if (inside == 0) continue;
    if (inside != wide) return std::nullopt;
    for (std::size_t k = first_in; k < i; ++k) result.push_back(static_cast<std::int64_t>(k));
  }
  return result;
}

}  // namespace

std::optional<Match> find_reduce_through_layout(const View& view, NodeId place) {
  const Node& reduce = view.node(place);
  if (!reduced_before(view, reduce)) return std::nullopt;
  return Match{{place, reduce.operands[0]}};
}

void apply_reduce_through_layout(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& reduce = view.node(match.at[0]);
  const Node& layout = view.node(match.at[1]);
  const Dims reduced = *reduced_before(view, reduce);
  const NodeId value = editor.reduce(layout.operands[0], reduce.operands[1], reduced, applied(reduce));
  if (layout.op == Op::kReshape)
    return editor.replace(reduce.id, editor.emit().reshape(value, reduce.shape.dims));
  // Those left, of the layout op's result and of its operand; extents of 1 that were reduced go by a reshape.
  Dims left, before, permutation;
  for (std::int64_t d = 0; d < layout.shape.rank(); ++d) {
    const std::int64_t from = layout.attrs.dimensions[static_cast<std::size_t>(d)];
    if (std::ranges::count(reduced, from) == 0) left.push_back(from);
  }
  before = sorted_dims(left);
  for (const std::int64_t d : left) permutation.push_back(std::ranges::find(before, d) - before.begin());
  editor.replace(reduce.id, editor.emit().reshape(editor.transpose(value, permutation), reduce.shape.dims));
}

// ---- reduce-split

namespace {

/// The reduced dimensions by runs that lie together in memory; those of one element part nothing.
std::vector<Dims> reduced_runs(const View& view, const Node& reduce) {
  const Dims& extents = view.operand(reduce, 0).shape.dims;
  std::vector<Dims> runs;
  bool open = false;
  for (std::int64_t d = 0; d < std::ssize(extents); ++d) {
    if (extents[static_cast<std::size_t>(d)] == 1) continue;
    const bool reduced = std::ranges::count(reduce.attrs.dimensions, d) != 0;
    if (reduced && !open) runs.emplace_back();
    if (reduced) runs.back().push_back(d);
    open = reduced;
  }
  return runs;
}

std::int64_t extent(const View& view, const Node& reduce, const Dims& dims) {
  std::int64_t product = 1;
  for (const std::int64_t d : dims)
    product *= view.operand(reduce, 0).shape.dims[static_cast<std::size_t>(d)];
  return product;
}

}  // namespace

std::optional<Match> find_reduce_split(const View&, NodeId) { return std::nullopt; }

std::optional<Match> find_all_reduce_split(const View& view, const std::vector<NodeId>& ops) {
  if (ops.size() != 1) return std::nullopt;
  const Node& reduce = view.node(ops[0]);
  const std::optional<Op> op = plain_reducer(view, reduce);
  if (!op || !is_identity_of(view, *op, reduce.operands[1]) || reduced_runs(view, reduce).size() < 2)
    return std::nullopt;
  return Match{ops};
}

void apply_reduce_split(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& reduce = view.node(match.at[0]);
  const std::vector<Dims> runs = reduced_runs(view, reduce);
  const Dims& longest =
      *std::ranges::max_element(runs, {}, [&](const Dims& run) { return extent(view, reduce, run); });
  const NodeId part = editor.reduce(reduce.operands[0], reduce.operands[1], longest, applied(reduce));
  Dims rest;
  for (const std::int64_t d : sorted_dims(reduce.attrs.dimensions))
    if (std::ranges::count(longest, d) == 0)
      rest.push_back(d - std::ranges::count_if(longest, [&](std::int64_t gone) { return gone < d; }));
  editor.replace(reduce.id, editor.reduce(part, reduce.operands[1], rest, applied(reduce)));
}

}  // namespace stitchwork::rewriting
