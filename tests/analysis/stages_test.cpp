#include "analysis/schedule/stages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "analysis/plan/assemble.h"
#include "analysis/planners/planner.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(Stages, FirstReadsAreTheLeastStagesOfThoseThatRead) {
  for (const char* model : {"fig7", "layer_norm_grad_tiny", "attention_tiny"}) {
    const Graph graph = testing::dataset(model);
    const Computation& computation = graph.entry_computation();
    const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
    for (const KernelPlan& kernel : plan.kernels)
      for (int level = 0; level <= kernel.launch.grid_barriers; ++level) {
        Stages stages(computation, kernel, level);
        std::vector<NodeId> made;
        for (const NodeId op : materialised(kernel))
          if (kernel.levels.at(op) == level) made.push_back(op);
        const auto first = stages.first_reads(made);
        for (const Node& on : computation.nodes) {
          int least = std::numeric_limits<int>::max();
          for (const NodeId op : made)
            if (stages.reads(op, on.id)) least = std::min(least, stages.of(op));
          const auto found = first.find(on.id);
          EXPECT_EQ(found == first.end() ? std::numeric_limits<int>::max() : found->second, least)
              << model << " level " << level << " " << on.name;
        }
      }
  }
}

/// One concatenation of `n` computed slices.
Graph join_of_slices(int n) {
  std::string body = fmt::format("p = f32[{},64] parameter(0)\n", n), pieces;
  for (int i = 0; i < n; ++i) {
    body += fmt::format(
        "s{0} = f32[1,64] slice(p), slice={{[{0}:{1}], [0:64]}}\nv{0} = f32[1,64] tanh(s{0})\n", i, i + 1);
    pieces += fmt::format("{}v{}", i == 0 ? "" : ", ", i);
  }
  return testing::graph_of(body +
                           fmt::format("ROOT r = f32[{},64] concatenate({}), dimensions={{0}}\n", n, pieces));
}

/// Of the processor; the least of a few times.
double planning_seconds(const Graph& graph, int times) {
  const auto used = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
  };
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < times; ++i) {
    const double before = used();
    make_plan(graph, device("v100"), "astitch");
    least = std::min(least, used() - before);
  }
  return least;
}

TEST(Stages, PlanningAJoinOfManySlicesTakesTimeAboutByTheirNumber) {
  const double few = planning_seconds(join_of_slices(1000), 4),
               many = planning_seconds(join_of_slices(4000), 2);
  EXPECT_LT(many, 9 * few);  // it was 12 times: each slice asked what all of them are made from
}

}  // namespace TEST_FILE
}  // namespace stitchwork
