// What ptxas (13.0) refuses, the reader refuses too, by what is wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "simulator/simulator.h"

namespace stitchwork::sim {
namespace TEST_FILE {

std::string complaint(const std::string& line) {
  try {
    ptx::parse(
        ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
        ".reg .pred %p<4>;\n.reg .b16 %h<8>;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;\n"
        "ld.param.u64 %d1, [out];\n" +
            line + "\nret;\n}\n",
        "strict.ptx");
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(StrictForms, OperandsOfWhatDoesNothingAreCounted) {
  for (const char* line :
       {"createpolicy.fractional.L2::evict_last.b64 %d2;",
        "createpolicy.fractional.L2::evict_last.b64 %d2, 1.0;",
        "createpolicy.range.L2::evict_last.b64 %d2, [%d1], 16, 32;",
        "createpolicy.cvt.L2.b64 %d2, 0x10F0000000000000;", "nanosleep.u32 %r1;", "prefetch.global.L2 [%d1];",
        "discard.global.L2 [%d1], 128;", "applypriority.global.L2::evict_normal [%d1], 128;",
        "griddepcontrol.wait;", "fence.sc.cta;", "membar.gl;"})
    EXPECT_EQ(complaint(line), "") << line;
  const std::pair<const char*, const char*> wrong[] = {
      {"createpolicy.fractional.L2::evict_last.b64 %d2, 1.0, 2.0;", "takes 1 or 2 operands"},
      {"createpolicy.range.L2::evict_last.b64 %d2, [%d1];", "takes 4 operands"},
      {"createpolicy.cvt.L2.b64 %d2;", "takes 2 operands"},
      {"nanosleep.u32 %r1, %r2;", "takes 1 operands"},
      {"prefetch.global.L2 [%d1], 4;", "takes 1 operands"},
      {"discard.global.L2 [%d1];", "takes 2 operands"},
      {"applypriority.global.L2::evict_normal [%d1];", "takes 2 operands"},
      {"griddepcontrol.wait 1;", "takes 0 operands"},
      {"fence.sc.cta %r1;", "takes 0 operands"},
      {"membar.gl 1;", "takes 0 operands"}};
  for (const auto& [line, says] : wrong)
    EXPECT_NE(complaint(line).find(says), std::string::npos) << line << "\n" << complaint(line);
}

/// They are moved as bits, mov having no such type.
TEST(StrictForms, FunctionsTakeHalvesInRegisters) {
  EXPECT_NO_THROW(ptx::parse(
      ".version 8.8\n.target sm_90a\n.address_size 64\n.func (.reg .f16 y) twice(.reg .f16 x)\n{\nadd.f16 y, "
      "x, "
      "x;\nret;\n}\n.visible .entry k(.param .u64 out)\n{\n.reg .f16 %h<3>;\n.reg .b64 %d<2>;\nld.param.u64 "
      "%d1, "
      "[out];\nld.global.b16 %h1, [%d1];\ncall (%h2), twice, (%h1);\nst.global.b16 [%d1], %h2;\nret;\n}\n",
      "halves.ptx"));
}

TEST(StrictForms, ModifiersGoWithTheTypesThatTheyAreFor) {
  for (const char* line :
       {"mov.f16 %h1, %h2;", "mov.bf16 %h1, %h2;", "selp.f16 %h1, %h2, %h3, %p1;", "cvt.sat.u8.u8 %h1, %h2;",
        "cvt.sat.s32.s32 %r1, %r2;", "cvt.sat.u16.u8 %h1, %h2;", "cvt.sat.s64.u32 %d1, %r2;",
        "ld.global.L2::evict_last.u32 %r1, [%d1];", "ld.global.L2::evict_last.v2.b64 {%d1, %d2}, [%d1];",
        "st.global.L2::evict_first.v4.b32 [%d1], {%r1, %r2, %r3, %r4};",
        "mbarrier.arrive.shared::cta.shared::cta.b64 %d2, [%r1];", "cp.reduce.async.bulk.commit_group;",
        "cp.read.async.bulk.wait_group 0;"})
    EXPECT_NE(complaint(line), "") << line;
  for (const char* line :
       {"cvt.sat.u8.u16 %h1, %h2;", "cvt.sat.s8.u8 %h1, %h2;", "cvt.sat.u64.s32 %d1, %r2;",
        "ld.global.L2::evict_last.v4.b64 {%d2, %d3, %d4, %d5}, [%d1];", "cp.async.bulk.wait_group.read 0;"})
    EXPECT_EQ(complaint(line), "") << line;
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
