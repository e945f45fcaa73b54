// Formulas that neither overflow nor cancel where the result does not: of XLA's elemental emitter
// (xla/service/elemental_ir_emitter.cc) and W. Kahan, "Branch Cuts for Complex Elementary Functions" (1987).
#include "core/passes/complex_functions.h"

namespace stitchwork {
namespace {

/// An array of real numbers, with arithmetic on it.
class Real {
 public:
  Real(Emitter& emit, NodeId id) : emit_(&emit), id_(id) {}

  NodeId id() const { return id_; }
  Real fill(double value) const { return {*emit_, emit_->fill(emit_->shape(id_), value)}; }
  Real of(Op op) const { return {*emit_, emit_->unary(op, id_)}; }
  Real with(Op op, Real other) const { return {*emit_, emit_->binary(op, id_, other.id_)}; }
  NodeId is(Comparison how, Real other) const { return emit_->compare(how, id_, other.id_); }
  NodeId is(Comparison how, double value) const { return is(how, fill(value)); }
  /// This where the condition holds, else the other.
  Real where(NodeId condition, Real otherwise) const {
    return {*emit_, emit_->select(condition, id_, otherwise.id_)};
  }
  /// Also of -0.
  NodeId is_negative() const {
    const Shape& shape = emit_->shape(id_);
    const DType bits = shape.dtype == DType::kF64 ? DType::kS64 : DType::kS32;
    const Shape as = Shape::array(bits, shape.dims);
    return emit_->compare(Comparison::kLt, emit_->add(Op::kBitcastConvert, as, {id_}), emit_->fill(as, 0));
  }

  Real operator-() const { return of(Op::kNegate); }
  friend Real operator+(Real a, Real b) { return a.with(Op::kAdd, b); }
  friend Real operator-(Real a, Real b) { return a.with(Op::kSubtract, b); }
  friend Real operator*(Real a, Real b) { return a.with(Op::kMultiply, b); }
  friend Real operator/(Real a, Real b) { return a.with(Op::kDivide, b); }
  friend Real operator+(Real a, double b) { return a + a.fill(b); }
  friend Real operator*(Real a, double b) { return a * a.fill(b); }

 private:
  Emitter* emit_;
  NodeId id_;
};

struct Cartesian {
  Real re, im;
};

Cartesian times_i(const Cartesian& z) { return {-z.im, z.re}; }
Cartesian divided_by_i(const Cartesian& z) { return {z.im, -z.re}; }

Cartesian multiply(const Cartesian& a, const Cartesian& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/// By the quotient of the divisor's parts (R. L. Smith, "Algorithm 116: Complex division", 1962).
Cartesian divide(const Cartesian& a, const Cartesian& b) {
  const NodeId wide = b.re.of(Op::kAbs).is(Comparison::kGe, b.im.of(Op::kAbs));
  const Real large = b.re.where(wide, b.im), small = b.im.where(wide, b.re);
  // The larger part may be zero only with the other: then as XLA, not a number or infinite.
  const Real ratio = (small / large).where(large.is(Comparison::kNe, 0.0), small);
  const Real divisor = large + small * ratio;
  const Real re = (a.re + a.im * ratio).where(wide, a.re * ratio + a.im);
  const Real im = (a.im - a.re * ratio).where(wide, a.im * ratio - a.re);
  return {re / divisor, im / divisor};
}

struct Sides {
  Real larger, ratio;  ///< of the parts' sizes; the ratio 0 where both are
};

Sides sides(const Cartesian& z) {
  const Real a = z.re.of(Op::kAbs), b = z.im.of(Op::kAbs);
  const Real larger = a.with(Op::kMaximum, b), smaller = a.with(Op::kMinimum, b);
  // Equal ones too where both are infinite.
  const Real ratio = smaller.fill(1).where(a.is(Comparison::kEq, b), smaller / larger);
  return {larger, smaller.fill(0).where(larger.is(Comparison::kEq, 0.0), ratio)};
}

Real absolute(const Cartesian& z) {
  const Sides s = sides(z);
  return s.larger * (s.ratio * s.ratio + 1).of(Op::kSqrt);
}

Real log_absolute(const Cartesian& z) {
  const Sides s = sides(z);
  return s.larger.of(Op::kLog) + (s.ratio * s.ratio).of(Op::kLog1p) * 0.5;
}

Cartesian log(const Cartesian& z) { return {log_absolute(z), z.im.with(Op::kAtan2, z.re)}; }

/// log(1 + z); near 0 by |1 + z|^2 - 1.
Cartesian log1p(const Cartesian& z) {
  const Cartesian shifted{z.re + 1, z.im};
  const Real near = (z.re * (z.re + 2) + z.im * z.im).of(Op::kLog1p) * 0.5;
  const Real size = z.re.of(Op::kAbs).with(Op::kMaximum, z.im.of(Op::kAbs));
  return {near.where(size.is(Comparison::kLt, 0.5), log_absolute(shifted)),
          z.im.with(Op::kAtan2, shifted.re)};
}

/// exp of the real part in two factors where it alone would overflow.
Cartesian exp(const Cartesian& z) {
  const Real half = (z.re * 0.5).of(Op::kExp), cos = z.im.of(Op::kCos), sin = z.im.of(Op::kSin);
  const Real whole = z.re.of(Op::kExp);
  const double limit = 80;  // A choice, not measured: below the logarithm of the largest f32, 88.7.
  const NodeId far = z.re.is(Comparison::kGt, limit);
  const Real im = (half * sin * half).where(far, whole * sin);
  // Of a real number a real number, also where exp overflows: infinity times zero is none.
  return {(half * cos * half).where(far, whole * cos), z.im.where(z.im.is(Comparison::kEq, 0.0), im)};
}

Cartesian expm1(const Cartesian& z) {
  const Real sin = (z.im * 0.5).of(Op::kSin);
  const Real re = z.re.of(Op::kExpm1) * z.im.of(Op::kCos) - sin * sin * 2;
  return {re, z.re.of(Op::kExp) * z.im.of(Op::kSin)};
}

Cartesian sqrt(const Cartesian& z) {
  const Real size = absolute(z), a = z.re.of(Op::kAbs);
  const Real larger = (size * 0.5 + a * 0.5).of(Op::kSqrt);
  const Real smaller = larger.where(size.is(Comparison::kEq, 0.0), z.im.of(Op::kAbs) * 0.5 / larger);
  const NodeId right = z.re.is(Comparison::kGe, 0.0);
  const Real im = smaller.where(right, larger);
  return {larger.where(right, smaller), (-im).where(z.im.is_negative(), im)};
}

Cartesian rsqrt(const Cartesian& z) {
  const Cartesian root = sqrt(z);
  const Real size = absolute(z);
  return {root.re / size, -(root.im / size)};
}

Cartesian sinh(const Cartesian& z) {
  return {z.re.of(Op::kSinh) * z.im.of(Op::kCos), z.re.of(Op::kCosh) * z.im.of(Op::kSin)};
}

Cartesian cosh(const Cartesian& z) {
  return {z.re.of(Op::kCosh) * z.im.of(Op::kCos), z.re.of(Op::kSinh) * z.im.of(Op::kSin)};
}

/// Numerator and denominator divided by cosh^2 of the real part, which would overflow.
Cartesian tanh(const Cartesian& z) {
  const Real t = z.re.of(Op::kTanh), cos = z.im.of(Op::kCos), sin = z.im.of(Op::kSin);
  const Real e = (z.re.of(Op::kAbs) * -2.0).of(Op::kExp), half = e + 1;
  const Real shrink = e * 4 / (half * half);
  const Real below = cos * cos + sin * sin * t * t;
  return {t / below, sin * cos * shrink / below};
}

Cartesian logistic(const Cartesian& z) {
  const Cartesian half = tanh({z.re * 0.5, z.im * 0.5});
  return {half.re * 0.5 + 0.5, half.im * 0.5};
}

Cartesian sign(const Cartesian& z) {
  const Real size = absolute(z);
  const NodeId zero = size.is(Comparison::kEq, 0.0);
  return {z.re.where(zero, z.re / size), z.im.where(zero, z.im / size)};
}

/// exp(w log z); 0 to what is not 0 is 0, to 0 it is 1.
Cartesian power(const Cartesian& z, const Cartesian& w) {
  const Cartesian value = exp(multiply(w, log(z)));
  const NodeId none = absolute(z).is(Comparison::kEq, 0.0);
  const Real zero = z.re.fill(0), one = z.re.fill(1).where(absolute(w).is(Comparison::kEq, 0.0), zero);
  return {one.where(none, value.re), zero.where(none, value.im)};
}

std::optional<Cartesian> unary(Op op, const Cartesian& z) {
  switch (op) {
    case Op::kNegate:
      return Cartesian{-z.re, -z.im};
    case Op::kSign:
      return sign(z);
    case Op::kExp:
      return exp(z);
    case Op::kExpm1:
      return expm1(z);
    case Op::kLog:
      return log(z);
    case Op::kLog1p:
      return log1p(z);
    case Op::kSqrt:
      return sqrt(z);
    case Op::kRsqrt:
      return rsqrt(z);
    case Op::kSinh:
      return sinh(z);
    case Op::kCosh:
      return cosh(z);
    case Op::kTanh:
      return tanh(z);
    case Op::kLogistic:
      return logistic(z);
    case Op::kSin:
      return divided_by_i(sinh(times_i(z)));
    case Op::kCos:
      return cosh(times_i(z));
    case Op::kTan:
      return divided_by_i(tanh(times_i(z)));
    default:
      return std::nullopt;
  }
}

std::optional<Cartesian> binary(Op op, const Cartesian& a, const Cartesian& b) {
  switch (op) {
    case Op::kAdd:
      return Cartesian{a.re + b.re, a.im + b.im};
    case Op::kSubtract:
      return Cartesian{a.re - b.re, a.im - b.im};
    case Op::kMultiply:
      return multiply(a, b);
    case Op::kDivide:
      return divide(a, b);
    case Op::kPower:
      return power(a, b);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<ComplexParts> complex_function(Emitter& emit, Op op, std::span<const ComplexParts> operands) {
  const auto value = [&](std::size_t i) { return Cartesian{{emit, operands[i].re}, {emit, operands[i].im}}; };
  std::optional<Cartesian> result;
  if (operands.size() == 1) result = unary(op, value(0));
  if (operands.size() == 2) result = binary(op, value(0), value(1));
  if (!result) return std::nullopt;
  return ComplexParts{result->re.id(), result->im.id()};
}

NodeId complex_abs(Emitter& emit, ComplexParts z) { return absolute({{emit, z.re}, {emit, z.im}}).id(); }

}  // namespace stitchwork
