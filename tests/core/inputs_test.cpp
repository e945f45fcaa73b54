#include "core/evaluate/inputs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

using Kind = Distribution::Kind;

Graph graph_of(const std::string& entry) { return parse_hlo("HloModule m\n" + entry, "test"); }

Literal one_input(const std::string& shape, const Distribution& distribution, std::uint64_t seed = 0) {
  const Graph graph = graph_of("ENTRY e { ROOT x = " + shape + " parameter(0) }");
  return generate_inputs(graph, seed, {{"x", distribution}})[0];
}

std::string hash(const Literal& literal) {
  return sha256_hex({reinterpret_cast<const char*>(literal.bytes.data()), literal.bytes.size()})
      .substr(0, 16);
}

// The hashes come from a Python transcription of docs/inputs.md.
TEST(Inputs, TheSameSeedGivesTheSameBytesEverywhere) {
  const Distribution normal{.kind = Kind::kNormal, .mean = 1, .stddev = 0.25};
  const Distribution uniform{.kind = Kind::kUniform, .low = -2, .high = 3};
  const Distribution index{.kind = Kind::kIndex, .low = 0, .high = 30522};
  EXPECT_EQ(hash(one_input("f32[1000]", normal)), "e28b316ba180de1b");
  EXPECT_EQ(hash(one_input("f64[1000]", normal)), "cc3766eaf141aaec");
  EXPECT_EQ(hash(one_input("bf16[1000]", normal)), "dab073d9a6c1d2a5");
  EXPECT_EQ(hash(one_input("f32[1000]", uniform)), "2bf694e499d93cd9");
  EXPECT_EQ(hash(one_input("s32[1000]", index)), "b813db2c090674e9");
  EXPECT_EQ(hash(one_input("f32[1000]", normal, 7)), "1dfb5f67ea752088");
}

TEST(Inputs, NormalHasTheMomentsAsked) {
  const Literal x = one_input("f32[200000]", {.kind = Kind::kNormal, .mean = 3, .stddev = 2});
  double sum = 0, squares = 0;
  for (int i = 0; i < 200000; ++i) {
    sum += x.get_double(i);
    squares += x.get_double(i) * x.get_double(i);
  }
  const double mean = sum / 200000, deviation = std::sqrt(squares / 200000 - mean * mean);
  EXPECT_NEAR(mean, 3, 0.02);
  EXPECT_NEAR(deviation, 2, 0.02);
}

TEST(Inputs, IndicesCoverTheirRangeAndNoMore) {
  const Literal x = one_input("s32[2000]", {.kind = Kind::kIndex, .low = -3, .high = 4});
  std::vector<int> seen(7);
  for (int i = 0; i < 2000; ++i) ++seen.at(static_cast<std::size_t>(x.get_int(i) + 3));
  for (int count : seen) EXPECT_GT(count, 200);
}

TEST(Inputs, ParametersHaveStreamsOfTheirOwn) {
  const Graph two = graph_of(
      "ENTRY e { x = f32[8] parameter(0)\n  y = f32[8] parameter(1)\n  ROOT t = (f32[8], f32[8]) tuple(x, y) "
      "}");
  const std::vector<Literal> inputs = generate_inputs(two, 5);
  EXPECT_NE(inputs[0].bytes, inputs[1].bytes);
  EXPECT_EQ(inputs[0].bytes,
            generate_inputs(graph_of("ENTRY e { ROOT q = f32[8] parameter(0) }"), 5)[0].bytes);
  EXPECT_NE(inputs[0].bytes, generate_inputs(two, 6)[0].bytes);
}

TEST(Inputs, OverridesGoByNameOrNumber) {
  const Graph graph = graph_of(
      "ENTRY e { x = f32[2] parameter(0)\n  y = s32[2] parameter(1)\n  ROOT t = (f32[2], s32[2]) tuple(x, y) "
      "}");
  const Distribution two{.kind = Kind::kConstant, .value = 2}, nine{.kind = Kind::kConstant, .value = 9};
  const std::vector<Literal> inputs = generate_inputs(graph, 0, {{"x", two}, {"1", nine}});
  EXPECT_EQ(inputs[0].get_double(1), 2);
  EXPECT_EQ(inputs[1].get_int(0), 9);
  EXPECT_THROW(generate_inputs(graph, 0, {{"z", two}}), Error);
  EXPECT_THROW(generate_inputs(graph, 0, {{"2", two}}), Error);
  EXPECT_THROW(generate_inputs(graph, 0, {{"y", {.kind = Kind::kIndex, .low = 3, .high = 3}}}), Error);
}

Distribution default_of(const std::string& entry, std::size_t parameter = 0) {
  return default_distributions(graph_of(entry)).at(parameter);
}

TEST(DefaultDistributions, MatricesAreScaledByTheDimensionContracted) {
  const std::string dot =
      "ENTRY e { x = f32[4,64] parameter(0)\n  w = f32[16,64] parameter(1)\n  wt = f32[64,16] transpose(w), "
      "dimensions={1,0}\n"
      "  ROOT d = f32[4,16] dot(x, wt), lhs_contracting_dims={1}, rhs_contracting_dims={0} }";
  EXPECT_DOUBLE_EQ(default_of(dot, 0).stddev, 1 / 8.0);
  EXPECT_DOUBLE_EQ(default_of(dot, 1).stddev, 1 / 8.0);
  EXPECT_DOUBLE_EQ(default_of("ENTRY e { ROOT x = f32[16,100] parameter(0) }").stddev, 1 / 4.0);
  EXPECT_DOUBLE_EQ(default_of("ENTRY e { ROOT x = f32[100] parameter(0) }").stddev, 1);
}

TEST(DefaultDistributions, PositiveDomainsGetPositiveValues) {
  const auto is_positive = [](const std::string& body) {
    return default_of(
               "ENTRY e { x = f32[8] parameter(0)\n  y = f32[8] parameter(1)\n  c = f32[] constant(1e-5)\n"
               "  eps = f32[8] broadcast(c), dimensions={}\n  " +
               body + " }")
               .kind == Kind::kUniform;
  };
  EXPECT_TRUE(is_positive("ROOT r = f32[8] log(x)"));
  EXPECT_TRUE(is_positive("ROOT r = f32[8] divide(y, x)"));
  EXPECT_FALSE(is_positive("ROOT r = f32[8] divide(x, y)"));
  EXPECT_TRUE(is_positive("ROOT r = f32[8] power(x, y)"));
  EXPECT_TRUE(is_positive("b = f32[8,2] broadcast(x), dimensions={0}\n  ROOT r = f32[8,2] sqrt(b)"));
  EXPECT_TRUE(is_positive("v = f32[8] add(x, eps)\n  ROOT r = f32[8] rsqrt(v)"));
  EXPECT_FALSE(is_positive("v = f32[8] multiply(x, y)\n  ROOT r = f32[8] rsqrt(v)"));
}

TEST(DefaultDistributions, BasesOfIntegerPowersHaveBothSigns) {
  const auto kind = [](const std::string& exponent, const std::string& type = "f32") {
    return default_of("ENTRY e { x = f32[8] parameter(0)\n  c = " + type + "[] constant(" + exponent +
                      ")\n  b = " + type + "[8] broadcast(c), dimensions={}\n  y = f32[8] convert(b)\n" +
                      "  ROOT r = f32[8] power(x, y) }")
        .kind;
  };
  EXPECT_EQ(kind("2"), Kind::kNormal);
  EXPECT_EQ(kind("3", "s32"), Kind::kNormal);
  EXPECT_EQ(kind("0"), Kind::kNormal);
  EXPECT_EQ(kind("0.5"), Kind::kUniform);
  EXPECT_EQ(kind("-1"), Kind::kUniform);  // divides by the base
  const std::string called = R"(
raised { a = f32[8] parameter(0)
  n = f32[] parameter(1)
  b = f32[8] broadcast(n), dimensions={}
  ROOT r = f32[8] power(a, b) }
ENTRY e { x = f32[8] parameter(0)
  two = f32[] constant(2)
  ROOT c = f32[8] call(x, two), to_apply=raised })";
  EXPECT_EQ(default_of(called).kind, Kind::kNormal);
}

TEST(DefaultDistributions, IndicesStayWithinWhatTheyIndexThroughCalls) {
  const std::string text = R"(
take { t = f32[30,4] parameter(0)
  i = s32[5] parameter(1)
  zero = s32[] constant(0)
  z = s32[5] broadcast(zero), dimensions={}
  n = s32[] constant(30)
  size = s32[5] broadcast(n), dimensions={}
  low = pred[5] compare(i, z), direction=LT
  wrapped = s32[5] add(i, size)
  j = s32[5] select(low, wrapped, i)
  ROOT g = f32[5,4] gather(t, j), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4} }
ENTRY e { table = f32[30,4] parameter(0)
  ids = s32[5,1] parameter(1)
  flat = s32[5] reshape(ids)
  ROOT c = f32[5,4] call(table, flat), to_apply=take })";
  const Distribution ids = default_of(text, 1);
  EXPECT_EQ(ids.kind, Kind::kIndex);
  EXPECT_EQ(ids.low, 0);
  EXPECT_EQ(ids.high, 30);
}

TEST(DefaultDistributions, OneHotLabelsStayWithinClassesThatAnExporterCounted) {
  const Graph graph = graph_of(
      "ENTRY e {\n  p = s32[8] parameter(0)\n  b = s32[8,4] broadcast(p), dimensions={0}\n"
      "  c = s32[4] constant({0, 1, 2, 3})\n  i = s32[8,4] broadcast(c), dimensions={1}\n"
      "  ROOT r = pred[8,4] compare(b, i), direction=EQ }");
  EXPECT_EQ(default_distributions(graph)[0].high, 4);
}

TEST(DefaultDistributions, OneHotLabelsStayWithinTheClasses) {
  EXPECT_EQ(
      default_of(
          "ENTRY e { x = s32[8] parameter(0)\n  b = s32[8,10] broadcast(x), dimensions={0}\n"
          "  i = s32[8,10] iota(), iota_dimension=1\n  ROOT r = pred[8,10] compare(b, i), direction=EQ }")
          .high,
      10);
}

TEST(DefaultDistributions, OtherIntegersAreBits) {
  EXPECT_EQ(default_of("ENTRY e { ROOT x = s32[8] parameter(0) }").high, 2);
  EXPECT_EQ(default_of("ENTRY e { ROOT x = pred[8] parameter(0) }").high, 2);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
