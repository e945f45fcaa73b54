// Device functions: calls are executed by inlining them.
#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

std::string with_functions(const std::string& functions, const std::string& body) {
  std::string text = wrap_ptx(body);
  text.insert(text.find(".visible .entry"), functions);
  return text;
}

/// Runs kernel k of one warp; out[lane] for each of 32 lanes.
std::vector<std::uint32_t> run_lanes(const std::string& text, const std::vector<std::uint32_t>& in) {
  const ptx::Module module = ptx::parse(text, "calls.ptx");
  DeviceMemory memory;
  const DeviceAddress out = memory.allocate(128, "out");
  Launch launch{.kernel = "k", .grid = {}, .block = {32, 1, 1}};
  launch.arguments = {Argument::pointer(upload(memory, in, "in")), Argument::pointer(out)};
  const LaunchResult r = run(module, launch, memory, device("v100"), {});
  EXPECT_TRUE(r.findings.empty()) << r.findings[0].message;
  return download<std::uint32_t>(memory, out, 32);
}

std::string refusal(const std::string& text) {
  try {
    ptx::parse(text, "calls.ptx");
  } catch (const Error& e) {
    EXPECT_GT(e.line(), 0);
    return e.what();
  }
  ADD_FAILURE() << "not refused";
  return "";
}

constexpr const char* kLanes =
    "mov.u32 %r1, %tid.x;\nld.param.u64 %d1, [out];\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d1, %d1, %d2;\n";

TEST(Calls, ParametersAndResultsTravelThroughParamVariables) {
  const std::string function =
      ".func (.param .b32 result) twice_plus(.param .b32 a, .param .align 4 .b8 b[8])\n{\n.reg .b32 %r<4>;\n"
      "ld.param.b32 %r1, [a];\nld.param.b32 %r2, [b+4];\nmad.lo.s32 %r3, %r1, 2, %r2;\n"
      "st.param.b32 [result+0], %r3;\nret;\n}\n";
  std::string body = kLanes;
  for (int call = 0; call < 2; ++call)
    body +=
        "{\n.param .b32 p0;\nst.param.b32 [p0+0], %r1;\n.param .align 4 .b8 p1[8];\nst.param.b32 [p1+0], 9;\n"
        "st.param.b32 [p1+4], 5;\n.param .b32 r0;\ncall.uni (r0), twice_plus, (p0, p1);\n"
        "ld.param.b32 %r1, [r0+0];\n}\n";
  const auto got = run_lanes(with_functions(function, body + "st.global.u32 [%d1], %r1;\nret;"), {0});
  for (std::uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], 4 * l + 15);
}

TEST(Calls, ParametersCutInDifferentWaysLieInMemory) {
  const std::string function =
      ".func (.param .align 4 .b8 result[8]) swap(.param .align 4 .b8 p[8])\n{\n.reg .b32 %r<4>;\n.reg .b64 "
      "%d<2>;\n"
      "mov.u64 %d1, p;\nld.param.b32 %r1, [%d1];\nld.param.b32 %r2, [%d1+4];\n"
      "st.param.b32 [result+0], %r2;\nst.param.b32 [result+4], %r1;\nret;\n}\n";
  const std::string body = std::string(kLanes) +
                           "{\n.param .align 4 .b8 p[8];\nst.param.v2.b32 [p], {%r1, 7};\n"
                           ".param .align 4 .b8 r[8];\ncall (r), swap, (p);\nld.param.b64 %d3, [r];\n}\n"
                           "shr.u64 %d4, %d3, 28;\ncvt.u32.u64 %r5, %d4;\ncvt.u32.u64 %r6, %d3;\n"
                           "add.u32 %r5, %r5, %r6;\nst.global.u32 [%d1], %r5;\nret;";
  const auto got = run_lanes(with_functions(function, body), {0});
  for (std::uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], 16 * l + 7);
}

TEST(Calls, LanesReturnFromDifferentPlaces) {
  const std::string function =
      ".func (.reg .b32 result) classify(.reg .b32 x)\n{\n.reg .pred %p<3>;\n"
      "setp.lt.u32 %p1, x, 8;\n@%p1 bra SMALL;\nsetp.lt.u32 %p2, x, 20;\nmov.u32 result, 2;\n@%p2 ret;\n"
      "mov.u32 result, 3;\nret;\nSMALL:\nmov.u32 result, 1;\nret;\n}\n";
  const std::string body =
      std::string(kLanes) +
      "call (%r2), classify, (%r1);\nsetp.gt.u32 %p1, %r1, 15;\n@%p1 call (%r2), classify, (3);\n"
      "st.global.u32 [%d1], %r2;\nret;";
  const auto got = run_lanes(with_functions(function, body), {0});
  for (std::uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], l < 8 || l > 15 ? 1u : 2u) << l;
}

TEST(Calls, CountsAreThoseOfTheOriginalInstructions) {
  const std::string function = ".func nothing()\n{\nret;\n}\n";
  const std::string text = with_functions(function, "call nothing;\ncall nothing;\nret;");
  const ptx::Module module = ptx::parse(text, "t.ptx");
  DeviceMemory memory;
  Launch launch{.kernel = "k", .grid = {}, .block = {64, 1, 1}};
  launch.arguments = {Argument::pointer(0), Argument::pointer(0)};
  EXPECT_EQ(run(module, launch, memory, device("v100"), {}).counters.inst_executed, 2u * 5);
}

TEST(Calls, RecursionAndMissingBodiesAreRefusedByName) {
  const std::string loop =
      ".func (.param .b32 r) fib(.param .b32 n)\n{\n.param .b32 p;\n.param .b32 q;\ncall (q), fib, "
      "(p);\nret;\n}\n";
  EXPECT_NE(refusal(with_functions(loop, ".param .b32 a;\n.param .b32 b;\ncall (a), fib, (b);\nret;"))
                .find("function 'fib' calls itself"),
            std::string::npos);
  EXPECT_NE(refusal(wrap_ptx("call malloc;\nret;")).find("'malloc' has no body"), std::string::npos);
  EXPECT_NE(refusal(with_functions(".func f()\n{\nret;\n}\n", ".param .b32 a;\ncall f, (a);\nret;"))
                .find("takes 0 arguments"),
            std::string::npos);
}

TEST(Calls, ThroughAPointerGoToTheFunctionItIsOf) {
  const auto function = [](const char* name, const char* body) {
    return fmt::format(
        ".func (.param .b32 r) {}(.param .b32 a)\n{{\n.reg .b32 %x;\nld.param.b32 %x, [a];\n{}\n"
        "st.param.b32 [r], %x;\nret;\n}}\n",
        name, body);
  };
  // By a table's initial value, by an address taken in the kernel; `wide` takes another size.
  const std::string functions = function("plus", "add.u32 %x, %x, 100;") +
                                function("times", "mul.lo.u32 %x, %x, 3;") +
                                function("unused", "mov.u32 %x, 77;") +
                                ".func (.param .b64 r) wide(.param .b64 a)\n{\nret;\n}\n.global .align 8 "
                                ".u64 table[2] = {plus, wide};\n";
  const std::string body = std::string(kLanes) +
                           "ld.global.u64 %d3, [table];\nmov.u64 %d4, times;\nsetp.lt.u32 %p1, %r1, "
                           "20;\nselp.b64 %d5, %d3, %d4, %p1;\n"
                           "setp.ne.u32 %p2, %r1, 7;\nmov.u32 %r2, %r1;\n{\n.param .b32 p;\n.param .b32 "
                           "q;\nst.param.b32 [p], %r1;\n"
                           "st.param.b32 [q], 5;\nP: .callprototype (.param .b32 _) _ (.param .b32 _);\n@%p2 "
                           "call (q), %d5, (p), P;\n"
                           "ld.param.b32 %r2, [q];\n}\nst.global.u32 [%d1], %r2;\nret;";
  const auto got = run_lanes(with_functions(functions, body), {0});
  for (std::uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], l == 7 ? 5u : l < 20 ? l + 100 : 3 * l) << l;
  // A pointer to no function that fits.
  const ptx::Module module = ptx::parse(
      with_functions(functions,
                     ".param .b32 p;\n.param .b32 q;\nld.global.u64 %d3, [table+8];\ncall (q), %d3, (p), "
                     "P;\nret;"),
      "calls.ptx");
  DeviceMemory memory;
  Launch launch{.kernel = "k", .grid = {}, .block = {1, 1, 1}};
  launch.arguments = {Argument::pointer(0), Argument::pointer(0)};
  const LaunchResult r = run(module, launch, memory, device("v100"), {});
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].kind, FindingKind::kTrap);
  // A function that may call itself through a pointer.
  EXPECT_NE(refusal(with_functions(".func f()\n{\n.reg .b64 %x;\nmov.u64 %x, f;\ncall %x, P;\nret;\n}\n",
                                   "call f;\nret;"))
                .find("function 'f' calls itself"),
            std::string::npos);
}

TEST(Calls, LabelsAndVariablesOfScopesAreTheirOwn) {
  const std::string body =
      std::string(kLanes) +
      "mov.u32 %r2, 0;\n"
      "{\n.reg .b32 x;\nmov.u32 x, 3;\nbra L;\nadd.u32 %r2, %r2, 100;\nL:\nadd.u32 %r2, %r2, x;\n}\n"
      "{\n.reg .b32 x;\nmov.u32 x, 4;\nbra L;\nadd.u32 %r2, %r2, 100;\nL:\nadd.u32 %r2, %r2, x;\n}\n"
      "st.global.u32 [%d1], %r2;\nret;";
  for (std::uint32_t v : run_lanes(wrap_ptx(body), {0})) EXPECT_EQ(v, 7u);
}

TEST(Calls, IndexedBranchesGoToTheirTargets) {
  const std::string body =
      std::string(kLanes) +
      "and.b32 %r3, %r1, 3;\nT: .branchtargets A, B, C, A;\nbrx.idx %r3, T;\n"
      "A:\nmov.u32 %r2, 10;\nbra E;\nB:\nmov.u32 %r2, 20;\nbra E;\nC:\nmov.u32 %r2, 30;\n"
      "E:\nst.global.u32 [%d1], %r2;\nret;";
  const auto got = run_lanes(wrap_ptx(body), {0});
  for (std::uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], l % 4 == 1 ? 20u : l % 4 == 2 ? 30u : 10u);
}

TEST(Calls, PrintfWritesWhatEachLaneSays) {
  const std::string text =
      ".version 7.8\n.target sm_75\n.address_size 64\n"
      ".global .align 1 .b8 fmt[24] = {108, 97, 110, 101, 32, 37, 100, 58, 32, 37, 46, 50, 102, 32, 37, 115, "
      "10, 0};\n"
      ".global .align 1 .b8 word[3] = {111, 107, 0};\n"
      ".visible .entry k()\n{\n.local .align 8 .b8 depot[24];\n.reg .b32 %r<4>;\n.reg .b64 %d<6>;\n.reg .f64 "
      "%e<2>;\n"
      "mov.u32 %r1, %tid.x;\nmov.u64 %d1, depot;\ncvta.local.u64 %d2, %d1;\nst.local.u32 [%d1], %r1;\n"
      "cvt.rn.f64.u32 %e1, %r1;\nst.local.f64 [%d1+8], %e1;\nmov.u64 %d5, word;\ncvta.global.u64 %d5, %d5;\n"
      "st.local.u64 [%d1+16], %d5;\nmov.u64 %d3, fmt;\ncvta.global.u64 %d4, %d3;\n"
      "{\n.param .b64 p0;\nst.param.b64 [p0], %d4;\n.param .b64 p1;\nst.param.b64 [p1], %d2;\n.param .b32 "
      "r0;\n"
      "call.uni (r0), vprintf, (p0, p1);\nld.param.b32 %r2, [r0];\n}\nret;\n}\n";
  const ptx::Module module = ptx::parse(text, "printf.ptx");
  DeviceMemory memory;
  const Launch launch{.kernel = "k", .grid = {}, .block = {2, 1, 1}, .arguments = {}};
  EXPECT_EQ(run(module, launch, memory, device("v100"), {}).printed, "lane 0: 0.00 ok\nlane 1: 1.00 ok\n");
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
