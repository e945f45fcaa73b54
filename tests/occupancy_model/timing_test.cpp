#include "occupancy_model/timing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "occupancy_model/occupancy.h"

namespace stitchwork {
namespace {

/// A copy of `bytes` in each direction: 16-byte loads, 256 threads a block.
KernelWork copy(double bytes) {
  KernelWork work;
  work.threads_per_block = 256;
  work.blocks_per_sm = 8;
  work.grid_blocks = std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes / (256 * 16)));
  work.dram_sectors = work.l2_sectors = 2 * bytes / 32;
  const double warps = static_cast<double>(work.grid_blocks) * 8;
  work.warp_instructions = 20 * warps;
  work.ldst_warp_instructions = 2 * warps;
  work.independent_loads = 4;
  return work;
}

double total_us(const Device& d, const KernelWork& work) { return kernel_time(d, work).total_us; }

TEST(KernelTime, AnEmptyKernelCostsALaunch) {
  for (const Device& d : devices()) EXPECT_DOUBLE_EQ(total_us(d, {}), d.launch_us);
}

TEST(KernelTime, AGridBarrierOnV100IsThatOfTable6) {
  // Table 6 times whole kernels that hold one barrier and nothing else.
  for (const std::int64_t blocks : {1, 20, 80, 160}) {
    KernelWork work;
    work.grid_blocks = blocks;
    work.threads_per_block = 1024;
    work.blocks_per_sm = 2;
    work.grid_barriers = 1;
    work.phases = 2;
    EXPECT_NEAR(total_us(device("v100"), work), 2.50 + 0.00136 * static_cast<double>(blocks), 1e-9);
    work.grid_barriers = 2;
    EXPECT_NEAR(total_us(device("v100"), work), 2 + 2 * (0.50 + 0.00136 * static_cast<double>(blocks)), 1e-9);
  }
}

TEST(KernelTime, LargeCopiesApproachTheEfficiencyTimesPeak) {
  for (const Device& d : devices()) {
    constexpr double kBytes = 4e9;
    const double gb_s = 2 * kBytes / total_us(d, copy(kBytes)) / 1e3;
    EXPECT_LT(gb_s, d.dram_efficiency * d.dram_gb_s) << d.id;
    // The B200 comes least close: its SMs have the largest share of the bandwidth to move.
    EXPECT_GT(gb_s, 0.87 * d.dram_efficiency * d.dram_gb_s) << d.id;
  }
}

TEST(KernelTime, GrowsWithEveryKindOfWork) {
  for (const Device& d : devices()) {
    const KernelWork base = copy(1e8);
    const auto grows = [&](double KernelWork::*field, double value) {
      KernelWork more = base;
      more.*field = value;
      EXPECT_GT(total_us(d, more), total_us(d, base)) << d.id;
    };
    grows(&KernelWork::dram_sectors, base.dram_sectors * 2);
    grows(&KernelWork::l2_sectors, base.l2_sectors * 20);
    grows(&KernelWork::warp_instructions, 1e9);
    grows(&KernelWork::fp32_warp_instructions, 1e9);
    grows(&KernelWork::mufu_warp_instructions, 1e9);
    grows(&KernelWork::ldst_warp_instructions, 1e9);
    grows(&KernelWork::shared_wavefronts, 1e9);
    KernelWork barrier = base;
    barrier.grid_barriers = 1;
    EXPECT_GT(total_us(d, barrier), total_us(d, base)) << d.id;
  }
}

TEST(KernelTime, FewBlocksCannotFillTheMemory) {
  const Device& d = device("h200");
  KernelWork wide = copy(1e8), narrow = wide;
  narrow.grid_blocks = 16;
  narrow.warp_instructions = wide.warp_instructions;
  EXPECT_GT(total_us(d, narrow), 4 * total_us(d, wide));
}

TEST(KernelTime, OneWordAThreadCannotFillAnH200) {
  const Device& d = device("h200");
  KernelWork words = copy(1e9);
  words.independent_loads = 1;
  const double gb_s = 2e9 / total_us(d, words) / 1e3;
  EXPECT_LT(gb_s, 2500);
  EXPECT_GT(gb_s, 1500);
  words.independent_loads = 4;
  EXPECT_GT(2e9 / total_us(d, words) / 1e3, 3500);
}

TEST(KernelTime, FewerResidentWarpsIssueMoreSlowly) {
  const Device& d = device("v100");
  KernelWork work;
  work.grid_blocks = 80;
  work.threads_per_block = 512;
  work.warp_instructions = 1e8;
  const double full = total_us(d, work);
  work.threads_per_block = 128;
  EXPECT_NEAR(total_us(d, work) - d.launch_us, 4 * (full - d.launch_us), 1e-6 * full);
}

TEST(KernelTime, TheTailWaveCounts) {
  const Device& d = device("v100");
  const auto with_blocks = [&](std::int64_t blocks) {
    KernelWork work;
    work.grid_blocks = blocks;
    work.threads_per_block = 1024;
    work.blocks_per_sm = 1;
    work.warp_instructions = 1e6 * static_cast<double>(blocks);
    return total_us(d, work) - d.launch_us;
  };
  EXPECT_NEAR(with_blocks(81), 2 * with_blocks(80), 1e-6 * with_blocks(80));
  EXPECT_NEAR(with_blocks(160), 2 * with_blocks(80), 1e-6 * with_blocks(80));
}

struct Measured {
  std::string op, device;  ///< device id
  double rows = 0, cols = 0, us = 0;
  std::int64_t grid = 0;
  int threads = 0;
};

const char* const kTimings = STITCHWORK_SOURCE_DIR "/../shared/data/gpu-timings/timings.csv";

std::vector<Measured> read_timings() {
  const std::map<std::string, std::string> device_of{
      {"Tesla V100-PCIE-32GB", "v100-pcie"}, {"NVIDIA A100-PCIE-40GB", "a100-pcie-40"}, {"Tesla T4", "t4"}};
  std::ifstream file(kTimings);
  std::vector<Measured> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::vector<std::string> cells(11);
    for (std::string& cell : cells) std::getline(fields, cell, ',');
    rows.push_back({cells[0], device_of.at(cells[1]), std::stod(cells[2]), std::stod(cells[3]),
                    std::stod(cells[10]) * 1e3, std::stoll(cells[4]),
                    std::stoi(cells[7]) * std::stoi(cells[8])});
  }
  return rows;
}

/// A kernel that reads and writes `arrays` of the row's size, 16 bytes an access.
double modelled_us(const Measured& row, int arrays) {
  const Device& d = device(row.device);
  const double elements = row.rows * row.cols;
  const double warps = elements / 4 / 32;
  KernelWork work;
  work.grid_blocks = row.grid;
  work.threads_per_block = row.threads;
  work.blocks_per_sm = occupancy(d, row.threads, 32, 0).blocks_per_sm;
  work.dram_sectors = work.l2_sectors = arrays * elements * 4 / 32;
  work.ldst_warp_instructions = arrays * warps;
  work.warp_instructions = 40 * warps;
  work.independent_loads = 4.0 * std::min(arrays - 1, 2);
  return total_us(d, work);
}

using Errors = std::map<std::string, std::vector<double>>;

void expect_small(Errors& errors, double median_bound, double p90_bound) {
  for (auto& [what, list] : errors) {
    std::sort(list.begin(), list.end());
    const double median = list[list.size() / 2], p90 = list[list.size() * 9 / 10];
    fmt::print("{}: {} kernels, relative error median {:.2f} %, 90 % below {:.2f} %, largest {:.1f} %\n",
               what, list.size(), median * 100, p90 * 100, list.back() * 100);
    EXPECT_LT(median, median_bound) << what;
    EXPECT_LT(p90, p90_bound) << what;
  }
}

TEST(KernelTime, ElementwiseKernelsAreNearTheirMeasuredTimes) {
  if (!std::ifstream(kTimings)) GTEST_SKIP() << "no measured kernel times at " << kTimings;
  // Arrays read and written; powers are left out, whose instructions the sizes do not tell.
  const std::map<std::string, int> arrays{{"add", 3},  {"mul", 3},  {"div", 3},  {"addu", 2}, {"mulu", 2},
                                          {"divu", 2}, {"relu", 2}, {"gelu", 2}, {"tanh", 2}};
  Errors errors;
  for (const Measured& row : read_timings())
    if (const auto it = arrays.find(row.op); it != arrays.end())
      errors[row.device + " element-wise"].push_back(std::abs(modelled_us(row, it->second) / row.us - 1));
  expect_small(errors, 0.03, 0.08);
}

/// The efficiencies were fitted to element-wise kernels; these are judged, not fitted.
TEST(KernelTime, RowKernelsThatOutgrowL2AreNearTheirMeasuredTimes) {
  if (!std::ifstream(kTimings)) GTEST_SKIP() << "no measured kernel times at " << kTimings;
  // Layer norm reads its rows twice (moments, result), softmax three times (maximum, sum, result).
  const std::map<std::string, int> arrays{{"ln", 3}, {"softmax", 4}};
  Errors errors;
  for (const Measured& row : read_timings()) {
    const auto it = arrays.find(row.op);
    if (it == arrays.end()) continue;
    const Device& d = device(row.device);
    const double rows_resident =
        std::min<double>(static_cast<double>(occupancy(d, row.threads, 32, 0).blocks_per_wave), row.rows);
    if (rows_resident * row.cols * 4 < 1.5 * static_cast<double>(d.l2_bytes)) continue;
    errors[row.device + " " + row.op].push_back(std::abs(modelled_us(row, it->second) / row.us - 1));
  }
  expect_small(errors, 0.06, 0.12);
}

}  // namespace
}  // namespace stitchwork
