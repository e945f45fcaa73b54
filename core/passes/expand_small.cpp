// Types of 8 bits and less by types that are computed with: kernels move them as bytes; converting them, and
// arithmetic with them, is written as arithmetic on the bits.
#include <algorithm>
#include <cmath>

#include "core/graph/small_float.h"
#include "core/passes/expand_ops.h"
#include "core/passes/moved.h"

namespace stitchwork {
namespace {

using Special = SmallFloat::Special;

bool is_small(DType type) { return byte_size(type) == 1 && !is_executable(type); }
/// Floats of a whole byte: those of 4 bits share one, and no integer type has their width alone.
bool is_small_float(DType type) { return is_small(type) && is_floating(type) && bit_width(type) == 8; }
bool is_small_integer(DType type) { return is_small(type) && is_integral(type); }

/// The integer of a whole byte that a small integer is stored as, its sign extended.
DType byte_of(DType type) { return is_signed_integer(type) ? DType::kS8 : DType::kU8; }

/// Bits of the numbers that stand for others: found by encoding those.
std::uint32_t infinity_bits(SmallFloat f) {
  return encode(f, HUGE_VAL) & (f.special == Special::kScale ? 0xff : 0x7f);
}
std::uint32_t largest_finite(SmallFloat f) { return encode(f, largest_value(f)); }
std::uint32_t nan_bits(SmallFloat f) { return encode(f, std::nan("")); }

constexpr int kF32Mantissa = 23, kF32Bias = 127;
constexpr double kF32Infinity = 0x7f800000, kF32Nan = 0x7fc00000;

/// Integer arithmetic on arrays of one shape, with constants where numbers stand.
class Bits {
 public:
  Bits(Emitter& emit, NodeId value) : emit_(&emit), value_(value) {}

  NodeId id() const { return value_; }
  Bits with(Op op, double number) const { return with(op, constant(number)); }
  Bits with(Op op, Bits other) const { return {*emit_, emit_->binary(op, value_, other.value_)}; }
  Bits constant(double number) const { return {*emit_, emit_->fill(emit_->shape(value_), number)}; }
  /// `yes` where the comparison holds, else this.
  Bits where(Bits tested, Comparison how, double number, Bits yes) const {
    const NodeId holds = emit_->compare(how, tested.value_, tested.constant(number).value_);
    return {*emit_, emit_->select(holds, yes.value_, value_)};
  }
  Bits where(Bits tested, Comparison how, double number, double yes) const {
    return where(tested, how, number, constant(yes));
  }
  Bits converted(DType type) const { return {*emit_, emit_->convert(value_, type)}; }
  /// The same bits.
  Bits as(DType type) const {
    return {*emit_, emit_->add(Op::kBitcastConvert, Shape::array(type, emit_->shape(value_).dims), {value_})};
  }

 private:
  Emitter* emit_;
  NodeId value_;
};

/// A small float as f32, exactly.
NodeId decoded(Emitter& emit, NodeId value) {
  const SmallFloat f = small_float(emit.shape(value).dtype);
  const Bits own = Bits(emit, value).as(DType::kU8).converted(DType::kU32);
  if (f.special == Special::kScale)  // the exponent of f32; its least value is subnormal there
    return own.with(Op::kShiftLeft, kF32Mantissa)
        .where(own, Comparison::kEq, 0, 1 << (kF32Mantissa - 1))
        .where(own, Comparison::kEq, 0xff, kF32Nan)
        .as(DType::kF32)
        .id();
  const int width = f.exponent_bits + f.mantissa_bits;
  const Bits rest = own.with(Op::kAnd, (1 << width) - 1);
  const Bits subnormal = rest.converted(DType::kF32)
                             .with(Op::kMultiply, std::ldexp(1.0, 1 - f.bias - f.mantissa_bits))
                             .as(DType::kU32);
  Bits bits = rest.with(Op::kShiftLeft, kF32Mantissa - f.mantissa_bits)
                  .with(Op::kAdd, static_cast<double>(std::uint32_t(kF32Bias - f.bias) << kF32Mantissa))
                  .where(rest, Comparison::kLt, 1 << f.mantissa_bits, subnormal);
  switch (f.special) {
    case Special::kIeee:
      bits = bits.where(rest, Comparison::kEq, largest_finite(f) + 1, kF32Infinity)
                 .where(rest, Comparison::kGt, largest_finite(f) + 1, kF32Nan);
      break;
    case Special::kAllOnes:
      bits = bits.where(rest, Comparison::kGt, largest_finite(f), kF32Nan);
      break;
    default:
      bits = bits.where(own, Comparison::kEq, 1 << width, kF32Nan);
  }
  const Bits sign = own.with(Op::kAnd, 1 << width).with(Op::kShiftLeft, 31 - width);
  return bits.with(Op::kOr, sign).as(DType::kF32).id();
}

/// An f32 or f64 as a small float, by encode's rules (core/graph/small_float.h).
NodeId encoded(Emitter& emit, NodeId value, DType type) {
  const SmallFloat f = small_float(type);
  const DType from = emit.shape(value).dtype;
  const bool wide = from == DType::kF64;
  const DType word = wide ? DType::kU64 : DType::kU32;
  const int mantissa = wide ? 52 : kF32Mantissa, bias = wide ? 1023 : kF32Bias, bits = wide ? 64 : 32;
  const double infinity = std::ldexp(2.0 * bias + 1, mantissa);
  const Bits own = Bits(emit, value).as(word);
  const Bits size = own.with(Op::kShiftLeft, 1).with(Op::kShiftRightLogical, 1);
  const Bits negative = own.with(Op::kShiftRightLogical, bits - 1);
  const int dropped = mantissa - f.mantissa_bits;
  if (f.special == Special::kScale) {  // the nearest exponent, up where the mantissa says one and a half
    const double least = std::ldexp(1.0, mantissa) * (bias - f.bias);
    const Bits rounded =
        size.with(Op::kAdd, std::ldexp(1.0, mantissa - 1)).with(Op::kShiftRightLogical, mantissa);
    // What f32 holds as subnormal numbers has no exponent of its own there: up from one and a half times
    // 2^-127.
    const Bits exponent =
        wide ? rounded.with(Op::kSubtract, bias - f.bias).where(size, Comparison::kLt, least, 0)
             : rounded.where(size, Comparison::kLt, 3 << (kF32Mantissa - 2), 0);
    return exponent.where(exponent, Comparison::kGt, 0xfe, 0xff)
        .where(size, Comparison::kGe, infinity, 0xff)
        .where(size, Comparison::kEq, 0, 0xff)
        .where(negative, Comparison::kEq, 1, 0xff)
        .converted(DType::kU8)
        .as(type)
        .id();
  }
  const Bits odd = size.with(Op::kShiftRightLogical, dropped).with(Op::kAnd, 1);
  const Bits normal =
      size.with(Op::kAdd, std::ldexp(1.0, dropped - 1) - 1)
          .with(Op::kAdd, odd)
          .with(Op::kShiftRightLogical, dropped)
          .with(Op::kSubtract, std::ldexp(static_cast<double>(bias - f.bias), f.mantissa_bits));
  const NodeId scaled = size.as(from).with(Op::kMultiply, std::ldexp(1.0, f.bias - 1 + f.mantissa_bits)).id();
  const Bits subnormal = Bits(emit, emit.unary(Op::kRoundNearestEven, scaled)).converted(word);
  Bits result = normal.where(size, Comparison::kLt, std::ldexp(bias + 1.0 - f.bias, mantissa), subnormal);
  result = result.where(result, Comparison::kGt, largest_finite(f),
                        f.special == Special::kMinusZero ? nan_bits(f) : infinity_bits(f));
  result = result.where(size, Comparison::kGt, infinity, nan_bits(f));
  Bits sign = negative.with(Op::kShiftLeft, f.exponent_bits + f.mantissa_bits);
  if (f.special == Special::kMinusZero) sign = sign.where(result, Comparison::kEq, 0, 0);
  return result.with(Op::kOr, sign).converted(DType::kU8).as(type).id();
}

/// What a small value is computed in.
NodeId widened(Emitter& emit, NodeId value) {
  const DType type = emit.shape(value).dtype;
  if (is_small_float(type)) return decoded(emit, value);
  return is_small_integer(type) ? emit.convert(emit.convert(value, byte_of(type)), DType::kS32) : value;
}

NodeId narrowed(Emitter& emit, NodeId value, DType type) {
  const DType from = emit.shape(value).dtype;
  if (is_small_float(type)) {
    const bool exact = from == DType::kF64 || is_floating(from) || byte_size(from) <= 2;  // in f32
    return encoded(emit, emit.convert(value, from == DType::kF64 || !exact ? DType::kF64 : DType::kF32),
                   type);
  }
  if (!is_small_integer(type)) return emit.convert(value, type);
  if (is_floating(from)) {
    const int bits = bit_width(type) - (is_signed_integer(type) ? 1 : 0);
    const double high = (1 << bits) - 1, low = is_signed_integer(type) ? -high - 1 : 0;
    const Shape shape = emit.shape(value);
    value = emit.add(Op::kClamp, shape, {emit.fill(shape, low), value, emit.fill(shape, high)});
  }
  return emit.convert(emit.convert(value, byte_of(type)), type);
}

/// Whether arithmetic on the type's values, sign extended, and the low bits of what it gives are its own.
bool computes_wider(const Node& node, DType type) {
  if (is_small_float(type)) return node.op != Op::kReducePrecision && node.op != Op::kStochasticConvert;
  switch (node.op) {
    case Op::kShiftLeft:
    case Op::kShiftRightLogical:
    case Op::kShiftRightArithmetic:
    case Op::kPopcnt:
    case Op::kClz:
    case Op::kMultiplyHigh:
      return false;
    default:
      return is_small_integer(type);
  }
}

/// What a product's operand becomes: the narrowest type that has its values and that products take.
NodeId factor(Emitter& emit, NodeId value) {
  const DType type = emit.shape(value).dtype;
  if (is_small_float(type))
    return emit.convert(decoded(emit, value), type == DType::kF8E8M0FNU ? DType::kF32 : DType::kF16);
  return is_small_integer(type) ? emit.convert(value, byte_of(type)) : value;
}

bool is_product(Op op) { return op == Op::kDot || op == Op::kConvolution; }

/// Ops that have values as bytes beside those that move elements: what the module is given, what goes into
/// and out of other computations, and the same bits under another type.
bool hands_on(Op op) {
  return op == Op::kParameter || op == Op::kConstant || op == Op::kGetTupleElement || op == Op::kWhile ||
         op == Op::kConditional || op == Op::kBitcastConvert;
}

}  // namespace

bool is_moved(const Node& node) {
  if (node.op == Op::kConvert)
    return is_small_integer(node.shape.dtype);  // from the byte that it is stored as
  return (def(node.op).moves_elements || hands_on(node.op)) &&
         (is_small_float(node.shape.dtype) || is_small_integer(node.shape.dtype));
}

bool moves(const Node& node, const Node& operand) {
  if (!is_moved(operand)) return false;
  if (node.op == Op::kConvert) return is_integral(operand.shape.dtype) && byte_size(node.shape.dtype) == 1;
  return is_moved(node) || node.op == Op::kBitcastConvert;
}

std::optional<NodeId> expand_small(Emitter& emit, const Node& node, const std::vector<NodeId>& operands) {
  if (node.shape.is_tuple || operands.empty()) return std::nullopt;
  const DType to = node.shape.dtype;
  const auto type = [&](NodeId id) { return emit.shape(id).dtype; };
  const auto small = [](DType t) { return is_small_float(t) || is_small_integer(t); };
  const bool tuples = std::ranges::any_of(operands, [&](NodeId id) { return emit.shape(id).is_tuple; });
  if (tuples || (!small(to) && std::ranges::none_of(operands, [&](NodeId id) { return small(type(id)); })))
    return std::nullopt;
  if (node.op == Op::kConvert) {
    const DType from = type(operands[0]);
    const bool stored = (is_small_integer(to) && from == byte_of(to)) ||
                        (is_small_integer(from) && to == byte_of(from)) || from == to;
    if (stored || (is_small(from) && !small(from)) || (is_small(to) && !small(to))) return std::nullopt;
    return narrowed(emit, widened(emit, operands[0]), to);
  }
  if (is_product(node.op)) {
    std::vector<NodeId> factors;
    for (const NodeId operand : operands) factors.push_back(factor(emit, operand));
    const DType sum = !small(to) ? to : is_floating(to) ? DType::kF32 : DType::kS32;
    const NodeId result = emit.add(node.op, Shape::array(sum, node.shape.dims), factors, node.attrs);
    return narrowed(emit, result, to);
  }
  if (!is_elementwise(node.op) || is_moved(node) || node.op == Op::kBitcastConvert || node.op == Op::kMap)
    return std::nullopt;
  const bool all = std::ranges::all_of(
      operands, [&](NodeId id) { return !is_small(type(id)) || computes_wider(node, type(id)); });
  if (!all || (is_small(to) && !computes_wider(node, to))) return std::nullopt;
  std::vector<NodeId> wide;
  for (const NodeId operand : operands) wide.push_back(widened(emit, operand));
  const DType computed = !small(to) ? to : is_floating(to) ? DType::kF32 : DType::kS32;
  return narrowed(emit, emit.add(node.op, Shape::array(computed, node.shape.dims), wide, node.attrs), to);
}

}  // namespace stitchwork
