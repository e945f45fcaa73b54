// Partials of a split reduction that are read in the same kernel: folded a vector of rows at a time where
// these lie side by side.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/codegen/planned.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

struct Case {
  const char* type;
  const char* reducer;
  const char* initial;
  int rows, cols;
  bool folded;  ///< a vector at a time
};

/// What each column's elements differ from what the column reduces to, by columns and turned.
std::string column_differences(const Case& c) {
  return fmt::format(R"(HloModule t
combine {{ a = {0}[] parameter(0)  b = {0}[] parameter(1)  ROOT s = {0}[] {1}(a, b) }}
ENTRY main {{
  x = {0}[{3},{4}] parameter(0)
  start = {0}[] constant({2})
  c = {0}[{4}] reduce(x, start), dimensions={{0}}, to_apply=combine
  wide = {0}[{3},{4}] broadcast(c), dimensions={{1}}
  ROOT d = {0}[{3},{4}] subtract(x, wide)
}}
)",
                     c.type, c.reducer, c.initial, c.rows, c.cols);
}

class Folds : public ::testing::TestWithParam<Case> {};

TEST_P(Folds, AreRightInVectorsAndAlone) {
  SKIP_WITHOUT_COMPILER();
  const Case& c = GetParam();
  const Graph graph = testing::graph_of(column_differences(c));
  const Device& target = device("a100-sxm-40");
  const FusionPlan plan = make_plan(graph, target, "astitch", {});
  ASSERT_EQ(plan.kernels.size(), 1U);
  const testing::SanitizedRun ran = testing::run_sanitized(graph, target, plan);
  const std::string& source = ran.executable.kernels.at(0).cuda;
  ASSERT_THAT(source, HasSubstr("_partials[s * ")) << "the reduction is split";
  EXPECT_EQ(source.find("_folded") != std::string::npos, c.folded);
}

INSTANTIATE_TEST_SUITE_P(Types, Folds,
                         ::testing::Values(Case{"f32", "maximum", "-inf", 1024, 256, true},
                                           Case{"f32", "add", "0.5", 2048, 512, true},
                                           Case{"f16", "add", "0", 1024, 256, true},
                                           Case{"bf16", "maximum", "-inf", 2048, 512, true},
                                           Case{"f64", "add", "0", 1024, 256, true},
                                           Case{"s32", "add", "3", 1024, 256, true},
                                           Case{"f32", "add", "0", 1024, 255, false}),
                         [](const auto& tested) {
                           const Case& c = tested.param;
                           return fmt::format("{}_{}_{}x{}", c.type, c.reducer, c.rows, c.cols);
                         });

}  // namespace TEST_FILE
}  // namespace stitchwork
