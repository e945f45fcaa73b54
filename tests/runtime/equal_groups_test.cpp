// Random graphs of equal groups, whose kernels share bodies: the whole road, under all sanitizers.
#include "tests/support/equal_groups.h"

#include <gtest/gtest.h>

#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "codegen/compile/compiler.h"
#include "codegen/compile/process.h"
#include "codegen/executable.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "runtime/run.h"
#include "tests/support/fuzz.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(EqualGroups, KernelsThatShareBodiesComputeWhatTheGraphMeansWithoutAFinding) {
  if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "neither NVRTC nor clang is installed";
  const TemporaryFolder kernels;
  CompileOptions compile_options;
  compile_options.cache_dir = kernels.path().string();
  compile_options.ptxas = false;
  RunOptions run_options;
  run_options.sanitize = {.race = true, .init = true};
  std::size_t tables = 0, runs = 0;
  // Many SMs: a lane each; few: groups share blocks, blocks take several tasks.
  const Device devices[] = {device("v100"), testing::few_sms("v100", 2)};
  const testing::FuzzRange range = testing::fuzz_range(0, 12);
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    const std::string text = testing::random_equal_groups_hlo(seed);
    SCOPED_TRACE(text);
    const Graph graph = canonicalize(parse_hlo(text, "equal.hlo"));
    testing::Reference reference(graph, testing::fuzz_inputs(graph, seed));
    for (const Device& where : devices)
      for (const char* mapping : {"paper", "tuned"}) {
        const FusionPlan plan = make_plan(graph, where, "astitch", {.knobs = {{"mapping", mapping}}});
        for (const Verdict& problem : verify(graph, where, plan)) ADD_FAILURE() << problem.why;
        const Executable executable = compile(graph, where, plan, compile_options);
        for (const CompiledKernel& kernel : executable.kernels) tables += kernel.table.loops.size();
        const RunResult run = run_simulated(graph, where, executable, reference.inputs(), run_options);
        for (const sim::Finding& finding : run.findings)
          ADD_FAILURE() << name(finding.kind) << " in " << finding.kernel << ": " << finding.message;
        if (run.findings.empty()) {
          EXPECT_EQ(reference.problem(run.outputs), "") << where.sms << " SMs, " << mapping;
        }
        ++runs;
        if (::testing::Test::HasFailure()) return;
      }
  }
  EXPECT_GT(2 * tables, runs) << "few kernels share bodies: the graphs hardly try them";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
