// Launches whose blocks wait for each other: what they do between two waits, as a phase where all wait as
// often.
#pragma once

#include <deque>
#include <vector>

#include "simulator/cache/l2_cache.h"
#include "simulator/cache/update_tally.h"
#include "simulator/cost/sm_loads.h"

namespace stitchwork::sim {

/// A stretch of a launch and what it asked of the L2.
struct TimedStretch {
  Stretch work;  ///< L2 sectors as the threads asked for them; those of DRAM are not set
  L2Counters l2;
};

class Phases {
 public:
  Phases(const Device& device, std::uint64_t grid, std::uint64_t resident);

  /// Counters for what a block asks of the L2 after it waited `waits` times.
  L2Counters& l2_after(std::size_t waits) { return phase(waits).l2; }
  /// Block `index` has ended: what it did before each wait, and after the last one.
  void add(std::uint64_t index, const std::vector<ThreadWork>& waits, const ThreadWork& last);
  /// Waits of the whole grid: every block makes them, but perhaps the last to arrive.
  std::uint64_t grid_barriers() const;
  L2Counters l2() const;
  /// The phases; one stretch where blocks wait differently often, or not all are resident. `updates`: by
  /// phase_after().
  std::vector<TimedStretch> stretches(const UpdateTally& updates);

  /// The phase that a block is in after it waited `waits` times.
  static std::size_t phase_after(std::size_t waits);

 private:
  struct Phase {
    SmLoads loads;
    L2Counters l2;
  };
  Phase& phase(std::size_t number);

  const Device& device_;
  std::uint64_t grid_, resident_;
  std::deque<Phase> phases_;
  SmLoads whole_;
  std::size_t most_waits_ = 0, least_waits_ = ~std::size_t{0};
  std::uint64_t all_waits_ = 0;
};

}  // namespace stitchwork::sim
