// Tasks of more rows than the threads of a block take at once: the block takes them in turn.
#include <fmt/format.h>

#include <random>
#include <set>
#include <string>

#include "analysis/judge/cost.h"
#include "analysis/schedule/layout.h"
#include "tests/codegen/planned.h"
#include "tests/codegen/workloads.h"
#include "tests/support/in_turn.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;
using testing::take_in_turn;

FusionPlan in_registers(const Graph& graph, const Device& target) {
  PlanOptions options;
  options.knobs = {{"clusters", "off"}, {"tiles", "off"}, {"one_pass", "off"}};
  return make_plan(graph, target, "astitch", options);
}

/// Drawn by seed: rows of a task that the turns do not divide, threads that a row's do not, rows that no
/// vector divides, values a row and an element between groups.
TEST(Turns, AreRightWhateverTheRowsThreadsAndTypes) {
  SKIP_WITHOUT_COMPILER();
  std::mt19937 random(19);
  const auto draw = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  const char* const names[] = {"softmax", "masked_softmax", "cross_entropy", "layer_norm", "rms_norm"};
  int in_turn = 0, with_workspace = 0, idle = 0, peeled = 0, alone = 0;
  for (int n = 0; n < 60; ++n) {
    const std::string dtype = n % 3 == 0 ? "bf16" : "f32";
    const std::int64_t rows = draw(20, 300), cols = draw(3, n % 5 == 0 ? 600 : 150);
    const std::string name = names[draw(0, 4)];
    const Graph graph = graph_of(testing::workload(name).hlo({rows, cols, dtype}));
    const Device& target = device(n % 2 == 0 ? "v100" : "h200");
    FusionPlan plan = in_registers(graph, target);
    if (plan.kernels.size() != 1 || plan.kernels[0].launch.grid_barriers > 0) continue;
    const int of_row[] = {0, 1, 4, 16, 32, 64, 96};
    const int threads = of_row[draw(0, 6)], block = 32 * static_cast<int>(draw(std::max(1, threads / 32), 6));
    const int width = threads == 0 || draw(0, 1) == 0 ? 1 : 2;
    const std::int64_t at_once = block / std::max(1, threads), of_task = draw(at_once + 1, 5 * at_once);
    SCOPED_TRACE(fmt::format("{} {}x{} {}: {} rows a task, {} threads a row, block {}, vectors of {}, on {}",
                             name, rows, cols, dtype, of_task, threads, block, width, target.id));
    if (!take_in_turn(graph, target, plan, 0, of_task, threads, width, block, draw(1, 5))) continue;
    testing::run_sanitized(graph, target, plan);
    const Layout layout(plan.kernels[0].groups[0].mapping, block);
    EXPECT_EQ(layout.turns, ceil_div(of_task, at_once));
    ++in_turn;
    with_workspace += threads > 32 ? 1 : 0;
    idle += threads > 0 && block % threads != 0 ? 1 : 0;
    peeled += layout.peeled ? 1 : 0;
    alone += threads == 0 ? 1 : 0;
  }
  EXPECT_GE(in_turn, 40);
  EXPECT_GE(with_workspace, 8);
  EXPECT_GE(idle, 3);
  EXPECT_GE(peeled, 5);
  EXPECT_GE(alone, 3);
}

/// What a thread keeps of its one row has no place for a second.
TEST(Turns, AreRefusedWhereAThreadKeepsSomethingOfItsRow) {
  const Graph graph = graph_of(testing::workload("layer_norm").hlo({300, 96, "f32"}));
  const Device& target = device("h200");
  FusionPlan plan = in_registers(graph, target);
  ASSERT_TRUE(take_in_turn(graph, target, plan, 0, 20, 32, 1, 128, 4));
  const auto rules = [&](const FusionPlan& changed) {
    std::set<std::string> names;
    for (const Verdict& verdict : verify(graph, target, changed)) names.insert(verdict.rule);
    return names;
  };
  EXPECT_TRUE(rules(plan).empty());
  FusionPlan tiles = plan;
  for (Group& group : tiles.kernels[0].groups) as<mapping::Lanes>(group.mapping)->tile = mapping::ByLoads{};
  EXPECT_TRUE(rules(tiles).contains("verify.mapping.turns"));
  FusionPlan resident = plan;
  const Group& group = resident.kernels[0].groups[0];
  resident.kernels[0].resident.push_back({.op = group.dominant, .group = group.dominant});
  EXPECT_TRUE(rules(resident).contains("verify.mapping.turns"));
  FusionPlan too_long = plan;
  for (Group& of : too_long.kernels[0].groups) as<mapping::Lanes>(of.mapping)->threads = 256;
  EXPECT_TRUE(rules(too_long).contains("verify.mapping.threads"));
}

/// Turns are counted as they run: the estimate is as far from the simulator's time with them as without.
TEST(Turns, AreCountedByTheEstimate) {
  SKIP_WITHOUT_COMPILER();
  for (const char* name : {"softmax", "layer_norm"})
    for (const auto& [cols, threads] : {std::pair{64, 32}, std::pair{200, 64}}) {
      const Graph graph = graph_of(testing::workload(name).hlo({8192, cols, "f32"}));
      const Device& target = device("v100");
      const auto error = [&](std::int64_t rows) {
        FusionPlan plan = in_registers(graph, target);
        EXPECT_TRUE(take_in_turn(graph, target, plan, 0, rows, threads, 1, 256, 1000));
        const double simulated = testing::run_sanitized(graph, target, plan).run.total_us;
        return kernel_cost(graph, target, plan.kernels[0]).predicted_us / simulated;
      };
      const std::int64_t at_once = 256 / threads;
      const double without = error(at_once), in_turn = error(4 * at_once);
      EXPECT_NEAR(in_turn / without, 1, 0.15) << name << " of " << cols << ": " << without << ", " << in_turn;
    }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
