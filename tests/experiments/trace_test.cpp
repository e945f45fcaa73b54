#include "experiments/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(Trace, SlicesAreTheStepsInOrderAndLastAsLongAsTheRun) {
  SKIP_WITHOUT_COMPILER();
  const Model model = load_model("attention_tiny");
  TrialSpec spec;
  spec.planner = "xla";
  const TrialResult result = run_trial(model, spec);
  const auto trace = trace_json(model, spec, result);
  const FusionPlan& plan = result.executable.plan;
  double end = 0;
  std::size_t step = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["ts"].get<double>(), end);
    end = event["ts"].get<double>() + event["dur"].get<double>();
    EXPECT_EQ(event["cat"], name(plan.steps[step].kind));
    EXPECT_EQ(event["name"].get<std::string>().rfind(plan.steps[step].id, 0), 0u);
    EXPECT_EQ(event["args"]["method"], plan.steps[step].kind == StepKind::kKernel ? "simulated" : "modelled");
    EXPECT_EQ(event["args"].contains("counters"), plan.steps[step].kind == StepKind::kKernel);
    ++step;
  }
  EXPECT_EQ(step, plan.steps.size());
  EXPECT_NEAR(end, result.run.total_us, 1e-6 * end);
}

TEST(Trace, ALoopIsOneSlice) {
  SKIP_WITHOUT_COMPILER();
  Model model;
  model.graph = testing::graph_of(R"(HloModule loop
body { p = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  y = f32[8] tanh(x)  ROOT t = (s32[], f32[8]) tuple(j, y) }
more { p = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)  ROOT c = pred[] compare(i, n), direction=LT }
ENTRY main { zero = s32[] constant(0)  x = f32[8] parameter(0)
  t = (s32[], f32[8]) tuple(zero, x)
  w = (s32[], f32[8]) while(t), condition=more, body=body
  ROOT y = f32[8] get-tuple-element(w), index=1 }
)");
  const TrialSpec spec;
  const auto trace = trace_json(model, spec, run_trial(model, spec));
  int loops = 0;
  for (const auto& event : trace["traceEvents"]) loops += event.value("cat", "") == "control";
  EXPECT_EQ(loops, 1);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
