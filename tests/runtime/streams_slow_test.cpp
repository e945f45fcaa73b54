// Random training steps under every row of Astra: right, and the same bits in any order that streams allow.
// STITCHWORK_FUZZ_FIRST and STITCHWORK_FUZZ_SEEDS choose others (tests/support/fuzz.h).
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <random>

#include "analysis/plan/step_order.h"
#include "tests/runtime/on_fake_gpu.h"
#include "tests/support/astra_graphs.h"
#include "tests/support/fuzz.h"

namespace stitchwork {
namespace TEST_FILE {

/// A row of Astra and values of its knobs.
std::pair<std::string, PlanOptions> drawn(std::mt19937& random) {
  constexpr std::array kRows = {"astra-f", "astra-fk", "astra-fks", "astra", "astra+astitch"};
  const std::string row = kRows[random() % kRows.size()];
  PlanOptions options;
  for (const std::string_view name : planner(row).knobs) {
    if (random() % 3 != 0) continue;
    const auto knob = std::ranges::find(knobs(), name, &Knob::name);
    options.knobs[std::string(name)] = knob->values[random() % knob->values.size()];
  }
  return {row, options};
}

TEST(StreamsOfRandomGraphs, AreRightInAnyOrderThatTheyAllow) {
  SKIP_WITHOUT_COMPILER();
  const testing::FuzzRange range = testing::fuzz_range(0, 24);
  int streams = 0, moved = 0;
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    std::mt19937 random(seed);
    const Graph graph = testing::random_dots(seed, 8 + static_cast<int>(random() % 30));
    const auto [row, options] = drawn(random);
    SCOPED_TRACE(fmt::format("seed {}, {} {}", seed, row, fmt::join(options.knobs, " ")));
    FusionPlan plan = make_plan(graph, device("v100"), row, options);  // which verifies it
    const Executable executable = compile(graph, device("v100"), plan, {.ptxas = false});
    const std::vector<Literal> inputs = generate_inputs(graph, seed);
    RunOptions running;
    const RunResult plain = run_simulated(graph, device("v100"), executable, inputs, running);
    const CheckResult check = Judge(graph, inputs).check(plain.outputs);
    ASSERT_TRUE(check.ok) << check.message;
    if (!uses_streams(executable.plan)) continue;
    ++streams;
    for (std::uint32_t order = 1; order <= 5; ++order) {
      running.limits.shuffle = order;
      running.sanitize = sim::parse_sanitizers("mem,init");
      const RunResult run = run_simulated(graph, device("v100"), executable, inputs, running);
      ASSERT_THAT(run.findings, ::testing::IsEmpty()) << order;
      ASSERT_EQ(run.outputs.size(), plain.outputs.size());
      for (std::size_t i = 0; i < plain.outputs.size(); ++i)
        ASSERT_EQ(run.outputs[i].bytes, plain.outputs[i].bytes) << order << " output " << i;
      moved += std::ranges::is_sorted(shuffled_steps(executable.plan, order)) ? 0 : 1;
    }
  }
  if (range.chosen) return;
  EXPECT_GT(streams, 5);
  EXPECT_GT(moved, 20);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
