// How the blocks of a launch are dealt to SMs, and what the busiest SM then has to do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "occupancy_model/timing.h"

namespace stitchwork::sim {

/// Blocks start on SMs in turn while there is room; each further one starts where work ends first.
class SmLoads {
 public:
  /// `resident` blocks run at once.
  SmLoads(const Device& device, std::uint64_t resident);

  /// The block with this index in the grid does `work`.
  void add(std::uint64_t index, const ThreadWork& work);
  /// Blocks that follow each other from `first` on, `times` over.
  void add(std::uint64_t first, std::span<const ThreadWork> blocks, std::uint64_t times = 1);
  /// What was added since the last call, in `waves` waves of `blocks`.
  Stretch close(double waves, double blocks);

 private:
  /// Clocks an SM needs for this, for the order in which blocks end.
  double clocks(const ThreadWork& work) const;
  void add_to_first_free(const ThreadWork& work);
  bool level_within(double clocks) const;

  const Device* device_;
  std::uint64_t resident_;
  std::vector<ThreadWork> sms_;  ///< since the beginning
  std::vector<double> busy_;     ///< clocks of each
  ThreadWork all_, longest_;     ///< since close() was called last
  ThreadWork closed_;            ///< of the busiest SM, then
};

}  // namespace stitchwork::sim
