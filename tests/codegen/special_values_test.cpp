// Special values of floats through every element-wise op: the evaluator and generated code beside the C
// library's long double.
#include "tests/codegen/float_ops.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::FloatOp;
using testing::Wide;

/// Units in the last place that generated code may be off; what it has is in docs/codegen.md.
double allowed_ulps(Op op, DType type, double a, double b) {
  constexpr double kAllowed = 4.5;
  // Our own power of f64 takes one logarithm of 53 bits, whose error the exponent multiplies.
  const double multiplied = op == Op::kPower && type == DType::kF64 ? std::abs(b * std::log(std::abs(a))) : 0;
  return std::isnan(multiplied) ? kAllowed : kAllowed + 2 * multiplied;
}

void expect_right(const std::string& who, const FloatOp& op, const std::vector<Literal>& in,
                  const Literal& out) {
  const DType type = out.shape.dtype;
  const FloatFormat format = float_format(type);
  for (std::int64_t i = 0; i < out.shape.elements_count(); ++i) {
    const double a = in[0].get_double(i), b = in[1].get_double(i), got = out.get_double(i);
    const Wide wanted = testing::in_type(op.reference(a, b), format);
    bool right = std::isnan(wanted) == std::isnan(got);
    if (right && !std::isnan(got)) {
      right = std::signbit(got) == std::signbit(wanted) && std::isinf(got) == std::isinf(wanted);
      if (right && std::isfinite(got))
        right = testing::ulps_between(got, wanted, format) <= allowed_ulps(op.op, type, a, b);
    }
    ASSERT_TRUE(right) << fmt::format("{}: {} {}({:g}, {:g}) gives {:g}, not {:g}", who, name(type),
                                      def(op.op).name, a, b, got, static_cast<double>(wanted));
  }
}

const auto kTypes = ::testing::Values(DType::kF16, DType::kBF16, DType::kF32, DType::kF64);
std::string type_name(const ::testing::TestParamInfo<DType>& info) { return std::string(name(info.param)); }

class SpecialValues : public ::testing::TestWithParam<DType> {};

TEST_P(SpecialValues, AreWhatTheyAreInTheCLibrary) {
  const std::vector<FloatOp>& ops = testing::float_ops();
  const std::vector<Literal> inputs = testing::all_pairs(GetParam(), testing::special_values(GetParam()));
  const Graph graph = testing::graph_of_ops(GetParam(), inputs[0].shape.elements_count(), ops);
  const auto check = [&](const std::string& who, const std::vector<Literal>& results) {
    ASSERT_EQ(results.size(), ops.size()) << who;
    for (std::size_t i = 0; i < ops.size(); ++i) expect_right(who, ops[i], inputs, results[i]);
  };
  check("evaluator", evaluate(graph, inputs));
  for (const std::string& compiler : testing::installed_compilers())
    for (const char* on : {"v100", "a100"})
      check(compiler + " " + on, testing::run_in_one_kernel(graph, on, compiler, false, inputs));
}

TEST_P(SpecialValues, OfIntegerPowersAreThoseOfTheCLibrary) {
  SKIP_WITHOUT_COMPILER();
  const std::vector<Literal> inputs = testing::all_pairs(GetParam(), testing::special_values(GetParam()));
  const std::int64_t elements = inputs[0].shape.elements_count();
  const std::vector<int> exponents = {0, 1, 2, 3, 10, 64, 65, -1, -2, -7};
  std::string constants;
  std::vector<std::pair<DType, std::string>> powers;
  for (std::size_t e = 0; e < exponents.size(); ++e) {
    constants += fmt::format(
        "  c{0} = s32[] constant({1})\n  f{0} = {2}[] convert(c{0})\n"
        "  b{0} = {2}[{3}] broadcast(f{0}), dimensions={{}}\n",
        e, exponents[e], name(GetParam()), elements);
    powers.emplace_back(GetParam(), fmt::format("power(a, b{})", e));
  }
  const Graph graph = testing::graph_of_expressions(GetParam(), elements, powers, constants);
  const FloatOp power = {Op::kPower, [](Wide a, Wide b) { return std::pow(a, b); }};
  for (const std::string& compiler : testing::installed_compilers()) {
    const std::vector<Literal> results = testing::run_in_one_kernel(graph, "v100", compiler, false, inputs);
    for (std::size_t e = 0; e < exponents.size(); ++e) {
      std::vector<Literal> operands = inputs;
      for (std::int64_t i = 0; i < elements; ++i) operands[1].set_double(i, exponents[e]);
      expect_right(compiler, power, operands, results[e]);
    }
  }
}

TEST_P(SpecialValues, AreAlikeInOpsThatAreNoArithmetic) {
  SKIP_WITHOUT_COMPILER();
  const std::vector<Literal> inputs = testing::all_pairs(GetParam(), testing::special_values(GetParam()));
  std::vector<std::pair<DType, std::string>> expressions = {{DType::kPred, "is-finite(a)"},
                                                            {GetParam(), "clamp(b, a, b)"},
                                                            {GetParam(), "clamp(a, b, a)"},
                                                            {GetParam(), "copy(a)"}};
  for (const char* direction : {"EQ", "NE", "LT", "LE", "GT", "GE"})
    expressions.emplace_back(DType::kPred, fmt::format("compare(a, b), direction={}", direction));
  for (const DType to :
       {DType::kPred, DType::kS8, DType::kS16, DType::kS32, DType::kS64, DType::kU8, DType::kU16, DType::kU32,
        DType::kU64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64})
    if (to != GetParam()) expressions.emplace_back(to, "convert(a)");
  const Graph graph =
      testing::graph_of_expressions(GetParam(), inputs[0].shape.elements_count(), expressions);
  const std::vector<Literal> expected = evaluate(graph, inputs);
  for (const std::string& compiler : testing::installed_compilers())
    for (const char* on : {"v100", "a100"}) {
      const std::vector<Literal> results = testing::run_in_one_kernel(graph, on, compiler, false, inputs);
      for (std::size_t e = 0; e < expressions.size(); ++e)
        for (std::int64_t i = 0; i < inputs[0].shape.elements_count(); ++i) {
          const double got = results[e].get_double(i), wanted = expected[e].get_double(i);
          ASSERT_TRUE(std::isnan(wanted) ? std::isnan(got)
                                         : got == wanted && std::signbit(got) == std::signbit(wanted))
              << compiler << " " << on << " " << name(expressions[e].first) << " " << expressions[e].second
              << " of " << inputs[0].get_double(i) << ", " << inputs[1].get_double(i) << " gives " << got
              << ", not " << wanted;
        }
    }
}

TEST_P(SpecialValues, AreComparedInTheirTotalOrder) {
  std::vector<double> values = testing::special_values(GetParam());
  values.push_back(-std::numeric_limits<double>::quiet_NaN());
  const std::vector<Literal> inputs = testing::all_pairs(GetParam(), values);
  const std::vector<const char*> directions = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  std::vector<std::pair<DType, std::string>> comparisons;
  for (const char* direction : directions)
    comparisons.emplace_back(DType::kPred,
                             fmt::format("compare(a, b), direction={}, type=TOTALORDER", direction));
  const Graph graph =
      testing::graph_of_expressions(GetParam(), inputs[0].shape.elements_count(), comparisons);
  const auto check = [&](const std::string& who, const std::vector<Literal>& results) {
    for (std::int64_t i = 0; i < inputs[0].shape.elements_count(); ++i) {
      const double a = inputs[0].get_double(i), b = inputs[1].get_double(i);
      // The place of a number's sign and kind, then its value.
      const auto key = [](double v) {
        const int side = std::signbit(v) ? -1 : 1;
        return std::pair(std::isnan(v) ? 2 * side : side, std::isnan(v) ? 0.0 : v);
      };
      const auto x = key(a), y = key(b);
      const std::vector<bool> wanted = {x == y, x != y, x<y, x <= y, x> y, x >= y};
      for (std::size_t d = 0; d < directions.size(); ++d)
        ASSERT_EQ(results[d].get_int(i) != 0, wanted[d])
            << who << ": " << name(GetParam()) << " " << a << " " << directions[d] << " " << b;
    }
  };
  check("evaluator", evaluate(graph, inputs));
  for (const std::string& compiler : testing::installed_compilers())
    for (const bool fast_math : {false, true})
      check(compiler, testing::run_in_one_kernel(graph, "v100", compiler, fast_math, inputs));
}

INSTANTIATE_TEST_SUITE_P(Of, SpecialValues, kTypes, type_name);

TEST(NotANumber, KeepsItsBitsThroughKernelsThatMoveIt) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = canonicalize(parse_hlo(R"(HloModule m
ENTRY main {
  x = f16[4] parameter(0)
  y = f16[4] reverse(x), dimensions={0}
  k = f16[] constant(-nan)
  b = f16[4] broadcast(k), dimensions={}
  bits = u16[4] bitcast-convert(y)
  less = pred[4] compare(y, b), direction=LE, type=TOTALORDER
  own = u16[] bitcast-convert(k)
  ROOT r = (u16[4], pred[4], u16[]) tuple(bits, less, own)
}
)",
                                             "nan.hlo"));
  Literal x = Literal::zeros(Shape::array(DType::kF16, {4}));
  const std::vector<std::uint16_t> bits = {0x7e00, 0xfe00, 0x7d23, 0xfe45};
  std::copy(bits.begin(), bits.end(), x.data<std::uint16_t>());
  const std::vector<Literal> inputs = {x}, expected = evaluate(graph, inputs);
  EXPECT_EQ(expected[0].get_int(0), 0xfe45);
  EXPECT_EQ(expected[1].get_int(0), 1);
  EXPECT_EQ(expected[1].get_int(1), 0);
  for (const std::string& compiler : testing::installed_compilers())
    for (const char* planner : {"unfused", "xla"}) {
      const Device& target = device("v100");
      CompileOptions options;
      options.compiler = compiler;
      options.ptxas = false;
      const RunResult run = run_simulated(
          graph, target, compile(graph, target, make_plan(graph, target, planner), options), inputs);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(run.outputs[i].bytes, expected[i].bytes) << compiler << " " << planner << " " << i;
    }
}

class ReducedPrecision : public ::testing::TestWithParam<DType> {};

/// All bits a type of 16 has, or as many of a wider one: subnormal, near one, and any.
Literal patterns(DType type) {
  Literal values = Literal::zeros(Shape::array(type, {0x10000}));
  std::uint64_t state = 1;
  for (std::uint64_t i = 0; i < 0x10000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t bits = i % 3 == 0 ? state : state & ~(i % 3 == 1 ? 0x7ff0000000000000u : 0u);
    if (byte_size(type) == 2) values.data<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
    if (byte_size(type) == 4) values.data<std::uint32_t>()[i] = static_cast<std::uint32_t>(bits >> 32);
    if (byte_size(type) == 8) values.data<std::uint64_t>()[i] = bits;
  }
  return values;
}

TEST_P(ReducedPrecision, HasTheBitsOfTheEvaluator) {
  SKIP_WITHOUT_COMPILER();
  const DType type = GetParam();
  const Literal values = patterns(type);
  const FloatFormat own = float_format(type);
  std::vector<std::pair<DType, std::string>> expressions;
  for (const int exponent_bits : {1, 3, own.exponent_bits - 1, own.exponent_bits, own.exponent_bits + 1})
    for (const int mantissa_bits : {0, 1, own.mantissa_bits - 1, own.mantissa_bits, own.mantissa_bits + 1})
      expressions.emplace_back(type, fmt::format("reduce-precision(a), exponent_bits={}, mantissa_bits={}",
                                                 exponent_bits, mantissa_bits));
  const Graph graph = testing::graph_of_expressions(type, 0x10000, expressions);
  const std::vector<Literal> inputs = {values, values}, expected = evaluate(graph, inputs);
  for (const std::string& compiler : testing::installed_compilers()) {
    const std::vector<Literal> results = testing::run_in_one_kernel(graph, "v100", compiler, false, inputs);
    for (std::size_t r = 0; r < results.size(); ++r)
      for (std::int64_t i = 0; i < 0x10000; ++i) {
        const double got = results[r].get_double(i), wanted = expected[r].get_double(i);
        ASSERT_TRUE(std::isnan(wanted) ? std::isnan(got)
                                       : got == wanted && std::signbit(got) == std::signbit(wanted))
            << compiler << " " << expressions[r].second << " of " << values.get_double(i) << " gives " << got
            << ", not " << wanted;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ReducedPrecision, kTypes, type_name);

}  // namespace TEST_FILE
}  // namespace stitchwork
