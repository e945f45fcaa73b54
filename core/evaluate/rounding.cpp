#include "core/evaluate/rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/evaluate/evaluator.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/graph/dtype_dispatch.h"
#include "core/graph/op.h"
#include "core/graph/window.h"

namespace stitchwork {
namespace {

/// A binary format: the largest relative error of rounding to nearest (unit roundoff), and its smallest
/// number above zero.
struct Format {
  double unit = 0, least = 0;

  /// The distance from a number other than zero to the next. Its sign and mantissa cleared, a double is the
  /// power of two below it; subnormal ones, then zero, are `least` apart.
  double ulp(double value) const {
    constexpr std::uint64_t kExponent = 0x7FFull << 52;
    const double power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & kExponent);
    return std::max(least, 2 * unit * power);
  }
};

Format format_of(DType type) {
  switch (type) {
    case DType::kF16:
      return {0x1p-11, 0x1p-24};
    case DType::kBF16:
      return {0x1p-8, 0x1p-133};
    case DType::kF32:
      return {0x1p-24, 0x1p-149};
    default:
      return {0x1p-53, 0x1p-1074};
  }
}

/// Sums and products are accumulated at least in f32.
double accumulator_unit(DType type) {
  return format_of(type == DType::kF64 ? DType::kF64 : DType::kF32).unit;
}

/// Errors in units of the last place. Two implementations that round correctly are within one of each other.
constexpr double kBasicUlps = 1;
/// CUDA's functions are within 1 to 4 (CUDA C++ Programming Guide, "Mathematical Functions", tables of
/// maximum errors; tan and pow have the largest).
constexpr double kFunctionUlps = 4;

/// Whether the result of + - * / or a square root is exact: then every implementation gives it.
bool is_exact(Op op, double a, double b, double result) {
  switch (op) {
    case Op::kAdd:
    case Op::kSubtract: {
      if (op == Op::kSubtract) b = -b;
      const double sum = a + b, of_b = sum - a;
      const double lost = (a - (sum - of_b)) + (b - of_b);  // two-sum (Knuth): what the double sum lost
      return sum == result && lost == 0;
    }
    case Op::kMultiply:
      return std::fma(a, b, -result) == 0;
    case Op::kDivide:
      return std::fma(result, b, -a) == 0;
    case Op::kSqrt:
      return std::fma(result, result, -a) == 0;
    case Op::kConvert:
    case Op::kReducePrecision:
      return a == result;
    default:
      return false;
  }
}

/// The largest error that the approximations of --use_fast_math add to f(a, b) = result (CUDA C++ Programming
/// Guide, "Intrinsic Functions"; PTX ISA, ex2, lg2, sin, cos, tanh .approx). Subnormal numbers are zero.
double fast_math_error(Op op, double a, double b, double result) {
  const double size = std::abs(result);
  switch (op) {
    case Op::kDivide:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kCbrt:
      return 0x1p-21 * size;
    case Op::kExp:
      return 0x1p-22 * (2 + std::abs(a)) * size;  // the rounded argument of ex2
    case Op::kLogistic:
    case Op::kExpm1:
      return 0x1p-22 * (2 + std::abs(a)) * (size + (op == Op::kExpm1 ? 1 : 0));
    case Op::kPower:
      return 0x1p-20 * (2 + std::abs(b * std::log2(std::abs(a)))) * size;
    case Op::kLog:
    case Op::kLog1p:
      return 0x1p-21 + 0x1p-21 * size;
    case Op::kSin:
    case Op::kCos:
      return 0x1p-20 * (1 + std::abs(a));
    case Op::kTan:
      return 0x1p-19 * (1 + std::abs(a)) * (1 + size * size);
    case Op::kTanh:
      return 0x1p-10 * size + 0x1p-22;
    default:
      return 0x1p-21 * size;
  }
}

bool is_rounded(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kConvert:
    case Op::kReducePrecision:
      return true;
    default:
      return def(op).cls == OpClass::kHeavyElementwise;
  }
}

bool are_integers(Values operands) {
  return std::ranges::all_of(operands, [](const Literal* operand) {
    if (!is_floating(operand->shape.dtype)) return true;
    for (std::int64_t i = 0, n = operand->shape.elements_count(); i < n; ++i)
      if (const double x = operand->get_double(i); x != std::floor(x)) return false;
    return true;
  });
}

Literal absolute(const Literal& literal) {
  Literal result = literal;
  with_storage(literal.shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    if constexpr (std::is_floating_point_v<typename S::Value>)
      for (std::int64_t i = 0, n = literal.shape.elements_count(); i < n; ++i) {
        auto& stored = result.data<typename S::Stored>()[i];
        stored = S::narrow(std::abs(S::widen(stored)));
      }
  });
  return result;
}

/// Whether the op adds up: a product, or a reduction, window or scatter by addition.
bool adds_up(const Graph& graph, const Node& node) {
  switch (node.op) {
    case Op::kDot:
    case Op::kConvolution:
      return true;
    case Op::kReduce:
    case Op::kReduceWindow:
    case Op::kScatter:
      return simple_reducer(graph, applied(node)) == Op::kAdd;
    case Op::kSelectAndScatter:
      return simple_reducer(graph, node.attrs.computations.at(1)) == Op::kAdd;
    default:
      return false;
  }
}

/// How many values one result combines, at most.
double combined_values(const Node& node, const Literal& input) {
  double count = 1;
  if (node.op == Op::kReduceWindow) {
    for (const WindowDim& dim : window_of(node, input.shape.rank())) count *= static_cast<double>(dim.size);
    return count;
  }
  if (node.op != Op::kReduce) return static_cast<double>(input.shape.elements_count());
  for (const std::int64_t d : node.attrs.dimensions)
    count *= static_cast<double>(input.shape.dims[static_cast<std::size_t>(d)]);
  return count;
}

}  // namespace

void Rounding::perturb_elementwise(const Node& node, Values operands, Literal& result) {
  const Op op = node.op;
  const DType from = operands[0]->shape.dtype;
  if (op == Op::kConvert && !is_floating(from)) return;  // every implementation rounds integers alike
  const Format format = format_of(result.shape.dtype);
  const double ulps = def(op).cls == OpClass::kHeavyElementwise ? kFunctionUlps : kBasicUlps;
  Format rounded = format;
  if (op == Op::kReducePrecision) {
    const auto bits = static_cast<int>(other_integer(node, "mantissa_bits", 52));
    rounded = {std::max(format.unit, std::ldexp(1.0, -bits - 1)), format.least};
  }
  const bool fast = arithmetic_.fast_math && result.shape.dtype != DType::kF64;
  with_storage(result.shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    if constexpr (std::is_floating_point_v<typename S::Value>) {
      auto* out = result.data<typename S::Stored>();
      const bool one_b = operands.size() > 1 && operands[1]->shape.elements_count() == 1;
      const bool one_a = operands[0]->shape.elements_count() == 1;
      const auto value = [&](const Literal& literal, std::int64_t i) {
        if (literal.shape.dtype == result.shape.dtype)
          return static_cast<double>(S::widen(literal.data<typename S::Stored>()[i]));
        return literal.get_double(i);
      };
      for (std::int64_t i = 0, n = result.shape.elements_count(); i < n; ++i) {
        const auto v = static_cast<double>(S::widen(out[i]));
        if (v == 0 || !std::isfinite(v)) continue;
        const double a = value(*operands[0], one_a ? 0 : i);
        const double b = operands.size() > 1 ? value(*operands[1], one_b ? 0 : i) : 0;
        const bool approximate = fast && (op == Op::kDivide || op == Op::kSqrt);
        if (!approximate && is_exact(op, a, b, v)) continue;
        double error = ulps * rounded.ulp(v);
        if (fast) error += fast_math_error(op, a, b, v) + 0x1p-126;
        out[i] = S::narrow(static_cast<typename S::Value>(v + draw() * error));
      }
    }
  });
}

void Rounding::perturb_by_ulps(double ulps, Literal& result) {
  const Format format = format_of(result.shape.dtype);
  for (std::int64_t i = 0, n = result.shape.elements_count(); i < n; ++i)
    if (const double v = result.get_double(i); v != 0 && std::isfinite(v))
      result.set_double(i, v + draw() * ulps * format.ulp(v));
}

/// Any order of summation errs by at most a few units of the accumulator times the sum of the terms' sizes
/// where partial sums are paired or blocked (N. J. Higham, "Accuracy and Stability of Numerical Algorithms",
/// section 4.2); that sum is what the same op gives for absolute values. A thread adds its share of a
/// reduction one by one: how much that loses is measured (chained_sum_errors).
void Rounding::perturb_sum(const Graph& graph, const Computation& computation, const Node& node,
                           Values operands, Literal& result) {
  std::vector<Literal> sizes;
  std::vector<const Literal*> arguments;
  sizes.reserve(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool selects = node.op == Op::kSelectAndScatter && i == 0;  // chooses where to add, is not added
    const bool moves = selects || !is_floating(operands[i]->shape.dtype);
    arguments.push_back(moves ? operands[i] : &sizes.emplace_back(absolute(*operands[i])));
  }
  const Literal size = evaluate_node(graph, computation, node, arguments);
  const Format format = format_of(result.shape.dtype);
  double unit = 2 * accumulator_unit(result.shape.dtype);
  const bool product = node.op == Op::kDot || node.op == Op::kConvolution;
  if (product && arithmetic_.tf32 && operands[0]->shape.dtype == DType::kF32) unit += 0x1p-10;
  const double exact_below = product && arithmetic_.tf32 ? 0 : 1 / accumulator_unit(result.shape.dtype);
  const bool integers = are_integers(operands);
  std::vector<double> chained;
  if (node.op == Op::kReduce) chained = chained_sum_errors(graph, node, operands);
  for (std::int64_t i = 0, n = result.shape.elements_count(); i < n; ++i) {
    const double v = result.get_double(i), terms = size.get_double(i);
    if (!std::isfinite(v)) continue;
    const bool exact = integers && terms <= exact_below && terms * format.unit <= 1;
    if (exact || terms == 0) continue;
    const double last = v == 0 ? format.least : format.ulp(v);
    double error = unit * terms + last;
    if (const auto at = static_cast<std::size_t>(i); at < chained.size() && std::isfinite(chained[at]))
      error += chained[at];
    result.set_double(i, v + draw() * error);
  }
}

void Rounding::perturb(const Graph& graph, const Computation& computation, const Node& node, Values operands,
                       Literal& result) {
  if (node.op == Op::kReduce && result.shape.is_tuple) {
    if (simple_reducer(graph, applied(node))) return;
    for (Literal& element : result.elements)
      if (is_floating(element.shape.dtype)) perturb_by_ulps(kFunctionUlps, element);
    return;
  }
  if (result.shape.is_tuple || !is_floating(result.shape.dtype)) return;
  if (adds_up(graph, node)) return perturb_sum(graph, computation, node, operands, result);
  switch (node.op) {
    case Op::kMap:
      return perturb_by_ulps(kFunctionUlps, result);
    case Op::kReduce:
    case Op::kReduceWindow:
    case Op::kScatter: {
      const std::optional<Op> op = simple_reducer(graph, applied(node));
      if (op && *op != Op::kMultiply) return;  // the largest and smallest are not rounded
      return perturb_by_ulps(
          std::max(kFunctionUlps, kBasicUlps * std::sqrt(combined_values(node, *operands[0]))), result);
    }
    default:
      if (is_elementwise(node.op) && is_rounded(node.op)) perturb_elementwise(node, operands, result);
  }
}

}  // namespace stitchwork
