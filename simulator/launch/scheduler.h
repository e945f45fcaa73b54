// Runs the blocks of a launch: over host threads where blocks are independent, else interleaved by a fixed
// rule.
#pragma once

#include "simulator/check/sanitizer.h"
#include "simulator/cost/phases.h"
#include "simulator/machine/block.h"

namespace stitchwork::sim {

/// What the scheduler adds up while blocks run.
struct ScheduleResult {
  std::vector<BasicBlockCount> bb_counts;
  HotCounters hot;
  std::vector<MemoryCounts> memory;  ///< by Inst::id, where lines are asked for
  L2Counters l2;
  std::uint64_t grid_barriers = 0;
  std::uint64_t same_address_atomics = 0;  ///< Counters::same_address_atomics
  std::uint64_t blocks_simulated = 0;      ///< fewer than the grid has in a sample
  int host_threads = 1;
  std::vector<TimedStretch> stretches;
  /// Sums over waves of (warp instructions, times occupancy, times busy SMs).
  double weight = 0, occupancy = 0, busy = 0;
};

/// Residency of a launch: blocks that fit the device at once, in whole clusters.
struct Residency {
  std::uint64_t blocks = 1;
  int blocks_per_sm = 1;
};

/// Throws FindingError; of several, that of the lowest block. `sampled`: a few waves stand for all; throws
/// Error where they cannot. `sanitizer`: that looks at the launch, or null.
ScheduleResult schedule(const LaunchContext& context, const Residency& residency, L2State& l2,
                        Sanitizer* sanitizer, int host_threads, bool sampled);

}  // namespace stitchwork::sim
