// Bulk reductions: shared memory to what is in global memory.
#include <bit>

#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// Every thread writes SHARED of its number to shared memory, and thread 0 has all of it reduced to `out`,
/// twice.
Outcome reduced(const std::string& form, const std::string& value, std::uint32_t grid = 1,
                bool fence = true) {
  const std::string text =
      ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .pred %p<2>;\n.reg .b32 %r<8>;\n.reg .f32 %f<2>;\n.reg .b64 %d<4>;\n.shared .align 16 .b8 "
      "s[256];\n"
      "ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1;\n" +
      value + "\nshl.b32 %r3, %r1, 2; mov.u32 %r4, s; add.u32 %r3, %r3, %r4; st.shared.b32 [%r3], %r2;\n" +
      (fence ? "fence.proxy.async;\n" : "") + "bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra END;\n" + form +
      " [%d2], [%r4], 256;\n" + form +
      " [%d2], [%r4], 256;\ncp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND:\nret;\n}\n";
  const ptx::Module module = ptx::parse(text, "reduction.ptx");
  const Launch launch{.kernel = "k", .grid = {grid, 1, 1}, .block = {64, 1, 1}};
  Options options;
  options.sanitize = {.race = true, .init = true};
  return run_on_numbers(module, launch, options, "h100", 64, 64, true);
}
std::string form(const std::string& operation) {
  return "cp.reduce.async.bulk.global.shared::cta.bulk_group." + operation;
}

TEST(BulkReduction, IsThatOfItsOperationAndType) {
  struct Case {
    const char *operation, *value;
    std::uint32_t (*expected)(std::uint32_t thread);
  };
  const Case cases[] = {
      {"add.u32", "add.u32 %r2, %r1, 3;", [](std::uint32_t t) { return 2 * (t + 3); }},
      {"add.s32", "sub.s32 %r2, 3, %r1;", [](std::uint32_t t) { return 2 * (3 - t); }},
      {"max.u32", "add.u32 %r2, %r1, 3;", [](std::uint32_t t) { return t + 3; }},
      {"min.s32", "sub.s32 %r2, 3, %r1;", [](std::uint32_t t) { return t > 3 ? 3 - t : 0; }},
      {"or.b32", "shl.b32 %r2, %r1, 2;", [](std::uint32_t t) { return 4 * t; }},
      {"xor.b32", "mov.u32 %r2, %r1;", [](std::uint32_t) { return 0u; }},
      {"inc.u32", "mov.u32 %r2, 1;", [](std::uint32_t) { return 0u; }},
      {"add.f32", "mov.b32 %r2, %f1;",
       [](std::uint32_t t) { return std::bit_cast<std::uint32_t>(2.f * static_cast<float>(t)); }},
      {"min.bf16", "mov.u32 %r2, 0x3f80c000;", [](std::uint32_t) { return 0x0000c000u; }},
      {"max.f16", "mov.u32 %r2, 0xbc004000;", [](std::uint32_t) { return 0x00004000u; }},
      {"add.noftz.f16", "mov.u32 %r2, 0x3c004000;", [](std::uint32_t) { return 0x40004400u; }},
  };
  for (const Case& c : cases) {
    const Outcome r = reduced(form(c.operation), c.value);
    EXPECT_EQ(r.text(), "") << c.operation;
    for (std::uint32_t t = 0; t < 64; ++t) EXPECT_EQ(r.out[t], c.expected(t)) << c.operation << " of " << t;
  }
}

TEST(BulkReduction, OfSeveralBlocksMakesNoRaceAndCountsItsSectors) {
  const Outcome r = reduced(form("add.u32"), "mov.u32 %r2, 1;", 6);
  EXPECT_EQ(r.text(), "");
  EXPECT_EQ(r.out, std::vector<std::uint32_t>(64, 12));
  EXPECT_EQ(r.result.counters.bulk_copies, 12u);
  EXPECT_EQ(r.result.counters.bulk_sectors, 12u * 8);
}

TEST(BulkReduction, WantsAProxyFenceBehindOrdinaryWrites) {
  EXPECT_TRUE(reduced(form("add.u32"), "mov.u32 %r2, 1;", 1, false).text().starts_with("shared-race"));
}

TEST(BulkReduction, OtherTypesAreRefused) {
  for (const char* operation :
       {"add.s64", "min.f32", "and.u32", "inc.u64", "add.f16", "min.noftz.f16", "exch.b32"})
    EXPECT_THROW(reduced(form(operation), "mov.u32 %r2, 1;"), Error) << operation;
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
