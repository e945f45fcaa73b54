// Explorations against trying everything, and every configuration of the worked examples run.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "analysis/judge/step_times.h"
#include "analysis/planners/astra/minibatches.h"
#include "analysis/planners/astra/stream_trials.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"
#include "experiments/explore.h"
#include "experiments/minibatch_runner.h"
#include "tests/codegen/harness.h"
#include "tests/experiments/sample_trial.h"
#include "tests/runtime/fake_cublas.h"
#include "tests/runtime/fake_cuda.h"
#include "tests/support/astra_bindings.h"
#include "tests/support/astra_graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::model_of;

constexpr const char* kDevice = "p100-sxm2";

std::vector<double> predicted(const FusionPlan& plan) {
  std::vector<double> us;
  for (const PlanStep& step : plan.steps) us.push_back(step.predicted_us);
  return us;
}

/// The least over all products joined in all ways, operands computed beside each other or copied there, and
/// the steps of each plan on streams in all ways; and likewise on one stream. Nothing where there are more
/// than `most` configurations.
struct Least {
  double one_stream = std::numeric_limits<double>::infinity();
  double streams = one_stream;
};
std::optional<Least> by_trying_everything(const Model& model, const Device& target, double most) {
  Least least;
  double tried = 0;
  for (const char* views : {"on", "off"}) {
    PlanOptions options;
    options.knobs["views"] = views;
    astra::MiniBatches minibatches(model.graph, target, "astra-f", options, predicted);
    const astra::TreeNode& tree = minibatches.tree({});
    if (astra::configurations(tree) > most) return std::nullopt;
    for (const astra::Bindings& products : testing::everything(tree)) {
      least.one_stream = std::min(least.one_stream, minibatches.run(products).at("strategy"));
      const FusionPlan plan = minibatches.plan(products);
      const Graph& graph = planned_graph(model.graph, plan);
      const astra::StreamTrials streams(graph, target, plan, 2);
      tried += astra::configurations(streams.tree());
      if (tried > most) return std::nullopt;
      const auto kernels = step_kernels(graph, target, plan, evaluations(graph.entry_computation(), plan));
      for (const astra::Bindings& epochs : testing::everything(streams.tree()))
        least.streams = std::min(least.streams, last_end_us(streams.spans(streams.dealt(epochs), kernels)));
    }
  }
  return least;
}

/// Products are explored on one stream, groups apart, and epochs one after the other, then again: what that
/// loses against trying everything.
TEST(ExploreEverything, PlansOfSmallGraphsAreMostlyWithinFivePercent) {
  constexpr int kGraphs = 500;
  constexpr double kMost = 4096;
  const Device& target = device(kDevice);
  int compared = 0, within = 0, equal = 0, equal_on_one = 0;
  double worst_on_one = 1;
  std::string others;
  for (std::uint32_t seed = 0; compared < kGraphs; ++seed) {
    ASSERT_LT(seed, 5000u);
    const Model model = model_of(testing::random_dots(seed, 4 + seed % 5));
    const std::optional<Least> least = by_trying_everything(model, target, kMost);
    if (!least) continue;
    PlanOptions options;
    options.knobs["gemm_kernels"] = "off";
    const double found = make_plan(model.graph, target, "astra-fks", options).predicted_us;
    const double one = make_plan(model.graph, target, "astra-f", options).predicted_us;
    EXPECT_GE(found, least->streams - 1e-9) << seed;
    EXPECT_LE(found, one + 1e-9) << seed;
    ++compared;
    equal_on_one += one <= least->one_stream + 1e-9 ? 1 : 0;
    worst_on_one = std::max(worst_on_one, one / least->one_stream);
    within += found <= 1.05 * least->streams ? 1 : 0;
    equal += found <= least->streams + 1e-9 ? 1 : 0;
    if (found > 1.05 * least->streams) others += fmt::format(" {}: {:.3f}", seed, found / least->streams);
  }
  RecordProperty("within_5_percent", within);
  RecordProperty("equal", equal);
  RecordProperty("equal_on_one_stream", equal_on_one);
  RecordProperty("worst_on_one_stream", fmt::format("{:.3f}", worst_on_one));
  RecordProperty("others", others);
  // Groups that share a kernel influence each other, which exploring them apart does not know.
  EXPECT_GE(equal_on_one, compared * 90 / 100);
  EXPECT_LE(worst_on_one, 1.1);
  EXPECT_GE(within, compared * 95 / 100) << others;
}

/// All there are, or as many of them, evenly.
std::vector<astra::Bindings> instances(const astra::TreeNode& tree, std::size_t most) {
  std::vector<astra::Bindings> all = testing::everything(tree);
  if (all.size() <= most) return all;
  std::vector<astra::Bindings> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * all.size() / most]);
  return some;
}

/// Every way to join the products of the worked examples, with blocks in place and copied, by every kernel in
/// turn and with the steps on streams in every way, gives the model's results, in the simulator under all
/// sanitizers and on a GPU that is the simulator.
TEST(ExploreEverything, EveryConfigurationOfTheWorkedExamplesComputesTheModel) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{.device = device("v100")};
  int run = 0;
  for (const Graph& graph :
       {testing::astra_lstm_cell(), testing::astra_ladder(), testing::astra_ladder(true),
        testing::astra_conflict(), testing::astra_one_tensor(), testing::astra_chains(3)})
    for (const char* views : {"on", "off"}) {
      const Model model = model_of(graph);
      SCOPED_TRACE(model.graph.name + " views=" + views);
      TrialSpec trial;
      trial.planner = "astra";
      trial.options.knobs = {{"views", views}, {"gemm_kernels", "off"}};
      trial.sanitize = sim::parse_sanitizers("mem,race,sync,init");
      const std::vector<Literal> inputs = generate_inputs(model.graph, 1);
      Judge judge(model.graph, inputs);
      TrialSpec on_gpu = trial;
      on_gpu.backend = "cuda";
      on_gpu.repeats = 1;
      MiniBatchRunner simulated(model, trial);
      MiniBatchRunner measured(model, on_gpu, testing::fake_driver(gpu), {testing::fake_blas, {}});
      const auto check = [&](const FusionPlan& plan) {
        for (MiniBatchRunner* runner : {&simulated, &measured}) {
          const RunResult result = runner->run(plan, inputs);
          const CheckResult right = judge.check(result.outputs);
          EXPECT_TRUE(right.ok) << right.message;
        }
        ++run;
      };
      astra::MiniBatches minibatches(model.graph, gpu.device, "astra", trial.options, predicted);
      const std::vector<TiledProduct>& kernels = tiled_products();
      std::size_t turn = 0;
      for (const astra::Bindings& products : testing::everything(minibatches.tree({}))) {
        FusionPlan plan = minibatches.plan(products);
        check(plan);
        for (PlanStep& step : plan.steps)
          if (step.kind == StepKind::kLibrary) step.variant = name(kernels[turn++ % kernels.size()]);
        check(plan);
        const Graph& planned = planned_graph(model.graph, plan);
        const astra::StreamTrials streams(planned, gpu.device, plan, 2);
        for (const astra::Bindings& epochs : instances(streams.tree(), 12)) {
          FusionPlan dealt = plan;
          astra::reorder(dealt, streams.dealt(epochs));
          check(dealt);
        }
      }
    }
  RecordProperty("configurations", run);
  EXPECT_GT(run, 200);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
