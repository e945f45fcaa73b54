// Modules of one program: what one declares .extern another defines.
#include <array>

#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr const char* kHead = ".version 7.8\n.target sm_75\n.address_size 64\n";

/// k stores what `change`, another module's, makes of 1 and adds it to that module's `counter`.
constexpr const char* kUser = R"(
.extern .func (.param .b32 result) change (.param .b32 x);
.extern .global .align 4 .u32 counter;
.global .u32 own = 100;
.func (.param .b32 result) helper (.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [x];
  add.u32 %r2, %r1, 1000;
  st.param.u32 [result], %r2;
  ret;
}
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  .param .b32 x;
  .param .b32 y;
  st.param.u32 [x], 1;
  call (y), change, (x);
  ld.param.u32 %r1, [y];
  st.param.u32 [x], %r1;
  call (y), helper, (x);
  ld.param.u32 %r2, [y];
  ld.global.u32 %r3, [own];
  add.u32 %r2, %r2, %r3;
  st.global.u32 [%rd1], %r2;
  atom.global.add.u32 %r4, [counter], %r1;
  st.global.u32 [%rd1+4], %r4;
  ret;
}
)";
/// Its own `own` and `helper` are not those of the other module.
constexpr const char* kMaker = R"(
.visible .global .align 4 .u32 counter = 7;
.global .u32 own = 20;
.func (.param .b32 result) helper (.param .b32 x)
{
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [x];
  ld.global.u32 %r2, [own];
  add.u32 %r3, %r1, %r2;
  st.param.u32 [result], %r3;
  ret;
}
.visible .global .align 8 .u64 table[1] = {helper};
.visible .func (.param .b32 result) change (.param .b32 x)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u32 %r1, [x];
  .param .b32 a;
  .param .b32 b;
  st.param.u32 [a], %r1;
  ld.global.u64 %rd1, [table];
  proto: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (b), %rd1, (a), proto;
  ld.param.u32 %r2, [b];
  st.param.u32 [result], %r2;
  ret;
}
.visible .entry read(.param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.global.u32 %r1, [counter];
  st.global.u32 [%rd1+8], %r1;
  ret;
}
)";

std::vector<ptx::Module> linked(std::initializer_list<std::string> bodies) {
  std::vector<ptx::Source> sources;
  for (const std::string& body : bodies)
    sources.push_back({kHead + body, std::string(1, static_cast<char>('a' + sources.size())) + ".ptx"});
  return ptx::parse_program(sources);
}
std::string refusal(std::initializer_list<std::string> bodies) {
  try {
    linked(bodies);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Link, FunctionsAndVariablesOfOtherModulesAreTheirs) {
  for (const bool swapped : {false, true}) {  // whichever comes first
    const auto modules = swapped ? linked({kMaker, kUser}) : linked({kUser, kMaker});
    DeviceMemory memory(true);
    const DeviceAddress out = memory.allocate(12, "out");
    Options options;
    options.sanitize = {.race = true, .init = true};
    for (const auto& [module, kernel] :
         {std::pair{&modules[swapped], "k"}, std::pair{&modules[!swapped], "read"}}) {
      const Launch launch{
          .kernel = kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}, .arguments = {Argument::pointer(out)}};
      EXPECT_TRUE(run(*module, launch, memory, device("v100"), options).findings.empty());
    }
    EXPECT_EQ(download<std::uint32_t>(memory, out, 3),
              (std::vector<std::uint32_t>{1 + 20 + 1000 + 100, 7, 7 + 21}));
  }
}

TEST(Link, ModulesThatNeedNothingOfEachOtherStayApart) {
  const std::string counts = R"(
.visible .global .u32 counter;
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  atom.global.add.u32 %r1, [counter], 1;
  st.global.u32 [%rd1], %r1;
  ret;
})";
  const auto modules = linked({counts, counts});
  DeviceMemory memory;
  const DeviceAddress out = memory.allocate(4, "out");
  for (const ptx::Module& module : modules) {
    run(module, {.kernel = "k", .grid = {1, 1, 1}, .block = {1, 1, 1}, .arguments = {Argument::pointer(out)}},
        memory, device("v100"), {});
    EXPECT_EQ(download<std::uint32_t>(memory, out, 1)[0], 0u);
  }
}

TEST(Link, ANameThatTwoModulesDefineIsRefusedUnlessItIsWeak) {
  EXPECT_EQ(
      refusal({kUser, kMaker, ".visible .global .u32 counter;"}),
      "c.ptx:4:1: 'counter' is also defined in b.ptx; modules that are linked define a name once: leave one "
      "of them out");
  EXPECT_EQ(refusal({kUser, kMaker, ".weak .global .u32 counter;"}), "");
  EXPECT_EQ(refusal({kUser, kMaker, ".global .u32 counter;"}), "");
}

TEST(Link, WhatNoModuleDefinesIsRefusedWhereItIsUsed) {
  EXPECT_NE(refusal({kUser}).find("a.ptx:24:3:"), std::string::npos) << refusal({kUser});
  EXPECT_NE(refusal({kUser}).find("function 'change' has no body in any module of the program"),
            std::string::npos);
  std::string only_function = kMaker;
  only_function.replace(only_function.find(".visible .global .align 4 .u32 counter = 7;"), 43, "");
  only_function.erase(only_function.find(".visible .entry"));
  EXPECT_NE(refusal({kUser, only_function})
                .find("'counter' is declared .extern, and no module of the program defines it"),
            std::string::npos)
      << refusal({kUser, only_function});
  EXPECT_EQ(refusal({".extern .global .u32 unused;\n.extern .func nothing;\n.entry k()\n{\nret;\n}"}), "");
}

TEST(Link, AFindingInAnotherModulesFunctionNamesItsFile) {
  std::string faulty = kMaker;
  faulty.replace(faulty.find("ld.global.u32 %r2, [own]"), 24, "ld.global.u32 %r2, [own+400]");
  const auto modules = linked({kUser, faulty});
  DeviceMemory memory;
  const DeviceAddress out = memory.allocate(12, "out");
  const LaunchResult result =
      run(modules[0],
          {.kernel = "k", .grid = {1, 1, 1}, .block = {1, 1, 1}, .arguments = {Argument::pointer(out)}},
          memory, device("v100"), {});
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].kind, FindingKind::kOutOfBounds);
  EXPECT_TRUE(result.findings[0].message.ends_with(" (in b.ptx)")) << result.findings[0].message;
  EXPECT_EQ(result.findings[0].ptx_line, 11);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
