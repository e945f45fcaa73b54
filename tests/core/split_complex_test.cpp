// Complex numbers as pairs of real ones, against std::complex in double precision, and Fourier transforms
// against their definition.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <numbers>
#include <random>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace TEST_FILE {

using Number = std::complex<double>;
using Numbers = std::vector<Number>;

constexpr const char* kAdd =
    "add { a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT s = c64[] add(a, b) }\n";

Graph graph_of(const std::string& body, const std::string& before = {}) {
  const Graph graph =
      canonicalize(parse_hlo("HloModule m\n" + before + "ENTRY e {\n" + body + "\n}\n", "test.hlo"));
  validate(graph);
  EXPECT_FALSE(any_complex(graph)) << to_text(graph);
  EXPECT_TRUE(equal(canonicalize(graph), graph));
  return graph;
}

/// As pairs, with a last dimension of 2.
Literal pairs(const Numbers& numbers, std::vector<std::int64_t> dims, DType type = DType::kF64) {
  dims.push_back(2);
  Literal literal = Literal::zeros(Shape::array(type, dims));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    literal.set_double(static_cast<std::int64_t>(2 * i), numbers[i].real());
    literal.set_double(static_cast<std::int64_t>(2 * i + 1), numbers[i].imag());
  }
  return literal;
}

Numbers numbers_of(const Literal& literal) {
  Numbers numbers;
  for (std::int64_t i = 0; i < literal.shape.elements_count(); i += 2)
    numbers.emplace_back(literal.get_double(i), literal.get_double(i + 1));
  return numbers;
}

Numbers drawn(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Numbers numbers;
  for (std::size_t i = 0; i < count; ++i) {
    const double re = normal(random);
    numbers.emplace_back(re, normal(random));
  }
  return numbers;
}

/// Of all sizes, on the axes, on both sides of branch cuts.
Numbers hard() {
  Numbers numbers = drawn(50, 3);
  for (const double size : {1e-12, 1e-3, 0.4, 1.0, 5.0, 30.0})
    for (const double angle : {0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75})
      numbers.push_back(std::polar(size, angle * std::numbers::pi));
  numbers.insert(numbers.end(), {{-1, 0.0}, {-1, -0.0}, {4, 0}, {0, 2}, {0, -2}});
  return numbers;
}

void expect_near(const Numbers& given, const Numbers& right, double tolerance, const std::string& what) {
  ASSERT_EQ(given.size(), right.size()) << what;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] == right[i]) continue;  // also infinite ones
    EXPECT_LE(std::abs(given[i] - right[i]), tolerance * std::max(1.0, std::abs(right[i])))
        << what << " " << i << ": " << given[i] << ", " << right[i] << " is right";
  }
}

TEST(SplitComplex, FunctionsAreThoseOfTheStandardLibrary) {
  const std::pair<const char*, std::function<Number(Number)>> rows[] = {
      {"negate", [](Number z) { return -z; }},
      {"exponential", [](Number z) { return std::exp(z); }},
      {"exponential-minus-one", [](Number z) { return std::exp(z) - 1.0; }},
      {"log", [](Number z) { return std::log(z); }},
      {"log-plus-one", [](Number z) { return std::log(1.0 + z); }},
      {"sqrt", [](Number z) { return std::sqrt(z); }},
      {"rsqrt", [](Number z) { return 1.0 / std::sqrt(z); }},
      {"sine", [](Number z) { return std::sin(z); }},
      {"cosine", [](Number z) { return std::cos(z); }},
      {"tan", [](Number z) { return std::tan(z); }},
      {"tanh", [](Number z) { return std::tanh(z); }},
      {"sinh", [](Number z) { return std::sinh(z); }},
      {"cosh", [](Number z) { return std::cosh(z); }},
      {"logistic", [](Number z) { return 1.0 / (1.0 + std::exp(-z)); }},
      {"sign", [](Number z) { return z / std::abs(z); }}};
  const Numbers values = hard();
  const std::string type = fmt::format("c128[{}]", values.size());
  const Literal input = pairs(values, {static_cast<std::int64_t>(values.size())});
  for (const auto& [op, right] : rows) {
    const Graph graph = graph_of(fmt::format("x = {0} parameter(0)\n ROOT r = {0} {1}(x)", type, op));
    Numbers wanted;
    for (const Number z : values) wanted.push_back(right(z));
    expect_near(numbers_of(evaluate(graph, {&input, 1}).at(0)), wanted, 2e-9, op);
  }
}

TEST(SplitComplex, NearZeroNothingCancels) {
  const Numbers values = {{1e-9, 2e-9}, {-3e-10, 1e-9}};
  const Literal input = pairs(values, {2});
  for (const char* op : {"exponential-minus-one", "log-plus-one", "tanh", "sine"}) {
    const Graph graph = graph_of(fmt::format("x = c128[2] parameter(0)\n ROOT r = c128[2] {}(x)", op));
    const Numbers given = numbers_of(evaluate(graph, {&input, 1}).at(0));
    for (std::size_t i = 0; i < 2; ++i) EXPECT_LE(std::abs(given[i] - values[i]), 1e-17) << op;
  }
}

TEST(SplitComplex, WhatIsLargeDoesNotOverflow) {
  const Numbers values = {{1e200, 1e200}, {-3e300, 2e-300}};
  const Literal input = pairs(values, {2});
  const Graph graph = graph_of(R"(
    x = c128[2] parameter(0)
    q = c128[2] divide(x, x)
    s = c128[2] sqrt(x)
    a = f64[2] abs(x)
    t = c128[2] tanh(x)
    ROOT r = (c128[2], c128[2], f64[2], c128[2]) tuple(q, s, a, t))");
  const std::vector<Literal> out = evaluate(graph, {&input, 1});
  expect_near(numbers_of(out[0]), {1, 1}, 1e-14, "divide");
  expect_near(numbers_of(out[1]), {std::sqrt(values[0]), std::sqrt(values[1])}, 1e-14, "sqrt");
  for (int i = 0; i < 2; ++i) {
    const double right = std::abs(values[static_cast<std::size_t>(i)]);
    EXPECT_NEAR(out[2].get_double(i) / right, 1, 1e-14);
  }
  expect_near(numbers_of(out[3]), {1, -1}, 1e-14, "tanh");
}

TEST(SplitComplex, ArithmeticAndComparisons) {
  Numbers a = drawn(40, 1), b = drawn(40, 2);
  a[7] = b[7];
  a[8] = {b[8].real(), 1};
  const std::vector<Literal> inputs = {pairs(a, {40}), pairs(b, {40})};
  const std::pair<const char*, std::function<Number(Number, Number)>> rows[] = {
      {"add", [](Number x, Number y) { return x + y; }},
      {"subtract", [](Number x, Number y) { return x - y; }},
      {"multiply", [](Number x, Number y) { return x * y; }},
      {"divide", [](Number x, Number y) { return x / y; }},
      {"power", [](Number x, Number y) { return std::pow(x, y); }}};
  for (const auto& [op, right] : rows) {
    const Graph graph = graph_of(fmt::format(
        "x = c128[40] parameter(0)\n y = c128[40] parameter(1)\n ROOT r = c128[40] {}(x, y)", op));
    Numbers wanted;
    for (std::size_t i = 0; i < a.size(); ++i) wanted.push_back(right(a[i], b[i]));
    expect_near(numbers_of(evaluate(graph, inputs).at(0)), wanted, 1e-12, op);
  }
  const Graph graph = graph_of(R"(
    x = c128[40] parameter(0)
    y = c128[40] parameter(1)
    e = pred[40] compare(x, y), direction=EQ
    n = pred[40] compare(x, y), direction=NE
    s = c128[40] select(e, x, y)
    re = f64[40] real(s)
    im = f64[40] imag(x)
    z = c128[40] complex(im, re)
    half = c64[40] convert(z)
    w = c128[40] convert(re)
    ROOT r = (pred[40], pred[40], c64[40], c128[40]) tuple(e, n, half, w))");
  const std::vector<Literal> out = evaluate(graph, inputs);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(out[0].get_int(i), i == 7);
    EXPECT_EQ(out[1].get_int(i), i != 7);
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(out[2].get_double(2 * i), static_cast<float>(a[at].imag()));
    EXPECT_EQ(out[2].get_double(2 * i + 1), static_cast<float>(b[at].real()));
    EXPECT_EQ(out[3].get_double(2 * i), b[at].real());
    EXPECT_EQ(out[3].get_double(2 * i + 1), 0);
  }
}

TEST(SplitComplex, PowersOfZeroAreZeroOrOne) {
  const std::vector<Literal> inputs = {pairs({0, 0, 2}, {3}), pairs({0, 2, 0}, {3})};
  const Graph graph =
      graph_of("x = c128[3] parameter(0)\n y = c128[3] parameter(1)\n ROOT r = c128[3] power(x, y)");
  expect_near(numbers_of(evaluate(graph, inputs).at(0)), {1, 0, 1}, 1e-14, "power");
}

TEST(SplitComplex, SumsProductsScattersAndMovesAreThoseOfTheNumbers) {
  const Numbers z = drawn(12, 5), u = drawn(2, 6);
  const std::vector<Literal> inputs = {pairs(z, {3, 4}, DType::kF32), pairs(u, {2}, DType::kF32)};
  const Graph graph = graph_of(R"(
    z = c64[3,4] parameter(0)
    u = c64[2] parameter(1)
    o = c64[] constant((0, 0))
    i = c64[] constant((0, 1))
    one = c64[] constant((1, 0))
    sum = c64[3] reduce(z, i), dimensions={1}, to_apply=add
    product = c64[4] reduce(z, one), dimensions={0}, to_apply=mul
    running = c64[3,4] reduce-window(z, o), window={size=1x4 pad=0_0x3_0}, to_apply=add
    turned = c64[4,3] transpose(z), dimensions={1,0}
    gram = c64[4,4] dot(turned, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    at = s32[2,1] constant({{2}, {2}})
    added = c64[3] scatter(sum, at, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
    longer = c64[7] concatenate(added, product), dimensions={0}
    ROOT r = (c64[7], c64[3,4], c64[4,4]) tuple(longer, running, gram))",
                               std::string(kAdd) +
                                   "mul { a = c64[] parameter(0)\n b = c64[] parameter(1)\n "
                                   "ROOT s = c64[] multiply(a, b) }\n");
  const std::vector<Literal> out = evaluate(graph, inputs);
  Numbers longer, running(12), gram(16);
  for (std::size_t r = 0; r < 3; ++r) {
    Number sum = 0;
    for (std::size_t c = 0; c < 4; ++c) running[r * 4 + c] = sum += z[r * 4 + c];
    longer.push_back(sum + Number(0, 1) + (r == 2 ? u[0] + u[1] : 0));
  }
  for (std::size_t c = 0; c < 4; ++c) longer.push_back(z[c] * z[4 + c] * z[8 + c]);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      for (std::size_t k = 0; k < 3; ++k) gram[i * 4 + j] += z[k * 4 + i] * z[k * 4 + j];
  expect_near(numbers_of(out[0]), longer, 1e-5, "sums and products");
  expect_near(numbers_of(out[1]), running, 1e-5, "running sums");
  expect_near(numbers_of(out[2]), gram, 1e-5, "products of matrices");
}

TEST(SplitComplex, LoopsAndBranchesPassPairs) {
  const std::string before = R"(
below { s = (s32[], c64[2], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  five = s32[] constant(5)
  ROOT c = pred[] compare(n, five), direction=LT }
body { s = (s32[], c64[2], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  z = c64[2] get-tuple-element(s), index=1
  f = f32[2] get-tuple-element(s), index=2
  one = s32[] constant(1)
  m = s32[] add(n, one)
  w = c64[2] multiply(z, z)
  ROOT t = (s32[], c64[2], f32[2]) tuple(m, w, f) }
left { z = c64[2] parameter(0)
  ROOT n = c64[2] negate(z) }
right { z = c64[2] parameter(0)
  ROOT n = c64[2] copy(z) }
)";
  const Graph graph = graph_of(R"(
    z = c64[2] parameter(0)
    p = pred[] parameter(1)
    o = s32[] constant(0)
    f = f32[2] real(z)
    s = (s32[], c64[2], f32[2]) tuple(o, z, f)
    l = (s32[], c64[2], f32[2]) while(s), condition=below, body=body
    w = c64[2] get-tuple-element(l), index=1
    ROOT r = c64[2] conditional(p, w, w), true_computation=left, false_computation=right)",
                               before);
  const Numbers z = {{0.6, 0.79}, {-0.2, 0.98}};
  Literal yes = Literal::zeros(Shape::array(DType::kPred, {}));
  yes.set_int(0, 1);
  const Literal out = evaluate(graph, std::vector<Literal>{pairs(z, {2}, DType::kF32), yes}).at(0);
  Numbers right;
  for (const Number one : z) right.push_back(-std::pow(one, 32.0));
  expect_near(numbers_of(out), right, 1e-4, "loop");
}

TEST(SplitComplex, WhatIsNotWrittenStaysComplexWithItsName) {
  const Graph graph = canonicalize(parse_hlo(R"(HloModule m
ENTRY e {
  x = c64[3,3] parameter(0)
  n = c64[3,3] negate(x)
  factor = c64[3,3] cholesky(n), lower=true
  ROOT r = c64[3,3] add(factor, x)
})",
                                             "test.hlo"));
  validate(graph);
  const Computation& entry = graph.entry_computation();
  EXPECT_EQ(entry.node(entry.find("factor")).shape.dtype, DType::kC64);
  EXPECT_EQ(to_text(entry.node(entry.root).shape), "f32[3,3,2]");
  const Literal input = Literal::zeros(Shape::array(DType::kF32, {3, 3, 2}));
  EXPECT_THROW(evaluate(graph, {&input, 1}), Error);
}

TEST(SplitComplex, AnOpTellsWhatItBecame) {
  OpTrace trace;
  const Graph graph = canonicalize(
      parse_hlo("HloModule m\nENTRY e {\n x = c64[3] parameter(0)\n y = c64[3] multiply(x, x)\n ROOT r = "
                "f32[3] imag(y)\n}\n",
                "test.hlo"),
      &trace);
  std::vector<OpTrace::Step> steps;
  EXPECT_FALSE(trace.now(graph, {"e", "y"}, &steps).empty());
  ASSERT_FALSE(steps.empty());
  EXPECT_THAT(to_text(steps[0]), ::testing::HasSubstr("y was rewritten as multiply"));
  // The imaginary part was there already.
  EXPECT_EQ(trace.now(graph, {"e", "r"}).size(), 1u);
}

/// By the definition.
Numbers transform(const Numbers& line, bool backward) {
  const std::size_t n = line.size();
  Numbers result(n);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t j = 0; j < n; ++j)
      result[k] += line[j] * std::polar(1.0, (backward ? 2 : -2) * std::numbers::pi *
                                                 static_cast<double>(j * k % n) / static_cast<double>(n));
    if (backward) result[k] /= static_cast<double>(n);
  }
  return result;
}

TEST(Fft, LinesOfAnyLengthAreTransformed) {
  for (const std::size_t n : {1u, 2u, 3u, 8u, 12u, 35u, 37u, 120u})
    for (const bool backward : {false, true}) {
      const Numbers line = drawn(n, 11);
      const Literal input = pairs(line, {static_cast<std::int64_t>(n)});
      const Graph graph = graph_of(fmt::format(
          "x = c128[{0}] parameter(0)\n ROOT r = c128[{0}] fft(x), fft_type={1}, fft_length={{{0}}}", n,
          backward ? "IFFT" : "FFT"));
      expect_near(numbers_of(evaluate(graph, {&input, 1}).at(0)), transform(line, backward), 1e-12,
                  fmt::format("length {}", n));
    }
}

TEST(Fft, RealLinesHaveHalfATransform) {
  for (const std::int64_t n : {1, 2, 7, 10, 16}) {
    Literal input = Literal::zeros(Shape::array(DType::kF32, {3, n}));
    for (std::int64_t i = 0; i < 3 * n; ++i) input.set_double(i, std::sin(3.0 * static_cast<double>(i)));
    const std::int64_t half = n / 2 + 1;
    const std::vector<Literal> out =
        evaluate(graph_of(fmt::format("x = f32[3,{0}] parameter(0)\n"
                                      "y = c64[3,{1}] fft(x), fft_type=RFFT, fft_length={{{0}}}\n"
                                      "z = f32[3,{0}] fft(y), fft_type=IRFFT, fft_length={{{0}}}\n"
                                      "ROOT r = (c64[3,{1}], f32[3,{0}]) tuple(y, z)",
                                      n, half)),
                 {&input, 1});
    Numbers right;
    for (std::int64_t r = 0; r < 3; ++r) {
      Numbers line;
      for (std::int64_t i = 0; i < n; ++i) line.emplace_back(input.get_double(r * n + i));
      const Numbers whole = transform(line, false);
      right.insert(right.end(), whole.begin(), whole.begin() + half);
    }
    expect_near(numbers_of(out[0]), right, 1e-6, "RFFT");
    for (std::int64_t i = 0; i < 3 * n; ++i)
      EXPECT_NEAR(out[1].get_double(i), input.get_double(i), 1e-6) << n << " " << i;
  }
}

TEST(Fft, SeveralDimensionsAreTransformedBehindTheOthers) {
  const Numbers field = drawn(2 * 3 * 4, 8);
  const Literal input = pairs(field, {2, 3, 4});
  const Graph graph =
      graph_of("x = c128[2,3,4] parameter(0)\n ROOT r = c128[2,3,4] fft(x), fft_type=FFT, fft_length={3,4}");
  Numbers right(24);
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t l = 0; l < 4; ++l)
        for (std::size_t r = 0; r < 3; ++r)
          for (std::size_t c = 0; c < 4; ++c)
            right[(b * 3 + k) * 4 + l] +=
                field[(b * 3 + r) * 4 + c] *
                std::polar(1.0, -2 * std::numbers::pi *
                                    (static_cast<double>(r * k) / 3 + static_cast<double>(c * l) / 4));
  expect_near(numbers_of(evaluate(graph, {&input, 1}).at(0)), right, 1e-12, "FFT of two dimensions");
  // Half of two dimensions and back.
  Literal real = Literal::zeros(Shape::array(DType::kF64, {2, 3, 4}));
  for (std::int64_t i = 0; i < 24; ++i) real.set_double(i, std::cos(5.0 * static_cast<double>(i)));
  const Literal back = evaluate(graph_of("x = f64[2,3,4] parameter(0)\n"
                                         "y = c128[2,3,3] fft(x), fft_type=RFFT, fft_length={3,4}\n"
                                         "ROOT z = f64[2,3,4] fft(y), fft_type=IRFFT, fft_length={3,4}"),
                                {&real, 1})
                           .at(0);
  for (std::int64_t i = 0; i < 24; ++i) EXPECT_NEAR(back.get_double(i), real.get_double(i), 1e-12) << i;
}

std::string refused(const std::string& body) {
  try {
    parse_hlo("HloModule m\nENTRY e {\n" + body + "\n}\n", "test.hlo");
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Fft, LengthsAndTypesHaveToFit) {
  EXPECT_THAT(refused("x = c64[8] parameter(0)\n ROOT r = c64[8] fft(x), fft_type=FFT, fft_length={7}"),
              ::testing::HasSubstr("fft_length 7 does not fit dimension 0"));
  EXPECT_THAT(refused("x = c64[8] parameter(0)\n ROOT r = c64[8] fft(x), fft_type=DCT, fft_length={8}"),
              ::testing::HasSubstr("fft_type=DCT is unknown"));
  EXPECT_THAT(refused("x = f16[8] parameter(0)\n ROOT r = c64[5] fft(x), fft_type=RFFT, fft_length={8}"),
              ::testing::HasSubstr("fft does not take f16"));
  EXPECT_THAT(refused("x = f32[8] parameter(0)\n ROOT r = c64[8] fft(x), fft_type=FFT, fft_length={8}"),
              ::testing::HasSubstr("fft of type FFT does not take f32[8]"));
  EXPECT_NE(refused("x = f32[8] parameter(0)\n ROOT r = c64[8] fft(x), fft_type=RFFT, fft_length={8}"), "");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
