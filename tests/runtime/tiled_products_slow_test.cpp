// Random models whose products are simulated by our tiled kernels, under all sanitizers.
// STITCHWORK_FUZZ_FIRST and STITCHWORK_FUZZ_SEEDS choose others (tests/support/fuzz.h).
#include <gmock/gmock.h>

#include <random>

#include "runtime/run.h"
#include "tests/codegen/harness.h"
#include "tests/support/astra_graphs.h"
#include "tests/support/fuzz.h"
#include "tests/support/random_products.h"

namespace stitchwork {
namespace TEST_FILE {

/// Library calls that a tiled kernel made.
std::size_t expect_right(const Graph& graph, const std::string& planner, const TiledProduct& by,
                         std::uint32_t seed) {
  const Device& target = device(seed % 2 == 0 ? "v100" : "h200");
  const FusionPlan plan = make_plan(graph, target, planner);
  const std::vector<Literal> inputs = generate_inputs(graph, seed);
  RunOptions options;
  options.sanitize = sim::parse_sanitizers("mem,race,sync,init");
  options.products = by;
  const RunResult run =
      run_simulated(graph, target, compile(graph, target, plan, {.ptxas = false}), inputs, options);
  EXPECT_THAT(run.findings, ::testing::IsEmpty());
  const CheckResult check = Judge(graph, inputs).check(run.outputs);
  EXPECT_TRUE(check.ok) << check.message;
  return run.library_calls.size();
}

const TiledProduct& drawn(std::uint32_t seed) { return tiled_products()[seed % tiled_products().size()]; }

TEST(RandomTiledProducts, OfDimensionsInAnyOrderAreRight) {
  SKIP_WITHOUT_COMPILER();
  const testing::FuzzRange range = testing::fuzz_range(0, 150);
  std::size_t made = 0;
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    testing::ProductDraw draw(seed);
    const testing::ProductText text = draw.product(40, 40);
    SCOPED_TRACE(text.description + " " + name(drawn(seed)));
    made += expect_right(testing::graph_of(text.hlo), "xla", drawn(seed), seed);
  }
  if (!range.chosen) EXPECT_GT(made, 40u);
}

TEST(RandomTiledProducts, OfTrainingStepsThatAstraJoinsAreRight) {
  SKIP_WITHOUT_COMPILER();
  const testing::FuzzRange range = testing::fuzz_range(0, 30);
  std::size_t made = 0;
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    SCOPED_TRACE(fmt::format("seed {} {}", seed, name(drawn(seed))));
    made += expect_right(testing::random_dots(seed, 4 + static_cast<int>(seed % 24)),
                         seed % 3 == 0 ? "astra+astitch" : "astra", drawn(seed), seed);
  }
  if (!range.chosen) EXPECT_GT(made, 60u);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
