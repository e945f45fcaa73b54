#include "analysis/facts/value_numbers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/base/at.h"
#include "core/evaluate/evaluator.h"
#include "core/hlo/hlo_attributes.h"

namespace stitchwork {
namespace {

/// Attributes that say how an op is carried out, not what it computes.
bool decides_no_value(const std::string& attribute) {
  return attribute == "backend_config" || attribute == "frontend_attributes" || attribute == "sharding" ||
         attribute == "statistics" || attribute == "origin";
}

std::string values_text(const Node& node) {
  if (std::ranges::none_of(node.attrs.other, [](const auto& a) { return decides_no_value(a.first); }))
    return plain_attributes_text(node);
  Node plain = node;
  std::erase_if(plain.attrs.other, [](const auto& a) { return decides_no_value(a.first); });
  return plain_attributes_text(plain);
}

void add_number(std::string& key, std::int64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void add_literal(std::string& key, const Literal& literal) {
  key.append(reinterpret_cast<const char*>(literal.bytes.data()), literal.bytes.size());
  for (const Literal& element : literal.elements) add_literal(key, element);
}

bool same_elements(const Node& node, const Node& operand) {
  return !node.shape.is_tuple && !operand.shape.is_tuple && node.shape.dtype == operand.shape.dtype &&
         node.shape.elements_count() == operand.shape.elements_count();
}

bool is_one_for_one(const Computation& computation, const Node& node) {
  const OpClass cls = def(node.op).cls;
  if (node.shape.is_tuple || node.operands.empty()) return false;
  if (cls != OpClass::kLightElementwise && cls != OpClass::kHeavyElementwise) return false;
  return std::ranges::all_of(
      node.operands, [&](NodeId operand) { return computation.node(operand).shape.dims == node.shape.dims; });
}

/// An array's dimensions without those of one element, which move nothing.
struct Squeezed {
  explicit Squeezed(const std::vector<std::int64_t>& dims) {
    for (const std::int64_t dim : dims) {
      places.push_back(dim == 1 ? -1 : static_cast<std::int64_t>(extents.size()));
      if (dim != 1) extents.push_back(dim);
    }
  }
  /// Those of `dims` that are left, by their new places.
  std::vector<std::int64_t> of(const std::vector<std::int64_t>& dims) const {
    std::vector<std::int64_t> result;
    for (const std::int64_t dim : dims)
      if (const std::int64_t place = places[static_cast<std::size_t>(dim)]; place >= 0)
        result.push_back(place);
    return result;
  }
  std::vector<std::int64_t> places, extents;
};

void add_numbers(std::string& key, const std::vector<std::int64_t>& numbers) {
  add_number(key, static_cast<std::int64_t>(numbers.size()));
  for (const std::int64_t number : numbers) add_number(key, number);
}

/// Without layouts.
Shape plain(const Shape& shape) {
  if (!shape.is_tuple) return Shape::array(shape.dtype, shape.dims);
  Shape result = shape;
  for (Shape& element : result.elements) element = plain(element);
  return result;
}

/// What hands arrays on whatever their shapes are: compilers leave dimensions of one element out of a loop's
/// state.
bool hands_on(Op op) {
  return op == Op::kParameter || op == Op::kTuple || op == Op::kGetTupleElement || op == Op::kWhile;
}

Shape squeezed(const Shape& shape) {
  if (!shape.is_tuple) return Shape::array(shape.dtype, Squeezed(shape.dims).extents);
  Shape result = shape;
  for (Shape& element : result.elements) element = squeezed(element);
  return result;
}

/// An op of whose one operand each element is one of the result's.
bool only_moves(const Node& node, const Node& operand) {
  const OpClass cls = def(node.op).cls;
  return (cls == OpClass::kBroadcast || cls == OpClass::kLayout) && !node.shape.is_tuple &&
         !operand.shape.is_tuple && node.shape.dtype == operand.shape.dtype;
}

/// Of an op that only moves elements of one operand: what tells its value apart from that, "" where nothing
/// does; nullopt: not of a kind that is looked through.
std::optional<std::string> moved_key(const Node& node, const Node& operand) {
  const Squeezed in(operand.shape.dims), out(node.shape.dims);
  std::string key;
  switch (node.op) {
    case Op::kReshape:
    case Op::kCopy:
    case Op::kBitcast:
      return same_elements(node, operand) ? std::optional<std::string>("") : std::nullopt;
    case Op::kTranspose: {
      const std::vector<std::int64_t> order = in.of(node.attrs.dimensions);
      if (std::ranges::is_sorted(order)) return "";
      key = "transpose";
      add_numbers(key, order);
      break;
    }
    case Op::kBroadcast:
      if (same_elements(node, operand)) return "";
      key = "broadcast";
      for (std::size_t i = 0; i < operand.shape.dims.size(); ++i)
        if (operand.shape.dims[i] != 1)
          add_number(key, out.places[static_cast<std::size_t>(node.attrs.dimensions[i])]);
      break;
    default:
      return std::nullopt;
  }
  add_numbers(key, in.extents);
  add_numbers(key, out.extents);
  return key;
}

}  // namespace

std::vector<int> ValueNumbers::of(const Graph& graph) {
  std::vector<int> numbers;
  of(graph, numbers, [](const Node&, int number) { return number; });
  return numbers;
}

void ValueNumbers::of(const Graph& graph, std::vector<int>& numbers,
                      const std::function<int(const Node&, int)>& decide) {
  const std::vector<int> callees = computations(graph);
  const Computation& entry = graph.entry_computation();
  numbers.clear();
  for (const Node& node : entry.nodes)
    numbers.push_back(decide(node, value(graph, entry, node, numbers, callees)));
}

/// Each by what it computes, reducers for example.
std::vector<int> ValueNumbers::computations(const Graph& graph) {
  std::vector<int> result;
  for (const Computation& computation : graph.computations) {
    std::string key = "computation";
    std::vector<int> numbers;
    for (const Node& node : computation.nodes)
      numbers.push_back(value(graph, computation, node, numbers, result));
    add_number(key, numbers[at(computation.root)]);
    result.push_back(number_of(std::move(key)));
  }
  return result;
}

int ValueNumbers::number_of(std::string key) {
  return numbers_.emplace(std::move(key), static_cast<int>(numbers_.size())).first->second;
}

/// The number of the operand that the op gives again; -1: of none.
int ValueNumbers::unchanged(const Node& node, const std::vector<int>& numbers) const {
  if (node.shape.is_tuple || node.operands.size() != 2) return -1;
  const bool adds = node.op == Op::kAdd || node.op == Op::kSubtract;
  if (!adds && node.op != Op::kMultiply && node.op != Op::kDivide) return -1;
  const auto is_neutral = [&](std::size_t operand) {
    const auto known = splats_.find(numbers[at(node.operands[operand])]);
    return known != splats_.end() && known->second->get_double(0) == (adds ? 0 : 1);
  };
  if (is_neutral(1)) return numbers[at(node.operands[0])];
  return def(node.op).commutative && is_neutral(0) ? numbers[at(node.operands[1])] : -1;
}

/// The one element of what is computed of such; nullptr: it is not.
std::shared_ptr<const Literal> ValueNumbers::folded(const Graph& graph, const Computation& computation,
                                                    const Node& node, const std::vector<int>& numbers) const {
  if (!is_one_for_one(computation, node) || node.shape.elements_count() != 1 ||
      !is_executable(node.shape.dtype))
    return nullptr;
  std::vector<Literal> operands;
  for (const NodeId operand : node.operands) {
    const auto known = splats_.find(numbers[at(operand)]);
    if (known == splats_.end()) return nullptr;
    operands.push_back(*known->second);
    operands.back().shape = Shape::array(operands.back().shape.dtype, node.shape.dims);
  }
  std::vector<const Literal*> given;
  for (const Literal& operand : operands) given.push_back(&operand);
  return std::make_shared<const Literal>(evaluate_node(graph, computation, node, given));
}

/// Of an array of that element everywhere.
int ValueNumbers::splat(const std::shared_ptr<const Literal>& element, const Shape& shape) {
  std::string key = "splat" + std::string(name(shape.dtype));
  add_literal(key, *element);
  add_numbers(key, Squeezed(shape.dims).extents);
  const int number = number_of(std::move(key));
  splats_.emplace(number, element);
  return number;
}

int ValueNumbers::value(const Graph& graph, const Computation& computation, const Node& node,
                        const std::vector<int>& numbers, const std::vector<int>& callees) {
  if (node.op == Op::kConstant && node.attrs.literal != nullptr && !node.shape.is_tuple &&
      node.shape.elements_count() == 1 && is_executable(node.shape.dtype))
    return splat(node.attrs.literal, node.shape);
  if (node.operands.size() == 1 && only_moves(node, computation.node(node.operands[0])))
    if (const auto known = splats_.find(numbers[at(node.operands[0])]); known != splats_.end())
      return splat(known->second, node.shape);
  if (const int number = unchanged(node, numbers); number >= 0) return number;
  if (const auto literal = folded(graph, computation, node, numbers)) return splat(literal, node.shape);
  if (node.operands.size() == 1 && !node.shape.is_tuple)
    if (const Node& operand = computation.node(node.operands[0]); !operand.shape.is_tuple)
      if (std::optional<std::string> moved = moved_key(node, operand)) {
        const int number = numbers[at(operand.id)];
        if (moved->empty()) return number;
        add_number(*moved, number);
        return number_of(std::move(*moved));
      }
  std::string key;
  add_number(key, static_cast<std::int64_t>(node.op));
  add_number(key, node.attrs.parameter_number);
  std::vector<int> operands;
  for (const NodeId operand : node.operands) operands.push_back(numbers[at(operand)]);
  if (def(node.op).commutative) std::ranges::sort(operands);
  for (const int operand : operands) add_number(key, operand);
  for (const ComputationId callee : node.attrs.computations) add_number(key, callees[at(callee)]);
  if (is_one_for_one(computation, node)) {
    key += name(node.shape.dtype);
    key += values_text(node);
  } else if (node.op == Op::kReduce && node.operands.size() == 2) {
    const Squeezed in(computation.node(node.operands[0]).shape.dims);
    add_numbers(key, in.extents);
    add_numbers(key, in.of(node.attrs.dimensions));
  } else if (node.op == Op::kDot && node.attrs.dot) {
    const Squeezed lhs(computation.node(node.operands[0]).shape.dims),
        rhs(computation.node(node.operands[1]).shape.dims);
    const DotDims& dims = *node.attrs.dot;
    key += name(node.shape.dtype);
    add_numbers(key, lhs.extents);
    add_numbers(key, rhs.extents);
    for (const auto& of_lhs : {dims.lhs_batch, dims.lhs_contracting}) add_numbers(key, lhs.of(of_lhs));
    for (const auto& of_rhs : {dims.rhs_batch, dims.rhs_contracting}) add_numbers(key, rhs.of(of_rhs));
  } else if (node.op != Op::kConstant || node.attrs.literal == nullptr) {
    const auto shape_text = [&](NodeId id) {
      const Shape& shape = computation.node(id).shape;
      return to_text(hands_on(node.op) ? squeezed(shape) : plain(shape));
    };
    for (const NodeId operand : node.operands) key += shape_text(operand);
    key += shape_text(node.id) + values_text(node);
  } else {
    key += name(node.shape.dtype);
  }
  if (node.attrs.literal) add_literal(key, *node.attrs.literal);
  // Two that draw or act are two, and constants without values may be any.
  if (node.op == Op::kRng || node.op == Op::kCustomCall ||
      (node.op == Op::kConstant && node.attrs.literal == nullptr))
    key += node.name;
  return number_of(std::move(key));
}

}  // namespace stitchwork
