// Every instruction family against known values: one row a claim. Operands travel as bits through registers
// of the class their letter names (r f: 32 bits, d e: 64, h: 16, p: predicate), result first.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

struct Row {
  const char* opcode;
  const char* signature;
  std::vector<std::uint64_t> sources;
  std::uint64_t expected;
};

std::uint64_t f(float v) { return std::bit_cast<std::uint32_t>(v); }
std::uint64_t e(double v) { return std::bit_cast<std::uint64_t>(v); }
constexpr std::uint64_t kNan = 0x7fc00000, kInf = 0x7f800000;

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      // integer arithmetic
      {"add.s32", "rrr", {0xffffffff, 2}, 1},
      {"add.u64", "ddd", {0xffffffffffffffff, 2}, 1},
      {"add.s16", "hhh", {0xffff, 2}, 1},
      {"add.sat.s32", "rrr", {0x7fffffff, 5}, 0x7fffffff},
      {"sub.s32", "rrr", {3, 5}, 0xfffffffe},
      {"mul.lo.s32", "rrr", {0x10001, 0x10001}, 0x20001},
      {"mul.hi.u32", "rrr", {0xffffffff, 0xffffffff}, 0xfffffffe},
      {"mul.hi.s32", "rrr", {0xffffffff, 7}, 0xffffffff},
      {"mul.hi.u64", "ddd", {0xffffffffffffffff, 3}, 2},
      {"mul.wide.s32", "drr", {0xffffffff, 4}, 0xfffffffffffffffc},
      {"mul.wide.u32", "drr", {0xffffffff, 4}, 0x3fffffffc},
      {"mul.wide.u16", "rhh", {0xffff, 0xffff}, 0xfffe0001},
      {"mul.wide.s16", "rhh", {0xffff, 5}, 0xfffffffb},
      {"mad.lo.s32", "rrrr", {6, 7, 8}, 50},
      {"mad.wide.s32", "drrd", {0xffffffff, 4, 100}, 96},
      {"mad.hi.u32", "rrrr", {0x80000000, 4, 5}, 7},
      {"div.u32", "rrr", {100, 7}, 14},
      {"div.s32", "rrr", {0xffffff9c, 7}, 0xfffffff2},
      {"div.s32", "rrr", {0x80000000, 0xffffffff}, 0x80000000},
      {"div.u32", "rrr", {5, 0}, 0xffffffff},
      {"div.u64", "ddd", {1000000000000, 1000}, 1000000000},
      {"rem.s32", "rrr", {0xffffff9c, 7}, 0xfffffffe},
      {"rem.u64", "ddd", {1000000000001, 1000}, 1},
      {"neg.s32", "rr", {5}, 0xfffffffb},
      {"abs.s32", "rr", {0xfffffffb}, 5},
      {"min.s32", "rrr", {0xffffffff, 1}, 0xffffffff},
      {"min.u32", "rrr", {0xffffffff, 1}, 1},
      {"max.s64", "ddd", {0xffffffffffffffff, 1}, 1},
      {"max.u16", "hhh", {0xffff, 1}, 0xffff},
      {"max.s16", "hhh", {0xffff, 1}, 1},
      {"sad.u32", "rrrr", {3, 10, 100}, 107},
      {"dp4a.u32.u32", "rrrr", {0x01020304, 0x01010101, 5}, 15},
      // destinations wider than the type: sign-extended where it is signed
      {"cvt.s16.s8", "rh", {0xc2}, 0xffffffc2},
      {"cvt.s8.s32", "rr", {0x1c2}, 0xffffffc2},
      {"cvt.u16.u8", "rh", {0xffc2}, 0xc2},
      {"cvt.s32.s8", "dh", {0xc2}, 0xffffffffffffffc2},
      {"cvt.u32.u8", "dh", {0xffc2}, 0xc2},
      {"cvt.s16.s32", "dr", {0x18001}, 0xffffffffffff8001},
      {"cvt.rzi.s32.f32", "df", {f(-3.5f)}, 0xfffffffffffffffd},
      {"cvt.rzi.u32.f32", "df", {f(3e9f)}, 3000000000},
      {"cvt.rn.f16.f32", "rf", {f(-1)}, 0xbc00},
      // three numbers at once (sm_100)
      {"max.f32", "ffff", {f(-2), f(3), f(1)}, f(3)},
      {"min.f32", "ffff", {f(2), f(3), f(-1)}, f(-1)},
      {"max.f32", "ffff", {kNan, f(-3), kNan}, f(-3)},
      {"max.NaN.f32", "ffff", {f(1), f(-3), kNan}, 0x7fffffff},
      {"min.abs.f32", "ffff", {f(-2), f(3), f(-1)}, f(1)},
      // logic, shifts, bit fields
      {"and.b32", "rrr", {0xff00ff00, 0x0ff00ff0}, 0x0f000f00},
      {"or.b64", "ddd", {0xff00000000, 1}, 0xff00000001},
      {"xor.b32", "rrr", {0xffff0000, 0xff00ff00}, 0x00ffff00},
      {"not.b32", "rr", {0}, 0xffffffff},
      {"not.b16", "hh", {0}, 0xffff},
      {"shl.b32", "rrr", {1, 31}, 0x80000000},
      {"shl.b32", "rrr", {1, 32}, 0},
      {"shl.b64", "ddr", {1, 63}, 0x8000000000000000},
      {"shr.u32", "rrr", {0x80000000, 31}, 1},
      {"shr.s32", "rrr", {0x80000000, 40}, 0xffffffff},
      {"shr.s64", "ddr", {0x8000000000000000, 60}, 0xfffffffffffffff8},
      {"shr.u64", "ddr", {0x8000000000000000, 64}, 0},
      {"shr.s16", "hhr", {0x8000, 3}, 0xf000},
      {"shf.l.wrap.b32", "rrrr", {0x80000000, 1, 1}, 3},
      {"shf.r.clamp.b32", "rrrr", {2, 1, 40}, 1},
      {"lop3.b32", "rrrrr", {0xf0, 0xcc, 0xaa, 0x96}, 0xf0 ^ 0xcc ^ 0xaa},
      {"bfe.u32", "rrrr", {0x12345678, 8, 8}, 0x56},
      {"bfe.s32", "rrrr", {0x0000f000, 12, 4}, 0xffffffff},
      {"bfi.b32", "rrrrr", {0xab, 0, 16, 8}, 0xab0000},
      {"bfi.b64", "dddrr", {0xab, 0xffffffffffffffff, 32, 8}, 0xffffffabffffffff},
      {"bfind.u32", "rr", {0x10000}, 16},
      {"bfind.s32", "rr", {0xffffffff}, 0xffffffff},
      {"brev.b32", "rr", {1}, 0x80000000},
      {"clz.b32", "rr", {0}, 32},
      {"clz.b64", "rd", {1}, 63},
      {"popc.b32", "rr", {0xf0f0}, 8},
      {"popc.b64", "rd", {0xffffffffffffffff}, 64},
      {"prmt.b32", "rrrr", {0x33221100, 0x77665544, 0x7531}, 0x77553311},
      {"prmt.b32", "rrrr", {0x00008000, 0, 0x9999}, 0xffffffff},
      {"slct.f32.s32", "rrrr", {1, 2, 0xffffffff}, 2},
      {"selp.b32", "rrrp", {1, 2, 1}, 1},
      {"selp.b64", "dddp", {1, 2, 0}, 2},
      // fp32, rounding modes
      {"add.f32", "fff", {f(1), f(0x1p-24f)}, f(1)},
      {"add.rp.f32", "fff", {f(1), f(0x1p-24f)}, f(1 + 0x1p-23f)},
      {"add.rm.f32", "fff", {f(1), f(-0x1p-30f)}, f(1 - 0x1p-24f)},
      {"add.rz.f32", "fff", {f(-1), f(-0x1p-24f)}, f(-1)},
      {"sub.f32", "fff", {f(3), f(5)}, f(-2)},
      {"mul.ftz.f32", "fff", {f(0x1p-126f), f(0.5f)}, f(0)},
      {"mul.f32", "fff", {f(0x1p-126f), f(0.5f)}, f(0x1p-127f)},
      {"add.sat.f32", "fff", {f(0.75f), f(0.75f)}, f(1)},
      {"fma.rn.f32", "ffff", {f(1 + 0x1p-23f), f(1 - 0x1p-23f), f(-1)}, f(-0x1p-46f)},
      {"fma.rm.f32", "ffff", {f(0.3f), f(252), f(12582913.0f)}, f(12582988.0f)},
      {"fma.rp.f32", "ffff", {f(0.3f), f(252), f(12582913.0f)}, f(12582989.0f)},
      {"div.rn.f32", "fff", {f(1), f(3)}, f(1.0f / 3)},
      {"div.approx.f32", "fff", {f(6), f(3)}, f(2)},
      {"rcp.rn.f32", "ff", {f(3)}, f(1.0f / 3)},
      {"rcp.approx.ftz.f32", "ff", {f(4)}, f(0.25f)},
      {"sqrt.rn.f32", "ff", {f(2)}, f(1.41421356f)},
      {"sqrt.rz.f32", "ff", {f(3)}, 0x3fddb3d7},
      {"rsqrt.approx.f32", "ff", {f(16)}, f(0.25f)},
      {"ex2.approx.ftz.f32", "ff", {f(-3)}, f(0.125f)},
      {"ex2.approx.ftz.f32", "ff", {f(-200)}, 0},
      {"ex2.approx.f32", "ff", {f(-149)}, 1},
      {"ex2.approx.f32", "ff", {f(128)}, kInf},
      {"ex2.approx.f32", "ff", {0xff800000}, 0},
      {"lg2.approx.f32", "ff", {f(8)}, f(3)},
      {"lg2.approx.f32", "ff", {f(0)}, 0xff800000},
      {"lg2.approx.f32", "ff", {f(0x1p-149f)}, f(-149)},
      {"sin.approx.f32", "ff", {f(0)}, f(0)},
      {"cos.approx.f32", "ff", {f(0)}, f(1)},
      {"tanh.approx.f32", "ff", {f(100)}, f(1)},
      {"abs.f32", "ff", {f(-2)}, f(2)},
      {"neg.f32", "ff", {f(0)}, 0x80000000},
      {"copysign.f32", "fff", {f(-0.0f), f(3)}, f(-3)},
      {"max.f32", "fff", {kNan, f(1)}, f(1)},
      {"min.f32", "fff", {f(1), kNan}, f(1)},
      {"max.f32", "fff", {0x80000000, 0}, 0},
      {"min.f32", "fff", {0, 0x80000000}, 0x80000000},
      {"max.NaN.f32", "fff", {kNan, f(1)}, 0x7fffffff},
      // fp64
      {"add.f64", "eee", {e(0.1), e(0.2)}, e(0.1 + 0.2)},
      {"add.rp.f64", "eee", {e(1), e(0x1p-60)}, e(1 + 0x1p-52)},
      {"fma.rn.f64", "eeee", {e(1 + 0x1p-52), e(1 - 0x1p-52), e(-1)}, e(-0x1p-104)},
      {"div.rn.f64", "eee", {e(1), e(3)}, e(1.0 / 3)},
      {"sqrt.rn.f64", "ee", {e(2)}, e(1.4142135623730951)},
      {"neg.f64", "ee", {e(2)}, e(-2)},
      {"max.f64", "eee", {e(2), e(3)}, e(3)},
      // half precision
      {"add.f16", "hhh", {0x3c00, 0x3c00}, 0x4000},
      {"mul.f16", "hhh", {0x7bff, 0x4000}, 0x7c00},
      {"fma.rn.f16", "hhhh", {0x3c01, 0x3c01, 0x0001}, 0x3c02},
      {"fma.rn.f16x2", "rrrr", {0x3c004000, 0x40004000, 0x00003c00}, 0x40004500},
      {"add.f16x2", "rrr", {0x3c004000, 0x3c003c00}, 0x40004200},
      {"max.f16", "hhh", {0x7e00, 0x3c00}, 0x3c00},
      {"neg.f16", "hh", {0x3c00}, 0xbc00},
      {"add.bf16", "hhh", {0x3f80, 0x3f80}, 0x4000},
      {"fma.rn.bf16", "hhhh", {0x3f81, 0x3f81, 0x0001}, 0x3f82},
      {"ex2.approx.f16", "hh", {0x4200}, 0x4800},
      // conversions
      {"cvt.s64.s32", "dr", {0xffffffff}, 0xffffffffffffffff},
      {"cvt.u64.u32", "dr", {0xffffffff}, 0xffffffff},
      {"cvt.u32.u64", "rd", {0x1234567890}, 0x34567890},
      {"cvt.u16.u32", "hr", {0x12345678}, 0x5678},
      {"cvt.s32.s16", "rh", {0x8000}, 0xffff8000},
      {"cvt.s32.s8", "rh", {0x80}, 0xffffff80},
      {"cvt.u32.u8", "rh", {0x1ff}, 0xff},
      {"cvt.sat.u8.s32", "hr", {0xfffffff0}, 0},
      {"cvt.sat.s8.s32", "hr", {1000}, 127},
      {"cvt.rn.f32.s32", "fr", {0xffffffff}, f(-1)},
      {"cvt.rn.f32.u32", "fr", {0xffffffff}, f(4294967296.0f)},
      {"cvt.rz.f32.u32", "fr", {0xffffffff}, f(4294967040.0f)},
      {"cvt.rn.f64.s64", "ed", {0xffffffffffffffff}, e(-1)},
      {"cvt.rni.s32.f32", "rf", {f(2.5f)}, 2},
      {"cvt.rzi.s32.f32", "rf", {f(-2.7f)}, 0xfffffffe},
      {"cvt.rmi.s32.f32", "rf", {f(-2.1f)}, 0xfffffffd},
      {"cvt.rpi.s32.f32", "rf", {f(2.1f)}, 3},
      {"cvt.rzi.s32.f32", "rf", {f(3e9f)}, 0x7fffffff},
      {"cvt.rzi.s32.f32", "rf", {kNan}, 0},
      {"cvt.rzi.u32.f32", "rf", {f(-5)}, 0},
      {"cvt.rzi.s64.f64", "de", {e(-1e10)}, static_cast<std::uint64_t>(-10000000000)},
      {"cvt.rni.f32.f32", "ff", {f(3.5f)}, f(4)},
      {"cvt.rmi.f32.f32", "ff", {f(-0.5f)}, f(-1)},
      {"cvt.sat.f32.f32", "ff", {kNan}, 0},
      {"cvt.sat.f32.f32", "ff", {f(1.5f)}, f(1)},
      {"cvt.f64.f32", "ef", {f(1.5f)}, e(1.5)},
      {"cvt.rn.f32.f64", "fe", {e(0.1)}, f(0.1f)},
      {"cvt.rp.f32.f64", "fe", {e(1 + 0x1p-40)}, f(1 + 0x1p-23f)},
      {"cvt.f32.f16", "fh", {0x0001}, f(0x1p-24f)},
      {"cvt.rn.f16.f32", "hf", {f(65519.0f)}, 0x7bff},
      {"cvt.rn.f16.f32", "hf", {f(65520.0f)}, 0x7c00},
      {"cvt.rz.f16.f32", "hf", {f(1.9999f)}, 0x3fff},
      {"cvt.f32.bf16", "fh", {0x3fc0}, f(1.5f)},
      {"cvt.rn.bf16.f32", "hf", {0x3f808000}, 0x3f80},
      {"cvt.rn.bf16.f32", "hf", {0x3f818000}, 0x3f82},
      {"cvt.rn.f16x2.f32", "rff", {f(1), f(2)}, 0x3c004000},
      // set gives all ones or 1.0; setp goes through selp below
      {"set.lt.u32.s32", "rrr", {0xffffffff, 0}, 0xffffffff},
      {"set.eq.f32.f32", "fff", {f(1), f(1)}, f(1)},
      {"set.gt.f16.f16", "hhh", {0x4000, 0x3c00}, 0x3c00},
      {"setp.lt.s32", "prr", {0xffffffff, 0}, 1},
      {"setp.lt.u32", "prr", {0xffffffff, 0}, 0},
      {"setp.ge.u64", "pdd", {1, 1}, 1},
      {"setp.lt.s16", "phh", {0xffff, 0}, 1},
      {"setp.eq.f32", "pff", {kNan, kNan}, 0},
      {"setp.neu.f32", "pff", {kNan, kNan}, 1},
      {"setp.ne.f32", "pff", {kNan, f(1)}, 0},
      {"setp.geu.f32", "pff", {kNan, f(1)}, 1},
      {"setp.ltu.f32", "pff", {f(2), f(1)}, 0},
      {"setp.num.f32", "pff", {f(2), kNan}, 0},
      {"setp.nan.f32", "pff", {f(2), kNan}, 1},
      {"setp.gt.f64", "pee", {e(2), e(1)}, 1},
      {"setp.gt.f16", "phh", {0x4000, 0x3c00}, 1},
      {"and.pred", "ppp", {1, 0}, 0},
      {"or.pred", "ppp", {1, 0}, 1},
      {"xor.pred", "ppp", {1, 1}, 0},
      {"not.pred", "pp", {0}, 1},
  };
  return kRows;
}

std::string register_of(char letter, int k) { return fmt::format("%{}{}", letter, k); }

/// Loads operands from `in` (8 bytes each, the same for every lane), runs the instruction, stores its bits to
/// out[tid].
std::string program(const Row& row) {
  const std::string signature = row.signature;
  std::string body = "ld.param.u64 %d30, [in];\nld.param.u64 %d31, [out];\nmov.u32 %r30, %tid.x;\n";
  std::string operands;
  for (std::size_t k = 1; k < signature.size(); ++k) {
    const char c = signature[k];
    const std::string reg = register_of(c, static_cast<int>(k));
    const std::size_t offset = (k - 1) * 8;
    if (c == 'p') {
      body += fmt::format("ld.global.u32 %r{}, [%d30+{}];\nsetp.ne.u32 {}, %r{}, 0;\n", 10 + k, offset, reg,
                          10 + k);
    } else {
      body += fmt::format("ld.global.b{} {}, [%d30+{}];\n",
                          c == 'h'               ? 16
                          : c == 'd' || c == 'e' ? 64
                                                 : 32,
                          reg, offset);
    }
    operands += ", " + reg;
  }
  const char d = signature[0];
  const std::string result = register_of(d, 0);
  body += fmt::format("{} {}{};\nmul.wide.u32 %d29, %r30, 8;\nadd.u64 %d31, %d31, %d29;\n", row.opcode,
                      result, operands);
  if (d == 'p')
    body += "selp.u32 %r29, 1, 0, %p0;\ncvt.u64.u32 %d28, %r29;\n";
  else if (d == 'h')
    body += "cvt.u64.u16 %d28, %h0;\n";
  else if (d == 'd' || d == 'e')
    body += fmt::format("mov.b64 %d28, {};\n", result);
  else
    body += fmt::format("mov.b32 %r29, {};\ncvt.u64.u32 %d28, %r29;\n", result);
  body += "st.global.u64 [%d31], %d28;\nret;\n";
  return wrap_ptx(body);
}

class InstructionTest : public ::testing::TestWithParam<int> {};

TEST_P(InstructionTest, GivesTheKnownValueInFullAndPartialWarps) {
  const Row& row = rows()[static_cast<std::size_t>(GetParam())];
  const ptx::Module module = ptx::parse(program(row), "row.ptx");
  for (std::uint32_t threads : {32u, 21u}) {
    DeviceMemory memory;
    std::vector<std::uint64_t> in = row.sources;
    in.resize(8);
    Launch launch{.kernel = "k", .grid = {}, .block = {threads, 1, 1}};
    launch.arguments = {Argument::pointer(upload(memory, in, "in")),
                        Argument::pointer(upload(memory, std::vector<std::uint64_t>(threads), "out"))};
    const LaunchResult r = run(module, launch, memory, device("v100"), {});
    ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
    std::uint64_t address;
    std::memcpy(&address, launch.arguments[1].bytes.data(), 8);
    for (std::uint64_t v : download<std::uint64_t>(memory, address, threads)) {
      ASSERT_EQ(v, row.expected) << row.opcode << " of " << threads << " threads";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Table, InstructionTest, ::testing::Range(0, static_cast<int>(rows().size())));

TEST(Instruction, RoundingIsRestoredAfterADirectedOne) {
  const ptx::Module module = ptx::parse(wrap_ptx("ld.param.u64 %d1, [out];\nmov.f32 %f1, 0f3F800000;\n"
                                                 "mov.f32 %f2, 0f33800000;\nadd.rp.f32 %f3, %f1, %f2;\n"
                                                 "add.f32 %f4, %f1, %f2;\nst.global.f32 [%d1], %f4;\nret;"),
                                        "t.ptx");
  DeviceMemory memory;
  const DeviceAddress out = memory.allocate(4, "out");
  Launch launch{.kernel = "k", .grid = {}, .block = {1, 1, 1}};
  launch.arguments = {Argument::pointer(0), Argument::pointer(out)};
  ASSERT_TRUE(run(module, launch, memory, device("v100"), {}).findings.empty());
  EXPECT_EQ(download<float>(memory, out, 1)[0], 1.0f);
}

TEST(Instruction, EverySupportedFormIsListedOnce) {
  const auto forms = ptx::supported_instructions();
  EXPECT_GT(forms.size(), 700u);
  for (std::size_t k = 1; k < forms.size(); ++k) EXPECT_NE(forms[k - 1], forms[k]);
  EXPECT_NE(std::find(forms.begin(), forms.end(), "fma.rn.f32"), forms.end());
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
