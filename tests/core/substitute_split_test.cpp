// reduce-split: a reduction over dimensions that do not lie together becomes two.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <random>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/passes/passes.h"
#include "core/substitute/derivation.h"
#include "core/substitute/rule.h"
#include "core/substitute/view.h"
#include "tests/core/substitute_support.h"

namespace stitchwork {
namespace TEST_FILE {

using rewriting::Derivation;

Graph reduction(const std::vector<int>& dims, const std::vector<int>& reduced, const std::string& op,
                const std::string& from) {
  std::vector<int> kept;
  for (int d = 0; d < std::ssize(dims); ++d)
    if (std::ranges::count(reduced, d) == 0) kept.push_back(dims[static_cast<std::size_t>(d)]);
  return canonicalize(parse_hlo(
      fmt::format(
          "HloModule m\nf {{\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] {}(a, "
          "b)\n}}\nENTRY main {{\n x = f32[{}] parameter(0)\n i = f32[] constant({})\n"
          " ROOT s = f32[{}] reduce(x, i), dimensions={{{}}}, to_apply=f\n}}\n",
          op, fmt::join(dims, ","), from, fmt::join(kept, ","), fmt::join(reduced, ",")),
      "test.hlo"));
}

bool holds(const Graph& graph) {
  const rewriting::View view(graph, graph.entry);
  return rewriting::rule_named("reduce-split")
      .find_all(view, {graph.entry_computation().find("s")})
      .has_value();
}

std::vector<std::vector<std::int64_t>> reductions(const Graph& graph) {
  std::vector<std::vector<std::int64_t>> result;
  for (const Node& node : graph.entry_computation().nodes)
    if (node.op == Op::kReduce) result.push_back(node.attrs.dimensions);
  return result;
}

TEST(ReduceSplit, TakesTheLongestThatLieTogetherFirst) {
  const Graph model = reduction({2, 32, 32, 8, 10}, {1, 2, 4}, "add", "0");
  Derivation derivation(model);
  derivation.apply_at(rewriting::rule_named("reduce-split"), "main", {{"s"}});
  EXPECT_THAT(reductions(derivation.result().graph),
              ::testing::ElementsAre(::testing::ElementsAre(1, 2), ::testing::ElementsAre(2)));
}

TEST(ReduceSplit, NeedsTwoRunsAndTheIdentity) {
  EXPECT_TRUE(holds(reduction({4, 3, 5}, {0, 2}, "add", "0")));
  EXPECT_FALSE(holds(reduction({4, 3, 5}, {0, 2}, "add", "1")));
  EXPECT_FALSE(holds(reduction({4, 3, 5}, {0, 1}, "add", "0")));
  EXPECT_FALSE(holds(reduction({4, 1, 5}, {0, 2}, "add", "0"))) << "one element parts nothing";
  const Graph once = reduction({4, 3, 5}, {0, 1}, "add", "0");
  Derivation derivation(once);
  EXPECT_THROW(derivation.apply_at(rewriting::rule_named("reduce-split"), "main", {{"s"}}), Error);
}

class RandomReduceSplit : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomReduceSplit, GivesTheSameValues) {
  std::mt19937 random(GetParam());
  std::vector<int> dims, reduced;
  for (int d = 0, rank = 3 + static_cast<int>(random() % 4); d < rank; ++d) {
    dims.push_back(1 + static_cast<int>(random() % 5));
    if (random() % 2 == 0) reduced.push_back(d);
  }
  const bool sum = random() % 2 == 0;
  const Graph model = reduction(dims, reduced, sum ? "add" : "maximum", sum ? "0" : "-inf");
  Derivation derivation(model);
  if (holds(model)) derivation.apply_at(rewriting::rule_named("reduce-split"), "main", {{"s"}});
  const Graph& split = derivation.result().graph;
  validate(split);
  testing::expect_consistent(derivation.result());
  EXPECT_EQ(reductions(split).size(), holds(model) ? reductions(model).size() + 1 : reductions(model).size());
  const std::vector<Literal> inputs = testing::whole_inputs(model, GetParam());  // whose sums are exact
  EXPECT_EQ(testing::difference(evaluate(split, inputs), evaluate(model, inputs)), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomReduceSplit, ::testing::Range<std::uint32_t>(0, 60));

}  // namespace TEST_FILE
}  // namespace stitchwork
