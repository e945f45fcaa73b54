#include "core/substitute/view.h"

#include <algorithm>

namespace stitchwork::rewriting {

View::View(const Graph& graph, ComputationId computation)
    : graph_(&graph),
      computation_(&graph.computation(computation)),
      id_(computation),
      readers_(computation_->users()) {}

bool View::only_read_by(NodeId value, NodeId reader) const {
  if (value == computation_->root) return false;
  const std::vector<NodeId>& all = readers(value);
  return all.size() == 1 && all[0] == reader && std::ranges::count(node(reader).operands, value) == 1;
}

bool View::descends(NodeId node, NodeId from) const {
  std::vector<bool> seen(static_cast<std::size_t>(std::max(node, from)) + 1, false);
  std::vector<NodeId> open{node};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (id == from) return true;
    if (id < from || seen[static_cast<std::size_t>(id)]) continue;  // operands come first
    seen[static_cast<std::size_t>(id)] = true;
    for (const NodeId operand : this->node(id).operands) open.push_back(operand);
  }
  return false;
}

bool only_moves(const Node& node, const Shape& operand) {
  switch (node.op) {
    case Op::kBroadcast:
    case Op::kReshape:
    case Op::kTranspose:
    case Op::kSlice:
    case Op::kReverse:
    case Op::kCopy:
      return !node.shape.is_tuple;
    case Op::kBitcast:
      return !node.shape.is_tuple && node.shape.dtype == operand.dtype;
    default:
      return false;
  }
}

std::vector<Source> View::sources(NodeId value) const {
  std::vector<Source> result{{value, simplify(IndexMap::identity(node(value).shape.dims))}};
  for (;;) {
    const Node& last = node(result.back().node);
    if (last.operands.empty() || !only_moves(last, operand(last, 0).shape)) return result;
    const std::optional<IndexMap> edge = operand_map(*computation_, last.id, 0);
    if (!edge) return result;
    result.push_back({last.operands[0], compose(result.back().map, *edge)});
  }
}

std::optional<std::vector<int>> spread_axes(const IndexMap& map, const std::vector<std::int64_t>& from) {
  if (!map.constraints.empty() || !map.runtime.empty() || !map.symbols.empty()) return std::nullopt;
  std::vector<int> axes;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) {
      axes.push_back(-1);
      continue;
    }
    const std::optional<int> dim = map.results[i].as_dim();
    if (!dim || map.dims[static_cast<std::size_t>(*dim)] != from[i] || std::ranges::count(axes, *dim) != 0)
      return std::nullopt;
    axes.push_back(*dim);
  }
  return axes;
}

std::vector<Spread> View::spreads(NodeId value) const {
  Spread itself{value, {}};
  for (const std::int64_t extent : node(value).shape.dims)
    itself.axes.push_back(extent == 1 ? -1 : static_cast<int>(itself.axes.size()));
  std::vector<Spread> result{std::move(itself)};
  for (const Source& source : sources(value)) {
    if (source.node == value) continue;
    if (std::optional<std::vector<int>> axes = spread_axes(source.map, node(source.node).shape.dims))
      result.push_back({source.node, std::move(*axes)});
  }
  return result;
}

const Literal* View::uniform(NodeId value) const {
  const Node* last = &node(value);
  while (!last->operands.empty() && only_moves(*last, operand(*last, 0).shape)) last = &operand(*last, 0);
  if (last->op != Op::kConstant || !last->attrs.literal || last->shape.is_tuple ||
      last->shape.elements_count() != 1 || !is_executable(last->shape.dtype))
    return nullptr;
  return last->attrs.literal.get();
}

bool View::is_number(NodeId value, double number) const {
  const Literal* literal = uniform(value);
  return literal != nullptr && literal->get_double(0) == number;
}

DotLabels View::labels(const Node& dot) const {
  const DotDims dims = dot.attrs.dot.value_or(DotDims{});
  DotLabels result;
  result.batch = static_cast<int>(dims.lhs_batch.size());
  int next = result.batch;
  const int first_contracted = dot.shape.rank();
  const auto operand_labels = [&](std::size_t side, const auto& batch, const auto& contracting) {
    std::vector<int> labels(static_cast<std::size_t>(operand(dot, side).shape.rank()), -1);
    for (std::size_t i = 0; i < batch.size(); ++i)
      labels[static_cast<std::size_t>(batch[i])] = static_cast<int>(i);
    for (std::size_t i = 0; i < contracting.size(); ++i)
      labels[static_cast<std::size_t>(contracting[i])] = first_contracted + static_cast<int>(i);
    for (int& label : labels)
      if (label < 0) label = next++;
    return labels;
  };
  result.lhs = operand_labels(0, dims.lhs_batch, dims.lhs_contracting);
  result.rhs = operand_labels(1, dims.rhs_batch, dims.rhs_contracting);
  for (int i = 0; i < first_contracted; ++i) result.out.push_back(i);
  for (std::size_t i = 0; i < dims.lhs_contracting.size(); ++i)
    result.contracted.push_back(first_contracted + static_cast<int>(i));
  return result;
}

bool same_array(const Shape& a, const Shape& b) {
  return !a.is_tuple && a.compatible(b) && physical_order(a) == physical_order(b);
}

bool is_real(DType type) {
  return type == DType::kF16 || type == DType::kBF16 || type == DType::kF32 || type == DType::kF64;
}

std::optional<Op> plain_reducer(const View& view, const Node& node) {
  if (node.op != Op::kReduce || node.operands.size() != 2 || node.shape.is_tuple) return std::nullopt;
  const DType type = node.shape.dtype;
  if (!is_executable(type) || view.operand(node, 0).shape.dtype != type ||
      view.operand(node, 1).shape.dtype != type)
    return std::nullopt;
  return simple_reducer(view.graph(), applied(node));
}

bool is_sum(const View& view, const Node& node) {
  return plain_reducer(view, node) == Op::kAdd && is_real(node.shape.dtype) &&
         view.is_number(node.operands[1], 0);
}

namespace {

/// The largest value of a type, or the smallest.
bool is_extreme(const Literal& literal, bool largest) {
  const DType type = literal.shape.dtype;
  return (is_real(type) || is_integral(type) || type == DType::kPred) &&
         literal.bytes == extreme(type, largest).bytes;
}

}  // namespace

bool is_identity_of(const View& view, Op op, NodeId value) {
  const Literal* literal = view.uniform(value);
  if (literal == nullptr) return false;
  const DType type = literal->shape.dtype;
  switch (op) {
    case Op::kMaximum:
      return is_extreme(*literal, false);
    case Op::kMinimum:
      return is_extreme(*literal, true);
    case Op::kAdd:
      if (type == DType::kPred) return literal->get_int(0) == 0;
      return is_integral(type) ? literal->get_int(0) == 0 : is_real(type) && literal->get_double(0) == 0;
    case Op::kMultiply:
      return is_integral(type) || type == DType::kPred ? literal->get_int(0) == 1
                                                       : is_real(type) && literal->get_double(0) == 1;
    case Op::kOr:
    case Op::kXor:
      return !is_floating(type) && literal->get_int(0) == 0;
    case Op::kAnd:
      return type == DType::kPred
                 ? literal->get_int(0) != 0
                 : is_integral(type) &&
                       std::ranges::all_of(literal->bytes, [](std::byte b) { return b == std::byte{0xff}; });
    default:
      return false;
  }
}

}  // namespace stitchwork::rewriting
