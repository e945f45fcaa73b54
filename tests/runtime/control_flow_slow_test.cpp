// 300 random nests of loops, branches and calls, by every planner, on two devices and in two backends.
#include <gmock/gmock.h>

#include <iostream>

#include "tests/runtime/control_flow_runs.h"
#include "tests/support/fuzz.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(RandomControlFlow, NestsOfLoopsBranchesAndCallsComputeWhatTheGraphMeans) {
  SKIP_WITHOUT_COMPILER();
  // Each planner's device changes from graph to graph: what is compiled takes most of the time.
  constexpr bool kEveryDevice = false;
  testing::ControlFlowRuns runs;
  const testing::FuzzRange range = testing::fuzz_range(100, 200);
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    const std::string text = testing::random_control_flow(seed);
    EXPECT_THAT(runs.problems(text, seed, kEveryDevice), ::testing::IsEmpty()) << "seed " << seed << "\n"
                                                                               << text;
  }
  std::cout << fmt::format("{} graphs, {} runs in the simulator, {} launches, {} reads for initialisation\n",
                           range.end - range.first, runs.runs, runs.launches, runs.init_reads);
  EXPECT_GT(runs.launches, runs.runs);
  EXPECT_GT(runs.init_reads, 0);
}

TEST(RandomControlFlow, LoopsThatStackSlicesComputeWhatTheGraphMeans) {
  SKIP_WITHOUT_COMPILER();
  testing::ControlFlowRuns runs;
  const testing::FuzzRange range = testing::fuzz_range(1000, 100);
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    const std::string text = testing::random_control_flow(seed, false, true);
    EXPECT_THAT(runs.problems(text, seed, false), ::testing::IsEmpty()) << "seed " << seed << "\n" << text;
  }
  EXPECT_GT(runs.launches, runs.runs);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
