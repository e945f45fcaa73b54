#include "experiments/plan_metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "analysis/planners/planner.h"
#include "experiments/metrics.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

std::map<std::string, double> of(const Graph& graph, const FusionPlan& plan) {
  std::map<std::string, double> values;
  for (const PlanMetric& metric : plan_metrics(graph, plan)) values[std::string(metric.name)] = metric.value;
  return values;
}

TEST(PlanMetrics, CountSharedBytesAsAskedForAndAsTheyLie) {
  const Graph graph = testing::dataset("softmax_tiny");
  FusionPlan plan =
      make_plan(graph, device("v100"), "fusionstitching-2018", {{{"mapping", "paper"}}, {}, false});
  ASSERT_EQ(plan.kernels.size(), 1u);
  KernelPlan& kernel = plan.kernels[0];
  kernel.shared = {{kernel.ops[0], 0, 100}, {kernel.ops[1], 50, 100}, {kNoNode, 160, 64}};
  kernel.launch.shared_bytes = 224;
  kernel.shrunk = {kernel.ops[0]};
  const auto values = of(graph, plan);
  EXPECT_EQ(values.at("shared_requested_bytes"), 200);
  EXPECT_EQ(values.at("shared_allocated_bytes"), 150);
  EXPECT_EQ(values.at("shared_bytes_max"), 224);
  EXPECT_EQ(values.at("shared_bytes_average"), 224);
  EXPECT_EQ(values.at("shared_kernels"), 1);
  EXPECT_EQ(values.at("shared_kernel_us"), kernel.predicted_us);
  EXPECT_EQ(values.at("shrunk_kernels"), 1);
  EXPECT_EQ(values.at("dynamic_kernels"), 1);
}

TEST(PlanMetrics, AreRowsOfTheTable) {
  const Graph graph = testing::dataset("fig7");
  for (const PlanMetric& metric : plan_metrics(graph, make_plan(graph, device("v100"), "unfused")))
    EXPECT_TRUE(std::any_of(metrics().begin(), metrics().end(), [&](const Metric& row) {
      return row.name == metric.name;
    })) << metric.name;
}

}  // namespace TEST_FILE
}  // namespace stitchwork
