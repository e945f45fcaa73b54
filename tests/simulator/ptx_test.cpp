// Reading PTX: what a module says about itself, and errors with their place.
#include <functional>

#include "core/base/error.h"
#include "simulator/ptx_run.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

Error error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return Error("none");
}

TEST(Ptx, KernelsParametersAndLimitsAreRead) {
  const ptx::Module module = fixture("softmax.ptx");
  EXPECT_EQ(module.target(), "sm_75");
  const ptx::KernelInfo* k = module.kernel("softmax");
  ASSERT_NE(k, nullptr);
  ASSERT_EQ(k->parameters.size(), 3u);
  EXPECT_EQ(k->parameters[2].type, "u32");
  EXPECT_EQ(k->parameters[2].offset, 16u);
  EXPECT_EQ(k->max_threads, 256);
  EXPECT_EQ(k->static_shared_bytes, 128);
  EXPECT_EQ(module.kernel("nothing"), nullptr);
}
TEST(Ptx, ATrailingNulAsNvrtcLeavesItIsIgnored) {
  const std::string text = fixture_text("vecadd.ptx") + '\0';
  EXPECT_EQ(ptx::parse(text, "v.ptx").kernels().size(), 1u);
}
TEST(Ptx, EveryPrefixOfAFileIsReadOrRefusedWithAPlace) {
  const std::string text = fixture_text("vecadd.ptx");
  for (std::size_t n = 0; n < text.size(); n += 7) {
    try {
      ptx::parse(text.substr(0, n), "cut.ptx");
    } catch (const Error& e) {
      EXPECT_EQ(e.file(), "cut.ptx");
      EXPECT_GT(e.line(), 0);
    }
  }
}
TEST(Ptx, TruncationIsNamed) {
  const std::string text = fixture_text("vecadd.ptx");
  const Error e = error_of([&] { ptx::parse(text.substr(0, text.rfind("ret")), "cut.ptx"); });
  EXPECT_NE(e.message().find("ends inside a kernel"), std::string::npos) << e.what();
}
TEST(Ptx, AnUnknownInstructionIsAnErrorWithLineColumnAndHint) {
  const Error e =
      error_of([] { ptx::parse(wrap_ptx("mov.u32 %r1, 1;\n  frobnicate.f32 %f1, %f2;\nret;"), "bad.ptx"); });
  EXPECT_EQ(e.line(), 13);
  EXPECT_EQ(e.column(), 3);
  EXPECT_EQ(e.message(), "instruction 'frobnicate.f32' is not supported");
  EXPECT_NE(e.hint().find("stitchwork ptx isa"), std::string::npos);
}
TEST(Ptx, AnUnknownModifierIsNotIgnored) {
  for (const char* line : {"ld.global.magic.f32 %f1, [%d1];", "add.rq.f32 %f1, %f2, %f3;", "bar.magic 0;",
                           "atom.global.frob.u32 %r1, [%d1], %r2;", "wgmma.fence.sync.aligned;", "call foo;",
                           "call.magic %r1;", "call.uni.uni foo, (%r1);", "bra.magic NOWHERE;"}) {
    EXPECT_THROW(ptx::parse(wrap_ptx(std::string(line) + "\nret;"), "bad.ptx"), Error) << line;
  }
}
TEST(Ptx, UndeclaredNamesAndWrongOperandsAreRefused) {
  for (const char* line :
       {"add.s32 %r1, %r2;", "add.s32 %x1, %r2, %r3;", "bra NOWHERE;", "mov.u32 %r1, nothing;",
        "add.s32 %d1, %r2, %r3;", "mov.u32 %r1, %unknown_special;", "add.s32 5, %r2, %r3;"}) {
    EXPECT_THROW(ptx::parse(wrap_ptx(std::string(line) + "\nret;"), "bad.ptx"), Error) << line;
  }
}
TEST(Ptx, NumbersThatFitNoSizeOrOffsetAreRefused) {
  for (const char* line :
       {"ld.global.f32 %f1, [%d1+-9223372036854775808];", "ld.global.f32 %f1, [%d1+4294967296];",
        "ld.global.f32 %f1, [18446744073709551615+1];", ".reg .b32 %q<99999999999>;"}) {
    EXPECT_THROW(ptx::parse(wrap_ptx(std::string(line) + "\nret;"), "bad.ptx"), Error) << line;
  }
  for (const char* directive :
       {".maxntid 4294967295, 4294967295, 4294967295", ".maxntid 1, 1, 1, 1", ".reqntid -1"}) {
    EXPECT_THROW(
        ptx::parse(fmt::format(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{}\n"
                               "{{\nret;\n}}\n",
                               directive),
                   "bad.ptx"),
        Error)
        << directive;
  }
}
TEST(Ptx, WrongLaunchesAreRefused) {
  const ptx::Module module = fixture("vecadd.ptx");
  DeviceMemory memory;
  Launch launch{.kernel = "vecadd", .grid = {1, 1, 1}, .block = {32, 1, 1}, .arguments = {Argument::i32(1)}};
  const Error count = error_of([&] { run(module, launch, memory, device("v100"), {}); });
  EXPECT_NE(count.message().find("takes 4 arguments, 1 given"), std::string::npos) << count.what();
  launch.arguments = {Argument::i32(1), Argument::pointer(0), Argument::pointer(0), Argument::i32(1)};
  EXPECT_NE(error_of([&] { run(module, launch, memory, device("v100"), {}); }).message().find("has 4 bytes"),
            std::string::npos);
  launch.kernel = "vecsub";
  EXPECT_NE(error_of([&] { run(module, launch, memory, device("v100"), {}); }).hint().find("vecadd"),
            std::string::npos);
  launch.kernel = "vecadd";
  launch.arguments[0] = Argument::pointer(0);
  launch.block = {2048, 1, 1};
  EXPECT_THROW(run(module, launch, memory, device("v100"), {}), Error);
}
TEST(Ptx, LocalMemoryBeyondWhatAThreadMayHaveIsRefused) {
  const ptx::Module module =
      ptx::parse(wrap_ptx(".local .align 4 .b8 depot[1073741824]; mov.u32 %r1, 1; ret;"), "local.ptx");
  DeviceMemory memory;
  Launch launch{.kernel = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}};
  launch.arguments = {Argument::pointer(0), Argument::pointer(0)};
  try {
    run(module, launch, memory, device("v100"), {});
    ADD_FAILURE() << "a gigabyte a thread was given";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(),
              "kernel 'k' wants 1073741824 bytes of local memory a thread; devices allow 524288");
  }
}

TEST(Ptx, GlobalTablesAreInitialisedAndKeepTheirContents) {
  const std::string text =
      ".version 7.8\n.target sm_75\n.address_size 64\n.global .align 4 .u32 table[3] = {7, 8, 9};\n"
      ".global .u32 calls;\n.visible .entry k(.param .u64 out)\n{\n.reg .b64 %d<4>; .reg .b32 %r<4>;\n"
      "ld.param.u64 %d1, [out];\nmov.u64 %d2, table;\nld.global.u32 %r1, [%d2+8];\n"
      "atom.global.add.u32 %r2, [calls], 1;\nadd.u32 %r1, %r1, %r2;\nst.global.u32 [%d1], %r1;\nret;\n}\n";
  const ptx::Module module = ptx::parse(text, "t.ptx");
  DeviceMemory memory;
  const DeviceAddress out = memory.allocate(4, "out");
  Launch launch{.kernel = "k", .grid = {}, .block = {1, 1, 1}, .arguments = {Argument::pointer(out)}};
  for (std::uint32_t call = 0; call < 3; ++call) {
    ASSERT_TRUE(run(module, launch, memory, device("v100"), {}).findings.empty());
    EXPECT_EQ(download<std::uint32_t>(memory, out, 1)[0], 9 + call);
  }
}

TEST(Ptx, AManagedVariableIsAVariable) {  // as nvcc writes __managed__
  std::string text =
      wrap_ptx("ld.param.u64 %d1, [out];\nld.global.u32 %r1, [m];\nst.global.u32 [%d1], %r1;\nret;");
  text.insert(text.find(".visible"), ".global .attribute(.managed) .align 4 .u32 m = 5;\n");
  const Outcome r = run_on_numbers(ptx::parse(text, "managed.ptx"),
                                   {.kernel = "k", .grid = {1, 1, 1}, .block = {1, 1, 1}}, {}, "v100", 1, 1);
  EXPECT_EQ(r.out[0], 5u);
}

TEST(PtxRun, ArgumentsAreParsedAndBuffersReadBack) {
  const ptx::Module module = fixture("vecadd.ptx");
  Launch launch{.kernel = "", .grid = {4, 1, 1}, .block = {256, 1, 1}};
  const PtxRun r =
      run_ptx(module, launch, {"buf:f32:1000:seed=1", "buf:f32:1000:seed=2", "buf:f32:1000:zero", "i32:1000"},
              device("v100"), {});
  ASSERT_TRUE(r.result.findings.empty());
  ASSERT_EQ(r.buffers.size(), 4u);
  EXPECT_FALSE(r.buffers[3].has_value());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(r.buffers[2]->data<float>()[i],
              r.buffers[0]->data<float>()[i] + r.buffers[1]->data<float>()[i]);
  }
  EXPECT_NE(r.buffers[0]->data<float>()[0], r.buffers[1]->data<float>()[0]);
}
TEST(PtxRun, BadArgumentsAreQuoted) {
  for (const char* text :
       {"i32:x", "f32:", "buf:f32:10", "buf:q7:10:zero", "buf:f32:-1:zero", "buf:f32:10:ones", "7"}) {
    const Error e = error_of([&] { parse_argument(text); });
    EXPECT_NE(e.message().find(text), std::string::npos) << e.what();
    EXPECT_FALSE(e.hint().empty());
  }
  EXPECT_THROW(parse_dim3("1,2,"), Error);
  EXPECT_THROW(parse_dim3("0"), Error);
  EXPECT_EQ(parse_dim3("3,2,1").count(), 6u);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
