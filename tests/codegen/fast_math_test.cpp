// Approximations of float functions, where they are asked for.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "codegen/compile/lines.h"
#include "codegen/kernel.h"
#include "tests/codegen/float_ops.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;

/// x -> each function of x, as outputs.
Graph functions_of(const std::string& dtype, int elements) {
  const std::vector<std::pair<const char*, const char*>> functions = {
      {"e", "exponential(x)"}, {"l", "log(x)"},      {"t", "tanh(x)"},      {"s", "sqrt(x)"},
      {"r", "rsqrt(x)"},       {"g", "logistic(x)"}, {"q", "divide(x, y)"}, {"m", "maximum(x, y)"}};
  std::string ops, names, types;
  const std::string type = fmt::format("{}[{}]", dtype, elements);
  for (const auto& [name, text] : functions) {
    ops += fmt::format("  {} = {} {}\n", name, type, text);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    types += fmt::format("{}{}", types.empty() ? "" : ", ", type);
  }
  return testing::graph_of(
      fmt::format("HloModule m\nENTRY main {{\n  x = {0} parameter(0)\n  y = {0} parameter(1)\n{1}  ROOT o = "
                  "({2}) tuple({3})\n}}\n",
                  type, ops, types, names));
}

struct Ran {
  Executable executable;
  RunResult run;
};

Ran ran(const Graph& graph, const std::string& compiler, bool fast_math, const std::vector<Literal>& inputs) {
  const Device& target = device("a100");
  CompileOptions options;
  options.compiler = compiler;
  options.ptxas = false;
  options.fast_math = fast_math;
  Ran result{compile(graph, target, make_plan(graph, target, "xla"), options), {}};
  result.run = run_simulated(graph, target, result.executable, inputs);
  EXPECT_TRUE(result.run.findings.empty());
  return result;
}

double instructions(const RunResult& run) {
  double sum = 0;
  for (const KernelRun& kernel : run.kernels) sum += static_cast<double>(kernel.counters.inst_executed);
  return sum;
}

/// Source and PTX of all kernels.
std::pair<std::string, std::string> texts(const Executable& executable) {
  std::pair<std::string, std::string> result;
  for (const CompiledKernel& kernel : executable.kernels)
    result.first += kernel.cuda, result.second += kernel.ptx;
  return result;
}

std::vector<Literal> inputs_of(const Graph& graph, const std::vector<double>& x,
                               const std::vector<double>& y) {
  std::vector<Literal> inputs;
  const Computation& computation = graph.entry_computation();
  for (const NodeId parameter : computation.parameters)
    inputs.push_back(Literal::zeros(computation.node(parameter).shape));
  for (std::size_t i = 0; i < x.size(); ++i) {
    inputs[0].set_double(static_cast<std::int64_t>(i), x[i]);
    inputs[1].set_double(static_cast<std::int64_t>(i), y[i]);
  }
  return inputs;
}

TEST(FastMath, IsNearThePreciseResultInFewerInstructions) {
  SKIP_WITHOUT_COMPILER();
  constexpr int kElements = 1000;
  // The absolute error of exp grows with its argument: exp2's is of 22 bits of x log2(e).
  constexpr double kRelative = 4e-6, kAbsolute = 4e-7;
  std::vector<double> x, y;
  for (int i = 0; i < kElements; ++i) {
    x.push_back(0.01 + 0.012 * i);
    y.push_back(0.5 + std::fmod(0.37 * i, 7.0));
  }
  for (const std::string& compiler : testing::installed_compilers())
    for (const char* dtype : {"f32", "bf16"}) {
      SCOPED_TRACE(fmt::format("{} {}", compiler, dtype));
      const Graph graph = functions_of(dtype, kElements);
      const std::vector<Literal> inputs = inputs_of(graph, x, y);
      const Ran precise = ran(graph, compiler, false, inputs), fast = ran(graph, compiler, true, inputs);
      const double ulp = dtype == std::string("f32") ? 0 : 1.0 / 128;
      for (std::size_t o = 0; o < precise.run.outputs.size(); ++o)
        for (std::int64_t i = 0; i < kElements; ++i) {
          const double wanted = precise.run.outputs[o].get_double(i), got = fast.run.outputs[o].get_double(i);
          ASSERT_NEAR(got, wanted, kAbsolute + std::abs(wanted) * (kRelative + ulp))
              << "output " << o << " of " << inputs[0].get_double(i);
        }
      EXPECT_LT(instructions(fast.run), 0.75 * instructions(precise.run));
    }
}

TEST(FastMath, KeepsNanAndInfinities) {
  SKIP_WITHOUT_COMPILER();
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> x = {inf, -inf, nan, 0, -1, 3, 120, -120}, y = {1, 1, 1, nan, 0, 0, 2, 2};
  const Graph graph = functions_of("f32", static_cast<int>(x.size()));
  const std::vector<Literal> inputs = inputs_of(graph, x, y);
  for (const std::string& compiler : testing::installed_compilers()) {
    SCOPED_TRACE(compiler);
    const Ran precise = ran(graph, compiler, false, inputs), fast = ran(graph, compiler, true, inputs);
    for (std::size_t o = 0; o < precise.run.outputs.size(); ++o)
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double wanted = precise.run.outputs[o].get_double(static_cast<std::int64_t>(i)),
                     got = fast.run.outputs[o].get_double(static_cast<std::int64_t>(i));
        EXPECT_EQ(std::isnan(got), std::isnan(wanted)) << "output " << o << " of " << x[i] << ", " << y[i];
        if (std::isinf(wanted)) {
          EXPECT_EQ(got, wanted) << "output " << o << " of " << x[i] << ", " << y[i];
        }
      }
  }
}

/// How far an op's approximation may be, relative to the result and to one: what docs/codegen.md says of it,
/// on numbers of magnitude 0.06 to 8.
std::pair<double, double> allowed_error(Op op, DType type) {
  const double rounded = type == DType::kF16 ? 0x1p-10 : type == DType::kBF16 ? 0x1p-7 : 0;
  switch (op) {
    case Op::kSin:
    case Op::kCos:
      return {rounded, type == DType::kF64 ? 1e-14 : 4e-6};  // 2^-20.5 within two pi, then worse
    case Op::kTan:
      return {rounded + (type == DType::kF64 ? 1e-12 : 2e-3), 1e-5};
    case Op::kPower:
      return {rounded + 1e-5, 0};
    default:
      return {rounded + (type == DType::kF64 ? 1e-12 : 1e-5), type == DType::kF64 ? 0 : 2e-6};
  }
}

class FastMathOf : public ::testing::TestWithParam<DType> {};

TEST_P(FastMathOf, EveryOpIsExecutedAndNearTheTruth) {
  SKIP_WITHOUT_COMPILER();
  const std::vector<testing::FloatOp>& ops = testing::float_ops();
  const std::vector<Literal> inputs = testing::all_pairs(GetParam(), testing::ordinary_values());
  const std::int64_t elements = inputs[0].shape.elements_count();
  const Graph graph = testing::graph_of_ops(GetParam(), elements, ops);
  for (const std::string& compiler : testing::installed_compilers())
    for (const char* on : {"v100", "a100"}) {
      const std::vector<Literal> results = testing::run_in_one_kernel(graph, on, compiler, true, inputs);
      ASSERT_EQ(results.size(), ops.size());
      for (std::size_t o = 0; o < ops.size(); ++o) {
        const auto [relative, absolute] = allowed_error(ops[o].op, GetParam());
        for (std::int64_t i = 0; i < elements; ++i) {
          const double a = inputs[0].get_double(i), b = inputs[1].get_double(i);
          const auto wanted =
              static_cast<double>(testing::in_type(ops[o].reference(a, b), float_format(GetParam())));
          const double got = results[o].get_double(i);
          if (!std::isfinite(wanted)) {
            ASSERT_TRUE(std::isnan(wanted) ? std::isnan(got) : got == wanted)
                << compiler << " " << def(ops[o].op).name << " " << a << ", " << b;
          } else {
            // Numbers below the normal ones are zero.
            const double subnormal = std::ldexp(1.0, GetParam() == DType::kF16 ? -14 : -126);
            ASSERT_NEAR(got, wanted, relative * std::abs(wanted) + absolute + subnormal)
                << compiler << " " << name(GetParam()) << " " << def(ops[o].op).name << " of " << a << ", "
                << b;
          }
        }
      }
    }
}

TEST_P(FastMathOf, NanAndInfinitiesStay) {
  SKIP_WITHOUT_COMPILER();
  const FloatFormat format = float_format(GetParam());
  const double smallest_normal = std::ldexp(1.0, 2 - (1 << (format.exponent_bits - 1)));
  std::vector<double> values = testing::special_values(GetParam());
  std::erase_if(values, [&](double v) { return v != 0 && std::abs(v) < smallest_normal; });
  const std::vector<Literal> inputs = testing::all_pairs(GetParam(), values);
  const std::vector<testing::FloatOp>& ops = testing::float_ops();
  const Graph graph = testing::graph_of_ops(GetParam(), inputs[0].shape.elements_count(), ops);
  for (const std::string& compiler : testing::installed_compilers())
    for (const char* on : {"v100", "a100"}) {
      const std::vector<Literal> results = testing::run_in_one_kernel(graph, on, compiler, true, inputs);
      for (std::size_t o = 0; o < ops.size(); ++o)
        for (std::int64_t i = 0; i < inputs[0].shape.elements_count(); ++i) {
          const double a = inputs[0].get_double(i), b = inputs[1].get_double(i),
                       got = results[o].get_double(i);
          const auto wanted = static_cast<double>(testing::in_type(ops[o].reference(a, b), format));
          // What is near the largest number may round beyond it.
          if (std::abs(wanted) > 1e38 && std::isfinite(wanted) && GetParam() != DType::kF64) continue;
          ASSERT_TRUE(std::isnan(wanted)      ? std::isnan(got)
                      : std::isfinite(wanted) ? std::isfinite(got)
                                              : got == wanted)
              << compiler << " " << on << " " << name(GetParam()) << " " << def(ops[o].op).name << " of " << a
              << ", " << b << " gives " << got << ", not " << wanted;
        }
    }
}

TEST_P(FastMathOf, EveryConversionIsExecuted) {
  SKIP_WITHOUT_COMPILER();
  const std::vector<Literal> inputs = testing::all_pairs(GetParam(), testing::ordinary_values());
  std::vector<std::pair<DType, std::string>> conversions;
  for (const DType to :
       {DType::kPred, DType::kS8, DType::kS16, DType::kS32, DType::kS64, DType::kU8, DType::kU16, DType::kU32,
        DType::kU64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64})
    if (to != GetParam()) conversions.emplace_back(to, "convert(a)");
  const Graph graph =
      testing::graph_of_expressions(GetParam(), inputs[0].shape.elements_count(), conversions);
  const std::vector<Literal> expected = evaluate(graph, inputs);
  for (const std::string& compiler : testing::installed_compilers()) {
    const std::vector<Literal> results = testing::run_in_one_kernel(graph, "v100", compiler, true, inputs);
    for (std::size_t r = 0; r < results.size(); ++r)
      EXPECT_EQ(results[r].bytes, expected[r].bytes) << compiler << " " << name(conversions[r].first);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, FastMathOf,
                         ::testing::Values(DType::kF16, DType::kBF16, DType::kF32, DType::kF64),
                         [](const auto& info) { return std::string(name(info.param)); });

/// Where a power has signs, zeros and infinities to keep: by exponents the graph knows and by others.
TEST(FastMath, PowerKeepsItsSpecialValues) {
  SKIP_WITHOUT_COMPILER();
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0,    1,   0.5,  2,        3,        4,   1.5, 7,  0.3333333432674408,
                                1e30, inf, 1e-3, 16777216, 33554435, 2.5, 17,  100};
  for (std::size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
  values.push_back(std::nan(""));
  const std::vector<Literal> inputs = testing::all_pairs(DType::kF32, values);
  const std::int64_t elements = inputs[0].shape.elements_count();
  std::vector<std::pair<DType, std::string>> powers = {{DType::kF32, "power(a, b)"}};
  const std::vector<double> exponents = {0, 1, 2, 3, 4, 7, 16, 64, -1, -2, -3, 0.5};
  std::string constants;
  for (std::size_t e = 0; e < exponents.size(); ++e) {
    constants +=
        fmt::format("  c{0} = f32[] constant({1})\n  b{0} = f32[{2}] broadcast(c{0}), dimensions={{}}\n", e,
                    exponents[e], elements);
    powers.emplace_back(DType::kF32, fmt::format("power(a, b{})", e));
  }
  const Graph graph = testing::graph_of_expressions(DType::kF32, elements, powers, constants);
  for (const std::string& compiler : testing::installed_compilers()) {
    const std::vector<Literal> results = testing::run_in_one_kernel(graph, "v100", compiler, true, inputs);
    for (std::size_t p = 0; p < powers.size(); ++p)
      for (std::int64_t i = 0; i < elements; ++i) {
        const double x = inputs[0].get_double(i), y = p == 0 ? inputs[1].get_double(i) : exponents[p - 1];
        const double got = results[p].get_double(i), exact = std::pow(x, y);
        const double wanted = static_cast<float>(exact);
        SCOPED_TRACE(fmt::format("{}: {} to the power {}{} gives {}, not {}", compiler, x, y,
                                 p == 0 ? "" : ", a constant,", got, wanted));
        ASSERT_EQ(std::isnan(got), std::isnan(wanted));
        if (std::isnan(wanted)) continue;
        ASSERT_EQ(std::signbit(got), std::signbit(wanted));
        // The logarithm is good to 2^-22, which the exponent multiplies; subnormal numbers are zero.
        if (std::isinf(wanted) || std::abs(wanted) < 0x1p-126)
          ASSERT_NEAR(std::isinf(got) ? 1 : got, std::isinf(wanted) ? 1 : 0, 0x1p-126);
        else
          ASSERT_NEAR(got, wanted, std::abs(wanted) * (1e-5 + (std::isnan(y) ? 0 : 0x1p-22 * std::abs(y))));
      }
  }
}

TEST(FastMath, IsNotWithoutBeingAskedFor) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = functions_of("f32", 8);
  const std::vector<Literal> inputs = inputs_of(graph, {}, {});
  for (const std::string& compiler : testing::installed_compilers()) {
    SCOPED_TRACE(compiler);
    const Executable precise = ran(graph, compiler, false, inputs).executable,
                     fast = ran(graph, compiler, true, inputs).executable;
    for (std::size_t k = 0; k < fast.kernels.size(); ++k)  // each has its entry in the cache
      EXPECT_NE(precise.kernels[k].source_sha256, fast.kernels[k].source_sha256);
    const auto [precise_cuda, precise_ptx] = texts(precise);
    const auto [fast_cuda, fast_ptx] = texts(fast);
    EXPECT_FALSE(has_fast_math(precise_cuda));
    EXPECT_TRUE(has_fast_math(fast_cuda));
    EXPECT_THAT(precise_ptx, HasSubstr("div.rn.f32"));
    EXPECT_THAT(precise_ptx, HasSubstr("sqrt.rn.f32"));
    EXPECT_THAT(fast_ptx, Not(HasSubstr(".rn.f32")));
    EXPECT_THAT(fast_ptx, HasSubstr("lg2.approx.ftz.f32"));
  }
}

TEST(FastMath, IsInKernelsThatAreRead) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = functions_of("f32", 8);
  const FusionPlan plan = make_plan(graph, device("a100"), "xla");
  CompileOptions options;
  options.fast_math = true;
  options.cache_dir = "none";
  EXPECT_THAT(compile_with_lines(graph, device("a100"), plan.kernels.at(0), options),
              HasSubstr("ex2.approx.ftz.f32"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
