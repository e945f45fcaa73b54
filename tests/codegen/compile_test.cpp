// Compilers, the kernel cache and the written files.
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "codegen/compile/cache.h"
#include "codegen/compile/process.h"
#include "codegen/compile/ptxas.h"
#include "codegen/write.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {
namespace fs = std::filesystem;

const char* const kModule = R"(HloModule m
ENTRY main {
  x = f32[300] parameter(0)
  a = f32[300] exponential(x)
  ROOT b = f32[300] tanh(a)
}
)";

CompileOptions options_for(const std::string& compiler, const fs::path& cache) {
  CompileOptions options;
  options.compiler = compiler;
  options.cache_dir = cache.string();
  return options;
}

TEST(Compile, AnUnknownCompilerIsRefusedByName) {
  try {
    find_compiler("icc");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "unknown compiler 'icc'");
    EXPECT_EQ(error.hint(), "known: nvrtc, clang");
  }
}

TEST(Compile, ADefectInASourceGivesTheCompilersFirstErrorInALine) {
  SKIP_WITHOUT_COMPILER();
  for (const std::string& compiler : testing::installed_compilers()) try {
      compile_ptx(find_compiler(compiler), "extern \"C\" int nonsense = ;\nint more = ;", 75);
      ADD_FAILURE() << compiler;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(),
                  ::testing::AllOf(::testing::HasSubstr("kernel.cu"), ::testing::HasSubstr("error: "),
                                   ::testing::Not(::testing::HasSubstr("\n"))));
    }
}

TEST(Compile, AKernelThatUsesTooMuchIsRefusedWithTheLimit) {
  if (find_ptxas().empty()) GTEST_SKIP() << "no ptxas is installed";
  const std::string ptx =
      ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry k() {\n"
      "  .shared .align 4 .b8 s[200000];\n  .reg .b32 %r1;\n  mov.u32 %r1, s;\n  st.shared.u32 [%r1], %r1;\n"
      "  ret;\n}\n";
  try {
    run_ptxas(find_ptxas(), ptx, 75);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "it uses too much shared data (0x30d40 bytes, 0xc000 max) on sm_75");
  }
}

/// A compiler that fails as one does that meets a defect.
TEST(Compile, AFailureNamesTheKernelAndItsPlan) {
  const char* const path = std::getenv("PATH");
  const TemporaryFolder folder;
  const fs::path clang = folder.path() / "clang";
  write_file(clang.string(),
             "#!/bin/sh\n[ \"$1\" = --version ] && echo 'clang version 14.0.6' && exit 0\n"
             "echo 'note: in file kernel.cu'\necho 'kernel.cu:7:1: error: no such thing'\nexit 1\n");
  fs::permissions(clang, fs::perms::owner_all);
  const Graph graph = testing::graph_of(kModule);
  const FusionPlan plan = make_plan(graph, device("v100"), "xla");
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process of its own: find_clang looks once
  EXPECT_EXIT(
      {
        ::setenv("PATH", (folder.path().string() + ":" + (path == nullptr ? "" : path)).c_str(), 1);
        try {
          compile(graph, device("v100"), plan, options_for("clang", "none"));
        } catch (const Error& error) {
          std::fputs((error.message() + "\n").c_str(), stderr);
          std::exit(3);
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(3),
      "^kernel k0 b \\(planner xla for v100-sxm2; [0-9]+ blocks of [0-9]+ threads, 0 bytes of shared memory, "
      "0 "
      "grid barriers\\): clang 14.0.6 cannot compile a generated kernel: kernel.cu:7:1: error: no such "
      "thing\n$");
}

TEST(Compile, OldDevicesAreCompiledForTheOldestArchitectureTheCompilerKnows) {
  SKIP_WITHOUT_COMPILER();
  for (const std::string& compiler : testing::installed_compilers()) {
    const PtxCompiler found = find_compiler(compiler);
    for (const char* id : {"p100-sxm2", "v100", "t4", "h200"}) {
      const int architecture = compile_architecture(found, device(id));
      EXPECT_GE(architecture, 70) << compiler << " " << id;
      EXPECT_LE(architecture, 90) << compiler << " " << id;
    }
  }
}

TEST(Compile, KernelsCompiledElsewhereRunWithoutACompilerAndOthersAreRefused) {
  const PtxCompiler absent{CompilerKind::kNvrtc, "NVRTC 13.0", ""};
  const std::string source = "extern \"C\" __global__ void k() {}";
  EXPECT_EQ(compile_architecture(absent, device("h200")), 90);
  EXPECT_EQ(KernelCache::key(source, absent, 90),
            KernelCache::key(source, {CompilerKind::kNvrtc, "NVRTC 13.0", "/lib/libnvrtc.so"}, 90));
  try {
    compile_ptx(absent, source, 90);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "no PTX compiler found, and a kernel is not among those compiled by NVRTC 13.0 for sm_90");
  }
}

TEST(Compile, MachineCodeForEveryArchitectureFromTuringToBlackwell) {
  const auto nvrtc = find_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "NVRTC is not installed";
  const Graph graph = testing::graph_of(kModule);
  const Device& gpu = device("v100");
  const FusionPlan plan = make_plan(graph, gpu, "astitch");
  std::string source = to_cuda(graph, build_schedule(graph, plan.kernels.at(0)), true);
  source.insert(0, cuda_prelude(source));
  for (const int architecture : {75, 80, 86, 89, 90, 100, 120}) {
    if (nvrtc_architecture(*nvrtc, architecture) != architecture) continue;  // an older NVRTC
    const Code code = compile_code(*nvrtc, source, architecture);
    EXPECT_EQ(code.cubin.substr(1, 3), "ELF") << architecture;
    EXPECT_NE(code.ptx.find(fmt::format(".target sm_{}", architecture)), std::string::npos);
  }
  EXPECT_TRUE(compiles_for(*nvrtc, device("h200")));
  EXPECT_FALSE(compiles_for(*nvrtc, device("p100-sxm2")));  // compiled for the next NVRTC knows
}

TEST(Compile, MachineCodeIsKeptInTheCacheAndMadeWhereItLacks) {
  if (!find_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  const TemporaryFolder folder;
  const Graph graph = testing::graph_of(kModule);
  const Device& gpu = device("h200");
  const FusionPlan plan = make_plan(graph, gpu, "xla");
  CompileOptions options = options_for("nvrtc", folder.path());
  EXPECT_TRUE(compile(graph, gpu, plan, options).kernels.at(0).cubin.empty());
  options.cubin = true;
  const Executable made = compile(graph, gpu, plan, options);
  EXPECT_FALSE(made.kernels.at(0).from_cache);
  const Executable kept = compile(graph, gpu, plan, options);
  EXPECT_TRUE(kept.kernels.at(0).from_cache);
  EXPECT_EQ(kept.kernels.at(0).cubin, made.kernels.at(0).cubin);
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().extension() == ".cubin") fs::resize_file(entry.path(), 200);
  EXPECT_EQ(compile(graph, gpu, plan, options).kernels.at(0).cubin, made.kernels.at(0).cubin);
}

TEST(Compile, MachineCodeIsWrittenWhereAskedFor) {
  if (!find_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  const TemporaryFolder folder;
  const Graph graph = testing::graph_of(kModule);
  CompileOptions options = options_for("nvrtc", "none");
  options.cubin = true;
  const Executable executable =
      compile(graph, device("h200"), make_plan(graph, device("h200"), "xla"), options);
  EXPECT_EQ(write_kernels(graph, executable, folder.path().string()),
            (std::vector<std::string>{"k0_b.cu", "k0_b.ptx", "k0_b.cubin", "launch.json"}));
  EXPECT_EQ(read_file((folder.path() / "k0_b.cubin").string()), executable.kernels.at(0).cubin);
}

Executable dependent(const char* device_id, const std::string& compiler, const char* model,
                     const char* planner) {
  const Device& gpu = device(device_id);
  const Graph graph = testing::dataset(model);
  const TemporaryFolder folder;
  CompileOptions options = options_for(compiler, folder.path());
  options.dependent_launch = true;
  return compile(graph, gpu, make_plan(graph, gpu, planner), options);
}

TEST(Compile, DependentKernelsWaitBeforeTheyTouchGlobalMemory) {
  if (!find_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  for (const char* planner : {"astitch", "unfused"})
    for (const char* model : {"softmax", "layer_norm_grad", "adam_tiny", "column_sum", "bert_tiny"})
      for (const CompiledKernel& kernel : dependent("h200", "nvrtc", model, planner).kernels) {
        SCOPED_TRACE(fmt::format("{} {}\n{}", planner, model, kernel.ptx));
        EXPECT_TRUE(kernel.dependent);
        const std::size_t body = kernel.ptx.find("\n{"), wait = kernel.ptx.find("griddepcontrol.wait;"),
                          lets = kernel.ptx.find("griddepcontrol.launch_dependents;");
        ASSERT_NE(wait, std::string::npos);
        ASSERT_NE(lets, std::string::npos);
        EXPECT_LT(wait, lets);
        for (const char* access : {"ld.global", "st.global", "atom.", "red.", "cp.async"})
          EXPECT_GT(kernel.ptx.find(access, body), wait) << access;
      }
}

TEST(Compile, DependentLaunchesAreRefusedBelowSm90) {
  SKIP_WITHOUT_COMPILER();
  const auto refusal = [](const char* device_id, const std::string& compiler) -> std::string {
    try {
      dependent(device_id, compiler, "softmax_tiny", "astitch");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const char* id : {"v100", "a100"})
    EXPECT_THAT(refusal(id, ""), ::testing::HasSubstr("dependent launches need sm_90 or later, "));
  if (const auto clang = find_clang(); clang && compile_architecture(*clang, device("h200")) < 90) {
    EXPECT_THAT(refusal("h200", "clang"), ::testing::HasSubstr("clang"));
  }
}

TEST(Compile, PtxEndsWithoutNul) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(kModule);
  const FusionPlan plan = make_plan(graph, device("v100"), "xla");
  for (const std::string& compiler : testing::installed_compilers()) {
    const Executable executable = compile(graph, device("v100"), plan, options_for(compiler, "none"));
    EXPECT_EQ(executable.kernels.at(0).ptx.find('\0'), std::string::npos);
    EXPECT_NE(executable.kernels.at(0).ptx.find(".entry k("), std::string::npos);
  }
}

TEST(Compile, PtxasReportsRegistersAndSpills) {
  const auto use = parse_ptxas(
      "ptxas info    : Compiling entry function 'k' for 'sm_75'\nptxas info    : Function properties for k\n"
      "    0 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 42 registers, used 1 barriers, 176 bytes smem, 368 bytes cmem[0]\n");
  ASSERT_TRUE(use.has_value());
  EXPECT_EQ(use->registers, 42);
  EXPECT_EQ(use->spill_bytes, 20);
  EXPECT_EQ(use->shared_bytes, 176);
  EXPECT_FALSE(parse_ptxas("ptxas fatal   : Unresolved extern function").has_value());
}

TEST(Compile, RegistersAreCountedUnderTheBoundOfTheLaunch) {
  // sm_75 holds 1024 threads an SM: ptxas ignores a .minnctapersm of 2, which a V100 can keep.
  EXPECT_EQ(bounded_registers(".maxntid 1024, 1, 1\n.minnctapersm 2\n{"),
            ".maxntid 1024, 1, 1\n.maxnreg 32\n{");
  EXPECT_EQ(bounded_registers(".maxntid 96, 1, 1\n.minnctapersm 3\n"), ".maxntid 96, 1, 1\n.maxnreg 224\n");
  EXPECT_EQ(bounded_registers(".maxntid 1024\n{"), ".maxntid 1024\n{");
}

TEST(KernelCache, ServesTheSecondCompilationAndSurvivesDamage) {
  SKIP_WITHOUT_COMPILER();
  const TemporaryFolder folder;
  const Graph graph = testing::graph_of(kModule);
  const FusionPlan plan = make_plan(graph, device("v100"), "xla");
  const CompileOptions options = options_for(testing::installed_compilers().front(), folder.path());
  const Executable first = compile(graph, device("v100"), plan, options);
  EXPECT_FALSE(first.kernels.at(0).from_cache);
  const Executable second = compile(graph, device("v100"), plan, options);
  EXPECT_TRUE(second.kernels.at(0).from_cache);
  EXPECT_EQ(second.kernels[0].ptx, first.kernels[0].ptx);
  EXPECT_EQ(second.kernels[0].registers, first.kernels[0].registers);

  for (const auto& entry : fs::directory_iterator(folder.path())) fs::resize_file(entry.path(), 200);
  const Executable third = compile(graph, device("v100"), plan, options);
  EXPECT_FALSE(third.kernels.at(0).from_cache);
  EXPECT_EQ(third.kernels[0].ptx, first.kernels[0].ptx);
}

TEST(KernelCache, LosesWhatWasUsedLongestAgo) {
  const TemporaryFolder temporary;
  const fs::path folder(temporary.path());
  const KernelCache cache(temporary.path());
  const auto used = [&](const std::string& key, int days_ago) {
    fs::last_write_time(folder / (key + ".ptx"),
                        fs::file_time_type::clock::now() - std::chrono::hours(24 * days_ago));
  };
  const std::string ptx(1000, 'x');
  for (int k = 0; k < 10; ++k) {
    cache.write(std::to_string(k), {ptx, "", RegisterUse{}});
    used(std::to_string(k), 20 - k);
  }
  EXPECT_TRUE(cache.read("0"));  // which was used longest ago, until now
  write_file((folder / "notes.txt").string(), ptx);
  cache.trim(1 << 20);
  for (int k = 0; k < 10; ++k) EXPECT_TRUE(cache.read(std::to_string(k))) << "there is room";
  for (int k = 1; k < 10; ++k) used(std::to_string(k), 20 - k);
  cache.trim(7000);  // of which four fifths are five of 1,000 bytes and a line each
  for (int k = 0; k < 10; ++k) EXPECT_EQ(cache.read(std::to_string(k)).has_value(), k == 0 || k >= 6) << k;
  EXPECT_TRUE(fs::exists(folder / "notes.txt"));
}

TEST(KernelCache, TrimsOnceADayAsTheEnvironmentSays) {
  const TemporaryFolder temporary;
  const fs::path folder(temporary.path());
  const KernelCache cache(temporary.path());
  const auto write = [&](const char* key) {
    cache.write(key, {std::string(600 << 10, 'x'), "", RegisterUse{}});
  };
  const auto at = [&](const char* name, int days_ago) {
    fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::hours(24 * days_ago));
  };
  ::setenv("STITCHWORK_CACHE_MIB", "1", 1);
  write("a");
  at("a.ptx", 9);
  write("b");
  EXPECT_TRUE(cache.read("a")) << "it was looked at today";
  at("a.ptx", 9);
  at("trimmed", 2);
  write("c");
  ::unsetenv("STITCHWORK_CACHE_MIB");
  EXPECT_FALSE(cache.read("a"));
  EXPECT_TRUE(cache.read("c"));
}

TEST(KernelCache, KeyDependsOnSourceCompilerAndArchitecture) {
  const PtxCompiler a{CompilerKind::kNvrtc, "NVRTC 13.0", ""}, b{CompilerKind::kClang, "clang 14.0.6", ""};
  const std::string key = KernelCache::key("source", a, 75);
  EXPECT_EQ(key, KernelCache::key("source", a, 75));
  EXPECT_NE(key, KernelCache::key("other", a, 75));
  EXPECT_NE(key, KernelCache::key("source", b, 75));
  EXPECT_NE(key, KernelCache::key("source", a, 80));
}

TEST(Compile, EqualKernelsAreCompiledOnce) {
  SKIP_WITHOUT_COMPILER();
  const TemporaryFolder folder;
  const Graph graph = canonicalize(read_graph(STITCHWORK_SOURCE_DIR "/datasets/bert_tiny.hlo"));
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  CompileOptions options = options_for(testing::installed_compilers().front(), folder.path());
  options.ptxas = false;
  compile(graph, device("v100"), plan, options);
  const auto files = std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
  EXPECT_LT(files, static_cast<std::ptrdiff_t>(plan.kernels.size()));
}

TEST(WriteKernels, WritesSourcesPtxAndTheLaunch) {
  SKIP_WITHOUT_COMPILER();
  const TemporaryFolder folder;
  const Graph graph = testing::graph_of(kModule);
  const Executable executable =
      compile(graph, device("v100"), make_plan(graph, device("v100"), "xla"), options_for("", "none"));
  const auto files = write_kernels(graph, executable, (folder.path() / "out").string());
  EXPECT_EQ(files, (std::vector<std::string>{"k0_b.cu", "k0_b.ptx", "launch.json"}));
  const auto json = nlohmann::json::parse(read_file((folder.path() / "out/launch.json").string()));
  EXPECT_EQ(json.at("schema"), "stitchwork.launch/1");
  const auto& kernel = json.at("kernels").at(0);
  EXPECT_EQ(kernel.at("entry"), "k");
  EXPECT_EQ(kernel.at("arguments").at(0).at("op"), "x");
  EXPECT_EQ(kernel.at("arguments").at(0).at("bytes"), 1200);
  EXPECT_EQ(kernel.at("arguments").at(1).at("kind"), "output");
}

TEST(WriteKernels, NamesAFolderItCannotMake) {
  try {
    write_kernels(testing::graph_of(kModule), {}, "/proc/nowhere");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.file(), "/proc/nowhere");
    EXPECT_FALSE(error.hint().empty());
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
