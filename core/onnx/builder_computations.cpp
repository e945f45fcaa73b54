// Computations that the builder makes: scopes, loops, branches, reducers.
#include <map>
#include <unordered_set>
#include <utility>

#include "core/base/error.h"
#include "core/onnx/builder.h"

namespace stitchwork::onnx_reader {
namespace {

/// `flat` with one tuple for a parameter: flat parameter i is its element `place[i]`. `passed` elements
/// follow the results in the root unless the root stays as it is.
Computation with_tuple_parameter(Computation flat, const Shape& tuple, const std::vector<std::int64_t>& place,
                                 const std::vector<std::int64_t>& passed, bool keep_root) {
  ComputationBuilder builder(flat.name);
  Node parameter = op_node(Op::kParameter);
  parameter.name = "state";
  parameter.shape = tuple;
  parameter.attrs.parameter_number = 0;
  const NodeId state = builder.add(std::move(parameter));
  std::map<std::int64_t, NodeId> taken;
  const auto take = [&](std::int64_t i) {
    const auto found = taken.find(i);
    if (found != taken.end()) return found->second;
    Node get = op_node(Op::kGetTupleElement);
    get.shape = tuple.elements[static_cast<std::size_t>(i)];
    get.operands = {state};
    get.attrs.tuple_index = i;
    return taken[i] = builder.add(std::move(get));
  };
  std::vector<NodeId> moved;
  for (Node& node : flat.nodes) {
    if (node.op == Op::kParameter) {
      moved.push_back(take(place[static_cast<std::size_t>(node.attrs.parameter_number)]));
      continue;
    }
    if (node.id == flat.root && !keep_root) {
      moved.push_back(kNoNode);  // the tuple of the results, built anew below
      continue;
    }
    for (NodeId& operand : node.operands) operand = moved[static_cast<std::size_t>(operand)];
    moved.push_back(builder.add(std::move(node)));
  }
  if (keep_root) return std::move(builder).finish(moved[static_cast<std::size_t>(flat.root)]);
  Node root = op_node(Op::kTuple);
  for (const NodeId operand : flat.node(flat.root).operands)
    root.operands.push_back(moved[static_cast<std::size_t>(operand)]);
  for (const std::int64_t i : passed) root.operands.push_back(take(i));
  std::vector<Shape> shapes;
  for (const NodeId operand : root.operands) shapes.push_back(builder.peek().node(operand).shape);
  root.shape = Shape::tuple(std::move(shapes));
  const NodeId last = builder.add(std::move(root));
  return std::move(builder).finish(last);
}

}  // namespace

void Builder::open_scope(const std::string& name, bool may_capture) {
  if (scopes_.size() >= 64) throw Error("computations are nested more than 64 deep");
  scopes_.push_back({ComputationBuilder(unique_computation_name(name)), next_scope_++, may_capture});
}

std::string Builder::unique_computation_name(const std::string& name) {
  std::string unique = name;
  for (int i = 1; !computation_names_.insert(unique).second; ++i) unique = fmt::format("{}.{}", name, i);
  return unique;
}

Computation Builder::close_scope(const std::vector<Value>& results, bool always_tuple) {
  const std::size_t depth = scopes_.size() - 1;
  std::vector<NodeId> roots;
  for (const Value& result : results) roots.push_back(node_of(result, depth));
  NodeId root = roots.size() == 1 ? roots[0] : kNoNode;
  if (always_tuple || root == kNoNode) {
    Node tuple = op_node(Op::kTuple);
    std::vector<Shape> shapes;
    for (const Value& result : results) shapes.push_back(result.shape);
    tuple.shape = Shape::tuple(std::move(shapes));
    tuple.operands = roots;
    root = scope().nodes.add(std::move(tuple));
  }
  Computation computation = std::move(scope().nodes).finish(root);
  std::unordered_set<std::string> taken;
  for (const Node& node : computation.nodes) taken.insert(node.name);
  for (const auto& [id, name] : scope().renames)
    if (taken.insert(name).second) computation.nodes[static_cast<std::size_t>(id)].name = name;
  scopes_.pop_back();
  return computation;
}

Builder::Flat Builder::flat_computation(const std::string& name, const std::vector<Shape>& parameters,
                                        const Body& body, bool may_capture, bool always_tuple) {
  open_scope(name, may_capture);
  std::vector<Value> arguments;
  for (const Shape& shape : parameters) arguments.push_back(parameter("p", shape));
  const std::vector<Value> results = body(arguments);
  // Results may capture too.
  for (const Value& result : results) node_of(result, scopes_.size() - 1);
  std::vector<Value> captures = scope().captures;
  return {close_scope(results, always_tuple), std::move(captures)};
}

ComputationId Builder::add_computation(Computation computation) {
  graph_.computations.push_back(std::move(computation));
  return static_cast<ComputationId>(graph_.computations.size()) - 1;
}

ComputationId Builder::computation(const std::string& name, const std::vector<Shape>& parameters,
                                   const Body& body) {
  return add_computation(flat_computation(name, parameters, body, false, false).computation);
}

std::vector<Value> Builder::while_loop(const std::vector<Value>& state,
                                       const std::function<Value(const std::vector<Value>&)>& condition,
                                       const Body& body) {
  std::vector<Shape> shapes;
  for (const Value& value : state) shapes.push_back(value.shape);
  Flat test = flat_computation(
      "condition", shapes, [&](const std::vector<Value>& p) { return std::vector{condition(p)}; }, true,
      false);
  Flat step = flat_computation("body", shapes, body, true, true);
  // The loop's tuple: the state, then what either computation captures.
  std::vector<Value> all = state;
  std::vector<std::int64_t> places[2], passed;
  const Flat* const parts[2] = {&test, &step};
  for (int part = 0; part < 2; ++part) {
    for (std::size_t i = 0; i < state.size(); ++i) places[part].push_back(static_cast<std::int64_t>(i));
    for (const Value& captured : parts[part]->captures) {
      std::size_t at = state.size();
      while (at < all.size() && (all[at].node != captured.node || all[at].scope != captured.scope)) ++at;
      if (at == all.size()) all.push_back(captured);
      places[part].push_back(static_cast<std::int64_t>(at));
    }
  }
  std::vector<Shape> all_shapes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all_shapes.push_back(all[i].shape);
    if (i >= state.size()) passed.push_back(static_cast<std::int64_t>(i));
  }
  const Shape tuple_shape = Shape::tuple(all_shapes);
  Node loop = op_node(Op::kWhile);
  loop.attrs.computations.push_back(
      add_computation(with_tuple_parameter(std::move(test.computation), tuple_shape, places[0], {}, true)));
  loop.attrs.computations.push_back(add_computation(
      with_tuple_parameter(std::move(step.computation), tuple_shape, places[1], passed, false)));
  Node tuple = op_node(Op::kTuple);
  std::vector<Value> results = emit_tuple(std::move(loop), {emit(std::move(tuple), all)});
  results.resize(state.size());
  return results;
}

std::vector<Value> Builder::conditional(const Value& predicate,
                                        const std::function<std::vector<Value>()>& if_true,
                                        const std::function<std::vector<Value>()>& if_false) {
  Node node = op_node(Op::kConditional);
  std::vector<Value> operands{predicate};
  for (const auto* branch : {&if_true, &if_false}) {
    Flat flat = flat_computation(
        "branch", {}, [&](const std::vector<Value>&) { return (*branch)(); }, true, true);
    std::vector<Shape> shapes;
    std::vector<std::int64_t> places;
    for (const Value& captured : flat.captures) {
      places.push_back(static_cast<std::int64_t>(shapes.size()));
      shapes.push_back(captured.shape);
    }
    node.attrs.computations.push_back(add_computation(
        with_tuple_parameter(std::move(flat.computation), Shape::tuple(shapes), places, {}, true)));
    operands.push_back(emit(op_node(Op::kTuple), flat.captures));
  }
  return emit_tuple(std::move(node), operands);
}

ComputationId Builder::reducer(Op op, DType dtype) {
  const auto found = reducers_.find({op, dtype});
  if (found != reducers_.end()) return found->second;
  const Shape scalar_shape = Shape::array(dtype, {});
  const std::string label = std::exchange(label_, {});
  const Metadata metadata = std::exchange(metadata_, {});
  const ComputationId id =
      computation(fmt::format("{}_{}", def(op).name, name(dtype)), {scalar_shape, scalar_shape},
                  [&](const std::vector<Value>& p) { return std::vector{binary(op, p[0], p[1])}; });
  set_origin(label, metadata);
  return reducers_[{op, dtype}] = id;
}

}  // namespace stitchwork::onnx_reader
