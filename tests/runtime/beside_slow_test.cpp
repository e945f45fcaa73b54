// Arrays as blocks of matrices: right at drawn sizes in the simulator and on a GPU's libraries, and noticed
// where one is moved. STITCHWORK_FUZZ_FIRST and STITCHWORK_FUZZ_SEEDS choose others (tests/support/fuzz.h).
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

#include "analysis/verify/verify.h"
#include "tests/runtime/fake_cublas.h"
#include "tests/runtime/fake_cudnn.h"
#include "tests/runtime/on_fake_gpu.h"
#include "tests/support/astra_graphs.h"
#include "tests/support/fuzz.h"

namespace stitchwork {
namespace TEST_FILE {

CompileOptions without_ptxas() {
  CompileOptions options;
  options.ptxas = false;
  return options;
}

/// A random graph of products with arrays that lie beside each other, and its plan; none where it has none.
struct Planned {
  Graph graph;
  FusionPlan plan;
};

std::optional<Planned> planned(std::uint32_t seed) {
  std::mt19937 random(seed);
  const Graph graph = testing::random_dots(seed, 10 + static_cast<int>(random() % 30));
  PlanOptions options;
  constexpr std::array kElementwise = {"xla", "astitch", "auto", "unfused"};
  options.knobs["elementwise"] = kElementwise[random() % kElementwise.size()];
  FusionPlan plan = make_plan(graph, device("v100"), "astra", options);
  const auto places = [](const rewriting::Rewrite& step) { return step.rule == "concat-in-place"; };
  if (plan.rewritten == nullptr || std::ranges::none_of(plan.rewritten->steps, places)) return std::nullopt;
  return Planned{graph, std::move(plan)};
}

TEST(BesideOfRandomGraphs, IsRightInTheSimulatorAndByLibraries) {
  SKIP_WITHOUT_COMPILER();
  const testing::FuzzRange range = testing::fuzz_range(500, 60);
  int placed = 0, calls = 0;
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    const std::optional<Planned> of = planned(seed);
    if (!of) continue;
    ++placed;
    SCOPED_TRACE(seed);
    const Executable executable = compile(of->graph, device("v100"), of->plan, without_ptxas());
    const std::vector<Literal> inputs = generate_inputs(of->graph, seed);
    Judge judge(of->graph, inputs);
    RunOptions running;
    running.sanitize = sim::parse_sanitizers("mem,race,sync,init");
    const RunResult run = run_simulated(of->graph, device("v100"), executable, inputs, running);
    ASSERT_THAT(run.findings, ::testing::IsEmpty());
    const CheckResult check = judge.check(run.outputs);
    ASSERT_TRUE(check.ok) << check.message;
    testing::FakeGpu gpu{.device = device("v100")};
    testing::cu::CudaBackend backend(fake_driver(gpu), gpu.device,
                                     {.repeats = 2, .cache = sim::CacheMode::kWarm},
                                     {testing::fake_blas, testing::fake_dnn});
    const RunResult on_gpu = run_on(backend, of->graph, gpu.device, executable, inputs);
    const CheckResult by_libraries = judge.check(on_gpu.outputs);
    ASSERT_TRUE(by_libraries.ok) << by_libraries.message;
    calls += static_cast<int>(on_gpu.library_calls.size());
  }
  if (range.chosen) return;
  EXPECT_GT(placed, 10);
  EXPECT_GT(calls, placed);
}

TEST(BesideOfRandomGraphs, AnArrayThatIsMovedIsNoticed) {
  SKIP_WITHOUT_COMPILER();
  const testing::FuzzRange range = testing::fuzz_range(900, 80);
  int mutants = 0, verified = 0, checked = 0;
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    std::optional<Planned> of = planned(seed);
    if (!of) continue;
    std::mt19937 random(seed);
    rewriting::RewrittenGraph moved = *of->plan.rewritten;
    Computation& computation = moved.graph.computations[static_cast<std::size_t>(moved.graph.entry)];
    std::vector<NodeId> blocks;
    for (const Node& node : computation.nodes)
      if (node.attrs.placed != nullptr) blocks.push_back(node.id);
    Node& node = computation.nodes[static_cast<std::size_t>(blocks[random() % blocks.size()])];
    PlacedArray at = *node.attrs.placed;
    const std::int64_t pitch = at.matrix.dims.back(), rows = node.shape.elements_count() / at.cols,
                       last = at.matrix.elements_count() - (rows - 1) * pitch - at.cols;
    const std::int64_t step = random() % 2 == 0 ? 1 : pitch;  // a column, or a row
    at.offset += at.offset + step <= last ? step : at.offset >= step ? -step : 0;
    if (at.offset == node.attrs.placed->offset) continue;
    node.attrs.placed = std::make_shared<const PlacedArray>(at);
    SCOPED_TRACE(fmt::format("seed {}: {} moved", seed, node.name));
    of->plan.rewritten = std::make_shared<const rewriting::RewrittenGraph>(std::move(moved));
    ++mutants;
    const std::vector<Verdict> problems = verify(of->graph, device("v100"), of->plan);
    verified += std::ranges::any_of(problems, [](const Verdict& v) { return v.rule == "verify.place"; });
    const std::vector<Literal> inputs = generate_inputs(of->graph, seed);
    const Executable executable = compile(of->graph, device("v100"), of->plan, without_ptxas());
    RunOptions running;
    running.sanitize = sim::parse_sanitizers("mem,race,sync,init");
    const RunResult run = run_simulated(of->graph, device("v100"), executable, inputs, running);
    const bool noticed = !run.findings.empty() || !Judge(of->graph, inputs).check(run.outputs).ok;
    checked += noticed ? 1 : 0;
    EXPECT_TRUE(noticed || !problems.empty());
  }
  fmt::print("{} mutants: {} by verify, {} by running\n", mutants, verified, checked);
  EXPECT_EQ(verified, mutants);
  if (range.chosen) return;
  EXPECT_GT(mutants, 10);
  EXPECT_GT(checked, mutants * 9 / 10);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
