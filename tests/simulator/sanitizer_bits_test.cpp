// Words of which some bits are set: what instructions on bits make of them, and programs that nvcc -G
// compiled.
#include <functional>
#include <random>

#include "tests/simulator/cuda_sources.h"
#include "tests/simulator/sanitized.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace sanitizing;

using Words = std::array<std::uint64_t, 2>;

/// An instruction of sources a and b, of so many bits, and what it makes.
struct BitForm {
  std::string line;  ///< of A and B to R
  int bits, result_bits;
  std::function<std::uint64_t(std::uint64_t, std::uint64_t)> value;
};

std::uint64_t low(int bits) { return bits == 64 ? ~0ull : (1ull << bits) - 1; }
std::int64_t signed_of(std::uint64_t v, int bits) {
  return static_cast<std::int64_t>(v << (64 - bits)) >> (64 - bits);
}

const std::vector<BitForm>& bit_forms() {
  static const std::vector<BitForm> kForms = {
      {"and.b32 R, A, B;", 32, 32, [](auto a, auto b) { return a & b; }},
      {"or.b32 R, A, B;", 32, 32, [](auto a, auto b) { return a | b; }},
      {"xor.b32 R, A, B;", 32, 32, [](auto a, auto b) { return a ^ b; }},
      {"not.b32 R, A;", 32, 32, [](auto a, auto) { return ~a; }},
      {"shl.b32 R, A, 11;", 32, 32, [](auto a, auto) { return a << 11; }},
      {"shl.b32 R, A, 40;", 32, 32, [](auto, auto) { return 0ull; }},
      {"shr.u32 R, A, 7;", 32, 32, [](auto a, auto) { return a >> 7; }},
      {"shr.s32 R, A, 19;", 32, 32, [](auto a, auto) { return std::uint64_t(signed_of(a, 32) >> 19); }},
      {"shr.s32 R, A, 99;", 32, 32, [](auto a, auto) { return std::uint64_t(signed_of(a, 32) >> 31); }},
      {"bfi.b32 R, A, B, 9, 13;", 32, 32,
       [](auto a, auto b) { return (b & ~(low(13) << 9)) | (a & low(13)) << 9; }},
      {"bfe.u32 R, A, 5, 11;", 32, 32, [](auto a, auto) { return a >> 5 & low(11); }},
      {"bfe.s32 R, A, 16, 7;", 32, 32, [](auto a, auto) { return std::uint64_t(signed_of(a >> 16, 7)); }},
      {"bfe.s32 R, A, 28, 20;", 32, 32, [](auto a, auto) { return std::uint64_t(signed_of(a, 32) >> 28); }},
      {"cvt.u64.u32 R, A;", 32, 64, [](auto a, auto) { return a & low(32); }},
      {"cvt.s64.s32 R, A;", 32, 64, [](auto a, auto) { return std::uint64_t(signed_of(a, 32)); }},
      {"cvt.u32.u64 R, A;", 64, 32, [](auto a, auto) { return a; }},
      {"and.b64 R, A, B;", 64, 64, [](auto a, auto b) { return a & b; }},
      {"or.b64 R, A, B;", 64, 64, [](auto a, auto b) { return a | b; }},
      {"shl.b64 R, A, 33;", 64, 64, [](auto a, auto) { return a << 33; }},
      {"shr.s64 R, A, 21;", 64, 64, [](auto a, auto) { return std::uint64_t(std::int64_t(a) >> 21); }},
      {"shr.u64 R, A, 21;", 64, 64, [](auto a, auto) { return a >> 21; }},
      {"bfi.b64 R, A, B, 20, 30;", 64, 64,
       [](auto a, auto b) { return (b & ~(low(30) << 20)) | (a & low(30)) << 20; }},
      {"bfe.s64 R, A, 20, 30;", 64, 64, [](auto a, auto) { return std::uint64_t(signed_of(a >> 20, 30)); }},
      // Sums are set where all of their sources' bits are.
      {"add.u32 R, A, B;", 32, 32, nullptr},
  };
  return kForms;
}

/// A and B with those bits of `values` set that `set` has, by way of shared memory; then the form; then bit
/// `bit` of its result decides a branch.
std::string kernel_of(const BitForm& form, const Words& values, const Words& set, int bit) {
  const bool wide = form.bits == 64, wide_result = form.result_bits == 64;
  const std::string type = wide ? "b64" : "b32";
  std::string body = ".shared .align 16 .b8 s[32];\n";
  for (std::size_t k = 0; k < 2; ++k) {
    const std::string r = fmt::format("%{}{}", wide ? 'd' : 'r', 10 + k), at = fmt::format("[s+{}]", 16 * k);
    body += fmt::format(
        "ld.shared.{0} {1}, {2};\nand.{0} {1}, {1}, {3};\nor.{0} {1}, {1}, {4};\nst.shared.{0} {2}, "
        "{1};\nld.shared.{0} {1}, {2};\n",
        type, r, at, ~set[k] & low(form.bits), values[k] & set[k]);
  }
  std::string line = form.line;
  const auto put = [&](char letter, const std::string& name) {
    for (std::size_t at = line.find(letter, line.find(' ')); at != std::string::npos;
         at = line.find(letter, at + name.size()))
      line.replace(at, 1, name);
  };
  put('A', wide ? "%d10" : "%r10");
  put('B', wide ? "%d11" : "%r11");
  put('R', wide_result ? "%d12" : "%r12");
  const std::string result = wide_result ? "%d12" : "%r12", of = wide_result ? "64" : "32";
  return body + line +
         fmt::format(
             "\nand.b{0} {1}, {1}, {2};\nsetp.ne.u{0} %p1, {1}, 0;\n@%p1 bra END;\nst.global.u32 [%d2], "
             "1;\nEND:",
             of, result, 1ull << bit);
}

TEST(SanitizerBits, BitsAreSetWhereNothingUnsetChangesThem) {
  std::mt19937_64 rng(5);
  const std::string finding =
      "unset-register: uses %p1, which this thread never set, or made of what was never set or written";
  for (const BitForm& form : bit_forms()) {
    const Words values{rng(), rng()};
    // Bit fields: runs of bits, not single ones.
    const Words set{low(9) << 3 | low(8) << 17 | low(5) << 40, low(12) << 10 | low(20) << 35};
    std::uint64_t moved = form.value ? 0 : ~0ull;
    for (int k = 0; k < 200 && form.value; ++k) {
      Words other, filled;
      for (std::size_t w = 0; w < 2; ++w) {
        other[w] = ((values[w] & set[w]) | (rng() & ~set[w])) & low(form.bits);
        filled[w] = values[w] & set[w] & low(form.bits);
      }
      moved |= form.value(other[0], other[1]) ^ form.value(filled[0], filled[1]);
    }
    for (int bit = 0; bit < form.result_bits; bit += 1)
      EXPECT_EQ(sanitized(kInit, kernel_of(form, values, set, bit), 1, 1).text(),
                moved >> bit & 1 ? finding : "")
          << form.line << " bit " << bit;
  }
}

TEST(SanitizerBits, AWordOfWhichSomeBitsAreSetMayBeCopiedAndStoredButNotDecide) {
  const std::string body = R"(
.shared .align 16 .b8 s[32];
ld.shared.u32 %r10, [s];
and.b32 %r10, %r10, 0xffffff00;
or.b32 %r10, %r10, 0x12;
st.shared.u32 [s], %r10;
ld.shared.u32 %r11, [s];
st.shared.u32 [s+8], %r11;
ld.shared.u32 %r12, [s+8];
USE
END:)";
  const std::string unset =
      "unset-register: uses {}, which this thread never set, or made of what was never set or written";
  const std::pair<const char*, const char*> uses[] = {
      {"st.global.u32 [%d2], %r12;", ""},  // a structure with padding
      {"st.global.u8 [%d2], %r12;", ""},
      {"add.u32 %r13, %r1, 0;\nst.global.v2.u32 [%d2], {%r12, %r13};", ""},
      {"st.global.u32 [%d2], %r10;", "%r10"},
      {"and.b32 %r13, %r12, 255;\nst.global.u32 [%d2], %r13;", ""},
      {"ld.shared.u8 %r13, [s+8];\nst.global.u32 [%d2], %r13;", ""},
      {"shr.u32 %r13, %r12, 8;\nst.global.u32 [%d2], %r13;", "%r13"},
      {"add.u32 %r13, %r12, 1;\nst.global.u32 [%d2], %r13;", "%r13"},
      {"ld.shared.u8 %r13, [s+9];\nst.global.u32 [%d2], %r13;", "%r13"},
      {"setp.eq.u32 %p1, %r12, 7;\n@%p1 bra END;\nst.global.u32 [%d2], 1;", "%p1"},
      {"setp.eq.u32 %p2, %r1, 0;\nselp.b32 %r13, %r12, 0, %p2;\nand.b32 %r13, %r13, 16;\nst.global.u32 "
       "[%d2], %r13;",
       ""},
      {"setp.eq.u32 %p2, %r1, 0;\nselp.b32 %r13, %r12, 0, %p2;\nand.b32 %r13, %r13, 256;\nst.global.u32 "
       "[%d2], "
       "%r13;",
       "%r13"},
      {"red.shared.add.u32 [s+16], %r12;", "%r12"},
  };
  for (const auto& [use, found] : uses) {
    std::string expected = unset;
    if (*found != 0) expected.replace(expected.find("{}"), 2, found);
    EXPECT_EQ(sanitized(kInit, replaced(body, "USE", use), 1, 1).text(), *found == 0 ? "" : expected) << use;
  }
  // Without a field that is set in it, a word is read as any other.
  EXPECT_EQ(sanitized(kInit,
                      ".shared .align 16 .b8 s[32];\nld.shared.u32 %r10, [s];\nand.b32 %r10, %r10, "
                      "255;\nst.global.u32 [%d2], %r10;",
                      1, 1)
                .text(),
            "uninitialised-read: reads 4 bytes at shared memory offset 0, of which byte 0 was never written");
}

class BitFields : public ::testing::Test {
 protected:
  static constexpr int kThreads = 64;
  void SetUp() override {
    if (!on_path("nvcc")) GTEST_SKIP() << "nvcc is not installed";
    x.resize(kThreads);
    std::mt19937 rng(9);
    for (int& v : x) v = static_cast<int>(rng());
  }
  /// "kind", or "" of a clean run.
  std::string found(const std::string& options, const std::string& kernel, int last) {
    const ptx::Module module = compiled("bit_fields", "nvcc -ptx -std=c++17 -arch=sm_80 " + options);
    memory = DeviceMemory(true);
    Launch launch{.kernel = kernel, .grid = {1, 1, 1}, .block = {kThreads, 1, 1}};
    const DeviceAddress in = upload(memory, x, "x");
    const DeviceAddress out = memory.allocate(kThreads * 4, "y");
    launch.arguments = {Argument::pointer(in), Argument::pointer(out), Argument::i32(last)};
    Options with;
    with.sanitize = {.race = true, .init = true, .sync = true};
    const LaunchResult r = run(module, launch, memory, device("a100"), with);
    y = download<int>(memory, out, kThreads);
    if (r.findings.empty()) return "";
    where = r.findings[0].thread.x;
    return std::string(name(r.findings[0].kind));
  }
  std::vector<int> x, y;
  std::uint32_t where = 0;
  DeviceMemory memory;
};

TEST_F(BitFields, OfADebugBuildAreClean) {
  for (const char* options : {"-G", "-O3"}) {
    EXPECT_EQ(found(options, "local_fields", kThreads), "") << options;
    const auto field = [](int v, int at, int bits) {
      return static_cast<int>(unsigned(v) >> at & low(bits));
    };
    const auto with_sign = [&](int v, int at, int bits) {
      return static_cast<int>(signed_of(unsigned(v) >> at, bits));
    };
    for (int i = 0; i < kThreads; ++i) {
      const int w = field(x[i], 0, 5) + 3 * field(x[i], 5, 11) + 5 * with_sign(x[i], 16, 7);
      const int right = x[i] & 1 ? w + static_cast<int>(signed_of(-std::uint64_t(std::int64_t(x[i])), 30)) +
                                       field(x[i], 1, 3)
                                 : w + field(x[i], 0, 20);
      ASSERT_EQ(y[i], right) << options << " " << i;
    }
    EXPECT_EQ(found(options, "shared_fields", 1), "") << options;
    for (int i = 0; i < kThreads; ++i) {
      const int other = x[63 - i];
      ASSERT_EQ(y[i], with_sign(other, 16, 7) > 3 ? field(other, 0, 5) : field(other, 5, 11)) << options;
    }
    EXPECT_EQ(found(options, "unset_field", 6), "") << options;
  }
}

TEST_F(BitFields, OneThatNothingSetIsFoundWhereItDecides) {
  x[40] = 0;  // an offset of 0: thread 23 takes the length of 40
  EXPECT_EQ(found("-G", "shared_fields", 0), "unset-register");
  EXPECT_EQ(where, 23u);
  EXPECT_EQ(found("-G", "unset_field", 5), "unset-register");
  EXPECT_EQ(where, 0u);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
