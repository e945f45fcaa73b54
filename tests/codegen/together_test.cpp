// Kernels that are compiled as one program have the PTX that they have alone.
#include "codegen/compile/together.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/planners/planner.h"
#include "codegen/compile/compiler.h"
#include "codegen/compile/process.h"
#include "codegen/compile/ptxas.h"
#include "codegen/executable.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

/// The sources of a plan's kernels as they are executed, each once.
std::vector<std::string> sources_of(const Graph& graph, const FusionPlan& plan) {
  std::set<std::string> sources;
  for (const KernelPlan& kernel : plan.kernels) {
    const std::string cuda = to_cuda(graph, build_schedule(graph, kernel), true);
    sources.insert(cuda_prelude(cuda) + cuda);
  }
  return {sources.begin(), sources.end()};
}

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

TEST(Together, EachHasThePtxItHasAlone) {
  const auto nvrtc = find_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "NVRTC is not installed";
  const struct {
    const char *model, *planner, *device;
  } cases[] = {{"bert_layer", "auto", "h200"},           {"llama_decode_tiny", "tvm", "a100"},
               {"bert_train_fp16_tiny", "xla", "v100"},  {"layer_norm_grad", "astitch", "h200"},
               {"moe_layer", "fusionstitching", "v100"}, {"row_64x30000", "auto", "h200"}};
  for (const auto& c : cases) {
    const Graph graph = testing::dataset(c.model);
    const Device& target = device(c.device);
    std::vector<std::string> sources = sources_of(graph, make_plan(graph, target, c.planner));
    if (constexpr std::size_t kMost = 7; sources.size() > kMost) sources.resize(kMost);
    const int architecture = compile_architecture(*nvrtc, target);
    const auto made = compile_together(*nvrtc, views(sources), "k", architecture);
    ASSERT_EQ(made.size(), sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      ASSERT_TRUE(made[i]) << c.model << " kernel " << i << ":\n" << sources[i];
      EXPECT_EQ(*made[i], compile_ptx(*nvrtc, sources[i], architecture)) << c.model << " kernel " << i;
    }
  }
}

TEST(Together, PtxasSaysOfEachWhatItSaysOfItAlone) {
  const auto nvrtc = find_nvrtc();
  const std::string ptxas = find_ptxas();
  if (!nvrtc || ptxas.empty()) GTEST_SKIP() << "NVRTC or ptxas is not installed";
  const struct {
    const char *model, *planner, *device;
  } cases[] = {
      {"bert_layer", "auto", "h200"}, {"moe_layer", "astitch", "v100"}, {"layer_norm_grad", "xla", "a100"}};
  for (const auto& c : cases) {
    const Graph graph = testing::dataset(c.model);
    const Device& target = device(c.device);
    const int architecture = compile_architecture(*nvrtc, target);
    std::vector<std::string> ptx;
    for (const std::string& source : sources_of(graph, make_plan(graph, target, c.planner)))
      ptx.push_back(compile_ptx(*nvrtc, source, architecture));
    const auto uses = run_ptxas_together(ptxas, ptx, "k", architecture);
    ASSERT_EQ(uses.size(), ptx.size());
    int together = 0;
    for (std::size_t i = 0; i < ptx.size(); ++i) {
      if (!uses[i]) continue;
      ++together;
      const auto alone = run_ptxas(ptxas, ptx[i], architecture).value();
      EXPECT_EQ(uses[i]->registers, alone.registers) << c.model << " kernel " << i;
      EXPECT_EQ(uses[i]->spill_bytes, alone.spill_bytes) << c.model << " kernel " << i;
      EXPECT_EQ(uses[i]->shared_bytes, alone.shared_bytes) << c.model << " kernel " << i;
    }
    EXPECT_GE(together * 10, static_cast<int>(ptx.size()) * 9) << c.model;
  }
}

/// A kernel's PTX; `front` stands in front of its entry.
std::string small_ptx(const std::string& front, const std::string& body,
                      const std::string& target = "sm_80") {
  return ".version 8.0\n.target " + target + "\n.address_size 64\n" + front +
         ".visible .entry k(.param .u64 k_param_0)\n.maxntid 32, 1, 1\n{\n" + body + "ret;\n}\n";
}

TEST(Together, PtxasIsAskedOfTheOthersAlone) {
  const std::string shared = ".extern .shared .align 16 .b8 shared[];\n";
  PtxTogether together("k");
  EXPECT_TRUE(together.add(small_ptx(shared, "")));
  EXPECT_FALSE(together.add(small_ptx(".global .align 4 .b8 table[24] = {0};\n", "")));
  EXPECT_FALSE(together.add(small_ptx(".func f()\n{\nret;\n}\n", "")));
  EXPECT_FALSE(together.add(small_ptx("", "", "sm_90")));
  EXPECT_FALSE(together.add(small_ptx(".extern .shared .align 128 .b8 shared[];\n", "")));
  EXPECT_TRUE(together.add(small_ptx(shared, "bar.sync 0;\n")));
  EXPECT_TRUE(together.add(small_ptx("", "")));
  const std::string text = together.text();
  EXPECT_EQ(text.find(shared), text.rfind(shared));
  for (const char* entry : {"sw_entry_0(", "sw_entry_1(", "sw_entry_2("}) EXPECT_THAT(text, HasSubstr(entry));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("sw_entry_3")));

  const std::string ptxas = find_ptxas();
  if (ptxas.empty()) GTEST_SKIP() << "ptxas is not installed";
  const std::string good = small_ptx("", "");
  EXPECT_TRUE(run_ptxas_together(ptxas, {good, good}, "k", 80).at(1));
  EXPECT_FALSE(run_ptxas_together(ptxas, {good}, "k", 80).at(0)) << "one is asked of alone";
  EXPECT_FALSE(run_ptxas_together(ptxas, {good, small_ptx("", "no.such;\n"), good}, "k", 80).at(0));
}

TEST(Together, MacrosOfOneAreNotTheOthers) {
  const auto nvrtc = find_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "NVRTC is not installed";
  const std::vector<std::string> sources{
      "#define N 1\nextern \"C\" __global__ void k(int* p) { p[threadIdx.x] = N; }",
      "#define N 2\nextern \"C\" __global__ void k(int* p) { p[threadIdx.x] = N; }",
      "extern \"C\" __global__ void k(int* p, int N) { for (int i = 0; i < N; ++i) atomicAdd(p + i, N); }"};
  const auto made = compile_together(*nvrtc, views(sources), "k", 80);
  for (std::size_t i = 0; i < sources.size(); ++i)
    EXPECT_EQ(made.at(i).value(), compile_ptx(*nvrtc, sources[i], 80));
}

TEST(Together, WhatOneAloneWouldDeclareIsLeftToIt) {
  const auto nvrtc = find_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "NVRTC is not installed";
  const std::vector<std::string> sources{
      "extern \"C\" __global__ void k(int* p) { *p = 1; }",
      "static __device__ int seen;\nextern \"C\" __global__ void k(int* p) { *p = atomicAdd(&seen, 1); }",
      "static __device__ __noinline__ int f(int x) { return x * x + clock(); }\n"
      "extern \"C\" __global__ void k(int* p) { *p = f(*p); }"};
  const auto made = compile_together(*nvrtc, views(sources), "k", 80);
  EXPECT_FALSE(made.at(1));
  EXPECT_FALSE(made.at(2));
}

TEST(Together, TablesOfTheModuleAreDeclaredInEach) {
  const auto nvrtc = find_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "NVRTC is not installed";
  // NVRTC's sine of large numbers reads a table, which it writes in front of the first entry alone.
  const std::vector<std::string> sources{"extern \"C\" __global__ void k(float* p) { *p = sinf(*p); }",
                                         "extern \"C\" __global__ void k(float* p) { *p = cosf(*p) + 1; }",
                                         "extern \"C\" __global__ void k(float* p) { *p = 2; }"};
  const auto made = compile_together(*nvrtc, views(sources), "k", 80);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (made.at(i)) {
      EXPECT_EQ(*made[i], compile_ptx(*nvrtc, sources[i], 80)) << i;
    }
  EXPECT_TRUE(made.at(2));
}

TEST(Together, OneThatDoesNotCompileIsNamedByItself) {
  const auto nvrtc = find_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "NVRTC is not installed";
  const std::vector<std::string> sources{"extern \"C\" __global__ void k(int* p) { *p = 1; }",
                                         "extern \"C\" __global__ void k(int* p) { *p = wrong; }"};
  for (const auto& made : compile_together(*nvrtc, views(sources), "k", 80)) EXPECT_FALSE(made);
}

/// What the text of a program is parted by, without a compiler.
TEST(Together, PartsOfTheText) {
  const std::string head = "//\n// Generated\n//\n\n.version 9.0\n.target sm_80\n.address_size 64\n\n";
  const std::string first =
      ".visible .entry sw_entry_0(\n\t.param .u64 sw_entry_0_param_0\n)\n{\n$L__BB0_1:\n\tmov.u32 %r1, "
      "shared;\n\tret;\n\n}\n";
  const std::string second =
      ".visible .entry sw_entry_1(\n\t.param .u64 sw_entry_1_param_0\n)\n{\n\tbra.uni "
      "\t$L__BB1_1;\n$L__BB1_1:\n\tret;\n\n}\n";
  const std::vector<std::string_view> sources{"extern __shared__ __align__(4) unsigned char shared[];", ""};
  const std::string both = head + "\t// .globl\tsw_entry_0\n.extern .shared .align 16 .b8 shared[];\n\n" +
                           first + "\t// .globl\tsw_entry_1\n" + second + "\n";
  const auto parts = separated(both, sources, "k");
  ASSERT_TRUE(parts.at(0));
  ASSERT_TRUE(parts.at(1));
  EXPECT_EQ(*parts[0],
            head +
                "\t// .globl\tk\n.extern .shared .align 4 .b8 shared[];\n\n.visible .entry k(\n\t.param .u64 "
                "k_param_0\n)\n{\n$L__BB0_1:\n\tmov.u32 %r1, shared;\n\tret;\n\n}\n\n");
  EXPECT_EQ(*parts[1], head +
                           "\t// .globl\tk\n\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n\tbra.uni "
                           "\t$L__BB0_1;\n$L__BB0_1:\n\tret;\n\n}\n\n");
  // A name of another kernel, a variable of the module, shared memory that the source does not declare.
  EXPECT_FALSE(
      separated(head + "\t// .globl\tsw_entry_1\n.visible .entry sw_entry_1(\n)\n{\n\tcall sw_entry_0;\n}\n",
                sources, "k")
          .at(1));
  // A function of the module under a name of its own: nothing before it may be taken either.
  EXPECT_FALSE(separated(head +
                             "\t// .globl\tsw_entry_1\n.visible .entry sw_entry_1(\n)\n{\n\tcall f;\n}\n\t// "
                             ".globl\tf\n.visible .func f()\n{\n}\n",
                         sources, "k")
                   .at(1));
  EXPECT_FALSE(separated(head + ".global .u32 x;\n\t// .globl\tsw_entry_1\n" + second, sources, "k").at(1));
  EXPECT_FALSE(separated(head + "\t// .globl\tsw_entry_0\n.global .b8 table[2] = {1, 2};\n\n" + first +
                             "\t// .globl\tsw_entry_1\n.visible .entry sw_entry_1(\n)\n{\n\tmov.u64 %rd1, "
                             "table;\n}\n",
                         sources, "k")
                   .at(1));
  EXPECT_FALSE(separated(head + "\t// .globl\tsw_entry_1\n.visible .entry sw_entry_1(\n)\n{\n\tmov.u32 %r1, "
                                "shared;\n}\n",
                         sources, "k")
                   .at(1));
}

TEST(Together, APlanHasTheCodeOfItsKernelsAlone) {
  if (!find_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  const Graph graph = testing::dataset("bert_layer");
  const Device& target = device("a100");
  const FusionPlan plan = make_plan(graph, target, "tvm");
  CompileOptions options;
  options.compiler = "nvrtc";
  options.cache_dir = "none";
  const Executable all = compile(graph, target, plan, options);
  FusionPlan one = plan;
  for (const std::size_t k : {std::size_t{0}, plan.kernels.size() - 1}) {
    one.kernels = {plan.kernels[k]};
    EXPECT_EQ(all.kernels.at(k).ptx, compile(graph, target, one, options).kernels.at(0).ptx);
    EXPECT_GT(all.kernels.at(k).compile_ms, 0);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
