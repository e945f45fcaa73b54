#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/planners/planner.h"
#include "tests/support/graphs.h"
#include "tests/support/mapping_fields.h"
#include "tests/support/paper.h"
#include "tests/support/planner_settings.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;

FusionPlan plan(const Graph& graph, const char* planner, std::map<std::string, std::string> knobs = {}) {
  return make_plan(graph, device("v100"), planner, testing::paper(planner, {std::move(knobs), {}, true}));
}

/// The plan's text without the planner's name and the options it records.
std::string body(const Graph& graph, FusionPlan plan) {
  plan.options.clear();
  const std::string text = to_text(graph, plan);
  return text.substr(text.find('\n'));
}

class EveryKnob : public ::testing::TestWithParam<const char*> {};

// make_plan itself checks what it made with verify.
TEST_P(EveryKnob, OfEveryPlannerGivesAValidPlanAtEachValue) {
  const Graph graph = dataset(GetParam());
  for (const Planner& row : planners_for(graph))
    for (const std::string_view name : row.knobs) {
      if (testing::is_anothers_knob(row, name)) continue;
      const auto knob =
          std::find_if(knobs().begin(), knobs().end(), [&](const Knob& k) { return k.name == name; });
      ASSERT_NE(knob, knobs().end()) << name;
      for (const std::string_view value : knob->values) {
        const PlanOptions options =
            testing::with_weights_of(graph, {{{std::string(name), std::string(value)}}, {}, false});
        EXPECT_NO_THROW(make_plan(graph, device("v100"), row.name, options))
            << row.name << " " << name << "=" << value;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Datasets, EveryKnob,
                         ::testing::Values("fig5", "fig7", "softmax", "layer_norm", "gelu", "column_sum",
                                           "row_64x30000", "bert_tiny"));

TEST(Presets, AreOtherPlannersWithTheseKnobs) {
  for (const char* model : {"fig7", "softmax", "layer_norm"}) {
    const Graph graph = dataset(model);
    EXPECT_EQ(body(graph, plan(graph, "xla+atm")),
              body(graph, plan(graph, "astitch", {{"exhaustive_stitching", "off"}})));
    EXPECT_EQ(body(graph, plan(graph, "astitch-no-dominant-merging")),
              body(graph, plan(graph, "astitch", {{"dominant_merging", "off"}})));
    EXPECT_EQ(body(graph, plan(graph, "astitch")),
              body(graph, plan(graph, "xla+atm", {{"exhaustive_stitching", "on"}})));
  }
}

TEST(Presets, PlansRecordTheRowsNameAndOnlyWhatWasSetOtherwise) {
  const Graph graph = dataset("fig7");
  const FusionPlan preset = plan(graph, "xla+atm");
  EXPECT_EQ(preset.planner, "xla+atm");
  EXPECT_FALSE(preset.options.contains("exhaustive_stitching"));
  EXPECT_EQ(plan(graph, "xla+atm", {{"exhaustive_stitching", "on"}}).options.at("exhaustive_stitching"),
            "on");
}

TEST(AdaptiveMappingAlone, FormsXlasKernels) {
  for (const char* model : {"fig7", "softmax", "layer_norm", "bert_layer"}) {
    const Graph graph = dataset(model);
    const FusionPlan xla = plan(graph, "xla"), atm = plan(graph, "xla+atm");
    ASSERT_EQ(xla.kernels.size(), atm.kernels.size()) << model;
    for (std::size_t k = 0; k < xla.kernels.size(); ++k) {
      EXPECT_EQ(xla.kernels[k].ops, atm.kernels[k].ops) << model;
      EXPECT_EQ(atm.kernels[k].launch.grid_barriers, 0) << model;
    }
  }
}

TEST(AdaptiveMappingAlone, PacksShortRowsAndSplitsLongOnesByAtomics) {
  const KernelPlan packed = plan(dataset("row_750000x32"), "xla+atm").kernels.at(0);
  EXPECT_EQ(packed.launch.block, 1024);
  EXPECT_EQ(packed.launch.grid, 160);  // Figure 8-a
  const FusionPlan split = plan(dataset("row_64x30000"), "xla+atm");
  const testing::MappingFields mapping = split.kernels.at(0).groups.at(0);
  EXPECT_EQ(mapping.kind, testing::MappingKind::kRowSplit);
  EXPECT_EQ(mapping.blocks, 128);  // Figure 8-b
  EXPECT_EQ(mapping.combine, testing::Combine::kAtomic);
  EXPECT_EQ(split.counts.memsets, 1);
}

TEST(AdaptiveMappingAlone, LeavesReductionsWholeThatAtomicsCannotAddUp) {
  const Graph graph = testing::graph_of(
      "p = f32[64,30000] parameter(0)\n z = f32[] constant(-inf)\n"
      "ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=max");
  const FusionPlan p = plan(graph, "xla+atm");
  EXPECT_EQ(segments(p.kernels.at(0).groups.at(0).mapping), 1);
  EXPECT_TRUE(std::any_of(p.decisions.begin(), p.decisions.end(),
                          [](const Decision& d) { return d.verdict.rule == "astitch.split-needs-atomics"; }));
}

TEST(DataReuse, OffLeavesNoRegionalValue) {
  for (const char* model : {"fig7", "softmax", "layer_norm", "bert_layer"}) {
    const Graph graph = dataset(model);
    const FusionPlan on = plan(graph, "astitch"), off = plan(graph, "astitch", {{"data_reuse", "off"}});
    int barriers_on = 0, barriers_off = 0;
    for (const KernelPlan& kernel : on.kernels) barriers_on += kernel.launch.grid_barriers;
    for (const KernelPlan& kernel : off.kernels) {
      barriers_off += kernel.launch.grid_barriers;
      for (const auto& [op, scheme] : kernel.schemes) EXPECT_NE(scheme, Scheme::kRegional) << model;
    }
    EXPECT_GE(barriers_off, barriers_on) << model;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
