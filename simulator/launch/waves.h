// The waves of blocks of a launch, and what they add up to.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "simulator/cache/l2_replay.h"
#include "simulator/launch/crew.h"
#include "simulator/launch/scheduler.h"

namespace stitchwork::sim {

std::uint64_t warp_instructions(const ptx::Program& program, const std::vector<BasicBlockCount>& counts);

class Waves {
 public:
  Waves(const LaunchContext& context, const Residency& residency, L2State& l2);

  /// Runs a few waves in place of all: the first ones, one that stands for those between, the last ones.
  void sample() { sampled_ = true; }
  /// True if the grid has more waves than a sample of it.
  static bool worth_sampling(std::uint64_t grid, const Residency& residency) {
    return grid / residency.blocks > kSampledWaves;
  }

 protected:
  /// run(begin, end) for each wave of blocks, or of a sample of them; counts what is left out.
  void for_waves(const std::function<void(std::uint64_t, std::uint64_t)>& run);
  /// Replays the first `units` of the logs, and empties them.
  void replay(std::uint64_t units, Crew* crew = nullptr, std::size_t threads = 1);
  void report(std::uint64_t blocks_done, std::uint64_t instructions) const;
  void account_wave(std::uint64_t blocks, std::uint64_t instructions_so_far, std::uint64_t times);
  ScheduleResult finish();

  const LaunchContext& context_;
  const Residency& residency_;
  L2State& l2_;
  std::uint64_t grid_;
  std::vector<Worker> workers_;
  std::vector<Logs> units_;
  /// Of each partition; apart from each other, as threads write them.
  std::array<L2Counters, L2State::kPartitions> l2_counters_;
  std::vector<ThreadWork> work_;  ///< of the blocks of a wave
  ScheduleResult result_;

 private:
  /// Waves of a sample that are run: the first two fill the L2, the third stands for all up to the last full
  /// one.
  static constexpr std::uint64_t kSampledWaves = 4, kRepresentative = 2;

  /// What was counted so far, over all threads.
  struct Totals {
    std::vector<BasicBlockCount> bb_counts;
    HotCounters hot;
    std::vector<MemoryCounts> memory;
    L2Counters l2;
  };
  Totals totals() const;
  /// All full waves have run, or the tail.
  void close_stretch(double waves, double blocks);
  /// Updates of one word in so many full waves, or in the tail, if `found` are those of the blocks that ran:
  /// of a sample as many more as each wave behind the first one had.
  double updates_of(double found, double waves) const;
  void check_alike(std::uint64_t usual, std::uint64_t last) const;

  std::uint64_t instructions_ = 0;
  bool sampled_ = false;
  std::uint64_t first_updates_ = 0;  ///< sampled: of the word that has most, in the first wave
  SmLoads loads_;
  L2Counters timed_;  ///< in closed stretches
};

}  // namespace stitchwork::sim
