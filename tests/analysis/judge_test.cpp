// Who is asked what kernels are worth: the estimate, or whoever a planner's caller hands in.
#include "analysis/judge/judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "analysis/forms/search.h"
#include "analysis/json/plan_json.h"
#include "analysis/judge/cost.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "tests/support/astitch_passes.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using astitch::Searched;

/// Says what a function says.
class Told final : public PlanJudge {
 public:
  using Says = std::function<KernelWorth(const KernelPlan&)>;
  explicit Told(Says says) : says_(std::move(says)) {}

  Evidence evidence() const override { return Evidence::kMeasured; }
  double resolution() const override { return 0.01; }
  KernelWorth kernel(const Graph&, const Device&, const KernelPlan& kernel) const override {
    ++asked_;
    return says_(kernel);
  }
  int asked() const { return asked_; }

 private:
  Says says_;
  mutable int asked_ = 0;
};

TEST(PlanJudge, TheEstimateOfAPlanIsItsCost) {
  for (const char* model : {"softmax_tiny", "bert_tiny", "dien_tiny", "attention_tiny"}) {
    const Graph graph = testing::dataset(model);
    for (const char* planner : {"unfused", "astitch"}) {
      const FusionPlan plan = make_plan(graph, device("v100"), planner);
      EXPECT_DOUBLE_EQ(modelled_judge().plan_us(graph, device("v100"), plan),
                       plan_cost(graph, device("v100"), plan).predicted_us)
          << model << " " << planner;
    }
  }
}

TEST(PlanJudge, APlanTakesWhatItsJudgeSaysOfKernelsAndTheGapsBetweenThem) {
  const Graph graph = testing::dataset("softmax_tiny");
  const Device& target = device("v100");
  const FusionPlan plan = make_plan(graph, target, "unfused");
  ASSERT_TRUE(std::all_of(plan.steps.begin(), plan.steps.end(),
                          [](const PlanStep& s) { return s.kind == StepKind::kKernel; }));
  const Told ten([](const KernelPlan&) { return KernelWorth{10, 0, 0}; });
  const auto steps = static_cast<double>(plan.steps.size());
  EXPECT_DOUBLE_EQ(ten.plan_us(graph, target, plan), 10 * steps + target.launch_gap_us * (steps - 1));
}

Searched searched(const Graph& graph, const char* target, const PlanJudge& judge) {
  const astitch::Nodes nodes = astitch::node_facts(graph);
  astitch::Options options;
  options.tuned = true;
  options.judge = &judge;
  Recorder silent(false);
  const astitch::Scope scope = astitch::find_scope(nodes, options.max_ops, silent);
  return astitch::search(nodes, scope.stitch_ops.at(0), device(target), options);
}

/// By a judge for whom small blocks are all that counts a kernel with smaller ones is taken than by its
/// opposite.
TEST(Search, TakesWhatItsJudgeTakes) {
  const Graph graph = testing::dataset("layer_norm_grad");
  const Told few([](const KernelPlan& k) { return KernelWorth{10.0 + k.launch.block, 0, 0}; });
  const Told many([](const KernelPlan& k) { return KernelWorth{5000.0 - k.launch.block, 0, 0}; });
  const Searched by_few = searched(graph, "h200", few), by_many = searched(graph, "h200", many);
  EXPECT_GT(few.asked(), 1);
  EXPECT_LT(by_few.best().kernels.at(0).launch.block, by_many.best().kernels.at(0).launch.block);
}

/// Forms of equal time by the first judge are told apart by the second, which is asked of no more than it may
/// be.
TEST(InTwoStages, TheSecondIsAskedOfTheBestOfTheFirstAlone) {
  const Graph graph = testing::dataset("layer_norm_grad");
  const Told alike([](const KernelPlan&) { return KernelWorth{10, 0, 0}; });
  const Told large([](const KernelPlan& k) { return KernelWorth{5000.0 - k.launch.block, 0, 0}; });
  const auto both = in_two_stages(alike, large, 3);
  const Searched found = searched(graph, "h200", *both);
  EXPECT_GE(large.asked(), 2);
  EXPECT_LE(large.asked(), 3);
  EXPECT_EQ(both->evidence(), Evidence::kMeasured);
  const Told other([](const KernelPlan& k) {
    return KernelWorth{k.launch.block >= 512 ? 10.0 : 20.0, 0, 0};
  });
  const Told never(
      [](const KernelPlan&) -> KernelWorth { throw Error("asked of a form that is far behind"); });
  std::vector<KernelPlan> fast(1), slow(1);
  fast[0].launch.block = 512;
  slow[0].launch.block = 128;
  const std::vector<PlanJudge::Kernels> forms{slow, fast};
  const std::vector<Worth> worths{other.worth(graph, device("h200"), slow),
                                  other.worth(graph, device("h200"), fast)};
  EXPECT_EQ(in_two_stages(other, never, 4)->best(graph, device("h200"), worths, forms), 1u);
}

TEST(PlanOptions, AJudgeDecidesOfKernelsOfAPlan) {
  const Graph graph = testing::dataset("layer_norm_grad");
  const Told small([](const KernelPlan& k) { return KernelWorth{10.0 + k.launch.block, 0, 0}; });
  for (const char* planner : {"astitch", "auto"}) {
    PlanOptions options;
    const FusionPlan by_estimate = make_plan(graph, device("h200"), planner, options);
    options.judge = &modelled_judge();
    EXPECT_EQ(plan_to_json(graph, make_plan(graph, device("h200"), planner, options)),
              plan_to_json(graph, by_estimate));
    options.judge = &small;
    EXPECT_NE(plan_to_json(graph, make_plan(graph, device("h200"), planner, options)),
              plan_to_json(graph, by_estimate))
        << planner;
  }
}

TEST(WorthCache, AsksOnceForEachKey) {
  WorthCache cache;
  int made = 0;
  const auto make = [&] { return KernelWorth{static_cast<double>(++made), 0, 0}; };
  EXPECT_EQ(cache.get("a", make).us, 1);
  EXPECT_EQ(cache.get("b", make).us, 2);
  EXPECT_EQ(cache.get("a", make).us, 1);
  EXPECT_EQ(cache.size(), 2u);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
