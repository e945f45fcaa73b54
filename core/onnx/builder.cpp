// The frame of the builder: names, nodes, folding.
#include "core/onnx/builder.h"

#include <algorithm>
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
