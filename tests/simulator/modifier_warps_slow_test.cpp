// Programs for exchanges within a warp and barriers, whose lanes hold different edge values.
#include <fmt/format.h>

#include "tests/simulator/modifier_programs.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr char kValues[] =
    "ld.global.b32 %r1, [%d30+8];\nld.global.b32 %r2, [%d30+24];\nld.global.b64 %d1, [%d30];\n"
    "ld.global.u16 %h15, [%d30+14];\nsetp.ne.u16 %p1, %h15, 0;\nmov.b32 %f1, %r1;\n"
    "setp.eq.u32 %p0, %r30, 99;\nmov.u32 %r5, 0;\n";
constexpr char kStores[] =
    "st.global.b32 [%d31], %r5;\nselp.b32 %r6, 1, 0, %p0;\nst.global.b32 [%d31+4], %r6;\n";

ModifierForm exchange(const std::string& opcode, const std::string& operands,
                      const std::string& target = "sm_90a", const std::string& before = "") {
  return {
      opcode,
      {modifier_program(kValues + before + "OPCODE " + operands + ";\n" + kStores, 8, 256, false, target)}};
}

void add_exchanges(std::vector<ModifierForm>& forms) {
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    // Within segments of eight lanes.
    forms.push_back(exchange("shfl.sync." + mode + ".b32", "%r5|%p0, %r1, %r2, 0x1807, -1"));
    forms.push_back(exchange("shfl." + mode + ".b32", "%r5|%p0, %r1, %r2, 0x1807", "sm_60"));
  }
  // Warps whose lanes all agree, and others.
  const std::string some =
      "shr.u32 %r7, %r31, 5;\nand.b32 %r8, %r7, 3;\nsetp.eq.u32 %p2, %r8, 0;\n"
      "setp.eq.u32 %p3, %r8, 1;\nor.pred %p1, %p1, %p2;\nnot.pred %p3, %p3;\n"
      "and.pred %p1, %p1, %p3;\n";
  for (const std::string mode : {"all", "any", "uni"}) {
    forms.push_back(exchange("vote.sync." + mode + ".pred", "%p0, %p1, -1", "sm_90a", some));
    forms.push_back(exchange("vote." + mode + ".pred", "%p0, %p1", "sm_60", some));
  }
  forms.push_back(exchange("vote.sync.ballot.b32", "%r5, %p1, -1"));
  forms.push_back(exchange("vote.ballot.b32", "%r5, %p1", "sm_60"));
  // Whole warps that agree, too.
  const std::string alike =
      "shr.u32 %r7, %r31, 5;\nand.b32 %r8, %r7, 1;\nsetp.eq.u32 %p2, %r8, 0;\n"
      "selp.b32 %r1, %r7, %r1, %p2;\ncvt.u64.u32 %d2, %r7;\nselp.b64 %d1, %d2, %d1, %p2;\n";
  for (const std::string mode : {"any", "all"}) {
    forms.push_back(exchange("match." + mode + ".sync.b32", "%r5, %r1, -1", "sm_90a", alike));
    forms.push_back(exchange("match." + mode + ".sync.b64", "%r5, %d1, -1", "sm_90a", alike));
  }
  forms.push_back(exchange("match.all.sync.b32", "%r5|%p0, %r1, -1", "sm_90a", alike));
  for (const std::string form :
       {"add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"})
    forms.push_back(exchange("redux.sync." + form, "%r5, %r1, -1"));
  // Warps with and without a NaN.
  const std::string numbers =
      "setp.nan.f32 %p2, %f1, %f1;\nshr.u32 %r7, %r31, 5;\nand.b32 %r8, %r7, 1;\n"
      "setp.eq.and.u32 %p2, %r8, 0, %p2;\nselp.f32 %f1, 0fC0200000, %f1, %p2;\n";
  for (const std::string form : {"min", "max"})
    for (const std::string absolute : {"", ".abs"})
      for (const std::string nan : {"", ".NaN"}) {
        ModifierForm f =
            exchange("redux.sync." + form + absolute + nan + ".f32", "%f2, %f1, -1", "sm_100a", numbers);
        std::string& text = f.programs[0].text;
        text.replace(text.find("st.global.b32 [%d31], %r5"), 25, "st.global.f32 [%d31], %f2");
        forms.push_back(f);
      }
  forms.push_back(exchange("elect.sync", "%r5|%p0, -1"));
  forms.push_back(exchange("activemask.b32", "%r5"));
}

/// Two warps leave a word each for the other, with a barrier in between; and a barrier that the lanes of a
/// warp meet in two places.
void add_barriers(std::vector<ModifierForm>& forms) {
  const std::string cells =
      ".shared .align 4 .b8 cells[256];\nmov.u32 %r9, cells;\nshl.b32 %r10, %r30, 2;\n"
      "add.u32 %r10, %r9, %r10;\nst.shared.u32 [%r10], %r31;\n";
  const std::string taken = "xor.b32 %r11, %r10, 128;\nld.shared.u32 %r5, [%r11];\n";
  const auto meet = [&](const std::string& opcode, const std::string& operands) {
    const std::string apart = "setp.lt.u32 %p5, %r30, 16;\n@%p5 bra OTHER;\nOPCODE " + operands +
                              ";\nbra JOIN;\nOTHER:\nOPCODE " + operands + ";\nadd.u32 %r5, %r5, 0;\nJOIN:\n";
    forms.push_back(
        {opcode,
         {modifier_program(kValues + cells + "OPCODE " + operands + ";\n" + taken + kStores, 2, 64, true),
          modifier_program(kValues + cells + apart + taken + kStores, 1, 64, true)}});
  };
  // The lanes of the first warp arrive in two places, the second waits for them and reads what they left.
  const std::string waited =
      "setp.ge.u32 %p6, %r30, 32;\n@%p6 bra WAITER;\nsetp.lt.u32 %p5, %r30, 16;\n"
      "@%p5 bra OTHER;\nOPCODE 1, 64;\nbra END;\nOTHER:\nOPCODE 1, 64;\nbra "
      "END;\nWAITER:\nbar.sync 1, 64;\n" +
      taken + kStores + "END:\n";
  for (const std::string block : {"", ".cta"}) {
    for (const std::string how : {"sync", "arrive"})
      for (const std::string base : {"bar", "barrier", "barrier aligned"}) {
        const bool names_it = base == "barrier aligned";
        meet((names_it ? "barrier" : base) + block + "." + how + (names_it ? ".aligned" : ""), "0, 64");
        if (how == "arrive")
          forms.back().programs.push_back(modifier_program(kValues + cells + waited, 1, 64, true));
      }
    meet("bar" + block + ".red.popc.u32", "%r5, 0, %p1");
    for (const std::string aligned : {"", ".aligned"})
      meet("barrier" + block + ".red.popc" + aligned + ".u32", "%r5, 0, %p1");
    // In the first block some of the threads say yes, in the second none.
    for (const std::string how : {"and", "or"}) {
      const auto decided = [&](const std::string& opcode) { meet(opcode, "%p0, 0, %p1"); };
      decided("bar" + block + ".red." + how + ".pred");
      for (const std::string aligned : {"", ".aligned"})
        decided("barrier" + block + ".red." + how + aligned + ".pred");
    }
  }
  const std::string left = "xor.b32 %r11, %r10, 4;\n";
  forms.push_back(
      {"bar.warp.sync",
       {modifier_program(kValues + cells + left + "OPCODE -1;\nld.shared.u32 %r5, [%r11];\n" + kStores, 1, 32,
                         true)}});
}

/// Of addresses of every window.
void add_windows(std::vector<ModifierForm>& forms) {
  const std::string places =
      ".shared .align 8 .b8 cells[64];\n.local .align 8 .b8 cell[8];\n.const .b32 table = 5;\n"
      "mov.u64 %d2, cells;\nmov.u64 %d3, cell;\nmov.u64 %d4, table;\nmov.u64 %d5, in;\n";
  for (const std::string space :
       {"const", "global", "local", "shared", "shared::cta", "shared::cluster", "param", "param::entry"}) {
    std::string converts = places, asks = places +
                                          "cvta.shared.u64 %d2, %d2;\ncvta.local.u64 %d3, %d3;\n"
                                          "cvta.const.u64 %d4, %d4;\ncvta.param.u64 %d5, %d5;\n"
                                          "mov.u32 %r4, %cluster_ctarank;\nxor.b32 %r4, %r4, 1;\n"
                                          "mapa.u64 %d6, %d2, %r4;\nmov.u64 %d1, %d31;\nmov.u32 %r5, 0;\n";
    for (int k = 2; k < 6; ++k)
      converts += fmt::format("OPCODE %d1, %d{0};\nst.global.b64 [%d31+{1}], %d1;\n", k, 8 * (k - 2));
    for (int k = 1; k < 7; ++k)
      asks += fmt::format("OPCODE %p0, %d{};\nselp.b32 %r6, {}, 0, %p0;\nor.b32 %r5, %r5, %r6;\n", k, 1 << k);
    forms.push_back({"cvta." + space + ".u64", {modifier_program(converts, 1, 32, false)}});
    forms.push_back({"cvta.to." + space + ".u64", {modifier_program(converts, 1, 32, false)}});
    ModifierProgram asking = modifier_program(asks + "st.global.b32 [%d31], %r5;\n", 2, 32, false);
    asking.text.insert(asking.text.find("\n{\n"), "\n.reqnctapercluster 2, 1, 1");
    forms.push_back({"isspacep." + space, {asking}});
  }
}

}  // namespace TEST_FILE

std::vector<ModifierForm> warp_forms() {
  using namespace TEST_FILE;
  std::vector<ModifierForm> forms;
  add_exchanges(forms);
  add_barriers(forms);
  add_windows(forms);
  return forms;
}

}  // namespace stitchwork::sim
