#include "occupancy_model/timing_text.h"

#include <gtest/gtest.h>

namespace stitchwork {
namespace TEST_FILE {

TEST(TimingText, TheLimiterIsTheLongestPart) {
  const Device& d = device("v100");
  KernelWork copy{.grid_blocks = 4096, .threads_per_block = 256, .blocks_per_sm = 8};
  copy.dram_sectors = copy.l2_sectors = 1 << 22;
  copy.warp_instructions = 1 << 18;
  copy.ldst_warp_instructions = 1 << 16;
  EXPECT_EQ(limiter(kernel_time(d, copy)), "DRAM bandwidth");
  KernelWork compute = copy;
  compute.fp32_warp_instructions = compute.warp_instructions = 1 << 26;
  EXPECT_EQ(limiter(kernel_time(d, compute)), "instruction issue");
  EXPECT_NE(to_text(kernel_time(d, compute)).find("(fp32)"), std::string::npos);
  EXPECT_EQ(limited_by(kernel_time(d, compute)), "instruction issue (fp32)");
  EXPECT_EQ(limited_by(kernel_time(d, copy)), "DRAM bandwidth");
  KernelWork waiting{.grid_blocks = 160, .threads_per_block = 256, .blocks_per_sm = 2, .grid_barriers = 50};
  EXPECT_EQ(limiter(kernel_time(d, waiting)), "grid barriers");
  const std::string text = to_text(kernel_time(d, copy));
  EXPECT_EQ(busiest_units(kernel_time(d, copy), 1).substr(0, 5), "DRAM ");
  EXPECT_EQ(busiest_units(kernel_time(d, compute), 1).substr(0, 5), "fp32 ");
  EXPECT_EQ(busiest_units(kernel_time(d, KernelWork{})), "");
  EXPECT_NE(text.find("of each peak       " + busiest_units(kernel_time(d, copy))), std::string::npos)
      << text;
  EXPECT_NE(text.find("DRAM bandwidth"), std::string::npos);
  EXPECT_NE(text.find("<- limits"), std::string::npos);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
