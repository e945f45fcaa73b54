// Modelled against simulated times of kernels that compute products: large ones drawn by seed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/judge/cost.h"
#include "analysis/verify/verify.h"
#include "tests/codegen/planned.h"
#include "tests/support/random_products.h"
#include "tests/support/shared_groups.h"

namespace stitchwork {
namespace TEST_FILE {

/// Twenty batched products of operands in device memory, a thread or some lanes a result.
TEST(ProductEstimates, AreWithinAFactorOfTheSimulatedTime) {
  SKIP_WITHOUT_COMPILER();
  std::vector<double> ratios;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    testing::ProductDraw draw(seed);
    const std::int64_t batch = 1 << draw.draw(4, 6), m = draw.draw(8, 64), n = draw.draw(8, 64),
                       k = draw.draw(4, 96);
    const Graph graph = testing::graph_of(fmt::format(
        "  left = f32[{0},{1},{3}] parameter(0)\n  right = f32[{0},{3},{2}] parameter(1)\n"
        "  ROOT product = f32[{0},{1},{2}] dot(left, right), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, "
        "lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}\n",
        batch, m, n, k));
    mapping::Rows rows{batch * m * n, k, mapping::OneThread{256}};
    if (seed % 3 == 0) rows.sharing = mapping::Lanes{8, 32, {}, {}};
    const FusionPlan plan =
        testing::plan_stored_ops(graph, device("v100"), {{"product", rows, std::nullopt}}, 256);
    ASSERT_TRUE(verify(graph, device("v100"), plan).empty());
    const double simulated = testing::run_sanitized(graph, device("v100"), plan).run.total_us;
    const double modelled = kernel_cost(graph, device("v100"), plan.kernels[0]).predicted_us;
    ratios.push_back(modelled / simulated);
    fmt::print("{} x {}x{}x{}, {}: modelled {:.2f} us, simulated {:.2f}, ratio {:.2f}\n", batch, m, n, k,
               name(Mapping(rows)), modelled, simulated, ratios.back());
  }
  std::sort(ratios.begin(), ratios.end());
  fmt::print("median {:.2f}\n", ratios[ratios.size() / 2]);
  EXPECT_NEAR(ratios[ratios.size() / 2], 1, 0.4);
  EXPECT_GT(ratios.front(), 0.5);
  // Lanes that share a row are taken to be on neighbouring elements of one: few of them with long rows, up to
  // 3.6 times the simulated time.
  EXPECT_LT(ratios.back(), 4);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
