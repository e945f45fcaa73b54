// Advice: the costliest edges, what blocks them, and what the override brings.
#include "analysis/explain/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using testing::graph_of;
using ::testing::HasSubstr;

const Device& v100() { return device("v100"); }

TEST(Advise, HasNothingToSayOfOneKernel) {
  EXPECT_TRUE(advise(dataset("fig7"), v100(), "astitch", {}).empty());
}

TEST(Advise, AnEdgeThatAnOverrideCutsIsRefusedByIt) {
  const std::vector<Advice> advice =
      advise(dataset("fig7"), v100(), "astitch", {.edits = {{EditKind::kSplit, {"power.1"}, "", 0}}});
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].producer, "power.1");
  EXPECT_EQ(advice[0].rule, "override.forbid_merge");
  EXPECT_FALSE(advice[0].after_us);
  EXPECT_THAT(advice[0].refusal, HasSubstr("keep them apart"));
  EXPECT_FALSE(advice[0].gains());
}

TEST(Advise, ACycleIsNamedAndTheRefusalHasItsPath) {
  const Graph graph = graph_of(R"(
    x = f32[256,256] parameter(0)
    a = f32[256,256] tanh(x)
    d = f32[256,256] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT b = f32[256,256] add(d, a))");
  const std::vector<Advice> advice = advise(graph, v100(), "astitch", {});
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].producer, "a");
  EXPECT_EQ(advice[0].consumer, "b");
  EXPECT_EQ(advice[0].bytes, 256 * 256 * 4);  // the product reads it too: the write stays
  EXPECT_EQ(advice[0].rule, "astitch.cycle");
  EXPECT_THAT(advice[0].refusal, HasSubstr("a -> d -> b"));
}

TEST(Advise, AGainIsPredictedWithTheOverrideInPlace) {
  // More than a kernel's 512 ops in a chain: cut by the limit, which an override may exceed.
  std::string body = "v0 = f32[4096,1024] parameter(0)\n";
  for (int i = 1; i <= 600; ++i)
    body += "v" + std::to_string(i) + " = f32[4096,1024] negate(v" + std::to_string(i - 1) + ")\n";
  body += "ROOT out = f32[4096,1024] abs(v600)\n";
  const Graph graph = graph_of(body);
  const std::vector<Advice> advice = advise(graph, v100(), "astitch", {});
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].rule, "astitch.max-ops");
  EXPECT_EQ(advice[0].bytes, 2 * 4096 * 1024 * 4);
  ASSERT_TRUE(advice[0].after_us) << advice[0].refusal;
  EXPECT_TRUE(advice[0].gains()) << *advice[0].after_us << " us instead of " << advice[0].before_us;
  EXPECT_EQ(make_plan(graph, v100(), "astitch", {.edits = {advice[0].edit}}).kernels.size(), 1u);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
