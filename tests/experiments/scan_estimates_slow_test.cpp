// Estimates of scans against the simulator: slices, paddings and windows in one loop, with their guards.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <vector>

#include "experiments/trial.h"
#include "tests/support/graphs.h"
#include "tests/support/scans.h"

namespace stitchwork {
namespace TEST_FILE {

/// Simulated over estimated, of a plan's kernels together.
struct Ratios {
  double slots = 0, us = 0;
};

Ratios ratios_of(std::uint32_t seed, const char* device) {
  const Model model{testing::graph_of(testing::drawn_scan(seed)), {}, {}};
  TrialSpec spec;
  spec.planner = "auto";
  spec.device = device;
  const TrialResult result = run_trial(model, spec);
  Ratios estimated, simulated;
  for (std::size_t k = 0; k < result.costs.size(); ++k) {
    estimated.slots += result.costs[k].work.warp_instructions;
    estimated.us += result.costs[k].predicted_us;
    simulated.slots += static_cast<double>(result.run.kernels[k].counters.issue_slots);
    simulated.us += result.run.kernels[k].time_us;
  }
  return {simulated.slots / estimated.slots, simulated.us / estimated.us};
}

/// The size of the error as a factor that this part of the ratios is within.
double error_of(std::vector<double> ratios, double part) {
  for (double& ratio : ratios) ratio = std::max(ratio, 1 / ratio);
  std::ranges::sort(ratios);
  return ratios[static_cast<std::size_t>(part * static_cast<double>(ratios.size() - 1))];
}

class ScanEstimates : public ::testing::TestWithParam<const char*> {};

TEST_P(ScanEstimates, AreNearTheSimulator) {
  std::vector<double> slots, us;
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    const Ratios of_seed = ratios_of(seed, GetParam());
    slots.push_back(of_seed.slots);
    us.push_back(of_seed.us);
    std::cout << "scan " << seed << ": issue slots " << of_seed.slots << ", time " << of_seed.us << "\n";
  }
  // docs/timing.md, "Scans", has what 40 seeds measured; without guards the medians were 2.9 and 1.4.
  EXPECT_LE(error_of(slots, 0.5), 1.25);
  EXPECT_LE(error_of(slots, 0.9), 1.7);
  EXPECT_LE(error_of(us, 0.5), 1.15);
  EXPECT_LE(error_of(us, 0.9), 1.4);
}

INSTANTIATE_TEST_SUITE_P(Devices, ScanEstimates, ::testing::Values("h200", "v100"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace TEST_FILE
}  // namespace stitchwork
