// One kernel an element-wise op: a scalar function, spread over vectors of every dtype it takes.
#include "core/evaluate/evaluator_elementwise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/base/error.h"
#include "core/evaluate/scalar_ops.h"
#include "core/graph/dtype_dispatch.h"
#include "core/graph/float_semantics.h"

namespace stitchwork {
namespace {

using namespace elementwise_kernels;

using Kernel = void (*)(const Node&, Values, Literal&);

/// result[i] = f(a[i]), both of S's type.
template <typename F>
void unary(const Node& node, Values operands, Literal& result) {
  with_storage(result.shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    using T = typename S::Value;
    if constexpr (std::is_invocable_v<F, T>) {
      const auto* a = operands[0]->data<typename S::Stored>();
      auto* out = result.data<typename S::Stored>();
      const std::int64_t n = result.shape.elements_count(), sa = step(*operands[0]);
      for (std::int64_t i = 0; i < n; ++i) out[i] = S::narrow(static_cast<T>(F{}(S::widen(a[i * sa]))));
    } else {
      refuse(node, result.shape.dtype);
    }
  });
}

template <typename F>
void binary(const Node& node, Values operands, Literal& result) {
  with_storage(result.shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    using T = typename S::Value;
    if constexpr (std::is_invocable_v<F, T, T>) {
      const auto* a = operands[0]->data<typename S::Stored>();
      const auto* b = operands[1]->data<typename S::Stored>();
      auto* out = result.data<typename S::Stored>();
      const std::int64_t n = result.shape.elements_count();
      const std::int64_t sa = step(*operands[0]), sb = step(*operands[1]);
      if (sa == 1 && sb == 1) {
        for (std::int64_t i = 0; i < n; ++i)
          out[i] = S::narrow(static_cast<T>(F{}(S::widen(a[i]), S::widen(b[i]))));
      } else {
        for (std::int64_t i = 0; i < n; ++i)
          out[i] = S::narrow(static_cast<T>(F{}(S::widen(a[i * sa]), S::widen(b[i * sb]))));
      }
    } else {
      refuse(node, result.shape.dtype);
    }
  });
}

template <typename T>
concept FloatingPoint = std::is_floating_point_v<T>;
template <typename T>
concept Integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <typename T>
concept Number = FloatingPoint<T> || Integer<T>;

// Functions of the C library are computed in double and rounded: libraries of different machines agree on the
// rounded result (but for rare ties), and the reference is as exact as its type allows.
#define SW_REAL_FUNCTION(NAME, EXPRESSION)              \
  struct NAME {                                         \
    double operator()(FloatingPoint auto value) const { \
      const double x = static_cast<double>(value);      \
      return EXPRESSION;                                \
    }                                                   \
  }
SW_REAL_FUNCTION(Exp, std::exp(x));
SW_REAL_FUNCTION(Expm1, std::expm1(x));
SW_REAL_FUNCTION(Log, std::log(x));
SW_REAL_FUNCTION(Log1p, std::log1p(x));
SW_REAL_FUNCTION(Tanh, std::tanh(x));
SW_REAL_FUNCTION(Logistic, 1.0 / (1.0 + std::exp(-x)));
SW_REAL_FUNCTION(Sqrt, std::sqrt(x));
SW_REAL_FUNCTION(Rsqrt, 1.0 / std::sqrt(x));
SW_REAL_FUNCTION(Cbrt, std::cbrt(x));
SW_REAL_FUNCTION(Sin, std::sin(x));
SW_REAL_FUNCTION(Cos, std::cos(x));
SW_REAL_FUNCTION(Tan, std::tan(x));
SW_REAL_FUNCTION(Erf, std::erf(x));
SW_REAL_FUNCTION(Sinh, std::sinh(x));
SW_REAL_FUNCTION(Cosh, std::cosh(x));
SW_REAL_FUNCTION(Asin, std::asin(x));
SW_REAL_FUNCTION(Acos, std::acos(x));
SW_REAL_FUNCTION(Asinh, std::asinh(x));
SW_REAL_FUNCTION(Acosh, std::acosh(x));
SW_REAL_FUNCTION(Atanh, std::atanh(x));
SW_REAL_FUNCTION(Floor, std::floor(x));
SW_REAL_FUNCTION(Ceil, std::ceil(x));
SW_REAL_FUNCTION(RoundAfz, std::round(x));
// Not rint or nearbyint: those follow the rounding mode of the process. x - 2 round(x / 2) is -1, 0 or 1.
SW_REAL_FUNCTION(RoundEven, std::abs(x - std::trunc(x)) == 0.5 ? 2.0 * std::round(x / 2.0) : std::round(x));
#undef SW_REAL_FUNCTION

struct Identity {
  template <typename T>
  T operator()(T x) const {
    return x;
  }
};
struct Zero {
  template <typename T>
  T operator()(T) const {
    return T{};
  }
};
struct Abs {
  template <Number T>
  T operator()(T x) const {
    if constexpr (FloatingPoint<T>) return std::abs(x);
    return x < 0 ? static_cast<T>(WrappingT<T>{0} - static_cast<WrappingT<T>>(x)) : x;
  }
};
struct Negate {
  template <Number T>
  T operator()(T x) const {
    if constexpr (FloatingPoint<T>) return -x;
    return static_cast<T>(WrappingT<T>{0} - static_cast<WrappingT<T>>(x));
  }
};
struct Sign {  // of NaN is NaN, of -0 is -0
  template <Number T>
  T operator()(T x) const {
    return x > 0 ? T{1} : x < 0 ? static_cast<T>(-1) : x;
  }
};
struct Not {
  bool operator()(bool x) const { return !x; }
  template <Integer T>
  T operator()(T x) const {
    return static_cast<T>(~x);
  }
};
struct Popcnt {
  template <Integer T>
  T operator()(T x) const {
    return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
  }
};
struct Clz {
  template <Integer T>
  T operator()(T x) const {
    return static_cast<T>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(x)));
  }
};

struct Subtract {
  template <Number T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<WrappingT<T>>(a) - static_cast<WrappingT<T>>(b));
  }
};
/// Add, multiply, maximum, minimum: also of pred; and, or, xor: of integers and pred.
template <Op op>
struct Combine {
  template <typename T>
  requires(Integer<T> || std::is_same_v<T, bool> || (op != Op::kAnd && op != Op::kOr && op != Op::kXor)) T
  operator()(T a, T b) const {
    return combine<T>(op, a, b);
  }
};
struct MultiplyHigh {  // the upper half of the product
  template <Integer T>
  T operator()(T a, T b) const {
    __extension__ using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
  }
};
struct Divide {
  template <Number T>
  T operator()(T a, T b) const {
    return hlo_divide(a, b);
  }
};
struct Remainder {
  template <Number T>
  T operator()(T a, T b) const {
    return hlo_remainder(a, b);
  }
};
struct Power {
  template <Number T>
  T operator()(T a, T b) const {
    return hlo_power(a, b);
  }
};
struct Atan2 {
  double operator()(FloatingPoint auto a, FloatingPoint auto b) const {
    return std::atan2(static_cast<double>(a), static_cast<double>(b));
  }
};
template <Op op>
struct Shift {
  template <Integer T>
  T operator()(T a, T b) const {
    return hlo_shift(op, a, b);
  }
};

void is_finite(const Node& node, Values operands, Literal& result) {
  with_storage(operands[0]->shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    if constexpr (FloatingPoint<typename S::Value>) {
      const auto* a = operands[0]->data<typename S::Stored>();
      auto* out = result.data<std::uint8_t>();
      for (std::int64_t i = 0, n = result.shape.elements_count(); i < n; ++i)
        out[i] = std::isfinite(S::widen(a[i * step(*operands[0])])) ? 1 : 0;
    } else {
      refuse(node, operands[0]->shape.dtype);
    }
  });
}

/// Bits of a float as an integer that sorts -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
template <FloatingPoint T>
auto total_order_key(T value) {
  using I = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  const I bits = std::bit_cast<I>(value);
  return bits < 0 ? static_cast<I>(bits ^ std::numeric_limits<I>::max()) : bits;
}

template <typename T>
bool holds(Comparison comparison, T a, T b) {
  switch (comparison) {
    case Comparison::kEq:
      return a == b;
    case Comparison::kNe:
      return a != b;
    case Comparison::kLt:
      return a < b;
    case Comparison::kLe:
      return a <= b;
    case Comparison::kGt:
      return a > b;
    case Comparison::kGe:
      return a >= b;
  }
  return false;
}

void compare(const Node& node, Values operands, Literal& result) {
  SW_CHECK(node.attrs.comparison.has_value(), "compare '{}' has no direction", node.name);
  const Comparison comparison = *node.attrs.comparison;
  const bool total = is_total_order(node);
  with_storage(operands[0]->shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    const auto* a = operands[0]->data<typename S::Stored>();
    const auto* b = operands[1]->data<typename S::Stored>();
    auto* out = result.data<std::uint8_t>();
    const std::int64_t n = result.shape.elements_count(), sa = step(*operands[0]), sb = step(*operands[1]);
    if constexpr (FloatingPoint<typename S::Value>) {
      if (total) {
        for (std::int64_t i = 0; i < n; ++i)
          out[i] =
              holds(comparison, total_order_key(S::widen(a[i * sa])), total_order_key(S::widen(b[i * sb])));
        return;
      }
    }
    for (std::int64_t i = 0; i < n; ++i) out[i] = holds(comparison, S::widen(a[i * sa]), S::widen(b[i * sb]));
  });
}

void select(const Node&, Values operands, Literal& result) {
  with_width(result.shape.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto* p = operands[0]->data<std::uint8_t>();
    const T* a = operands[1]->data<T>();
    const T* b = operands[2]->data<T>();
    T* out = result.data<T>();
    const std::int64_t sp = step(*operands[0]), sa = step(*operands[1]), sb = step(*operands[2]);
    for (std::int64_t i = 0, n = result.shape.elements_count(); i < n; ++i)
      out[i] = p[i * sp] != 0 ? a[i * sa] : b[i * sb];
  });
}

void clamp(const Node&, Values operands, Literal& result) {
  with_storage(result.shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    const auto* low = operands[0]->data<typename S::Stored>();
    const auto* value = operands[1]->data<typename S::Stored>();
    const auto* high = operands[2]->data<typename S::Stored>();
    auto* out = result.data<typename S::Stored>();
    const std::int64_t sl = step(*operands[0]), sv = step(*operands[1]), sh = step(*operands[2]);
    for (std::int64_t i = 0, n = result.shape.elements_count(); i < n; ++i)
      out[i] = S::narrow(
          hlo_minimum(hlo_maximum(S::widen(value[i * sv]), S::widen(low[i * sl])), S::widen(high[i * sh])));
  });
}

struct KernelRow {
  Op op;
  Kernel kernel;
};

constexpr std::array kKernels = {
    KernelRow{Op::kAbs, unary<Abs>},
    KernelRow{Op::kNegate, unary<Negate>},
    KernelRow{Op::kSign, unary<Sign>},
    KernelRow{Op::kFloor, unary<Floor>},
    KernelRow{Op::kCeil, unary<Ceil>},
    KernelRow{Op::kRoundNearestAfz, unary<RoundAfz>},
    KernelRow{Op::kRoundNearestEven, unary<RoundEven>},
    KernelRow{Op::kNot, unary<Not>},
    KernelRow{Op::kPopcnt, unary<Popcnt>},
    KernelRow{Op::kClz, unary<Clz>},
    KernelRow{Op::kIsFinite, is_finite},
    KernelRow{Op::kReal, unary<Identity>},
    KernelRow{Op::kImag, unary<Zero>},
    KernelRow{Op::kConvert, convert},
    KernelRow{Op::kBitcastConvert, bitcast_convert},
    KernelRow{Op::kCopy, unary<Identity>},
    KernelRow{Op::kReducePrecision, reduce_precision_kernel},
    KernelRow{Op::kExp, unary<Exp>},
    KernelRow{Op::kExpm1, unary<Expm1>},
    KernelRow{Op::kLog, unary<Log>},
    KernelRow{Op::kLog1p, unary<Log1p>},
    KernelRow{Op::kTanh, unary<Tanh>},
    KernelRow{Op::kLogistic, unary<Logistic>},
    KernelRow{Op::kSqrt, unary<Sqrt>},
    KernelRow{Op::kRsqrt, unary<Rsqrt>},
    KernelRow{Op::kCbrt, unary<Cbrt>},
    KernelRow{Op::kSin, unary<Sin>},
    KernelRow{Op::kCos, unary<Cos>},
    KernelRow{Op::kTan, unary<Tan>},
    KernelRow{Op::kErf, unary<Erf>},
    KernelRow{Op::kSinh, unary<Sinh>},
    KernelRow{Op::kCosh, unary<Cosh>},
    KernelRow{Op::kAsin, unary<Asin>},
    KernelRow{Op::kAcos, unary<Acos>},
    KernelRow{Op::kAsinh, unary<Asinh>},
    KernelRow{Op::kAcosh, unary<Acosh>},
    KernelRow{Op::kAtanh, unary<Atanh>},
    KernelRow{Op::kAdd, binary<Combine<Op::kAdd>>},
    KernelRow{Op::kSubtract, binary<Subtract>},
    KernelRow{Op::kMultiply, binary<Combine<Op::kMultiply>>},
    KernelRow{Op::kMultiplyHigh, binary<MultiplyHigh>},
    KernelRow{Op::kDivide, binary<Divide>},
    KernelRow{Op::kRemainder, binary<Remainder>},
    KernelRow{Op::kMaximum, binary<Combine<Op::kMaximum>>},
    KernelRow{Op::kMinimum, binary<Combine<Op::kMinimum>>},
    KernelRow{Op::kPower, binary<Power>},
    KernelRow{Op::kAtan2, binary<Atan2>},
    KernelRow{Op::kAnd, binary<Combine<Op::kAnd>>},
    KernelRow{Op::kOr, binary<Combine<Op::kOr>>},
    KernelRow{Op::kXor, binary<Combine<Op::kXor>>},
    KernelRow{Op::kShiftLeft, binary<Shift<Op::kShiftLeft>>},
    KernelRow{Op::kShiftRightLogical, binary<Shift<Op::kShiftRightLogical>>},
    KernelRow{Op::kShiftRightArithmetic, binary<Shift<Op::kShiftRightArithmetic>>},
    KernelRow{Op::kCompare, compare},
    KernelRow{Op::kSelect, select},
    KernelRow{Op::kClamp, clamp},
};

const Kernel& kernel_of(Op op) {
  static const auto by_op = [] {
    std::array<Kernel, static_cast<std::size_t>(Op::kCount)> kernels{};
    for (const KernelRow& row : kKernels) kernels[static_cast<std::size_t>(row.op)] = row.kernel;
    return kernels;
  }();
  return by_op[static_cast<std::size_t>(op)];
}

}  // namespace

bool has_elementwise_kernel(Op op) { return kernel_of(op) != nullptr; }

Literal evaluate_elementwise(const Node& node, const Shape& shape, Values operands) {
  const Kernel kernel = kernel_of(node.op);
  if (kernel == nullptr) refuse(node, shape.dtype);
  Literal result = Literal::zeros(shape);
  kernel(node, operands, result);
  return result;
}

}  // namespace stitchwork
