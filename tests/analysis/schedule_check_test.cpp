// A schedule that is right passes; of one that is not, the fault is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "analysis/planners/planner.h"
#include "analysis/schedule/check.h"
#include "tests/support/fuzz.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Schedule schedule_of(const Graph& graph, const char* planner = "astitch", const PlanOptions& options = {}) {
  return build_schedule(graph, make_plan(graph, device("v100"), planner, options).kernels.at(0));
}

/// The first problem after a change; "" if it is not found.
std::string found_after(const Graph& graph, Schedule schedule, const std::function<void(Schedule&)>& change) {
  EXPECT_THAT(schedule_problems(graph, schedule), IsEmpty());
  change(schedule);
  const std::vector<std::string> problems = schedule_problems(graph, schedule);
  return problems.empty() ? "" : problems.front();
}

TEST(ScheduleCheck, EveryPlannersSchedulesPass) {
  for (const char* dataset : {"fig7", "softmax_block", "layer_norm_grad", "mlp_training", "adam_tiny"})
    for (const char* planner : {"unfused", "xla", "tvm", "astitch", "auto"})
      for (const char* target : {"v100", "h200"}) {
        const Graph graph = testing::dataset(dataset);
        for (const KernelPlan& kernel : make_plan(graph, device(target), planner).kernels)
          EXPECT_THAT(schedule_problems(graph, build_schedule(graph, kernel)), IsEmpty())
              << dataset << " " << planner << " " << target << " " << kernel.name;
      }
}

TEST(ScheduleCheck, ValuesFromNowhereAreFound) {
  const Graph graph = testing::dataset("fig7");
  const Schedule right = schedule_of(graph);
  const auto of_step = [](Schedule& s, std::size_t phase, std::size_t step) -> Step& {
    return s.phases.at(phase).loops.at(0).steps.at(step);
  };
  EXPECT_THAT(found_after(graph, right, [&](Schedule& s) { of_step(s, 0, 0).roots[0].row_result = -1; }),
              HasSubstr("a register of the row"));
  EXPECT_THAT(found_after(graph, right, [&](Schedule& s) { std::swap(s.phases[0], s.phases[1]); }),
              HasSubstr("scratch"));
  EXPECT_THAT(found_after(graph, right, [&](Schedule& s) { s.phases.at(0).loops.at(0).steps.pop_back(); }),
              HasSubstr("reads power.1 from scratch"));
  EXPECT_THAT(found_after(graph, right,
                          [&](Schedule& s) {
                            for (Phase& phase : s.phases)
                              for (TaskLoop& loop : phase.loops)
                                for (Step& step : loop.steps)
                                  for (Value& value : step.values) value.kept = -1;
                          }),
              HasSubstr("from registers"));
}

/// Over random plans: whatever shared memory two steps meet in, taking the barrier between them away is
/// found, and so is every value whose writer is taken away.
TEST(ScheduleCheck, FaultsInRandomSchedulesAreFound) {
  int barriers = 0, writers = 0;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const Graph graph = testing::graph_of(testing::random_hlo(seed));
    for (const char* planner : {"astitch", "auto"})
      for (const KernelPlan& kernel : make_plan(graph, device("a100"), planner).kernels) {
        const Schedule right = build_schedule(graph, kernel);
        ASSERT_THAT(schedule_problems(graph, right), IsEmpty()) << seed;
        for (std::size_t p = 0; p < right.phases.size(); ++p)
          for (std::size_t l = 0; l < right.phases[p].loops.size(); ++l) {
            const TaskLoop& loop = right.phases[p].loops[l];
            const bool several = !loop.steps.empty() && loop.steps.back().stage > loop.steps.front().stage;
            const bool shares = std::any_of(loop.steps.begin(), loop.steps.end(), [&](const Step& step) {
              return std::any_of(step.order.begin(), step.order.end(), [&](int v) {
                const int b = step.values[static_cast<std::size_t>(v)].buffer;
                return b >= 0 && right.buffers[static_cast<std::size_t>(b)].space == MemorySpace::kShared &&
                       !right.buffers[static_cast<std::size_t>(b)].tile;
              });
            });
            if (several && shares) {
              ++barriers;
              EXPECT_THAT(found_after(graph, right,
                                      [&](Schedule& s) {
                                        for (Step& step : s.phases[p].loops[l].steps) step.stage = 0;
                                      }),
                          HasSubstr("no barrier"))
                  << "seed " << seed << " " << planner << " " << kernel.name;
            }
            for (std::size_t step = 0; step < loop.steps.size(); ++step)
              for (std::size_t root = 0; root < loop.steps[step].roots.size(); ++root)
                for (const Target& target : loop.steps[step].roots[root].targets) {
                  const Buffer& buffer = right.buffers[static_cast<std::size_t>(target.buffer)];
                  if (buffer.space != MemorySpace::kShared || buffer.tile) continue;
                  ++writers;
                  EXPECT_THAT(found_after(graph, right,
                                          [&](Schedule& s) {
                                            s.phases[p].loops[l].steps[step].roots[root].targets.clear();
                                          }),
                              HasSubstr("where no step before it put it"))
                      << "seed " << seed << " " << planner << " " << kernel.name;
                }
          }
      }
  }
  EXPECT_GE(barriers, 10);
  EXPECT_GE(writers, 10);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
