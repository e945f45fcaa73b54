// Every dataset under every planner: planned, compiled, executed in the simulator and compared with the
// reference; large ones (datasets/README.md) are only planned.
#include <gtest/gtest.h>

#include <limits>

#include "analysis/planner.h"
#include "core/evaluator.h"
#include "experiments/trial.h"

namespace stitchwork {
namespace {

class EveryDataset : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryDataset, RunsAndEqualsTheReferenceUnderEveryPlanner) {
  const Model model = load_model(GetParam());
  TrialSpec spec;
  spec.check = true;
  const std::vector<Literal> reference = evaluate(model.graph, trial_inputs(model, spec));
  int fewest = std::numeric_limits<int>::max();
  for (const char* planner : {"unfused", "xla", "astitch"}) {
    SCOPED_TRACE(planner);
    spec.planner = planner;
    const TrialResult result = run_trial(model, spec, {}, &reference);
    for (const sim::Finding& finding : result.run.findings) ADD_FAILURE() << finding.message;
    ASSERT_TRUE(result.check.has_value());
    EXPECT_TRUE(result.check->ok) << result.check->message;
    // Stitching more never makes more kernels (AStitch section 6.1.2, Table 3).
    const int kernels = result.executable.plan.counts.memory_kernels;
    EXPECT_LE(kernels, fewest);
    if (GetParam() == "bert_base" || GetParam() == "fig7") EXPECT_LT(kernels, fewest);
    fewest = kernels;
  }
}

class LargeDataset : public ::testing::TestWithParam<std::string> {};

TEST_P(LargeDataset, IsPlannedByEveryPlannerAndStitchingMakesFewestKernels) {
  const Graph graph = load_model(GetParam()).graph;
  int fewest = std::numeric_limits<int>::max();
  for (const char* planner : {"unfused", "xla", "astitch"}) {
    const FusionPlan plan = make_plan(graph, device("v100"), planner);
    EXPECT_LT(plan.counts.memory_kernels, fewest) << planner;
    fewest = plan.counts.memory_kernels;
  }
}

std::vector<std::string> dataset_names(bool large) {
  std::vector<std::string> names;
  for (const Dataset& d : datasets())
    if (d.large == large) names.push_back(d.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Datasets, EveryDataset, ::testing::ValuesIn(dataset_names(false)),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Datasets, LargeDataset, ::testing::ValuesIn(dataset_names(true)),
                         [](const auto& info) { return info.param; });

TEST(SoftmaxKernel, ReadsItsInputFromDramOnceAndWritesItsOutputOnce) {
  const Model model = load_model("softmax");
  TrialSpec spec;
  spec.planner = "astitch";
  const TrialResult result = run_trial(model, spec);
  ASSERT_EQ(result.run.kernels.size(), 1u);
  const std::uint64_t ideal = 4096 * 1024 * sizeof(float) / 32;
  const sim::Counters& counters = result.run.kernels[0].counters;
  EXPECT_EQ(counters.gld_transactions, ideal);  // kept in registers between its three passes
  EXPECT_EQ(counters.dram_read_transactions, ideal);
  EXPECT_EQ(counters.gst_transactions, ideal);
  EXPECT_EQ(counters.dram_write_transactions, ideal);
}

int occurrences(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(Fig7Kernel, LoadsParameter3AndPower1OncePerThread) {
  const Model model = load_model("fig7");
  TrialSpec spec;
  spec.planner = "astitch";
  spec.options.knobs["mapping"] = "paper";
  const TrialResult result = run_trial(model, spec);
  ASSERT_EQ(result.run.kernels.size(), 1u);
  EXPECT_EQ(result.run.kernels[0].counters.grid_barriers, 2u);
  // broadcast.2 stays with the thread across the second barrier (paper, section 3.2.2).
  const std::string& cuda = result.executable.kernels[0].cuda;
  EXPECT_EQ(occurrences(cuda, "= parameter_3["), 1);
  EXPECT_EQ(occurrences(cuda, "= power_1_scratch["), 1);
}

}  // namespace
}  // namespace stitchwork
