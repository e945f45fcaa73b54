// Reductions whose reducer is more than one operation (logaddexp, say), which generated code has no
// instruction for: the reducer's body, element by element on whole slices that halve. What is combined keeps
// its order. HLO lets a compiler group what it reduces as it likes, so that only associative reducers have a
// meaning of their own; others are left to be refused.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/evaluate/evaluator_ops.h"
#include "core/graph/complex_type.h"
#include "core/passes/expand_ops.h"

namespace stitchwork {
namespace {

/// Numbers of both signs around 1, none of them twice in a row; `which` of several such vectors.
Literal sample(DType type, std::int64_t count, int which) {
  Literal values = Literal::zeros(Shape::array(type, {count}));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t n = ((i + 1) * (7919 + 104729 * which)) % 2003;  // primes: no pattern
    if (type == DType::kPred)
      values.set_int(i, n & 1);
    else if (is_integral(type))
      values.set_int(i, n % 100 - (is_signed_integer(type) ? 50 : 0));
    else
      values.set_double(i, (static_cast<double>(n) - 1001) / 300);
  }
  return values;
}

/// f(f(a, b), c) = f(a, f(b, c)), tried on numbers, up to a few roundings.
bool is_associative(const Graph& graph, ComputationId reducer, DType type) {
  constexpr std::int64_t kSamples = 64;
  const double roundings = type == DType::kF64 ? 1e-10 : type == DType::kF32 ? 1e-4 : 5e-2;
  const auto combined = [&](const Literal& x, const Literal& y) {
    const std::array<const Literal*, 2> arguments{&x, &y};
    return std::move(apply_to_vectors(graph, reducer, arguments, kSamples).at(0));
  };
  const Literal a = sample(type, kSamples, 0), b = sample(type, kSamples, 1), c = sample(type, kSamples, 2);
  const Literal left = combined(combined(a, b), c), right = combined(a, combined(b, c));
  if (!is_floating(type)) return left.bytes == right.bytes;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const double x = left.get_double(i), y = right.get_double(i);
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                      std::abs(x - y) <= roundings * std::max({1.0, std::abs(x), std::abs(y)});
    if (!same) return false;
  }
  return true;
}

}  // namespace

bool is_elementwise_on_scalars(const Computation& body) {
  return std::ranges::all_of(body.nodes, [](const Node& node) {
    const bool scalar = !node.shape.is_tuple && node.shape.dims.empty();
    return scalar && (node.op == Op::kParameter || node.op == Op::kConstant ||
                      (is_elementwise(node.op) && node.op != Op::kMap));
  });
}

NodeId apply_to_arrays(Emitter& emit, const Computation& body, const std::vector<std::int64_t>& dims,
                       const std::vector<NodeId>& arguments, bool as_source) {
  std::vector<NodeId> place;
  for (const Node& inner : body.nodes) {
    if (inner.op == Op::kParameter) {
      place.push_back(arguments.at(static_cast<std::size_t>(inner.attrs.parameter_number)));
      continue;
    }
    std::vector<NodeId> operands;
    for (const NodeId operand : inner.operands) operands.push_back(place[static_cast<std::size_t>(operand)]);
    const Shape array = Shape::array(inner.shape.dtype, dims);
    Node lifted = inner;
    lifted.shape = array;
    if (const std::optional<NodeId> written = expand_function(emit, lifted, operands)) {
      place.push_back(*written);
    } else if (inner.op == Op::kConstant) {
      const NodeId one = emit.add(inner.op, Shape::array(inner.shape.dtype, {}), {}, inner.attrs);
      place.push_back(dims.empty() ? one : emit.broadcast(one, dims, {}));
    } else if (as_source && inner.id == body.root) {
      place.push_back(emit.add_as_source(inner.op, array, operands, inner.attrs));
    } else {
      place.push_back(emit.add(inner.op, array, operands, inner.attrs));
    }
  }
  return place[static_cast<std::size_t>(body.root)];
}

std::optional<Combiner> Combiner::of(const Graph& graph, const Node& node) {
  const Computation& body = graph.computation(applied(node));
  if (node.shape.is_tuple || body.parameters.size() != 2 || !is_elementwise_on_scalars(body))
    return std::nullopt;
  const DType type = body.node(body.root).shape.dtype;
  for (const NodeId parameter : body.parameters)
    if (body.node(parameter).shape.dtype != type) return std::nullopt;
  const std::optional<Op> op = simple_reducer(graph, applied(node));
  if (!op && (!is_executable(type) || !is_associative(graph, applied(node), type))) return std::nullopt;
  return Combiner(body, op, type);
}

NodeId Combiner::operator()(Emitter& emit, NodeId a, NodeId b, bool as_source) const {
  const Shape shape = emit.shape(a);
  if (!op_) return apply_to_arrays(emit, *body_, shape.dims, {a, b}, as_source);
  return as_source ? emit.add_as_source(*op_, shape, {a, b}) : emit.add(*op_, shape, {a, b});
}

std::optional<NodeId> expand_reduce(Emitter& emit, const Graph& graph, const Node& node,
                                    const std::vector<NodeId>& operands) {
  const std::optional<Combiner> combine = Combiner::of(graph, node);
  if (!combine) return std::nullopt;
  // A product of complex numbers is no product of their parts.
  const bool complex_product = combine->op() == Op::kMultiply && is_complex(combine->type());
  if (combine->op() && !complex_product) return std::nullopt;
  NodeId values = emit.convert(operands[0], combine->type());
  const NodeId initial = emit.convert(operands[1], combine->type());

  // The reduced elements of each result first, in their order.
  const std::vector<std::int64_t> extents = emit.shape(values).dims, &kept = node.shape.dims;
  Attributes order;
  std::vector<std::int64_t> turned;
  std::int64_t count = 1;
  for (const bool reduced : {true, false})
    for (std::size_t d = 0; d < extents.size(); ++d)
      if ((std::ranges::count(node.attrs.dimensions, static_cast<std::int64_t>(d)) != 0) == reduced) {
        order.dimensions.push_back(static_cast<std::int64_t>(d));
        turned.push_back(extents[d]);
        if (reduced) count *= extents[d];
      }
  const NodeId start = kept.empty() ? initial : emit.broadcast(initial, kept, {});
  if (count == 0) return start;
  if (!std::ranges::is_sorted(order.dimensions))
    values = emit.add(Op::kTranspose, Shape::array(combine->type(), turned), {values}, order);
  std::vector<std::int64_t> dims{count};
  dims.insert(dims.end(), kept.begin(), kept.end());
  values = emit.reshape(values, dims);

  // Neighbours in pairs; the odd ones out come behind what the pairs give.
  std::vector<NodeId> rest;
  for (; count > 1; count /= 2) {
    if (count % 2 != 0) rest.push_back(emit.reshape(emit.slice(values, 0, {count - 1, count, 1}), kept));
    const NodeId left = emit.slice(values, 0, {0, count - 1, 2}),
                 right = emit.slice(values, 0, {1, count / 2 * 2, 2});
    values = (*combine)(emit, left, right);
  }
  NodeId result = emit.reshape(values, kept);
  for (auto odd = rest.rbegin(); odd != rest.rend(); ++odd) result = (*combine)(emit, result, *odd);
  return (*combine)(emit, start, result, true);
}

}  // namespace stitchwork
