// The frame of the builder: scopes, folding, computations.
#include "core/onnx/builder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"

namespace stitchwork::onnx_reader {
namespace {

/// Bounds of what is computed while reading. Shape arithmetic, masks and small tables stay far below them; a
/// model whose constants need more keeps the ops in its graph.
constexpr std::int64_t kFoldBytes = std::int64_t{16} << 20;        // one value
constexpr std::int64_t kFoldBytesTotal = std::int64_t{256} << 20;  // all of them
constexpr double kFoldWork = 1 << 26;                              // element operations of one op
constexpr double kFoldWorkTotal = 1 << 28;
/// Known values of more elements stay in the graph as the ops that compute them.
constexpr std::int64_t kLargestDenseConstant = 1024;
constexpr int kLongestRecipe = 1000;
/// Ops a model may become: functions and loops expand, possibly exponentially.
constexpr std::int64_t kMaxNodes = std::int64_t{1} << 20;

double elements(const Shape& shape) {
  if (!shape.is_tuple) return static_cast<double>(shape.elements_count());
  double total = 0;
  for (const Shape& element : shape.elements) total += elements(element);
  return total;
}

double positions_per_window(const std::vector<WindowDim>& window) {
  double taps = 1;
  for (const WindowDim& dim : window) taps *= static_cast<double>(dim.size);
  return taps;
}

/// Order of magnitude of the element operations the evaluator spends.
double work_of(const Node& node, const std::vector<Value>& operands) {
  const double out = elements(node.shape);
  double in = 0;
  for (const Value& operand : operands) in += elements(operand.shape);
  switch (node.op) {
    case Op::kReduceWindow:
      return std::max(out, 1.0) * positions_per_window(window_of(node, operands[0].rank()));
    case Op::kDot: {
      double contracted = 1;
      for (const std::int64_t d : node.attrs.dot->lhs_contracting)
        contracted *= static_cast<double>(operands[0].dim(d));
      return in + out * contracted;
    }
    case Op::kConvolution:
      return in + out * elements(operands[1].shape);
    case Op::kSort:
      return in * 1000;  // every comparison applies a computation
    case Op::kReduce:
    case Op::kScatter:
      return in * (operands.size() > 2 ? 100 : 1);
    default:
      return in + out;
  }
}

void check_size(const Shape& shape) {
  for (const Shape& element : shape.elements) check_size(element);
  std::int64_t room = kMaxElements;
  for (const std::int64_t extent : shape.dims) {
    if (extent > room)
      throw Error(fmt::format("an array of dimensions [{}] is beyond {} elements", fmt::join(shape.dims, ","),
                              kMaxElements));
    room /= std::max<std::int64_t>(extent, 1);
  }
}

bool executable(const Shape& shape) {
  if (!shape.is_tuple) return is_executable(shape.dtype);
  return std::ranges::all_of(shape.elements, executable);
}

/// One element if all are equal, bit by bit: a constant of many is then a broadcast.
std::optional<Literal> uniform(const Literal& literal) {
  const std::int64_t count = literal.shape.elements_count();
  const auto width = static_cast<std::size_t>(byte_size(literal.shape.dtype));
  if (count < 2 || width == 0) return std::nullopt;
  const std::byte* bytes = literal.bytes.data();
  if (std::memcmp(bytes, bytes + width, literal.bytes.size() - width) != 0) return std::nullopt;
  Literal one = Literal::zeros(Shape::array(literal.shape.dtype, {}));
  std::copy_n(bytes, width, one.bytes.begin());
  return one;
}

std::string dependence(const std::vector<Value>& operands) {
  for (const Value& operand : operands)
    if (!operand.depends_on.empty()) return operand.depends_on;
  return {};
}

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

std::int64_t product(const Dims& dims) {
  std::int64_t result = 1;
  for (const std::int64_t extent : dims) result *= extent;
  return result;
}

Dims broadcast_dims(const Dims& a, const Dims& b) {
  Dims result(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw Error(fmt::format("shapes [{}] and [{}] do not broadcast", fmt::join(a, ","), fmt::join(b, ",")));
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

Builder::Builder(std::string source)
    : work_left_(kFoldWorkTotal), bytes_left_(kFoldBytesTotal), nodes_left_(kMaxNodes) {
  graph_.source = std::move(source);
  open_scope("main", false);
}

void Builder::set_origin(std::string label, Metadata metadata) {
  label_ = std::move(label);
  metadata_ = std::move(metadata);
}

void Builder::name_result(const Value& value) {
  Scope& current = scope();
  if (value.node == kNoNode || value.scope != current.id || label_.empty()) return;
  const Node& node = current.nodes.peek().node(value.node);
  if (node.op == Op::kParameter || !node.name.starts_with(label_ + ".")) return;
  if (std::ranges::any_of(current.renames, [&](const auto& rename) { return rename.first == value.node; }))
    return;
  if (current.labels.insert(label_).second) current.renames.emplace_back(value.node, label_);
}

Value Builder::parameter(const std::string& name, const Shape& shape) {
  check_size(shape);
  Node node = op_node(Op::kParameter);
  node.name = name;
  node.shape = shape;
  node.attrs.parameter_number = scope().parameters++;
  Value value;
  value.kind = Value::Kind::kArray;
  value.shape = shape;
  value.scope = scope().id;
  value.node = scope().nodes.add(std::move(node));
  scope().labels.insert(scope().nodes.peek().node(value.node).name);
  return value;
}

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

NodeId Builder::constant_node(const Value& value, std::size_t depth) {
  const std::shared_ptr<const Literal>& literal = value.constant;
  const auto found = scopes_[depth].constants.find(literal.get());
  if (found != scopes_[depth].constants.end()) return found->second;
  Node node = op_node(Op::kConstant);
  NodeId id = kNoNode;
  if (std::optional<Literal> one = uniform(*literal)) {
    Node spread = op_node(Op::kBroadcast);
    spread.shape = literal->shape;
    node.shape = one->shape;
    node.attrs.literal = std::make_shared<const Literal>(std::move(*one));
    spread.operands = {add_node(std::move(node), depth)};
    id = add_node(std::move(spread), depth);
  } else if (value.recipe && (value.recipe->node.op == Op::kIota ||
                              literal->shape.elements_count() > kLargestDenseConstant)) {
    node = value.recipe->node;
    for (const Value& operand : value.recipe->operands)
      node.operands.push_back(constant_node(operand, depth));
    id = add_node(std::move(node), depth);
  } else {
    node.shape = literal->shape;
    node.attrs.literal = literal;
    id = add_node(std::move(node), depth);
  }
  scopes_[depth].constants.emplace(literal.get(), id);
  scopes_[depth].kept.push_back(literal);
  return id;
}

NodeId Builder::node_of(const Value& value, std::size_t depth) {
  SW_CHECK(value.kind == Value::Kind::kArray, "a sequence or an absent value is no operand");
  if (value.known()) return constant_node(value, depth);
  Scope& current = scopes_[depth];
  if (value.scope == current.id) return value.node;
  const auto found = current.captured.find({value.scope, value.node});
  if (found != current.captured.end()) return found->second;
  SW_CHECK(depth > 0 && current.may_capture, "a value of another computation is used");
  node_of(value, depth - 1);  // captured there too, if it comes from further out
  Node node = op_node(Op::kParameter);
  node.name = "outer";
  node.shape = value.shape;
  node.attrs.parameter_number = current.parameters++;
  const NodeId id = current.nodes.add(std::move(node));
  current.captured[{value.scope, value.node}] = id;
  current.captures.push_back(value);
  return id;
}

/// Name and metadata of the ONNX node it comes from, if it has none yet.
void Builder::describe(Node& node) const {
  if (!node.name.empty()) return;
  node.name =
      label_.empty() ? std::string(def(node.op).name) : fmt::format("{}.{}", label_, def(node.op).name);
  node.metadata = metadata_;
}

NodeId Builder::add_node(Node node, std::size_t depth) {
  if (--nodes_left_ < 0)
    throw Error(fmt::format("the model becomes more than {} operations", kMaxNodes),
                "its functions or loops expand too far");
  describe(node);
  return scopes_[depth].nodes.add(std::move(node));
}

bool Builder::may_fold(const Node& node, const std::vector<Value>& operands) {
  if (node.op == Op::kTuple || !def(node.op).name.size() || !executable(node.shape)) return false;
  if (node.op == Op::kWhile || node.op == Op::kConditional) return false;
  for (const Value& operand : operands)
    if (!operand.known() || !executable(operand.shape)) return false;
  const double work = work_of(node, operands);
  const std::int64_t bytes = node.shape.byte_size();
  if (bytes > kFoldBytes || work > kFoldWork || work > work_left_ || bytes > bytes_left_) return false;
  work_left_ -= work;
  bytes_left_ -= bytes;
  return true;
}

Value Builder::known(Literal literal) {
  Value value;
  value.kind = Value::Kind::kArray;
  value.shape = literal.shape;
  value.constant = std::make_shared<const Literal>(std::move(literal));
  return value;
}

Value Builder::folded(Node node, const std::vector<Value>& operands) {
  std::vector<const Literal*> literals;
  for (const Value& operand : operands) literals.push_back(operand.constant.get());
  Value value = known(evaluate_node(graph_, Computation{}, node, literals));
  int depth = 0;
  for (const Value& operand : operands)
    if (operand.recipe) depth = std::max(depth, operand.recipe->depth + 1);
  describe(node);
  if (depth < kLongestRecipe)
    value.recipe = std::make_shared<const Recipe>(Recipe{std::move(node), operands, depth});
  return value;
}

Value Builder::emit(Node node, const std::vector<Value>& operands) {
  check_size(node.shape);  // before inference multiplies its dimensions
  std::vector<const Shape*> shapes;
  for (const Value& operand : operands) shapes.push_back(&operand.shape);
  node.shape = infer_shape(graph_, node, shapes);
  check_size(node.shape);
  if (may_fold(node, operands)) return folded(std::move(node), operands);
  Value value;
  value.kind = Value::Kind::kArray;
  value.shape = node.shape;
  value.scope = scope().id;
  value.depends_on = dependence(operands);
  for (const Value& operand : operands) node.operands.push_back(node_of(operand, scopes_.size() - 1));
  value.node = add_node(std::move(node), scopes_.size() - 1);
  return value;
}

std::vector<Value> Builder::emit_tuple(Node node, const std::vector<Value>& operands) {
  const Value whole = emit(std::move(node), operands);
  if (!whole.shape.is_tuple) return {whole};
  std::vector<Value> results;
  for (std::size_t i = 0; i < whole.shape.elements.size(); ++i) {
    if (whole.known()) {
      results.push_back(known(whole.constant->elements[i]));
      continue;
    }
    Node get = op_node(Op::kGetTupleElement);
    get.attrs.tuple_index = static_cast<std::int64_t>(i);
    results.push_back(emit(std::move(get), {whole}));
  }
  return results;
}

Graph Builder::finish(std::string name, const std::vector<Value>& results) && {
  set_origin({}, {});
  Computation entry = close_scope(results, false);
  graph_.name = std::move(name);
  graph_.entry = add_computation(std::move(entry));
  return std::move(graph_);
}

}  // namespace stitchwork::onnx_reader
