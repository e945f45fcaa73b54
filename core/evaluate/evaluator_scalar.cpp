#include <optional>

#include "core/base/error.h"
#include "core/evaluate/evaluator_ops.h"

namespace stitchwork {
namespace {

Literal spread(const Literal& scalar, std::int64_t count) {
  Literal result = Literal::zeros(Shape::array(scalar.shape.dtype, {count}));
  const std::size_t width = scalar.bytes.size();
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
    std::copy(scalar.bytes.begin(), scalar.bytes.end(),
              result.bytes.begin() + static_cast<std::ptrdiff_t>(i * width));
  return result;
}

[[noreturn]] void refuse(const Computation& computation, const Node& node) {
  throw Error(fmt::format("{} '{}' in '{}' cannot be applied element by element", def(node.op).name,
                          node.name, computation.name),
              "reducers, comparators and mapped functions consist of scalar element-wise ops");
}

}  // namespace

std::vector<Literal> apply_to_vectors(const Graph& graph, ComputationId id, Values arguments,
                                      std::int64_t count) {
  const Computation& computation = graph.computation(id);
  std::vector<std::vector<Literal>> values(computation.nodes.size());  // a vector: tuples have several
  const auto of = [&](NodeId node) -> std::vector<Literal>& {
    return values[static_cast<std::size_t>(node)];
  };
  for (const Node& node : computation.nodes) {
    std::vector<Literal>& value = of(node.id);
    std::vector<const Literal*> operands;
    for (NodeId operand : node.operands)
      for (const Literal& part : of(operand)) operands.push_back(&part);
    if (!node.shape.is_tuple && node.shape.elements_count() != 1) refuse(computation, node);
    switch (node.op) {
      case Op::kParameter:
        value.push_back(*arguments[static_cast<std::size_t>(node.attrs.parameter_number)]);
        break;
      case Op::kConstant:
        value.push_back(spread(*node.attrs.literal, count));
        break;
      case Op::kTuple:
        for (const Literal* operand : operands) value.push_back(*operand);
        break;
      case Op::kGetTupleElement:
        value.push_back(*operands[static_cast<std::size_t>(node.attrs.tuple_index)]);
        break;
      case Op::kBroadcast:
      case Op::kReshape:
      case Op::kBitcast:
        value.push_back(*operands[0]);
        break;
      case Op::kCall:
      case Op::kFusion:
      case Op::kMap:
        value = apply_to_vectors(graph, applied(node), operands, count);
        break;
      default:
        if (!has_elementwise_kernel(node.op)) refuse(computation, node);
        value.push_back(evaluate_elementwise(node, Shape::array(node.shape.dtype, {count}), operands));
    }
  }
  return std::move(of(computation.root));
}

}  // namespace stitchwork
