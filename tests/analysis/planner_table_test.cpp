#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/judge/cost.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using ::testing::HasSubstr;

template <typename F>
Error error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing thrown";
  return Error("");
}

TEST(PlannerTable, UnknownNamesAreAnsweredWithTheKnownOnes) {
  const Error unknown = error_of([] { planner("xlaa"); });
  EXPECT_THAT(unknown.message(), HasSubstr("'xlaa'"));
  EXPECT_THAT(unknown.hint(), HasSubstr("unfused, eager, xla, xla-today, xla+atm, tvm"));
  EXPECT_THROW(device("v1000"), Error);
}

TEST(PlannerTable, KnobsAreChecked) {
  const Graph graph = dataset("fig7");
  const auto with = [&](const char* planner, const char* knob, const char* value) {
    return error_of([&] { make_plan(graph, device("v100"), planner, {.knobs = {{knob, value}}}); });
  };
  EXPECT_THAT(with("astitch", "speed", "on").hint(), HasSubstr("dominant_merging"));
  EXPECT_THAT(with("astitch", "dominant_merging", "perhaps").hint(), HasSubstr("on, off"));
  EXPECT_THAT(with("xla", "dominant_merging", "off").message(), HasSubstr("planner xla has no knob"));
}

TEST(PlannerTable, PlansNameThePlannerAndTheKnobsThatDiffer) {
  const Graph graph = dataset("fig7");
  const FusionPlan plan =
      make_plan(graph, device("v100"), "astitch", {.knobs = {{"dominant_merging", "off"}}});
  EXPECT_EQ(plan.planner, "astitch");
  EXPECT_EQ(plan.options.at("dominant_merging"), "off");
  EXPECT_EQ(plan.options.at("mapping"), "tuned");
  EXPECT_FALSE(plan.options.contains("proactive_locality"));
}

TEST(PlannerTable, DecisionsAreRecordedOnlyWhenAskedFor) {
  const Graph graph = dataset("fig7");
  for (const Planner& row : planners_for(graph)) {
    EXPECT_TRUE(make_plan(graph, device("v100"), row.name).decisions.empty()) << row.name;
    EXPECT_FALSE(make_plan(graph, device("v100"), row.name, {.record_decisions = true}).decisions.empty())
        << row.name;
  }
}

TEST(PlannerTable, PlanningIsDeterministic) {
  const Graph graph = dataset("bert_layer");
  for (const Planner& row : planners_for(graph))
    EXPECT_EQ(to_text(graph, make_plan(graph, device("v100"), row.name)),
              to_text(graph, make_plan(graph, device("v100"), row.name)));
}

class EveryDataset : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryDataset, KernelCountsNeverRiseFromUnfusedToXlaToAstitch) {
  const Graph graph = dataset(GetParam());
  int before = 1 << 30;
  for (const char* planner : {"unfused", "xla", "astitch"}) {
    const FusionPlan plan = make_plan(graph, device("v100"), planner);
    EXPECT_LE(plan.counts.memory_kernels, before) << planner;
    EXPECT_GT(plan.predicted_us, 0);
    before = plan.counts.memory_kernels;
  }
}

INSTANTIATE_TEST_SUITE_P(Datasets, EveryDataset,
                         ::testing::Values("fig7", "fig5", "softmax", "layer_norm", "gelu", "gelu_tanh",
                                           "row_750000x32", "row_64x30000", "column_sum", "bert_layer",
                                           "bert_tiny"));

TEST(PlannerTable, EveryDeviceCanPlanFig7) {
  const Graph graph = dataset("fig7");
  for (const Device& d : devices())
    for (const Planner& row : planners_for(graph))
      EXPECT_NO_THROW(make_plan(graph, d, row.name)) << d.id << " " << row.name;
}

}  // namespace TEST_FILE
}  // namespace stitchwork
