#include <algorithm>
#include <array>
#include <map>

#include "core/base/error.h"
#include "core/graph/rewrite.h"
#include "core/graph/window.h"
#include "core/passes/expand_ops.h"
#include "core/passes/passes.h"

namespace stitchwork {

Node Emitter::made(Op op, Shape shape, std::vector<NodeId> operands, Attributes attributes) const {
  Node node;
  node.op = op;
  node.shape = std::move(shape);
  node.operands = std::move(operands);
  node.attrs = std::move(attributes);
  node.metadata = source_.metadata;
  node.line = source_.line;
  return node;
}

NodeId Emitter::add(Op op, Shape shape, std::vector<NodeId> operands, Attributes attributes) {
  return builder_.add(made(op, std::move(shape), std::move(operands), std::move(attributes)));
}

NodeId Emitter::add_as_source(Op op, Shape shape, std::vector<NodeId> operands, Attributes attributes) {
  Node node = made(op, std::move(shape), std::move(operands), std::move(attributes));
  node.name = source_.name;
  return builder_.add_reserved(std::move(node));
}

NodeId Emitter::compare(Comparison how, NodeId a, NodeId b) {
  Attributes attributes;
  attributes.comparison = how;
  return add(Op::kCompare, Shape::array(DType::kPred, shape(a).dims), {a, b}, attributes);
}

NodeId Emitter::convert(NodeId a, DType type) {
  return shape(a).dtype == type ? a : add(Op::kConvert, Shape::array(type, shape(a).dims), {a});
}

NodeId Emitter::reshape(NodeId a, std::vector<std::int64_t> dims) {
  return shape(a).dims == dims ? a : add(Op::kReshape, Shape::array(shape(a).dtype, std::move(dims)), {a});
}

NodeId Emitter::broadcast(NodeId a, std::vector<std::int64_t> dims, std::vector<std::int64_t> at) {
  Attributes attributes;
  attributes.dimensions = std::move(at);
  return add(Op::kBroadcast, Shape::array(shape(a).dtype, std::move(dims)), {a}, attributes);
}

NodeId Emitter::slice(NodeId a, std::size_t dim, SliceSpec part, bool as_source) {
  Shape to = Shape::array(shape(a).dtype, shape(a).dims);
  if (!as_source && part == SliceSpec{0, to.dims[dim], 1}) return a;
  Attributes attributes;
  for (const std::int64_t extent : to.dims) attributes.slice.push_back({0, extent, 1});
  attributes.slice[dim] = part;
  to.dims[dim] = (part.limit - part.start + part.stride - 1) / part.stride;
  return as_source ? add_as_source(Op::kSlice, to, {a}, attributes) : add(Op::kSlice, to, {a}, attributes);
}

NodeId Emitter::pad(NodeId a, NodeId value, std::size_t dim, PadSpec by) {
  if (by == PadSpec{}) return a;
  Shape to = Shape::array(shape(a).dtype, shape(a).dims);
  Attributes attributes;
  attributes.padding.resize(to.dims.size());
  attributes.padding[dim] = by;
  to.dims[dim] += by.low + by.high + std::max<std::int64_t>(0, to.dims[dim] - 1) * by.interior;
  return add(Op::kPad, to, {a, value}, attributes);
}

NodeId Emitter::scalar(DType type, double value) {
  Literal literal = Literal::zeros(Shape::array(type, {}));
  literal.set_double(0, value);
  Attributes attributes;
  attributes.literal = std::make_shared<const Literal>(std::move(literal));
  return add(Op::kConstant, Shape::array(type, {}), {}, attributes);
}

NodeId Emitter::fill(const Shape& shape, double value) {
  const NodeId one = scalar(shape.dtype, value);
  return shape.dims.empty() ? one : broadcast(one, shape.dims, {});
}

namespace {

bool is_batch_norm(Op op) {
  return op == Op::kBatchNormTraining || op == Op::kBatchNormInference || op == Op::kBatchNormGrad;
}

/// Custom calls that say where or how an array is kept, not what is in it.
bool is_marker(const Node& node, const Shape& operand) {
  constexpr std::array<std::string_view, 9> kTargets = {"Sharding",
                                                        "SPMDFullToShardShape",
                                                        "SPMDShardToFullShape",
                                                        "LayoutConstraint",
                                                        "annotate_device_placement",
                                                        "MoveToHost",
                                                        "MoveToDevice",
                                                        "PinToDevice",
                                                        "xla.sdy.FuncResultSharding"};
  if (node.op == Op::kDomain) return true;
  if (node.op != Op::kCustomCall || node.operands.size() != 1 || !node.shape.compatible(operand))
    return false;
  return std::ranges::find(kTargets, custom_call_target(node)) != kTargets.end();
}

/// The call by which XLA's CPU and GPU pipelines spell topk: always of the largest.
bool is_top_k_call(const Node& node) {
  return node.op == Op::kCustomCall && custom_call_target(node) == "TopK" && node.operands.size() == 1 &&
         node.shape.is_tuple && node.shape.elements.size() == 2 && !node.shape.elements[0].dims.empty();
}

/// Sums of the element types that batch normalisations need; they come before all other computations.
using Adders = std::map<DType, ComputationId>;

Computation adder(DType type, const std::string& name) {
  ComputationBuilder builder(name);
  Node node;
  node.op = Op::kParameter;
  node.shape = Shape::array(type, {});
  for (int i = 0; i < 2; ++i) {
    node.name = i == 0 ? "a" : "b";
    node.attrs.parameter_number = i;
    builder.add(node);
  }
  Node sum;
  sum.op = Op::kAdd;
  sum.name = "sum";
  sum.shape = node.shape;
  sum.operands = {0, 1};
  const NodeId root = builder.add(sum);
  return std::move(builder).finish(root);
}

class Expander {
 public:
  Expander(const Graph& graph, const Computation& computation, const Adders& adders, OpTrace* trace)
      : graph_(graph),
        computation_(computation),
        adders_(adders),
        trace_(trace),
        builder_(computation.name) {}

  Computation run() {
    for (const Node& node : computation_.nodes) builder_.reserve(node.name);
    std::vector<NodeId> first, place;
    for (const Node& node : computation_.nodes) {
      first.push_back(builder_.peek().size());
      std::vector<NodeId> operands;
      for (const NodeId operand : node.operands) operands.push_back(place[static_cast<std::size_t>(operand)]);
      if (const std::optional<NodeId> written = expanded(node, operands)) {
        place.push_back(*written);
        if (trace_ != nullptr) tell(node, first.back(), *written);
      } else {
        Node copy = node;
        copy.operands = std::move(operands);
        place.push_back(builder_.add_reserved(std::move(copy)));
      }
    }
    first.push_back(builder_.peek().size());
    Computation result = std::move(builder_).finish(place[static_cast<std::size_t>(computation_.root)]);
    result.attributes = computation_.attributes;
    result.imported = moved(computation_.imported, first, place);
    return result;
  }

 private:
  void tell(const Node& node, NodeId first, NodeId value) {
    const Computation& built = builder_.peek();
    std::vector<OpName> into;
    for (NodeId id = first; id < built.size(); ++id)
      if (id != value) into.push_back({computation_.name, built.node(id).name});
    into.push_back({computation_.name, built.node(value).name});
    trace_->add(OpChange::kRewritten, {computation_.name, node.name}, std::move(into));
  }

  NodeId top_k(const Node& node, const std::vector<NodeId>& operands) {
    Node call = node;
    call.op = Op::kTopK;
    call.operands = operands;
    call.attrs = {};
    call.attrs.other = {{"k", fmt::to_string(node.shape.elements[0].dims.back())}, {"largest", "true"}};
    return builder_.add_reserved(std::move(call));
  }

  std::optional<NodeId> expanded(const Node& node, const std::vector<NodeId>& operands) {
    Emitter emit(builder_, node);
    if (const auto wider = expand_small(emit, node, operands)) return wider;
    const Shape* from = operands.empty() ? nullptr : &builder_.peek().node(operands[0]).shape;
    switch (node.op) {
      case Op::kBitcast:
        // As the operand lay: what was written for it may have no layout of its own.
        if (const Shape& lay = computation_.node(node.operands[0]).shape; expands_bitcast(node, lay))
          return expand_bitcast(emit, node, operands[0], lay);
        return std::nullopt;
      case Op::kBitcastConvert:
        if (!expands_bitcast_convert(node, *from)) return std::nullopt;
        return expand_bitcast_convert(emit, node, operands[0]);
      case Op::kMap:
        if (!is_elementwise_on_scalars(graph_.computation(applied(node)))) return std::nullopt;
        return apply_to_arrays(emit, graph_.computation(applied(node)), node.shape.dims, operands, true);
      case Op::kCustomCall:
        if (is_top_k_call(node)) return top_k(node, operands);
        if (only_acts(node)) {
          const bool token = !node.shape.is_tuple;
          return emit.add(token ? Op::kAfterAll : Op::kTuple, node.shape, {});
        }
        [[fallthrough]];
      case Op::kDomain:
        return from != nullptr && is_marker(node, *from) ? std::optional(operands[0]) : std::nullopt;
      case Op::kReduce:
        return expand_reduce(emit, graph_, node, operands);
      case Op::kReduceWindow:
        return expand_reduce_window(emit, graph_, node, operands);
      case Op::kBatchNormTraining:
      case Op::kBatchNormInference:
      case Op::kBatchNormGrad:
        if (!is_executable(from->dtype)) return std::nullopt;
        return expand_batch_norm(emit, node, operands, adders_.at(from->dtype));
      default:
        if (const auto alone = expand_collective(emit, graph_, node, operands)) return alone;
        return expand_function(emit, node, operands);
    }
  }

  const Graph& graph_;
  const Computation& computation_;
  const Adders& adders_;
  OpTrace* trace_;
  ComputationBuilder builder_;
};

/// Puts the sums in front and returns where they are.
Adders add_adders(Graph& graph) {
  Adders adders;
  for (const Computation& computation : graph.computations)
    for (const Node& node : computation.nodes)
      if (is_batch_norm(node.op) && is_executable(computation.node(node.operands[0]).shape.dtype))
        adders.emplace(computation.node(node.operands[0]).shape.dtype, 0);
  if (adders.empty()) return adders;
  const auto taken = [&](const std::string& name) {
    return std::ranges::find(graph.computations, name, &Computation::name) != graph.computations.end();
  };
  std::vector<Computation> computations;
  for (auto& [type, id] : adders) {
    std::string called = fmt::format("sum_{}", name(type));
    while (taken(called)) called += "_";
    id = static_cast<ComputationId>(computations.size());
    computations.push_back(adder(type, called));
  }
  const auto shift = static_cast<ComputationId>(computations.size());
  for (Computation& computation : graph.computations) {
    for (Node& node : computation.nodes)
      for (ComputationId& callee : node.attrs.computations) callee += shift;
    computations.push_back(std::move(computation));
  }
  graph.computations = std::move(computations);
  graph.entry += shift;
  return adders;
}

}  // namespace

Graph expand(const Graph& graph, OpTrace* trace) {
  Graph from = graph;
  const Adders adders = add_adders(from);
  Graph result = head_of(from);
  for (const Computation& computation : from.computations)
    result.computations.push_back(Expander(from, computation, adders, trace).run());
  return result;
}

}  // namespace stitchwork
