// Matrix products of a warpgroup against products worked out here. Matrices are laid out in shared memory by
// the core matrices and swizzled atoms that the PTX ISA describes, not by the simulator's addresses.
#include "simulator/machine/wgmma.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <random>

#include "core/base/error.h"
#include "simulator/isa/forms.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr Sanitizers kAll{.race = true, .init = true, .sync = true};

struct Layout {
  int swizzle = 0;  ///< span in bytes; 0: none
  bool mn_major = false;
};
struct Product {
  int n;
  const char *d, *a, *b;
  Layout a_layout{}, b_layout{};
  bool a_in_registers = false;
  int scale_a = 1, scale_b = 1;
  bool adds = true, saturate = false;
};
int bits_of(const std::string& type) {
  return type == "tf32" || type == "f32" || type == "s32" ? 32 : type == "f16" || type == "bf16" ? 16 : 8;
}
int k_of(const Product& p) { return 256 / bits_of(p.a); }

/// A small number of the type: its bits and value.
std::pair<std::uint32_t, double> draw(const std::string& type, std::mt19937_64& rng) {
  const int whole = static_cast<int>(rng() % 17) - 8;
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(whole));
  if (type == "tf32") return {single, whole};
  if (type == "bf16") return {single >> 16, whole};
  if (type == "s8") return {static_cast<std::uint32_t>(whole * 11) & 0xff, whole * 11};
  if (type == "u8") return {static_cast<std::uint32_t>(whole + 100), whole + 100};
  // Floats of sign, exponent, mantissa: the integer's leading bits, which all have.
  const int exponent_bits = type == "e4m3" ? 4 : 5, mantissa_bits = type == "f16"    ? 10
                                                                    : type == "e4m3" ? 3
                                                                                     : 2;
  const double v = type == "e5m2" ? whole & ~1 : whole;
  if (v == 0) return {0, 0};
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(v), &exponent) * 2 - 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto magnitude = static_cast<std::uint32_t>((exponent - 1 + bias) << mantissa_bits) +
                         static_cast<std::uint32_t>(std::ldexp(fraction, mantissa_bits));
  return {magnitude | (v < 0 ? 1u << (exponent_bits + mantissa_bits) : 0u),
          v < 0 ? -std::ldexp(1 + std::floor(std::ldexp(fraction, mantissa_bits)) / (1 << mantissa_bits),
                              exponent - 1)
                : std::ldexp(1 + std::floor(std::ldexp(fraction, mantissa_bits)) / (1 << mantissa_bits),
                             exponent - 1)};
}

/// Bytes between core matrices or atoms, with gaps; and the descriptor's upper words.
struct Placed {
  Layout layout;
  std::uint32_t leading = 0, stride = 0;
  int element_bytes = 2;

  Placed(Layout l, int mn, int k, int bytes) : layout(l), element_bytes(bytes) {
    const int span = std::max(layout.swizzle, 16);
    const auto atom = static_cast<std::uint32_t>(8 * span);        // eight rows
    const int across = (layout.mn_major ? mn : k) * bytes / span;  // atoms, along what is contiguous
    if (layout.swizzle == 0) {
      // MN-major: the stride is along mn, the leading one along k; K-major: the other way round.
      const std::uint32_t contiguous = atom + 128;
      const std::uint32_t other = contiguous * static_cast<std::uint32_t>(across) + 256;
      leading = layout.mn_major ? other : contiguous;
      stride = layout.mn_major ? contiguous : other;
    } else if (layout.mn_major) {
      leading = 2 * atom;
      stride = leading * static_cast<std::uint32_t>(std::max(across, 1)) + atom;
    } else {
      leading = 16;  // not used
      stride = 2 * atom;
    }
  }
  std::uint32_t offset(int mn, int k) const {
    const int rows = layout.mn_major ? k : mn, along = (layout.mn_major ? mn : k) * element_bytes;
    const int span = std::max(layout.swizzle, 16);
    const auto row = static_cast<std::uint32_t>(rows % 8), atom_row = static_cast<std::uint32_t>(rows / 8);
    const auto atom_column = static_cast<std::uint32_t>(along / span);
    const auto chunk = static_cast<std::uint32_t>(along % span / 16),
               within = static_cast<std::uint32_t>(along % 16);
    const bool swapped = layout.mn_major;
    std::uint32_t base = 0;
    if (layout.swizzle == 0)
      base = swapped ? atom_column * stride + atom_row * leading : atom_column * leading + atom_row * stride;
    else
      base = swapped ? atom_column * leading + atom_row * stride : atom_row * stride;
    const std::uint32_t permuted = layout.swizzle == 128  ? chunk ^ row
                                   : layout.swizzle == 64 ? chunk ^ row / 2
                                   : layout.swizzle == 32 ? chunk ^ row / 4
                                                          : chunk;
    return base + row * static_cast<std::uint32_t>(span) + permuted * 16 + within;
  }
  std::uint64_t descriptor() const {
    const std::uint64_t mode = layout.swizzle == 128  ? 1
                               : layout.swizzle == 64 ? 2
                               : layout.swizzle == 32 ? 3
                                                      : 0;
    return mode << 62 | std::uint64_t{stride / 16} << 32 | std::uint64_t{leading / 16} << 16;
  }
};

constexpr std::uint32_t kMatrixBytes = 49152;  // of shared memory, each

std::string kernel(const std::string& body) {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 "
         "out)\n{\n"
         ".reg .pred %p<8>;\n.reg .b32 %r<300>;\n.reg .f32 %f<150>;\n.reg .b64 %d<32>;\n"
         ".shared .align 1024 .b8 data[98304];\n"
         "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r200, %tid.x; mov.u32 %r201, data;\n"
         "setp.eq.u32 %p6, %r200, %r200; mov.u32 %r204, 0;\n" +
         body + "\nret;\n}\n";
}
/// All of shared memory from `in` (98304 bytes); %d3 and %d4 the descriptors' addresses.
const std::string kFill = R"(
shl.b32 %r202, %r200, 2;
FILL: setp.ge.u32 %p1, %r202, 98304;
@%p1 bra FILLED;
cvt.u64.u32 %d5, %r202; add.u64 %d5, %d5, %d1; ld.global.u32 %r203, [%d5];
add.u32 %r205, %r201, %r202; st.shared.u32 [%r205], %r203;
add.u32 %r202, %r202, 512;
bra FILL;
FILLED:
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %r206, %r201, 4; cvt.u64.u32 %d3, %r206; add.u32 %r206, %r206, 3072; cvt.u64.u32 %d4, %r206;
)";

std::string list(char kind, int first, int count) {
  std::string text;
  for (int k = 0; k < count; ++k) text += fmt::format("{}%{}{}", k == 0 ? "" : ", ", kind, first + k);
  return "{" + text + "}";
}
std::string store_registers(char kind, int count) {
  std::string text = fmt::format("mul.wide.u32 %d5, %r200, {}; add.u64 %d6, %d2, %d5;\n", count * 4);
  for (int k = 0; k < count; ++k) text += fmt::format("st.global.b32 [%d6+{}], %{}{};\n", 4 * k, kind, k);
  return text;
}

class Wgmma : public ::testing::TestWithParam<Product> {};

TEST_P(Wgmma, IsTheProductOfItsMatrices) {
  const Product& p = GetParam();
  const int k_size = k_of(p), bytes = bits_of(p.a) / 8;
  std::mt19937_64 rng(5);
  const Placed a_at(p.a_layout, 64, k_size, bytes), b_at(p.b_layout, p.n, k_size, bytes);
  std::vector<std::byte> image(2 * kMatrixBytes);
  std::vector<double> a(static_cast<std::size_t>(64 * k_size)), b(static_cast<std::size_t>(p.n * k_size));
  std::vector<std::uint32_t> a_bits(a.size());
  for (int m = 0; m < 64; ++m)
    for (int k = 0; k < k_size; ++k) {
      const auto at = static_cast<std::size_t>(m * k_size + k);
      std::tie(a_bits[at], a[at]) = draw(p.a, rng);
      ASSERT_LT(a_at.offset(m, k), kMatrixBytes);
      std::memcpy(image.data() + a_at.offset(m, k), &a_bits[at], static_cast<std::size_t>(bytes));
    }
  for (int n = 0; n < p.n; ++n)
    for (int k = 0; k < k_size; ++k) {
      const auto [bits, value] = draw(p.b, rng);
      b[static_cast<std::size_t>(n * k_size + k)] = value;
      ASSERT_LT(b_at.offset(n, k), kMatrixBytes);
      std::memcpy(image.data() + kMatrixBytes + b_at.offset(n, k), &bits, static_cast<std::size_t>(bytes));
    }
  const std::string d_type = p.d;
  const bool halves = d_type == "f16", whole = d_type == "s32";
  const bool transposes = std::string(p.a) == "f16" || std::string(p.a) == "bf16";
  const int registers = halves ? p.n / 4 : p.n / 2;
  const char kind = d_type == "f32" ? 'f' : 'r';
  // D was 7, of halves 1 and 2.
  std::string body =
      kFill + fmt::format(
                  "mov.b64 %d7, {}; add.u64 %d3, %d3, %d7;\nmov.b64 %d7, {}; add.u64 %d4, %d4, "
                  "%d7;\nsetp.{}.u32 %p2, %r200, %r200;\n",
                  static_cast<std::int64_t>(a_at.descriptor()), static_cast<std::int64_t>(b_at.descriptor()),
                  p.adds ? "eq" : "ne");
  for (int k = 0; k < registers; ++k)
    body += fmt::format("mov.b32 %{}{}, {};\n", kind, k, halves ? "0x40003c00" : whole ? "7" : "0f40E00000");
  std::vector<std::uint32_t> fragments;
  if (p.a_in_registers) {
    // m64 by 32 bytes of k: a register has four bytes; rows 16 warp + lane / 4 and 8 more, then 16 bytes of k
    // more.
    const int per = 4 / bytes;
    for (int t = 0; t < 128; ++t)
      for (int r = 0; r < 4; ++r) {
        std::uint32_t word = 0;
        for (int e = 0; e < per; ++e) {
          const int m = t / 32 * 16 + t % 32 / 4 + r % 2 * 8, k = t % 4 * per + r / 2 * 4 * per + e;
          word |= a_bits[static_cast<std::size_t>(m * k_size + k)] << (8 * bytes * e);
        }
        fragments.push_back(word);
      }
    body += "mul.wide.u32 %d8, %r200, 16; add.u64 %d8, %d8, %d1;\n";
    for (int r = 0; r < 4; ++r)
      body += fmt::format("ld.global.b32 %r{}, [%d8+{}];\n", 250 + r, 98304 + 4 * r);
  }
  body += fmt::format(
      "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{} {}, {}, %d4, %p2", p.n,
      k_size, p.saturate ? ".satfinite" : "", p.d, p.a, p.b, list(kind, 0, registers),
      p.a_in_registers ? "{%r250, %r251, %r252, %r253}" : "%d3");
  if (!whole) body += fmt::format(", {}, {}", p.scale_a, p.scale_b);
  if (transposes && !p.a_in_registers) body += fmt::format(", {}", int(p.a_layout.mn_major));
  if (transposes) body += fmt::format(", {}", int(p.b_layout.mn_major));
  body += ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" +
          store_registers(kind, registers);

  DeviceMemory memory(true);
  std::vector<std::byte> in = image;
  in.resize(image.size() + fragments.size() * 4);
  std::memcpy(in.data() + image.size(), fragments.data(), fragments.size() * 4);
  const DeviceAddress out = memory.allocate(static_cast<std::size_t>(registers) * 512, "out");
  Launch launch{.kernel = "k", .grid = {}, .block = {128, 1, 1}};
  launch.arguments = {Argument::pointer(upload(memory, in, "in")), Argument::pointer(out)};
  Options options;
  options.sanitize = kAll;
  const LaunchResult r = run(ptx::parse(kernel(body), "wgmma.ptx"), launch, memory, device("h100"), options);
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  EXPECT_EQ(r.counters.tensor_multiply_adds, static_cast<std::uint64_t>(64 * p.n * k_size));
  const auto got = download<std::uint32_t>(memory, out, static_cast<std::size_t>(registers) * 128);
  for (int t = 0; t < 128; ++t)
    for (int index = 0; index < p.n / 2; ++index) {
      const int m = t / 32 * 16 + t % 32 / 4 + index / 2 % 2 * 8, n = index / 4 * 8 + t % 4 * 2 + index % 2;
      double sum = p.adds ? (halves ? 1 + index % 2 : 7) : 0;
      for (int k = 0; k < k_size; ++k)
        sum += p.scale_a * p.scale_b * a[static_cast<std::size_t>(m * k_size + k)] *
               b[static_cast<std::size_t>(n * k_size + k)];
      const std::uint32_t word = got[static_cast<std::size_t>(t * registers + (halves ? index / 2 : index))];
      if (!halves) {
        const double value =
            whole ? static_cast<double>(static_cast<std::int32_t>(word)) : double{std::bit_cast<float>(word)};
        ASSERT_EQ(value, sum) << m << " " << n;
        continue;
      }
      const std::uint32_t half = word >> (index % 2 * 16) & 0xffff;
      const int exponent = static_cast<int>(half >> 10 & 31);
      const double magnitude =
          exponent == 0 ? std::ldexp(half & 1023, -24) : std::ldexp(1024 + (half & 1023), exponent - 25);
      ASSERT_NEAR(half >> 15 ? -magnitude : magnitude, sum, std::ldexp(std::fabs(sum), -11)) << m << " " << n;
    }
}

constexpr Layout kK0{0, false}, kK32{32, false}, kK64{64, false}, kK128{128, false};
constexpr Layout kMn0{0, true}, kMn32{32, true}, kMn64{64, true}, kMn128{128, true};
INSTANTIATE_TEST_SUITE_P(
    Forms, Wgmma,
    ::testing::Values(
        Product{8, "f32", "f16", "f16", kK0, kK0}, Product{16, "f32", "f16", "f16", kK32, kK32},
        Product{64, "f32", "f16", "f16", kK64, kK64}, Product{176, "f32", "f16", "f16", kK128, kK128},
        Product{32, "f32", "f16", "f16", kMn0, kMn0}, Product{32, "f32", "f16", "f16", kMn32, kMn32},
        Product{64, "f32", "f16", "f16", kMn64, kMn64}, Product{128, "f32", "f16", "f16", kMn128, kMn128},
        Product{192, "f32", "f16", "f16", kK128, kMn64}, Product{24, "f16", "f16", "f16", kK0, kK128},
        Product{128, "f16", "f16", "f16", kMn128, kK64}, Product{40, "f32", "bf16", "bf16", kK64, kK0},
        Product{96, "f32", "bf16", "bf16", kK128, kMn0}, Product{64, "f32", "bf16", "bf16", {}, kMn128, true},
        Product{104, "f32", "f16", "f16", {}, kK128, true}, Product{8, "f16", "f16", "f16", {}, kMn0, true},
        Product{64, "f32", "tf32", "tf32", kK128, kK128}, Product{80, "f32", "tf32", "tf32", {}, kK32, true},
        Product{64, "f32", "e4m3", "e5m2", kK128, kK128}, Product{16, "f16", "e5m2", "e4m3", kK32, kK0},
        Product{72, "f32", "e4m3", "e4m3", {}, kK64, true}, Product{96, "s32", "s8", "u8", kK128, kK128},
        Product{32, "s32", "u8", "s8", {}, kK32, true, 1, 1, true, true},
        Product{256, "s32", "s8", "s8", kK0, kK64},
        Product{64, "f32", "f16", "f16", kK128, kK128, false, -1, 1},
        Product{64, "f32", "f16", "f16", kK128, kK128, false, -1, -1},
        Product{64, "f32", "bf16", "bf16", {}, kK128, true, 1, -1},
        Product{64, "f32", "f16", "f16", kK128, kK128, false, 1, 1, false},
        Product{8, "f16", "f16", "f16", kK0, kK0, false, 1, 1, false}),
    [](const auto& info) {
      const Product& p = info.param;
      const auto layout = [](Layout l) { return fmt::format("{}{}", l.mn_major ? "mn" : "k", l.swizzle); };
      return fmt::format("n{}_{}_{}_{}_{}_{}{}{}{}", p.n, p.d, p.a, p.b,
                         p.a_in_registers ? "registers" : layout(p.a_layout), layout(p.b_layout),
                         p.scale_a < 0 ? "_minus" : "", p.scale_b < 0 ? "_minus_b" : "",
                         p.adds ? "" : "_new");
    });

/// n8 of f16 from matrices of ones in shared memory, K-major without swizzle.
std::string products(const std::string& before, const std::string& behind) {
  return kFill + before +
         "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d3, %d4, %p6, 1, 1, 0, "
         "0;\n" +
         behind;
}
const std::string kDescriptors =
    "mov.b64 %d7, 0x1000080000; add.u64 %d3, %d3, %d7; add.u64 %d4, %d4, %d7;\n"  // 128 bytes along k, 256
                                                                                  // along rows
    "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n";
const std::string kFence = "wgmma.fence.sync.aligned;\n", kCommit = "wgmma.commit_group.sync.aligned;\n",
                  kWaitAll = "wgmma.wait_group.sync.aligned 0;\n";

std::string found_in(const std::string& body, std::uint32_t threads = 128, Sanitizers what = kAll,
                     const std::string& device_id = "h100") {
  DeviceMemory memory(true);
  Launch launch{.kernel = "k", .grid = {}, .block = {threads, 1, 1}};
  launch.arguments = {Argument::pointer(upload(memory, std::vector<std::uint16_t>(49152, 0x3c00), "in")),
                      Argument::pointer(memory.allocate(1 << 16, "out"))};
  Options options;
  options.sanitize = what;
  options.max_warp_instructions = 1000000;
  const LaunchResult r =
      run(ptx::parse(kernel(body), "wgmma.ptx"), launch, memory, device(device_id), options);
  return r.findings.empty() ? "" : std::string(name(r.findings[0].kind)) + ": " + r.findings[0].message;
}

TEST(WgmmaOrder, AccumulatorsAreSetBehindTheWait) {
  const std::string store = store_registers('f', 4);
  EXPECT_EQ(found_in(products(kDescriptors + kFence, kCommit + kWaitAll + store)), "");
  // A chain of products of one shape needs no fence, and a group may stay open.
  const std::string again =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d3, %d4, %p6, 1, 1, 0, 0;\n";
  EXPECT_EQ(found_in(products(kDescriptors + kFence, again + kCommit + kWaitAll + store)), "");
  const std::string other =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f4, %f5, %f6, %f7}, %d3, %d4, %p7, 1, 1, 0, 0;\n";
  const std::string one = "wgmma.wait_group.sync.aligned 1;\n";
  EXPECT_EQ(found_in(products(kDescriptors + "setp.ne.u32 %p7, %r200, %r200;\n" + kFence,
                              kCommit + other + kCommit + one + store + kWaitAll)),
            "");
  EXPECT_NE(found_in(products(kDescriptors + kFence, kCommit + one + store))
                .find("uses %f0, which the wgmma at PTX line"),
            std::string::npos);
  EXPECT_NE(
      found_in(products(kDescriptors + kFence, kCommit + store + kWaitAll)).find("unset-register: uses %f0"),
      std::string::npos);
  EXPECT_NE(
      found_in(products(kDescriptors + kFence, "mov.f32 %f3, %f90;\n" + kCommit + kWaitAll)).find("unset"),
      std::string::npos);
  EXPECT_NE(
      found_in(products(kDescriptors + kFence, "add.f32 %f3, 0f3f800000, 0f3f800000;\n" + kCommit + kWaitAll))
          .find("changes %f3"),
      std::string::npos);
  EXPECT_NE(found_in(products(kDescriptors, kCommit + kWaitAll + store)).find("before the first wgmma.fence"),
            std::string::npos);
  EXPECT_NE(found_in(products(kFence + kDescriptors, kCommit + kWaitAll + store))
                .find("with no wgmma.fence in between"),
            std::string::npos);
  // Only --sanitize=sync looks.
  EXPECT_EQ(found_in(products(kDescriptors + kFence, kCommit + store + kWaitAll), 128,
                     {.race = true, .init = true}),
            "");
}

TEST(WgmmaOrder, SharedMemoryIsReadUntilTheWait) {
  const std::string store = "mov.u32 %r210, 0; st.shared.u32 [%r201], %r210;\n";
  const std::string good = products(kDescriptors + kFence, kCommit + kWaitAll + "bar.sync 0;\n" + store);
  EXPECT_EQ(found_in(good), "");
  const auto without = [](std::string text, const std::string& part) {
    return text.erase(text.find(part), part.size());
  };
  EXPECT_NE(found_in(without(good, kWaitAll)).find("shared-race"), std::string::npos);
  EXPECT_NE(found_in(without(good, "bar.sync 0;\n" + store) + "bar.sync 0;\n").find(""), std::string::npos);
  EXPECT_NE(found_in(without(good, "fence.proxy.async.shared::cta;\n")).find("fence.proxy.async"),
            std::string::npos);
  EXPECT_NE(found_in(without(good, "st.shared.u32 [%r205], %r203;")).find("never written"),
            std::string::npos);
}

TEST(WgmmaOrder, WarpsWaitForTheirWarpgroup) {
  // Warp 0 comes first, waits, and overwrites A; the other three issue their product later.
  const std::string text =
      kFill + kDescriptors +
      "setp.lt.u32 %p3, %r200, 32;\n@%p3 bra GO;\nLATE: add.u32 %r204, %r204, 1;\n"
      "setp.lt.u32 %p4, %r204, 100;\n@%p4 bra LATE;\nbar.sync 1, 96;\nGO:\n" +
      kFence +
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d3, %d4, %p6, 1, 1, "
      "0, 0;\n" +
      kCommit + kWaitAll + "@%p3 st.shared.v4.u32 [%r201+49152], {%r204, %r204, %r204, %r204};\n" +
      store_registers('f', 4);
  DeviceMemory memory;
  Launch launch{.kernel = "k", .grid = {}, .block = {128, 1, 1}};
  const DeviceAddress out = memory.allocate(1 << 16, "out");
  launch.arguments = {Argument::pointer(upload(memory, std::vector<std::uint16_t>(49152, 0x3c00), "in")),
                      Argument::pointer(out)};
  const LaunchResult r = run(ptx::parse(kernel(text), "wgmma.ptx"), launch, memory, device("h100"), {});
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  for (const float v : download<float>(memory, out, 512)) ASSERT_EQ(v, 16);
}

TEST(WgmmaOrder, AWarpgroupIsWhole) {
  EXPECT_NE(found_in(products(kDescriptors + kFence, kCommit + kWaitAll), 96).find("divergent-barrier"),
            std::string::npos);
}

TEST(WgmmaForms, OthersAreRefused) {
  const auto refusal = [](const std::string& line, const std::string& target = "sm_90a") {
    std::string text = kernel(line);
    try {
      ptx::parse(text.replace(text.find("sm_90a"), 6, target), "wgmma.ptx");
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  const std::string operands = " {%f0, %f1, %f2, %f3}, %d3, %d4, %p6, 1, 1, 0, 0;";
  EXPECT_EQ(refusal("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" + operands), "");
  EXPECT_EQ(refusal("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" + operands, "sm_90"),
            "wgmma wants .target sm_90a, not sm_90");
  EXPECT_EQ(refusal("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16" + operands),
            "instruction 'wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16' is not supported: no form of "
            "'wgmma' has "
            "'.sp'");
  for (const char* form : {"m64n8k16.f16.bf16.bf16", "m64n8k32.f32.f16.f16", "m64n12k16.f32.f16.f16",
                           "m64n40k32.s32.s8.s8", "m64n8k8.f16.tf32.tf32", "m64n8k16.f32.f16.bf16",
                           "m64n8k32.s32.s8.e4m3", "m64n264k16.f32.f16.f16", "m64n8k256.s32.b1.b1.and.popc"})
    EXPECT_NE(refusal(fmt::format("wgmma.mma_async.sync.aligned.{}{}", form, operands)), "") << form;
  EXPECT_NE(
      refusal(
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2}, %d3, %d4, %p6, 1, 1, 0, 0;"),
      "");
  EXPECT_NE(refusal("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d3, %d4, %p6, "
                    "1, 2, 0, 0;"),
            "");
  EXPECT_NE(
      refusal(
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d3, %d4, %p6, 1, 1, 0;"),
      "");
  EXPECT_NE(refusal("wgmma.wait_group.sync.aligned;"), "");
  for (const char* other : {"a100", "b200"})
    EXPECT_THROW(found_in(products(kDescriptors + kFence, kCommit + kWaitAll), 128, {}, other), Error)
        << other;
  const std::string based = "mov.b64 %d9, 0x2000000000000; add.u64 %d3, %d3, %d9;\n";
  EXPECT_THROW(found_in(products(kDescriptors + based + kFence, kCommit + kWaitAll)), Error);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
