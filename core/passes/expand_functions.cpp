// Functions that have no expression of their own, by others that do: XLA's formulas
// (xla/hlo/builder/lib/math.cc), chosen to keep the relative error small near zero and not to overflow before
// the result does.
#include <numbers>

#include "core/passes/expand_ops.h"

namespace stitchwork {
namespace {

using Formula = NodeId (*)(Emitter&, NodeId);

NodeId one(Emitter& emit, NodeId like) { return emit.fill(emit.shape(like), 1); }

/// sqrt((1 - x)(1 + x)), exact where x is near 1.
NodeId root_of_one_minus_square(Emitter& emit, NodeId x) {
  const NodeId ones = one(emit, x);
  return emit.unary(Op::kSqrt, emit.binary(Op::kMultiply, emit.binary(Op::kSubtract, ones, x),
                                           emit.binary(Op::kAdd, ones, x)));
}

/// exp(x) / 2 from exp(x / 2), which does not overflow before it. (XLA's exp(x - log 2) loses what the
/// subtraction rounds off.)
NodeId half_exp(Emitter& emit, NodeId x) {
  const NodeId half = emit.fill(emit.shape(x), 0.5);
  const NodeId root = emit.unary(Op::kExp, emit.binary(Op::kMultiply, x, half));
  return emit.binary(Op::kMultiply, root, emit.binary(Op::kMultiply, root, half));
}

NodeId sinh(Emitter& emit, NodeId x) {
  const NodeId far =
      emit.binary(Op::kSubtract, half_exp(emit, x), half_exp(emit, emit.unary(Op::kNegate, x)));
  const NodeId e = emit.unary(Op::kExpm1, x);
  const NodeId quotient = emit.binary(Op::kDivide, e, emit.binary(Op::kAdd, e, one(emit, x)));
  const NodeId near =
      emit.binary(Op::kMultiply, emit.binary(Op::kAdd, e, quotient), emit.fill(emit.shape(x), 0.5));
  return emit.select(emit.compare(Comparison::kLt, emit.unary(Op::kAbs, x), one(emit, x)), near, far);
}

NodeId cosh(Emitter& emit, NodeId x) {
  return emit.binary(Op::kAdd, half_exp(emit, x), half_exp(emit, emit.unary(Op::kNegate, x)));
}

NodeId twice_atan2(Emitter& emit, NodeId y, NodeId x) {
  return emit.binary(Op::kMultiply, emit.binary(Op::kAtan2, y, x), emit.fill(emit.shape(x), 2));
}

NodeId asin(Emitter& emit, NodeId x) {
  return twice_atan2(emit, x, emit.binary(Op::kAdd, one(emit, x), root_of_one_minus_square(emit, x)));
}

NodeId acos(Emitter& emit, NodeId x) {
  const NodeId angle =
      twice_atan2(emit, root_of_one_minus_square(emit, x), emit.binary(Op::kAdd, one(emit, x), x));
  // At -1 both arguments are zero.
  const NodeId at_end = emit.compare(Comparison::kEq, x, emit.fill(emit.shape(x), -1));
  return emit.select(at_end, emit.fill(emit.shape(x), std::numbers::pi), angle);
}

/// log(x) + log 2, what asinh and acosh are where x * x overflows.
NodeId log_of_twice(Emitter& emit, NodeId x) {
  return emit.binary(Op::kAdd, emit.unary(Op::kLog, x), emit.fill(emit.shape(x), std::numbers::ln2));
}

NodeId beyond(Emitter& emit, NodeId x, NodeId far, NodeId near) {
  const double limit =
      emit.shape(x).dtype == DType::kF64 ? 1e150 : 1e18;  // below the root of the largest value
  return emit.select(emit.compare(Comparison::kGt, x, emit.fill(emit.shape(x), limit)), far, near);
}

NodeId asinh(Emitter& emit, NodeId x) {
  const NodeId a = emit.unary(Op::kAbs, x), square = emit.binary(Op::kMultiply, a, a);
  const NodeId root = emit.unary(Op::kSqrt, emit.binary(Op::kAdd, square, one(emit, x)));
  const NodeId correction = emit.binary(Op::kDivide, square, emit.binary(Op::kAdd, root, one(emit, x)));
  const NodeId near = emit.unary(Op::kLog1p, emit.binary(Op::kAdd, a, correction));
  return emit.binary(Op::kMultiply, emit.unary(Op::kSign, x), beyond(emit, a, log_of_twice(emit, a), near));
}

NodeId acosh(Emitter& emit, NodeId x) {
  const NodeId less = emit.binary(Op::kSubtract, x, one(emit, x));
  const NodeId more = emit.binary(Op::kAdd, x, one(emit, x));
  // One root of the product would be a number below -1, where there is no acosh.
  const NodeId root = emit.binary(Op::kMultiply, emit.unary(Op::kSqrt, less), emit.unary(Op::kSqrt, more));
  const NodeId near = emit.unary(Op::kLog1p, emit.binary(Op::kAdd, less, root));
  return beyond(emit, x, log_of_twice(emit, x), near);
}

NodeId atanh(Emitter& emit, NodeId x) {
  const NodeId difference = emit.binary(Op::kSubtract, emit.unary(Op::kLog1p, x),
                                        emit.unary(Op::kLog1p, emit.unary(Op::kNegate, x)));
  return emit.binary(Op::kMultiply, difference, emit.fill(emit.shape(x), 0.5));
}

Formula formula(Op op) {
  switch (op) {
    case Op::kSinh:
      return sinh;
    case Op::kCosh:
      return cosh;
    case Op::kAsin:
      return asin;
    case Op::kAcos:
      return acos;
    case Op::kAsinh:
      return asinh;
    case Op::kAcosh:
      return acosh;
    case Op::kAtanh:
      return atanh;
    default:
      return nullptr;
  }
}

/// The upper half of the product, from the product in twice the width.
NodeId multiply_high(Emitter& emit, NodeId a, NodeId b) {
  const DType type = emit.shape(a).dtype;
  const bool is_signed = is_signed_integer(type);
  const DType wide = is_signed ? DType::kS64 : DType::kU64;
  const NodeId product = emit.binary(Op::kMultiply, emit.convert(a, wide), emit.convert(b, wide));
  const NodeId high = emit.binary(is_signed ? Op::kShiftRightArithmetic : Op::kShiftRightLogical, product,
                                  emit.fill(emit.shape(product), bit_width(type)));
  return emit.convert(high, type);
}

}  // namespace

std::optional<NodeId> expand_function(Emitter& emit, const Node& node, const std::vector<NodeId>& operands) {
  const DType type = node.shape.dtype;
  if (node.op == Op::kMultiplyHigh) {
    if (!is_executable(type) || bit_width(type) > 32) return std::nullopt;
    return multiply_high(emit, operands[0], operands[1]);
  }
  const Formula make = formula(node.op);
  if (make == nullptr || !is_executable(type)) return std::nullopt;
  // A narrow type would round at every step.
  const bool narrow = bit_width(type) < 32;
  const NodeId result = make(emit, narrow ? emit.convert(operands[0], DType::kF32) : operands[0]);
  return narrow ? emit.convert(result, type) : result;
}

}  // namespace stitchwork
