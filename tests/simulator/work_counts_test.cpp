// Counts that the timing model's limits take: L1 wavefronts, local memory, round trips, the units of an SM.
#include <fmt/format.h>

#include "simulator/isa/isa.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// Blocks of one warp or more; %r1 is the thread, %d1 holds in, %d2 out, %d3 and %d4 are 4 bytes a thread
/// further.
LaunchResult counted(const std::string& body, const std::string& on = "v100", std::uint32_t threads = 32,
                     std::uint32_t grid = 1) {
  const std::string text =
      "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %d5, %r1, 4; add.u64 %d3, %d1, %d5; add.u64 %d4, %d2, %d5;\n" +
      body + "\nret;";
  const Outcome o = run_on_numbers(ptx::parse(wrap_ptx(text), "t.ptx"),
                                   {.kernel = "k", .grid = {grid, 1, 1}, .block = {threads, 1, 1}}, {}, on,
                                   1 << 16, 1 << 16);
  EXPECT_EQ(o.text(), "");
  return o.result;
}
Counters counters(const std::string& body, const std::string& on = "v100", std::uint32_t threads = 32) {
  return counted(body, on, threads).counters;
}

std::uint64_t l1_wavefronts(const std::string& address, const std::string& access) {
  return counters(address + access).l1_wavefronts;
}

TEST(L1Wavefronts, AreTheLinesAndTheBytesOfARequest) {
  EXPECT_EQ(l1_wavefronts("", "ld.global.u32 %r4, [%d3];"), 1u);
  EXPECT_EQ(l1_wavefronts("", "ld.global.u32 %r4, [%d1];"), 1u);
  EXPECT_EQ(l1_wavefronts("", "ld.global.u32 %r4, [%d3+4];"), 2u);  // begins within a line
  EXPECT_EQ(l1_wavefronts("", "st.global.u32 [%d4], %r1;"), 1u);
  const std::string by16 = "mul.wide.u32 %d5, %r1, 16; add.u64 %d6, %d2, %d5;";
  EXPECT_EQ(l1_wavefronts(by16, "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d6];"), 4u);
  EXPECT_EQ(l1_wavefronts(by16, "st.global.v4.u32 [%d6], {%r1, %r1, %r1, %r1};"), 4u);
  EXPECT_EQ(l1_wavefronts("", "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d1];"),
            4u);  // 512 bytes of registers
  const std::string by8 = "mul.wide.u32 %d5, %r1, 8; add.u64 %d6, %d2, %d5;";
  EXPECT_EQ(l1_wavefronts(by8, "ld.global.u64 %d7, [%d6];"), 2u);
  const std::string rows = "mul.wide.u32 %d5, %r1, 128; add.u64 %d6, %d2, %d5;";
  EXPECT_EQ(l1_wavefronts(rows, "ld.global.u32 %r4, [%d6];"), 32u);
  EXPECT_EQ(l1_wavefronts(rows, "red.global.add.u32 [%d6], %r1;"), 32u);
}

TEST(Vectors, OfThirtyTwoBytesAreOneAccess) {
  const std::string by32 = "mul.wide.u32 %d5, %r1, 32; add.u64 %d6, %d1, %d5; add.u64 %d7, %d2, %d5;\n";
  const std::string words =
      "ld.global.v8.u32 {%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11}, [%d6];\n"
      "st.global.v8.u32 [%d7], {%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11};";
  const std::string pairs =
      "ld.global.v4.u64 {%d8, %d9, %d10, %d11}, [%d6]; st.global.v4.u64 [%d7], {%d8, %d9, %d10, %d11};";
  for (const std::string& access : {words, pairs}) {
    const Counters c = counters(by32 + access, "b200");
    EXPECT_EQ(c.gld_requests, 1u) << access;
    EXPECT_EQ(c.gst_requests, 1u) << access;
    EXPECT_EQ(c.gld_transactions, 32u) << access;
    EXPECT_EQ(c.gst_transactions, 32u) << access;
    EXPECT_EQ(c.gld_bytes, 1024u) << access;
    EXPECT_EQ(c.gst_bytes, 1024u) << access;
    EXPECT_EQ(c.l1_wavefronts, 16u) << access;
    EXPECT_EQ(c.l2_read_sectors, 32u) << access;
    EXPECT_EQ(c.inst_ldst, 2u) << access;
  }
}

TEST(Vectors, OfThirtyTwoBytesBeginAtMultiplesOfThem) {
  const std::string address = "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];\n";
  for (const std::string access : {"ld.global.v8.u32 {%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11}, [%d1+16];",
                                   "st.global.v8.u32 [%d2+16], {%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11};",
                                   "ld.global.v4.u64 {%d8, %d9, %d10, %d11}, [%d1+16];"}) {
    const Outcome o =
        run_on_numbers(ptx::parse(wrap_ptx(address + access + "\nret;"), "t.ptx"),
                       {.kernel = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}}, {}, "b200", 1 << 10, 1 << 10);
    EXPECT_TRUE(o.text().starts_with("misaligned")) << access << o.text();
    EXPECT_NE(o.text().find("32 bytes"), std::string::npos) << o.text();
  }
}

TEST(RoundTrips, AreOfLoadsAndOfAtomicsWithAResult) {
  const auto latency_us = [](const std::string& access) {
    std::string body = ".local .align 4 .b8 l[4];\nst.global.u32 [%d4], %r1; mov.u32 %r9, 1;";
    for (int k = 0; k < 256; ++k) body += access + "\n";
    return counted(body).time.latency_us;
  };
  const double one = device("v100").sm.dram_latency_clocks / device("v100").clock_ghz / 1e3;
  EXPECT_LE(latency_us("st.global.u32 [%d4], %r1;"), one);
  EXPECT_LE(latency_us("red.global.add.u32 [%d4], %r9;"), one);
  EXPECT_GT(latency_us("atom.global.add.u32 %r4, [%d4], %r9;"), 100 * one);
  // Neither shared nor local memory is far.
  EXPECT_LE(latency_us("st.local.u32 [l], %r9;"), one);
  const std::string shared =
      ".shared .align 4 .b8 s[4];\nst.global.u32 [%d4], %r1; red.shared.add.u32 [s], %r1;\n";
  std::string many = shared;
  for (int k = 0; k < 256; ++k) many += "red.shared.add.u32 [s], %r1;\n";
  EXPECT_EQ(counted(many).time.latency_us, counted(shared).time.latency_us);
}

/// Stores `words` words of each thread's local memory and loads them again.
std::string fill_local(int words) {
  return fmt::format(R"(
.local .align 16 .b8 l[{0}];
mov.u32 %r3, l; mov.u32 %r4, 0;
STORE: add.u32 %r5, %r3, %r4; st.local.u32 [%r5], %r1; add.u32 %r4, %r4, 4; setp.lt.u32 %p1, %r4, {0}; @%p1 bra STORE;
mov.u32 %r4, 0; mov.u32 %r6, 0;
LOAD: add.u32 %r5, %r3, %r4; ld.local.u32 %r7, [%r5]; add.u32 %r6, %r6, %r7; add.u32 %r4, %r4, 4; setp.lt.u32 %p1, %r4, {0}; @%p1 bra LOAD;
st.global.u32 [%d4], %r6;
)",
                     words * 4);
}

TEST(LocalMemory, OfAWarpLiesInWholeLines) {
  const Counters c = counters(fill_local(8));
  EXPECT_EQ(c.local_store_requests, 8u);
  EXPECT_EQ(c.local_load_requests, 8u);
  EXPECT_EQ(c.local_store_transactions, 32u);
  EXPECT_EQ(c.local_load_transactions, 32u);
  EXPECT_EQ(c.local_l2_sectors, 0u);
  EXPECT_EQ(c.l1_wavefronts, 17u);
  // 16 bytes a lane are four lines; lanes at different offsets a line each.
  EXPECT_EQ(counters(".local .align 16 .b8 l[64];\nst.local.v4.u32 [l], {%r1, %r1, %r1, %r1};")
                .local_store_transactions,
            16u);
  const std::string own =
      ".local .align 16 .b8 l[128];\nmov.u32 %r3, l; shl.b32 %r4, %r1, 2; add.u32 %r5, %r3, %r4;";
  EXPECT_EQ(counters(own + "st.local.u32 [%r5], %r1;").l1_wavefronts, 32u);
  EXPECT_EQ(counters(own + "st.local.u32 [%r5], %r1;").local_store_transactions, 32u);
}

TEST(LocalMemory, GoesToL2WhereL1IsTooSmall) {
  // 256 threads x 4 KB are 1 MB of 128 KB: nearly all is written back and read again.
  const Counters c = counters(fill_local(1024), "v100", 256);
  const std::uint64_t sectors = 1024 * 256 * 4 / 32, held = 128 * 1024 / 32;
  EXPECT_EQ(c.local_store_transactions, sectors);
  EXPECT_GE(c.local_l2_sectors, 2 * (sectors - held));
  EXPECT_LE(c.local_l2_sectors, 2 * sectors);
  // What fits stays: 256 x 256 bytes.
  EXPECT_EQ(counters(fill_local(64), "v100", 256).local_l2_sectors, 0u);
}

TEST(LocalMemory, GoesToL2WhereL1IsOfNonCoherentLoads) {
  const Counters c = counters(fill_local(8), "p4");
  EXPECT_EQ(c.local_l2_sectors, 64u);
  EXPECT_EQ(c.l2_read_sectors, 32u);
  EXPECT_EQ(c.l2_write_sectors, 32u + 4u);
}

TEST(LocalMemory, OfBlocksThatFollowEachOtherIsTheSame) {
  // A wave is 20 x 8 blocks of 256 threads with 32 bytes each, 1.3 MB together, which fit P4's L2: what the
  // next wave overwrites there need not go to DRAM.
  const auto l2 = [](std::uint32_t grid) { return counted(fill_local(8), "p4", 256, grid).counters; };
  const Counters one = l2(20 * 8), ten = l2(10 * 20 * 8);
  EXPECT_EQ(ten.l2_write_sectors, 10 * one.l2_write_sectors);
  EXPECT_LT(ten.dram_write_transactions, 10 * one.dram_write_transactions);
}

struct Case {
  const char* instruction;
  Pipe pipe;
  std::uint64_t lanes = 32;
};
class Pipes : public ::testing::TestWithParam<Case> {};

TEST_P(Pipes, CountTheirInstructions) {
  const Case& c = GetParam();
  const Counters with = counters(std::string("setp.lt.u32 %p1, %r1, 5;\n") + c.instruction),
                 without = counters("setp.lt.u32 %p1, %r1, 5;\n");
  const auto of = [&](Pipe pipe) -> std::uint64_t { return pipe == c.pipe ? c.lanes : 0; };
  EXPECT_EQ(with.inst_fp_32 - without.inst_fp_32, of(Pipe::kFp32));
  EXPECT_EQ(with.inst_fp_64 - without.inst_fp_64, of(Pipe::kFp64));
  EXPECT_EQ(with.inst_fp_16 - without.inst_fp_16, of(Pipe::kHalf2));
  EXPECT_EQ(with.inst_integer - without.inst_integer, of(Pipe::kInt32));
  EXPECT_EQ(with.inst_mufu - without.inst_mufu, of(Pipe::kMufu));
}

INSTANTIATE_TEST_SUITE_P(
    Instructions, Pipes,
    ::testing::Values(
        Case{"add.f32 %f1, %f2, %f3;", Pipe::kFp32}, Case{"fma.rn.f64 %e1, %e2, %e3, %e4;", Pipe::kFp64},
        Case{"div.rn.f64 %e1, %e2, %e3;", Pipe::kFp64}, Case{"max.f64 %e1, %e2, %e3;", Pipe::kFp64},
        Case{"setp.lt.f64 %p2, %e1, %e2;", Pipe::kFp64}, Case{"cvt.f64.f32 %e1, %f1;", Pipe::kFp64},
        Case{"cvt.rzi.s32.f64 %r4, %e1;", Pipe::kFp64},
        Case{"fma.rn.f16x2 %r4, %r5, %r6, %r7;", Pipe::kHalf2}, Case{"add.f16 %h1, %h2, %h3;", Pipe::kHalf2},
        Case{"fma.rn.bf16x2 %r4, %r5, %r6, %r7;", Pipe::kHalf2},
        Case{"setp.lt.f16 %p2, %h1, %h2;", Pipe::kHalf2}, Case{"add.u32 %r4, %r5, %r6;", Pipe::kInt32},
        Case{"mad.lo.s32 %r4, %r5, %r6, %r7;", Pipe::kInt32}, Case{"add.s64 %d6, %d7, %d8;", Pipe::kInt32},
        Case{"shl.b32 %r4, %r5, 3;", Pipe::kInt32}, Case{"setp.lt.and.s32 %p2, %r4, %r5, %p3;", Pipe::kInt32},
        Case{"dp4a.s32.s32 %r4, %r5, %r6, %r7;", Pipe::kInt32},
        Case{"selp.b32 %r4, %r5, %r6, %p2;", Pipe::kInt32}, Case{"ex2.approx.f32 %f1, %f2;", Pipe::kMufu},
        Case{"mov.u32 %r4, %r5;", Pipe::kOther}, Case{"bar.sync 0;", Pipe::kOther},
        Case{"@%p1 add.f64 %e1, %e2, %e3;", Pipe::kFp64, 5},
        Case{"@%p1 add.u32 %r4, %r5, %r6;", Pipe::kInt32, 5},
        Case{"@!%p1 fma.rn.f16x2 %r4, %r5, %r6, %r7;", Pipe::kHalf2, 27}));

TEST(PipeTable, EveryArithmeticFormHasThatOfItsType) {
  int forms = 0;
  for (const IsaRow& row : isa_rows()) {
    if (row.spelling[0] == '@') continue;
    for (const std::string& form : expand_spelling(row.spelling)) {
      const std::string base = form.substr(0, form.find('.')), type = form.substr(form.rfind('.') + 1);
      const bool arithmetic = base == "add" || base == "sub" || base == "mul" || base == "fma" ||
                              base == "mad" || base == "min" || base == "max" || base == "neg" ||
                              base == "setp";
      if (!arithmetic) continue;
      const bool half = type.starts_with("f16") || type.starts_with("bf16");
      const Pipe pipe = half                      ? Pipe::kHalf2
                        : type.starts_with("f32") ? Pipe::kFp32
                        : type == "f64"           ? Pipe::kFp64
                                                  : Pipe::kInt32;
      EXPECT_EQ(static_cast<int>(row.pipe), static_cast<int>(pipe)) << form;
      ++forms;
    }
  }
  EXPECT_GT(forms, 300);
}

TEST(PipeTable, MatrixInstructionsCountTheirProducts) {
  const auto products = [](const std::string& instruction) {
    return counters(instruction, "a100").tensor_multiply_adds;
  };
  EXPECT_EQ(
      products(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r1, %r1, %r1}, "
          "{%r1, %r1}, {%f1, %f2, %f3, %f4};"),
      16u * 8 * 16);
  EXPECT_EQ(products("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%e1, %e2}, {%e3}, {%e4}, {%e1, %e2};"),
            8u * 8 * 4);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
