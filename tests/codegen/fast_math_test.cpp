// Approximations of float functions, where they are asked for.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "codegen/kernel.h"
#include "codegen/lines.h"
#include "tests/codegen/harness.h"

namespace stitchwork {
namespace {

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
  options.cache_dir = STITCHWORK_BINARY_DIR "/test-kernels";
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

}  // namespace
}  // namespace stitchwork
