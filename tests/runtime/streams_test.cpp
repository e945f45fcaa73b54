// Steps on streams: on a GPU that is the simulator and draws the order of what nothing orders, and in
// shuffled runs of the simulator.
#include <gmock/gmock.h>

#include "analysis/plan/plan_memory.h"
#include "analysis/plan/step_order.h"
#include "tests/runtime/fake_cublas.h"
#include "tests/runtime/fake_cudnn.h"
#include "tests/runtime/on_fake_gpu.h"
#include "tests/support/astra_graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::IsEmpty;

CompileOptions without_ptxas() {
  CompileOptions options;
  options.ptxas = false;
  return options;
}

/// A graph with its plan of several streams, compiled once.
struct OnStreams {
  Graph graph;
  FusionPlan plan;
  Executable executable;
  std::vector<Literal> inputs;
};

OnStreams compiled(Graph graph, FusionPlan plan) {
  Executable executable = compile(graph, device("v100"), plan, without_ptxas());
  std::vector<Literal> inputs = generate_inputs(graph, 0);
  return {std::move(graph), std::move(plan), std::move(executable), std::move(inputs)};
}

/// Random graphs whose plans have several streams and waits between them.
std::vector<OnStreams> random_plans(int count, const char* planner) {
  std::vector<OnStreams> found;
  for (std::uint32_t seed = 0; static_cast<int>(found.size()) < count; ++seed) {
    EXPECT_LT(seed, 40u);
    Graph graph = testing::random_dots(seed, 25);
    FusionPlan plan = make_plan(graph, device("v100"), planner);
    const auto waits = [](const PlanStep& step) { return !step.waits.empty(); };
    if (uses_streams(plan) && std::ranges::any_of(plan.steps, waits))
      found.push_back(compiled(std::move(graph), std::move(plan)));
  }
  return found;
}

RunResult run_on_fake(testing::FakeGpu& gpu, const OnStreams& o, int repeats = 1) {
  testing::cu::CudaBackend backend(fake_driver(gpu), gpu.device,
                                   {.repeats = repeats, .cache = sim::CacheMode::kWarm},
                                   {testing::fake_blas, testing::fake_dnn});
  return run_on(backend, o.graph, gpu.device, o.executable, o.inputs);
}

void expect_equal(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].bytes, b[i].bytes) << i;
}

TEST(Streams, AGpuRunsThemBesideEachOther) {
  SKIP_WITHOUT_COMPILER();
  for (const OnStreams& o : random_plans(3, "astra-fks")) {
    Judge judge(o.graph, o.inputs);
    std::vector<Literal> first;
    for (std::uint32_t seed = 0; seed < 6; ++seed) {
      SCOPED_TRACE(seed);
      testing::FakeGpu gpu{.device = device("v100")};
      gpu.streams.seed = seed;
      const RunResult run = run_on_fake(gpu, o);
      EXPECT_TRUE(judge.check(run.outputs).ok);
      EXPECT_GT(gpu.calls["stream_wait_event"], 0);
      EXPECT_EQ(gpu.calls["stream_create"], 2);
      EXPECT_EQ(gpu.calls["blas_create"], 2) << "a handle a stream";
      EXPECT_THAT(gpu.live, IsEmpty());
      ASSERT_TRUE(run.repeated);
      EXPECT_TRUE(run.repeated->graph_us) << "captured with all its streams";
      EXPECT_EQ(run.total_us, run.repeated->stream_us);
      if (first.empty()) first = run.outputs;
      expect_equal(run.outputs, first);
    }
  }
}

TEST(Streams, AWaitThatIsDroppedIsSeenOnTheGpu) {
  SKIP_WITHOUT_COMPILER();
  int dropped = 0, seen = 0;
  for (const OnStreams& o : random_plans(3, "astra-fks")) {
    Judge judge(o.graph, o.inputs);
    const Graph& planned = planned_graph(o.graph, o.plan);
    for (std::size_t s = 0; s < o.plan.steps.size() && dropped < 8; ++s) {
      if (o.plan.steps[s].waits.empty()) continue;
      OnStreams mutant = o;
      mutant.executable.plan.steps[s].waits.clear();
      const auto open =
          unordered_dependences(mutant.executable.plan, step_dependences(planned, mutant.executable.plan));
      if (std::ranges::all_of(open, [](const auto& list) { return list.empty(); })) continue;
      ++dropped;
      bool wrong = false;
      for (std::uint32_t seed = 0; seed < 6 && !wrong; ++seed) {
        testing::FakeGpu gpu{.device = device("v100")};
        gpu.streams.seed = seed;
        wrong = !judge.check(run_on_fake(gpu, mutant).outputs).ok;
      }
      seen += wrong ? 1 : 0;
    }
  }
  EXPECT_GT(dropped, 5);
  EXPECT_GT(seen, dropped / 2);
}

TEST(Streams, ShuffledStepsComputeTheSame) {
  SKIP_WITHOUT_COMPILER();
  int moved = 0;
  for (const char* planner : {"astra-fks", "astra+astitch"})
    for (const OnStreams& o : random_plans(2, planner)) {
      RunOptions options;
      const RunResult plain = run_simulated(o.graph, device("v100"), o.executable, o.inputs, options);
      for (std::uint32_t seed = 1; seed <= 5; ++seed) {
        SCOPED_TRACE(seed);
        options.limits.shuffle = seed;
        options.sanitize = sim::parse_sanitizers("mem,init");
        const RunResult run = run_simulated(o.graph, device("v100"), o.executable, o.inputs, options);
        EXPECT_THAT(run.findings, IsEmpty());
        expect_equal(run.outputs, plain.outputs);
        EXPECT_EQ(run.total_us, plain.total_us);
        const std::vector<int> order = shuffled_steps(o.plan, seed);
        moved += std::ranges::is_sorted(order) ? 0 : 1;
      }
    }
  EXPECT_GT(moved, 10);
}

TEST(Streams, AGpuIsNotAskedToShuffle) {
  SKIP_WITHOUT_COMPILER();
  const OnStreams o = random_plans(1, "astra-fks").front();
  testing::FakeGpu gpu{.device = device("v100")};
  testing::cu::CudaBackend backend(fake_driver(gpu), gpu.device, {}, {testing::fake_blas, testing::fake_dnn});
  RunLimits limits;
  limits.shuffle = 1;
  EXPECT_THAT(
      testing::refusal([&] { run_on(backend, o.graph, gpu.device, o.executable, o.inputs, {}, limits); }),
      ::testing::HasSubstr("shuffled in simulated runs alone"));
}

/// Steps 0 and 3 on stream 0, 1 and 2 on stream 1; 3 waits for 1, and 4, on stream 0, for 2.
FusionPlan crossing() {
  FusionPlan plan;
  for (const int stream : {0, 1, 1, 0, 0}) plan.steps.push_back({.stream = stream});
  plan.steps[3].waits = {1};
  plan.steps[4].waits = {2};
  return plan;
}

TEST(Streams, BuffersLiveUntilNoStepBesideCanBegin) {
  // Whatever is behind a step in the plan and knows it to have ended may take its memory.
  EXPECT_EQ(last_steps_beside(crossing()), (std::vector<std::size_t>{2, 1, 3, 3, 4}));
  FusionPlan one = crossing();
  for (PlanStep& step : one.steps) step.stream = 0;
  EXPECT_EQ(last_steps_beside(one), (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(Streams, OrdersAreThoseThatStreamsAndWaitsAllow) {
  const FusionPlan plan = crossing();
  std::set<std::vector<int>> orders;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const std::vector<int> order = shuffled_steps(plan, seed);
    ASSERT_EQ(order.size(), plan.steps.size());
    const auto at = [&](int step) { return std::ranges::find(order, step) - order.begin(); };
    for (const auto& [before, behind] :
         std::vector<std::pair<int, int>>{{0, 3}, {3, 4}, {1, 2}, {1, 3}, {2, 4}})
      EXPECT_LT(at(before), at(behind)) << before << " " << behind;
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 5u);  // of 0, 1, 2, 3 with 0 before 3, 1 before 2 and 3; 4 is last
  EXPECT_THAT(orders, Contains(std::vector<int>{0, 1, 2, 3, 4}));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
