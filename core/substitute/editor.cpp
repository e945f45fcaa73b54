#include "core/substitute/editor.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/graph/window.h"

namespace stitchwork::rewriting {

Editor::Editor(const RewrittenGraph& from, ComputationId computation)
    : from_(from),
      view_(from.graph, computation),
      model_(from.model_computation(view_.computation().name)),
      builder_(view_.computation().name) {
  const Computation& old = view_.computation();
  for (const Node& node : old.nodes) builder_.reserve(node.name);
  for (const Node& node : old.nodes) {
    builder_.add_reserved(node);
    replaced_by_.push_back(node.id);
  }
}

void Editor::begin(const Match& match) {
  matches_.push_back(match);
  first_made_.push_back(builder_.peek().size());
  emitter_.emplace(builder_, view_.node(match.at.front()));
}

NodeId Editor::add(Op op, DType type, Dims dims, std::vector<NodeId> operands, Attributes attributes) {
  return emit().add(op, Shape::array(type, std::move(dims)), std::move(operands), std::move(attributes));
}

NodeId Editor::like(const Node& node, std::vector<NodeId> operands, Dims dims) {
  return add(node.op, node.shape.dtype, std::move(dims), std::move(operands), node.attrs);
}

void Editor::replace(NodeId old, NodeId by) {
  const Shape was = shape(old), is = shape(by);
  const auto size = static_cast<NodeId>(replaced_by_.size());
  SW_CHECK(was.compatible(is), "'{}' is {}, what replaces it {}", view_.node(old).name, to_text(was),
           to_text(is));
  SW_CHECK(by >= size || same_array(was, is), "'{}' has another layout", view_.node(old).name);
  replaced_by_[static_cast<std::size_t>(old)] = by;
  if (by < size) return;
  layouts_.resize(static_cast<std::size_t>(builder_.peek().size() - size));
  layouts_[static_cast<std::size_t>(by - size)] = was.minor_to_major;
}

NodeId Editor::transpose(NodeId a, const Dims& permutation) {
  if (std::ranges::is_sorted(permutation)) return a;
  const Shape from = shape(a);
  Dims to;
  for (const std::int64_t d : permutation) to.push_back(from.dims[static_cast<std::size_t>(d)]);
  Attributes attributes;
  attributes.dimensions = permutation;
  return add(Op::kTranspose, from.dtype, std::move(to), {a}, std::move(attributes));
}

NodeId Editor::concatenate(const std::vector<NodeId>& parts, std::size_t dim) {
  if (parts.size() == 1) return parts[0];
  Shape to = shape(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) to.dims[dim] += dims(parts[i])[dim];
  Attributes attributes;
  attributes.dimensions = {static_cast<std::int64_t>(dim)};
  return add(Op::kConcatenate, to.dtype, to.dims, parts, std::move(attributes));
}

NodeId Editor::with_own_place(NodeId old) {
  Attributes attributes;
  attributes.placed = std::make_shared<const PlacedArray>(PlacedArray{.own = true});
  if (const Literal* number = view_.uniform(old)) {
    const NodeId scalar = emit().fill(Shape::array(shape(old).dtype, {}), number->get_double(0));
    return add(Op::kBroadcast, shape(old).dtype, dims(old), {scalar}, std::move(attributes));
  }
  attributes.dimensions = {0};
  return add(Op::kConcatenate, shape(old).dtype, dims(old), {old}, std::move(attributes));
}

NodeId Editor::slice(NodeId a, std::size_t dim, std::int64_t start, std::int64_t limit) {
  return emit().slice(a, dim, {start, limit, 1});
}

NodeId Editor::filled(DType type, double value, const Dims& dims) {
  return emit().fill(Shape::array(type, dims), value);
}

NodeId Editor::spread(const Spread& spread, const Dims& to) {
  const Shape from = shape(spread.source);
  Dims kept, axes, order;
  for (std::size_t i = 0; i < spread.axes.size(); ++i)
    if (spread.axes[i] >= 0) {
      kept.push_back(from.dims[i]);
      axes.push_back(spread.axes[i]);
      order.push_back(static_cast<std::int64_t>(order.size()));
    }
  NodeId value = emit().reshape(spread.source, kept);
  std::ranges::sort(order, {}, [&](std::int64_t i) { return axes[static_cast<std::size_t>(i)]; });
  value = transpose(value, order);
  std::ranges::sort(axes);
  if (dims(value) == to) return value;
  const Shape result = Shape::array(from.dtype, to);
  if (from.elements_count() != 0 && from.elements_count() == result.elements_count())
    return emit().reshape(value, to);
  return emit().broadcast(value, to, axes);
}

NodeId Editor::reduce(NodeId x, NodeId init, const Dims& reduced, ComputationId reducer) {
  const Shape from = shape(x);
  Dims to;
  for (int d = 0; d < from.rank(); ++d)
    if (std::ranges::count(reduced, d) == 0) to.push_back(from.dims[static_cast<std::size_t>(d)]);
  Attributes attributes;
  attributes.dimensions = reduced;
  attributes.computations = {reducer};
  return add(Op::kReduce, from.dtype, std::move(to), {x, init}, std::move(attributes));
}

NodeId Editor::sum(NodeId x, const Dims& reduced) {
  const DType type = shape(x).dtype;
  return reduce(x, emit().scalar(type, 0), reduced, reducer(Op::kAdd, type));
}

ComputationId Editor::reducer(Op op, DType type) {
  const Shape scalar = Shape::array(type, {});
  const auto does = [&](const Computation& c) {
    return c.size() == 3 && c.parameters.size() == 2 && c.root == 2 && c.node(2).op == op &&
           std::ranges::is_permutation(c.node(2).operands, c.parameters) &&
           std::ranges::all_of(c.nodes, [&](const Node& node) { return node.shape == scalar; });
  };
  for (ComputationId c = 0; c < view_.id(); ++c)
    if (does(view_.graph().computation(c))) return c;
  const auto known = static_cast<ComputationId>(view_.graph().computations.size());
  for (std::size_t i = 0; i < added_.size(); ++i)
    if (does(added_[i])) return known + static_cast<ComputationId>(i);
  std::string called = fmt::format("{}_{}", def(op).name, stitchwork::name(type));
  while (computation_named(view_.graph(), called) >= 0) called += "_";
  ComputationBuilder builder(called);
  Node node;
  node.shape = scalar;
  for (const char* parameter : {"a", "b"}) {
    node.name = parameter;
    node.attrs.parameter_number = builder.peek().size();
    builder.add(node);
  }
  Node root;
  root.op = op;
  root.shape = scalar;
  root.operands = {0, 1};
  const NodeId id = builder.add(root);
  added_.push_back(std::move(builder).finish(id));
  return known + static_cast<ComputationId>(added_.size()) - 1;
}

NodeId Editor::dot(NodeId lhs, NodeId rhs, DotDims dot_dims, const Node& like) {
  Node node;
  node.op = Op::kDot;
  node.attrs.dot = std::move(dot_dims);
  node.attrs.other = like.attrs.other;
  const Shape left = shape(lhs), right = shape(rhs);
  const Shape* const shapes[] = {&left, &right};
  Dims to = infer_shape(view_.graph(), node, shapes).dims;
  return add(Op::kDot, like.shape.dtype, std::move(to), {lhs, rhs}, std::move(node.attrs));
}

namespace {

bool has_label(const std::vector<int>& labels, int label) { return std::ranges::count(labels, label) != 0; }

std::int64_t place_of(const std::vector<int>& labels, int label) {
  const auto found = std::ranges::find(labels, label);
  SW_CHECK(found != labels.end(), "no dimension has number {}", label);
  return found - labels.begin();
}

}  // namespace

std::vector<int> natural_order(const Labelled& lhs, const Labelled& rhs, const std::vector<int>& out) {
  std::vector<int> result;
  for (const int label : out)
    if (has_label(lhs.labels, label) && has_label(rhs.labels, label)) result.push_back(label);
  for (const auto& [side, other] : {std::pair{&lhs, &rhs}, std::pair{&rhs, &lhs}})
    for (const int label : side->labels)
      if (!has_label(other->labels, label)) result.push_back(label);
  return result;
}

NodeId Editor::product(const Labelled& lhs, const Labelled& rhs, const std::vector<int>& out,
                       const Node& like) {
  // A precision is written for each operand.
  const bool may_swap = other_attribute(like, "operand_precision").empty();
  if (may_swap && natural_order(lhs, rhs, out) != out && natural_order(rhs, lhs, out) == out)
    return product(rhs, lhs, out, like);
  DotDims dot_dims;
  for (const int label : out)
    if (has_label(lhs.labels, label) && has_label(rhs.labels, label)) {
      dot_dims.lhs_batch.push_back(place_of(lhs.labels, label));
      dot_dims.rhs_batch.push_back(place_of(rhs.labels, label));
    }
  std::vector<int> contracted;
  for (const int label : lhs.labels)
    if (!has_label(out, label)) contracted.push_back(label);
  std::ranges::sort(contracted);
  for (const int label : contracted) {
    dot_dims.lhs_contracting.push_back(place_of(lhs.labels, label));
    dot_dims.rhs_contracting.push_back(place_of(rhs.labels, label));
  }
  const NodeId value = dot(lhs.id, rhs.id, std::move(dot_dims), like);
  const std::vector<int> natural = natural_order(lhs, rhs, out);
  Dims permutation;
  for (const int label : out) permutation.push_back(place_of(natural, label));
  return transpose(value, permutation);
}

}  // namespace stitchwork::rewriting
