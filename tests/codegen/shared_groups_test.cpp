// FusionStitching's examples as plans by hand (2018, Figure 3; 2019, Figure 1): products, in-place values and
// rows in turn in one kernel of groups of one op each.
#include "tests/support/shared_groups.h"

#include <fmt/format.h>

#include <string>

#include "analysis/verify/verify.h"
#include "tests/codegen/planned.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::op;
using testing::StoredOp;

std::string problems(const Graph& graph, const FusionPlan& plan) {
  std::string text;
  for (const Verdict& verdict : verify(graph, device(plan.device), plan))
    text += verdict.rule + ": " + verdict.why + "\n";
  return text;
}

mapping::Rows in_warps(std::int64_t rows, std::int64_t cols, std::int64_t of_task) {
  return {rows, cols, mapping::Lanes{32, of_task, {}, {}}};
}

/// Sixteen tasks, each of the rows of one matrix of scores (`n` rows of `n`).
struct Figure3 {
  std::int64_t n;
  mapping::Rows rows() const { return in_warps(16 * n, n, n); }
  mapping::Elements elements() const { return {16 * n * n, n * n}; }
  mapping::Rows product() const { return {16 * n * 32, n, mapping::OneThread{n * 32}}; }
  std::int64_t row_bytes() const { return n * 4; }
};

/// 2018, section 5.1: reduce.2 takes the bytes of reduce.1, divide.1 those of exponential.1 in place.
TEST(SharedGroups, OfFigure3AreOneKernelWithoutCalls) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::dataset("fs18_fig3");
  const Figure3 f{64};
  for (const int block : {128, 256, 512}) {
    const FusionPlan plan = testing::plan_stored_ops(graph, device("p100-sxm2"),
                                                     {{"reduce.1", f.rows(), 0},
                                                      {"exponential.1", f.elements(), f.row_bytes()},
                                                      {"reduce.2", f.rows(), 0},
                                                      {"divide.1", f.elements(), f.row_bytes()},
                                                      {"dot.1", f.product(), std::nullopt}},
                                                     block);
    ASSERT_EQ(problems(graph, plan), "");
    EXPECT_EQ(plan.counts.memory_kernels, 1);
    EXPECT_EQ(plan.counts.library_calls, 0);
    EXPECT_EQ(plan.kernels[0].launch.grid, 16);
    EXPECT_EQ(plan.kernels[0].launch.shared_bytes, 16640);
    const testing::SanitizedRun ran = testing::run_sanitized(graph, device("p100-sxm2"), plan);
    EXPECT_EQ(ran.run.kernels.at(0).counters.block_barriers, 16U * 4U);
  }
}

/// 2018, section 5.1.2: exponential.1 and divide.1 give up their shared memory, the product computes them.
TEST(SharedGroups, OfFigure3FourTimesAsLargeComputeTheirExponentialsInTheProduct) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::dataset("fs18_shrink");
  const Figure3 f{128};
  const FusionPlan plan = testing::plan_stored_ops(graph, device("p100-sxm2"),
                                                   {{"reduce.1", f.rows(), 0},
                                                    {"reduce.2", f.rows(), f.row_bytes()},
                                                    {"dot.1", f.product(), std::nullopt}},
                                                   512);
  ASSERT_EQ(problems(graph, plan), "");
  EXPECT_EQ(plan.counts.library_calls, 0);
  EXPECT_EQ(plan.kernels[0].launch.shared_bytes, 1024);
  testing::run_sanitized(graph, device("p100-sxm2"), plan);
}

/// The template of 2019, Figure 1 (c), a block a batch of `n` x `n`.
FusionPlan figure1(const Graph& graph, const Device& target, std::int64_t batches, std::int64_t n,
                   int block) {
  const std::int64_t rows = batches * n, square = n * n;
  const auto elements = [&](std::int64_t of_batch) {
    return mapping::Elements{batches * of_batch, of_batch};
  };
  const auto threads = [&](std::int64_t of_batch, std::int64_t cols) {
    return mapping::Rows{batches * of_batch, cols, mapping::OneThread{of_batch}};
  };
  const std::int64_t of_reduce_1 = square * 4, of_dot_2 = of_reduce_1 + n * 4, of_reduce_2 = of_dot_2 + n * 8;
  return testing::plan_stored_ops(graph, target,
                                  {{"dot_1", threads(square, 2), 0},
                                   {"add", elements(square), 0},
                                   {"reduce_1", in_warps(rows, n, n), of_reduce_1},
                                   {"log_1", elements(n), std::nullopt},
                                   {"dot_2", threads(2 * n, n), of_dot_2},
                                   {"divide", elements(2 * n), std::nullopt},
                                   {"reduce_2", threads(n, 2), of_reduce_2},
                                   {"multiply_2", elements(n), std::nullopt},
                                   {"subtract", elements(n), std::nullopt}},
                                  block);
}

TEST(SharedGroups, OfFigure1AreOneKernelWithoutCalls) {
  SKIP_WITHOUT_COMPILER();
  const Graph tiny = testing::dataset("fs19_fig1_tiny");
  const Device& target = device("v100");
  for (const int block : {64, 128, 1024}) {
    const FusionPlan plan = figure1(tiny, target, 3, 13, block);
    ASSERT_EQ(problems(tiny, plan), "");
    EXPECT_EQ(plan.counts.library_calls, 0);
    testing::run_sanitized(tiny, target, plan);
  }
  const Graph graph = testing::dataset("fs19_fig1");
  const FusionPlan plan = figure1(graph, target, 16384, 94, 512);
  EXPECT_EQ(problems(graph, plan), "");
  EXPECT_EQ(plan.counts.memory_kernels, 1);
  EXPECT_EQ(plan.counts.library_calls, 0);
  EXPECT_EQ(plan.kernels[0].launch.grid, 16384);
  EXPECT_EQ(plan.kernels[0].launch.shared_bytes, 36848) << "of 72,192 asked for";
}

/// As many rows a task as the block has lanes for, one fewer and more: what one turn's warp writes another
/// turn's may read (reduce_1, which the quotients read).
TEST(SharedGroups, ReadRowsThatWereTakenInTurn) {
  SKIP_WITHOUT_COMPILER();
  for (const std::int64_t rows : {7, 8, 9, 64})
    for (const int threads : {32, 64}) {
      const Graph graph = testing::graph_of(fmt::format(
          "  x = f32[{0},40] parameter(0)\n  zero = f32[] constant(0)\n  e = f32[{0},40] exponential(x)\n"
          "  s = f32[{0}] reduce(e, zero), dimensions={{1}}, to_apply=sum\n  r = f32[{0}] reverse(s), "
          "dimensions={{0}}\n"
          "  w = f32[{0},40] broadcast(r), dimensions={{0}}\n  q = f32[{0},40] divide(x, w)\n"
          "  m = f32[{0}] reduce(q, zero), dimensions={{1}}, to_apply=max\n"
          "  v = f32[{0},40] broadcast(m), dimensions={{0}}\n  ROOT out = f32[{0},40] multiply(x, v)\n",
          rows));
      const mapping::Rows lanes{rows, 40, mapping::Lanes{threads, rows, {}, {}}};
      const FusionPlan plan = testing::plan_stored_ops(
          graph, device("v100"), {{"s", lanes, 0}, {"m", lanes, 256}, {"out", lanes, std::nullopt}}, 256);
      SCOPED_TRACE(fmt::format("{} rows of {} threads", rows, threads));
      ASSERT_EQ(problems(graph, plan), "");
      testing::run_sanitized(graph, device("v100"), plan);
    }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
