#include "analysis/facts/facts.h"

#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;
using testing::op;

TEST(Facts, RolesFollowHowAnOpIsExecuted) {
  const Graph graph = graph_of(
      "p = f32[4,4] parameter(0)\n c = f32[4,4] constant({{1,2,3,4},{1,2,3,4},{1,2,3,4},{1,2,3,4}})\n"
      "r = f32[16] reshape(p)\n a = f32[16] abs(r)\n b = f32[4,4] reshape(a)\n"
      "d = f32[4,4] dot(b, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n ROOT t = (f32[4,4]) "
      "tuple(d)");
  const auto role = [&](const char* name) {
    return plan_role(graph.entry_computation().node(op(graph, name)));
  };
  EXPECT_EQ(role("p"), PlanRole::kSource);
  EXPECT_EQ(role("c"), PlanRole::kSource);
  EXPECT_EQ(role("r"), PlanRole::kAlias);
  EXPECT_EQ(role("a"), PlanRole::kMemory);
  EXPECT_EQ(role("d"), PlanRole::kLibrary);
  EXPECT_EQ(role("t"), PlanRole::kAlias);
}

TEST(Facts, ScalarConstantsAndTheirBroadcastsAreImmediates) {
  const Graph graph = graph_of(
      "p = f32[4] parameter(0)\n c = f32[] constant(2)\n l = f32[4] constant({1,2,3,4})\n"
      "b = f32[4] broadcast(c), dimensions={}\n r = f32[2,2] reshape(b)\n q = f32[4] reshape(r)\n"
      "x = f32[4] add(p, q)\n ROOT y = f32[4] add(x, l)");
  const auto immediate = [&](const char* name) {
    return is_immediate(graph.entry_computation(), op(graph, name));
  };
  EXPECT_TRUE(immediate("c"));
  EXPECT_TRUE(immediate("b"));
  EXPECT_TRUE(immediate("q"));
  EXPECT_FALSE(immediate("l"));
  EXPECT_FALSE(immediate("p"));
  EXPECT_FALSE(immediate("x"));
}

ReductionShape shape_of(const std::string& from, const std::string& to, const std::string& dims) {
  const Graph graph = graph_of("p = f32[" + from + "] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[" +
                               to + "] reduce(p, z), dimensions={" + dims + "}, to_apply=sum");
  return reduction_shape(graph.entry_computation(), op(graph, "r"));
}

TEST(Facts, ReductionsAreRowsOfKeptTimesColsOfReducedElements) {
  const ReductionShape rows = shape_of("6,10", "6", "1");
  EXPECT_EQ(rows.rows, 6);
  EXPECT_EQ(rows.cols, 10);
  EXPECT_TRUE(rows.row_reduce);
  EXPECT_EQ(to_text(rows.input_map), "(d0, d1) -> (d0, d1)");

  const ReductionShape columns = shape_of("6,10", "10", "0");
  EXPECT_EQ(columns.rows, 10);
  EXPECT_FALSE(columns.row_reduce);
  EXPECT_EQ(to_text(columns.input_map), "(d0, d1) -> (d1, d0)");
}

TEST(Facts, DimensionsOfExtentOneDoNotDecideWhichWayAReductionRuns) {
  EXPECT_TRUE(shape_of("6,10,1", "6,1", "1").row_reduce);
  EXPECT_FALSE(shape_of("6,10,1", "10", "0,2").row_reduce);
}

TEST(Facts, ReductionMapsReachEveryElementOnce) {
  const ReductionShape shape = shape_of("3,4,5,2", "4,2", "0,2");
  EXPECT_EQ(shape.rows, 8);
  EXPECT_EQ(shape.cols, 15);
  EXPECT_TRUE(invert(shape.input_map, std::vector<std::int64_t>{3, 4, 5, 2}).has_value());
  for (const IndexExpr& e : shape.output_map.results) EXPECT_FALSE(e.uses_dim(1));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
