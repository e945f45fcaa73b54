// Plans of Astra run: joined products between kernels, steps on streams.
#include <gmock/gmock.h>

#include "analysis/plan/step_order.h"
#include "tests/codegen/harness.h"
#include "tests/support/astra_graphs.h"

namespace stitchwork {
namespace TEST_FILE {

void expect_correct_by(const Graph& graph, const char* row) {
  SCOPED_TRACE(row);
  testing::expect_correct(graph, make_plan(graph, device("v100"), row));
}

TEST(Astra, TheWorkedExamplesRun) {
  SKIP_WITHOUT_COMPILER();
  for (const Graph& graph :
       {testing::astra_lstm_cell(), testing::astra_ladder(), testing::astra_ladder(true),
        testing::astra_ladder(false, true), testing::astra_conflict(), testing::astra_one_tensor()})
    for (const char* row : {"astra", "astra+astitch"}) expect_correct_by(graph, row);
}

TEST(Astra, RandomGraphsOfProductsRun) {
  SKIP_WITHOUT_COMPILER();
  for (std::uint32_t seed = 100; seed < 103; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = testing::random_dots(seed, 20);
    expect_correct_by(graph, seed % 2 == 0 ? "astra" : "astra+astitch");
  }
}

TEST(Astra, ASimulatedTotalIsTheEndOfTheSchedule) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::astra_chains();
  const FusionPlan plan = make_plan(graph, device("v100"), "astra");
  ASSERT_TRUE(uses_streams(plan));
  CompileOptions options;
  options.ptxas = false;
  const Executable executable = compile(graph, device("v100"), plan, options);
  const RunResult run =
      run_simulated(graph, device("v100"), executable, generate_inputs(graph, 0), RunOptions{});
  double alone = 0;
  for (const StepRun& step : run.steps) alone += step.time_us;
  EXPECT_LT(run.total_us, 0.7 * alone);
  EXPECT_NEAR(run.total_us, plan.predicted_us, 1e-6);  // library calls alone, whose times are modelled
}

}  // namespace TEST_FILE
}  // namespace stitchwork
