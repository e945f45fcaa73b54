// Windows that are costly or cannot be generated as they stand.
//
// A window that covers all elements up to its position (cumsum and its like) costs n^2. XLA's
// ReduceWindowRewriter makes a tree of it, and so does this, by the same rule and with the same base of 16:
// one windowed dimension, as long as the operand's and padded by one less on one side, without stride or
// dilation, longer than the base. The dimension is split into blocks of 16, each has a cumulative window of
// its own, and what the blocks before it come to (again a cumulative window, of their last elements) is
// combined with it. Sums and products of 16-bit floats, which the tree would round at each level, stay as
// they are.
//
// A window whose reducer is more than one operation is combined on whole slices, the lengths of which double.
#include <fmt/ranges.h>

#include <algorithm>

#include "core/graph/complex_type.h"
#include "core/graph/window.h"
#include "core/passes/expand_ops.h"

namespace stitchwork {
namespace {

/// Of XLA's rewriter (xla_reduce_window_rewrite_base_length).
constexpr std::int64_t kBaseLength = 16;

struct Cumulative {
  std::size_t dim = 0;
  bool reverse = false;  ///< from the position to the end
};

std::optional<Cumulative> cumulative(const std::vector<WindowDim>& window,
                                     const std::vector<std::int64_t>& extents) {
  std::optional<Cumulative> found;
  for (std::size_t d = 0; d < window.size(); ++d) {
    WindowDim plain;
    if (window[d] == plain) continue;
    plain.size = extents[d];
    plain.pad_low = extents[d] - 1;
    const bool forward = window[d] == plain;
    std::swap(plain.pad_low, plain.pad_high);
    if (found || (!forward && window[d] != plain)) return std::nullopt;
    found = {d, !forward};
  }
  return found;
}

/// What leaves every value of the type as it is, combined with it.
Literal neutral(Op op, DType type) {
  Literal literal = Literal::zeros(Shape::array(type, {}));
  if (is_complex(type)) {
    if (op != Op::kMultiply) return literal;
    Literal one = Literal::zeros(Shape::array(part_of(type), {}));
    one.set_double(0, 1);
    std::ranges::copy(one.bytes, literal.bytes.begin());
    return literal;
  }
  if (op == Op::kMaximum || op == Op::kMinimum) return extreme(type, op == Op::kMinimum);
  if (op == Op::kAnd || (type == DType::kPred && op == Op::kMultiply))
    literal.set_int(0, type == DType::kPred ? 1 : -1);
  else if (op == Op::kMultiply)
    literal.set_double(0, 1);
  return literal;
}

std::vector<std::int64_t> with(std::vector<std::int64_t> dims, std::size_t at, std::int64_t extent) {
  dims[at] = extent;
  return dims;
}

class Windows {
 public:
  Windows(Emitter& emit, const Node& node, const Combiner& combine, NodeId initial)
      : emit_(emit), node_(node), combine_(combine), initial_(initial) {}

  /// `initial`: what is neutral, or, of a reducer of several operations, anything: it goes into no result.
  NodeId cumulative(NodeId values, const Cumulative& how, bool as_source) {
    const std::vector<std::int64_t> dims = emit_.shape(values).dims;
    const std::int64_t length = dims[how.dim];
    if (length <= kBaseLength) return base(values, how);
    const std::int64_t count = (length + kBaseLength - 1) / kBaseLength,
                       missing = count * kBaseLength - length;
    const NodeId whole =
        emit_.pad(values, initial_, how.dim, how.reverse ? PadSpec{missing, 0, 0} : PadSpec{0, missing, 0});
    std::vector<std::int64_t> blocked = with(dims, how.dim, count);
    blocked.insert(blocked.begin() + static_cast<std::ptrdiff_t>(how.dim) + 1, kBaseLength);
    const NodeId inside = base(emit_.reshape(whole, blocked), {how.dim + 1, how.reverse});

    const std::int64_t end = how.reverse ? 0 : kBaseLength - 1;
    const NodeId totals =
        emit_.reshape(emit_.slice(inside, how.dim + 1, {end, end + 1, 1}), with(dims, how.dim, count));
    const NodeId sums = cumulative(totals, how, false);
    // Of the blocks before (behind) each.
    const NodeId others = emit_.pad(
        emit_.slice(sums, how.dim, how.reverse ? SliceSpec{1, count, 1} : SliceSpec{0, count - 1, 1}),
        initial_, how.dim, how.reverse ? PadSpec{0, 1, 0} : PadSpec{1, 0, 0});
    std::vector<std::int64_t> at;
    for (std::size_t d = 0; d < blocked.size(); ++d)
      if (d != how.dim + 1) at.push_back(static_cast<std::int64_t>(d));
    const NodeId spread = emit_.broadcast(others, blocked, at);
    NodeId joined = how.reverse ? combine_(emit_, inside, spread) : combine_(emit_, spread, inside);
    if (!combine_.op()) joined = emit_.select(has_others(blocked, how), joined, inside);
    const Shape all = Shape::array(combine_.type(), with(dims, how.dim, count * kBaseLength));
    if (missing == 0 && as_source) return emit_.add_as_source(Op::kReshape, all, {joined});
    const std::int64_t first = how.reverse ? missing : 0;
    return emit_.slice(emit_.reshape(joined, all.dims), how.dim, {first, first + length, 1}, as_source);
  }

  /// Any windows, the last dimension first, so that elements keep their order.
  NodeId general(NodeId values, const std::vector<WindowDim>& window) {
    Masked all{values, kNoNode};
    for (std::size_t d = window.size(); d-- > 0;)
      if (window[d] != WindowDim{}) all = along(all, d, window[d]);
    const std::vector<std::int64_t> dims = emit_.shape(all.values).dims;
    const NodeId start = dims.empty() ? initial_ : emit_.broadcast(initial_, dims, {});
    const NodeId result = combine_(emit_, start, all.values, all.there == kNoNode);
    return all.there == kNoNode
               ? result
               : emit_.add_as_source(Op::kSelect, emit_.shape(result), {all.there, result, start});
  }

 private:
  /// Elements, and which of them are no padding; kNoNode: all.
  struct Masked {
    NodeId values, there;
  };

  /// [.., blocks, 16, ..]: whether there are blocks before (behind) an element's.
  NodeId has_others(const std::vector<std::int64_t>& blocked, const Cumulative& how) {
    const std::int64_t count = blocked[how.dim];
    const NodeId one =
        emit_.pad(emit_.fill(Shape::array(DType::kPred, {count - 1}), 1), emit_.scalar(DType::kPred, 0), 0,
                  how.reverse ? PadSpec{0, 1, 0} : PadSpec{1, 0, 0});
    return emit_.broadcast(one, blocked, {static_cast<std::int64_t>(how.dim)});
  }

  NodeId base(NodeId values, const Cumulative& how) {
    const std::vector<std::int64_t> dims = emit_.shape(values).dims;
    std::vector<WindowDim> window(dims.size());
    WindowDim& along = window[how.dim];
    along.size = dims[how.dim];
    (how.reverse ? along.pad_high : along.pad_low) = dims[how.dim] - 1;
    if (!combine_.op()) return general_inside(values, window);
    Attributes attributes;
    attributes.computations = node_.attrs.computations;
    std::vector<std::string> sizes, pads;
    for (const WindowDim& d : window) {
      sizes.push_back(fmt::to_string(d.size));
      pads.push_back(fmt::format("{}_{}", d.pad_low, d.pad_high));
    }
    attributes.other = {
        {"window", fmt::format("{{size={} pad={}}}", fmt::join(sizes, "x"), fmt::join(pads, "x"))}};
    return emit_.add(Op::kReduceWindow, Shape::array(combine_.type(), dims), {values, initial_}, attributes);
  }

  /// Of one block. Each window has its own position, so that nothing stands for none.
  NodeId general_inside(NodeId values, const std::vector<WindowDim>& window) {
    Masked all{values, kNoNode};
    for (std::size_t d = window.size(); d-- > 0;)
      if (window[d] != WindowDim{}) all = along(all, d, window[d]);
    return all.values;
  }

  Masked slice(const Masked& all, std::size_t dim, SliceSpec at) {
    return {emit_.slice(all.values, dim, at),
            all.there == kNoNode ? kNoNode : emit_.slice(all.there, dim, at)};
  }

  Masked both(const Masked& a, const Masked& b) {
    const NodeId values = combine_(emit_, a.values, b.values);
    if (a.there == kNoNode) return {values, kNoNode};
    const NodeId present = emit_.select(b.there, values, a.values);
    return {emit_.select(a.there, present, b.values), emit_.binary(Op::kOr, a.there, b.there)};
  }

  Masked along(Masked all, std::size_t dim, const WindowDim& w) {
    if (w.pad_low != 0 || w.pad_high != 0 || w.base_dilation != 1) {
      if (all.there == kNoNode)
        all.there = emit_.fill(Shape::array(DType::kPred, emit_.shape(all.values).dims), 1);
      const PadSpec pad{w.pad_low, w.pad_high, w.base_dilation - 1};
      all = {emit_.pad(all.values, initial_, dim, pad),
             emit_.pad(all.there, emit_.scalar(DType::kPred, 0), dim, pad)};
    }
    // `doubled` covers `covered` elements from each; `result` those of the bits of the size so far.
    const std::int64_t length = emit_.shape(all.values).dims[dim];
    const std::int64_t positions = length - (w.size - 1) * w.window_dilation;
    std::optional<Masked> result;
    std::int64_t done = 0;
    Masked doubled = all;
    for (std::int64_t covered = 1;; covered *= 2) {
      if ((w.size & covered) != 0) {
        const std::int64_t first = done * w.window_dilation;
        const Masked part = slice(doubled, dim, {first, first + positions, 1});
        result = result ? both(*result, part) : part;
        done += covered;
      }
      if (covered * 2 > w.size) break;
      const std::int64_t shift = covered * w.window_dilation,
                         left = emit_.shape(doubled.values).dims[dim] - shift;
      doubled = both(slice(doubled, dim, {0, left, 1}), slice(doubled, dim, {shift, shift + left, 1}));
    }
    return slice(*result, dim, {0, positions, w.stride});
  }

  Emitter& emit_;
  const Node& node_;
  const Combiner& combine_;
  NodeId initial_;
};

}  // namespace

std::optional<NodeId> expand_reduce_window(Emitter& emit, const Graph& graph, const Node& node,
                                           const std::vector<NodeId>& operands) {
  const std::optional<Combiner> combine = Combiner::of(graph, node);
  if (!combine) return std::nullopt;
  const Shape from = emit.shape(operands[0]);
  const std::vector<WindowDim> window = window_of(node, from.rank());
  const std::optional<Cumulative> how = cumulative(window, from.dims);
  const bool tree = how && from.dims[how->dim] > kBaseLength;
  const bool odd = std::ranges::any_of(
      window, [](const WindowDim& d) { return d.reversed || d.pad_low < 0 || d.pad_high < 0; });
  if (!tree && (combine->op() || odd)) return std::nullopt;
  // The tree's values are rounded at each level; a window by itself accumulates narrow types in f32.
  const bool rounds = combine->op() == Op::kAdd || combine->op() == Op::kMultiply;
  if (tree && rounds && is_floating(combine->type()) && byte_size(combine->type()) < 4) return std::nullopt;
  if (node.shape.elements_count() == 0 || from.elements_count() == 0) return std::nullopt;
  const NodeId values = emit.convert(operands[0], combine->type()),
               initial = emit.convert(operands[1], combine->type());
  if (!tree) return Windows(emit, node, *combine, initial).general(values, window);
  if (!combine->op()) {
    const NodeId all = Windows(emit, node, *combine, initial).cumulative(values, *how, false);
    return (*combine)(emit, emit.broadcast(initial, from.dims, {}), all, true);
  }
  // Blocks start from what is neutral: the initial value is combined once.
  const Literal zero = neutral(*combine->op(), combine->type());
  const Node& start = emit.node(initial);
  if (start.op == Op::kConstant && start.attrs.literal && start.attrs.literal->bytes == zero.bytes)
    return Windows(emit, node, *combine, initial).cumulative(values, *how, true);
  Attributes constant;
  constant.literal = std::make_shared<const Literal>(zero);
  const NodeId nothing = emit.add(Op::kConstant, zero.shape, {}, constant);
  const NodeId all = Windows(emit, node, *combine, nothing).cumulative(values, *how, false);
  return (*combine)(emit, emit.broadcast(initial, from.dims, {}), all, true);
}

}  // namespace stitchwork
