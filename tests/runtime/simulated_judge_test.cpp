// The simulator as a judge of kernels and plans.
#include "runtime/simulated_judge.h"

#include <gtest/gtest.h>

#include "analysis/plan/assemble.h"
#include "analysis/planners/planner.h"
#include "runtime/run.h"
#include "tests/codegen/judged.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

CompileOptions compiling() {
  CompileOptions options;
  options.ptxas = false;
  return options;
}

TEST(SimulatedJudge, SaysOfKernelsWhatARunOfThePlanSays) {
  for (const char* model : {"softmax_tiny", "layer_norm_grad_tiny"}) {
    const Graph graph = testing::dataset(model);
    const Device& target = device("v100");
    const FusionPlan plan = make_plan(graph, target, "astitch");
    const SimulatedJudge judge(compiling());
    RunOptions running;
    running.sampled = true;
    const RunResult run = run_simulated(graph, target, compile(graph, target, plan, compiling()),
                                        testing::fillers(graph), running);
    double us = 0;
    for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
      const KernelWorth worth = judge.kernel(graph, target, plan.kernels[k]);
      EXPECT_DOUBLE_EQ(worth.us, run.kernels.at(k).time_us) << model << " " << plan.kernels[k].id;
      EXPECT_GT(worth.l2_sectors, 0);
      us += worth.us;
    }
    EXPECT_EQ(judge.evidence(), Evidence::kSimulated);
    ASSERT_EQ(plan.kernels.size(), plan.steps.size());
    EXPECT_DOUBLE_EQ(judge.plan_us(graph, target, plan),
                     us + target.launch_gap_us * static_cast<double>(plan.steps.size() - 1));
  }
}

TEST(SimulatedJudge, SimulatesKernelsThatAreAlikeOnce) {
  const Graph graph = testing::dataset("bert_tiny");
  const FusionPlan plan = make_plan(graph, device("v100"), "unfused");
  const SimulatedJudge judge(compiling());
  judge.plan_us(graph, device("v100"), plan);
  EXPECT_GT(judge.simulated(), 1u);
  EXPECT_LT(judge.simulated(), plan.kernels.size());
  const std::size_t before = judge.simulated();
  judge.plan_us(graph, device("v100"), plan);
  EXPECT_EQ(judge.simulated(), before);
}

/// Of all forms that are completed none is faster in the simulator than the one taken, but for the judge's
/// resolution.
TEST(SimulatedJudge, APlanByItIsNoSlowerThanByTheEstimate) {
  const Graph graph = testing::dataset("layer_norm_grad_tiny");
  const SimulatedJudge judge(compiling());
  const auto both = in_two_stages(modelled_judge(), judge, 4);
  const auto us = [&](const PlanJudge* by) {
    PlanOptions options;
    options.judge = by;
    return judge.plan_us(graph, device("v100"), make_plan(graph, device("v100"), "astitch", options));
  };
  const double by_estimate = us(nullptr);
  EXPECT_LE(us(&judge), by_estimate * (1 + judge.resolution()));
  EXPECT_LE(us(both.get()), by_estimate * (1 + judge.resolution()));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
