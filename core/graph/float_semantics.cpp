#include "core/graph/float_semantics.h"

#include <cmath>

#include "core/base/error.h"
#include "core/graph/window.h"

namespace stitchwork {

FloatFormat float_format(DType type) {
  switch (type) {
    case DType::kF16:
      return {5, 10};
    case DType::kBF16:
      return {8, 7};
    case DType::kF32:
      return {8, 23};
    case DType::kF64:
      return {11, 52};
    default:
      SW_CHECK(false, "{} is no float that is computed", name(type));
  }
}

bool is_exact(Op op) {
  switch (op) {
    case Op::kAbs:
    case Op::kNegate:
    case Op::kSign:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRoundNearestAfz:
    case Op::kRoundNearestEven:
    case Op::kReal:
    case Op::kImag:
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kSelect:
    case Op::kClamp:
      return true;
    default:
      return false;
  }
}

FloatFormat reduced_precision(const Node& node) {
  const std::int64_t exponent_bits = other_integer(node, "exponent_bits", 8);
  const std::int64_t mantissa_bits = other_integer(node, "mantissa_bits", 23);
  constexpr std::int64_t kMostBits = 64;
  if (exponent_bits < 1 || mantissa_bits < 0 || exponent_bits > kMostBits || mantissa_bits > kMostBits)
    throw Error(
        fmt::format("reduce-precision to {} exponent and {} mantissa bits", exponent_bits, mantissa_bits),
        "at least one exponent bit, and no fewer than no mantissa bits");
  return {static_cast<int>(exponent_bits), static_cast<int>(mantissa_bits)};
}

bool is_total_order(const Node& compare) { return other_attribute(compare, "type") == "TOTALORDER"; }

bool tells_nans_apart(const Graph& graph, DType type) {
  for (const Computation& computation : graph.computations)
    for (const Node& node : computation.nodes) {
      if (node.op != Op::kBitcastConvert && !(node.op == Op::kCompare && is_total_order(node))) continue;
      if (node.shape.dtype == type || computation.node(node.operands[0]).shape.dtype == type) return true;
    }
  return false;
}

const Node& source_of(const Computation& computation, NodeId id) {
  for (;;) {
    const Node& node = computation.node(id);
    switch (node.op) {
      case Op::kBitcast:  // to another type it makes other values of the bits
        if (computation.node(node.operands[0]).shape.dtype != node.shape.dtype) return node;
        break;
      case Op::kBroadcast:
      case Op::kReshape:
      case Op::kTranspose:
      case Op::kSlice:
      case Op::kCopy:
      case Op::kConvert:
        break;
      default:
        return node;
    }
    id = node.operands[0];
  }
}

std::optional<double> one_integer(const Node& constant) {
  const Shape& shape = constant.shape;
  constexpr std::int64_t kMostElements = 4096;  // a constant of more is a table, not worth reading every time
  if (constant.op != Op::kConstant || shape.is_tuple || constant.attrs.literal == nullptr ||
      !is_executable(shape.dtype) || shape.elements_count() < 1 || shape.elements_count() > kMostElements)
    return std::nullopt;
  const Literal& literal = *constant.attrs.literal;
  const double first = literal.get_double(0);
  constexpr double kExact = 256;  // bf16 has 8 bits of precision
  if (std::trunc(first) != first || std::abs(first) > kExact) return std::nullopt;
  for (std::int64_t i = 1; i < shape.elements_count(); ++i)
    if (literal.get_double(i) != first) return std::nullopt;
  return first;
}

}  // namespace stitchwork
