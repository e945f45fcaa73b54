// Every dataset under every planner: planned, compiled, executed in the simulator and compared with the
// reference; large ones (datasets/README.md) are only planned.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "analysis/planner.h"
#include "core/evaluator.h"
#include "experiments/trial.h"

namespace stitchwork {
namespace {

/// Stitching more never makes more kernels (AStitch section 6.1.2, Table 3): unfused, xla, astitch, each no
/// more than the one before.
void expect_fewer(const std::map<std::string, int>& kernels, bool strictly) {
  for (const auto& [more, fewer] : {std::pair{"unfused", "xla"}, std::pair{"xla", "astitch"}}) {
    EXPECT_LE(kernels.at(fewer), kernels.at(more)) << fewer << " against " << more;
    if (strictly) {
      EXPECT_LT(kernels.at(fewer), kernels.at(more)) << fewer << " against " << more;
    }
  }
}

class EveryDataset : public ::testing::TestWithParam<std::string> {};

/// Compiling is what takes time: of graphs with many kernels the three planners that differ most are run.
bool runs_under(std::string_view planner, const Graph& graph) {
  constexpr std::size_t kManyOps = 1000;
  return graph.entry_computation().nodes.size() <= kManyOps || planner == "unfused" || planner == "xla" ||
         planner == "astitch";
}

TEST_P(EveryDataset, RunsAndEqualsTheReferenceUnderEveryPlanner) {
  const Model model = load_model(GetParam());
  TrialSpec spec;
  spec.check = true;
  const std::vector<Literal> reference = evaluate(model.graph, trial_inputs(model, spec));
  std::map<std::string, int> kernels;
  for (const Planner& planner : planners_for(model.graph)) {
    SCOPED_TRACE(planner.name);
    spec.planner = planner.name;
    if (!runs_under(planner.name, model.graph)) {
      make_plan(model.graph, device("v100"), spec.planner);
      continue;
    }
    const TrialResult result = run_trial(model, spec, {}, &reference);
    for (const sim::Finding& finding : result.run.findings) ADD_FAILURE() << finding.message;
    ASSERT_TRUE(result.check.has_value());
    EXPECT_TRUE(result.check->ok) << result.check->message;
    kernels[std::string(planner.name)] = result.executable.plan.counts.memory_kernels;
  }
  expect_fewer(kernels, GetParam() == "bert_base" || GetParam() == "fig7");
}

class LargeDataset : public ::testing::TestWithParam<std::string> {};

TEST_P(LargeDataset, IsPlannedByEveryPlannerAndStitchingMakesFewestKernels) {
  const Graph graph = load_model(GetParam()).graph;
  std::map<std::string, int> kernels;
  for (const Planner& planner : planners_for(graph)) {
    SCOPED_TRACE(planner.name);
    const FusionPlan plan = make_plan(graph, device("v100"), std::string(planner.name));
    kernels[std::string(planner.name)] = plan.counts.memory_kernels;
  }
  expect_fewer(kernels, true);
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
