#include "analysis/explain/statistics.h"

#include <gmock/gmock.h>

#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::string> irregular(const std::string& body) {
  std::vector<std::string> found;
  for (const IrregularReduction& r : irregular_reductions(testing::graph_of(body), device("v100")))
    found.push_back(r.op + ": " + r.what + ", " + r.why);
  return found;
}

// The two cases of section 2.3.2, with the numbers the paper gives for them.
TEST(Statistics, TheReductionsOfFigure6AreIrregular) {
  EXPECT_THAT(irregular("p = f32[750000,32] parameter(0)\n z = f32[] constant(0)\n"
                        "ROOT r = f32[750000] reduce(p, z), dimensions={1}, to_apply=sum"),
              ElementsAre("r: small blocks, 32 blocks of 32 threads, 1024 of an SM's 2048"));
  EXPECT_THAT(irregular("p = f32[64,30000] parameter(0)\n z = f32[] constant(0)\n"
                        "ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=sum"),
              ElementsAre("r: few blocks, 64 blocks of 1024 threads, v100-sxm2 holds 160 at once"));
}

TEST(Statistics, AReductionThatFillsTheDeviceIsRegular) {
  EXPECT_THAT(irregular("p = f32[4096,1024] parameter(0)\n z = f32[] constant(0)\n"
                        "ROOT r = f32[4096] reduce(p, z), dimensions={1}, to_apply=sum"),
              IsEmpty());
}

TEST(Statistics, SharesCountKernelsAndTimeOfTheUnfusedPlan) {
  const Shares s = shares(testing::graph_of("a = f32[64,64] parameter(0)\n e = f32[64,64] exponential(a)\n"
                                            "d = f32[64,64] dot(e, a), lhs_contracting_dims={1}, "
                                            "rhs_contracting_dims={0}\n n = f32[64,64] negate(d)\n"
                                            "ROOT t = f32[64,64] tanh(n)"),
                          device("v100"));
  EXPECT_EQ(s.memory_kernels, 3);
  EXPECT_EQ(s.library_calls, 1);
  EXPECT_EQ(s.kernel_share(), 0.75);
  EXPECT_GT(s.time_share(), 0);
  EXPECT_LT(s.time_share(), 1);
  EXPECT_EQ(shares(testing::graph_of("ROOT a = f32[4] parameter(0)"), device("v100")).time_share(), 0);
}

TEST(Statistics, SizesAreCountedByPowersOfTwo) {
  EXPECT_THAT(size_histogram(testing::graph_of("a = f32[0,7] parameter(0)\n b = f32[1023] parameter(1)\n"
                                               "c = f32[1024] parameter(2)\n x = f32[0,7] negate(a)\n"
                                               "y = f32[1023] negate(b)\n z = f32[1024] negate(c)\n"
                                               "ROOT t = (f32[0,7], f32[1023], f32[1024]) tuple(x, y, z)")),
              ElementsAre(Pair(-1, 1), Pair(9, 1), Pair(10, 1)));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
