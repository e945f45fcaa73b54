// Arrays of a loop's state that its body updates in place: what runs write, copy and leave alone.
#include "analysis/plan/loop_state.h"

#include <gmock/gmock.h>

#include "analysis/judge/cost.h"
#include "analysis/plan/written_state.h"
#include "core/passes/in_place.h"
#include "tests/runtime/control_flow_runs.h"
#include "tests/support/fuzz.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A scan of `trips`: each leaves its row of `columns`, that which `start` says, in the state's array of
/// `rows`, which starts as `init`; the result is that of the loop `w`, and with it what `beside` names.
struct Scan {
  int trips = 5, columns = 12, rows = 6;
  std::string init = "negate(p)", start = "add(i, zero)", beside = "";
};
std::string scan(const Scan& of) {
  const auto& [trips, columns, rows, init, start, beside] = of;
  const std::string row = fmt::format("f32[{}]", columns), array = fmt::format("f32[{},{}]", rows, columns);
  const std::string state = fmt::format("(s32[], {}, {})", row, array);
  return fmt::format(
      "HloModule m\nbody {{\n  s = {0} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
      "  h = {1} get-tuple-element(s), index=1\n  all = {2} get-tuple-element(s), index=2\n"
      "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  t = {1} tanh(h)\n"
      "  row = f32[1,{3}] reshape(t)\n  zero = s32[] constant(0)\n  last = s32[] constant(4)\n"
      "  one0 = f32[1] slice(t), slice={{[0:1]}}\n  t0 = f32[] reshape(one0)\n  at = s32[] {8}\n  next = {2} "
      "dynamic-update-slice(all, row, at, zero)\n  ROOT r = {0} tuple(j, t, next)\n}}\n"
      "cond {{\n  s = {0} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
      "  n = s32[] constant({4})\n  ROOT l = pred[] compare(i, n), direction=LT\n}}\n"
      "ENTRY main {{\n  x = {1} parameter(0)\n  p = {2} parameter(1)\n  z = s32[] constant(0)\n"
      "  init = {2} {5}\n  st = {0} tuple(z, x, init)\n"
      "  w = {0} while(st), condition=cond, body=body\n  {6} = {2} get-tuple-element(w), index=2\n{7}}}\n",
      state, row, array, columns, trips, init, beside.empty() ? "ROOT d" : "d",
      beside.empty() ? "" : fmt::format("  ROOT pair = ({0}, {0}) tuple(d, {1})\n", array, beside), start);
}

const Node& loop_of(const Graph& graph) {
  const Computation& entry = graph.entry_computation();
  return *std::ranges::find(entry.nodes, Op::kWhile, &Node::op);
}

TEST(LoopState, RandomStacksComputeWhatTheGraphMeans) {
  SKIP_WITHOUT_COMPILER();
  testing::ControlFlowRuns runs;
  std::ptrdiff_t updated = 0;
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    const std::string text = testing::random_control_flow(seed, false, true);
    EXPECT_THAT(runs.problems(text, seed, false), IsEmpty()) << "seed " << seed << "\n" << text;
    const Graph graph = testing::graph_of(text);
    for (const ComputationId body : run_by_control(graph))
      updated +=
          std::ranges::count(entered(graph, body).entry_computation().nodes, Op::kUpdateInPlace, &Node::op);
  }
  EXPECT_GT(runs.launches, runs.runs);
  EXPECT_GT(updated, 24);
}

TEST(LoopState, ATripWritesItsRowAlone) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  for (const int columns : {4096, 4097}) {  // in vectors, and not
    const Graph graph = testing::graph_of(scan({.trips = 16, .columns = columns, .rows = 16}));
    for (const char* planner : testing::kControlFlowPlanners) {
      const FusionPlan plan = make_plan(graph, target, planner);
      const Executable executable = compile(graph, target, plan, testing::compile_options());
      const RunResult run = run_simulated(graph, target, executable, generate_inputs(graph, 0));
      ASSERT_EQ(run.computations.size(), 1u);
      double written = 0;
      for (const KernelRun& kernel : run.computations[0].kernels)
        written += 32.0 * static_cast<double>(kernel.counters.dram_write_transactions);
      EXPECT_LT(written, 3.0 * 4 * columns) << planner << ": its row, the next state, the counter";
    }
  }
}

TEST(LoopState, ATripsTimeDoesNotGrowWithTheArray) {
  const Device& target = device("a100");
  for (const char* planner : testing::kControlFlowPlanners) {
    const auto body = [&](int rows) {
      const Graph graph = testing::graph_of(scan({.trips = 16, .columns = 4096, .rows = rows}));
      return make_plan(graph, target, planner).computations.at(0).plan.predicted_us;
    };
    EXPECT_EQ(body(16), body(1024)) << planner;
  }
}

TEST(LoopState, WhatOthersReadIsCopied) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("a100");
  const auto copied = [&](const Scan& of) {
    const std::string text = scan(of);
    const Graph graph = testing::graph_of(text);
    const FusionPlan plan = make_plan(graph, target, "astitch");
    const auto loop = std::ranges::find(plan.steps, StepKind::kControl, &PlanStep::kind);
    EXPECT_EQ(copied_state_bytes(graph, plan, *loop) > 0, copied_state_us(graph, target, plan, *loop) > 0);
    testing::ControlFlowRuns runs;
    EXPECT_THAT(runs.problems(text, 0, true), IsEmpty()) << text;
    return copied_state(graph, plan, *loop);
  };
  // Its kernel's buffer, which nothing reads behind the loop; then a parameter, and a result.
  EXPECT_THAT(copied({}), IsEmpty());
  EXPECT_THAT(copied({.init = "bitcast(p)"}), ElementsAre(2));
  EXPECT_THAT(copied({.beside = "init"}), ElementsAre(2));
  // Of which nothing is left behind five trips.
  EXPECT_THAT(copied({.rows = 5, .init = "bitcast(p)"}), IsEmpty());
  EXPECT_THAT(copied({.rows = 5, .beside = "init"}), IsEmpty());
}

TEST(LoopState, WhatTripsWriteFromEndToEnd) {
  const auto written = [](const Scan& of) {
    const Graph graph = testing::graph_of(scan(of));
    return wholly_written(graph, loop_of(graph));
  };
  EXPECT_THAT(written({.rows = 5}), ElementsAre(2));
  EXPECT_THAT(written({.rows = 6}), IsEmpty());
  EXPECT_THAT(written({.rows = 4}), ElementsAre(2)) << "the last start is clamped";
  EXPECT_THAT(written({.rows = 5, .start = "subtract(last, i)"}), ElementsAre(2)) << "backwards";
  EXPECT_THAT(written({.rows = 5, .start = "multiply(i, one)"}), ElementsAre(2));
  EXPECT_THAT(written({.rows = 5, .start = "multiply(i, last)"}), IsEmpty());
  EXPECT_THAT(written({.rows = 5, .start = "and(i, one)"}), IsEmpty());
  EXPECT_THAT(written({.rows = 5, .start = "convert(t0)"}), IsEmpty()) << "what data says";
}

TEST(LoopState, CopiesAreInTheTimeOfTheLoop) {
  const Device& target = device("a100");
  const auto with = [&](const char* init) {
    const Graph graph = testing::graph_of(scan({.columns = 1 << 20, .init = init}));
    const FusionPlan plan = make_plan(graph, target, "unfused");
    EXPECT_DOUBLE_EQ(plan_cost(graph, target, plan).predicted_us, plan.predicted_us);
    return std::ranges::find(plan.steps, StepKind::kControl, &PlanStep::kind)->predicted_us;
  };
  EXPECT_NEAR(with("bitcast(p)") - with("negate(p)"),
              transfer_us(target, 2.0 * 6 * 4 * (1 << 20)) + target.launch_gap_us, 1e-6);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
