// What compilers write in more ways than one, and forms that are no table row: read as they are meant, or
// refused by the modifier that is not understood.
#include "simulator/isa/forms.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "simulator/isa/isa.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

std::string refusal(const std::string& text) {
  try {
    ptx::parse(text, "forms.ptx");
  } catch (const Error& e) {
    EXPECT_GT(e.line(), 0) << e.what();
    return e.message();
  }
  return "";
}
std::string refused_line(const std::string& line) { return refusal(wrap_ptx(line + "\nret;")); }

/// out[0..] of one thread, with in = 1, 2, 3 ...: %d1 holds in, %d2 out.
std::vector<std::uint32_t> run_one(const std::string& text, const std::string& device_id = "h100") {
  const Outcome outcome =
      run_on_numbers(ptx::parse(text, "forms.ptx"), {.kernel = "k", .grid = {}, .block = {1, 1, 1}},
                     {.sanitize = {.race = true, .init = true, .sync = true}}, device_id, 64, 16);
  EXPECT_EQ(outcome.text(), "");
  return outcome.out;
}
std::string with_pointers(const std::string& body) {
  return wrap_ptx("ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\n" + body + "\nret;");
}

TEST(Forms, IntegersHaveFourBases) {
  const auto out = run_one(with_pointers(
      "mov.u32 %r1, 017;\nmov.u32 %r2, 0b1011U;\nmov.u32 %r3, 0X1f;\nmov.u32 %r4, 19;\n"
      "st.global.v4.u32 [%d2], {%r1, %r2, %r3, %r4};\nmov.f32 %f1, 00.5;\nst.global.f32 [%d2+16], %f1;"));
  EXPECT_EQ(std::vector<std::uint32_t>(out.begin(), out.begin() + 5),
            (std::vector<std::uint32_t>{15, 11, 31, 19, 0x3f000000}));
  EXPECT_NE(refused_line("mov.u32 %r1, 018;"), "");
  EXPECT_NE(refused_line("mov.u32 %r1, 0b2;"), "");
}

TEST(Forms, VectorRegistersAreTheirElements) {
  const auto out = run_one(with_pointers(
      ".reg .v4 .u32 v;\n.reg.v2.f32 w<2>;\nld.global.v4.u32 v, [%d1];\nadd.u32 v.y, v.y, v.w;\n"
      "st.global.v4.u32 [%d2], v;\nmov.v4.u32 {%r1, %r2, %r3, %r4}, v;\nadd.u32 %r1, %r1, v.z;\n"
      "st.global.u32 [%d2+16], %r1;\nld.global.v2.f32 w0, [%d1+32];\nmov.v2.f32 w1, w0;\nmov.v2.f32 w0, "
      "{w1.g, w1.x};\n"
      "st.global.v2.f32 [%d2+32], w0;"));
  EXPECT_EQ(out, (std::vector<std::uint32_t>{1, 2 + 4, 3, 4, 1 + 3, 0, 0, 0, 10, 9, 0, 0, 0, 0, 0, 0}));
}

TEST(Forms, MovesOfVectorsReadBeforeTheyWrite) {
  const auto out = run_one(with_pointers(
      "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d1];\nmov.v4.u32 {%r1, %r2, %r3, %r4}, {%r4, %r3, %r2, "
      "%r1};\n"
      "st.global.v4.u32 [%d2], {%r1, %r2, %r3, %r4};\n"
      "cvt.u16.u32 %h0, %r1;\ncvt.u16.u32 %h1, %r2;\ncvt.u16.u32 %h2, %r3;\ncvt.u16.u32 %h3, %r4;\n"
      "mov.v8.u16 {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}, {%h1, %h0, %h3, %h2, %h0, %h1, %h2, %h3};\n"
      "mov.b64 %d3, {%h0, %h1, %h4, %h5};\nst.global.u64 [%d2+16], %d3;\n"
      "mov.b32 %r5, {%h2, %h6};\nmov.b32 {%h9, _}, %r5;\nmov.b32 {_, %h8}, %r5;\nmov.b32 %r6, {%h8, %h9};\n"
      "st.global.u32 [%d2+24], %r6;"));
  EXPECT_EQ(out, (std::vector<std::uint32_t>{4, 3, 2, 1, 3 | 4 << 16, 4 | 3 << 16, 2 | 1 << 16, 0, 0, 0, 0, 0,
                                             0, 0, 0, 0}));
}

TEST(Forms, BytesArePackedAndUnpacked) {
  const auto out = run_one(with_pointers(
      "ld.global.u8 %h1, [%d1];\nld.global.u8 %h2, [%d1+4];\nld.global.u8 %h3, [%d1+8];\nld.global.u8 %h4, "
      "[%d1+12];\n"
      "mov.b32 %r1, {%h1, %h2, %h3, %h4};\nst.global.u32 [%d2], %r1;\nmov.b32 {%h4, %h3, %h2, %h1}, %r1;\n"
      "mov.b64 %d3, {%h1, %h2, %h3, %h4, %h4, %h3, %h2, %h1};\nst.global.u64 [%d2+8], %d3;\n"
      "mov.b16 %h5, {%h1, %h2};\nmov.b16 {%h5, %h6}, %h5;\ncvt.u32.u16 %r2, %h5;\nmad.lo.u32 %r2, %r2, 256, "
      "0;\n"
      "cvt.u32.u16 %r3, %h6;\nadd.u32 %r2, %r2, %r3;\nst.global.u32 [%d2+4], %r2;"));
  EXPECT_EQ(out[0], 0x04030201u);
  EXPECT_EQ(out[1], 0x0403u);
  EXPECT_EQ(out[2], 0x01020304u);
  EXPECT_EQ(out[3], 0x04030201u);
}

TEST(Forms, DirectivesMayStandTogetherAndVariablesWithinFunctions) {
  const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .func (.param.u64 r) twice (.param.u64 a);\n"
      ".func (.reg.u32 sum) add_up (.reg.v4.u16 v)\n{\n.reg.u32 %r<5>;\ncvt.u32.u16 %r0, v.x;\ncvt.u32.u16 "
      "%r1, v.y;\n"
      "cvt.u32.u16 %r2, v.z;\ncvt.u32.u16 %r3, v.w;\nmad.lo.u32 %r0, %r1, 10, %r0;\nmad.lo.u32 %r0, %r2, "
      "100, %r0;\n"
      "mad.lo.u32 sum, %r3, 1000, %r0;\nret;\n}\n"
      ".visible .entry k(.param.u64 in, .param.u64 out)\n{\n.global.b32 table[3] = {5, 6, 7};\n.shared.b32 "
      "cell;\n"
      ".reg.b64 %d<9>;\n.reg.u32 %r<9>;\n.reg.v4.u16 v;\n.param.u64 p;\n.param.u64 q;\n"
      "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nld.global.u32 %r1, [table+8];\nst.global.u32 "
      "[%d2], %r1;\n"
      "st.b32 [cell], 9;\nld.b32 %r2, [cell];\nst.global.u32 [%d2+4], %r2;\n"
      "ld.global.v4.u16 v, [%d1];\ncall (%r3), add_up, (v);\nst.global.u32 [%d2+8], %r3;\n"
      "st.param.u64 [p], 21;\ncall (q), twice, (p);\nld.param.u64 %d3, [q];\nst.global.u64 [%d2+16], "
      "%d3;\nret;\n}\n"
      ".visible .func (.param .u64 r) twice (.param .u64 a)\n{\n.reg .u64 %x;\nld.param.u64 %x, [a];\n"
      "add.u64 %x, %x, %x;\nst.param.u64 [r], %x;\nret;\n}\n";
  const auto out = run_one(text);
  EXPECT_EQ((std::vector<std::uint32_t>{out[0], out[1], out[2], out[4]}),
            (std::vector<std::uint32_t>{7, 9, 201, 42}));
}

TEST(Forms, ModifiersMayStandInAnyOrder) {
  for (const char* line : {"div.ftz.rn.f32 %f1, %f2, %f3;", "add.sat.ftz.f32 %f1, %f2, %f3;",
                           "fma.ftz.rn.f32 %f1, %f2, %f3, %f4;", "max.NaN.ftz.f32 %f1, %f2, %f3;",
                           "ld.acquire.gpu.global.u32 %r1, [%d1];", "ld.global.acquire.gpu.u32 %r1, [%d1];",
                           "vote.ballot.sync.b32 %r1, %p1, -1;", "shfl.idx.sync.b32 %r1, %r2, 0, 31, -1;",
                           "fence.gpu.acq_rel;", "redux.add.sync.s32 %r1, %r2, -1;"})
    EXPECT_EQ(refused_line(line), "") << line;
  // Types keep theirs, and nothing is said twice.
  EXPECT_NE(refused_line("cvt.rzi.f32.s64 %d1, %f1;"), "");
  EXPECT_NE(refused_line("add.ftz.ftz.f32 %f1, %f2, %f3;"), "");
}

TEST(Forms, TexturesAndSurfacesAreRefusedByName) {
  for (const char* line :
       {"tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r1, %r2}];",
        "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [tx, {%r1}];",
        "suld.b.2d.b32.trap {%r1}, [%d1, {%r1, %r2}];", "sust.b.1d.b32.trap [%d1, {%r1}], {%r2};",
        "txq.width.b32 %r1, [%d1];", "tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%f5, %f6}];"})
    EXPECT_TRUE(refused_line(line).starts_with("texture and surface instructions are not simulated: '"))
        << refused_line(line);
  EXPECT_EQ(refused_line("ld.global.u32 %r1, [%d1, {%r2}];"), "coordinates do not fit here");
}

TEST(Forms, WhatIsNotSimulatedIsRefusedByName) {
  for (const char* line : {"multimem.ld_reduce.relaxed.gpu.global.add.u32 %r1, [%d1];",
                           "multimem.red.release.sys.global.add.f32 [%d1], %f1;",
                           "multimem.st.weak.global.v4.f32 [%d1], {%f1, "
                           "%f2, %f3, %f4};"})
    EXPECT_TRUE(refused_line(line).starts_with(
        "multimem works on memory that several GPUs map together, and one GPU is simulated: 'multimem."))
        << refused_line(line);
  for (const char* line :
       {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 512;",
        "tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1;",
        "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];", "tcgen05.wait::ld.sync.aligned;",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%d1];"})
    EXPECT_TRUE(refused_line(line).starts_with(
        "tcgen05, the tensor cores of sm_100 with a memory of their own, is not simulated: 'tcgen05."))
        << refused_line(line);
}

/// Every listed form with a modifier of another: refused, and where no form of it has that, by its name.
TEST(Forms, ListedFormsTakeNoOtherModifier) {
  int tried = 0;
  for (const std::string_view pattern : ptx::listed_patterns()) {
    for (const std::string& form : expand_spelling(pattern)) {
      for (const char* modifier : {"ftz", "sat", "v2", "L1::evict_last", "noftz", "magic"}) {
        const std::size_t dot = form.find('.');
        const std::string other =
            form.substr(0, dot) + "." + modifier + (dot == form.npos ? "" : form.substr(dot));
        ++tried;
        EXPECT_EQ(refused_line(other + (form.starts_with("bra") ? " L;\nL:" : ";")),
                  fmt::format("instruction '{}' is not supported: no form of '{}' has '.{}'", other,
                              form.substr(0, dot), modifier));
      }
      // One less is another form, or none.
      if (const std::size_t last = form.rfind('.');
          last != form.npos && !ptx::is_listed_form(form.substr(0, last))) {
        EXPECT_NE(refused_line(form.substr(0, last) + ";"), "") << form;
      }
    }
  }
  EXPECT_GT(tried, 600);
}

TEST(Forms, LoadsAndStoresTakeOneModifierOfAKind) {
  for (const char* line : {"exit.abs;",
                           "ret.sat;",
                           "cp.async.ca.global.shared::cta.global [%r1], [%d1], 8, 4;",
                           "cp.async.ca.global.shared [%r1], [%d1], 16;",
                           "ld.global.shared.u32 %r1, [%d1];",
                           "ld.v2.v4.u32 {%r1, %r2}, [%d1];",
                           "ld.global.nc.volatile.u32 %r1, [%d1];",
                           "ld.relaxed.global.u32 %r1, [%d1];",
                           "ld.global.gpu.u32 %r1, [%d1];",
                           "ld.release.gpu.global.u32 %r1, [%d1];",
                           "st.acquire.gpu.global.u32 [%d1], %r1;",
                           "st.global.nc.u32 [%d1], %r1;",
                           "st.global.ca.u32 [%d1], %r1;",
                           "ld.global.wb.u32 %r1, [%d1];",
                           "ld.shared.nc.u32 %r1, [%r2];",
                           "ld.volatile.global.cg.u32 %r1, [%d1];",
                           "ld.mmio.global.u32 %r1, [%d1];",
                           "st.const.u32 [%d1], %r1;",
                           "st.global.L2::128B.u32 [%d1], %r1;",
                           "ld.global.ca.cg.u32 %r1, [%d1];",
                           "ld.global.L1::evict_last.L1::no_allocate.u32 %r1, [%d1];"})
    EXPECT_NE(refused_line(line), "") << line;
  for (const char* line :
       {"ld.global.nc.L1::no_allocate.L2::128B.u32 %r1, [%d1];",
        "ld.relaxed.gpu.global.L1::no_allocate.u32 %r1, [%d1];", "st.release.sys.global.u32 [%d1], %r1;",
        "ld.mmio.relaxed.sys.global.u32 %r1, [%d1];", "st.global.wt.u32 [%d1], %r1;",
        "ld.volatile.global.v2.u32 {%r1, %r2}, [%d1];",
        "ld.global.L1::evict_last.L2::cache_hint.b32 %r1, [%d1], %d2;",
        "st.global.L1::evict_first.L2::cache_hint.v2.b32 [%d1], {%r1, %r2}, %d2;",
        "ld.weak.global.cs.u32 %r1, [%d1];"})
    EXPECT_EQ(refused_line(line), "") << line;
}

/// What ptxas 12 refuses, too; the simulator once took the last of two, or none for one.
TEST(Forms, ModifiersThatSayNothingOrTwoThingsAreRefused) {
  for (const char* line :
       {"setp.eq.and.or.u32 %p1, %r1, %r2, %p2;", "set.eq.and.xor.u32.u32 %r1, %r1, %r2, %p2;",
        "max.abs.abs.f32 %f1, %f2, %f3, %f4;", "fma.f32 %f1, %f2, %f3, %f4;",
        "mad.ftz.f32 %f1, %f2, %f3, %f4;", "fma.f64 %e1, %e2, %e3, %e4;", "fma.f32.f16 %f1, %h1, %h2, %f2;",
        "cp.async.ca.shared.global.L2::64B.L2::128B [%r1], [%d1], 16;",
        "ld.shared.L1::evict_last.u32 %r1, [%r2];", "ld.shared.L2::64B.u32 %r1, [%r2];",
        "ld.local.volatile.u32 %r1, [%d1];", "ld.const.relaxed.gpu.u32 %r1, [%d1];",
        "st.local.release.gpu.u32 [%d1], %r1;", "ld.global.L1::evict_last.ca.u32 %r1, [%d1];",
        "st.global.volatile.L1::evict_last.u32 [%d1], %r1;", "ld.global.mmio.relaxed.gpu.u32 %r1, [%d1];",
        "ld.u64 %d1, [in];",
        "wmma.load.a.sync.aligned.row.m16n16k16.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, "
        "[%d1];",
        "wmma.load.c.sync.aligned.row.m16n16k16.bf16 {%r1, %r2, %r3, %r4}, [%d1];"})
    EXPECT_NE(refused_line(line), "") << line;
  EXPECT_EQ(refused_line("ld.param.u64 %d1, [in];"), "");
}

TEST(Forms, AtomicsOfVectorsTakeTheirTypeBeforeOrBehind) {
  for (const char* form : {"atom.global.v4.f32.add", "atom.global.add.v4.f32",
                           "atom.relaxed.gpu.global.add.v4.f32", "atom.add.global.v4.f32"}) {
    const auto out = run_one(with_pointers(fmt::format(
        "mov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f40000000;\nst.global.v4.f32 [%d2], {{%f1, %f2, %f1, "
        "%f2}};\n"
        "{} {{%f3, %f4, %f5, %f6}}, [%d2], {{%f2, %f2, %f1, %f1}};\nst.global.v4.f32 [%d2+16], {{%f3, %f4, "
        "%f5, %f6}};",
        form)));
    EXPECT_EQ(std::vector<std::uint32_t>(out.begin(), out.begin() + 8),
              (std::vector<std::uint32_t>{0x40400000, 0x40800000, 0x40000000, 0x40400000, 0x3f800000,
                                          0x40000000, 0x3f800000, 0x40000000}))
        << form;
  }
  for (const char* line :
       {"atom.global.shared.add.u32 %r1, [%d1], %r2;", "atom.global.add.min.u32 %r1, [%d1], %r2;",
        "red.acquire.gpu.global.add.u32 [%d1], %r2;", "atom.global.add.u32.s32 %r1, [%d1], %r2;",
        "atom.global.add.noftz.f32 %f1, [%d1], %f2;", "atom.global.add.ftz.f32 %f1, [%d1], %f2;",
        "atom.global.min.f32 %f1, [%d1], %f2;", "red.global.add.v2.v4.f32 [%d1], {%f1, %f2};"})
    EXPECT_NE(refused_line(line), "") << line;
}

TEST(Forms, SumsOfHalvesAndFloatsConvertTheHalves) {
  const auto out = run_one(
      with_pointers("mov.b32 %r1, 0x3c004000;\nmov.b32 {%h1, %h2}, %r1;\nmov.f32 %f1, "
                    "0f3E800000;\nadd.f32.f16 %f2, %h1, %f1;\n"
                    "sub.rz.f32.f16 %f3, %h2, %f1;\nfma.rn.f32.f16 %f4, %h1, %h1, %f1;\nmov.b32 %r1, "
                    "0x3f80;\nmov.b32 {%h1, %h2}, "
                    "%r1;\nadd.sat.f32.bf16 %f5, %h1, %f1;\nst.global.v4.f32 [%d2], {%f2, %f3, %f4, %f5};"));
  EXPECT_EQ(std::vector<std::uint32_t>(out.begin(), out.begin() + 4),
            (std::vector<std::uint32_t>{0x40100000, 0x3f400000, 0x40880000, 0x3f800000}));
}

TEST(Forms, ExchangesWithoutAMaskAreOfOldTargets) {
  EXPECT_EQ(refused_line("vote.ballot.b32 %r1, %p1;"), "vote wants .sync and a mask from sm_70 on");
  EXPECT_EQ(refused_line("shfl.idx.b32 %r1, %r2, 0, 31;"), "shfl wants .sync and a mask from sm_70 on");
  std::string old = wrap_ptx("vote.ballot.b32 %r1, %p1;\nret;");
  EXPECT_EQ(refusal(old.replace(old.find("7.8"), 3, "6.3")), "");
  std::string text = with_pointers(
      "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 5;\nvote.ballot.b32 %r2, %p1;\nshfl.down.b32 %r3|%p2, "
      "%r1, 1, 31;\n"
      "mad.lo.u32 %r2, %r3, 1000, %r2;\nmul.wide.u32 %d3, %r1, 4;\nadd.u64 %d2, %d2, %d3;\nst.global.u32 "
      "[%d2], %r2;");
  text.replace(text.find("sm_75"), 5, "sm_60");
  const Outcome outcome = run_on_numbers(ptx::parse(text, "forms.ptx"),
                                         {.kernel = "k", .grid = {}, .block = {32, 1, 1}}, {}, "p100", 1, 32);
  for (std::uint32_t t = 0; t < 32; ++t) EXPECT_EQ(outcome.out[t], std::min(t + 1, 31u) * 1000 + 31) << t;
}

TEST(Forms, SystemSoftwaresSharedMemoryLiesBehindTheKernels) {
  std::string text = with_pointers(
      ".shared .align 4 .b8 own[100];\nmov.u32 %r1, %reserved_smem_offset_1;\nmov.u32 %r2, "
      "own;\nst.shared.u32 [%r1], 5;\n"
      "st.shared.u32 [%r1+284], 6;\nst.shared.u32 [%r2], 7;\nld.shared.u32 %r3, [%r1];\nst.global.u32 [%d2], "
      "%r3;\n"
      "mov.u32 %r4, %reserved_smem_offset_begin;\nmov.u32 %r5, %reserved_smem_offset_end;\nsub.u32 %r5, %r5, "
      "%r4;\n"
      "st.global.u32 [%d2+4], %r5;\nmov.u32 %r6, %reserved_smem_offset_cap;\nst.global.u32 [%d2+8], %r6;\n"
      "mov.u32 %r7, %total_smem_size;\nst.global.u32 [%d2+12], %r7;");
  const auto out = run_one(text, "a100");
  EXPECT_EQ((std::vector<std::uint32_t>{out[0], out[1], out[2], out[3]}),
            (std::vector<std::uint32_t>{5, 1024, 1024, 100}));
}

TEST(Forms, ACarryIsTheAddersWhicheverInstructionLeftIt) {
  // As ptxas translates them: a borrow clears the flag.
  const auto out = run_one(
      with_pointers("ld.global.u32 %r1, [%d1];\nld.global.u32 %r2, [%d1+4];\n"  // 1, 2
                    "sub.cc.u32 %r3, %r1, %r2;\naddc.u32 %r4, 0, 0;\nst.global.v2.u32 [%d2], {%r3, %r4};\n"
                    "sub.cc.u32 %r3, %r2, %r1;\naddc.u32 %r4, 0, 0;\nst.global.v2.u32 [%d2+8], {%r3, %r4};\n"
                    "add.cc.u32 %r3, %r1, %r2;\nsubc.u32 %r4, 0, 0;\nst.global.v2.u32 [%d2+16], {%r3, %r4};\n"
                    "sub.cc.s32 %r3, %r1, %r2;\nsubc.cc.s32 %r4, %r2, %r1;\naddc.s32 %r5, 0, "
                    "0;\nst.global.v2.u32 [%d2+24], {%r4, "
                    "%r5};\n"
                    "sub.cc.u64 %d3, 1, 2;\nsubc.cc.u64 %d4, 0, 0;\naddc.u64 %d5, 0, 0;\nst.global.v2.u64 "
                    "[%d2+32], {%d4, %d5};"));
  EXPECT_EQ(std::vector<std::uint32_t>(out.begin(), out.begin() + 8),
            (std::vector<std::uint32_t>{0xffffffff, 0, 1, 1, 3, 0xffffffff, 0, 1}));
  EXPECT_EQ(std::vector<std::uint32_t>(out.begin() + 8, out.begin() + 12),
            (std::vector<std::uint32_t>{0xffffffff, 0xffffffff, 0, 0}));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
