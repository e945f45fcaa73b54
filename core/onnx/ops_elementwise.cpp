// Element-wise arithmetic, comparisons, logic and casts.
#include <array>
#include <cmath>
#include <limits>

#include "core/onnx/casts.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

template <Op kOp>
Values lower_unary(NodeContext& c) {
  return {c.b.unary(kOp, c.in(0))};
}

template <Op kOp>
Values lower_binary(NodeContext& c) {
  return {c.b.binary(kOp, c.in(0), c.in(1))};
}

template <Op kOp>
Values lower_variadic(NodeContext& c) {
  Value result = c.in(0);
  for (int i = 1; i < c.inputs(); ++i) result = c.b.binary(kOp, result, c.in(i));
  return {result};
}

template <Comparison kComparison>
Values lower_compare(NodeContext& c) {
  return {c.b.compare(kComparison, c.in(0), c.in(1))};
}

Values lower_identity(NodeContext& c) { return {c.in_any(0)}; }

Values lower_mean(NodeContext& c) {
  const double count = c.inputs();
  const Value sum = lower_variadic<Op::kAdd>(c)[0];
  return {c.b.div(sum, count)};
}

Values lower_reciprocal(NodeContext& c) { return {c.b.div(Builder::scalar(c.in(0).dtype(), 1), c.in(0))}; }

/// sqrt(1 - x^2) without cancellation near +-1.
Value cosine_of_arcsine(Builder& b, const Value& x) {
  const Value one = Builder::scalar(x.dtype(), 1);
  return b.unary(Op::kSqrt, b.mul(b.sub(one, x), b.add(one, x)));
}

Value full_like(Builder& b, const Value& x, double value) {
  return b.broadcast(Builder::scalar(x.dtype(), value), x.dims());
}

Values lower_asin(NodeContext& c) {
  return {c.b.binary(Op::kAtan2, c.in(0), cosine_of_arcsine(c.b, c.in(0)))};
}
Values lower_acos(NodeContext& c) {
  return {c.b.binary(Op::kAtan2, cosine_of_arcsine(c.b, c.in(0)), c.in(0))};
}
Values lower_atan(NodeContext& c) { return {c.b.binary(Op::kAtan2, c.in(0), full_like(c.b, c.in(0), 1))}; }

/// Small |x| by exp(x) - 1, where the difference of exponentials would cancel.
Values lower_sinh(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const Value e = b.unary(Op::kExpm1, x);
  const Value small = b.mul(b.add(e, b.div(e, b.add(e, 1))), 0.5);
  const double half = std::log(0.5);
  const Value large = b.sub(b.unary(Op::kExp, b.add(x, half)), b.unary(Op::kExp, b.add(b.neg(x), half)));
  return {b.select(b.compare(Comparison::kLt, b.unary(Op::kAbs, x), 1), small, large)};
}

Values lower_cosh(NodeContext& c) {
  Builder& b = c.b;
  const double half = std::log(0.5);  // inside, so that exp(x) / 2 overflows no earlier than it must
  return {b.add(b.unary(Op::kExp, b.add(c.in(0), half)), b.unary(Op::kExp, b.add(b.neg(c.in(0)), half)))};
}

/// x beyond which x^2 + 1 is x^2 in x's type, and x^2 does not overflow yet.
double large_argument(DType dtype) {
  return dtype == DType::kF64    ? 0x1p28
         : dtype == DType::kF32  ? 0x1p14
         : dtype == DType::kBF16 ? 0x1p14
                                 : 0x1p7;
}

Values lower_asinh(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const Value a = b.unary(Op::kAbs, x), square = b.mul(a, a);
  const Value root = b.unary(Op::kSqrt, b.add(square, 1));
  const Value near = b.unary(Op::kLog1p, b.add(a, b.div(square, b.add(root, 1))));
  const Value far = b.add(b.unary(Op::kLog, a), std::log(2.0));
  const Value magnitude = b.select(b.compare(Comparison::kGe, a, large_argument(x.dtype())), far, near);
  return {b.mul(b.unary(Op::kSign, x), magnitude)};
}

Values lower_acosh(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const Value above = b.sub(x, 1);
  const Value near = b.unary(Op::kLog1p, b.add(above, b.unary(Op::kSqrt, b.mul(above, b.add(x, 1)))));
  const Value far = b.add(b.unary(Op::kLog, x), std::log(2.0));
  return {b.select(b.compare(Comparison::kGe, x, large_argument(x.dtype())), far, near)};
}

Values lower_atanh(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  return {b.mul(b.sub(b.unary(Op::kLog1p, x), b.unary(Op::kLog1p, b.neg(x))), 0.5)};
}

/// The sign of the result is that of the divisor, with fmod=1 that of the dividend.
Values lower_mod(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &y = c.in(1);
  const bool fmod = c.flag("fmod", false);
  c.check(fmod || !is_floating(x.dtype()), "fmod=0 does not take floating-point numbers");
  const Value remainder = b.binary(Op::kRemainder, x, y);
  if (fmod || !is_signed_integer(x.dtype())) return {remainder};
  const Value other_sign =
      b.compare(Comparison::kNe, b.compare(Comparison::kLt, remainder, 0), b.compare(Comparison::kLt, y, 0));
  const Value wrong = b.binary(Op::kAnd, b.compare(Comparison::kNe, remainder, 0), other_sign);
  return {b.select(wrong, b.add(remainder, y), remainder)};
}

/// The result has the base's type. An integer base with a real exponent is computed in double precision.
Values lower_pow(NodeContext& c) {
  Builder& b = c.b;
  const Value &base = c.in(0), &exponent = c.in(1);
  const DType type = base.dtype();
  DType in = type;
  if (!is_floating(type) && is_floating(exponent.dtype())) in = DType::kF64;
  if (!is_floating(type) && is_integral(exponent.dtype()) && byte_size(exponent.dtype()) > byte_size(type))
    in = exponent.dtype();
  return {b.convert(b.binary(Op::kPower, b.convert(base, in), b.convert(exponent, in)), type)};
}

Values lower_bit_shift(NodeContext& c) {
  const std::string direction = c.text("direction", "");
  c.check(direction == "LEFT" || direction == "RIGHT",
          fmt::format("direction is '{}', LEFT or RIGHT is needed", direction));
  return {c.b.binary(direction == "LEFT" ? Op::kShiftLeft : Op::kShiftRightLogical, c.in(0), c.in(1))};
}

Values lower_is_nan(NodeContext& c) { return {c.b.compare(Comparison::kNe, c.in(0), c.in(0))}; }

Values lower_is_inf(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const double infinity = std::numeric_limits<double>::infinity();
  Value result = b.broadcast(Builder::scalar_int(DType::kPred, 0), x.dims());
  if (c.flag("detect_negative", true))
    result = b.binary(Op::kOr, result, b.compare(Comparison::kEq, x, -infinity));
  if (c.flag("detect_positive", true))
    result = b.binary(Op::kOr, result, b.compare(Comparison::kEq, x, infinity));
  return {result};
}

Values lower_where(NodeContext& c) { return {c.b.select(c.in(0), c.in(1), c.in(2))}; }

/// Bounds are attributes before operator set 11. Where min exceeds max, max it is.
Values lower_clip(NodeContext& c) {
  Builder& b = c.b;
  Value x = c.in(0);
  const DType type = x.dtype();
  if (c.version < 11) {
    if (c.given("min")) x = b.max(x, c.number("min", 0));
    if (c.given("max")) x = b.min(x, c.number("max", 0));
    return {x};
  }
  for (const int i : {1, 2}) {
    if (!c.has(i)) continue;
    c.check(product(c.in(i).dims()) == 1,
            fmt::format("input {} is {}, one element is needed", i, to_text(c.in(i).shape)));
    const Value bound = b.reshape(c.in(i), {});
    c.check(bound.dtype() == type, fmt::format("bound {} and the input have different types", i));
    x = i == 1 ? b.max(x, bound) : b.min(x, bound);
  }
  return {x};
}

Value cast_by_attributes(NodeContext& c, const Value& x, DType to) {
  c.ignore("round_mode");  // concerns FLOAT8E8M0 alone
  c.check(to != DType::kF8E8M0FNU || x.dtype() == to, "rounding to powers of two is not supported");
  return cast(c.b, x, to, c.flag("saturate", true));
}

Values lower_cast(NodeContext& c) {
  const Value& x = c.in(0);
  c.check(c.given("to"), "attribute to is missing");
  return {cast_by_attributes(c, x, c.dtype("to", x.dtype()))};
}

Values lower_cast_like(NodeContext& c) { return {cast_by_attributes(c, c.in(0), c.in(1).dtype())}; }

Values lower_bit_cast(NodeContext& c) {
  const Value& x = c.in(0);
  c.check(c.given("to"), "attribute to is missing");
  const DType to = c.dtype("to", x.dtype());
  const auto bits = [](DType type) { return type == DType::kPred ? 8 : bit_width(type); };
  c.check(bits(to) == bits(x.dtype()), fmt::format("{} and {} differ in size", name(x.dtype()), name(to)));
  // A bool is a byte 0 or 1; only from it is that the same bits.
  c.check(to != DType::kPred, "bits are not reinterpreted as bool");
  return {x.dtype() == DType::kPred ? c.b.bitcast(c.b.convert(x, DType::kU8), to) : c.b.bitcast(x, to)};
}

constexpr std::array kElementwiseRows = {
    OperatorRow{"Abs", 7, lower_unary<Op::kAbs>},
    OperatorRow{"Acos", 7, lower_acos},
    OperatorRow{"Acosh", 9, lower_acosh},
    OperatorRow{"Add", 7, lower_binary<Op::kAdd>},
    OperatorRow{"And", 7, lower_binary<Op::kAnd>},
    OperatorRow{"Asin", 7, lower_asin},
    OperatorRow{"Asinh", 9, lower_asinh},
    OperatorRow{"Atan", 7, lower_atan},
    OperatorRow{"Atanh", 9, lower_atanh},
    OperatorRow{"BitCast", 26, lower_bit_cast},
    OperatorRow{"BitShift", 11, lower_bit_shift},
    OperatorRow{"BitwiseAnd", 18, lower_binary<Op::kAnd>},
    OperatorRow{"BitwiseNot", 18, lower_unary<Op::kNot>},
    OperatorRow{"BitwiseOr", 18, lower_binary<Op::kOr>},
    OperatorRow{"BitwiseXor", 18, lower_binary<Op::kXor>},
    OperatorRow{"Cast", 7, lower_cast},
    OperatorRow{"CastLike", 15, lower_cast_like},
    OperatorRow{"Ceil", 7, lower_unary<Op::kCeil>},
    OperatorRow{"Clip", 7, lower_clip},
    OperatorRow{"Cos", 7, lower_unary<Op::kCos>},
    OperatorRow{"Cosh", 9, lower_cosh},
    OperatorRow{"Div", 7, lower_binary<Op::kDivide>},
    OperatorRow{"Equal", 7, lower_compare<Comparison::kEq>},
    OperatorRow{"Erf", 9, lower_unary<Op::kErf>},
    OperatorRow{"Exp", 7, lower_unary<Op::kExp>},
    OperatorRow{"Floor", 7, lower_unary<Op::kFloor>},
    OperatorRow{"Greater", 7, lower_compare<Comparison::kGt>},
    OperatorRow{"GreaterOrEqual", 12, lower_compare<Comparison::kGe>},
    OperatorRow{"Identity", 7, lower_identity},
    OperatorRow{"IsInf", 10, lower_is_inf},
    OperatorRow{"IsNaN", 9, lower_is_nan},
    OperatorRow{"Less", 7, lower_compare<Comparison::kLt>},
    OperatorRow{"LessOrEqual", 12, lower_compare<Comparison::kLe>},
    OperatorRow{"Log", 7, lower_unary<Op::kLog>},
    OperatorRow{"Max", 7, lower_variadic<Op::kMaximum>},
    OperatorRow{"Mean", 7, lower_mean},
    OperatorRow{"Min", 7, lower_variadic<Op::kMinimum>},
    OperatorRow{"Mod", 10, lower_mod},
    OperatorRow{"Mul", 7, lower_binary<Op::kMultiply>},
    OperatorRow{"Neg", 7, lower_unary<Op::kNegate>},
    OperatorRow{"Not", 7, lower_unary<Op::kNot>},
    OperatorRow{"Or", 7, lower_binary<Op::kOr>},
    OperatorRow{"Pow", 7, lower_pow},
    OperatorRow{"Reciprocal", 7, lower_reciprocal},
    OperatorRow{"Round", 11, lower_unary<Op::kRoundNearestEven>},
    OperatorRow{"Sign", 9, lower_unary<Op::kSign>},
    OperatorRow{"Sin", 7, lower_unary<Op::kSin>},
    OperatorRow{"Sinh", 9, lower_sinh},
    OperatorRow{"Sqrt", 7, lower_unary<Op::kSqrt>},
    OperatorRow{"Sub", 7, lower_binary<Op::kSubtract>},
    OperatorRow{"Sum", 7, lower_variadic<Op::kAdd>},
    OperatorRow{"Tan", 7, lower_unary<Op::kTan>},
    OperatorRow{"Tanh", 7, lower_unary<Op::kTanh>},
    OperatorRow{"Where", 9, lower_where},
    OperatorRow{"Xor", 7, lower_binary<Op::kXor>},
};

}  // namespace

std::span<const OperatorRow> elementwise_operators() { return kElementwiseRows; }

}  // namespace stitchwork::onnx_reader
