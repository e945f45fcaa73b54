// Scans written as windows, whose reducers XLA expands to slices and paddings of halving lengths: values
// between blocks that a map alone proves local, by its guards.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "analysis/planners/planner.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

/// A scan along `dim` of a matrix, with the reducer's last op and what it is made of.
std::string scan(std::int64_t rows, std::int64_t cols, int dim, const std::string& reducer) {
  const std::int64_t n = dim == 0 ? rows : cols;
  const std::string size = dim == 0 ? fmt::format("{}x1", n) : fmt::format("1x{}", n);
  const std::string pad = dim == 0 ? fmt::format("{}_0x0_0", n - 1) : fmt::format("0_0x{}_0", n - 1);
  return fmt::format(R"(HloModule scan
combine {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
{}
}}
ENTRY main {{
  x = f32[{},{}] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[{},{}] reduce-window(x, zero), window={{size={} pad={}}}, to_apply=combine
}})",
                     reducer, rows, cols, rows, cols, size, pad);
}

constexpr std::array kReducers = {
    "  ROOT s = f32[] add(a, b)",
    "  ROOT s = f32[] maximum(a, b)",
    // logaddexp, as jax.lax.cumlogsumexp has it
    "  d = f32[] subtract(a, b)\n  m = f32[] maximum(a, b)\n  n = f32[] abs(d)\n  o = f32[] negate(n)\n"
    "  e = f32[] exponential(o)\n  l = f32[] log-plus-one(e)\n  ROOT s = f32[] add(m, l)",
};

class Scans : public ::testing::TestWithParam<int> {};

TEST_P(Scans, ArePlannedByEveryPlanner) {
  std::mt19937 draw(static_cast<std::uint32_t>(GetParam()));
  const auto size = [&](int most) { return std::uniform_int_distribution<std::int64_t>(2, most)(draw); };
  for (const char* reducer : kReducers) {
    const int dim = static_cast<int>(draw() % 2);
    const std::int64_t rows = size(dim == 0 ? 60 : 9), cols = size(dim == 0 ? 9 : 60);
    const Graph graph = testing::graph_of(scan(rows, cols, dim, reducer));
    for (const Planner& row : planners_for(graph))
      EXPECT_NO_THROW(make_plan(graph, device("a100-sxm-40"), row.name))
          << row.name << ": " << scan(rows, cols, dim, reducer);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Scans, ::testing::Range(1, 9));

}  // namespace TEST_FILE
}  // namespace stitchwork
