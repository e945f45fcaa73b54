// Modelled against simulated times of kernels of hand-written mappings whose tasks are small, unlike or read
// what others of a block have read before: of shapes drawn by seed.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "analysis/judge/cost.h"
#include "analysis/verify/verify.h"
#include "tests/codegen/planned.h"
#include "tests/support/shared_groups.h"

namespace stitchwork {
namespace TEST_FILE {

using Draw = std::function<std::int64_t(std::int64_t least, std::int64_t most)>;

struct Drawn {
  std::string hlo;
  std::vector<testing::StoredOp> stored;
  int block = 128;
};

/// Of ten seeds the least and the greatest modelled over simulated time, the launch left out of both.
std::pair<double, double> ratios(const std::function<Drawn(const Draw&)>& drawn) {
  std::pair<double, double> bounds{1e9, 0};
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    const Drawn of_seed = drawn([&](std::int64_t least, std::int64_t most) {
      return std::uniform_int_distribution<std::int64_t>(least, most)(random);
    });
    const Graph graph = testing::graph_of(of_seed.hlo);
    const Device& v100 = device("v100");
    const FusionPlan plan = testing::plan_stored_ops(graph, v100, of_seed.stored, of_seed.block);
    EXPECT_TRUE(verify(graph, v100, plan).empty());
    const double simulated =
        testing::run_sanitized(graph, v100, plan).run.kernels[0].time_us - v100.launch_us;
    const double modelled = kernel_cost(graph, v100, plan.kernels[0]).predicted_us - v100.launch_us;
    const double ratio = modelled / simulated;
    fmt::print("seed {}: modelled {:.2f} us, simulated {:.2f}, ratio {:.2f}\n", seed, modelled, simulated,
               ratio);
    bounds = {std::min(bounds.first, ratio), std::max(bounds.second, ratio)};
  }
  return bounds;
}

/// A thread a row and few rows a task: a warp takes as long for one of them as for 32.
TEST(TaskEstimates, CountWholeWarpsOfTasksOfFewRows) {
  SKIP_WITHOUT_COMPILER();
  const auto [least, most] = ratios([](const Draw& draw) {
    const std::int64_t rows = draw(4000, 20000), cols = draw(16, 96), of_task = draw(1, 12);
    return Drawn{fmt::format("  x = f32[{0},{1}] parameter(0)\n  e = f32[{0},{1}] exponential(x)\n"
                             "  zero = f32[] constant(0)\n"
                             "  ROOT s = f32[{0}] reduce(e, zero), dimensions={{1}}, to_apply=sum\n",
                             rows, cols),
                 {{"s", mapping::Rows{rows, cols, mapping::OneThread{of_task}}, std::nullopt}}};
  });
  EXPECT_GT(least, 0.85);
  EXPECT_LT(most, 1.15);
}

/// Few columns a task: the lanes of a warp are on several rows, each in another sector.
TEST(TaskEstimates, CountSectorsOfTasksOfFewColumns) {
  SKIP_WITHOUT_COMPILER();
  const auto [least, most] = ratios([](const Draw& draw) {
    const std::int64_t results = draw(1000, 6000), length = draw(64, 700), of_task = draw(1, 8);
    mapping::Columns columns{results, length, of_task};
    columns.threads = static_cast<int>(128 / of_task);
    return Drawn{fmt::format("  x = f32[{1},{0}] parameter(0)\n  zero = f32[] constant(0)\n"
                             "  ROOT s = f32[{0}] reduce(x, zero), dimensions={{0}}, to_apply=sum\n",
                             results, length),
                 {{"s", columns, std::nullopt}}};
  });
  EXPECT_GT(least, 0.8);
  EXPECT_LT(most, 1.2);
}

/// Rows that two groups go through, one behind the other: long ones come from DRAM twice.
TEST(TaskEstimates, ReadAgainWhatNoCacheHoldsBetweenGroups) {
  SKIP_WITHOUT_COMPILER();
  const auto [least, most] = ratios([](const Draw& draw) {
    const std::int64_t rows = draw(700, 1500), cols = 32 * draw(64, 256), of_task = draw(1, 4);
    return Drawn{fmt::format("  x = f32[{0},{1}] parameter(0)\n  zero = f32[] constant(0)\n"
                             "  s = f32[{0}] reduce(x, zero), dimensions={{1}}, to_apply=sum\n"
                             "  b = f32[{0},{1}] broadcast(s), dimensions={{0}}\n"
                             "  ROOT d = f32[{0},{1}] divide(x, b)\n",
                             rows, cols),
                 {{"s", mapping::Rows{rows, cols, mapping::Lanes{32, of_task, {}, {}}}, 0},
                  {"d", mapping::Elements{rows * cols, of_task * cols}, std::nullopt}}};
  });
  EXPECT_GT(least, 0.6);
  EXPECT_LT(most, 1.3);
}

/// Many pieces, of which a warp has elements of few: it comes by the halves that they lie in.
TEST(TaskEstimates, CountTheHalvesOfConcatenationsThatAWarpComesBy) {
  SKIP_WITHOUT_COMPILER();
  const auto [least, most] = ratios([](const Draw& draw) {
    const std::int64_t pieces = draw(8, 100), rows = draw(400, 1200), cols = draw(8, 48);
    std::string hlo, names;
    for (std::int64_t i = 0; i < pieces; ++i) {
      hlo += fmt::format("  x{2} = f32[{0},{1}] parameter({2})\n  e{2} = f32[{0},{1}] exponential(x{2})\n",
                         rows, cols, i);
      names += fmt::format("{}e{}", i == 0 ? "" : ", ", i);
    }
    hlo +=
        fmt::format("  ROOT c = f32[{},{}] concatenate({}), dimensions={{1}}\n", rows, cols * pieces, names);
    return Drawn{hlo, {{"c", mapping::Elements{rows * cols * pieces, 256}, std::nullopt}}, 256};
  });
  EXPECT_GT(least, 0.8);
  EXPECT_LT(most, 1.3);
}

/// More blocks than are resident, and one of them has a loop of its own.
TEST(TaskEstimates, WaitForTheBlockThatHasMostToDo) {
  SKIP_WITHOUT_COMPILER();
  const auto [least, most] = ratios([](const Draw& draw) {
    const std::int64_t rows = draw(2000, 5000), cols = draw(60, 260), whole = draw(100000, 400000);
    return Drawn{fmt::format("  x = f32[{0},{1}] parameter(0)\n  y = f32[{2}] parameter(1)\n"
                             "  zero = f32[] constant(0)\n  r = f32[1,{2}] reshape(y)\n"
                             "  s = f32[1] reduce(r, zero), dimensions={{1}}, to_apply=sum\n"
                             "  e = f32[{0},{1}] exponential(x)\n"
                             "  ROOT t = (f32[{0},{1}], f32[1]) tuple(e, s)\n",
                             rows, cols, whole),
                 {{"e", mapping::Elements{rows * cols, cols}, std::nullopt},
                  {"s", mapping::Rows{1, whole, mapping::Lanes{128, 1, {}, {}}}, std::nullopt}}};
  });
  EXPECT_GT(least, 0.65);
  EXPECT_LT(most, 1.2);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
