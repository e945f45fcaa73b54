// mma.sp against products of the whole matrices. Which lane holds the metadata of which rows and columns is
// written out as the PTX ISA draws it (9.7.14.6.2).
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <random>
#include <set>

#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

struct Product {
  int k;
  const char *a, *b, *c;
  int selector = 0;
  bool ordered = false, saturate = false;
};

int bits_of(const std::string& type) {
  return type == "tf32" || type == "f32" || type == "s32" ? 32
         : type == "f16" || type == "bf16"                ? 16
         : type == "s4" || type == "u4"                   ? 4
                                                          : 8;
}

/// A whole number from -3 to 3, or 0 to 6, as an element.
std::uint32_t encode(const std::string& type, int v) {
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(v));
  if (type == "tf32") return single;
  if (type == "bf16") return single >> 16;
  if (type[0] == 's' || type[0] == 'u') return static_cast<std::uint32_t>(v) & ((1u << bits_of(type)) - 1);
  if (v == 0) return 0;
  // 1, 2 and 3 have an exponent of 0 or 1 and at most one bit of mantissa.
  const int mantissa_bits = type == "f16" ? 10 : type == "e4m3" ? 3 : 2, bias = type == "e4m3" ? 7 : 15;
  const int magnitude = std::abs(v), exponent = magnitude >= 2 ? 1 : 0;
  const int mantissa = magnitude == 3 ? 1 << (mantissa_bits - 1) : 0;
  return static_cast<std::uint32_t>((exponent + bias) << mantissa_bits | mantissa) |
         (v < 0 ? 1u << (bits_of(type) - 1) : 0);
}

class SparseProduct : public ::testing::TestWithParam<Product> {};

TEST_P(SparseProduct, IsThatOfTheWholeMatrix) {
  const Product& p = GetParam();
  const std::string a = p.a, b = p.b, c = p.c;
  std::mt19937_64 rng(9);
  const auto draw = [&](const std::string& type) {
    return type[0] == 'u' ? static_cast<int>(rng() % 7) : static_cast<int>(rng() % 7) - 3;
  };
  // Of a row: chunks of so many elements keep so many, in pieces of `piece`.
  const int piece = bits_of(a) == 4 ? 2 : 1, chunk = a == "tf32" ? 2 : 4 * piece, kept = a == "tf32" ? 1 : 2;
  const int stored = p.k / 2, entry_bits = a == "tf32" ? 4 : 2, row_bits = stored / piece * entry_bits;
  std::vector<int> whole(static_cast<std::size_t>(16 * p.k)), held(static_cast<std::size_t>(16 * stored)),
      right(static_cast<std::size_t>(p.k * 8));
  std::vector<std::vector<bool>> metadata(16, std::vector<bool>(static_cast<std::size_t>(row_bits)));
  for (int row = 0; row < 16; ++row) {
    int entry = 0;
    for (int at = 0; at < p.k; at += chunk) {
      std::vector<int> chosen;
      for (int k = 0; k < chunk / piece; ++k) chosen.push_back(k);
      std::shuffle(chosen.begin(), chosen.end(), rng);
      chosen.resize(static_cast<std::size_t>(kept));
      std::sort(chosen.begin(), chosen.end());
      for (const int k : chosen) {
        for (int e = 0; e < piece; ++e)
          whole[static_cast<std::size_t>(row * p.k + at + k * piece + e)] =
              held[static_cast<std::size_t>(row * stored + entry * piece + e)] = draw(a);
        const int code = a == "tf32" ? (k == 0 ? 0b0100 : 0b1110) : k;
        for (int bit = 0; bit < entry_bits; ++bit)
          metadata[static_cast<std::size_t>(row)][static_cast<std::size_t>(entry * entry_bits + bit)] =
              code >> bit & 1;
        ++entry;
      }
    }
  }
  for (int& v : right) v = draw(b);
  // Lanes that hold metadata: (row, first bit) of each half of the word; all others hold anything.
  std::vector<std::uint32_t> words(32);
  for (std::uint32_t& w : words) w = static_cast<std::uint32_t>(rng());
  const auto bits = [&](int row, int first, int count) {
    std::uint32_t v = 0;
    for (int k = 0; k < count; ++k)
      v |= static_cast<std::uint32_t>(
               metadata[static_cast<std::size_t>(row)][static_cast<std::size_t>(first + k)])
           << k;
    return v;
  };
  for (int group = 0; group < 8; ++group) {
    std::uint32_t* lanes = words.data() + 4 * group;
    if (bits_of(a) >= 16 && row_bits == 16) {
      lanes[p.selector] = bits(group, 0, 16) | bits(group + 8, 0, 16) << 16;
    } else if (bits_of(a) >= 16) {
      for (int half = 0; half < 2; ++half)
        lanes[2 * p.selector + half] = bits(group, 16 * half, 16) | bits(group + 8, 16 * half, 16) << 16;
    } else if (row_bits == 32) {
      lanes[2 * p.selector] = bits(group, 0, 32);
      lanes[2 * p.selector + 1] = bits(group + 8, 0, 32);
    } else {
      lanes[0] = bits(group, 0, 32);
      lanes[1] = bits(group + 8, 0, 32);
      lanes[2] = bits(group, 32, 32);
      lanes[3] = bits(group + 8, 32, 32);
    }
  }
  // Fragments as of the dense shape that has A's stored columns.
  const int per = 32 / bits_of(a);
  const int a_registers = 16 * stored / 32 / per, b_registers = 8 * p.k / 32 / per;
  std::vector<std::uint32_t> in;
  for (int l = 0; l < 32; ++l) {
    for (int r = 0; r < a_registers; ++r) {
      std::uint32_t word = 0;
      for (int e = 0; e < per; ++e)
        word |= encode(a, held[static_cast<std::size_t>((l / 4 + 8 * (r % 2)) * stored + l % 4 * per +
                                                        r / 2 * 4 * per + e)])
                << (e * bits_of(a) & 31);
      in.push_back(word);
    }
    for (int r = 0; r < b_registers; ++r) {
      std::uint32_t word = 0;
      for (int e = 0; e < per; ++e)
        word |= encode(b, right[static_cast<std::size_t>((l % 4 * per + r * 4 * per + e) * 8 + l / 4)])
                << (e * bits_of(b) & 31);
      in.push_back(word);
    }
    in.push_back(words[static_cast<std::size_t>(l)]);
  }
  const int inputs = a_registers + b_registers + 1, d_registers = c == "f16" ? 2 : 4;
  const auto list = [](int first, int count) {
    std::string text;
    for (int k = 0; k < count; ++k) text += fmt::format("{}%r{}", k == 0 ? "" : ", ", first + k);
    return "{" + text + "}";
  };
  std::string body = fmt::format(
      "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r31, %tid.x;\nmul.wide.u32 %d3, %r31, {}; "
      "add.u64 %d1, "
      "%d1, %d3;\nmul.wide.u32 %d3, %r31, {}; add.u64 %d2, %d2, %d3;\n",
      inputs * 4, d_registers * 4);
  for (int k = 0; k < inputs; ++k) body += fmt::format("ld.global.b32 %r{}, [%d1+{}];\n", k, 4 * k);
  for (int k = 0; k < d_registers; ++k)
    body += fmt::format("mov.b32 %r{}, {};\n", 20 + k,
                        c == "f16"   ? "0x3c003c00"
                        : c == "f32" ? "0x3f800000"
                                     : "1");
  body += fmt::format("mma.sp{}.sync.aligned.m16n8k{}.row.col{}.{}.{}.{}.{} {}, {}, {}, {}, %r{}, {};\n",
                      p.ordered ? "::ordered_metadata" : "", p.k, p.saturate ? ".satfinite" : "", c, a, b, c,
                      list(20, d_registers), list(0, a_registers), list(a_registers, b_registers),
                      list(20, d_registers), inputs - 1, p.selector);
  for (int k = 0; k < d_registers; ++k) body += fmt::format("st.global.b32 [%d2+{}], %r{};\n", 4 * k, 20 + k);
  std::string text = wrap_ptx(body + "ret;");
  text.replace(text.find("sm_75"), 5, "sm_90");
  DeviceMemory memory(true);
  const DeviceAddress out = memory.allocate(static_cast<std::size_t>(128 * d_registers), "out");
  Launch launch{.kernel = "k", .grid = {}, .block = {32, 1, 1}};
  launch.arguments = {Argument::pointer(upload(memory, in, "in")), Argument::pointer(out)};
  const LaunchResult r = run(ptx::parse(text, "sp.ptx"), launch, memory, device("h100"),
                             {.sanitize = {.race = true, .init = true, .sync = true}});
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  EXPECT_EQ(r.counters.tensor_multiply_adds, static_cast<std::uint64_t>(16 * 8 * p.k / 2));
  const auto got = download<std::uint32_t>(memory, out, static_cast<std::size_t>(32 * d_registers));
  for (int l = 0; l < 32; ++l)
    for (int index = 0; index < 4; ++index) {
      const int row = l / 4 + 8 * (index / 2), column = l % 4 * 2 + index % 2;
      int sum = 1;
      for (int k = 0; k < p.k; ++k)
        sum +=
            whole[static_cast<std::size_t>(row * p.k + k)] * right[static_cast<std::size_t>(k * 8 + column)];
      const std::uint32_t word =
          got[static_cast<std::size_t>(l * d_registers + (c == "f16" ? index / 2 : index))];
      if (c == "s32") {
        ASSERT_EQ(static_cast<std::int32_t>(word), sum) << row << " " << column;
      } else if (c == "f32") {
        ASSERT_EQ(std::bit_cast<float>(word), static_cast<float>(sum)) << row << " " << column;
      } else {
        const std::uint32_t half = word >> (index % 2 * 16) & 0xffff;
        const double magnitude =
            (half & 0x7fff) == 0 ? 0
                                 : std::ldexp(1024 + (half & 1023), static_cast<int>(half >> 10 & 31) - 25);
        ASSERT_EQ(half >> 15 ? -magnitude : magnitude, sum) << row << " " << column;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, SparseProduct,
    ::testing::Values(Product{16, "f16", "f16", "f32", 0}, Product{16, "f16", "f16", "f16", 3, true},
                      Product{32, "f16", "f16", "f32", 1}, Product{16, "bf16", "bf16", "f32", 2},
                      Product{32, "bf16", "bf16", "f32", 0, true}, Product{8, "tf32", "tf32", "f32", 1},
                      Product{16, "tf32", "tf32", "f32", 1}, Product{16, "tf32", "tf32", "f32", 0, true},
                      Product{32, "s8", "u8", "s32", 0}, Product{32, "u8", "s8", "s32", 1, false, true},
                      Product{64, "s8", "s8", "s32", 0, true}, Product{64, "s4", "u4", "s32", 1},
                      Product{128, "u4", "s4", "s32", 0, true, true}, Product{64, "e4m3", "e5m2", "f32"},
                      Product{64, "e5m2", "e4m3", "f32", 0, true}, Product{64, "e4m3", "e4m3", "f16"}),
    [](const auto& info) {
      const Product& p = info.param;
      return fmt::format("k{}_{}_{}_{}_{}{}", p.k, p.a, p.b, p.c, p.selector, p.ordered ? "_ordered" : "");
    });

/// Of every form that `ptx isa` lists: one more modifier, or one type changed, is another listed form or
/// refused.
TEST(MatrixForms, TakeNoOtherModifier) {
  std::set<std::string> listed;
  for (std::string form : ptx::supported_instructions()) {
    if (!form.starts_with("mma.")) continue;
    for (const char* optional : {"{.satfinite}", "{::ordered_metadata}"})
      if (const std::size_t at = form.find(optional); at != form.npos)
        form.erase(at, std::string(optional).size());
    listed.insert(form);
  }
  EXPECT_GT(listed.size(), 60u);
  const auto message = [](const std::string& form) {
    const std::string rest = form.starts_with("mma.sp") ? ", %r1, 0;" : ";";
    try {
      ptx::parse(wrap_ptx(form + " {}, {}, {}, {}" + rest + "\nret;"), "m.ptx");
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  for (const std::string& form : listed) {
    EXPECT_NE(message(form).find("registers, 0 given"), std::string::npos) << form << ": " << message(form);
    for (const char* more : {".ftz", ".magic", ".sat", ".rz"})
      EXPECT_NE(message(form + more).find("is not supported"), std::string::npos) << form << more;
    for (const char* type : {"f16", "bf16", "s8", "e4m3", "f64"}) {
      const std::string other = form.substr(0, form.rfind('.') + 1) + type;
      if (!listed.contains(other)) {
        EXPECT_NE(message(other).find("is not supported"), std::string::npos) << other;
      }
    }
  }
}

TEST(SparseForms, OthersAreRefused) {
  const auto refused = [](const std::string& line) {
    try {
      ptx::parse(wrap_ptx(line + "\nret;"), "sp.ptx");
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  const std::string k16 = " {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3, %r4}, {%f1, %f2, %f3, %f4}, %r5, ";
  EXPECT_FALSE(refused("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + k16 + "3;"));
  EXPECT_TRUE(refused("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + k16 + "4;"));
  EXPECT_TRUE(refused("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + k16 + "%r6;"));
  EXPECT_TRUE(
      refused("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
              " {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3, %r4}, {%f1, %f2, %f3, %f4}, %r5;"));
  for (const char* form : {"mma.sp.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
                           "mma.sp.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32",
                           "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32",
                           "mma.sp.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32",
                           "mma.sp.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32",
                           "mma.sp.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                           "mma.sp::unordered.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                           "mma.sp.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32",
                           "mma.sp.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16"})
    EXPECT_TRUE(refused(form + k16 + "0;")) << form;
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
