// Lines of PTX and lines of the source they are of.
#include "codegen/compile/lines.h"

#include <gmock/gmock.h>

#include <sstream>

#include "codegen/compile/process.h"
#include "core/base/error.h"
#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

TEST(SourceLines, AnInlinedCallIsOfTheLineThatCalls) {
  // As NVRTC writes it: the file's number is told at the end, calls with inlined_at.
  const std::string ptx =
      ".version 9.0\n"
      ".visible .entry k(\n"
      "\t.param .u64 p\n"
      ")\n"
      "{\n"
      "\t.reg .f32 \t%f<4>;\n"
      "\tmov.u32 %r1, %tid.x;\n"
      "\t.loc\t1 2 3\n"
      "\tld.global.f32 \t%f1, [%rd5];\n"
      "\t.loc\t2 40 3, function_name $L__info_string0, inlined_at 1 4 5\n"
      "\tfma.rn.f32 \t%f2, %f1, %f1, 0f3F800000;\n"
      "\t.loc\t2 41 3\n"
      "$L__BB0_2:\n"
      "\tadd.f32 \t%f3, %f2, 0f40000000;\n"
      "\t.loc\t1 0 7\n"
      "\tsub.f32 \t%f3, %f2, 0f40000000;\n"
      "\t.loc\t1 7 1\n"
      "\tret;\n"
      "}\n"
      "\t.file\t1 \"/somewhere/kernel.cu\"\n"
      "\t.file\t2 \"/somewhere/prelude.cu\"\n";
  EXPECT_THAT(source_lines(ptx),
              ::testing::ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 4, 0, 0, 4, 0, 4, 0, 7, 0, 0, 0));
}

TEST(SourceLines, PtxWithoutLineInformationIsOfNone) {
  for (const int line : source_lines(".visible .entry k(\n)\n{\n\tret;\n}\n")) EXPECT_EQ(line, 0);
  EXPECT_TRUE(source_lines("").empty());
}

TEST(SourceLines, EveryCompilerTellsWhichLineLoadsAndWhichStores) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(R"(HloModule m
ENTRY main {
  x = f32[300] parameter(0)
  a = f32[300] exponential(x)
  ROOT b = f32[300] tanh(a)
}
)");
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  const std::string cuda = to_cuda(graph, build_schedule(graph, plan.kernels.at(0)), false);
  std::vector<std::string> text(1);
  for (std::istringstream in(cuda); std::getline(in, text.emplace_back());) {
  }
  const TemporaryFolder folder;
  for (const std::string& compiler : testing::installed_compilers()) {
    CompileOptions options;
    options.compiler = compiler;
    options.cache_dir = folder.path().string();
    const std::string ptx = compile_with_lines(graph, device("v100"), plan.kernels.at(0), options);
    const std::vector<int> lines = source_lines(ptx);
    std::istringstream in(ptx);
    std::string line;
    int loads = 0, stores = 0;
    for (std::size_t i = 0; std::getline(in, line); ++i) {
      ASSERT_LT(i, lines.size());
      ASSERT_LT(lines[i], static_cast<int>(text.size()));
      if (line.find("ld.global") == std::string::npos && line.find("st.global") == std::string::npos)
        continue;
      ASSERT_GT(lines[i], 0) << compiler << ": " << line;
      const auto at = static_cast<std::size_t>(lines[i]);
      const bool load = line.find("ld.global") != std::string::npos;
      (load ? loads : stores) += 1;
      // clang puts the store of a vector where the vector's life ends: at the brace behind it.
      const std::string wanted = load ? "&x[" : "&b[";
      const bool brace = !load && text[at].find_first_not_of(' ') == text[at].find('}');
      EXPECT_THAT(text[at - (brace ? 1 : 0)], HasSubstr(wanted)) << compiler << ": " << line;
    }
    EXPECT_GT(loads, 0) << compiler;
    EXPECT_GT(stores, 0) << compiler;
  }
}

TEST(SourceLines, KernelsThatAreExecutedAreCompiledWithout) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(
      "HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n  ROOT y = f32[8] "
      "tanh(x)\n}\n");
  CompileOptions options;
  options.cache_dir = "none";
  const Executable executable =
      compile(graph, device("v100"), make_plan(graph, device("v100"), "xla"), options);
  EXPECT_EQ(executable.kernels.at(0).ptx.find(".loc"), std::string::npos);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
