#include "experiments/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string document(const std::string& rest) {
  return R"({"schema":"stitchwork.experiment/1","name":"e","workloads":["softmax"],)" + rest + "}";
}

std::string refusal(const std::string& text) {
  try {
    parse_experiment(text, "e.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ExperimentSpec, TrialsAreTheProductOfItsLists) {
  const ExperimentSpec spec = parse_experiment(
      R"({"schema":"stitchwork.experiment/1","name":"e","workloads":["a","b"],
          "variants":[{"planner":"xla"},{"name":"ours","planner":"astitch","set":{"mapping":"paper"}}],
          "devices":["v100","h200"],"seeds":[1,2,3],"backend":"model","timeout_s":5})",
      "e.json");
  const std::vector<Cell> all = cells(spec);
  ASSERT_EQ(all.size(), 24u);
  EXPECT_EQ(to_text(spec, all[0]), "a, xla, v100-sxm2, seed 1");
  EXPECT_EQ(to_text(spec, all[23]), "b, ours, h200, seed 3");
  const TrialSpec trial = trial_of(spec, all[23]);
  EXPECT_EQ(trial.variant, "ours");
  EXPECT_EQ(trial.planner, "astitch");
  EXPECT_EQ(trial.options.knobs.at("mapping"), "paper");
  EXPECT_EQ(trial.seed, 3u);
  EXPECT_EQ(trial.backend, "model");
}

TEST(ExperimentSpec, AllDatasetsAreThoseThatAreNoSmallVariants) {
  const ExperimentSpec spec = parse_experiment(
      R"({"schema":"stitchwork.experiment/1","name":"e","workloads":"datasets","variants":[{"planner":"xla"}]})",
      "e.json");
  std::size_t tiny = 0;
  for (const Dataset& dataset : datasets()) tiny += dataset.name.ends_with("_tiny");
  EXPECT_EQ(spec.workloads.size(), datasets().size() - tiny);
  EXPECT_EQ(std::ranges::count(spec.workloads, "fig7"), 1);
}

TEST(ExperimentSpec, WhatIsLeftOutHasDefaults) {
  const ExperimentSpec spec = parse_experiment(document(R"("variants":[{"planner":"xla"}])"), "e.json");
  EXPECT_EQ(spec.variants[0].name, "xla");
  EXPECT_EQ(spec.devices, std::vector<std::string>{"v100-sxm2"});
  EXPECT_EQ(spec.seeds, std::vector<std::uint64_t>{0});
  EXPECT_EQ(spec.backend, "sim");
}

TEST(ExperimentSpec, HowKernelsAreRunIsSetForAllAndForAVariant) {
  const ExperimentSpec spec = parse_experiment(
      document(
          R"("backend":"cuda","tf32":true,"repeats":50,"convolutions":"patches","variants":[{"planner":"xla"},
                  {"name":"fast","planner":"xla","fast_math":true,"dependent_launch":true,"tf32":false}])"),
      "e.json");
  const TrialSpec plain = trial_of(spec, {0, 0, 0, 0}), fast = trial_of(spec, {0, 1, 0, 0});
  EXPECT_TRUE(plain.options.tf32);
  EXPECT_EQ(plain.repeats, 50);
  EXPECT_EQ(plain.convolutions, "patches");
  EXPECT_FALSE(plain.compile.fast_math || plain.compile.dependent_launch);
  EXPECT_TRUE(fast.compile.fast_math && fast.compile.dependent_launch);
  EXPECT_FALSE(fast.options.tf32);
  EXPECT_EQ(fast.repeats, 50);
}

TEST(ExperimentSpec, EveryMistakeNamesFileAndPlace) {
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"xla","convolutions":"fft"}])")),
              AllOf(HasSubstr("variants[0].convolutions"), HasSubstr("known: auto, cudnn, patches")));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"xla"}],"repeats":-1)")), HasSubstr("repeats"));
  EXPECT_THAT(refusal("{"), HasSubstr("e.json:1:"));
  EXPECT_THAT(refusal(R"({"schema":"stitchwork.plan/1"})"), HasSubstr("'stitchwork.plan/1'"));
  EXPECT_THAT(refusal(document(R"("variants":[])")), HasSubstr("e.json: variants: the list is empty"));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"nnfusion"}])")),
              AllOf(HasSubstr("e.json: variants[0]"), HasSubstr("no planner is called 'nnfusion'")));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"astitch","set":{"mapping":"best"}}])")),
              AllOf(HasSubstr("variants[0]"), HasSubstr("known: paper, tuned")));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"xla"},{"planner":"xla"}])")),
              HasSubstr("two variants are called \"xla\""));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"xla"}],"devices":["gtx9"])")),
              HasSubstr("devices[0]"));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"xla"}],"seeds":[-1])")), HasSubstr("seeds[0]"));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"xla"}],"backend":"fpga")")),
              HasSubstr("known: model, sim, cuda"));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"xla"}],"timeout_s":0)")), HasSubstr("timeout_s"));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"xla"}],"backend":"model","mode":"sampled")")),
              HasSubstr("use backend sim"));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"xla"}],"mode":"sampled","check":true)")),
              HasSubstr("use mode exact"));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"xla"}],"backend":"model","check":true)")),
              HasSubstr("computes nothing to check"));
  EXPECT_THAT(refusal(document(R"("variants":[{"planner":"xla"}],"workload":["a"])")),
              AllOf(HasSubstr("unknown key 'workload'"), HasSubstr("workloads")));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
