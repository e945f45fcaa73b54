#include "experiments/memory_need.h"

#include <gtest/gtest.h>

#include "analysis/planners/planner.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(MemoryNeed, InputsTheDeviceResultsAndTheReferenceAddUp) {
  // Two calls one after the other: p and a, then a and b; never all three results.
  const Graph graph = testing::graph_of(
      "p = f32[64,64] parameter(0)\n"
      "a = f32[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "b = f32[64,64] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "ROOT c = f32[64,64] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  constexpr double kOne = 64 * 64 * 4;
  EXPECT_EQ(run_bytes(graph, plan, true, false), (1 + 2 + 1) * kOne);
  // The reference's copies of p and c, then a and b at once, and those and a result in float64.
  EXPECT_EQ(run_bytes(graph, plan, true, true), (1 + 2 + 1 + 2 + 2 + 3 * 2) * kOne);
  EXPECT_EQ(run_bytes(graph, plan, false, false), 2 * kOne);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
