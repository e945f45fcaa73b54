// mma.sync of every element type against products worked out here; fragments laid out as the PTX ISA draws
// them.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

struct Product {
  int m, n, k;
  const char *a, *b, *c;
  bool saturate = false;
};
int bits_of(const std::string& type) {
  return type == "f64"                        ? 64
         : type == "s4" || type == "u4"       ? 4
         : type.size() == 2 || type[0] == 'e' ? 8
         : type == "f16"                      ? 16
                                              : 32;
}
double float8(unsigned v, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(v >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(v) & ((1 << mantissa_bits) - 1);
  const double scaled = exponent == 0
                            ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                            : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return v >> (exponent_bits + mantissa_bits) & 1 ? -scaled : scaled;
}
double number(const std::string& type, unsigned v) {
  if (type == "e4m3") return float8(v, 4, 3);
  if (type == "e5m2") return float8(v, 5, 2);
  const int bits = bits_of(type);
  const int whole = static_cast<int>(v & ((1u << bits) - 1));
  return type[0] == 's' && whole >> (bits - 1) ? whole - (1 << bits) : whole;
}

class MatrixProduct : public ::testing::TestWithParam<Product> {};

TEST_P(MatrixProduct, IsThatOfTheFragments) {
  const Product& p = GetParam();
  const std::string a = p.a, b = p.b, c = p.c;
  const bool doubles = a == "f64", halves = c == "f16", floats = c == "f32";
  std::mt19937_64 rng(3);
  // Elements by row and column, in memory as lanes hold them.
  const int per = doubles ? 1 : 32 / bits_of(a);
  const auto draw = [&](const std::string& type) {
    // e4m3 has a NaN, e5m2 infinities, in its top exponent: drawn below; small ones keep f16 sums exact.
    if (type[0] == 'e')
      return static_cast<unsigned>((rng() & 1) << 7 |
                                   (type == "e4m3" ? 0x30 + rng() % 16 : 0x38 + rng() % 8));
    return static_cast<unsigned>(rng() & ((1u << std::min(bits_of(type), 8)) - 1));
  };
  std::vector<double> wide_a(static_cast<std::size_t>(p.m * p.k)),
      wide_b(static_cast<std::size_t>(p.k * p.n)), sums(static_cast<std::size_t>(p.m * p.n));
  std::vector<std::uint64_t> in;
  const auto fragment = [&](const std::string& type, int rows, std::vector<double>& values, bool is_a) {
    const int groups = rows / 8, registers = rows * p.k / 32 / per;
    std::vector<std::uint64_t> words(static_cast<std::size_t>(32 * registers));
    for (int l = 0; l < 32; ++l)
      for (int r = 0; r < registers; ++r)
        for (int e = 0; e < per; ++e) {
          const int row = l / 4 + 8 * (r % groups), at = l % 4 * per + 4 * per * (r / groups) + e;
          auto& word = words[static_cast<std::size_t>(l * registers + r)];
          double value = 0;
          if (doubles) {
            value = static_cast<double>(static_cast<std::int64_t>(rng() % 2001) - 1000) / 8;
            word = std::bit_cast<std::uint64_t>(value);
          } else {
            const unsigned bits = draw(type);
            value = number(type, bits);
            word |= std::uint64_t{bits} << (e * bits_of(type));
          }
          values[static_cast<std::size_t>(is_a ? row * p.k + at : at * p.n + row)] = value;
        }
    in.insert(in.end(), words.begin(), words.end());
    return registers;
  };
  const int a_registers = fragment(a, p.m, wide_a, true), b_registers = fragment(b, p.n, wide_b, false);
  for (int row = 0; row < p.m; ++row)
    for (int column = 0; column < p.n; ++column) {
      double& sum = sums[static_cast<std::size_t>(row * p.n + column)];
      for (int k = 0; k < p.k; ++k)
        sum += wide_a[static_cast<std::size_t>(row * p.k + k)] *
               wide_b[static_cast<std::size_t>(k * p.n + column)];
    }
  // The accumulator is zero; a launch's row of `in` is that of its lane.
  const int d_values = p.m * p.n / 32, d_registers = halves ? d_values / 2 : d_values;
  const char letter = doubles ? 'd' : 'r';
  std::string body = "ld.param.u64 %d30, [in];\nld.param.u64 %d31, [out];\nmov.u32 %r31, %tid.x;\n";
  const auto list = [&](char kind, int first, int count) {
    std::string text;
    for (int k = 0; k < count; ++k) text += fmt::format("{}%{}{}", k == 0 ? "" : ", ", kind, first + k);
    return "{" + text + "}";
  };
  const auto load = [&](int first, int count, int at) {
    body +=
        fmt::format("mad.lo.u32 %r30, %r31, {}, {};\ncvt.u64.u32 %d29, %r30;\nadd.u64 %d29, %d29, %d30;\n",
                    count * 8, at * 8);
    for (int k = 0; k < count; ++k)
      body +=
          fmt::format("ld.global.{} %{}{}, [%d29+{}];\n", doubles ? "b64" : "b32", letter, first + k, k * 8);
  };
  load(0, a_registers, 0);
  load(8, b_registers, 32 * a_registers);
  for (int k = 0; k < d_registers; ++k)
    body += fmt::format("mov.b{0} %{1}{2}, 0;\n", doubles ? 64 : 32, letter, 16 + k);
  const std::string d_letter = list(letter, 20, d_registers), c_list = list(letter, 16, d_registers);
  const std::string form = fmt::format("mma.sync.aligned.m{}n{}k{}.row.col{}.{}.{}.{}.{}", p.m, p.n, p.k,
                                       p.saturate ? ".satfinite" : "", c, a, b, c);
  body += fmt::format("{} {}, {}, {}, {};\nmul.wide.u32 %d28, %r31, {};\nadd.u64 %d31, %d31, %d28;\n", form,
                      d_letter, list(letter, 0, a_registers), list(letter, 8, b_registers), c_list,
                      d_registers * 8);
  for (int k = 0; k < d_registers; ++k)
    body += fmt::format("st.global.{} [%d31+{}], %{}{};\n", doubles ? "b64" : "b32", k * 8, letter, 20 + k);
  std::string text = wrap_ptx(body + "ret;");
  text.replace(text.find("sm_75"), 5, "sm_90");
  DeviceMemory memory;
  const DeviceAddress out =
      upload(memory, std::vector<std::uint64_t>(static_cast<std::size_t>(32 * d_registers)), "out");
  Launch launch{.kernel = "k", .grid = {}, .block = {32, 1, 1}};
  launch.arguments = {Argument::pointer(upload(memory, in, "in")), Argument::pointer(out)};
  const LaunchResult r = run(ptx::parse(text, "mma.ptx"), launch, memory, device("h100"), {});
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  EXPECT_EQ(r.counters.tensor_multiply_adds, static_cast<std::uint64_t>(p.m * p.n * p.k));
  const auto got = download<std::uint64_t>(memory, out, static_cast<std::size_t>(32 * d_registers));
  for (int l = 0; l < 32; ++l)
    for (int k = 0; k < d_values; ++k) {
      const int row = l / 4 + 8 * (k / 2), column = l % 4 * 2 + k % 2;
      const double expected = sums[static_cast<std::size_t>(row * p.n + column)];
      const std::uint64_t word = got[static_cast<std::size_t>(l * d_registers + (halves ? k / 2 : k))];
      const double value = doubles  ? std::bit_cast<double>(word)
                           : floats ? std::bit_cast<float>(static_cast<std::uint32_t>(word))
                           : halves ? float8(static_cast<unsigned>(word >> (k % 2 * 16)) & 0xffff, 5, 10)
                                    : static_cast<std::int32_t>(word);
      // Rounded to f16 once: 11 bits.
      ASSERT_NEAR(value, expected, halves ? std::ldexp(std::fabs(expected), -11) : 0)
          << form << " row " << row << " column " << column;
    }
}
INSTANTIATE_TEST_SUITE_P(
    Forms, MatrixProduct,
    ::testing::Values(Product{8, 8, 4, "f64", "f64", "f64"}, Product{16, 8, 4, "f64", "f64", "f64"},
                      Product{16, 8, 8, "f64", "f64", "f64"}, Product{16, 8, 16, "f64", "f64", "f64"},
                      Product{16, 8, 16, "e4m3", "e4m3", "f32"}, Product{16, 8, 32, "e4m3", "e5m2", "f32"},
                      Product{16, 8, 32, "e5m2", "e4m3", "f32"}, Product{16, 8, 32, "e5m2", "e5m2", "f32"},
                      Product{16, 8, 32, "e4m3", "e4m3", "f16"}, Product{8, 8, 16, "s8", "u8", "s32"},
                      Product{16, 8, 32, "u8", "s8", "s32", true}, Product{8, 8, 32, "s4", "s4", "s32"},
                      Product{16, 8, 32, "u4", "s4", "s32"}, Product{16, 8, 64, "s4", "u4", "s32", true}),
    [](const auto& info) {
      const Product& p = info.param;
      return fmt::format("m{}n{}k{}_{}_{}_{}", p.m, p.n, p.k, p.a, p.b, p.c);
    });

TEST(MatrixProduct, ShapesThatAreNoneAreRefused) {
  for (const char* form : {"mma.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32",
                           "mma.sync.aligned.m16n8k32.row.col.s32.s4.s8.s32",
                           "mma.sync.aligned.m8n8k16.row.col.f32.e4m3.e4m3.f32",
                           "mma.sync.aligned.m16n8k16.row.col.rn.f32.f16.f16.f32",
                           "mma.sync.aligned.m16n8k32.row.col.satfinite.f32.e4m3.e4m3.f32",
                           "wmma.load.a.sync.aligned.row.m8n8k32.global.s4",
                           "wmma.mma.sync.aligned.row.col.m8n8k4.rz.f64.f64.f64.f64"})
    EXPECT_THROW(
        ptx::parse(wrap_ptx(fmt::format("{} {{%r1}}, {{%r2}}, {{%r3}}, {{%r4}};\nret;", form)), "m.ptx"),
        Error)
        << form;
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
