#include "experiments/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

/// Of a launch of `blocks` blocks that do this.
KernelTime timed(const Device& device, double instructions, double sectors) {
  KernelWork work{.grid_blocks = 4096, .threads_per_block = 256, .blocks_per_sm = 8};
  work.warp_instructions = instructions;
  work.dram_sectors = work.l2_sectors = sectors;
  return kernel_time(device, work);
}

TEST(Roofline, KernelsLieUnderThePeaksWhereTheirWorkPutsThem) {
  const Device& d = device("v100");
  const RooflineSeries series{
      "xla",
      1,
      "modelled",
      {roofline_kernel(timed(d, 1 << 20, 1 << 22)), roofline_kernel(timed(d, 1 << 28, 1 << 20))}};
  const auto figure = roofline_figure(d, {series});
  ASSERT_TRUE(figure);
  check(*figure);
  const FigureSeries &roof = figure->series.at(0), &points = figure->series.at(1);
  EXPECT_NEAR(points.x.at(0), 0.25, 1e-9);
  EXPECT_NEAR(points.x.at(1), 256, 1e-9);
  for (std::size_t k = 0; k < points.x.size(); ++k) {
    const double bound = std::min(*roof.y.back(), points.x[k] * d.dram_gb_s / 32);
    EXPECT_LT(*points.y[k], bound);
    EXPECT_GT(*points.y[k], 0.7 * bound);  // either is near what limits it
  }
  EXPECT_NEAR(*roof.y.at(0), roof.x.at(0) * d.dram_gb_s / 32, 1e-9);
  EXPECT_THAT(figure->y.label, HasSubstr("modelled"));
}

TEST(Roofline, KernelsThatMoveNothingAreNotOnIt) {
  const Device& d = device("v100");
  const RooflineSeries still{"xla", 1, "modelled", {roofline_kernel(timed(d, 1 << 20, 0))}};
  EXPECT_FALSE(roofline_figure(d, {still}));
  EXPECT_FALSE(roofline_figure(d, {}));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
