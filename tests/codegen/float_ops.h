// Every element-wise op of floats with a function of the C library in long double beside it, on special and
// on ordinary values: what the evaluator and generated code are held to.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/evaluate/evaluator.h"
#include "core/graph/float_semantics.h"
#include "tests/codegen/harness.h"

namespace stitchwork::testing {

using Wide = long double;

/// An op of one or two floats that gives a float.
struct FloatOp {
  Op op;
  Wide (*reference)(Wide, Wide);
};

inline Wide wide_sign(Wide a, Wide) { return a > 0 ? 1 : a < 0 ? -1 : a; }
inline Wide wide_logistic(Wide a, Wide) { return 1 / (1 + std::exp(-a)); }
/// NaN if either is NaN; -0 is less than +0.
inline Wide wide_maximum(Wide a, Wide b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}
inline Wide wide_minimum(Wide a, Wide b) { return -wide_maximum(-a, -b); }

inline const std::vector<FloatOp>& float_ops() {
  static const std::vector<FloatOp> ops = {
      {Op::kAbs, [](Wide a, Wide) { return std::fabs(a); }},
      {Op::kNegate, [](Wide a, Wide) { return -a; }},
      {Op::kSign, wide_sign},
      {Op::kFloor, [](Wide a, Wide) { return std::floor(a); }},
      {Op::kCeil, [](Wide a, Wide) { return std::ceil(a); }},
      {Op::kRoundNearestAfz, [](Wide a, Wide) { return std::round(a); }},
      {Op::kRoundNearestEven, [](Wide a, Wide) { return std::nearbyint(a); }},
      {Op::kExp, [](Wide a, Wide) { return std::exp(a); }},
      {Op::kExpm1, [](Wide a, Wide) { return std::expm1(a); }},
      {Op::kLog, [](Wide a, Wide) { return std::log(a); }},
      {Op::kLog1p, [](Wide a, Wide) { return std::log1p(a); }},
      {Op::kTanh, [](Wide a, Wide) { return std::tanh(a); }},
      {Op::kLogistic, wide_logistic},
      {Op::kSqrt, [](Wide a, Wide) { return std::sqrt(a); }},
      {Op::kRsqrt, [](Wide a, Wide) { return 1 / std::sqrt(a); }},
      {Op::kCbrt, [](Wide a, Wide) { return std::cbrt(a); }},
      {Op::kSin, [](Wide a, Wide) { return std::sin(a); }},
      {Op::kCos, [](Wide a, Wide) { return std::cos(a); }},
      {Op::kTan, [](Wide a, Wide) { return std::tan(a); }},
      {Op::kErf, [](Wide a, Wide) { return std::erf(a); }},
      {Op::kSinh, [](Wide a, Wide) { return std::sinh(a); }},
      {Op::kCosh, [](Wide a, Wide) { return std::cosh(a); }},
      {Op::kAsin, [](Wide a, Wide) { return std::asin(a); }},
      {Op::kAcos, [](Wide a, Wide) { return std::acos(a); }},
      {Op::kAsinh, [](Wide a, Wide) { return std::asinh(a); }},
      {Op::kAcosh, [](Wide a, Wide) { return std::acosh(a); }},
      {Op::kAtanh, [](Wide a, Wide) { return std::atanh(a); }},
      {Op::kAdd, [](Wide a, Wide b) { return a + b; }},
      {Op::kSubtract, [](Wide a, Wide b) { return a - b; }},
      {Op::kMultiply, [](Wide a, Wide b) { return a * b; }},
      {Op::kDivide, [](Wide a, Wide b) { return a / b; }},
      {Op::kRemainder, [](Wide a, Wide b) { return std::fmod(a, b); }},
      {Op::kMaximum, wide_maximum},
      {Op::kMinimum, wide_minimum},
      {Op::kPower, [](Wide a, Wide b) { return std::pow(a, b); }},
      {Op::kAtan2, [](Wide a, Wide b) { return std::atan2(a, b); }},
  };
  return ops;
}

/// Values of a type that tell careless code from careful code.
inline std::vector<double> special_values(DType type) {
  const FloatFormat format = float_format(type);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const double smallest_normal = std::ldexp(1.0, 1 - bias), ulp = std::ldexp(1.0, -format.mantissa_bits);
  const double smallest = smallest_normal * ulp;
  const double largest = std::ldexp(2 - ulp, bias);
  std::vector<double> values = {std::numeric_limits<double>::quiet_NaN()};
  for (const double v : {0.0,
                         smallest,
                         smallest_normal - smallest,
                         smallest_normal,
                         largest,
                         std::numeric_limits<double>::infinity(),
                         1.0,
                         1 + ulp,
                         1 - ulp / 2,
                         0.5,
                         1.5,
                         2.0,
                         2.5,
                         3.0,
                         0.3,
                         1e-3,
                         1e-5,
                         3.140625,
                         7.75,
                         20.0,
                         88.5,
                         104.5,
                         16777216.0,
                         16777217.0,
                         1e17,
                         709.5,
                         1e30,
                         1e300}) {
    if (v > largest && !std::isinf(v)) continue;
    values.push_back(v);
    values.push_back(-v);
  }
  return values;
}

/// Ordinary numbers of both signs.
inline std::vector<double> ordinary_values() {
  std::vector<double> values;
  for (int i = 0; i < 25; ++i) values.push_back((i % 2 == 0 ? 1 : -1) * (0.0625 + 0.3125 * i));
  return values;
}

/// Literals of all pairs of values.
inline std::vector<Literal> all_pairs(DType type, const std::vector<double>& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<Literal> pairs(2, Literal::zeros(Shape::array(type, {n * n})));
  for (std::int64_t i = 0; i < n * n; ++i) {
    pairs[0].set_double(i, values[static_cast<std::size_t>(i % n)]);
    pairs[1].set_double(i, values[static_cast<std::size_t>(i / n)]);
  }
  return pairs;
}

/// HLO that gives each of the expressions, with their types, in parameters a and b and in what `lines`
/// define.
inline Graph graph_of_expressions(DType type, std::int64_t elements,
                                  const std::vector<std::pair<DType, std::string>>& expressions,
                                  const std::string& lines = "") {
  std::string body =
      fmt::format("  a = {0}[{1}] parameter(0)\n  b = {0}[{1}] parameter(1)\n", name(type), elements);
  body += lines;
  std::string types, names;
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    const std::string shape = fmt::format("{}[{}]", name(expressions[i].first), elements);
    body += fmt::format("  r{} = {} {}\n", i, shape, expressions[i].second);
    types += (i == 0 ? "" : ", ") + shape;
    names += fmt::format("{}r{}", i == 0 ? "" : ", ", i);
  }
  return canonicalize(parse_hlo(
      fmt::format("HloModule m\nENTRY main {{\n{}  ROOT all = ({}) tuple({})\n}}\n", body, types, names),
      "expressions.hlo"));
}

inline Graph graph_of_ops(DType type, std::int64_t elements, const std::vector<FloatOp>& ops) {
  std::vector<std::pair<DType, std::string>> expressions;
  for (const FloatOp& op : ops) {
    const OpDef& row = def(op.op);
    expressions.emplace_back(type, fmt::format("{}({})", row.name, row.max_operands == 2 ? "a, b" : "a"));
  }
  return graph_of_expressions(type, elements, expressions);
}

/// One kernel that computes every result of the graph, run in the simulator.
inline std::vector<Literal> run_in_one_kernel(const Graph& graph, const std::string& on,
                                              const std::string& compiler, bool fast_math,
                                              const std::vector<Literal>& inputs) {
  const Computation& computation = graph.entry_computation();
  const Node& root = computation.node(computation.root);
  std::vector<std::string> results;
  for (const NodeId operand : root.operands) results.push_back(computation.node(operand).name);
  const std::int64_t elements = inputs[0].shape.elements_count();
  const Device& target = device(on);
  const testing::MappingFields mapping = mapping_of(testing::MappingKind::kElementwise, elements, 1, 64);
  const FusionPlan plan = assemble(graph, target, "test", {one_group(graph, results, mapping, 64)});
  CompileOptions options;
  options.compiler = compiler;
  options.ptxas = false;
  options.fast_math = fast_math;
  RunResult run = run_simulated(graph, target, compile(graph, target, plan, options), inputs);
  for (const sim::Finding& finding : run.findings)
    ADD_FAILURE() << compiler << ": " << sim::name(finding.kind) << ": " << finding.message;
  return std::move(run.outputs);
}

/// Beyond half a unit above the largest number a type has infinity.
inline Wide in_type(Wide value, FloatFormat format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const Wide beyond = std::ldexp(Wide{2} - std::ldexp(Wide{1}, -format.mantissa_bits - 1), bias);
  if (std::isnan(value) || std::fabs(value) < beyond) return value;
  return std::copysign(std::numeric_limits<Wide>::infinity(), value);
}

/// Distance of two finite numbers in units of the last place of `wanted` as a float of this format.
inline double ulps_between(double got, Wide wanted, FloatFormat format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = wanted == 0 ? 1 - bias : std::max(std::ilogb(wanted), 1 - bias);
  return static_cast<double>(std::fabs(static_cast<Wide>(got) - wanted) /
                             std::ldexp(Wide{1}, exponent - format.mantissa_bits));
}

}  // namespace stitchwork::testing
